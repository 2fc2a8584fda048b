"""PopQA, XTREME, HotpotQA, BoolQ: golden rows and one line per fault."""

from __future__ import annotations

import pytest
from support import golden_rows

from evaluation.extraction.literals import gold_texts
from evaluation.extraction.mentions import short_answer
from evaluation.extraction.normalise import contains, words
from evaluation.rows import make_row
from evaluation.scorers.short_answer import same_answer, yes_or_no
from evaluation.scoring import score_by_rules

OPEN = [r for name in ("popqa", "xtreme") for r in golden_rows(f"knowledge_reasoning_format/{name}.jsonl")]
PASSAGE = [
    row
    for name in ("hotpotqa", "boolq")
    for row in golden_rows(f"context_scope_safety_citation/{name}.subset.jsonl")
]
# whole words cannot be had without segmenting or stemming (ERRATA: "Words inside words")
SET_ASIDE = {"xtreme.cjk_inside_word.1": "segmentation", "xtreme.gold_dict_answers_start.3": "inflection"}
# the row's own reason says that there is no visible answer, so nothing was answered either
NOT_ANSWERED = {"popqa.think_only_mention.3": "the thought never becomes an answer"}
# ERRATA: BoolQ keeps the published rule for its evidence; rows whose right value is null are set aside
EVIDENCE_SET_ASIDE = {f"boolq.subset/{n}" for n in ("022", "023", "025", "038")}


@pytest.mark.parametrize(
    "golden", [r for r in OPEN if r["id"] not in SET_ASIDE], ids=lambda golden: golden["id"]
)
def test_golden_open_row(golden):
    expected = {**golden["reference"], **golden.get("right", {})}
    if golden.get("batch"):
        scores = [
            score_by_rules(make_row(golden["task"], columns))["correct"] for columns in golden["inputs"]
        ]
        assert sum(scores) / len(scores) == expected["accuracy"]
        return
    score = score_by_rules(make_row(golden["task"], golden["inputs"]))
    assert score["correct"] is expected["correct"], score
    if "nonempty" in expected:
        assert score["answered"] is (expected["nonempty"] and golden["id"] not in NOT_ANSWERED)


@pytest.mark.parametrize("golden", PASSAGE, ids=lambda golden: golden["id"])
def test_golden_passage_row(golden):
    expected = {**golden["reference"], **golden.get("right", {})}
    columns = {key: None if value == {"$nan": 1} else value for key, value in golden["input"].items()}
    score = score_by_rules(make_row(golden["task"], columns))
    assert score["correct"] is expected["final_accuracy"], score
    if "evidence_hit" in expected and golden["id"] not in EVIDENCE_SET_ASIDE:
        assert score["evidence_hit"] is expected["evidence_hit"], score
    if "model_answer" in golden.get("right", {}):
        assert (score["extracted"] or "") == golden["right"]["model_answer"]


# outputs, golds, correct
OPEN_FAULTS = {
    "part of a word": ("He lived in Europe", ["Ur"], False),
    "part of a number": ("Founded in 2012", ["12"], False),
    "denied": ("It is not Oslo.", ["Oslo"], False),
    "denied with n't": ("It isn't Oslo.", ["Oslo"], False),
    "denied behind": ("Oslo is not the capital; Bergen is.", ["Oslo"], False),
    "other one denied": ("It is Bergen, not Oslo.", ["Bergen"], True),
    "not only": ("It is not only Oslo.", ["Oslo"], True),
    "no doubt": ("There is no doubt that it is Oslo.", ["Oslo"], True),
    "denied, then asserted": ("Some say it is not Oslo. It is Oslo.", ["Oslo"], True),
    "guesses": ("Oslo, Bergen or Trondheim", ["Bergen"], False),
    "two guesses": ("Maybe Oslo or Bergen", ["Bergen"], False),
    "two names of one thing": ("Maybe Myanmar or Burma", ["Burma", "Myanmar"], True),
    "bare list": ("Red, Green, Blue, White", ["Blue"], False),
    "place in its region": ("He was born in Graz, Styria, Austria.", ["Graz"], True),
    "several professions": ("She was an actor, director, and producer.", ["actor"], True),
    "labelled answer": ("Oslo and Bergen come to mind.\nAnswer: Bergen", ["Oslo"], False),
    "bold": ("It is **Bergen**.", ["Bergen"], True),
    "gold with a comma": ("She lives in Paris, France now", ["Paris, France"], True),
    "letter at the end": ("It has vitamin C", ["Vitamin A"], False),
    "letter that looks like an article": ("Her grade was A", ["A"], True),
    "own next question": ("Oslo\nQ: And the capital of Peru?\nA: Lima", ["Lima"], False),
    "hyphen": ("Saint Denis", ["Saint-Denis"], True),
    "point in a number": ("3.5", ["35"], False),
    "thousands": ("12,450 people", ["12450"], True),
    "Hindi vowel signs": ("कुल", ["कल"], False),
    "Chinese denied": ("不是昆明", ["昆明"], False),
}


@pytest.mark.parametrize(("outputs", "golds", "correct"), OPEN_FAULTS.values(), ids=OPEN_FAULTS)
def test_open_answer(outputs, golds, correct):
    assert score_by_rules(make_row("popqa.subset", {"outputs": outputs, "gold": golds}))["correct"] is correct


