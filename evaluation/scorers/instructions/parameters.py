"""Reading an instruction's parameters ("kwargs"), e.g. {"num_words": 300.0, "relation": "at least"} → 300,
"at least".

The public checker draws what is not given at random; here such an instruction has no score. Parquet and CSV
turn whole numbers into floats or text and fill absent keys with null: all of that is read alike.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

LANGUAGES = frozenset(
    "en es pt ar hi fr ru de ja it bn uk th ur ta te bg ko pl he fa vi ne sw kn mr gu pa ml fi".split()  # noqa: SIM905
)
# no real instruction counts so far; keeps odd data (infinity, numbers of 400 digits) out
_MOST = 10**9
RELATIONS = ("less than", "at least")


class Unscored(Exception):
    """An instruction that cannot be judged; `code` says why (short snake_case)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def whole_number(value: Any) -> int:
    """A whole number, not negative. Raises Unscored("bad_kwargs")."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise Unscored("bad_kwargs") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unscored("bad_kwargs")
    if not 0 <= value <= _MOST or value != int(value):
        raise Unscored("bad_kwargs")
    return int(value)


def text(value: Any) -> str:
    """A text that is not blank, stripped. Raises Unscored("bad_kwargs")."""
    if not isinstance(value, str):
        value = str(whole_number(value))
    stripped = value.strip()
    if not stripped:
        raise Unscored("missing_kwargs")
    return stripped


def words(value: Any) -> tuple[str, ...]:
    """A list of words (or its JSON text, or one word), each as it stands; at least one, none blank."""
    if isinstance(value, str):
        value = _json_list(value) or [value]
    if not isinstance(value, (list, tuple)):
        raise Unscored("bad_kwargs")
    if not value:
        raise Unscored("missing_kwargs")
    if not all(isinstance(word, str) and word.strip() for word in value):
        raise Unscored("bad_kwargs")
    return tuple(value)


def relation(value: Any) -> str:
    """A relation, "less than" or "at least". Raises Unscored("bad_relation")."""
    if value not in RELATIONS:
        raise Unscored("bad_relation")
    return value


def language(value: Any) -> str:
    """One of the codes that the public checker knows. Raises Unscored("bad_language")."""
    if not isinstance(value, str) or value not in LANGUAGES:
        raise Unscored("bad_language")
    return value


def letter(value: Any) -> str:
    """One character, lower-cased. Raises Unscored("bad_kwargs")."""
    character = text(value).lower()
    if len(character) != 1:
        raise Unscored("bad_kwargs")
    return character


def read(given: dict[str, Any], wanted: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """The wanted parameters, read. Raises Unscored; keys that the instruction does not know are ignored."""
    values = {}
    for name, reader in wanted.items():
        value = given.get(name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise Unscored("missing_kwargs")
        values[name] = reader(value)
    return values


def _json_list(value: str) -> list[Any] | None:
    if not value.lstrip().startswith("["):
        return None
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, list) else None
