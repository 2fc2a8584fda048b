"""Which instructions a row's prompt holds: from the row; only if it has none, from the public data.

Rows bring them in many shapes, all read alike, e.g. {"gold": ["keywords:existence"], "meta": {"kwargs":
[{"keywords": ["fog"], "num_words": null}]}} or {"instruction_id_list": "[\\"punctuation:no_comma\\"]",
"kwargs": "[{}]"}. A prompt of another row never lends its instructions.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

from evaluation.rows import Row, is_missing, text_of
from evaluation.scorers.instructions import public_data
from evaluation.scorers.instructions.table import INSTRUCTIONS

_ID = re.compile(r"[a-z_]+:[a-z_]+")
_ID_KEYS = ("instruction_id_list", "instruction_ids", "instructions")
_NAME_KEYS = ("instruction_id", "id", "name", "type")


@dataclass(frozen=True)
class Constraints:
    """ids: the prompt's instructions in order, None where nothing is known. kwargs: parameters, one dict an
    id.

    reason: why ids or parameters are missing ("no_constraints", "prompt_not_found",
    "constraint_data_unavailable").
    """

    ids: list[str] | None
    kwargs: list[dict[str, Any]]
    reason: str | None = None


def constraints_of(row: Row) -> Constraints:
    """The instructions of a row's prompt. Never raises."""
    holders = [holder for holder in (row.columns, _decoded(row.get("meta")), _decoded(row.gold)) if holder]
    holders = [holder for holder in holders if isinstance(holder, dict)]
    ids, kwargs = None, None
    for holder in holders:
        for key in _ID_KEYS:
            if ids is None and (found := _instructions(holder.get(key))) is not None:
                ids, kwargs = found
    if ids is None:
        found = _instructions(row.gold)
        # an empty gold says nothing; an empty list of instructions says that there are none
        ids, kwargs = found if found and found[0] else (None, None)
    if ids is None:
        return _from_public_data(row)
    for holder in holders:
        if kwargs is None:
            kwargs = _parameters(holder.get("kwargs"), ids)
    if kwargs is None and any(INSTRUCTIONS[name].parameters for name in ids if name in INSTRUCTIONS):
        known = _from_public_data(row)
        if known.ids == ids:
            return known
        return Constraints(ids, [{}] * len(ids), known.reason)
    return Constraints(ids, kwargs or [{}] * len(ids))


def _from_public_data(row: Row) -> Constraints:
    prompts = [prompt for name in ("prompt", "formatted_prompt") if (prompt := _prompt_text(row.get(name)))]
    if not prompts:
        return Constraints(None, [], "no_constraints")
    entries = public_data.entries()
    if entries is None:
        return Constraints(None, [], "constraint_data_unavailable")
    for prompt in prompts:
        at = entries.find(prompt)
        if at is not None:
            entry = entries.rows[at]
            ids = _instructions(entry.get("instruction_id_list"))
            if ids and ids[0]:
                return Constraints(
                    ids[0], _parameters(entry.get("kwargs"), ids[0]) or [{}] * len(ids[0]), None
                )
    return Constraints(None, [], "prompt_not_found")


def _prompt_text(value: Any) -> str:
    """A prompt as text; of a list of messages the user's."""
    value = _decoded(value)
    if isinstance(value, list):
        users = [item for item in value if isinstance(item, dict) and item.get("role") == "user"]
        texts = [
            text_of(item.get("content")) if isinstance(item, dict) else text_of(item)
            for item in users or value
        ]
        return "\n".join(texts)
    return text_of(value)


def _instructions(value: Any) -> tuple[list[str], list[dict[str, Any]] | None] | None:
    """Ids and, where they come with them, parameters; None where the value lists no instructions."""
    if isinstance(value, str):
        decoded = _decoded(value)
        if isinstance(decoded, str):
            names = [name for name in re.split(r"[\s,;]+", decoded) if name]
            return (names, None) if names and all(_ID.fullmatch(name) for name in names) else None
        value = decoded
    if isinstance(value, tuple):
        value = list(value)
    if not isinstance(value, list):
        return None
    if value and all(isinstance(item, dict) for item in value):
        names = [next((text_of(item[key]) for key in _NAME_KEYS if item.get(key)), "") for item in value]
        return (names, [_mapping(item.get("kwargs")) for item in value]) if all(names) else None
    return [text_of(item).strip() for item in value], None


def _parameters(value: Any, ids: list[str]) -> list[dict[str, Any]] | None:
    """One dict an id; None where the value holds none. Missing positions are empty."""
    value = _decoded(value)
    if isinstance(value, dict):
        if any(name in value for name in ids):
            value = [value.get(name) for name in ids]
        elif value and all(
            isinstance(column, (list, tuple)) and len(column) == len(ids) for column in value.values()
        ):
            # a dict of lists, as column stores write a list of structs
            value = [{name: column[at] for name, column in value.items()} for at in range(len(ids))]
        elif len(ids) == 1:
            value = [value]
        else:
            # one flat dict for all: each instruction takes the names that it knows
            value = [value] * len(ids)
    if not isinstance(value, (list, tuple)) or not value:
        return None
    found = [_mapping(item) for item in value[: len(ids)]]
    return found + [{}] * (len(ids) - len(found))


def _mapping(value: Any) -> dict[str, Any]:
    """A dict from a dict, its JSON text or a list of pairs, without the keys that are null."""
    value = _decoded(value)
    if isinstance(value, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value
    ):
        value = {str(name): item for name, item in value}
    return (
        {name: item for name, item in value.items() if not is_missing(item)}
        if isinstance(value, dict)
        else {}
    )


def _decoded(value: Any) -> Any:
    """What JSON text (or Python's literal form of it, which CSV writers leave) stands for; else the value
    itself.
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    if len(value) > 20_000:
        return value
    try:
        return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
