"""What the samples say about a difference: influence values, intervals, tests, corrections. Pure, numpy
only, no I/O.

Symbols: items i = 1..n answered by both models; a metric's value B (base) and A (adapted) is a statistic of
the scores; r = A/B, D = 100 (r − 1) percent. Every smooth statistic has influence parts (one number a
sample, sum zero) that say how much a sample pulls on its value; then

    psi_i = 100 (part_a_i − r part_b_i) / B     pulls on D (percent)
    phi_i = part_a_i − part_b_i                 pulls on A − B (points)

For a mean this is psi_i = 100 (a_i − r b_i) / (n B). Standard errors sum psi over clusters (samples that
share a source question), so that tasks which reuse a question need no assumption of independence: a row, a
group or any weighted mean is the same sum with weights. Example: b = [1, 1, 1, 0], a = [1, 0, 1, 0] gives D
= −33.3 and psi = [11.1, −22.2, 11.1, 0].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

FEW_FLIPS = 10  # below it a standard error from the flips alone is too small
LOW_BASE, UNRELIABLE_BASE = 0.1, 0.3  # bounds of g, see base_quality
RESAMPLES = 2000
FLIPS_DRAWN, EXACT_FLIPS = 10_000, 12
SMALL_N = 30
SEED = 20260301
RESAMPLED = ("median", "p90")  # no influence parts: cluster bootstrap
LINEAR = ("mean", "sum", "ratio", "std")


# --- Student's t, without scipy
# -----------------------------------------------------------------------------------


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function by its continued fraction (Lentz)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    front = math.exp(
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log1p(-x)
        - math.log(a)
    )
    tiny = 1e-300
    c, d, fraction = 1.0, 0.0, 1.0
    for i in range(0, 1000):
        m = i // 2
        if i == 0:
            numerator = 1.0
        elif i % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 + numerator * d
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = 1.0 + numerator / c
        c = c if abs(c) > tiny else tiny
        fraction *= c * d
        if abs(1.0 - c * d) < 1e-14:
            break
    return front * (fraction - 1.0)


def t_two_sided(t: float, df: float) -> float:
    """P(|T| ≥ |t|) for Student's t with `df` degrees of freedom (a float; infinity is the normal)."""
    if math.isinf(df) or df > 1e7:
        return math.erfc(abs(t) / math.sqrt(2))
    return _incomplete_beta(df / 2, 0.5, df / (df + t * t))


def t_lower(t: float, df: float) -> float:
    """P(T ≤ t)."""
    half = t_two_sided(t, df) / 2
    return half if t <= 0 else 1 - half


@lru_cache(maxsize=4096)
def t_quantile(df: float, level: float = 0.95) -> float:
    """The t with P(|T| ≤ t) = level: 1.96 for many degrees of freedom, 12.71 for one."""
    low, high = 0.0, 2.0
    while t_two_sided(high, df) > 1 - level:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided(middle, df) > 1 - level else (low, middle)
    return (low + high) / 2


# --- influence
# ----------------------------------------------------------------------------------------------------


def influence(statistic: str, scores: np.ndarray, per: np.ndarray | None = None) -> tuple[float, np.ndarray]:
    """(value, parts of shape (n,)) of a smooth statistic of scores (n,); `per` is the denominator of a ratio.

    Parts sum to zero; the variance of the value is the sum of their squares over clusters.
    Raises ValueError for a statistic without influence parts (median, min …).
    """
    n = len(scores)
    mean = float(scores.mean())
    if statistic == "mean":
        return mean, (scores - mean) / n
    if statistic == "sum":
        return mean * n, scores - mean
    if statistic == "ratio":
        assert per is not None
        whole = float(per.sum())
        if whole == 0:
            return math.nan, np.full(n, math.nan)
        value = float(scores.sum()) / whole
        return value, (scores - value * per) / whole
    if statistic == "std":
        squares = (scores - mean) ** 2
        value = math.sqrt(float(squares.mean()))
        return value, (squares - value**2) / (2 * n * value) if value > 0 else np.zeros(n)
    raise ValueError(f"{statistic} has no influence parts")


