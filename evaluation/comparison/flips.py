"""Which samples changed their verdict: forgotten, gained, both right, both wrong. What a person reads first.

A task's verdict is one per-sample column (tasks.py); tasks that describe a habit (style, scope, compliance
with under-specified requests) have none. flips.parquet has one row for each forgotten or gained sample:

    pair, task, flip, key, cluster, prompt, gold, base_answer, adapted_answer, base_extracted,
    adapted_extracted, base_reason, adapted_reason
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.comparison.model import PairResult, TaskPairs
from evaluation.comparison.pairing import PairedTask, Units, pair_task
from evaluation.files import whole_file
from evaluation.results import ModelResult
from evaluation.tasks import TASKS

FORGOTTEN, GAINED = "forgotten", "gained"


def verdict_columns(task: str) -> tuple[str, ...]:
    """The per-sample column(s) that say right or wrong; empty where the task has no such verdict."""
    return TASKS[task].verdict if task in TASKS else ()


def verdicts(pairs: PairedTask) -> tuple[Any, Any, Any] | None:
    """(base right, adapted right, judged for both), each of shape (n,) bool; None where the task has no
    verdict.

    Several runs: right is right in at least half of them.
    """
    import numpy as np

    columns = verdict_columns(pairs.info.task)
    if not columns:
        return None
    sides = []
    known = np.ones(len(pairs.keys), dtype=bool)
    values = [pairs.numbers(column) for column in columns]
    for side in (0, 1):
        score = values[0][side]
        whole = values[1][side] if len(values) > 1 else 1.0
        known &= np.isfinite(score).all(axis=0) & np.isfinite(whole + 0 * score).all(axis=0)
        sides.append((score >= whole).mean(axis=0) >= 0.5)
    return sides[0], sides[1], known


def count_flips(pairs: PairedTask) -> TaskPairs:
    """The pairing facts of a task with its flips counted."""
    found = verdicts(pairs)
    if found is None:
        return pairs.info
    base, adapted, known = found
    if not known.any():
        return pairs.info
    return replace(
        pairs.info,
        forgotten=int((base & ~adapted & known).sum()),
        gained=int((~base & adapted & known).sum()),
        both_right=int((base & adapted & known).sum()),
        both_wrong=int((~base & ~adapted & known).sum()),
    )


_FIELDS = (
    "pair", "task", "flip", "key", "cluster", "prompt", "gold",
    "base_answer", "adapted_answer", "base_extracted", "adapted_extracted", "base_reason", "adapted_reason",
)  # fmt: skip


def flips_of_task(name: str, base: ModelResult, adapted: ModelResult, task: str) -> Iterator[dict[str, Any]]:
    """The forgotten and gained samples of a task as records of _FIELDS; the first run's answers."""
    from evaluation.results import read_samples

    tables = [read_samples(r.path / "samples" / f"{task}.parquet") for r in (base, adapted)]
    if None in tables:
        return
    pairs = pair_task(tables[:1], tables[1:], Units(), (base.name, adapted.name))
    found = verdicts(pairs)
    if found is None:
        return
    right_b, right_a, known = found

    def cell(table: Any, column: str, place: int) -> str | None:
        values = table.columns.get(column)
        return None if values is None or values[place] is None else str(values[place])

    for i, key in enumerate(pairs.keys):
        if not known[i] or right_b[i] == right_a[i]:
            continue
        b, a = pairs.base_at[0][i], pairs.adapted_at[0][i]
        row = {
            "pair": name,
            "task": task,
            "flip": FORGOTTEN if right_b[i] else GAINED,
            "key": key,
            "cluster": cell(tables[0], "cluster", b),
            "prompt": cell(tables[0], "prompt", b) or cell(tables[1], "prompt", a),
            "gold": cell(tables[0], "gold", b) or cell(tables[1], "gold", a),
        }
        for field in ("answer", "extracted", "reason"):
            row[f"base_{field}"] = cell(tables[0], field, b)
            row[f"adapted_{field}"] = cell(tables[1], field, a)
        yield row


def write_flips(path: Path, pairs: Iterable[tuple[PairResult, ModelResult, ModelResult]]) -> int:
    """Writes flips.parquet task by task (texts of one task in memory); returns the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(field, pa.string()) for field in _FIELDS])
    written = 0
    with whole_file(path, "wb") as handle, pq.ParquetWriter(handle, schema, compression="zstd") as writer:
        for pair, base, adapted in pairs:
            for task, info in pair.tasks.items():
                if not (info.forgotten or info.gained):
                    continue
                rows = list(flips_of_task(pair.name, base, adapted, task))
                if rows:
                    writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                    written += len(rows)
    return written
