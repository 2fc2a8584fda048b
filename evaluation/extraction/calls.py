"""Finds tool calls in free text: every common notation, read by a small grammar; nothing is ever evaluated.

Example: 'Sure:\\n```\\n[geo.find(city="Oslo", n=2), area(5, 7)]\\n```' holds Call("geo.find", {"city":
"Oslo", "n": 2}) and Call("area", {}, (5, 7)). Also read: JSON objects with a name and arguments (alone, in
lists, in tags such as <tool_call> or [TOOL_CALLS]), <function=NAME>… and <invoke name="NAME">… with parameter
tags, "Action: NAME" with "Action Input: {…}". Prose with brackets ("f (see below)") is no call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from evaluation.extraction.courtesies import without_courtesies
from evaluation.extraction.json_text import OPENER, value_at

_MAX_DEPTH = 40
_NAME_LENGTH = 200
# steps of the grammar per character: failing attempts that start over must not add up
_STEPS_PER_CHARACTER = 2

_NAME_KEYS = ("name", "function_name", "tool_name", "tool", "function", "action", "api")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "kwargs", "input", "action_input", "arg")
_WRAPPERS = frozenset(("print", "tool_code", "default_api.print"))

_START = re.compile(
    r"[(\[{]|<function=([^<>\n]{1,200})>|<invoke\s{1,9}name=[\"']([^\"'<>\n]{1,200})[\"']\s{0,9}>"
    r"|\bAction:[ \t]{0,9}([\w.\- ]{1,200})\n\s{0,9}Action Input:[ \t]{0,9}\n?(?=\{)"
    r"|<tool_call>\s{0,9}([\w.\-]{1,200})\s{0,9}(?=<arg_key>)"
)
_END_OF_TAGS = re.compile(r"</function>|</invoke>|</tool_call>|<function=|<invoke\s|<tool_call>")
_PARAMETER = re.compile(
    r"<parameter(?:=|\s{1,9}name=)[\"']?([^\"'<>=\n]{1,200})[\"']?\s{0,9}>"
    r"|<arg_key>([^<>\n]{1,200})</arg_key>\s{0,9}<arg_value>"
)
# NAME{json}: [TOOL_CALLS]f{"a": 1}, f[ARGS]{"a": 1}, a name on its line and then fenced JSON
_NAME_BEFORE_JSON = re.compile(
    r"(?:\[TOOL_CALLS\]|tool▁sep｜>|<\|tool_sep\|>|to=(?:functions\.)?)\s*([\w.\-]{1,200})"
    r"\s*(?:\[ARGS\]|<\|message\|>|```(?:json)?)?\s*$"
)
_LINE_MARKS = re.compile(r"[^\w\"']*(?:\d{1,3}[.)])?[^\w\"']*")
_DEFINITION = re.compile(r"(?:def|function|class|fun|func)\s*$")
_SPACE = re.compile(r"\s*")
_KEY = re.compile(r"(?:([A-Za-z_][\w.\-]*)|\"([^\"\\\n]*)\"|'([^'\\\n]*)')\s*[=:](?!=)\s*")
_IDENTIFIER = re.compile(r"[^\W\d][\w.\-]*")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*+(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+(?=\s*(?:[,)\]}:]|$))")
_BARE = re.compile(r"[^,()\[\]{}\"'\n]+")
_QUOTE = re.compile(r"[rRbBuUfF]{0,2}(\"\"\"|'''|\"|')")
_AFTER_STRING = re.compile(r"\s*(?:[,)\]}:]|$)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}


@dataclass(frozen=True)
class Call:
    """A tool call. name: as written. args: by name. positional: the values that were given without a name."""

    name: str
    args: dict[str, Any] = field(default_factory=dict)
    positional: tuple[Any, ...] = ()


class Untyped(str):
    """The text of an argument whose notation does not say whether it is text, a number or a truth value."""


class _NoCall(Exception):
    """The grammar does not hold here."""


def normal_name(name: str) -> str:
    """Names are the same whatever their case and whether . _ - or a blank separates their parts."""
    return re.sub(r"[\s.\-_]+", "_", name.strip().lower())


def calls_in(text: str, names: Iterable[str] = ()) -> list[Call]:
    """The calls in a text, in order. names: tools known to exist; a name of several words is only found by
    them.

    Time: linear (the steps of the grammar are counted and limited by the length of the text).
    """
    return _Reader(without_courtesies(text), {normal_name(name) for name in names}).calls()


def call_from_text(text: str) -> Call | None:
    """A gold call such as "Open Gate(speed=2)": all before the first bracket is its name. None if it is
    none.
    """
    opening = text.find("(")
    name = text[:opening].strip(" \t\n-*`;") if opening > 0 else ""
    if not name:
        return None
    try:
        args, positional, _ = _Grammar(text).arguments(opening + 1, known=True)
    except _NoCall:
        return None
    return Call(name, args, positional)


def calls_from_value(value: Any, names: Iterable[str] | None = None, depth: int = 0) -> list[Call] | None:
    """The calls that a JSON value stands for: one, a list of them, or an object that holds such; None if it
    is none.

    names: normal names of the tools that exist; where given, a name without arguments must be one of them.
    """
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, list):
        parts = [calls_from_value(item, names, depth + 1) for item in value]
        if not parts or any(part is None for part in parts):
            return None
        return [call for part in parts for call in part or ()]
    if not isinstance(value, dict):
        return None
    for key in ("tool_calls", "function_call", "calls"):
        if isinstance(value.get(key), (list, dict)):
            return calls_from_value(value[key], names, depth + 1)
    if isinstance(value.get("function"), dict):
        return calls_from_value(value["function"], names, depth + 1)
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    if not name or not name.strip():
        plans = [item for item in value.values() if isinstance(item, list)]
        return calls_from_value(plans[0], names, depth + 1) if len(plans) == 1 else None
    given = [key for key in _ARGUMENT_KEYS if key in value]
    if not given:
        # a name alone is a call only where nothing else is said about the thing
        alone = set(value) <= {"id", "type", *_NAME_KEYS}
        return [Call(name)] if alone and (names is None or normal_name(name) in names) else None
    arguments = value[given[0]]
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            return None
    if arguments is None:
        arguments = {}
    if isinstance(arguments, list):
        return [Call(name, {}, tuple(arguments))]
    return [Call(name, arguments)] if isinstance(arguments, dict) else None


class _Reader:
    """One pass over a text, from candidate to candidate."""

    def __init__(self, text: str, names: set[str]) -> None:
        self.text = text
        self.names = names
        self.words = max((name.count("_") + 1 for name in names), default=1)
        self.grammar = _Grammar(text)
        self.last_bracket = text.rfind(")")
        self.json_budget = 10_000 + _STEPS_PER_CHARACTER * len(text)

    def calls(self) -> list[Call]:
        found: list[Call] = []
        position = seen = 0
        while start := _START.search(self.text, position):
            calls, position = self._at(start, seen)
            if calls:
                found += calls
                seen = position
        return found

    def _at(self, start: re.Match[str], seen: int) -> tuple[list[Call], int]:
        """(calls, where to go on) for the candidate at `start`; the last call ended at `seen`."""
        if start.group() == "(":
            return self._call(start.start(), seen)
        if start.group() in "[{":
            return self._json(start.start(), seen)
        name = next(group for group in start.groups() if group)
        if start.group(3):
            found, end = (
                value_at(self.text, start.end()) if self.text[start.end()] == "{" else (None, start.end())
            )
            value = found.value if found else {}
            return ([Call(name.strip(), value)], end) if isinstance(value, dict) else ([], start.end())
        return self._tags(name.strip(), start.end())

    def _tags(self, name: str, start: int) -> tuple[list[Call], int]:
        """<function=NAME>{json} or with parameter tags, up to its closing tag or the next call's."""
        closing = _END_OF_TAGS.search(self.text, start)
        end = closing.start() if closing else len(self.text)
        inside = self.text[start:end]
        at = _SPACE.match(inside).end()  # type: ignore[union-attr]
        if inside.startswith("{", at):
            found, _ = value_at(inside, at)
            return ([Call(name, found.value)] if found and isinstance(found.value, dict) else []), end
        args = {}
        position = 0
        while parameter := _PARAMETER.search(inside, position):
            position = inside.find("</parameter>" if parameter[1] else "</arg_value>", parameter.end())
            if position < 0:
                break
            key = parameter[1] or parameter[2]
            args[key.strip()] = Untyped(inside[parameter.end() : position].strip())
        return [Call(name, args)], end

    def _json(self, start: int, seen: int) -> tuple[list[Call], int]:
        if self.json_budget <= 0 or not OPENER.match(self.text, start):
            return [], start + 1
        found, end = value_at(self.text, start)
        if not found:
            # a list of calls that breaks off still holds whole ones: what is inside is tried again, within
            # limits
            self.json_budget -= end - start
            return [], start + 1
        before = self.text[max(seen, start - _NAME_LENGTH - 60) : start]
        named = _NAME_BEFORE_JSON.search(before)
        if named and isinstance(found.value, dict):
            return [Call(named.group(1), found.value)], end
        return calls_from_value(found.value, self.names) or [], end

    def _call(self, opening: int, seen: int) -> tuple[list[Call], int]:
        name, known = self._name_before(opening, seen) if opening < self.last_bracket else ("", False)
        if not name or (name.lower() in _WRAPPERS and not known):
            return [], opening + 1
        begins_line = self._begins_line(opening - len(name), seen)
        try:
            args, positional, end = self.grammar.arguments(opening + 1, known and begins_line)
        except _NoCall:
            return [], opening + 1
        if not args and not (known and positional) and not begins_line:
            # prose speaks of "find()" or "log(2)" without calling it
            return [], opening + 1
        return [Call(name, args, positional)], end

    def _begins_line(self, start: int, seen: int) -> bool:
        line = self.text[max(seen, start - 60) : start]
        line = line[line.rfind("\n") + 1 :]
        return bool(_LINE_MARKS.fullmatch(line)) and (start <= 60 or len(line) < 60)

    def _name_before(self, opening: int, seen: int) -> tuple[str, bool]:
        """(the name before a bracket, whether it is known): the longest known one, else the word at the
        bracket.
        """
        start = opening
        while start > max(seen, opening - _NAME_LENGTH) and (
            self.text[start - 1].isalnum() or self.text[start - 1] in "_.- \t"
        ):
            start -= 1
        before = self.text[start:opening]
        words = before.split()[-self.words :]
        for count in range(len(words), 0, -1):
            name = " ".join(words[-count:]).strip(".- ")
            if normal_name(name) in self.names:
                return name, True
        if not words or before[-1:].isspace():
            return "", False
        last = _IDENTIFIER.search(words[-1].lstrip(".-"))
        if not last or not words[-1].endswith(last.group()) or _DEFINITION.search(before[: -len(words[-1])]):
            return "", False
        return last.group(), False