def weighted_quantile_draws(scores: np.ndarray, weights: np.ndarray, statistic: str) -> np.ndarray:
    """The median or p90 of scores (n,) under whole weights (draws, n): shape (draws,). Linear interpolation
    (p90)."""
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    reached = np.cumsum(weights[:, order], axis=1)
    total = reached[:, -1]
    position = (total - 1) * (0.5 if statistic == "median" else 0.9)
    below = np.floor(position)

    def at(rank: np.ndarray) -> np.ndarray:
        return ordered[np.argmax(reached > rank[:, None] + 1e-9, axis=1)]

    low = at(below)
    return low + (at(np.minimum(below + 1, total - 1)) - low) * (position - below)


def plain_statistic(statistic: str, scores: np.ndarray, per: np.ndarray | None = None) -> float:
    """The value of any statistic of tasks.py for complete scores (n,)."""
    if statistic in LINEAR:
        return influence(statistic, scores, per)[0]
    if statistic == "p90":
        return float(np.quantile(scores, 0.9))
    functions: dict[str, Callable] = {"median": np.median, "min": np.min, "max": np.max, "count": len}
    return float(functions[statistic](scores))


@dataclass(frozen=True)
class Paired:
    """One metric on the pairs of two models.

    base, adapted: values (mean over runs). psi, phi, base_parts: influence, shape (n,), see above; psi is
    None where the base is 0. clusters: codes of source units, (n,), the same code for the same unit in
    every task. few_psi, few_phi: what the few-flips rule adds to the sum of squares. contested: samples on
    which the models differ. base_runs, adapted_runs: the value of each run. redraw: weights (draws, n) → D
    (draws,) for a statistic without influence parts. values_are_flags: every score is 0 or 1.
    """

    base: float
    adapted: float
    n: int
    clusters: np.ndarray
    psi: np.ndarray | None
    phi: np.ndarray | None
    base_parts: np.ndarray | None
    few_psi: float
    few_phi: float
    contested: int
    forgotten: int
    gained: int
    values_are_flags: bool
    base_runs: tuple[float, ...]
    adapted_runs: tuple[float, ...]
    redraw: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def deviation(self) -> float | None:
        return 100 * (self.adapted / self.base - 1) if self.base > 0 else None

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.clusters))