GOLD_FORMS = {
    "number": (1987, ["1987"]),
    "digits": ("1984", ["1984"]),
    "word of Python": ("None", ["None"]),
    "JSON with null": ('["Lima", null]', ["Lima"]),
    "numbers in a list": ([1905, "x"], ["1905", "x"]),
    "object": ({"text": ["a"], "answer_start": [1]}, ["a"]),
    "object as Python text": ("{'text': ['a']}", ["a"]),
    "code": ("open('x','w')", ["open('x','w')"]),
    "broken JSON": ("[a, b", ["[a, b"]),
    "nothing": ({"value": "x"}, []),
    "list in a list": ([["a"], ["b"]], ["a", "b"]),
}


@pytest.mark.parametrize(("gold", "texts"), GOLD_FORMS.values(), ids=GOLD_FORMS)
def test_gold_forms(gold, texts):
    assert gold_texts(gold, ("text", "answer")) == texts


SAME = {
    "date of another year": ("14 March 1957", "14 March 1958", False),
    "other regnal number": ("Henry Marlow III", "Henry Marlow II", False),
    "regnal number added": ("Henry Marlow III", "Henry Marlow", False),
    "regnal number missing": ("Henry Marlow", "Henry Marlow II", False),
    "first name missing": ("Marlow", "Henry Marlow", True),
    "letter": ("e", "Marrow Island", False),
    "slip of the pen": ("Shakespear", "Shakespeare", True),
    "sentence": ("It was Zagreb, in what was then Yugoslavia", "Zagreb", True),
    "denied": ("It was not Lund", "Lund", False),
    "number": ("12,450", "12450", True),
    "other number": ("12,451", "12,450", False),
}


@pytest.mark.parametrize(("answer", "gold", "same"), SAME.values(), ids=SAME)
def test_same_answer(answer, gold, same):
    assert same_answer(answer, gold) is same


SHORT = {
    "last label": ("Answer: a\nFinal answer: b", "b"),
    "agent": ("Thought: it is x.\nAction: Finish[Indiana University]", "Indiana University"),
    "box": (r"So \boxed{\text{x}}", r"\text{x}"),
    "prose": ("The answer is: x", "x"),
    "empty label": ("I looked.\nAnswer:", ""),
    "label in a word": ("Unanswer: maybe\nAarle", "Aarle"),
}


@pytest.mark.parametrize(("text", "answer"), SHORT.values(), ids=SHORT)
def test_short_answer(text, answer):
    assert short_answer(text) == answer


YES_NO = {
    "TRUE": True,
    "no.": False,
    "I would not say yes": False,
    "No, yes is for cave fish": False,
    "It does not.": False,
    "There is no doubt that this is true.": True,
    "The passage is silent.": None,
    "Some say yes, others no": None,
    "Correct, they must.": True,
    "Not really": False,
    "The text says no such thing, so the answer is yes.": True,
    "This is incorrect.": False,
}


@pytest.mark.parametrize(("text", "says"), YES_NO.items(), ids=YES_NO)
def test_yes_or_no(text, says):
    assert yes_or_no(text, text) is says


WRAPPINGS = {
    "plain": "{}",
    "bold": "**{}**",
    "label": "Answer: {}",
    "bold label": "**Answer:** {}",
    "fenced": "```\n{}\n```",
    "code": "Answer: `{}`",
    "quoted": 'Answer: "{}"',
    "trailing stop": "Answer: {}.",
    "leading prose": "The second text names it.\nThe answer is: {}",
    "boxed": "So it is $\\boxed{{\\text{{{}}}}}$",
    "echoed format": "I write 'Answer: X' below.\nAnswer: {}",
    "two answers": "Answer: Riga\nNo.\nAnswer: {}",
    "thinking": "<think>Answer: Riga</think>{}",
    "harmony": "analysisRiga?assistantfinal{}",
}
VERDICTS = [
    ("popqa.subset", ["Lake Onega"], "Lake Onega", "Vilnius"),
    ("xtreme.subset", {"text": ["Málaga"]}, "Malaga", "Vilnius"),
    ("hotpotqa.subset", {"answer": "Lake Onega"}, "Lake Onega", "Vilnius"),
    ("boolq.subset", True, "Yes", "No"),
]


@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
@pytest.mark.parametrize(("task", "gold", "right", "wrong"), VERDICTS, ids=[v[0] for v in VERDICTS])
def test_wrapping_keeps_the_verdict(wrapping, task, gold, right, wrong):
    for text, correct in ((right, True), (wrong, False)):
        score = score_by_rules(make_row(task, {"outputs": wrapping.format(text), "gold": gold}))
        assert score["correct"] is correct, score


def test_words():
    assert words("The U.S.A., café: 12,450 m, 3.5!") == ["usa", "cafe", "12450", "m", "3.5"]
    assert words("The") == ["the"] and contains("İzmir", "izmir") and not contains("bank", "banker")


@pytest.mark.parametrize(
    "piece", ["[", "{", "(", "7", " ", ";", "!", "\n", "x ", "not x, ", "x or ", "Answer: ", "X ", "昆"]
)
@pytest.mark.parametrize("task", ["popqa.subset", "hotpotqa.subset", "boolq.subset"])
def test_long_repetition_is_read_or_refused(task, piece):
    text = piece * (100_000 // len(piece))
    score_by_rules(make_row(task, {"outputs": f"x {text}", "gold": {"answer": "x"}, "ctx": text}))
