"""Needles: golden rows and one line for every fault."""

from __future__ import annotations

from typing import Any

import pytest
from support import golden_rows

from evaluation.rows import make_row
from evaluation.scoring import score_by_rules

FOLDER = "context_scope_safety_citation"
FOUR = golden_rows(f"{FOLDER}/ruler.4k.jsonl")
THIRTY_TWO = golden_rows(f"{FOLDER}/ruler.32k.jsonl")
COLUMNS_4K = {
    "compliance_rate": "compliance",
    "n_extracted_avg": "n_extracted",
    "gold_extracted_rate": "gold_extracted",
    "gold_in_extracted_rate": "gold_in_extracted",
    "hallucination_rate": "hallucination",
}
# golden category -> exact, partial
CATEGORIES = {
    "exact_match": (True, True),
    "embedded_correct": (True, True),
    "partial_match": (False, True),
    "wrong_number": (False, False),
    "multiple_numbers": (False, False),
    "no_number_found": (False, False),
    None: (None, None),
}


def score(task: str, **columns: Any) -> dict[str, Any]:
    return score_by_rules(make_row(task, columns))


@pytest.mark.parametrize("row", FOUR, ids=[row["id"] for row in FOUR])
def test_golden_4k(row: dict[str, Any]) -> None:
    got = score("ruler.4k", **row["input"])
    right = row.get("right", {})
    # a row without gold or answer was counted nowhere, so its stored zeros are no verdicts
    stored = {} if row["kind"] in ("gold_missing", "empty_output", "none_output") else row["reference"]
    for field, column in COLUMNS_4K.items():
        if field in right or field in stored:
            assert got[column] == right.get(field, stored.get(field)), field


@pytest.mark.parametrize("row", THIRTY_TWO, ids=[row["id"] for row in THIRTY_TWO])
def test_golden_32k(row: dict[str, Any]) -> None:
    got = score("ruler.32k", **row["input"])
    right = row.get("right", {})
    category = right.get("category", row["reference"]["category"])
    assert (got["exact"], got["partial"]) == CATEGORIES[category]
    if category in ("partial_match", "wrong_number", "multiple_numbers", "no_number_found"):
        assert got["reason"] == category
    if "needle_recall" in right:
        assert got["needle_recall"] == right["needle_recall"]
    if "clean_extraction_rate" in right:
        assert got["clean"] == bool(right["clean_extraction_rate"])


def test_golden_32k_means() -> None:
    rows = [score("ruler.32k", **row["input"]) for row in THIRTY_TWO]
    counted = [row for row in rows if row["exact"] is not None]
    assert len(counted) == 46
    assert sum(row["exact"] for row in counted) / 46 == pytest.approx(0.5434782608695652)
    assert sum(row["partial"] for row in counted) / 46 == pytest.approx(0.6521739130434783)


CASES_32K = {
    # name: (answer, gold, exact, partial)
    "dots_as_separators": ("5.508.214", "5508214", True, True),
    "dashes_as_separators": ("482-01-93", "4820193", True, True),
    "every_digit_apart": ("4 8 2 0 1 9 3", "4820193", True, True),
    "other_digits": ("٤٨٢٠١٩٣", "4820193", True, True),
    "gold_with_separators": ("4820193", "4,820,193", True, True),
    "gold_lost_its_zeros": ("0048213", 48213, True, True),
    "gold_as_float": ("9031772", 9031772.0, True, True),
    "five_digits": ("71432.", "71432", True, True),
    "five_digits_one_missing": ("8073 is the", "80723", False, True),
    "five_digits_one_wrong": ("78934.", "78935", False, True),
    "two_swapped": ("84793", "87493", False, False),
    "digit_too_many_inside": ("66220184", "6620184", False, True),
    "digit_too_many_at_the_end": ("66201840", "6620184", False, False),
    "short_gold_has_no_near_miss": ("908", "907", False, False),
    "correction_to_a_wrong_one": ("It is 9031772. Sorry, I meant 1111111.", "9031772", False, False),
    "correction_without_number": ("It is 9031772. Sorry for the wait.", "9031772", True, True),
    "negative_gold": ("It is -4820193.", "-4820193", True, True),
    "dash_before_is_a_sign_only_alone": ("code-4820193", "4820193", True, True),
    "uuid": ("id 3f2a-77b1-c0", "3f2a-77b1-c0", True, True),
    "word_inside_a_word": ("The coppersmith.", "copper", False, False),
    "two_needles_of_three": ("1111111, 2222222", ["1111111", "2222222", "3333333"], False, True),
    "echoed_question_does_not_hide_it": ("71432.\nWhat is the pass key?", "71432", True, True),
    "unfinished_thought": ("<think>it is 4820193", "4820193", False, False),
}


@pytest.mark.parametrize(("answer", "gold", "exact", "partial"), CASES_32K.values(), ids=CASES_32K)
def test_cases_32k(answer: str, gold: Any, exact: bool, partial: bool) -> None:
    got = score("ruler.32k", outputs=answer, gold=gold)
    assert (got["exact"], got["partial"]) == (exact, partial)


@pytest.mark.parametrize("gold", [None, "", [], [None], {"a": 1, "b": 2}, {}])
def test_no_gold_is_unscored(gold: Any) -> None:
    got = score("ruler.32k", outputs="4820193", gold=gold)
    assert (got["exact"], got["partial"], got["reason"]) == (None, None, "no_gold")


PROMPT = "Locker one holds 4820193. Locker two holds 7719405. Which number?"
CASES_4K = {
    # name: (answer, column, value)
    "refusal_without_number": ("I couldn't say which locker is meant.", "compliance", False),
    "not_knowing": ("I do not know which one.", "compliance", False),
    "mighty_is_no_hedge": ("The mighty locker holds copper.", "compliance", True),
    "echoed_question_is_not_asked": ("Copper. Which number? Copper. Which number?", "compliance", True),
    "asks_with_wide_mark": ("哪一个？", "compliance", False),
    "other_needle_with_separators": ("7,719,405", "n_extracted", 1),
    "number_of_the_prompt_in_groups": ("771 9405 it is", "hallucination", 0.0),
    "piece_of_a_number": ("1771940", "hallucination", 1.0),
}


@pytest.mark.parametrize(("answer", "column", "value"), CASES_4K.values(), ids=CASES_4K)
def test_cases_4k(answer: str, column: str, value: Any) -> None:
    assert score("ruler.4k", outputs=answer, gold="4820193", prompt=PROMPT)[column] == value


def test_context_column_counts_as_prompt() -> None:
    got = score("ruler.4k", outputs="7719405", gold="4820193", prompt="Which number?", ctx=PROMPT)
    assert got["hallucination"] == 0.0


def test_prompt_without_the_haystack_cannot_show_an_invention() -> None:
    got = score("ruler.4k", outputs="7719405", gold="4820193", prompt="Which number?")
    assert got["hallucination"] is None


@pytest.mark.parametrize("task", ["ruler.4k", "ruler.32k"])
@pytest.mark.parametrize(
    "unit", ["[", "{", "(", "7", " ", ";", "!", "\n", "1,", "123,", "12 ", "1234567 ", "sorry 1 ", "-1"]
)
def test_degenerate_text_is_linear(task: str, unit: str) -> None:
    text = "x" + unit * (100_000 // len(unit)) + "y"
    got = score(task, outputs=text, gold=["4820193", "anchor"], prompt=text)
    assert got["reason"] != "no_gold"
