"""Multiple choice: golden rows, traps and wrappings of letters, forms of options and golds."""

from __future__ import annotations

import asyncio
import re

import pytest
from support import golden_rows

from evaluation.extraction.letters import Options, options_of, read_letter
from evaluation.judge import Verdict
from evaluation.rows import make_row
from evaluation.scoring import score_by_rules, score_row

ROWS = [
    r for name in ("mc_mmlu", "mc_other") for r in golden_rows(f"knowledge_reasoning_format/{name}.jsonl")
]


class Replay:
    """A judge that gives a row's stored reply, read by its last verdict line; counts what it is asked."""

    def __init__(self, judge: dict | None):
        self.judge, self.asked = judge or {}, []

    async def ask(self, mode, **fields):
        self.asked.append((mode, fields))
        assert self.judge.get("key", "") in fields["choices"]
        reply = self.judge.get("mc", "")
        if isinstance(reply, dict):
            return Verdict(None, "failed")
        verdicts = re.findall(r"JUDGMENT:\W*(True|False)\b", reply)
        return Verdict(verdicts[-1] == "True", "ok") if verdicts else Verdict(None, "unreadable")


@pytest.mark.parametrize("golden", ROWS, ids=lambda golden: golden["id"])
def test_golden_row(golden):
    expected = {**golden["reference"], **golden.get("right", {})}
    judge = Replay(golden.get("judge"))
    score = asyncio.run(score_row(golden["task"], golden["inputs"], judge))
    assert score["correct"] is expected["correct"], score
    if "formatted" in expected:
        assert score["formatted"] is expected["formatted"], score
    assert not (judge.asked and golden["kind"] in ("empty_output", "none_output", "nan_output"))


FOUR = options_of(["basalt", "quartz", "about 12 metres", "gneiss"])
TEN = FOUR.at_least(10)
# answer, letter or None
READINGS = {
    "letter": ("B", "B"),
    "stop": ("B.", "B"),
    "brackets": ("(B)", "B"),
    "bold": ("**B**", "B"),
    "comma": ("ANSWER: A,", "A"),
    "label and bold": ("Answer: **C**", "C"),
    "brackets and stop": ("The answer is (C).", "C"),
    "boxed": (r"Answer: $\boxed{B}$", "B"),
    "boxed text": (r"\boxed{\text{B}}", "B"),
    "boxed label and text": (r"\boxed{B. quartz}", "B"),
    "json": ('{"answer": "B"}', "B"),
    "fenced json": ('```json\n{"answer": "B"}\n```', "B"),
    "option text": ("about 12 metres", "C"),
    "option text behind a label": ("Answer: quartz.", "B"),
    "label with another option's text": ("B. gneiss", None),
    "adverb": ("The answer is indeed C", "C"),
    "adverb with a letter of its own": ("The answer is definitely A.", "A"),
    "article behind a phrase": ("The answer is a metal, namely D", "D"),
    "safe choice": ("B, a safe choice", "B"),
    "seems": ("Answer seems to be A", "A"),
    "article first": ("A careful reading points to C.", "C"),
    "article alone": ("A wave carries energy.", None),
    "pronoun": ("I am not able to answer this.", None),
    "pronoun behind a label": ("Answer: I think it is hard to say", None),
    "article behind a label": ("Answer: A kind of rock", None),
    "two letters": ("A or B", None),
    "two letters with a comma": ("A, C", None),
    "two letters behind a label": ("The answer is A or B.", None),
    "all options listed": ("A. basalt\nB. quartz\nC. about 12 metres", None),
    "letter in a word": ("Basalt has DNA of its own", None),
    "vitamin": ("It holds vitamin C and hepatitis B", None),
    "unoffered letter": ("The answer is Z.", None),
    "denied": ("The answer is not (A), (B) or (D). The answer is (C).", "C"),
    "denied only": ("The answer is not B.", None),
    "closest": ("The answer is not listed, but the closest answer is (G).", "G"),
    "last one": ("Answer: A\nNo.\nAnswer: D", "D"),
    "draft, then box": (r"The answer is A? No: \boxed{B}", "B"),
    "own next question": ("C.\n\nQuestion: and this?\nA. x\nB. y\nAnswer: A", "C"),
    "option named": ("Option C fits best here.", "C"),
    "option named and refused": ("Option C is wrong.", None),
    "reason first": ("The units rule the others out, so B.", "B"),
    "end in brackets": ("Claim three is backed by measurements. (C)", "C"),
    "each judged": ("A is incorrect. B is incorrect. C is correct.", "C"),
    "logic": ("Since J is false, we must have that I is true in all", None),
    "corrected": ("The answer is not A but B.", "B"),
    "it is": ("Not basalt. It's D.", "D"),
    "grade with a hyphen": ("The answer is A-rated stone", None),
    "adverb alone": ("Definitely B.", "B"),
    "answer tag": ("<answer>B</answer>", "B"),
    "full width": ("Ｂ", "B"),
    "circled": ("Ⓒ", "C"),
    "another language": ("答案是 B。", "B"),
    "dash": ("Answer - C", "C"),
    "refusal": ("No option is right.", None),
}


@pytest.mark.parametrize(("answer", "letter"), READINGS.values(), ids=READINGS)
def test_reading(answer, letter):
    assert read_letter(answer, TEN) == letter


