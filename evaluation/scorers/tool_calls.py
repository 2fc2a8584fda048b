"""Tool calls: the right tool, the right arguments, both (bfcl.subset, mnms.full).

Example: gold ["book_room(city='Oslo', nights=2)"], answer '{"name": "book_room", "arguments": {"city":
"oslo", "nights": 2}}' gives items 1, selection 1, argument 1, integration 1.
Rules: calls match in any order; items = max(gold calls, model calls), at least 1; arguments only count where
the tool is right; no call wanted and none made is right. Text compares without case and outer blanks; truth
values are no numbers; numbers may differ by 1e-6. Sources: BFCL (gorilla.cs.berkeley.edu), m&ms (arXiv
2403.11085).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evaluation.extraction.calls import Call, Untyped, call_from_text, calls_from_value, calls_in, normal_name
from evaluation.rows import TRUNCATED, Row, is_missing

TOLERANCE = 1e-6
FREE_TEXT_WORDS = 4  # gold texts of so many words and more are compared as free text in mnms
FREE_TEXT_SHARE = 0.7
_NO_CALL = frozenset(("", "none", "no function call", "[]"))
_NEGATIONS = frozenset(("no", "not", "never", "without"))
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Expected:
    """A gold call. choices: the argument values are lists of allowed values (BFCL), "" among them: may be
    left out.
    """

    call: Call
    choices: bool = False


@dataclass(frozen=True)
class Tool:
    """What a tool specification says. parameters: names in order. types: name -> JSON type. defaults: name ->
    value.
    """

    parameters: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)


def score_bfcl(row: Row) -> dict[str, Any]:
    """items, selection_correct, argument_correct, integration_correct: numbers. See the module for the rules.

    gold: calls as text (one, lines, or a list), objects with name and arguments, or BFCL's possible answers
    {name: {argument: [allowed, …]}}. reason: the first fault (no_call, unexpected_call, wrong_tool,
    missing_args, incorrect_args, extra_args, missing_call); no_gold.
    """
    gold = bfcl_gold(row.columns.get("gold"))
    return _score(row, gold, _same)


def score_mnms(row: Row) -> dict[str, Any]:
    """As score_bfcl; gold: nodes {id, name, args}. References such as <node-0>.text must name node and field.

    Free text (four words and more) may leave out or add some words, but not exchange or reorder them; numbers
    and numbers written as text are the same.
    """
    gold = mnms_gold(row.columns.get("gold"))
    return _score(row, gold, _same_in_plan)


def _score(row: Row, gold: list[Expected] | None, same: Callable[[Any, Any], bool]) -> dict[str, Any]:
    if gold is None:
        empty = dict.fromkeys(("items", "selection_correct", "argument_correct", "integration_correct"))
        return {**empty, "extracted": None, "reason": "no_gold"}
    tools = read_tools(row.get("tool_spec"))
    names = {*tools, *(normal_name(expected.call.name) for expected in gold)}
    made = calls_in(row.answer, names)
    items = max(len(gold), len(made), 1)
    selected, right, fault = _match(gold, made, tools, same)
    if not gold and not made and row.state != TRUNCATED:
        selected = right = 1
    elif not made:
        fault = "no_call"
    return {
        "items": items,
        "selection_correct": selected,
        "argument_correct": right,
        "integration_correct": right,
        "extracted": "; ".join(_shown(call) for call in made[:20]) or None,
        "reason": None if right == items else fault,
    }


def _match(
    gold: list[Expected], made: list[Call], tools: dict[str, Tool], same: Callable[[Any, Any], bool]
) -> tuple[int, int, str | None]:
    """(calls with the right tool, calls with tool and arguments right, first fault), the best pairing by
    tool.
    """
    selected = right = 0
    fault = None
    by_name: dict[str, tuple[list[Expected], list[Call]]] = {}
    for expected in gold:
        by_name.setdefault(normal_name(expected.call.name), ([], []))[0].append(expected)
    for call in made:
        by_name.setdefault(normal_name(call.name), ([], []))[1].append(call)
    for name, (wanted, given) in by_name.items():
        selected += min(len(wanted), len(given))
        tool = tools.get(name, Tool())
        faults = [[_argument_fault(expected, call, tool, same) for call in given] for expected in wanted]
        matched = _pairs([[fault is None for fault in row] for row in faults])
        right += len(matched)
        if len(matched) < min(len(wanted), len(given)):
            left = [row for number, row in enumerate(faults) if number not in matched]
            fault = fault or next((code for row in left for code in row if code), None)
        elif len(wanted) != len(given) and not fault:
            fault = "missing_call" if len(wanted) > len(given) else "unexpected_call"
    if selected < min(len(gold), len(made)):
        fault = "wrong_tool"
    return selected, right, fault


def _pairs(fits: list[list[bool]]) -> dict[int, int]:
    """A largest pairing of rows with columns where fits[row][column]: row -> column (augmenting paths)."""
    owner: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, fit in enumerate(fits[row]):
            if fit and column not in tried:
                tried.add(column)
                if column not in owner or place(owner[column], tried):
                    owner[column] = row
                    return True
        return False

    for row in range(len(fits)):
        place(row, set())
    return {row: column for column, row in owner.items()}


def _argument_fault(
    expected: Expected, call: Call, tool: Tool, same: Callable[[Any, Any], bool]
) -> str | None:
    """None where the call's arguments are those expected, else what is wrong with them."""
    wanted, wanted_rest = _named(expected.call, tool)
    given, given_rest = _named(call, tool)
    equal = _allowed(same) if expected.choices else same
    for name, value in wanted.items():
        if name not in given:
            if _may_be_missing(expected, value, tool.defaults.get(name), same):
                continue
            return "missing_args"
        if not equal(value, _typed(given[name], tool.types.get(name))):
            return "incorrect_args"
    for name in given.keys() - wanted.keys():
        if not (name in tool.defaults and same(tool.defaults[name], given[name])):
            return "extra_args"
    if len(wanted_rest) != len(given_rest):
        return "missing_args" if len(wanted_rest) > len(given_rest) else "extra_args"
    pairs = zip(wanted_rest, given_rest, strict=True)
    return None if all(equal(a, b) for a, b in pairs) else "incorrect_args"


