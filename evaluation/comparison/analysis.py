"""From two results to a PairResult, from several pairs to a Comparison: deviations, pairs, intervals,
verdicts.

Reads sample tables through ModelResult, writes nothing. The way of a number: metrics.csv values → deviation
of a metric → mean of its row → mean of its group; beside it sample tables → pairs → influence values →
interval of the same metric, row and group, with the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluation.comparison import statistics as st
from evaluation.comparison.deviations import (
    ERROR,
    EXCLUDE,
    ZERO,
    MissingError,
    RowPlan,
    group_mean,
    relative_deviation,
    row_mean,
    status_with_base_quality,
)
from evaluation.comparison.flips import count_flips
from evaluation.comparison.model import (
    COULD_NOT_TELL,
    DRIFTED,
    FORGOT,
    GAINED,
    MAYBE,
    MISSING,
    NO_CHANGE,
    NO_DATA,
    NO_SAMPLES,
    OK,
    OVERALL,
    ZERO_BASE,
    Comparison,
    Difference,
    GroupResult,
    MetricResult,
    PairResult,
    RowResult,
    Unpaired,
)
from evaluation.comparison.pairing import PairedTask, PairingError, Units, pair_task
from evaluation.comparison.sameness import same_in_tasks
from evaluation.comparison.truncation import cut_shares
from evaluation.comparison.words import points_text, signed
from evaluation.results import ModelResult
from evaluation.tasks import TASKS, Metric
from evaluation.taxonomy import COLUMN_BY_NAME, COLUMNS, GROUPS

FALSE_FINDS = 0.05  # q below which a row counts as proven
WIDE = 10.0  # percent: a wider half-interval that spans zero says nothing
SCORE_RANGE = {"share": (0.0, 1.0), "rating 1-10": (1.0, 10.0)}  # what an unjudged sample could have scored


@dataclass(frozen=True)
class Rules:
    """missing: zero | exclude | error. low_base: keep | exclude."""

    missing: str = "zero"
    low_base: str = "keep"


def metric_of(column: str) -> Metric | None:
    """The entry of tasks.py behind a column of metrics.csv."""
    known = COLUMN_BY_NAME[column]
    task = TASKS.get(known.task)
    return next((m for m in task.metrics if m.path == known.path), None) if task else None


def compare_pair(
    name: str,
    base: Sequence[ModelResult],
    adapted: Sequence[ModelResult],
    plans: Sequence[RowPlan],
    rules: Rules,
    differences: tuple[Difference, ...] = (),
    step: float | None = None,
) -> PairResult:
    """One adapted model (one or several runs) against its base.

    Tasks whose samples cannot be paired (no key, or one twice) are in `unpaired`; the others go on. Raises
    ResultError (a table that cannot be read) and MissingError (`missing: error`).
    """
    units = Units()
    tasks, unpaired = _pair_tasks(base, adapted, units)
    values_b, values_a = mean_values(base), mean_values(adapted)
    names = dict.fromkeys([c.name for c in COLUMNS] + [c for plan in plans for c in plan.columns])
    metrics = {c: _metric(c, values_b.get(c), values_a.get(c), tasks, base, adapted, rules) for c in names}
    if rules.missing == ERROR:
        absent = [c for plan in plans for c in plan.columns if metrics[c].status == MISSING]
        if absent:
            raise MissingError(f"{name}: missing {', '.join(dict.fromkeys(absent))} (missing: error)")
    rows = {plan.title: _row(plan, metrics, rules) for plan in plans}
    rows = _correct(rows)
    groups = {
        key: _group(key, title, [r for r in rows.values() if r.group == key], metrics)
        for key, title in GROUPS.items()
    }
    groups = {key: group for key, group in groups.items() if group.rows}
    infos = {t: replace(count_flips(p), cut=cut_shares(base, adapted, t)) for t, p in tasks.items()}
    return PairResult(
        name,
        base[0].name,
        adapted[0].name,
        len(base),
        len(adapted),
        metrics,
        rows,
        groups,
        _overall(groups, rows, metrics),
        infos,
        differences,
        bool(tasks),
        step,
        same_in_tasks(base[0], adapted[0], tasks),
        unpaired,
    )


def mean_values(runs: Sequence[ModelResult]) -> dict[str, float | None]:
    """metrics.csv averaged over runs; a column is None where a run lacks it."""
    columns = dict.fromkeys(column for run in runs for column in run.values)
    result: dict[str, float | None] = {}
    for column in columns:
        values = [run.values.get(column) for run in runs]
        result[column] = None if None in values else math.fsum(values) / len(values)
    return result


def _pair_tasks(
    base: Sequence[ModelResult], adapted: Sequence[ModelResult], units: Units
) -> tuple[dict[str, PairedTask], tuple[Unpaired, ...]]:
    common = set.intersection(*(set(r.tasks_with_samples) for r in (*base, *adapted)))
    tasks, unpaired = {}, []
    for task in (t for t in TASKS if t in common):
        tables = [[r.scores(task) for r in side] for side in (base, adapted)]
        names = (_with_file(base[0], task), _with_file(adapted[0], task))
        try:
            tasks[task] = pair_task(tables[0], tables[1], units, names)
        except PairingError as error:
            unpaired.append(Unpaired(task, str(error), error.is_error))
    return tasks, tuple(unpaired)


def _with_file(result: ModelResult, task: str) -> str:
    """A model's name with the response file that a task was read from, where it is known."""
    facts = ((result.run or {}).get("tasks") or {}).get(task) or {}
    file = facts.get("file")
    return f"{result.name} ({file})" if file else result.name