def pair_up(
    statistic: str,
    base: np.ndarray,
    adapted: np.ndarray,
    clusters: np.ndarray,
    base_per: np.ndarray | None = None,
    adapted_per: np.ndarray | None = None,
) -> Paired:
    """The pairs of one metric. base, adapted (and the denominators): shape (runs, n), complete; clusters:
    (n,) ints.

    Raises ValueError for n = 0 and for a statistic that has neither influence parts nor a bootstrap (min,
    max).
    """
    n = base.shape[1]
    if n == 0:
        raise ValueError("no pairs")
    same = base.mean(axis=0) == adapted.mean(axis=0)
    if base_per is not None and adapted_per is not None:
        same &= base_per.mean(axis=0) == adapted_per.mean(axis=0)
    contested = int((~same).sum())
    flags = statistic == "mean" and bool(np.isin(base, (0, 1)).all() and np.isin(adapted, (0, 1)).all())
    right_b, right_a = base.mean(axis=0) >= 0.5, adapted.mean(axis=0) >= 0.5
    common = {
        "n": n,
        "clusters": clusters,
        "contested": contested,
        "forgotten": int((right_b & ~right_a).sum()) if flags else 0,
        "gained": int((~right_b & right_a).sum()) if flags else 0,
        "values_are_flags": flags,
    }
    if statistic in RESAMPLED:
        return _pair_resampled(statistic, base, adapted, common)
    base_all = [influence(statistic, run, _row(base_per, i)) for i, run in enumerate(base)]
    adapted_all = [influence(statistic, run, _row(adapted_per, i)) for i, run in enumerate(adapted)]
    base_runs, adapted_runs = tuple(v for v, _ in base_all), tuple(v for v, _ in adapted_all)
    b, a = float(np.mean(base_runs)), float(np.mean(adapted_runs))
    parts_b = np.mean([p for _, p in base_all], axis=0)
    parts_a = np.mean([p for _, p in adapted_all], axis=0)
    few_psi = few_phi = 0.0
    # where hardly any sample flips, or nothing is left, the samples alone show no variance
    certain = contested < FEW_FLIPS or a == 0
    if statistic in ("mean", "sum", "ratio") and certain:
        # one more forgotten and one more gained sample, in the standard error only
        unit = _flip_size(base, adapted, base_per)
        weight = {"mean": 1 / n, "sum": 1.0}.get(statistic)
        w_b = weight or 1 / float(base_per.sum(axis=1).mean())
        w_a = weight or 1 / float(adapted_per.sum(axis=1).mean())
        few_phi = (unit * w_b) ** 2 + (unit * w_a) ** 2
        if b > 0:
            few_psi = (100 / b) ** 2 * ((a / b * unit * w_b) ** 2 + (unit * w_a) ** 2)
    return Paired(
        b,
        a,
        psi=100 / b * (parts_a - a / b * parts_b) if b > 0 else None,
        phi=parts_a - parts_b,
        base_parts=parts_b,
        few_psi=few_psi,
        few_phi=few_phi,
        base_runs=base_runs,
        adapted_runs=adapted_runs,
        **common,
    )


def _row(per: np.ndarray | None, run: int) -> np.ndarray | None:
    return None if per is None else per[run]


def _flip_size(base: np.ndarray, adapted: np.ndarray, per: np.ndarray | None) -> float:
    """How far one changed sample moves the sum: 1 for shares and counted passes, the base's spread for
    lengths."""
    lowest, highest = min(base.min(), adapted.min()), max(base.max(), adapted.max())
    if lowest >= 0 and (highest <= 1 or per is not None):
        return 1.0
    return float(base.std()) or 1.0


def _pair_resampled(statistic: str, base: np.ndarray, adapted: np.ndarray, common: dict) -> Paired:
    base_runs = tuple(plain_statistic(statistic, run) for run in base)
    adapted_runs = tuple(plain_statistic(statistic, run) for run in adapted)
    b, a = float(np.mean(base_runs)), float(np.mean(adapted_runs))

    def redraw(weights: np.ndarray) -> np.ndarray:
        drawn_b = np.mean([weighted_quantile_draws(run, weights, statistic) for run in base], axis=0)
        drawn_a = np.mean([weighted_quantile_draws(run, weights, statistic) for run in adapted], axis=0)
        # a draw without any base has no percent
        return 100 * (np.divide(drawn_a, drawn_b, out=np.full_like(drawn_a, np.nan), where=drawn_b > 0) - 1)

    return Paired(
        b,
        a,
        psi=None,
        phi=None,
        base_parts=None,
        few_psi=0.0,
        few_phi=0.0,
        base_runs=base_runs,
        adapted_runs=adapted_runs,
        redraw=redraw if b > 0 else None,
        **common,
    )


# --- standard errors and intervals
# --------------------------------------------------------------------------------


def cluster_variance(parts: np.ndarray, clusters: np.ndarray, few: float = 0.0) -> float:
    """C/(C−1) Σ_c (Σ_{i∈c} parts_i)², NaN where there is one cluster only."""
    _, codes = np.unique(clusters, return_inverse=True)
    count = int(codes.max()) + 1
    if count < 2:
        return math.nan
    sums = np.bincount(codes, weights=parts)
    return count / (count - 1) * (float(sums @ sums) + few)


