"""Reads and writes absolute_metrics/MODEL/: what compute_metrics.py leaves and compare_models.py takes.

    metrics.csv          one row, the published columns; empty where missing
    metrics.json         {task: nested metrics, counts, reasons, breakdowns}
    capabilities.csv     capability, unit, value, metrics, missing: aggregates of one unit only
    samples/TASK.parquet one row a sample (below)
    run.json             how it was made (below)

A sample table has the columns
    id        text, the row's id; null where it had none
    key       text, what pairs it with the same sample of another model: the id, else "prompt:HASH"
    cluster   text, samples that share a source question, passage or conversation
    row       int, position in the response file
    state     ok | empty | truncated (the visible answer, see rows.py)
    reason    text code: why a value is missing, or why the answer counts as wrong; null
    extracted text, the answer as read out of the response; null
    prompt, answer, gold   texts for people, cut in the middle where very long
    judgements  JSON text: [{"mode", "value", "status", "reply"}, …]; null where nothing was asked
    by_…      text, what a breakdown groups by (language, subject, …)
and every per-sample value of the task's scorer under its own name (tasks.py says which metric reads which).
"""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from evaluation.files import whole_file
from evaluation.taxonomy import CAPABILITIES, COLUMN_BY_NAME, COLUMNS

FIXED_COLUMNS = (
    "id",
    "key",
    "cluster",
    "row",
    "state",
    "reason",
    "extracted",
    "prompt",
    "answer",
    "gold",
    "judgements",
)


# long texts for people; statistics do without them
TEXT_COLUMNS = ("extracted", "prompt", "answer", "gold", "judgements")


class ResultError(ValueError):
    """A result folder or file that cannot be used; the message names it and the remedy."""


@dataclass
class SampleTable:
    """One task's samples. columns: name -> list, all of one length; a missing value is None."""

    task: str
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["key"])

    def numbers(self, name: str) -> Any:
        """A value column as a float array of shape (n,), NaN where missing or where there is no such
        column."""
        import numpy as np

        values = self.columns.get(name)
        if values is None:
            return np.full(len(self), np.nan)
        return np.array([np.nan if v is None else float(v) for v in values], dtype=float)


@dataclass
class ModelResult:
    """A model's result as the comparison sees it.

    values: metrics.csv, column -> value or None. run: run.json, None for a bare CSV (which has no samples).
    """

    path: Path
    name: str
    values: dict[str, float | None]
    run: dict[str, Any] | None = None
    _samples: dict[str, SampleTable | None] = field(default_factory=dict, repr=False)

    @property
    def has_samples(self) -> bool:
        return self.run is not None

    @cached_property
    def tasks_with_samples(self) -> tuple[str, ...]:
        if not self.has_samples:
            return ()
        return tuple(
            sorted(p.name.removesuffix(".parquet") for p in (self.path / "samples").glob("*.parquet"))
        )

    def samples(self, task: str) -> SampleTable | None:
        """The per-sample table of a task, None where there is none. Kept after the first reading."""
        if task not in self._samples:
            self._samples[task] = (
                read_samples(self.path / "samples" / f"{task}.parquet") if self.run else None
            )
        return self._samples[task]

    def scores(self, task: str) -> SampleTable | None:
        """The table without its long texts (TEXT_COLUMNS): all that statistics need, and small. Not kept."""
        if not self.has_samples:
            return None
        return read_samples(self.path / "samples" / f"{task}.parquet", without=TEXT_COLUMNS)

    def answers(self, task: str) -> SampleTable | None:
        """The keys and visible answers alone. Not kept."""
        if not self.has_samples:
            return None
        return read_samples(
            self.path / "samples" / f"{task}.parquet", only=("key", "side", "by_side", "answer")
        )


def write_samples(path: Path, table: SampleTable, metadata: dict[str, str] | None = None) -> None:
    """Writes one task's table (Parquet, zstd). Columns of truth values stay bool, numbers become float64."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, values in table.columns.items():
        present = [v for v in values if v is not None]
        if name == "row":
            kind = pa.int64()
        elif name in FIXED_COLUMNS or name.startswith("by_") or any(isinstance(v, str) for v in present):
            kind = pa.string()
            values = [None if v is None else _clean(str(v)) for v in values]
        elif present and all(isinstance(v, bool) for v in present):
            kind = pa.bool_()
        else:
            kind = pa.float64()
            values = [None if v is None else float(v) for v in values]
        arrays[name] = pa.array(values, type=kind)
    tab = pa.table(arrays).replace_schema_metadata({"task": table.task, **(metadata or {})})
    with whole_file(path, "wb") as handle:
        pq.write_table(tab, handle, compression="zstd")


def _clean(text: str) -> str:
    """Lone surrogates, which JSON can carry and UTF-8 cannot, become the replacement character."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()