def _metric(
    column: str,
    base: float | None,
    adapted: float | None,
    tasks: dict[str, PairedTask],
    base_results: Sequence[ModelResult],
    adapted_results: Sequence[ModelResult],
    rules: Rules,
) -> MetricResult:
    deviation, points, status = relative_deviation(base, adapted)
    known = COLUMN_BY_NAME.get(column)
    if known is None:
        return MetricResult(
            column, "", "", 0, base, adapted, deviation, points, status, status == OK, note="unknown column"
        )
    note = ""
    if status == MISSING:
        lacking = [n for n, v in (("base", base), ("adapted", adapted)) if v is None]
        note = f"missing in {' and '.join(lacking)}"
    elif status == ZERO_BASE:
        note = "base is 0: no percent exists"
    result = MetricResult(
        column, known.task, known.unit, known.direction, base, adapted, deviation, points, status,
        status == OK,
        note=note,
        judged_base=_judged(base_results, known.task),
        judged_adapted=_judged(adapted_results, known.task),
    )  # fmt: skip
    pairs = tasks.get(known.task)
    metric = metric_of(column)
    if pairs is None or metric is None or status == MISSING:
        return result
    result = _with_samples(result, metric, pairs)
    status = status_with_base_quality(status, result.quality, rules.low_base)
    return replace(result, status=status, counted=status == OK)


def _judged(runs: Sequence[ModelResult], task: str) -> tuple[int, int] | None:
    """(judged, asked) over all runs of a model; None where none of them asked a judge."""
    found = [(((r.run or {}).get("tasks") or {}).get(task) or {}).get("judged") for r in runs]
    counts = [c for c in found if isinstance(c, (list, tuple)) and len(c) == 2 and c[1]]
    return (sum(int(c[0]) for c in counts), sum(int(c[1]) for c in counts)) if counts else None


