"""What a comparison is: plain records, made by analysis.py and read by pictures, tables, summary and report.

    Comparison
      pairs: one PairResult for an adapted model
        metrics: {"C1 Accuracy (PopQA)": MetricResult(base=0.336, adapted=0.341, deviation=1.39, low=-2.1,
        …), …} rows:    {"C1 Knowledge": RowResult(mean=9.4, std=20.3, low=2.0, high=17.1, verdict="gained",
        …), …} groups:  {"CAN": GroupResult(mean=-1.1, …), …};  overall: the mean of the groups
        tasks:   {"popqa.subset": TaskPairs(shared=500, forgotten=12, gained=19, …), …}

Deviations, means, spreads and interval ends are in percent of the base; `points` are in the metric's own
unit. None means "there is no such number", and a note says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluation.comparison.statistics import Paired

# a metric's place in its row's mean
OK = "ok"
MISSING = "missing"  # no value for one model or both
ZERO_BASE = "zero base"  # no percent exists
LOW_BASE = "unreliable base"  # left out only where low_base: exclude

# what a row's interval says; direction 0 never counts as better or worse
FORGOT, GAINED, DRIFTED = "forgot", "gained", "drifted"
MAYBE = "maybe"  # interval excludes zero, but not after correction for many rows
NO_CHANGE, COULD_NOT_TELL, NO_SAMPLES, NO_DATA = "no proven change", "could not tell", "no samples", "n/a"
OVERALL = "ALL"  # key of the mean of the groups
MOVED = (FORGOT, GAINED, DRIFTED, MAYBE)
SAME = 0.99  # share of answers equal to the base's from which an adapted model is held to be the base


@dataclass(frozen=True)
class MetricResult:
    """One metric of one adapted model.

    base, adapted: headline values (metrics.csv, mean over runs). deviation: percent, None for a zero base
    or a missing value. points: adapted − base. status: OK, MISSING, ZERO_BASE, LOW_BASE. counted: enters
    its row's mean as it is. quality: "" | "low base" | "unreliable" (see statistics.base_quality).
    paired_*, low, high, se, df: from the samples that both models have; `low`, `high` in percent,
    points_low, points_high in units. judged_base, judged_adapted: (judged, total). bounds: the deviation
    with the unjudged samples at worst and at best. smallest: the change in points that so many pairs can
    show. paired: influence values for further sums.
    """

    column: str
    task: str
    unit: str
    direction: int
    base: float | None
    adapted: float | None
    deviation: float | None
    points: float | None
    status: str
    counted: bool
    quality: str = ""
    note: str = ""
    pairs: int = 0
    clusters: int = 0
    unscored: int = 0
    paired_deviation: float | None = None
    se: float | None = None
    df: float | None = None
    low: float | None = None
    high: float | None = None
    points_low: float | None = None
    points_high: float | None = None
    p: float | None = None
    test: str = ""
    smallest: float | None = None
    forgotten: int | None = None
    gained: int | None = None
    judged_base: tuple[int, int] | None = None
    judged_adapted: tuple[int, int] | None = None
    bounds: tuple[float, float | None] | None = None
    paired: Paired | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class RowResult:
    """A heatmap row (capability) of one adapted model, or a single column where aggregation is off.

    mean, std: of the counted deviations (std with divisor n; None for a single column without aggregation).
    present of expected metrics have a percent. missing, zero_base, low: names of columns. mean_without_low:
    what the mean would be. share: what the row adds to its group's mean: `mean`, or 0 where all is missing
    and missing counts as zero, or None. weights: of each column in `mean`, for sums of influence values.
    zeros: how many missing entries stand in `mean` as 0.
    """

    title: str
    group: str
    capability: str
    columns: tuple[str, ...]
    direction: int
    mean: float | None
    std: float | None
    share: float | None
    present: int
    missing: tuple[str, ...] = ()
    zero_base: tuple[str, ...] = ()
    low: tuple[str, ...] = ()
    mean_without_low: float | None = None
    weights: dict[str, float] = field(default_factory=dict)
    zeros: int = 0
    paired_mean: float | None = None
    se: float | None = None
    df: float | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    p: float | None = None
    q: float | None = None
    bounds: tuple[float, float | None] | None = None
    incomplete: bool = False
    verdict: str = NO_DATA
    notes: tuple[str, ...] = ()

    @property
    def expected(self) -> int:
        return len(self.columns)

    @property
    def has_interval(self) -> bool:
        return self.interval_low is not None

    @property
    def moved(self) -> bool:
        """Whether the interval excludes zero (and unjudged samples could not turn the sign)."""
        return self.verdict in MOVED

    @property
    def flagged(self) -> bool:
        """Something about the cell must not be overlooked: missing entries, no percent, unreliable base."""
        return bool(self.missing or self.zero_base or self.low)


@dataclass(frozen=True)
class GroupResult:
    """CAN, WILL, HOW or overall. std: the published spread, sqrt(mean of squared row spreads) /
    sqrt(rows). No mean where none of the rows has one. missing_rows: rows (overall: groups) without a mean.
    low_rows: rows whose mean holds a base too low for a percent; mean_without_low: what the mean would be.
    """

    key: str
    title: str
    rows: tuple[str, ...]
    mean: float | None
    std: float | None
    missing_rows: tuple[str, ...] = ()
    low_rows: tuple[str, ...] = ()
    mean_without_low: float | None = None
    paired_mean: float | None = None
    se: float | None = None
    df: float | None = None
    interval_low: float | None = None
    interval_high: float | None = None


@dataclass(frozen=True)
class CutShares:
    """The share of a task's samples (0 to 1) that were cut off in each model, and what was cut."""

    what: str
    base: float
    adapted: float