def read_samples(path: Path, without: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> SampleTable | None:
    """A task's table, None where the file does not exist; columns in `without`, or not in `only`, are not
    read.

    Raises ResultError where it cannot be read.
    """
    import pyarrow.parquet as pq

    if not path.exists():
        return None
    try:
        with pq.ParquetFile(path) as file:
            names = [name for name in file.schema_arrow.names if name not in without]
            names = [name for name in names if not only or name in only]
            table = file.read(columns=names)
    except Exception as error:
        raise ResultError(f"{path}: not a sample table ({error}). Run compute_metrics.py again.") from None
    return SampleTable(path.name.removesuffix(".parquet"), table.to_pydict())


def write_metrics_csv(path: Path, model_name: str, values: dict[str, float | None]) -> None:
    """One row under the published columns; a missing value is an empty cell."""
    with whole_file(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["", *(column.name for column in COLUMNS)])
        cells = (values.get(column.name) for column in COLUMNS)
        writer.writerow([model_name, *("" if v is None else repr(float(v)) for v in cells)])


def read_result(path: Path) -> ModelResult:
    """A result folder of ours, or a metrics CSV (also a published `*_averaged.csv`).

    Raises ResultError: nothing there, no such columns, an unfinished folder.
    """
    path = Path(path)
    if path.is_dir():
        table, run_file = path / "metrics.csv", path / "run.json"
        for needed in (table, run_file):
            if not needed.exists():
                raise ResultError(
                    f"{path}: has no {needed.name}. Run compute_metrics.py for this model first."
                )
        name, values = _read_metrics_csv(table)
        return ModelResult(path, name, values, _read_run(run_file))
    if not path.exists():
        raise ResultError(f"{path}: no such result folder or metrics CSV. compute_metrics.py writes them.")
    name, values = _read_metrics_csv(path)
    if path.name == "metrics.csv" and (path.parent / "run.json").exists():
        return read_result(path.parent)
    return ModelResult(path, name, values)


def _read_run(path: Path) -> dict[str, Any]:
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultError(f"{path}: not valid JSON ({error}). Run compute_metrics.py again.") from None
    if not isinstance(run, dict):
        raise ResultError(f"{path}: not a record of a run. Run compute_metrics.py again.")
    return run


def _read_metrics_csv(path: Path) -> tuple[str, dict[str, float | None]]:
    with open(path, encoding="utf-8-sig", newline="") as handle:
        lines = [line for line in csv.reader(handle) if line]
    if len(lines) < 2:
        raise ResultError(f"{path}: has {len(lines)} line(s), a header and one row of metrics are needed.")
    if len(lines) > 2:
        raise ResultError(f"{path}: has {len(lines) - 1} rows of metrics. Leave the one of this model.")
    header, cells = lines[0], lines[1]
    if len(cells) != len(header):
        raise ResultError(
            f"{path}, row 2: {len(cells)} cells under {len(header)} columns. Export the CSV again."
        )
    values: dict[str, float | None] = {}
    name = cells[0]
    for column, cell in zip(header[1:], cells[1:], strict=True):
        if column == "model_name":
            name = cell or name
            continue
        if column in COLUMN_BY_NAME or _is_number(cell):
            values[column] = _number(cell, path, column)
    if not any(column.name in values for column in COLUMNS):
        raise ResultError(f"{path}: none of its columns is a CapTrack metric (such as {COLUMNS[0].name!r}).")
    return name, values


def _is_number(cell: str) -> bool:
    try:
        return float(cell) not in (float("inf"), float("-inf"))
    except ValueError:
        return False


def _number(cell: str, path: Path, column: str) -> float | None:
    text = cell.strip()
    if text == "" or text.lower() in ("nan", "none", "null", "n/a"):
        return None
    try:
        value = float(text)
    except ValueError:
        raise ResultError(f"{path}, row 2, column {column!r}: {cell!r} is not a number.") from None
    if value in (float("inf"), float("-inf")):
        raise ResultError(f"{path}, row 2, column {column!r}: infinite. Compute the metrics again.")
    return value


def write_capabilities(path: Path, values: dict[str, float | None]) -> None:
    """capabilities.csv: the mean of a capability's columns of one unit; a capability of two units has two
    lines."""
    groups: dict[tuple[str, str], list[float | None]] = {}
    for column in COLUMNS:
        groups.setdefault((column.capability, column.unit), []).append(values.get(column.name))
    with whole_file(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["group", "capability", "name", "unit", "value", "metrics", "missing"])
        for (capability, unit), found in groups.items():
            group, name = CAPABILITIES[capability]
            there = [v for v in found if v is not None]
            mean = repr(math.fsum(there) / len(there)) if there else ""
            writer.writerow([group, capability, name, unit, mean, len(there), len(found) - len(there)])