def _with_samples(result: MetricResult, metric: Metric, pairs: PairedTask) -> MetricResult:
    import numpy as np

    scores_b, scores_a = pairs.numbers(metric.column)
    per_b, per_a = pairs.numbers(metric.per) if metric.per else (None, None)
    complete = np.isfinite(scores_b).all(axis=0) & np.isfinite(scores_a).all(axis=0)
    if metric.per:
        complete &= np.isfinite(per_b).all(axis=0) & np.isfinite(per_a).all(axis=0)
    n = int(complete.sum())
    unscored = len(complete) - n
    if n == 0:
        return replace(result, unscored=unscored, note=result.note or "no sample is scored for both models")
    if metric.statistic not in (*st.LINEAR, *st.RESAMPLED):
        return replace(result, pairs=n, unscored=unscored)
    paired = st.pair_up(
        metric.statistic,
        scores_b[:, complete],
        scores_a[:, complete],
        pairs.clusters[complete],
        per_b[:, complete] if metric.per else None,
        per_a[:, complete] if metric.per else None,
    )
    if not (math.isfinite(paired.base) and math.isfinite(paired.adapted)):
        return replace(result, pairs=n, unscored=unscored, note=result.note or "nothing to divide by")
    spread = st.combine([paired], [1.0])
    test = st.metric_test(paired, ordinal=result.unit == "rating 1-10")
    points = st.points_interval(paired)
    low, high = st.percent_interval(spread) if spread else (None, None)
    return replace(
        result,
        paired=paired,
        pairs=n,
        unscored=unscored,
        clusters=paired.n_clusters,
        paired_deviation=paired.deviation,
        quality=st.base_quality(paired) if result.status == OK else "",
        se=spread.se if spread else None,
        df=spread.df if spread else None,
        low=low,
        high=high,
        points_low=points[0] if points else None,
        points_high=points[1] if points else None,
        p=test[0] if test else None,
        test=test[1] if test else "",
        smallest=st.smallest_change(paired.contested / n, n) if paired.values_are_flags else None,
        forgotten=paired.forgotten if paired.values_are_flags else None,
        gained=paired.gained if paired.values_are_flags else None,
        bounds=_bounds(result, metric, pairs),
    )


def _bounds(result: MetricResult, metric: Metric, pairs: PairedTask) -> tuple[float, float | None] | None:
    """The deviation with unjudged samples at worst and at best; None where all are judged or it is no
    mean."""
    if metric.statistic != "mean" or result.unit not in SCORE_RANGE:
        return None
    sides = []
    for table in (pairs.base[0], pairs.adapted[0]):
        scores = table.columns.get(metric.column) or []
        reasons = table.columns.get("reason") or [None] * len(scores)
        judged = [float(s) for s in scores if s is not None]
        unjudged = sum(
            s is None and str(r).startswith("judge_") for s, r in zip(scores, reasons, strict=True)
        )
        sides.append((math.fsum(judged), len(judged), unjudged))
    if sides[0][2] + sides[1][2] == 0:
        return None
    return st.missing_bounds(sides[0], sides[1], *SCORE_RANGE[result.unit])


def _row(plan: RowPlan, metrics: dict[str, MetricResult], rules: Rules) -> RowResult:
    mine = {c: metrics[c] for c in plan.columns}
    numbers = row_mean(
        {c: m.deviation for c, m in mine.items()}, {c: m.status for c, m in mine.items()}, rules.missing
    )
    unreliable = tuple(c for c, m in mine.items() if m.quality == "unreliable")
    missing = tuple(c for c, m in mine.items() if m.status == MISSING)
    zero_base = tuple(c for c, m in mine.items() if m.status == ZERO_BASE)
    without_low = None
    if any(c in numbers.weights for c in unreliable) and numbers.mean is not None:
        rest = {c: (MISSING if c in unreliable else m.status) for c, m in mine.items()}
        kept = {c: m.deviation for c, m in mine.items() if c not in unreliable}
        without_low = row_mean(kept, {c: rest[c] for c in kept}, rules.missing).mean
    row = RowResult(
        plan.title, plan.group, plan.capability, plan.columns, plan.direction,
        numbers.mean, numbers.std, numbers.share, numbers.present,
        missing, zero_base, unreliable, without_low, numbers.weights,
        len(missing) if rules.missing == ZERO and numbers.mean is not None else 0,
    )  # fmt: skip
    spread = _spread(numbers.weights, metrics)
    if spread:
        low, high = st.percent_interval(spread)
        row = replace(
            row,
            paired_mean=spread.deviation,
            se=spread.se,
            df=spread.df,
            interval_low=low,
            interval_high=high,
            p=st.t_test(spread),
        )
    bounds = _row_bounds(numbers.weights, metrics)
    incomplete = bounds is not None and bounds[0] < 0 and (bounds[1] is None or bounds[1] > 0)
    row = replace(row, bounds=bounds, incomplete=incomplete)
    return replace(row, notes=_row_notes(row, metrics, rules))


