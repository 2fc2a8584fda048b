"""Does the answer hold a JSON value that its schema accepts? (the schema and table_schema tasks)

Example: 'Here it is: {"answer": 3}.' with schema {"type": "object", "required": ["answer"]} is correct.
The published definition (arXiv 2603.06610): a JSON check, also for the table tasks, where a Markdown, CSV or
HTML table is no JSON and therefore wrong; "format" is an annotation, as the standard has it by default. The
schema comes from the task, the text from a model: a slow pattern must not hang, and nothing is ever fetched.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from evaluation.extraction.json_text import Found, values_in, whole_value
from evaluation.rows import Row, is_missing

VALID, INVALID, BAD_SCHEMA, TOO_SLOW = "valid", "invalid", "bad_schema", "too_slow"

_REASONS = {
    VALID: None,
    INVALID: "schema_validation_failed",
    BAD_SCHEMA: "schema_parse_error",
    TOO_SLOW: "validation_too_slow",
}
# a pattern that could be slow is tried in a helper process that has this much CPU time, in seconds
HELPER_CPU_SECONDS = 0.5
_LONG_TEXT = 2000  # characters
_DEEP = 200  # levels
_ROOT = Path(__file__).resolve().parent.parent.parent
_HELPER = """
import json, signal, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from evaluation.extraction.json_text import value_at
from evaluation.scorers.json_schema import validate
schema, text = json.load(sys.stdin)
import jsonschema, referencing
value = value_at(text, 0)[0].value
if hasattr(signal, "setitimer"):
    signal.setitimer(signal.ITIMER_VIRTUAL, float(sys.argv[2]))
print(validate(schema, value))
"""


def score(row: Row) -> dict[str, Any]:
    """correct: the last JSON value of the answer obeys the row's schema; None where the schema is missing or
    unusable.

    reason: no_schema, schema_parse_error (both unscored); invalid_json, schema_validation_failed,
    validation_too_slow. extracted: the value as written.
    """
    if is_missing(row.columns.get("schema")):
        return {"correct": None, "extracted": None, "reason": "no_schema"}
    schema = read_schema(row.columns["schema"])
    schema_text = _json_text(schema)
    if schema is None or schema_text is None or not schema_is_sound(schema_text):
        return {"correct": None, "extracted": None, "reason": _REASONS[BAD_SCHEMA]}
    found = find_value(row.answer, schema)
    if found is None:
        return {"correct": False, "extracted": None, "reason": "invalid_json"}
    text = row.answer[found.start : found.end]
    verdict = _limited(schema, found.value, text)
    correct = None if verdict == BAD_SCHEMA else verdict == VALID
    return {"correct": correct, "extracted": text, "reason": _REASONS[verdict]}


def find_value(answer: str, schema: Any) -> Found | None:
    """The value that the answer gives: the whole answer, else its last object or array of the schema's type.

    Without the type, a citation mark "[1]" behind the object would be taken for the answer.
    """
    whole = whole_value(answer)
    if whole:
        return whole
    found = values_in(answer)
    wanted = schema.get("type") if isinstance(schema, dict) else None
    wanted = {wanted} if isinstance(wanted, str) else set(wanted or ())
    fitting = [f for f in found if ("object" if isinstance(f.value, dict) else "array") in wanted]
    return (fitting or found or [None])[-1]


def read_schema(value: Any) -> dict[str, Any] | bool | None:
    """A schema from a loaded cell: object, truth value, JSON text or a dict's printed form; None if
    unreadable.
    """
    if isinstance(value, str):
        value = _from_text(value)
    if isinstance(value, dict):
        try:
            return without_nulls(value)
        except RecursionError:
            return None
    return value if isinstance(value, bool) else None


def _json_text(schema: Any) -> str | None:
    """None for what only Python can write: a set, or a tuple as a key."""
    try:
        return json.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        return None


def _from_text(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return None


def without_nulls(value: Any) -> Any:
    """The schema without keywords that are null: Parquet gives every row the keywords of all rows.

    {"const": null} alone keeps its meaning.
    """
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    nulls = [key for key, item in value.items() if item is None]
    kept = {key: without_nulls(item) for key, item in value.items() if item is not None}
    return {**kept, "const": None} if nulls == ["const"] else kept


def _validator(schema: Any) -> Any:
    """The validator of the schema's draft, the newest by default; its registry knows the drafts and fetches
    nothing.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY

    return validator_for(schema, default=Draft202012Validator)(schema, registry=REGISTRY)


