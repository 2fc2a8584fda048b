"""Finds JSON values in free text with a real decoder, in linear time.

Example: 'The {plan}: {"a": [1, {"b": "}"}]} and [2]. Ok' holds two values, {"a": [1, {"b": "}"}]} and [2].
Strict JSON: no NaN or Infinity, no single quotes, no comments or trailing commas, no raw line breaks in
strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# an opening bracket that what follows does not rule out at once
OPENER = re.compile(r'\{(?=\s*["}])|\[(?=\s*[\[\]{"\d\-tfnNI])')
_NOT_NESTING = re.compile(r'[{}\[\]"]')
_STRING_END = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
# an object with a quoted key is meant as JSON, also where it breaks off later; a bracket in prose is not
_MEANT_AS_JSON = re.compile(r'\{\s*"|\[\s*\{\s*"')
_LANGUAGE = re.compile(r"[ \t]*json\b", re.IGNORECASE)
_PREFIX = re.compile(r"\s*json\s*:\s*", re.IGNORECASE)
_MAX_INT_TEXT = 4000  # Python refuses to read or print integers of more than 4,300 digits


@dataclass(frozen=True)
class Found:
    """A JSON value and where it stands: text[start:end]."""

    value: Any
    start: int
    end: int


class BigInt(int):
    """An integer too long for Python to print; everything but its text form works."""

    def __repr__(self) -> str:
        return f"<integer of about {self.bit_length() * 3 // 10} digits>"

    __str__ = __repr__


class _NotJson(ValueError):
    """NaN or an infinity was met, which Python's decoder would accept."""


def _refuse(name: str) -> Any:
    raise _NotJson(name)


def _integer(text: str) -> int:
    return int(text) if len(text) <= _MAX_INT_TEXT else BigInt(_long_integer(text))


def _long_integer(text: str) -> int:
    """int(text) for any length, by halves."""
    if len(text) <= _MAX_INT_TEXT:
        return int(text)
    if text[0] == "-":
        return -_long_integer(text[1:])
    half = len(text) // 2
    return _long_integer(text[:-half]) * 10**half + _long_integer(text[-half:])


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=_integer)


def whole_value(text: str) -> Found | None:
    """The text's one JSON value of any type, where it is nothing else but a fence or "JSON:" around it."""
    inner = text.strip().lstrip("\ufeff")
    prefix = _PREFIX.match(inner)
    inner = inner[prefix.end() :] if prefix else inner
    if len(inner) > 6 and inner.startswith("```") and inner.endswith("```"):
        inner = inner[3:-3]
        language = _LANGUAGE.match(inner)
        inner = inner[language.end() :] if language else inner
    inner = inner.strip()
    try:
        value, end = _DECODER.raw_decode(inner)
    except (ValueError, RecursionError):
        return None
    if end != len(inner):
        return None
    start = text.find(inner)
    return Found(value, start, start + end)


def values_in(text: str) -> list[Found]:
    """The outermost objects and arrays in a text, in order, without overlap.

    A part of an object that breaks off or has an error inside is no value of its own. Values nested beyond
    the interpreter's limit end the search.
    """
    return list(_scan(text))


def _scan(text: str) -> Iterator[Found]:
    position, may_skip = 0, True
    while opener := OPENER.search(text, position):
        start = opener.start()
        found, position = value_at(text, start)
        if found:
            yield found
        elif position >= len(text):
            return
        elif may_skip and _MEANT_AS_JSON.match(text, start):
            depth = _depth(text, start, position)
            end = _balanced_end(text, position, depth) if depth > 0 else position
            # only one search for an end that does not come: the scan stays linear
            may_skip = end is not None
            position = end or position


def value_at(text: str, start: int) -> tuple[Found | None, int]:
    """(value, its end) for the JSON value that begins at `start`; (None, where reading failed) otherwise.

    The place of failure is behind `start`; it is the end of the text where the value is not finished or too
    deep.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
        return Found(value, start, end), end
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string"):
            return None, len(text)
        return None, max(error.pos, start + 1)
    except RecursionError:
        return None, len(text)
    except _NotJson:
        # the bracket closes somewhere, else the decoder had failed otherwise; nothing in it is a value
        return None, _balanced_end(text, start + 1, 1) or len(text)


def _depth(text: str, start: int, end: int) -> int:
    """How many brackets that open in text[start:end], a sound beginning of a JSON value, are open at its
    end.
    """
    depth, position = 0, start
    while mark := _NOT_NESTING.search(text, position, end):
        position = mark.end()
        if mark.group() == '"':
            closing = _STRING_END.match(text, position, end)
            position = closing.end() if closing else end
        else:
            depth += 1 if mark.group() in "{[" else -1
    return depth


def _balanced_end(text: str, position: int, depth: int) -> int | None:
    """Where `depth` open brackets are closed again, brackets in double-quoted strings apart; None if
    nowhere.
    """
    while mark := _NOT_NESTING.search(text, position):
        position = mark.end()
        if mark.group() == '"':
            closing = _STRING_END.match(text, position)
            if not closing:
                return None
            position = closing.end()
        else:
            depth += 1 if mark.group() in "{[" else -1
            if depth <= 0:
                return position
    return None