def _spread(weights: dict[str, float], metrics: dict[str, MetricResult]) -> st.Spread | None:
    paired = [metrics[c].paired for c in weights]
    if not paired or any(p is None for p in paired):
        return None
    return st.combine(paired, list(weights.values()))


def _row_bounds(
    weights: dict[str, float], metrics: dict[str, MetricResult]
) -> tuple[float, float | None] | None:
    if not any(metrics[c].bounds for c in weights):
        return None
    low, high = 0.0, 0.0
    unbounded = False
    for column, weight in weights.items():
        metric = metrics[column]
        ends = metric.bounds or (metric.deviation, metric.deviation)
        low += weight * ends[0]
        if ends[1] is None:
            unbounded = True
        else:
            high += weight * ends[1]
    return low, None if unbounded else high


def _row_notes(row: RowResult, metrics: dict[str, MetricResult], rules: Rules) -> tuple[str, ...]:
    notes = []
    if row.missing:
        effect = {"zero": "counted as 0", EXCLUDE: "left out"}.get(rules.missing, "")
        notes.append(f"missing ({effect}): {', '.join(row.missing)}")
    kept = [c for c in row.low if c in row.weights]
    left_out = [c for c in row.low if c not in row.weights]
    for what, columns in (
        ("base is 0, no percent, out of the mean", row.zero_base),
        ("base too low for a percent, kept in the mean", kept),
        ("base too low for a percent, out of the mean", left_out),
    ):
        if columns:
            notes.append(f"{what}: {', '.join(f'{c} ({points_text(metrics[c])})' for c in columns)}")
    if row.mean_without_low is not None:
        notes.append(f"mean without the low bases: {signed(row.mean_without_low)} %")
    if row.paired_mean is not None and row.mean is not None and abs(row.paired_mean - row.mean) >= 0.05:
        notes.append(f"on the samples that both models have: {signed(row.paired_mean)} %")
    without = [c for c in row.weights if metrics[c].paired is None]
    if without and len(without) < len(row.weights):
        notes.append(f"no interval, no paired samples for: {', '.join(without)}")
    if row.incomplete:
        notes.append("unjudged samples could turn the sign")
    return tuple(notes)


def _correct(rows: dict[str, RowResult]) -> dict[str, RowResult]:
    """q over the rows of one adapted model, then each row's verdict."""
    tested = [row for row in rows.values() if row.p is not None]
    for row, q in zip(tested, st.benjamini_hochberg([row.p for row in tested]), strict=True):
        rows[row.title] = replace(row, q=q)
    return {title: replace(row, verdict=verdict_of(row)) for title, row in rows.items()}


def verdict_of(row: RowResult) -> str:
    """What may be said of a row; one of the words of model.py."""
    if row.mean is None:
        return NO_DATA
    if not row.has_interval:
        return NO_SAMPLES
    low, high = row.interval_low, row.interval_high
    if low > 0 or high < 0:
        if row.incomplete:
            return COULD_NOT_TELL
        if row.q is None or row.q >= FALSE_FINDS:
            return MAYBE
        if row.direction == 0:
            return DRIFTED
        return GAINED if (low > 0) == (row.direction > 0) else FORGOT
    return COULD_NOT_TELL if (high - low) / 2 > WIDE else NO_CHANGE


