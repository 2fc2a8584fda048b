"""Reading a judge's reply: the golden rows of two areas, and one line per further fault."""

from __future__ import annotations

import pytest
from support import golden_rows

from evaluation.judge.verdicts import READERS, declines, read_claims, read_equivalence

EXTRACTION = golden_rows("instructions_style_tools_turns_judge_comparison/judge_extraction.jsonl")
PARSE = golden_rows("knowledge_reasoning_format/judge_parse.jsonl")
# ERRATA: a guess from words or stray numbers; the kinds hold for each of the three scores
NO_GUESS = {"ex-010", "ex-026", "ex-050", "ex-065"}
NO_GUESS_KINDS = ("_words", "_no_label_number")


def _expected(row: dict) -> object:
    if row["id"] in NO_GUESS or row.get("kind", "").endswith(NO_GUESS_KINDS):
        return None
    value = row["right"]["value"] if "right" in row else row["reference"]
    value = value["value"] if isinstance(value, dict) else value
    return {"True": True, "False": False}.get(value, value)


@pytest.mark.parametrize("row", EXTRACTION, ids=lambda row: row["id"])
def test_golden_extraction(row):
    assert READERS[row["mode"]](row["reply"]) == _expected(row)


@pytest.mark.parametrize("row", PARSE, ids=lambda row: row["id"])
def test_golden_parse(row):
    assert READERS[row["inputs"]["mode"]](row["inputs"]["reply"]) == _expected(row)


FAULTS = [
    ("example after all is not a verdict", "judgment", "JUDGMENT: True or False", None),
    ("a negated value", "judgment", "JUDGMENT: Not True", None),
    ("a longer word", "judgment", "JUDGMENT: Trueish", None),
    ("a bad last label hides the earlier one", "judgment", "JUDGMENT: True\nJUDGMENT: unclear", None),
    ("json field", "judgment", '```json\n{"why": "uses ```x```", "judgment": true}\n```', True),
    ("json score beside another number", "coherence", '{"COHERENCE_SCORE": 0.2, "steps": 1}', 0.2),
    ("double brackets", "coherence", "COHERENCE_SCORE: [[0.85]]", 0.85),
    ("'is' between", "coherence", "The coherence score is 0.7.", 0.7),
    ("of one", "coverage", "Final score: 0.25 of 1", 0.25),
    ("thousands", "coherence", "COHERENCE_SCORE: 1,000", None),
    ("two and a half", "rating", "Rating: 7.9", 7.9),
    ("five point scale", "rating", "Rating: 4/5", None),
    ("superscript", "rating", "fine\n²", None),
    ("own label before the plain one", "coherence", "COHERENCE_SCORE: 0.8\nStyle score: 0.1", 0.8),
    ("another word that ends like the label", "judgment", "misjudgment: True", None),
    ("not good at all", "coverage", "not good at all", None),
]


@pytest.mark.parametrize(("mode", "reply", "value"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_faults(mode, reply, value):
    assert READERS[mode](reply) == value


CLAIMS = [
    ("all", "JUDGMENT 1: True\nJUDGMENT 2: False", 2, [True, False]),
    ("one missing", "JUDGMENT 1: True", 2, [True, None]),
    (
        "markdown and json",
        '{"judgment_1": true, "judgment_2": "false"}\n**JUDGMENT 3:** True',
        3,
        [True, False, True],
    ),
    ("the last of two", "JUDGMENT 1: True\nJUDGMENT 1: False", 1, [False]),
    ("no number needed for one", "JUDGMENT: True", 1, [True]),
    ("without number is for nobody", "JUDGMENT: True", 2, None),
    ("a number too many", "JUDGMENT 3: True", 2, None),
    ("ten is not one", "JUDGMENT 10: True", 1, None),
    ("nothing", "", 3, None),
]


@pytest.mark.parametrize(("reply", "count", "value"), [c[1:] for c in CLAIMS], ids=[c[0] for c in CLAIMS])
def test_claims(reply, count, value):
    assert read_claims(reply, count) == value


def test_equivalence_takes_the_published_cut():
    cases = {
        "COVERAGE SCORE: 85%": True,
        "COVERAGE SCORE: 0.5": False,
        "JUDGMENT: False": False,
        "fine": None,
    }
    assert {reply: read_equivalence(reply) for reply in cases} == cases


def test_a_judge_that_declines():
    assert declines("I'm sorry, but I can't assist with this content.")
    assert declines("I cannot review this conversation.")
    assert not declines("The model is sorry. CLASSIFICATION: WEAK_REFUSAL")


@pytest.mark.parametrize(
    "unit", ["[", "{", "(", "1", " ", ";", "!", "\n", "*", "_", "score:", "judgment 1", ": ", "I rate "]
)
def test_long_replies_return(unit):
    reply = unit * (100_000 // len(unit))
    for reader in READERS.values():
        reader(reply)
    read_claims(reply, 5)
    read_claims("JUDGMENT " + reply, 5)
