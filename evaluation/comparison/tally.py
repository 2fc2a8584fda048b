"""Forgetting statistics: of one adapted model and group, what fell, what rose, and what is worst."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.comparison.model import (
    MAYBE,
    MISSING,
    NO_SAMPLES,
    OVERALL,
    GroupResult,
    PairResult,
    RowResult,
    TaskPairs,
)

DRIFT = 2


@dataclass(frozen=True)
class Tally:
    """Forgetting statistics of one adapted model and group.

    fell, rose: rows worse and better in their direction, drifted: moved rows of direction 0. A row counts
    where its verdict does: its interval excludes zero (and unjudged samples could not turn the sign); without
    samples by its sign alone. fell_perhaps … are those among them that do not hold after correction for many
    rows ("perhaps"), so that fell − fell_perhaps rows are called forgotten. Metrics are not corrected: beyond
    their interval, or by sign.
    """

    group: str
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    rows: int
    fell: int
    rose: int
    drifted: int
    metrics: int
    metrics_fell: int
    metrics_rose: int
    worst: tuple[tuple[str, float], ...]
    forgotten: int | None
    gained: int | None
    missing: int
    fell_perhaps: int
    rose_perhaps: int
    drifted_perhaps: int


def tally(pair: PairResult, group: GroupResult) -> Tally:
    """Counts what fell and rose in a group; the worst three rows by their deviation in the row's
    direction."""
    rows = [r for r in pair.rows.values() if r.group == group.key or group.key == OVERALL]
    columns = dict.fromkeys(c for row in rows for c in row.columns)
    metrics = [pair.metrics[c] for c in columns if pair.metrics[c].deviation is not None]
    moved = [(_row_sign(r), r.verdict == MAYBE) for r in rows]
    fell, rose, drifted = ([perhaps for sign, perhaps in moved if sign == kind] for kind in (-1, 1, DRIFT))
    metric_signs = [
        _sign(m.deviation, m.low, m.high, m.low is not None) * m.direction for m in metrics
    ]  # fmt: skip
    worst = sorted(
        (r.mean * r.direction, r.title, r.mean) for r in rows if r.mean is not None and r.direction
    )
    tasks: list[TaskPairs] = [
        pair.tasks[t] for t in dict.fromkeys(m.task for m in metrics) if t in pair.tasks
    ]
    flipped = [t for t in tasks if t.forgotten is not None]
    return Tally(
        group.key, group.mean, group.std, group.interval_low, group.interval_high,
        len(rows),
        len(fell),
        len(rose),
        len(drifted),
        len(metrics),
        sum(s < 0 for s in metric_signs),
        sum(s > 0 for s in metric_signs),
        tuple((title, mean) for directed, title, mean in worst[:3] if directed < 0),
        sum(t.forgotten for t in flipped) if flipped else None,
        sum(t.gained for t in flipped) if flipped else None,
        sum(pair.metrics[c].status == MISSING for c in columns),
        sum(fell), sum(rose), sum(drifted),
    )  # fmt: skip


def _row_sign(row: RowResult) -> int:
    """1 better, -1 worse, DRIFT moved without being either, 0 not counted: by the row's verdict."""
    if row.mean is None or not (row.moved or row.verdict == NO_SAMPLES):
        return 0
    sign = _sign(row.mean, row.interval_low, row.interval_high, row.has_interval)
    return sign * row.direction if row.direction else DRIFT * abs(sign)


def _sign(value: float | None, low: float | None, high: float | None, has_interval: bool) -> int:
    if value is None:
        return 0
    if has_interval:
        return 1 if low > 0 else -1 if high < 0 else 0
    return (value > 0) - (value < 0)