def _group(key: str, title: str, rows: Sequence[RowResult], metrics: dict[str, MetricResult]) -> GroupResult:
    mean, std = group_mean([r.share for r in rows], [r.std for r in rows if r.mean is not None])
    if all(r.mean is None for r in rows):  # zeros alone are no measurement
        mean = std = None
    low = [r for r in rows if any(c in r.weights for c in r.low)]
    # a row of low bases alone leaves the group; of the others the rest of the row stays
    rest = [r.mean_without_low if r in low else r.share for r in rows]
    group = GroupResult(
        key,
        title,
        tuple(r.title for r in rows),
        mean,
        std,
        tuple(r.title for r in rows if r.mean is None),
        tuple(r.title for r in low),
        group_mean(rest, [])[0] if low else None,
    )
    return _with_interval(group, _group_weights(rows), metrics)


def _group_weights(rows: Sequence[RowResult]) -> dict[str, float]:
    shares = [r for r in rows if r.share is not None]
    weights: dict[str, float] = {}
    for row in shares:
        for column, weight in row.weights.items():
            weights[column] = weights.get(column, 0.0) + weight / len(shares)
    return weights


def _overall(
    groups: dict[str, GroupResult], rows: dict[str, RowResult], metrics: dict[str, MetricResult]
) -> GroupResult | None:
    """The plain mean of the groups (uniform averaging over immediate children)."""
    with_mean = [g for g in groups.values() if g.mean is not None]
    if len(with_mean) < 2:
        return None
    mean, std = group_mean([g.mean for g in with_mean], [g.std for g in with_mean])
    weights: dict[str, float] = {}
    for group in with_mean:
        for column, weight in _group_weights([rows[t] for t in group.rows]).items():
            weights[column] = weights.get(column, 0.0) + weight / len(with_mean)
    without = tuple(g.key for g in groups.values() if g.mean is None)
    overall = GroupResult(OVERALL, "Mean of the groups", tuple(groups), mean, std, without)
    return _with_interval(overall, weights, metrics)


def _with_interval(
    group: GroupResult, weights: dict[str, float], metrics: dict[str, MetricResult]
) -> GroupResult:
    spread = _spread(weights, metrics)
    if spread is None:
        return group
    low, high = st.percent_interval(spread)
    return replace(
        group,
        paired_mean=spread.deviation,
        se=spread.se,
        df=spread.df,
        interval_low=low,
        interval_high=high,
    )


def drop_empty_rows(plans: Sequence[RowPlan], results: Sequence[ModelResult]) -> tuple[RowPlan, ...]:
    """Under `missing: exclude`, rows of which no result has any metric leave the tree, as left out on
    purpose."""
    present = {c for result in results for c, value in result.values.items() if value is not None}
    return tuple(plan for plan in plans if present & set(plan.columns))


def make_comparison(
    pairs: Sequence[PairResult],
    plans: Sequence[RowPlan],
    rules: Rules,
    aggregated: bool,
    results: Sequence[ModelResult],
    dropped: Sequence[str] = (),
    failed: Sequence[tuple[str, str]] = (),
) -> Comparison:
    """Joins the pairs and the facts of the runs that stand below every picture."""
    runs = [r.run for r in results if r.run]
    task_facts = [facts or {} for run in runs for facts in (run.get("tasks") or {}).values()]
    limits = {(run.get("options") or {}).get("limit") for run in runs}
    limits |= {(run.get("inference") or {}).get("limit") for run in runs}
    return Comparison(
        tuple(pairs),
        tuple(plan.title for plan in plans),
        {plan.title: plan.group for plan in plans},
        {plan.title: plan.direction for plan in plans},
        aggregated,
        rules.missing,
        rules.low_base,
        tuple(sorted({str(f["judge"]) for f in task_facts if f.get("judge")})),
        tuple(sorted({str(run["definitions_version"]) for run in runs if run.get("definitions_version")})),
        tuple(sorted(limit for limit in limits if isinstance(limit, int))),
        any(run.get("demo_judge") for run in runs),
        tuple(dropped),
        tuple(failed),
    )
