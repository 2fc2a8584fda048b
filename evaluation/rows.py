"""One row of a response file as every scorer sees it.

Example: the file row {"id": "7", "outputs": "<think>2+2</think>Answer: 4", "gold": "#### 4"} becomes
Row(task=gsm8k.subset, id="7", answer="Answer: 4", state="ok", columns={...as loaded...}).
Pure and light: also run_inference.py, in another interpreter, may import this file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from evaluation.extraction.visible import visible_answer

OK, EMPTY, TRUNCATED = "ok", "empty", "truncated"


@dataclass(frozen=True)
class Row:
    """A response and the task data that belongs to it.

    answer: the visible answer (thinking stripped, outer white space removed); "" where state is not "ok".
    state: "ok"; "empty" (no visible text); "truncated" (a thought that never ended, so no answer was given).
    number: position in the file, from 0. columns: the row as loaded, "outputs" and "gold" under these names.
    rules: what the task's rule scorer returned for this row, where a judged scorer follows it.
    """

    task: str
    id: str | None
    number: int
    answer: str
    state: str
    columns: dict[str, Any]
    rules: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a column; `default` where it is absent, null or NaN."""
        value = self.columns.get(name)
        return default if is_missing(value) else value

    @property
    def gold(self) -> Any:
        return self.get("gold")

    @property
    def meta(self) -> dict[str, Any]:
        """The column "meta" as an object, also where it is JSON text; {} where there is none."""
        meta = self.get("meta")
        if isinstance(meta, str) and meta.lstrip().startswith("{"):
            try:
                meta = json.loads(meta)
            except (ValueError, RecursionError):
                return {}
        return meta if isinstance(meta, dict) else {}


def make_row(task: str, columns: dict[str, Any], number: int = 0) -> Row:
    """A Row from loaded columns (which already hold "outputs" and "gold" under these names)."""
    output = columns.get("outputs")
    while isinstance(output, list) and len(output) == 1:
        output = output[0]  # tools that can sample several answers write lists, or lists of lists
    if isinstance(output, str) and output is not columns.get("outputs"):
        columns = {**columns, "outputs": output}
    else:
        output = columns.get("outputs")
    answer, state = visible_answer(text_of(output))
    row_id = text_of(columns.get("id"))
    # an empty cell of a CSV is no id: two of them would be the same one
    return Row(task, row_id if row_id.strip() else None, number, answer, state, columns)


def is_missing(value: Any) -> bool:
    """Only a true null is missing: None, or the NaN that other tools write for it."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def text_of(value: Any) -> str:
    """The text form of a loaded value: "" for null, JSON for lists and objects, 12.0 as "12"."""
    if is_missing(value):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