def _may_be_missing(expected: Expected, value: Any, default: Any, same: Callable[[Any, Any], bool]) -> bool:
    if expected.choices:
        return isinstance(value, list) and "" in value
    return default is not None and same(value, default)


def _named(call: Call, tool: Tool) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """(arguments by name, those that stay without), with the tool's order of parameters where it is known."""
    named = dict(call.args)
    free = [name for name in tool.parameters if name not in named]
    named.update(zip(free, call.positional, strict=False))
    return named, call.positional[len(free) :]


def _typed(value: Any, kind: str | None) -> Any:
    """An argument that a notation left without a type, read by the specification or by its look."""
    if not isinstance(value, Untyped) or kind == "string":
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        read = {"true": True, "false": False, "none": None}.get(value.lower(), value)
    return value if kind is None and not isinstance(read, (dict, list)) else read


def _allowed(same: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Equality with a list of allowed values; inside an object every entry has such a list again."""

    def fits(choices: Any, value: Any) -> bool:
        options = choices if isinstance(choices, list) else [choices]
        return any(_fits_option(option, value) for option in options)

    def _fits_option(option: Any, value: Any) -> bool:
        if isinstance(option, dict) and isinstance(value, dict):
            required = {
                key for key, allowed in option.items() if not (isinstance(allowed, list) and "" in allowed)
            }
            return required <= value.keys() <= option.keys() and all(
                fits(option[key], value[key]) for key in value
            )
        if isinstance(option, list) and isinstance(value, list):
            return len(option) == len(value) and all(
                _fits_option(a, b) for a, b in zip(option, value, strict=True)
            )
        return same(option, value)

    return fits


def _same(gold: Any, value: Any) -> bool:
    """Equality of BFCL arguments, see the module."""
    if isinstance(value, Untyped) and not isinstance(gold, str):
        value = _typed(value, "any")
    if isinstance(gold, bool) or isinstance(value, bool) or gold is None or value is None:
        return gold is value
    if isinstance(gold, (int, float)) and isinstance(value, (int, float)):
        try:
            return abs(gold - value) <= TOLERANCE
        except OverflowError:
            return False
    if isinstance(gold, str) and isinstance(value, str):
        return _plain(gold) == _plain(value)
    if isinstance(gold, list) and isinstance(value, list):
        return len(gold) == len(value) and all(_same(a, b) for a, b in zip(gold, value, strict=True))
    if isinstance(gold, dict) and isinstance(value, dict):
        return gold.keys() == value.keys() and all(_same(item, value[key]) for key, item in gold.items())
    return False


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _same_in_plan(gold: Any, value: Any) -> bool:
    """Equality of mnms arguments, see score_mnms."""
    numbers = (_as_number(gold), _as_number(value))
    if None not in numbers:
        return _same(*numbers)
    if not isinstance(gold, str) or not isinstance(value, str):
        return _same(gold, value)
    if "<node-" in gold:
        return _plain(gold) == _plain(value)
    wanted, given = _WORD.findall(gold.casefold()), _WORD.findall(value.casefold())
    if wanted == given:
        return True
    if len(wanted) < FREE_TEXT_WORDS or not given:
        return False
    shorter, longer = sorted((wanted, given), key=len)
    if len(shorter) < FREE_TEXT_SHARE * len(longer) or not _is_subsequence(shorter, longer):
        return False
    return _NEGATIONS.intersection(wanted) == _NEGATIONS.intersection(given)


def _as_number(value: Any) -> float | int | None:
    if isinstance(value, str) and len(value) <= 40:
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_subsequence(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(word in rest for word in part)


def bfcl_gold(gold: Any) -> list[Expected] | None:
    """The calls expected, [] where none is wanted, None where there is no gold or a part of it cannot be
    read."""
    if is_missing(gold):
        return None
    if isinstance(gold, str):
        read = _literal(gold)
        in_list = gold.strip().startswith("[")
        gold = read if isinstance(read, (list, dict)) else [gold] if in_list else gold.strip().split("\n")
    items = gold if isinstance(gold, list) else [gold]
    expected: list[Expected] = []
    for item in items:
        if isinstance(item, str) and item.strip().lower() in _NO_CALL:
            continue
        found = _expected_objects(item) if isinstance(item, dict) else []
        found = _expected_text(item) if isinstance(item, str) else found
        if not found:
            return None  # not "no call is wanted": that would be a verdict without a gold
        expected += found
    return expected


def _expected_text(text: str) -> list[Expected]:
    stripped = text.strip()
    if stripped.startswith(("[", "{")):
        return [Expected(call) for call in calls_in(stripped)]
    call = call_from_text(stripped)
    return [Expected(call)] if call else [Expected(call) for call in calls_in(stripped)]


def _expected_objects(item: dict[str, Any]) -> list[Expected]:
    """Of {"name": …, "arguments": …}, or BFCL's {"tool": {"argument": [allowed, …]}, …}."""
    calls = calls_from_value(item)
    if calls:
        # a list may be the value itself or the values allowed: either is taken
        return [
            Expected(
                Call(call.name, {name: _either(value) for name, value in call.args.items()}, call.positional),
                choices=not call.positional,
            )
            for call in calls
        ]
    return [
        Expected(Call(name, args), choices=all(isinstance(value, list) for value in args.values()))
        for name, args in item.items()
        if isinstance(args, dict)
    ]


def _either(value: Any) -> list[Any]:
    return [value, *value] if isinstance(value, list) else [value]


def mnms_gold(gold: Any) -> list[Expected] | None:
    """The nodes expected, [] where none is wanted, None where there is no gold or it cannot be read."""
    if is_missing(gold):
        return None
    if isinstance(gold, str):
        gold = [] if gold.strip().lower() in _NO_CALL else _literal(gold)
    items = gold if isinstance(gold, list) else [gold]
    if not all(isinstance(item, dict) and item.get("name") for item in items):
        return None
    return [
        Expected(
            Call(str(item.get("name") or ""), args if isinstance(args := item.get("args"), dict) else {})
        )
        for item in items
    ]


def _literal(text: str) -> Any:
    """JSON or a Python literal, None if neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return None


def read_tools(spec: Any) -> dict[str, Tool]:
    """Normal name -> Tool of a tool specification: a list or one object, bare or as {"function": …}, or its
    text.

    Keywords that are null (Parquet) do not exist.
    """
    if isinstance(spec, str):
        spec = _literal(spec)
    items = spec if isinstance(spec, list) else [spec]
    tools: dict[str, Tool] = {}
    for item in items:
        if isinstance(item, str):
            item = _literal(item)
        if isinstance(item, dict) and isinstance(item.get("function"), dict):
            item = item["function"]
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            continue
        parameters = item.get("parameters") or item.get("input_schema") or {}
        properties = parameters.get("properties", parameters) if isinstance(parameters, dict) else {}
        properties = properties if isinstance(properties, dict) else {}
        known = {name: about for name, about in properties.items() if isinstance(about, dict)}
        tools[normal_name(item["name"])] = Tool(
            tuple(known),
            {name: about["type"] for name, about in known.items() if isinstance(about.get("type"), str)},
            {name: about["default"] for name, about in known.items() if about.get("default") is not None},
        )
    return tools


def _shown(call: Call) -> str:
    try:
        named = [f"{name}={value!r}" for name, value in call.args.items()]
        parts = [*map(repr, call.positional), *named]
    except RecursionError:
        parts = ["…"]
    shown = f"{call.name}({', '.join(parts)})"
    return shown if len(shown) <= 500 else shown[:500] + "…"
