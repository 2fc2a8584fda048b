"""report.html of one model: its metrics, what is missing, and its samples.

write_model_report(Path("absolute_metrics/demo-base")) → absolute_metrics/demo-base/report.html
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluation import DEFINITIONS_VERSION
from evaluation.aggregate import take
from evaluation.comparison.analysis import metric_of
from evaluation.report.facts import gaps_of, how_of, made_of, value_text
from evaluation.report.page import write_page
from evaluation.report.samples import PAGE_TEXT, Sides, block, measures_of
from evaluation.report.texts import visible
from evaluation.results import ModelResult, ResultError, read_result, read_samples
from evaluation.taxonomy import CAPABILITIES, COLUMNS, GROUPS


def write_model_report(folder: Path) -> Path:
    """Writes FOLDER/report.html for a result folder of compute_metrics.py; returns its path.

    Raises ResultError where the folder holds no result.
    """
    folder = Path(folder)
    result = read_result(folder)
    if not result.has_samples:
        raise ResultError(
            f"{folder}: a bare metrics CSV has no samples. Run compute_metrics.py for the model."
        )
    blocks, constants = _blocks(result)
    there = {b["task"]: {m["key"] for m in b["measures"]} for b in blocks}
    nested = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    values = {
        "name": result.name,
        "stamps": ["Offline demo judge, not for reporting."] if result.run.get("demo_judge") else [],
        "groups": _groups(result, nested, there, constants),
        "without": [c.name for c in COLUMNS if c.row and "_" not in c.capability and c.task not in nested],
        "tasks": _tasks(blocks),
        "gaps": [(result.name, gaps_of(result))],
        "made": made_of([result]),
        "definitions": DEFINITIONS_VERSION,
        "uninformative": [
            f"{c.name} is {constants[key]:g} for every sample"
            for c in COLUMNS
            if c.row and (m := metric_of(c.name)) and (key := (c.task, m.column)) in constants
        ],
        "any_samples": bool(blocks),
        "shown": sum(len(b["records"]) for b in blocks),
        "total": sum(b["total"] for b in blocks),
        "page": {"models": [[visible(result.name)]], "names": [visible(result.name)]},
    }
    return write_page(folder / "report.html", "model.html", values, blocks)


def _blocks(result: ModelResult) -> tuple[list[dict[str, Any]], dict[tuple[str, str], float]]:
    import numpy as np

    blocks, constants, room = [], {}, PAGE_TEXT
    tasks = result.tasks_with_samples
    for left, task in zip(range(len(tasks), 0, -1), tasks, strict=True):
        table = read_samples(result.path / "samples" / f"{task}.parquet")
        sides = Sides(task, (result,), (table,), (np.arange(len(table)),))
        measures = measures_of(task, sides)
        found, used = block(sides, measures, room // left)
        room -= used
        blocks.append({"pair": 0, **found})
        constants |= {(task, m.key): m.constant for m in measures if m.constant is not None}
    return blocks, constants


def _groups(result: ModelResult, nested: dict, there: dict, constants: dict) -> list[dict[str, Any]]:
    """Capabilities with the metrics of the tasks that have responses, in the order of the tree; deep dives
    apart."""
    groups = []
    for group, title in GROUPS.items():
        parts: dict[str, list[dict[str, Any]]] = {"main": [], "deep": []}
        for key, (of, name) in CAPABILITIES.items():
            columns = [c for c in COLUMNS if c.capability == key and (c.task in nested or c.task in there)]
            if of == group and columns:
                metrics = [_metric(c, result, nested, there, constants) for c in columns]
                parts["deep" if columns[0].row == "" or "_" in key else "main"].append(
                    {"key": key, "name": name, "metrics": metrics}
                )
        groups.append({"key": group, "title": title, **parts})
    return groups


def _metric(column: Any, result: ModelResult, nested: dict, there: dict, constants: dict) -> dict[str, Any]:
    metric = metric_of(column.name)
    value = result.values.get(column.name)
    entry = nested.get(column.task)
    samples = (entry or {}).get("samples") or {}
    judged = samples.get("judged") or (0, 0)
    key = metric.column if metric else ""
    notes = []
    if value is None:
        notes.append("no sample has a value")
    if (column.task, key) in constants:
        notes.append(f"uninformative: {constants[column.task, key]:g} for every sample")
    return {
        "name": column.name,
        "task": column.task,
        "how": how_of(metric),
        "value": value_text(value, column.unit),
        "scored": f"{take(entry['n'], column.path) or 0:,} of {samples.get('total', 0):,}" if entry else "",
        "judged": f"{judged[0]:,} of {judged[1]:,}" if judged[1] else "",
        "href": f"#samples/0/{column.task}/{key}" if key in there.get(column.task, ()) else "",
        "notes": notes,
    }


def _tasks(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tasks with the outcomes of their first measure, the most wrong answers first."""
    listed = []
    for b in blocks:
        first = b["measures"][0] if b["measures"] else None
        flag = first is not None and first["flag"] and first["direction"] > 0
        counts = {code: count for code, _, count, _ in first["outcomes"]} if flag else {}
        listed.append(
            {
                "task": b["task"],
                "total": b["total"],
                "href": f"#samples/0/{b['task']}",
                "judged": flag,
                "counts": [
                    {"count": counts.get(code, 0), "href": f"#samples/0/{b['task']}/{first['key']}/{code}"}
                    for code in ("l", "h", "-")
                ] if flag else [],
            }
        )  # fmt: skip
    wrong = {t["task"]: t["counts"][0]["count"] / max(1, t["total"]) if t["judged"] else -1 for t in listed}
    return sorted(listed, key=lambda t: -wrong[t["task"]])