@dataclass(frozen=True)
class TaskPairs:
    """How the samples of a task were paired, what was cut off, and what flipped (None where a task has no
    verdict of right or wrong)."""

    task: str
    base_rows: int
    adapted_rows: int
    shared: int
    clusters: int
    only_base: tuple[str, ...] = ()
    only_adapted: tuple[str, ...] = ()
    forgotten: int | None = None
    gained: int | None = None
    both_right: int | None = None
    both_wrong: int | None = None
    cut: tuple[CutShares, ...] = ()


@dataclass(frozen=True)
class Unpaired:
    """A task that both models have and whose samples cannot be paired: its deviations have no interval.

    is_error: the rows must be mended (a key twice); False where they carry nothing to pair them by.
    """

    task: str
    reason: str
    is_error: bool


@dataclass(frozen=True)
class Difference:
    """Something in which two results were made differently: what, and both values as short texts."""

    what: str
    base: str
    adapted: str

    def __str__(self) -> str:
        return f"{self.what}: {self.base} (base) against {self.adapted} (adapted)"


@dataclass(frozen=True)
class PairResult:
    """One adapted model against its base. same: (equal, compared) answers, see sameness.py."""

    name: str
    base_name: str
    adapted_name: str
    base_runs: int
    adapted_runs: int
    metrics: dict[str, MetricResult]
    rows: dict[str, RowResult]
    groups: dict[str, GroupResult]
    overall: GroupResult | None
    tasks: dict[str, TaskPairs]
    differences: tuple[Difference, ...] = ()
    has_samples: bool = False
    step: float | None = None
    same: tuple[int, int] = (0, 0)
    unpaired: tuple[Unpaired, ...] = ()

    @property
    def without_effect(self) -> bool:
        """So many answers are the base's, word for word, that the model can hardly be another one."""
        equal, compared = self.same
        return compared > 0 and equal >= SAME * compared

    @property
    def nothing_paired(self) -> bool:
        """Both models have sample tables of some task, and not one sample in common."""
        return bool(self.tasks or self.unpaired) and not any(t.shared for t in self.tasks.values())

    @property
    def nothing_in_common(self) -> bool:
        """No metric has a value for both models."""
        return bool(self.rows) and all(
            self.metrics[c].status == MISSING for row in self.rows.values() for c in row.columns
        )


@dataclass(frozen=True)
class Comparison:
    """All adapted models. row_titles: in the order of the tree. failed: pairs that could not be compared,
    and why.

    judges, definitions, limits, demo_judge: facts of the runs, for footers. dropped_rows: left out because
    no model has any of their metrics (missing: exclude). unknown_columns: in the files, but no metric of
    CapTrack.
    """

    pairs: tuple[PairResult, ...]
    row_titles: tuple[str, ...]
    row_groups: dict[str, str]
    row_directions: dict[str, int]
    aggregated: bool
    missing_rule: str
    low_base_rule: str
    judges: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    limits: tuple[int, ...] = ()
    demo_judge: bool = False
    dropped_rows: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def mismatched(self) -> bool:
        return any(pair.differences for pair in self.pairs)

    @property
    def has_samples(self) -> bool:
        return any(pair.has_samples for pair in self.pairs)

    @property
    def is_series(self) -> bool:
        return len(self.pairs) > 1 and all(pair.step is not None for pair in self.pairs)
