"""Citations: golden rows, what counts as a citation, and which title it means."""

from __future__ import annotations

from typing import Any

import pytest
from support import golden_rows

from evaluation.rows import make_row
from evaluation.scorers.citations import read_citations
from evaluation.scoring import score_by_rules

FOLDER = "context_scope_safety_citation"
ROWS = [
    pytest.param(task, row, id=row["id"])
    for task in ("hotpotqa.citation", "qasper.citation")
    for row in golden_rows(f"{FOLDER}/{task}.jsonl")
]
COLUMNS = {
    "accuracy": "complete",
    "format_accuracy": "format_correct",
    "answer_accuracy": "answer_correct",
    "source_accuracy": "source_recall",
    "source_precision": "source_precision",
    "citation_usage_rate": "uses_citation",
    "error_type": "reason",
}
# where we do not give what the row wants, and why
DEVIATIONS = {
    "qasper.citation/003": "a free rewording: only a reader of meaning can call it right, whole words cannot",
}


def score(outputs: Any, gold: Any, task: str = "hotpotqa.citation") -> dict[str, Any]:
    return score_by_rules(make_row(task, {"outputs": outputs, "gold": gold}))


@pytest.mark.parametrize(("task", "row"), ROWS)
def test_golden(task: str, row: dict[str, Any]) -> None:
    got = score(row["input"]["outputs"], row["input"]["gold"], task)
    right = row.get("right", {})
    if row["id"] in DEVIATIONS:
        assert got["answer_correct"] is False
        return
    expected = right if right else {f: row["reference"][f] for f in COLUMNS if f in row["reference"]}
    for field, column in COLUMNS.items():
        if field not in expected:
            continue
        value = None if expected[field] == "correct" else expected[field]
        if field == "error_type" and value is None and got["source_recall"] != 1.0:
            # the label "correct" of a row without all its sources is the fault that other rows correct
            assert got["reason"] in ("no_gold", "missing_sources", None)
            continue
        assert got[column] == value, field
    if "citations" in right:
        read = read_citations(make_row(task, row["input"]).answer, known_of(row["input"]["gold"]))
        assert list(read.citations) == right["citations"]


def known_of(gold: Any) -> frozenset[str]:
    from evaluation.scorers.citations import read_gold

    read = read_gold(gold)
    return read.known if read else frozenset()


KNOWN = frozenset({"pellam tower", "otto salk", "salt road", "paris, orla", "avon bridge", "results"})
FORMS = {
    # name: (answer, citations)
    "brackets": ("Lund [Pellam Tower] [Otto Salk].", ["Pellam Tower", "Otto Salk"]),
    "comma_list": ("Lund [Pellam Tower, Otto Salk]", ["Pellam Tower", "Otto Salk"]),
    "two_lists": (
        "Lund [Salt Road, Otto Salk] x [Pellam Tower; Results]",
        ["Salt Road", "Otto Salk", "Pellam Tower", "Results"],
    ),
    "comma_in_a_title": ("Lund [Paris, Orla, Otto Salk]", ["Paris, Orla", "Otto Salk"]),
    "author_and_year": ("Lund [Brandt et al., 2019; Lund, 2018a]", ["Brandt et al., 2019", "Lund, 2018a"]),
    "wide": ("Lund 【Pellam Tower】［Otto Salk］", ["Pellam Tower", "Otto Salk"]),
    "numbers": ("Lund [1, 2] and [3]", ["1", "2", "3"]),
    "number_behind_a_word": ("Lund[1]", ["1"]),
    "index": ("so x[0] and ab[i] = a[1]", ["i"]),
    "interval": ("in [0, 1] or [-1.5, 2]", []),
    "link": ("[this page](http://example.org)", []),
    "display_mathematics": (r"\[ x^2 \] then", []),
    "editor": ("Lund [sic] [edit: checked] [citation needed]", []),
    "blank_and_dots": ("Lund [ ] [...] [–]", []),
    "unclosed": ("Lund [see note [Otto Salk]", ["Otto Salk"]),
    "never_closed": ("Lund [Otto Salk", []),
    "title_in_parentheses": ("Lund (Otto Salk)", ["Otto Salk"]),
    "parentheses_beside_brackets": ("Lund (Salt Road) [Otto Salk]", ["Otto Salk"]),
    "remark_in_parentheses": ("Lund (a university town) (1921) (e.g. the old hospital) (Table 2)", []),
    "tag": ("Lund <cite>Otto Salk</cite>", ["Otto Salk"]),
    "source_line": ("Lund. Source: Pellam Tower; Otto Salk", ["Pellam Tower", "Otto Salk"]),
    "according_to": ("According to 'Otto Salk', it is Lund.", ["otto salk"]),
    "according_to_somebody": ("According to legend, it is Lund.", []),
}


