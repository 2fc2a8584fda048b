"""From a sample table to metrics: the named statistics, breakdowns and what-if bounds. No scorer aggregates.

Sums are exact (math.fsum), so the order in which samples were scored cannot show in a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from evaluation.results import SampleTable
from evaluation.tasks import TASKS, Metric

# reasons that say: this sample is out of the count for want of a judge's verdict
JUDGE_REASONS = ("judge_", "no_judge")


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _std(values: list[float]) -> float:
    centre = _mean(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / len(values))


def _percentile(values: list[float], share: float) -> float:
    """Linear interpolation between closest ranks, numpy's default."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "mean": _mean,
    "sum": math.fsum,
    "std": _std,
    "median": lambda values: _percentile(values, 0.5),
    "p90": lambda values: _percentile(values, 0.9),
    "min": min,
    "max": max,
    "count": len,
}


def present(table: SampleTable, column: str, rows: list[int] | None = None) -> list[float]:
    """The values of a column that are there, as numbers."""
    values = table.columns.get(column, ())
    chosen = values if rows is None else [values[i] for i in rows] if values else ()
    return [float(v) for v in chosen if v is not None]


def metric_value(metric: Metric, table: SampleTable, rows: list[int] | None = None) -> float | None:
    """The metric over all samples (or over `rows`); None where no sample has a value."""
    if metric.statistic == "ratio":
        return _ratio(metric, table, rows)
    values = present(table, metric.column, rows)
    return STATISTICS[metric.statistic](values) if values else None


def _ratio(metric: Metric, table: SampleTable, rows: list[int] | None) -> float | None:
    tops, bottoms = table.columns.get(metric.column), table.columns.get(metric.per)
    if tops is None or bottoms is None:
        return None
    chosen = range(len(table)) if rows is None else rows
    pairs = [(tops[i], bottoms[i]) for i in chosen if tops[i] is not None and bottoms[i] is not None]
    per = math.fsum(float(bottom) for _, bottom in pairs)
    return math.fsum(float(top) for top, _ in pairs) / per if per else None


def task_metrics(table: SampleTable) -> dict[str, Any]:
    """metrics.json of one task: its nested metrics, then `n` (samples with a value, by the same paths),
    `samples` (counts and reasons), `bounds` where it is judged, and `breakdowns` where rows have something
    to group by."""
    task = TASKS[table.task]
    nested: dict[str, Any] = {}
    sizes: dict[str, Any] = {}
    for metric in task.metrics:
        put(nested, metric.path, metric_value(metric, table))
        put(sizes, metric.path, len(present(table, metric.column)))
    nested["n"] = sizes
    nested["samples"] = counts(table)
    if task.judged:
        nested["bounds"] = judge_bounds(table)
    breakdowns = {
        name.removeprefix("by_"): breakdown(table, name)
        for name in sorted(table.columns)
        if name.startswith("by_")
    }
    if breakdowns:
        nested["breakdowns"] = breakdowns
    return nested


def put(nested: dict[str, Any], path: str, value: Any) -> None:
    """Sets nested["a"]["b"] for the path "a/b"."""
    *parents, last = path.split("/")
    for part in parents:
        nested = nested.setdefault(part, {})
    nested[last] = value


def take(nested: dict[str, Any], path: str) -> Any:
    """The value at "a/b"; None where the path does not exist."""
    value: Any = nested
    for part in path.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def counts(table: SampleTable) -> dict[str, Any]:
    """How many samples there are, how many have every metric's value, and why the others have not.

    `judged` counts the samples that needed a judge: [those with a verdict, all that needed one].
    """
    reasons: dict[str, int] = {}
    for reason in table.columns["reason"]:
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
    scored = sum(1 for i in range(len(table)) if is_scored(table, i))
    asked = [i for i, judgements in enumerate(table.columns["judgements"]) if judgements]
    unjudged = [i for i, reason in enumerate(table.columns["reason"]) if lacks_judge(reason)]
    return {
        "total": len(table),
        "scored": scored,
        # a row without an output has no answer that could be empty
        "empty": table.columns["state"].count("empty") - reasons.get("no_output", 0),
        "truncated": table.columns["state"].count("truncated"),
        "judged": [len(set(asked) - set(unjudged)), len(set(asked) | set(unjudged))],
        "reasons": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    }


def lacks_judge(reason: str | None) -> bool:
    return bool(reason) and reason.startswith(JUDGE_REASONS)


def is_scored(table: SampleTable, row: int) -> bool:
    """Whether a sample has at least one of its task's values and lacks none for want of a judge."""
    if lacks_judge(table.columns["reason"][row]):
        return False
    columns = {metric.column for metric in TASKS[table.task].metrics}
    return any(table.columns[c][row] is not None for c in columns if c in table.columns)


def judge_bounds(table: SampleTable) -> dict[str, list[float]]:
    """[worst, best] value of each mean whose samples partly lack a judge's verdict: all of them lowest, or
    highest."""
    missing = [i for i, reason in enumerate(table.columns["reason"]) if lacks_judge(reason)]
    bounds: dict[str, list[float]] = {}
    for metric in TASKS[table.task].metrics:
        if metric.statistic != "mean" or metric.column not in table.columns:
            continue
        values = present(table, metric.column)
        unknown = sum(1 for i in missing if table.columns[metric.column][i] is None)
        if unknown:
            total = math.fsum(values)
            n = len(values) + unknown
            bounds[metric.path] = [(total + unknown * edge) / n for edge in (metric.low, metric.high)]
    return bounds


def breakdown(table: SampleTable, column: str) -> dict[str, Any]:
    """The task's metrics for each value of a breakdown column, with its number of samples."""
    groups: dict[str, list[int]] = {}
    for i, value in enumerate(table.columns[column]):
        if value is not None:
            groups.setdefault(value, []).append(i)
    result: dict[str, Any] = {}
    for value, rows in sorted(groups.items()):
        nested: dict[str, Any] = {"n": len(rows)}
        for metric in TASKS[table.task].metrics:
            if metric.path.count("/") <= 1:
                put(nested, metric.path, metric_value(metric, table, rows))
        result[value] = nested
    return result
