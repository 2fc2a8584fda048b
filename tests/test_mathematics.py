"""Mathematics: reading answers, comparing them, the guard around math-verify, steps. One line a fault."""

# ruff: noqa: E501  (tables, one line a fault)

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from evaluation.extraction.formula import Unreadable, read_value
from evaluation.extraction.latex import final_answer
from evaluation.extraction.steps import false_arithmetic, steps, valid_mathematics, valid_options
from evaluation.rows import make_row
from evaluation.scorers import symbolic
from evaluation.scorers.equivalence import LIVE, compare
from evaluation.scorers.mathematics import score_livemathbench
from evaluation.scorers.reasoning import score_math, score_supergpqa

# --- equivalence: (fault, gold, answer, expected); None: not for rules to decide --------------------

PAIRS = [
    # numbers
    ("pitfall 1: comma number", "1234", "1,234", True),
    ("pitfall 1: braced comma", "9500", "9{,}500", True),
    ("pitfall 1: comma number as gold", "2,125", "2125", True),
    ("pitfall 1: thin space", "10000", r"10\,000", True),
    ("only the tail agrees", "5,234", "1,234", False),
    ("a list is not a joined number", "12", "1, 2", False),
    ("two numbers are not one", "12", "1 2", None),
    ("scientific", "1000000", "1e6", True),
    ("leading point", "0.5", ".5", True),
    ("U+2212", "-4", "−4", True),
    ("fullwidth digits", "42", "４２", True),
    ("dollar signs", "6", "$6$", True),
    ("repeating decimal (math-verify reads 0)", "1/3", r"0.\overline{3}", True),
    ("repeating decimal with a lead", "1/6", r"0.1\overline{6}", True),
    ("repeating decimal is exact", "1/3", r"0.\overline{34}", False),
    ("a rounded decimal is not the fraction", "1/3", "0.333", False),
    ("pi is not its decimals (math-verify: equal)", r"\pi", "3.14159265", False),
    ("pi is not even 30 of its decimals", r"\pi", "3.141592653589793238462643383279", False),
    ("400 digits", "1" + "0" * 400, "1" + "0" * 400 + ".0", True),
    ("400 digits, last one other", "1" + "0" * 400, "1" + "0" * 399 + "1", False),
    ("number word", "7", "seven", True),
    ("millions", "3000000", "3 million", True),
    ("base", "1011_2", "1011_{2}", True),
    ("base missing", "1011_2", "1011", False),
    ("truth value is not 1", "1", "True", None),
    # fractions, roots, powers
    ("pitfall 11: fraction and decimal", r"\frac{1}{2}", "0.5", True),
    ("pitfall 11: dfrac", r"\frac{3}{4}", r"\dfrac{3}{4}", True),
    ("pitfall 11: roots", r"\sqrt{12}", r"2\sqrt{3}", True),
    ("pitfall 11: assignment", "5", "x=5", True),
    ("unbraced fraction", "-1/2", r"-\frac12", True),
    ("half-braced fraction", "1/2", r"\frac1{2}", True),
    ("minus inside", r"-\frac{1}{2}", r"\frac{-1}{2}", True),
    ("mixed number", "3/2", r"1\frac{1}{2}", True),
    ("mixed number, negative", "-3/2", r"-1\frac{1}{2}", True),
    ("mixed number, plain", "7/3", "2 1/3", True),
    ("vulgar fraction", "3/2", "1½", True),
    ("rationalised root", r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt2}", True),
    ("root sign", r"\frac{\sqrt{5}}{5}", "√5/5", True),
    ("cube root of a negative", "-2", r"\sqrt[3]{-8}", True),
    ("superscript", "x^2+1", "x²+1", True),
    ("power tower, right to left", "2^{3^2}", "512", True),
    ("binomial", "10", r"\binom{5}{2}", True),
    ("factorial", "120", "5!", True),
    ("logarithm", "3", r"\log_2 8", True),
    ("floor", "2", r"\lfloor 2.7 \rfloor", True),
    ("division by zero", "0", "1/0", None),
    ("infinity", r"\infty", "infinity", True),
    ("signs of infinity", r"\infty", r"-\infty", False),
    # algebra
    ("S11: an identity, decided by values", "1", r"\sin(64x)^2+\cos(64x)^2", True),
    ("S11: double angle", r"\sin 2x", r"2\sin x\cos x", True),
    ("a small difference", "x", "x+10^{-12}", False),
    ("expanded", "(x+1)^2", "x^2+2x+1", True),
    ("same tail", "2n-1", "n-1", False),
    ("other letter", "x^2", "y^2", False),
    ("order of letters", "xy", "yx", True),
    ("absolute value", "|x|", "x", False),
    ("root of a square", r"\sqrt{x^2}", "x", False),
    ("cancelled", r"\frac{x^2-1}{x-1}", "x+1", True),
    ("complex", "3+4i", "4i+3", True),
    ("imaginary unit of other programs", "2i", "2*I", True),
    ("conjugate", "i", "-i", False),
    ("index", "a_1+a_2", "a_2+a_{1}", True),
    ("unknown function", "f(1,2)+6", "f(1,2)+5", False),
    ("e", "e^{2}", "7.389", False),
    # units, money, percent, times
    ("pitfall 10: text wrapper", "13", r"\text{13}", True),
    ("pitfall 10: currency", "20", r"\$20", True),
    ("pitfall 10: unit, gold has none", "10", "10 cm", True),
    ("units differ (math-verify: equal)", "12 cm", "12 m", False),
    ("unit spelled out", "12 cm", "12 centimeters", True),
    ("unit missing", r"12\text{ cm}", "12", True),
    ("square unit", r"15\text{ cm}^2", "15 square centimeters", True),
    ("square is not plain", r"15\text{ cm}^2", "15 cm", False),
    ("currencies differ", r"\$7", "£7", False),
    ("counted things", "30", r"30 \text{ minutes}", True),
    ("degrees, two spellings", r"60^\circ", "60 degrees", True),
    ("degrees dropped from the gold", r"60^\circ", "60", False),
    ("sine of degrees", r"\frac{1}{2}", r"\sin 30^\circ", True),
    ("pitfall 10: percent of a share", "0.5", r"50\%", True),
    ("pitfall 10: percent of a percent", "50", r"50\%", True),
    ("percent gold, sign left out", r"50\%", "50", True),
    ("percent gold is not a share (math-verify: equal)", r"50\%", "0.5", False),
    ("percent of a large gold", "50", r"5000\%", False),
    ("percent, word", r"25\%", "25 percent", True),
    ("times (math-verify reads 10)", "10", "10:30 PM", False),
    ("half of the day", "10:30 PM", "10:30 AM", False),
    ("24 hours", "10:30 PM", "22:30", False),
    ("p.m. with points", "3:05 PM", "3:05 p.m.", True),
    ("ratio", "4:3", "8:6", True),
    # order
    ("tuples are ordered", "(1,2)", "(2,1)", False),
    ("lists are not", "2,1", "1,2", True),
    ("three and a word", "1, 2, 3", "3, 1, and 2", True),
    ("sets are not", r"\{2,1\}", r"\{1,2\}", True),
    ("sets have no doubles", r"\{1,2\}", r"\{1,1,2\}", True),
    ("lists have", "1,2", "1,1,2", False),
    ("groups of three or thousands: the other side tells", "100, 200, 300", "100,200,300", True),
    ("set against bracket", "(a)", "{a}", False),
    ("pairs, second one", "(1,2),(3,4)", "(1,2),(5,6)", False),
    ("pair and triple", "(1,2,3)", "(1,23)", False),
    ("plus or minus", "3,-3", r"\pm 3", True),
    ("plus or minus, assigned", "x = 5 or x = -5", r"x = \pm 5", True),
    ("open and closed", "(a,b)", "[a,b]", False),
    ("half open", "(2,5]", "(2,5)", False),
    ("interval as inequality (math-verify: unequal)", r"x \in [0,1]", "0<=x<=1", True),
    ("half-line", r"(5,\infty)", "x>5", True),
    ("turned inequality", "x>5", "5<x", True),
    ("strict and not", "x>5", r"x \ge 5", False),
    ("union", r"(-\infty,1)\cup(3,\infty)", "x<1 or x>3", True),
    ("plus or minus inside a set", r"\{1\pm\sqrt{5},-2\}", r"-2, 1+\sqrt{5}, 1-\sqrt{5}", True),
    ("plus or minus is two values", r"1 \pm \sqrt{19}", r"1 + \sqrt{19}", False),
    ("named values", "(3,4)", "x=3, y=4", True),
    ("named values, other order", "(3,4)", "x=4, y=3", False),
    ("the reals", r"(-\infty,\infty)", r"\mathbb{R}", True),
    ("matrix style", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}", True),
    ("matrix entry", r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{pmatrix}1&3\end{pmatrix}", False),
    # equations and words
    ("equation, turned", "x+y=3", "y+x=3", True),
    ("equation, moved", "y=2x+1", "y-2x=1", True),
    ("equation, other", "y=2x+1", "y=2x+2", False),
    ("function value", "y=2x+1", "2x+1", True),
    ("result of a sum", "3", "2+1=3", True),
    ("other unknown", "x=5", "y=5", False),
    ("choice (math-verify: unequal)", "C", r"\text{(C)}", True),
    ("words, case", "monday", r"\text{Monday}", True),
    ("words, other", "odd", "even", False),
    ("word inside a word", "no", "unknown", False),
    ("phrase", r"2\pi", "two times pi", None),
    # what only the guarded parser knows
    ("sum", "10", r"\sum_{k=1}^{4} k", True),
    ("integral", r"\frac{1}{2}", r"\int_0^1 x\,dx", True),
    # bounds
    ("pitfall 13: power tower", "3", "9**9**9", False),
    ("pitfall 13: power tower in LaTeX", "3", "5^{5^{5^5}}", False),
    ("S10: large factorial", "3", "10000000!", False),
    ("S10: factorial of a power", "3", "(10^9)!", False),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer", "equal"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_pair(gold: str, answer: str, equal: bool | None) -> None:
    assert compare(gold, answer).equal is equal
    assert compare(gold, gold).equal is True


def test_published_differences_of_the_tasks() -> None:
    assert compare("3", "3.0000001", LIVE).equal is True
    assert compare("3", "3.0000001").equal is False
    assert compare("3", "3.00001", LIVE).equal is False
    assert compare(r"60^\circ", "60", LIVE).equal is True
    assert compare(r"60^\circ", "60 cm", LIVE).equal is False


# --- reading the answer -----------------------------------------------------------------------------

ANSWERS = [
    ("pitfall 2: comma behind a number", "The total is 72 clips, altogether.", "72"),
    ("pitfall 3: the last label", "Answer: 5 looks wrong.\nAnswer: 7", "7"),
    ("pitfall 6: bold", "Answer: **12**", "12"),
    ("pitfall 9: bold label", "Final: **73**", "73"),
    ("pitfall 9: the last box", r"\boxed{1} no, \boxed{2}", "2"),
    ("nested braces", r"so \boxed{\frac{1}{2}} holds", r"\frac{1}{2}"),
    ("box in a box", r"\boxed{\boxed{4}}", "4"),
    ("a box that never closes", r"Answer: 4 \boxed{5", r"4 \boxed{5"),
    ("label, then box", r"**Final Answer:** The final answer is $\boxed{24}$. I hope it is correct.", "24"),
    ("box, then label", "\\boxed{3}\nOn checking again.\nAnswer: 4", "4"),
    ("label on its own line", "Answer:\n\n35", "35"),
    ("heading", "## Final Answer\n\n**42**", "42"),
    ("another language", "Antwort: 17", "17"),
    ("JSON", '{"reasoning": "we add", "answer": "12"}', "12"),
    ("JSON, bare number in a fence", '```json\n{"reasoning": "x", "answer": -82\n}\n```', "-82"),
    ("JSON, doubled backslash", r'{"answer": "\\frac{1}{2}"}', r"\frac{1}{2}"),
    ("JSON, single backslash", r'{"answer": "\frac{1}{2}"}', r"\frac{1}{2}"),
    ("conclusion", "Step 1: add.\nTherefore, 18", "18"),
    ("conclusion with a subject", "Thus, the area is 18", "18"),
    ("conclusion with a formula", r"The final answer is $19$", "19"),
    ("the only number", "We sum up.\nIt comes to 33 in the end", "33"),
    ("a remark at the end", "The value is 31\nI hope that helps, ask 2 more", "31"),
    ("step lines only", "Step 1: add\nStep 2: get 9", "9"),
    ("display mathematics", "Answer:\n$$\nx+1\n$$", "x+1"),
    ("prose that breaks off", "word " * 400, None),
    ("nothing", " \n ", None),
]


@pytest.mark.parametrize(("text", "answer"), [a[1:] for a in ANSWERS], ids=[a[0] for a in ANSWERS])
def test_final_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


WRAPPINGS = {
    "plain": "{a}",
    "label": "Answer: {a}",
    "label with reasoning": "Step 1: Let us add 3 and 4.\nStep 2: Simplify.\nAnswer: {a}",
    "bold label": "**Answer:** {a}",
    "bold all": "**Answer: {a}**",
    "bold value": "Answer: **{a}**",
    "boxed": r"\boxed{{{a}}}",
    "boxed in prose": r"Hence the result is $\boxed{{{a}}}$.",
    "boxed after a label": r"Final Answer: \boxed{{{a}}}.",
    "dollars": "Answer: ${a}$",
    "display": r"Answer: \[{a}\]",
    "parenthesised mathematics": r"Answer: \({a}\)",
    "full stop": "Answer: {a}.",
    "fenced": "Answer:\n```\n{a}\n```",
    "JSON": '{{"reasoning": "r", "answer": "{a}"}}',
    "echoed format": "Give it as 'Answer: X'.\nAnswer: {a}",
    "two answers": "Answer: 987\nWait.\nAnswer: {a}",
    "thought": "<think>Answer: 987</think>Answer: {a}",
    "thought without its opening": "Answer: 987</think>\nAnswer: {a}",
    "harmony": "<|channel|>analysis<|message|>987<|end|><|channel|>final<|message|>Answer: {a}<|return|>",
    "harmony without its tokens": "analysisso 987assistantfinalAnswer: {a}",
    "remark": "Answer: {a}\n\nI hope this helps!",
    "the answer is": "The answer is ${a}$",
}
VALUES = [
    ("12", "13"),
    ("1234", "1235"),
    ("3/4", "4/3"),
    ("x+1", "x-1"),
    ("(1,2)", "(2,1)"),
    (r"\frac{1}{2}", r"\frac{1}{3}"),
]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize(("gold", "wrong"), VALUES)
def test_wrapping_does_not_change_the_verdict(wrapping: str, gold: str, wrong: str) -> None:
    for answer, verdict in ((gold, True), (wrong, False)):
        text = WRAPPINGS[wrapping].format(a=answer)
        for score, task in ((score_math, "math.subset"), (score_livemathbench, "livemathbench.full")):
            result = score(make_row(task, {"outputs": text, "gold": gold}))
            assert result["correct"] is verdict, (text, result)


NO_ANSWER = {
    "pitfall 17: a thought that never ends": ("<think>Answer: 12", False, "truncated"),
    "empty": ("", False, "empty"),
    "null": (None, False, "empty"),
    "an unfinished harmony thought": ("<|channel|>analysis<|message|>Answer: 12", False, "truncated"),
}


@pytest.mark.parametrize("kind", NO_ANSWER)
def test_no_answer_is_wrong_and_never_judged(kind: str) -> None:
    text, correct, reason = NO_ANSWER[kind]
    for score, task in (
        (score_math, "math.subset"),
        (score_livemathbench, "livemathbench.full"),
        (score_supergpqa, "supergpqa.subset"),
    ):
        result = score(make_row(task, {"outputs": text, "gold": "A"}))
        assert (result["correct"], result["reason"]) == (correct, reason)
        assert "pending" not in result


@pytest.mark.parametrize("gold", [None, "", [], {"text": []}, [None]])
def test_no_gold_is_unscored(gold: object) -> None:
    for score, task in (
        (score_math, "math.subset"),
        (score_livemathbench, "livemathbench.full"),
        (score_supergpqa, "supergpqa.subset"),
    ):
        result = score(make_row(task, {"outputs": "Answer: 5", "gold": gold}))
        assert (result["correct"], result["reason"]) == (None, "no_gold")


# --- letters ----------------------------------------------------------------------------------------

CHOICES = "A: a metal\nB: steam\nC: lead\nD: tin"
LETTERS = [
    ("pitfall 4: after a word", "The answer is indeed C", "C"),
    ("pitfall 4: with a remark", "Answer: B, a safe choice", "B"),
    ("pitfall 4: the last letter of a sentence", "Answer seems to be A.\nAnswer: A", "A"),
    ("pitfall 6: stray comma", "ANSWER: A,", "A"),
    ("Q2: letters of words", "The answer is clearly B", "B"),
    ("Q2: article", "The answer is a metal, namely D", "D"),
    ("the pronoun", "Answer: I think C", "C"),
    ("brackets", "Answer: (C)", "C"),
    ("with the option's text", "Answer: C) lead", "C"),
    ("the option's text alone", "Answer: steam", "B"),
    ("box", r"so \boxed{\text{D}}", "D"),
    ("box with text", r"\boxed{C. lead}", "C"),
    ("other language", "Antwort: D", "D"),
    ("Chinese", "答案：B", "B"),
    ("dash", "Answer - C", "C"),
    ("JSON", '{"reasoning": "r", "answer": "B"}', "B"),
    ("last of several", "Answer: A\nWait.\nAnswer: B", "B"),
    ("undecided", "The answer is B or C", None),
    ("no letter", "I cannot decide between lead and tin", None),
    ("a sentence that begins with A", "A metal is heavy", None),
    ("said of an option", "Weighing all, option C is correct.", "C"),
]


@pytest.mark.parametrize(("text", "letter"), [x[1:] for x in LETTERS], ids=[x[0] for x in LETTERS])
def test_letter(text: str, letter: str | None) -> None:
    result = score_supergpqa(make_row("supergpqa.subset", {"outputs": text, "gold": "A", "choices": CHOICES}))
    assert result["extracted"] == letter


@pytest.mark.parametrize(
    ("gold", "choices", "correct"),
    [
        ("c", CHOICES, True), (" C ", None, True), (2, ["x", "y", "z"], True), ("2", ["x", "y", "z"], True),
        (2.0, None, True), ("lead", CHOICES, True), ("C) lead", CHOICES, True), ("B", {"A": "x", "C": "z"}, False),
        ("C", '["x", "y", "z"]', True), ("C", {"label": ["A"], "text": ["x", "y", "z"]}, True),
    ],
)  # fmt: skip
def test_gold_letter(gold: object, choices: object, correct: bool) -> None:
    row = make_row("supergpqa.subset", {"outputs": "Answer: C", "gold": gold, "choices": choices})
    assert score_supergpqa(row)["correct"] is correct


# --- steps ------------------------------------------------------------------------------------------

STEPS = [
    ("heads", "Step 1: add\nStep 2: get 9\nAnswer: 9", ["add", "get 9"]),
    ("bold heads", "**Step 1:** Let x be 2.\n**Step 2:** Done.", ["Let x be 2.", "Done."]),
    ("headings", "## Step 1: Understand\nRead it.\n## Step 2: Solve\n", ["Understand Read it.", "Solve"]),
    (
        "sentences",
        "We add four and five. It is nine, then.\nAnswer: 9",
        ["We add four and five.", "It is nine, then."],
    ),
    (
        "R14: numbers with a bracket",
        "1) Take seven\n2) Multiply by two\nAnswer: 14",
        ["Take seven", "Multiply by two"],
    ),
    (
        "numbers with a point",
        "1. Take seven apples.\n2. Multiply by two.",
        ["Take seven apples.", "Multiply by two."],
    ),
    ("R15: a bare box", r"\boxed{37}", []),
    ("a bare answer", "Answer: 36", []),
    ("a bare letter", "C", []),
    ("the closing words", "Step 1: add 2. The final answer is 3.", ["add 2."]),
]


@pytest.mark.parametrize(("text", "found"), [s[1:] for s in STEPS], ids=[s[0] for s in STEPS])
def test_steps(text: str, found: list[str]) -> None:
    assert [s.rstrip("* ") for s in steps(text)] == found


VALID = [
    ("R12: so inside also", "Also birds fly high", False),
    ("R12: sin inside business", "Business class travels", False),
    ("R12: log inside catalogue", "Read the catalogue", False),
    ("R13: a short equation", "1+2=3", True),
    ("a word of mathematics", "We calculate the sum", True),
    ("a form of it", "Simplifying both of them", True),
    ("a phrase", "By the chain rule", True),
    ("a formula", r"Take $x$ out", True),
    ("R18: false arithmetic", "We add and get 2 + 2 = 5", False),
    ("rounded", "We divide: 10/3 = 3.33", True),
    ("rounded too far", "We divide: 10/3 = 3.5", False),
    ("part of a larger equation", "We get 3x + 2 = 8 here", True),
    ("a chain", "We get 2 + 2 = 4 = 2^2", True),
    ("an exponent", "So 2 + 3 = 5^1 here", True),
    ("a unit", "Then 2 * 3 = 6 cm", True),
    ("nothing", "Nice weather outdoors", False),
]


@pytest.mark.parametrize(("step", "valid"), [v[1:] for v in VALID], ids=[v[0] for v in VALID])
def test_valid_mathematics(step: str, valid: bool) -> None:
    assert valid_mathematics(step) is valid


OPTION_STEPS = [
    ("Q7: so inside person", "The person sleeps", False),
    ("Q7: a range inside a word", "Modern a-i techno", False),
    ("a range", "Compare A-C first", True),
    ("a pair", "Between A and C we choose", True),
    ("an article is no option", "They answer a question", False),
    ("an option", "Look at option b again", True),
    ("elimination", "We rule out the second", True),
    ("a ground", "It is heavy because of lead", True),
    ("too short", "so", False),
]


@pytest.mark.parametrize(("step", "valid"), [v[1:] for v in OPTION_STEPS], ids=[v[0] for v in OPTION_STEPS])
def test_valid_options(step: str, valid: bool) -> None:
    assert valid_options(step) is valid


# --- nothing is evaluated, nothing hangs ------------------------------------------------------------

HOSTILE = [
    "open('f','w').write('x')", "__import__('os').system('touch f')", "().__class__.__bases__", "exec(1)", "lambda: 0",
    "x.subs(x, 1)", "S('1')", "Symbol('x')", "[i for i in (1,2)]", "f\"{1}\"", "1 if 1 else 0", "integrate(x, x)",
    r"\sum_{k=1}^{open('f','w')} k", r"\sum_{__import__} 1", r"\input{/etc/passwd}", r"\lim sys.exit",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_never_evaluated(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sent: list[object] = []
    monkeypatch.setattr(symbolic._guard, "ask", lambda question, limit: sent.append(question) or "unparsed")
    result = score_math(make_row("math.subset", {"outputs": f"Answer: {text}", "gold": "1"}))
    assert result["correct"] is False
    assert not sent, "only whitelisted text may reach the symbolic parser"
    assert not list(tmp_path.iterdir())


N = 100_000
DEGENERATE = {
    **{repr(c): c * N for c in "[{(0123 ;!\n$\\^_-+.,:=|*#`\"'&%<>~"},
    "boxes": r"\boxed{" * (N // 7),
    "closed boxes": r"\boxed{1}" * (N // 9),
    "labels": "Answer: " * (N // 8),
    "label lines": "Answer:\n" * (N // 8),
    "fields": '"answer": ' * (N // 10),
    "open string": '"answer": "' + "a" * N,
    "escapes": '"answer": "' + '\\"' * N,
    "fractions": r"\frac{1}{" * (N // 9),
    "steps": "Step 1: " * (N // 8),
    "step heads": "Step 1:" + " x " * (N // 3),
    "list items": "\n1) a" * (N // 5),
    "sentences": "So a. " * (N // 6),
    "sums": "1+1=" * (N // 4),
    "digits in decimals": "0." + "3" * N,
    "words without end": "word " * (N // 5),
    "letters": "a" * N,
    "capitals": "A, " * (N // 3),
    "options": "option a and b " * (N // 15),
    "cues": "the answer is " * (N // 14),
    "reasoning": "Reasoning:" * (N // 10),
    "think": "<think>" * (N // 7),
    "thousands": "1,000," * (N // 6),
    "dollars": "$x$ " * (N // 4),
    "display": r"\[x" * (N // 3),
    "text": r"\text{" * (N // 6),
    "matrix": r"\begin{pmatrix}" * (N // 15),
    "roots": r"\sqrt[" * (N // 6),
    "pipes": "|x" * (N // 2),
    "roman": "I " * (N // 2),
}


def test_degenerate_inputs_return() -> None:
    """Each of 70 texts of 100,000 characters, as answer and as gold, within one generous limit of a process."""
    code = (
        "import sys; sys.path[:0] = ['tests', '.']\n"
        "from test_mathematics import DEGENERATE\n"
        "from evaluation.rows import make_row\n"
        "from evaluation.scorers.mathematics import score_livemathbench as live\n"
        "from evaluation.scorers.reasoning import score_math as math, score_supergpqa as letters\n"
        "for text in DEGENERATE.values():\n"
        "    for wrapped in (text, 'Answer: ' + text):\n"
        "        for task, score in (('math.subset', math), ('supergpqa.subset', letters), ('livemathbench.full', live)):\n"
        "            score(make_row(task, {'outputs': wrapped, 'gold': '7'}))\n"
        "    for task, score in (('math.subset', math), ('supergpqa.subset', letters), ('livemathbench.full', live)):\n"
        "        score(make_row(task, {'outputs': 'Answer: 7', 'gold': text, 'choices': text}))\n"
        "print('done')\n"
    )
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "done", done.stderr[-2000:]


@pytest.mark.parametrize(
    "text", ["(" * 2000, "-" * 1000 + "1", "2^" * 700 + "2", "|" * 1000, "sin " * 300 + "x", "{" * 1400]
)
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(Unreadable):
        read_value(text)


def test_a_long_sum_is_still_read() -> None:
    assert compare("1000", "+".join(["2"] * 500)).equal is True


# --- the guard --------------------------------------------------------------------------------------

SLEEPER = "import sys, time\nprint('ready', flush=True)\nfor line in sys.stdin:\n    {body}\n"


def guard_with(tmp_path: Path, body: str) -> symbolic.Guard:
    child = tmp_path / "child.py"
    child.write_text(SLEEPER.format(body=body), encoding="utf-8")
    return symbolic.Guard(child)


def test_pitfall_13_a_hanging_child_is_killed_and_replaced(tmp_path: Path) -> None:
    guard = guard_with(tmp_path, "time.sleep(60) if 'hang' in line else print('equal', flush=True)")
    assert guard.ask({"q": "ok"}, 30) == "equal"
    first = guard.process
    assert guard.ask({"q": "hang"}, 0.3) == "timeout"
    assert first.poll() is not None, "killed"
    assert guard.ask({"q": "ok"}, 30) == "equal"
    assert guard.starts == 2
    guard.close()


def test_pitfall_15_a_child_that_swallows_everything_is_killed(tmp_path: Path) -> None:
    body = "exec('while True:\\n try:\\n  x = 1\\n except BaseException: pass')"
    guard = guard_with(tmp_path, body)
    assert guard.ask({"q": "loop"}, 0.3) == "timeout"
    guard.close()


def test_a_child_that_dies_is_replaced(tmp_path: Path) -> None:
    guard = guard_with(tmp_path, "sys.exit(3) if 'die' in line else print('equal', flush=True)")
    assert guard.ask({"q": "die"}, 30) == "timeout"
    assert guard.ask({"q": "ok"}, 30) == "equal"
    guard.close()


def test_pitfall_14_threads_share_one_child() -> None:
    guard = symbolic.Guard()
    questions = [{"gold": rf"\frac{{{n}}}{{2}}", "answer": rf"\frac{{{2 * n}}}{{4}}"} for n in range(1, 9)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda q: guard.ask(q, 60), questions)) == ["equal"] * 8
    assert guard.starts == 1
    guard.close()


def test_compare_in_threads() -> None:
    pairs = [(rf"\sin^2 x + \cos^2 x + {n}", str(n + 1)) for n in range(40)]
    results: list[bool | None] = [None] * len(pairs)

    def work(k: int) -> None:
        results[k] = compare(*pairs[k]).equal

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(pairs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results)


def test_the_child_is_bounded_in_memory(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the memory limit of a process is Linux's")
    child = tmp_path / "child.py"
    source = symbolic.CHILD.read_text(encoding="utf-8")
    marker = "    alarm(ALARM_S)\n    logging"
    assert marker in source
    child.write_text(source.replace(marker, "    bytearray(3 << 30)\n" + marker, 1), encoding="utf-8")
    with pytest.raises(symbolic.ParserMissing):
        symbolic.Guard(child).ask({"gold": "1", "answer": "1"}, 60)


def test_the_child_sees_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    guard = guard_with(
        tmp_path, "import os; print('seen' if 'OPENAI_API_KEY' in os.environ else 'clean', flush=True)"
    )
    assert guard.ask({"q": "ok"}, 30) == "clean"
    guard.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_worker_has_a_child_of_its_own() -> None:
    code = (
        "import os\n"
        "from evaluation.scorers import symbolic\n"
        "assert symbolic.ask('1', '1') == 'equal'\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    os._exit(0 if symbolic.ask('2', '2') == 'equal' and symbolic._guard.starts == 1 else 9)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "assert symbolic.ask('3', '3') == 'equal' and symbolic._guard.starts == 1\n"
        "print('done')\n"
    )
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "done", done.stderr


def test_timeout_is_unequal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic._guard, "ask", lambda question, limit: "timeout")
    verdict = compare("10", r"\sum_{k=1}^{77} k^k")
    assert (verdict.equal, verdict.reason) == (False, "timeout")


def test_check_parser_passes_here() -> None:
    symbolic.check_parser()


def test_a_missing_parser_fails_at_start_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "find_spec", lambda name: None if name == "antlr4" else object())
    with pytest.raises(symbolic.ParserMissing, match=r"package antlr4 is missing.*pip install") as error:
        symbolic.check_parser()
    assert "\n" not in str(error.value)


def test_a_parser_that_cannot_start_is_no_verdict(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text("print('ImportError: no antlr')", encoding="utf-8")
    with pytest.raises(symbolic.ParserMissing, match="ImportError: no antlr"):
        symbolic.Guard(child).ask({"gold": "1", "answer": "1"}, 30)


def test_most_pairs_never_reach_the_parser() -> None:
    asked = [p for p in PAIRS if compare(p[1], p[2]).symbolic]
    assert {p[0] for p in asked} == {"sum", "integral"}


def test_reading_is_exact() -> None:
    assert read_value(r"1\frac12") == ("num", Fraction(3, 2))
    assert false_arithmetic("3 + 4 = 8") and not false_arithmetic("3 + 4 = 7")