@dataclass(frozen=True)
class Spread:
    """Deviation in percent on the pairs, its standard error and degrees of freedom."""

    deviation: float
    se: float
    df: float


def combine(metrics: Sequence[Paired], weights: Sequence[float]) -> Spread | None:
    """The weighted sum of deviations with its standard error, source units shared between tasks counted once.

    Tasks without a common unit are independent blocks: each has its own C/(C−1), and Satterthwaite's
    degrees of freedom join them. The spread between runs adds a part of its own. None where a metric has no
    percent, or a block has one unit only.
    """
    if not metrics or any(m.deviation is None for m in metrics):
        return None
    deviation = sum(w * m.deviation for w, m in zip(weights, metrics, strict=True))
    sampled = (
        _combine_drawn(metrics, weights)
        if any(m.redraw for m in metrics)
        else _combine_blocks(metrics, weights)
    )
    if sampled is None:
        return None
    components = [*sampled, *_run_components(metrics, weights)]
    variance = sum(v for v, _ in components)
    if variance <= 0:
        return Spread(deviation, 0.0, sum(df for _, df in components))
    df = variance**2 / sum(v**2 / f for v, f in components)
    return Spread(deviation, math.sqrt(variance), df)


def _combine_blocks(metrics: Sequence[Paired], weights: Sequence[float]) -> list[tuple[float, float]] | None:
    size = max(int(m.clusters.max()) for m in metrics) + 1
    owner = np.full(size, -1)
    parent = list(range(len(metrics)))

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    sums = np.zeros(size)
    for k, (metric, weight) in enumerate(zip(metrics, weights, strict=True)):
        sums += weight * np.bincount(metric.clusters, weights=metric.psi, minlength=size)
        units = np.unique(metric.clusters)
        for other in np.unique(owner[units]):
            if other >= 0:
                parent[root(int(other))] = root(k)
        owner[units] = k
    roots = np.array([root(k) for k in range(len(metrics))])
    present = np.flatnonzero(owner >= 0)
    block_of_unit = roots[owner[present]]
    components = []
    for block in np.unique(roots):
        units = present[block_of_unit == block]
        if len(units) < 2:
            return None
        few = sum(
            w**2 * m.few_psi
            for m, w, r in zip(metrics, weights, roots, strict=True)
            if r == block
        )  # fmt: skip
        variance = len(units) / (len(units) - 1) * (float(sums[units] @ sums[units]) + few)
        components.append((variance, len(units) - 1.0))
    return components