@pytest.mark.parametrize(("text", "citations"), FORMS.values(), ids=FORMS)
def test_forms(text: str, citations: list[str]) -> None:
    assert list(read_citations(text, KNOWN).citations) == citations


def gold(answer: Any, required: list[str], context: list[str] | None = None) -> dict[str, Any]:
    facts = {"title": required, "sent_id": [0] * len(required)}
    return {
        "answer": answer,
        "supporting_facts": facts,
        "context_titles": context or [*required, "Other Page"],
    }


TWO = gold("Lund", ["Pellam Tower", "Otto Salk"])
CASES = {
    # name: (answer, gold, column, value)
    "nested_titles_in_any_order": (
        "Lund [Avon Bridge] [Avon]",
        gold("Lund", ["Avon", "Avon Bridge"]),
        "source_recall",
        1.0,
    ),
    "a_part_of_another_title_is_that_title": (
        "Lund [Avon]",
        gold("Lund", ["Avon Bridge"], ["Avon", "Avon Bridge"]),
        "source_recall",
        0.0,
    ),
    "article_left_out": ("Lund [Blue Lantern]", gold("Lund", ["The Blue Lantern"]), "source_recall", 1.0),
    "the_alone": ("Lund [the]", gold("Lund", ["The Blue Lantern"]), "source_recall", 0.0),
    "one_letter": ("Lund [M]", gold("Lund", ["Model M"]), "source_recall", 0.0),
    "precision": ("Lund [Pellam Tower] [Otto Salk] [Other Page]", TWO, "source_precision", 2 / 3),
    "precision_of_nothing": ("Lund", TWO, "source_precision", None),
    "repeated_citation_counts_once": (
        "Lund [Otto Salk] [Otto Salk] [Other Page]",
        TWO,
        "source_precision",
        0.5,
    ),
    "complete": ("Lund [Pellam Tower] [Otto Salk]", TWO, "complete", True),
    "partial_is_not_complete": ("Lund [Otto Salk]", TWO, "complete", False),
    "other_form_has_no_verdict": ("Lund <cite>Otto Salk</cite>", TWO, "format_correct", None),
    "other_form_counts_as_use": ("Lund <cite>Otto Salk</cite>", TWO, "uses_citation", True),
    "other_form_reason": ("Lund <cite>Otto Salk</cite>", TWO, "reason", "other_citation_form"),
    "gold_as_json_text": (
        "Lund [Otto Salk]",
        '{"answer": "Lund", "supporting_facts": [["Otto Salk", 1]]}',
        "complete",
        True,
    ),
    "titles_outside_the_context": (
        "Lund [Otto Salk]",
        gold("Lund", ["Otto Salk"], ["Salt Road"]),
        "source_recall",
        None,
    ),
    "citation_is_no_answer": ("It is there [Lund]", gold("Lund", ["Lund"]), "answer_correct", False),
    "no_inside_a_word": ("I know nothing [Otto Salk]", gold("no", ["Otto Salk"]), "answer_correct", False),
    "yes_is_not_no": ("Yes, no doubt [Otto Salk]", gold("no", ["Otto Salk"]), "answer_correct", False),
    "unanswerable_in_other_words": (
        "The paper doesn’t mention it.",
        gold("Unanswerable", ["M"]),
        "answer_correct",
        True,
    ),
    "answer_where_none_is": ("Three layers.", gold("Unanswerable", ["M"]), "answer_correct", False),
    "think_text_is_no_citation": ("<think>[Salt Road]</think>Lund", TWO, "uses_citation", False),
    "unfinished_thought": ("<think>Lund [Otto Salk]", TWO, "format_correct", False),
}


@pytest.mark.parametrize(("text", "wanted", "column", "value"), CASES.values(), ids=CASES)
def test_cases(text: str, wanted: Any, column: str, value: Any) -> None:
    assert score(text, wanted)[column] == value


@pytest.mark.parametrize(
    "nothing", [None, "", {}, {"answer": None}, {"answer": [], "supporting_facts": 3}, []]
)
def test_no_gold_is_unscored(nothing: Any) -> None:
    got = score("Lund [Otto Salk]", nothing)
    assert got["reason"] == "no_gold"
    assert all(got[column] is None for column in COLUMNS.values() if column != "reason")


UNITS = [
    "[",
    "{",
    "(",
    "7",
    " ",
    ";",
    "!",
    "\n",
    "[a;",
    "a;",
    "[a] ",
    "(A B) ",
    "【",
    ",",
    "[a,",
    ".",
    "<cite>",
    "source:",
    "according to ",
]


@pytest.mark.parametrize("unit", UNITS)
def test_degenerate_text_is_linear(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    for wrapped in (text, "x = [" + text, text + "]", "[" + text + "]"):
        assert score(wrapped, TWO)["answer_correct"] is False
