"""Odd values in any column: no scorer raises, and a gold that says nothing leaves the row unscored."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.engine import describe
from evaluation.rows import make_row
from evaluation.scoring import score_by_rules
from evaluation.tasks import TASKS


def _nested(depth: int, wrap: Any) -> Any:
    value: Any = wrap(None)
    for _ in range(depth):
        value = wrap(value)
    return value


VALUES: dict[str, Any] = {
    "null": None,
    "nan": float("nan"),
    "infinity": float("inf"),
    "truth": True,
    "zero": 0,
    "minus": -5,
    "fraction": 3.5,
    "huge integer": 10**400,
    "empty text": "",
    "blank": " ",
    "bracket": "[",
    "brackets": "(" * 3000,
    "digits": "9" * 5000,
    "json text": '{"a": [1, null]}',
    "lone surrogate": "\ud800",
    "empty list": [],
    "empty object": {},
    "list of null": [None],
    "mixed list": [1, "a", None, [2], {"b": 3}],
    "object of null": {"answer": None, "name": None, "type": None},
    "wrong kinds": {"name": 5, "arguments": "x", "text": [3], "label": 1, "supporting_facts": 5},
    "bad schema": {"type": 5, "properties": []},
    "nested lists": _nested(900, lambda value: [value]),
    "nested objects": _nested(900, lambda value: {"a": value}),
}
COLUMNS = (
    *("outputs", "gold", "prompt", "formatted_prompt", "ctx", "choices", "meta", "schema", "tool_spec"),
    *("instruction_id_list", "kwargs", "id", "family", "language"),
)
BY_RULES = [task for task in TASKS if TASKS[task].rules and not TASKS[task].rules.startswith("code:")]
PLAIN = {
    "outputs": "Answer: B",
    "gold": "B",
    "choices": ["basalt", "quartz"],
    "prompt": "Which one, in 3 words?",
    "schema": {"type": "object"},
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{}],
}


@pytest.mark.parametrize("task", BY_RULES)
def test_no_value_makes_a_scorer_raise(task):
    for column in COLUMNS:
        for value in VALUES.values():
            row = make_row(task, {**PLAIN, column: value})
            describe(row)
            assert isinstance(score_by_rules(row), dict)


# tasks whose verdict needs a gold, and the golds that hold none
NEED_GOLD = [task for task in BY_RULES if "gold" in TASKS[task].needs]
NOTHING = ("null", "nan", "empty object", "list of null", "object of null")
VERDICTS = {"correct", "exact", "partial", "answer_correct", "complete", "items", "integration_correct"}


@pytest.mark.parametrize("task", NEED_GOLD)
@pytest.mark.parametrize("name", NOTHING)
def test_a_gold_that_says_nothing_leaves_the_row_unscored(task, name):
    score = score_by_rules(make_row(task, {**PLAIN, "gold": VALUES[name]}))
    assert {score.get(column) for column in VERDICTS} == {None}
    assert score["reason"] == "no_gold"


UNREADABLE = {
    "bfcl.subset": ("I cannot say", {"name": 3}, ["f(a=1)", {}]),
    "mnms.full": ("I cannot say", {"id": 0}, [{"name": "ocr", "args": {}}, "ocr"]),
}


@pytest.mark.parametrize("task", UNREADABLE)
def test_a_gold_of_calls_that_cannot_be_read_is_not_the_wish_for_none(task):
    for gold in UNREADABLE[task]:
        score = score_by_rules(make_row(task, {"outputs": "No call is needed.", "gold": gold}))
        assert (score["items"], score["reason"]) == (None, "no_gold")


ROWS = {
    # name: (columns, what the row says)
    "an empty cell is no id": ({"id": "", "outputs": "5"}, (None, "5")),
    "a blank is no id": ({"id": " ", "outputs": "5"}, (None, "5")),
    "zero is an id": ({"id": 0, "outputs": "5"}, ("0", "5")),
    "leading zeros stay": ({"id": "007", "outputs": "5"}, ("007", "5")),
    "a list of one sampled answer": ({"id": 1, "outputs": ["Answer: 5"]}, ("1", "Answer: 5")),
    "a list in a list": ({"id": 1, "outputs": [["Answer: 5"]]}, ("1", "Answer: 5")),
    "a list of several is no answer to choose": ({"id": 1, "outputs": ["4", "5"]}, ("1", '["4", "5"]')),
    "an object that the loader parsed": ({"id": 1, "outputs": [{"a": 5}]}, ("1", '[{"a": 5}]')),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    columns, expected = ROWS[name]
    row = make_row("popqa.subset", columns)
    assert (row.id, row.answer) == expected


@pytest.mark.parametrize("meta", [{"language": "de"}, '{"language": "de"}'])
def test_meta_as_object_and_as_json_text(meta):
    # 1.234 is a thousand and more in German, one and a bit in English
    row = make_row("mgsm.subset", {"outputs": "Antwort: 1.234", "gold": 1234, "meta": meta})
    assert score_by_rules(row)["correct"] is True
    assert describe(row)["by_language"] == "de"


@pytest.mark.parametrize("meta", ["{", "de", "[1]", 5, [1], None])
def test_meta_that_says_nothing(meta):
    assert make_row("mgsm.subset", {"outputs": "5", "meta": meta}).meta == {}