class _Grammar:
    """Arguments and values as programs write them, and unquoted text as models write it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = 10_000 + _STEPS_PER_CHARACTER * len(text)

    def _skip(self, position: int) -> int:
        self.steps -= 1
        if self.steps < 0:
            raise _NoCall
        end = _SPACE.match(self.text, position).end()  # type: ignore[union-attr]
        self.steps -= (end - position) // 8
        return end

    def arguments(
        self, position: int, known: bool, depth: int = 0
    ) -> tuple[dict[str, Any], tuple[Any, ...], int]:
        """(by name, positional, behind the closing bracket) from behind the opening one.

        Raises _NoCall. Unquoted positional text is an argument only of a tool that is known.
        """
        args: dict[str, Any] = {}
        positional: list[Any] = []
        position = self._skip(position)
        while not self.text.startswith(")", position):
            key = _KEY.match(self.text, position)
            if key:
                name = next(group for group in key.groups() if group is not None)
                value, position = self.value(key.end(), depth + 1)
                args[name] = value
            else:
                value, position = self.value(position, depth + 1, bare=known)
                positional.append(value)
            position = self._next(position, ")")
        return args, tuple(positional), position + 1

    def _next(self, position: int, closer: str) -> int:
        """Behind a comma, or at the closing bracket."""
        position = self._skip(position)
        if self.text.startswith(",", position):
            return self._skip(position + 1)
        if not self.text.startswith(closer, position):
            raise _NoCall
        return position

    def value(self, position: int, depth: int, bare: bool = True) -> tuple[Any, int]:
        """(value, its end) of what begins here."""
        position = self._skip(position)
        if depth > _MAX_DEPTH or position >= len(self.text):
            raise _NoCall
        quote = _QUOTE.match(self.text, position)
        if quote:
            return self._string(quote)
        character = self.text[position]
        if character == "{":
            return self._mapping(position + 1, depth)
        if character in "[(":
            return self._list(position + 1, "]" if character == "[" else ")", depth)
        number = _NUMBER.match(self.text, position)
        if number:
            return _number(number.group()), number.end()
        return self._word(position, depth, bare)

    def _list(self, position: int, closer: str, depth: int) -> tuple[Any, int]:
        items = []
        position = self._skip(position)
        comma = closer == "]"
        while not self.text.startswith(closer, position):
            item, position = self.value(position, depth + 1)
            items.append(item)
            before = position = self._skip(position)
            position = self._next(position, closer)
            comma = comma or position > before
        # (5) is 5, (5,) and (5, 6) are lists
        return (items[0] if len(items) == 1 and not comma else items), position + 1

    def _mapping(self, position: int, depth: int) -> tuple[Any, int]:
        """{key: value, …}, or a set as a list."""
        found: dict[Any, Any] = {}
        items = []
        position = self._skip(position)
        while not self.text.startswith("}", position):
            key, position = self.value(position, depth + 1)
            position = self._skip(position)
            if self.text.startswith((":", "="), position):
                value, position = self.value(position + 1, depth + 1)
                found[key if isinstance(key, str) else json.dumps(key, default=str)] = value
            else:
                items.append(key)
            position = self._next(position, "}")
        return (items if items and not found else found), position + 1

    def _string(self, quote: re.Match[str]) -> tuple[str, int]:
        """A quoted text. A quote inside that no separator follows belongs to the text: 'it's late'."""
        mark = quote.group(1)
        raw = "r" in quote.group()[: -len(mark)].lower()
        position = start = quote.end()
        while True:
            found = self.text.find(mark, position)
            self.steps -= 1 + ((found if found >= 0 else len(self.text)) - position) // 8
            if found < 0 or self.steps < 0:
                raise _NoCall
            backslashes = 0
            while found - backslashes > start and self.text[found - backslashes - 1] == "\\":
                backslashes += 1
            self.steps -= backslashes
            position = found + len(mark)
            if backslashes % 2 == 0 and _AFTER_STRING.match(self.text, position):
                inside = self.text[start:found]
                return (inside if raw else _unescaped(inside)), position

    def _word(self, position: int, depth: int, bare: bool) -> tuple[Any, int]:
        """true, None, unquoted text such as New York or <node-0>.text, or a nested call."""
        word = _BARE.match(self.text, position)
        if not word:
            raise _NoCall
        self.steps -= (word.end() - position) // 8
        said = word.group().rstrip()
        end = position + len(said)
        if said.lower() in _CONSTANTS:
            return _CONSTANTS[said.lower()], end
        if self.text.startswith("(", word.end()) and _IDENTIFIER.fullmatch(said):
            args, positional, end = self.arguments(word.end() + 1, bare, depth + 1)
            return {"call": said, "args": args, "positional": list(positional)}, end
        if not bare or not said:
            raise _NoCall
        # inside a mapping the colon ends a key: {city: Oslo}
        colon = said.find(": ")
        return (said[:colon].rstrip(), position + colon) if colon > 0 else (said, end)


def _number(text: str) -> int | float | str:
    plain = text.replace("_", "")
    if len(plain) > 4000:
        return plain
    try:
        return int(plain)
    except ValueError:
        return float(plain)


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] in "ux" and len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(replace, text) if "\\" in text else text
