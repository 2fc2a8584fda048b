"""Where golden rows and real responses are, for every test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
SHARED = ROOT.parent / "shared"
REALDATA = SHARED / "realdata"


def decode_markers(value: Any) -> Any:
    """Golden inputs write NaN, arrays and repeats as markers; a loader delivers null, lists and text."""
    if isinstance(value, dict):
        if set(value) == {"$nan"}:
            return None
        if set(value) == {"$ndarray"}:
            return [decode_markers(item) for item in value["$ndarray"]]
        if set(value) == {"$repeat"}:
            return value["$repeat"][0] * value["$repeat"][1]
        if set(value) == {"$concat"}:
            return "".join(decode_markers(part) for part in value["$concat"])
        return {key: decode_markers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode_markers(item) for item in value]
    return value


def golden_rows(path: str) -> list[dict[str, Any]]:
    """The rows of tests/golden/PATH, markers decoded."""
    text = (GOLDEN / path).read_text(encoding="utf-8")
    return [decode_markers(json.loads(line)) for line in text.split("\n") if line.strip()]