OPTIONS = {
    "list": (["x", "y"], ("A", "B"), ("x", "y")),
    "labelled list": (["A. x", "B. y"], ("A", "B"), ("x", "y")),
    "one known option": (["D. y"], ("D",), ("y",)),
    "capital letters in texts": (["A: Gold", "Vitamin C: no"], ("A", "B"), ("A: Gold", "Vitamin C: no")),
    "mapping": ({"A": "x", "B": "y"}, ("A", "B"), ("x", "y")),
    "ARC": ({"label": ["A", "B"], "text": ["x", "y"]}, ("A", "B"), ("x", "y")),
    "JSON text": ('["x", "y"]', ("A", "B"), ("x", "y")),
    "Python text": ("['x', \"y's\"]", ("A", "B"), ("x", "y's")),
    "running text": ("A: quartz seven B: basalt seven", ("A", "B"), ("quartz seven", "basalt seven")),
    "lines": ("A) x, B: not this\nB) y", ("A", "B"), ("x, B: not this", "y")),
    "nothing": (None, (), ()),
}


@pytest.mark.parametrize(("choices", "labels", "texts"), OPTIONS.values(), ids=OPTIONS)
def test_options(choices, labels, texts):
    assert options_of(choices) == Options(labels, texts)


# task, gold, outputs, correct
GOLDS = {
    "letter with text": ("mmlu_pro.subset", "B. y", "B", True),
    "letter in brackets": ("mmlu_pro.subset", "(b)", "B", True),
    "index as text": ("hellaswag.subset", "1", "B", True),
    "index answered by its number": ("hellaswag.subset", 1, "1", True),
    "number from one": ("winogrande.subset", "2", "B", True),
    "number answered in words": ("winogrande.subset", "2", "The answer is 2.", True),
    "number joined to its word": ("winogrande.subset", "2", "Option2", True),
    "number joined to its word, with text": ("winogrande.subset", "2", "Option1 : x", False),
    "number joined to its word in a sentence": ("winogrande.subset", "2", "The answer is option2.", True),
    "small letter behind its word": ("truthfulqa.full", "B", "option b", True),
    "letter answered by number": ("winogrande.subset", "B", "2", True),
    "index zero": ("winogrande.subset", 0, "A", True),
    "whole float": ("hellaswag.subset", 1.0, "B", True),
    "list of one": ("truthfulqa.full", ["A"], "A", True),
    "text of an option": ("truthfulqa.full", "y", "B", True),
    "no such option": ("truthfulqa.full", "w", "B", None),
    "index too high": ("truthfulqa.full", 7, "B", None),
}


@pytest.mark.parametrize(("task", "gold", "outputs", "correct"), GOLDS.values(), ids=GOLDS)
def test_gold(task, gold, outputs, correct):
    row = make_row(task, {"outputs": outputs, "gold": gold, "choices": ["x", "y"]})
    assert score_by_rules(row)["correct"] is correct


def test_letters_need_no_choices_column():
    assert score_by_rules(make_row("mmlu_pro.subset", {"outputs": "B", "gold": "B"}))["correct"] is True


def test_unreadable_answers_are_left_to_the_judge_with_the_options_text():
    columns = {"outputs": "I would pick the second one", "gold": "B", "choices": ["x", "y"]}
    assert score_by_rules(make_row("mmlu_pro.subset", columns))["pending"] == "unreadable"
    judge = Replay({"key": "A. x\nB. y", "mc": "JUDGMENT: True"})
    score = asyncio.run(score_row("mmlu_pro.subset", columns, judge))
    assert (score["correct"], score["formatted"], score["reason"]) == (True, False, None)
    assert judge.asked == [
        ("single_turn_mc", {"response": columns["outputs"], "choices": "A. x\nB. y", "gold": "B. y"})
    ]


WRAPPINGS = {
    "plain": "{}",
    "stop": "{}.",
    "bracket": "{})",
    "bold": "**{}**",
    "label": "Answer: {}",
    "bold label": "**Answer:** {}",
    "bold all": "**Answer: {}**",
    "final": "Final answer: ({}).",
    "boxed": "Thus $\\boxed{{{}}}$.",
    "fenced": "```\n{}\n```",
    "code": "Answer: `{}`",
    "LaTeX": r"The answer is \({}\).",
    "LaTeX text": "The answer is $\\text{{{}}}$",
    "json": '{{"answer": "{}"}}',
    "leading prose": "A table shows it, and I agree with B on units. The correct option is {}.",
    "echoed format": "I write 'Answer: X' at the end.\nAnswer: {}",
    "two answers": "Answer: D\nOn reflection:\nAnswer: {}",
    "thinking": "<think>Answer: D</think>{}",
    "harmony": "analysisIt may be D.assistantfinalAnswer: {}",
    "trailing prose": "{}\n\nBecause A is the odd one out, I say so.",
    "trailing remark": "The answer is {}. Let me know if you need more!",
    "trailing comma": "ANSWER: {},",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
@pytest.mark.parametrize(("letter", "correct"), [("A", False), ("C", True), ("I", False)])
def test_wrapping_keeps_the_verdict(wrapping, letter, correct):
    columns = {"outputs": wrapping.format(letter), "gold": "C", "choices": list(FOUR.texts)}
    score = score_by_rules(make_row("mmlu_pro.subset", columns))
    assert (score["correct"], score["extracted"]) == (correct, letter)


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "{",
        "(",
        "7",
        " ",
        ";",
        "!",
        "\n",
        "A ",
        "A,",
        "the ",
        "Answer: ",
        "so A ",
        "answer is ",
        "\\boxed{",
    ],
)
def test_long_repetition_is_read_or_refused(piece):
    text = piece * (100_000 // len(piece))
    read_letter(f"x{text}", TEN)
    options_of(text)