@lru_cache(maxsize=4096)
def schema_is_sound(schema_text: str) -> bool:
    """Whether a schema (JSON text) is valid itself and every reference in it leads somewhere without a
    network.
    """
    schema = json.loads(schema_text)
    try:
        _validator(schema).check_schema(schema)
    except Exception:
        # not only SchemaError: a "$schema" that is a number, say, fails in many other ways
        return False
    return "$id" in schema_text or all(_resolves(schema, reference) for reference in _references(schema))


def _references(schema: Any) -> list[str]:
    found, open_parts = [], [schema]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, dict):
            found += [part["$ref"]] if isinstance(part.get("$ref"), str) else []
            open_parts += part.values()
        elif isinstance(part, list):
            open_parts += part
    return found


def _resolves(schema: Any, reference: str) -> bool:
    from jsonschema_specifications import REGISTRY
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    try:
        REGISTRY.with_resource("", resource).resolver().lookup(reference)
    except (Unresolvable, ValueError):
        return False
    return True


def validate(schema: Any, value: Any) -> str:
    """VALID, INVALID, or BAD_SCHEMA where the schema leads nowhere or in circles. No limit on time."""
    from referencing.exceptions import Unresolvable

    try:
        return VALID if _validator(schema).is_valid(value) else INVALID
    except Unresolvable:
        return BAD_SCHEMA
    except RecursionError:
        return INVALID if _depth(value) > _DEEP else BAD_SCHEMA
    except (OverflowError, ZeroDivisionError):
        return INVALID  # an infinite float (1e999) under multipleOf


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            item
            for part in level
            if isinstance(part, (dict, list))
            for item in (part.values() if isinstance(part, dict) else part)
        ]
    return depth


def _limited(schema: Any, value: Any, text: str) -> str:
    """validate(), in a helper process with a limit where the schema could make it slow."""
    if not _could_be_slow(schema, len(text)):
        return validate(schema, value)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _HELPER, str(_ROOT), str(HELPER_CPU_SECONDS)],
            input=json.dumps([schema, text]),
            capture_output=True,
            text=True,
            timeout=60,  # a backstop where there is no timer for CPU time
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TOO_SLOW
    verdict = done.stdout.strip()
    return verdict if verdict in _REASONS else TOO_SLOW


def _could_be_slow(schema: Any, text_length: int) -> bool:
    """Whether a pattern (or a comparison of all items with all) could take more than linear time on such a
    text.

    A pattern without repetition is linear, one with a single repetition at worst quadratic: harmless on short
    texts.
    """
    repetitions = [_repetitions(pattern) for pattern in _patterns(schema)]
    if any(count > 1 for count in repetitions):
        return True
    return text_length > _LONG_TEXT and (any(repetitions) or '"uniqueItems": true' in json.dumps(schema))


def _repetitions(pattern: str) -> int:
    many = sum(pattern.count(mark) for mark in "*+{")
    optional = pattern.count("?")
    return many + (optional if optional > 3 else 0)


def _patterns(schema: Any) -> list[str]:
    found, open_parts = [], [schema]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, dict):
            if isinstance(part.get("pattern"), str):
                found.append(part["pattern"])
            if isinstance(part.get("patternProperties"), dict):
                found += part["patternProperties"]
            open_parts += part.values()
        elif isinstance(part, list):
            open_parts += part
    return found