def _combine_drawn(metrics: Sequence[Paired], weights: Sequence[float]) -> list[tuple[float, float]] | None:
    """By cluster bootstrap: all metrics are redrawn together with one weight a source unit."""
    units, codes = np.unique(np.concatenate([m.clusters for m in metrics]), return_inverse=True)
    if len(units) < 2:
        return None
    bounds = np.cumsum([0, *(len(m.clusters) for m in metrics)])
    rng = np.random.default_rng(SEED)
    draws = []
    chunk = max(1, min(RESAMPLES, 4_000_000 // len(units)))
    for start in range(0, RESAMPLES, chunk):
        drawn = rng.multinomial(
            len(units), np.full(len(units), 1 / len(units)), size=min(chunk, RESAMPLES - start)
        )
        total = np.zeros(len(drawn))
        for k, (metric, weight) in enumerate(zip(metrics, weights, strict=True)):
            mine = drawn[:, codes[bounds[k] : bounds[k + 1]]]
            if metric.redraw:
                total += weight * metric.redraw(mine)
            else:
                total += weight * (mine @ metric.psi)
        draws.append(total)
    values = np.concatenate(draws)
    values = values[np.isfinite(values)]
    if len(values) < RESAMPLES // 2:
        return None
    # the standard deviation of the draws is the standard error; it is not divided again
    few = sum(w**2 * m.few_psi for m, w in zip(metrics, weights, strict=True))
    return [(float(values.var()) * len(units) / (len(units) - 1) + few, len(units) - 1.0)]


def _run_components(metrics: Sequence[Paired], weights: Sequence[float]) -> list[tuple[float, float]]:
    """Variance of the mean over runs, base and adapted apart: a run's shift is common to all metrics of a
    row."""
    components = []
    for side in ("base_runs", "adapted_runs"):
        counts = {len(getattr(m, side)) for m in metrics}
        runs = min(counts)
        if runs < 2:
            continue
        shifts = np.zeros(runs)
        for metric, weight in zip(metrics, weights, strict=True):
            values = np.array(getattr(metric, side)[:runs])
            pull = 1.0 if side == "adapted_runs" else -metric.adapted / metric.base
            shifts += weight * 100 / metric.base * pull * (values - values.mean())
        components.append((float(shifts @ shifts) / (runs - 1) / runs, runs - 1.0))
    return components


def percent_interval(spread: Spread, level: float = 0.95) -> tuple[float, float]:
    """Log-delta: [100 (r e^−h − 1), 100 (r e^h − 1)], h = t SE / (100 r); D ± t SE where r ≤ 0. Percent."""
    t = t_quantile(spread.df, level)
    r = 1 + spread.deviation / 100
    if r <= 0:
        return spread.deviation - t * spread.se, spread.deviation + t * spread.se
    h = t * spread.se / (100 * r)
    if h > 700:
        return -100.0, math.inf
    return 100 * (r * math.exp(-h) - 1), 100 * (r * math.exp(h) - 1)


def points_interval(paired: Paired, level: float = 0.95) -> tuple[float, float] | None:
    """A − B with its paired interval, in the metric's own unit; None without influence parts or with one
    cluster."""
    if paired.phi is None or paired.n_clusters < 2:
        return None
    se = math.sqrt(cluster_variance(paired.phi, paired.clusters, paired.few_phi))
    t = t_quantile(paired.n_clusters - 1.0, level)
    difference = paired.adapted - paired.base
    return difference - t * se, difference + t * se


def base_quality(paired: Paired) -> str:
    """ "" | "low base" | "unreliable": g = t² Var(B)/B² below 0.1, below 0.3, or more (also where A = 0)."""
    if paired.base <= 0 or paired.adapted == 0:
        return "unreliable"
    if paired.base_parts is None or paired.n_clusters < 2:
        return ""
    t = t_quantile(paired.n_clusters - 1.0)
    g = t * t * cluster_variance(paired.base_parts, paired.clusters) / paired.base**2
    return "unreliable" if g >= UNRELIABLE_BASE else "low base" if g >= LOW_BASE else ""


# --- tests
# --------------------------------------------------------------------------------------------------------


def mcnemar_mid_p(forgotten: int, gained: int) -> float:
    """Two-sided mid-p of the two flip counts under a fair coin: 0.5 from one contested item, 1 from none."""
    flips = forgotten + gained
    fewer = min(forgotten, gained)
    if flips == 0 or forgotten == gained:
        return 1.0
    logs = [_log_choose(flips, k) - flips * math.log(2) for k in range(fewer + 1)]
    below = math.fsum(math.exp(value) for value in logs[:-1])
    return min(1.0, 2 * below + math.exp(logs[-1]))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def sign_flip_p(sums: np.ndarray) -> float:
    """Permutation p of cluster sums (C,) under random signs: exact for C ≤ 12, else 10,000 seeded flips."""
    sums = sums[sums != 0]  # a zero stays what it is under any sign
    if len(sums) == 0:
        return 1.0
    seen = abs(float(sums.sum()))
    slack = 1e-9 * float(np.abs(sums).sum())
    if len(sums) <= EXACT_FLIPS:
        bits = np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums)) & 1
        return float((np.abs((1 - 2 * bits) @ sums) >= seen - slack).mean())
    rng = np.random.default_rng(SEED)
    hits = 0
    for _ in range(10):
        signs = rng.integers(0, 2, size=(FLIPS_DRAWN // 10, len(sums)), dtype=np.int8) * 2 - 1
        hits += int((np.abs(signs @ sums) >= seen - slack).sum())
    return (1 + hits) / (FLIPS_DRAWN + 1)


def t_test(spread: Spread) -> float:
    """Two-sided p for "no change" of a deviation with its standard error; 1 where nothing differs at all."""
    if spread.se == 0:
        return 1.0 if spread.deviation == 0 else 0.0
    return t_two_sided(spread.deviation / spread.se, spread.df)


def metric_test(paired: Paired, ordinal: bool = False) -> tuple[float, str] | None:
    """(p, name of the test) for one metric; None where there is none (median, one cluster).

    McNemar mid-p for unclustered flags; sign-flip for fewer than 30 pairs and for ordinal ratings; else
    paired t on cluster sums.
    """
    single = len(paired.base_runs) == 1 and len(paired.adapted_runs) == 1
    if paired.values_are_flags and single and paired.n_clusters == paired.n:
        return mcnemar_mid_p(paired.forgotten, paired.gained), "McNemar mid-p"
    if paired.phi is None:
        return None
    _, codes = np.unique(paired.clusters, return_inverse=True)
    difference = paired.adapted - paired.base
    sums = np.bincount(codes, weights=paired.phi + difference / paired.n)
    if paired.n < SMALL_N or ordinal:
        return sign_flip_p(np.where(np.abs(sums) < 1e-15, 0.0, sums)), "sign-flip"
    if len(sums) < 2:
        return None
    se = math.sqrt(cluster_variance(paired.phi, paired.clusters, paired.few_phi))
    return t_test(Spread(difference, se, len(sums) - 1.0)), "paired t"


def loss_p(spread: Spread, margin: float) -> float:
    """One-sided p against "the loss is at most `margin` percent", on the scale of the log-delta interval."""
    r, limit = 1 + spread.deviation / 100, 1 - margin / 100
    if spread.se == 0:
        return 0.0 if spread.deviation < -margin else 1.0
    if r <= 0 or limit <= 0:
        return t_lower((spread.deviation + margin) / spread.se, spread.df)
    return t_lower((math.log(r) - math.log(limit)) * 100 * r / spread.se, spread.df)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """q values in the order of p: the share of false finds to expect among all p as small as this one."""
    order = sorted(range(len(p)), key=lambda i: p[i], reverse=True)
    q, running = [0.0] * len(p), 1.0
    for rank, i in zip(range(len(p), 0, -1), order, strict=True):
        running = min(running, p[i] * len(p) / rank)
        q[i] = running
    return q


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p in the order of p; the chance of any false find among those below a level is at most that
    level."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, running = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, p[i] * (len(p) - rank)))
        adjusted[i] = running
    return adjusted


def smallest_change(flip_share: float, n: int) -> float:
    """The change in points that n pairs show with 80 % power when this share of them flips: 280 √(f/n)."""
    return 280 * math.sqrt(flip_share / n) if n else math.inf


def missing_bounds(
    base: tuple[float, int, int], adapted: tuple[float, int, int], lowest: float, highest: float
) -> tuple[float, float | None]:
    """D with the unjudged samples at worst and at best: (lower, upper), upper None where the base may be 0.

    base, adapted: (sum of the judged scores, how many, how many unjudged). lowest, highest: what a score
    may be.
    """

    def ends(part: tuple[float, int, int]) -> tuple[float, float]:
        total, judged, unjudged = part
        n = judged + unjudged
        return (total + unjudged * lowest) / n, (total + unjudged * highest) / n

    (b_low, b_high), (a_low, a_high) = ends(base), ends(adapted)
    lower = 100 * (a_low / b_high - 1) if b_high > 0 else -100.0
    return lower, (100 * (a_high / b_low - 1) if b_low > 0 else None)
