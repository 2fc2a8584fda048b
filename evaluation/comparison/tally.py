"""Forgetting statistics: of one adapted model and group, what fell, what rose, and what is worst."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.comparison.model import MISSING, OVERALL, GroupResult, PairResult, TaskPairs


@dataclass(frozen=True)
class Tally:
    """Forgetting statistics of one adapted model and group. Counts are beyond the interval where there is
    one.

    fell, rose: worse and better in the row's direction; drifted: moved rows of direction 0.
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


def tally(pair: PairResult, group: GroupResult) -> Tally:
    """Counts what fell and rose in a group; the worst three rows by their deviation in the row's
    direction."""
    rows = [r for r in pair.rows.values() if r.group == group.key or group.key == OVERALL]
    columns = dict.fromkeys(c for row in rows for c in row.columns)
    metrics = [pair.metrics[c] for c in columns if pair.metrics[c].deviation is not None]
    signs = [(_sign(r.mean, r.interval_low, r.interval_high, r.has_interval), r.direction) for r in rows]
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
        sum(s * d < 0 for s, d in signs),
        sum(s * d > 0 for s, d in signs),
        sum(s != 0 and d == 0 for s, d in signs),
        len(metrics),
        sum(s < 0 for s in metric_signs),
        sum(s > 0 for s in metric_signs),
        tuple((title, mean) for directed, title, mean in worst[:3] if directed < 0),
        sum(t.forgotten for t in flipped) if flipped else None,
        sum(t.gained for t in flipped) if flipped else None,
        sum(pair.metrics[c].status == MISSING for c in columns),
    )  # fmt: skip


def _sign(value: float | None, low: float | None, high: float | None, has_interval: bool) -> int:
    if value is None:
        return 0
    if has_interval:
        return 1 if low > 0 else -1 if high < 0 else 0
    return (value > 0) - (value < 0)
