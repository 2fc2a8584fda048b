"""JSON answers: golden rows, finding values in text, and schemas that are missing, broken, slow or far
away.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import GOLDEN, golden_rows

from evaluation.extraction.json_text import values_in, whole_value
from evaluation.rows import make_row
from evaluation.scorers.json_schema import find_value, read_schema
from evaluation.scoring import score_by_rules

FOLDER = "knowledge_reasoning_format"
ROWS = [
    row
    for family in ("schema", "table_schema")
    for row in golden_rows(f"{FOLDER}/{family}.jsonl")
    if not row.get("batch")
]
BATCHES = [row for row in golden_rows(f"{FOLDER}/schema.jsonl") if row.get("batch")]
ANSWER = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}


def score(outputs: Any, schema: Any = ANSWER) -> dict[str, Any]:
    return score_by_rules(make_row("gsm8k.schema", {"outputs": outputs, "schema": schema}))


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_golden(row: dict[str, Any]) -> None:
    got = score_by_rules(make_row(row["task"], row["inputs"]))
    right = row.get("right", {})
    assert got["correct"] == right.get("correct", row["reference"].get("correct"))
    if right.get("failure"):
        assert got["reason"] == right["failure"]
    elif "correct" not in right and row["kind"] not in ("truncated", "nan_literal"):
        # (a fragment of a truncated value, or one with NaN in it, is no JSON: the verdict stays, its reason
        # differs)
        assert got["reason"] == row["reference"]["failure"]


@pytest.mark.parametrize("batch", BATCHES, ids=[row["id"] for row in BATCHES])
def test_golden_batches(batch: dict[str, Any]) -> None:
    verdicts = [score_by_rules(make_row(batch["task"], row))["correct"] for row in batch["inputs"]]
    assert sum(verdicts) / len(verdicts) == batch["right"]["accuracy"]


@pytest.mark.parametrize("family", ["schema", "table_schema"])
def test_golden_aggregates(family: str) -> None:
    expected = json.loads((GOLDEN / FOLDER / "expected.json").read_text(encoding="utf-8"))[family]
    by_id = {row["id"]: row for row in ROWS}
    verdicts = [
        score_by_rules(make_row(by_id[name]["task"], by_id[name]["inputs"]))["correct"]
        for name in expected["aggregate_rows"]
    ]
    scored = [verdict for verdict in verdicts if verdict is not None]
    assert sum(scored) / len(scored) == pytest.approx(expected["right_aggregate"]["accuracy"])


VALUES = {
    # name: (text, values)
    "nested": ('x {"p": {"q": {"r": [1, {"s": 2}]}}} y', [{"p": {"q": {"r": [1, {"s": 2}]}}}]),
    "brace_in_a_string": ('x {"why": "use } here [", "a": 3} y', [{"why": "use } here [", "a": 3}]),
    "quote_in_a_string": (r'{"a": "say \"}\" now"} z', [{"a": 'say "}" now'}]),
    "two": ('{"a": 1} then {"a": 2}', [{"a": 1}, {"a": 2}]),
    "placeholder": ('{x} and {y}: {"a": 4}', [{"a": 4}]),
    "prose_bracket_before": ('[see {"a": 3}]', [{"a": 3}]),
    "prose_bracket_never_closed": ('[see this: {"a": 3}', [{"a": 3}]),
    "single_quotes": ("{'a': {\"b\": 1}}", [{"b": 1}]),
    "trailing_comma": ('{"a": 3,}', []),
    "fragment_of_a_broken_object": ('{"a": oops, "b": {"answer": 3}}', []),
    "object_after_a_broken_one": ('{"a": oops, "b": {"c": 3}} then {"answer": 3}', [{"answer": 3}]),
    "fragment_of_a_truncated_object": ('{"table": [{"step": 1, "text": "add"}', []),
    "truncated_string": ('{"a": {"b": 1}, "c": "so', []),
    "nan": ('{"a": NaN} {"b": 1}', [{"b": 1}]),
    "infinity_inside": ('{"a": [-Infinity, {"b": 1}]}', []),
    "line_break_in_a_string": ('{"a": "x\ny"}', []),
    "too_deep": ("[" * 100_000 + "]" * 100_000, []),
}


@pytest.mark.parametrize(("text", "values"), VALUES.values(), ids=VALUES)
def test_values_in_text(text: str, values: list[Any]) -> None:
    found = values_in(text)
    assert [f.value for f in found] == values
    assert all(json.loads(text[f.start : f.end]) == f.value for f in found)


def test_huge_integer_is_exact_and_printable() -> None:
    digits = "123456789" * 1000
    value = whole_value('{"n": -' + digits + "}").value["n"]
    assert value % 10**9 == -int("123456789") % 10**9 and value < -(10**8999)
    assert "digits" in repr(value)


CASES = {
    # name: (outputs, schema, correct, reason)
    "citation_mark_behind": ('{"answer": 3} as in [1]', ANSWER, True, None),
    "array_only": ("see [1]", ANSWER, False, "schema_validation_failed"),
    "thought_never_ends": ('<think>{"answer": 3}', ANSWER, False, "invalid_json"),
    "fenced_scalar": ("```json\n3\n```", {"type": "integer"}, True, None),
    "number_in_prose_is_no_json": ("The answer is 3", {"type": "integer"}, False, "invalid_json"),
    "single_quotes": ("{'answer': 3}", ANSWER, False, "invalid_json"),
    "html_table": ("<table><tr><td>1</td></tr></table>", ANSWER, False, "invalid_json"),
    "infinite_float": (
        '{"a": 1e999}',
        {"properties": {"a": {"multipleOf": 3}}},
        False,
        "schema_validation_failed",
    ),
    "wrong_huge_integer": ('{"answer": "' + "1" * 9 + '"}', ANSWER, False, "schema_validation_failed"),
    "huge_integer_out_of_range": (
        "1" * 6000,
        {"type": "integer", "maximum": 9},
        False,
        "schema_validation_failed",
    ),
    "schema_as_python_text": ('{"answer": 3}', str(ANSWER), True, None),
    "schema_true_as_text": ('{"answer": 3}', "true", True, None),
    "schema_false": ('{"answer": 3}', False, False, "schema_validation_failed"),
    "schema_is_code": ('{"answer": 3}', "__import__('os').getcwd()", None, "schema_parse_error"),
    "schema_is_prose": ('{"answer": 3}', "an object", None, "schema_parse_error"),
    "schema_as_python_text_with_a_set": ('{"answer": 3}', "{'enum': {1, 2}}", None, "schema_parse_error"),
    "schema_too_deep": ("3", '{"not":' * 900 + "{}" + "}" * 900, None, "schema_parse_error"),
    "schema_of_no_draft": ('{"answer": 3}', {"$schema": 3}, None, "schema_parse_error"),
    "schema_is_a_list": ('{"answer": 3}', [1], None, "schema_parse_error"),
    "schema_with_a_broken_pattern": (
        '{"a": "x"}',
        {"properties": {"a": {"pattern": "("}}},
        None,
        "schema_parse_error",
    ),
    "schema_missing": ('{"answer": 3}', None, None, "no_schema"),
    "dangling_reference": ('{"answer": 3}', {"$ref": "#/$defs/none"}, None, "schema_parse_error"),
    "dangling_reference_not_reached": (
        "[]",
        {"type": "array", "items": {"$ref": "#/$defs/none"}},
        None,
        "schema_parse_error",
    ),
    "circular_reference": ("{}", {"$ref": "#"}, None, "schema_parse_error"),
    "remote_reference": ("{}", {"$ref": "https://example.org/x.json"}, None, "schema_parse_error"),
    "file_reference": ("{}", {"$ref": "file:///etc/hostname"}, None, "schema_parse_error"),
    "reference_to_the_drafts": (
        '{"type": 5}',
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        False,
        "schema_validation_failed",
    ),
    "null_in_enum_stays": ("null", {"enum": [None, 1], "type": None}, True, None),
    "const_null_stays": (
        '{"a": 1}',
        {"properties": {"a": {"const": None}}},
        False,
        "schema_validation_failed",
    ),
    "null_keywords_of_parquet": (
        '{"a": 1}',
        {"properties": {"a": {"const": None, "enum": None}}},
        True,
        None,
    ),
    "draft_4_by_its_name": (
        "3",
        {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True},
        False,
        "schema_validation_failed",
    ),
    "slow_pattern_that_matches": (
        '{"a": "aaaaaaaa"}',
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        True,
        None,
    ),
    "slow_pattern_that_hangs": (
        '{"a": "' + "a" * 50 + '!"}',
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        False,
        "validation_too_slow",
    ),
    "slow_pattern_of_names": (
        '{"' + "a" * 50 + '!": 1}',
        {"patternProperties": {"^(a+)+$": False}},
        False,
        "validation_too_slow",
    ),
    "slow_pattern_and_a_huge_integer": (
        '{"a": "b", "n": ' + "1" * 5000 + "}",
        {"properties": {"a": {"pattern": "^(a+|b)+$"}, "n": {"type": "integer"}}},
        True,
        None,
    ),
    "one_repetition_on_a_long_text": (
        '{"a": "' + " " * 100_000 + 'x"}',
        {"properties": {"a": {"pattern": "\\s+$"}}},
        False,
        "validation_too_slow",
    ),
}


@pytest.mark.parametrize(("outputs", "schema", "correct", "reason"), CASES.values(), ids=CASES)
def test_cases(outputs: Any, schema: Any, correct: bool | None, reason: str | None) -> None:
    got = score(outputs, schema)
    assert (got["correct"], got["reason"]) == (correct, reason)


def test_no_reference_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a schema caused network access")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    got = score('{"a": 1}', {"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}})
    assert got["reason"] == "schema_parse_error"


def test_schema_text_is_never_run() -> None:
    assert read_schema("{'type': print('x')}") is None


def test_the_last_value_of_the_wanted_type() -> None:
    assert find_value('[1] {"answer": 1} {"answer": 2} [2]', ANSWER).value == {"answer": 2}
    assert find_value('[1] {"answer": 1} [2]', {"type": "array"}).value == [2]
    assert find_value('[1] {"answer": 1} [2]', {}).value == [2]


UNITS = [
    "[",
    "{",
    "(",
    "7",
    " ",
    ";",
    "!",
    "\n",
    '{"a":',
    "[1,",
    '"',
    '\\"',
    '{"a": x',
    "[NaN,",
    "[NaN] ",
    "{}",
    '{"a": "',
    "```",
]


@pytest.mark.parametrize("unit", UNITS)
def test_degenerate_text_is_linear(unit: str) -> None:
    for text in (unit * (100_000 // len(unit)), "x" + unit * (100_000 // len(unit)) + "y"):
        got = score(text)
        assert got["correct"] is False
