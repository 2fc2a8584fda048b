"""Hand-worked examples for every formula of the comparison, known wrong values, and a seeded simulation
(long)."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from evaluation.comparison import statistics as st


def paired(statistic, base, adapted, clusters=None, per_base=None, per_adapted=None):
    def shape(values):
        return None if values is None else np.atleast_2d(np.array(values, dtype=float))

    base, adapted = shape(base), shape(adapted)
    clusters = np.arange(base.shape[1]) if clusters is None else np.array(clusters)
    return st.pair_up(statistic, base, adapted, clusters, shape(per_base), shape(per_adapted))


# --- Student's t
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("df", "expected"),
    [(1, 12.7062), (2, 4.3027), (5, 2.5706), (10, 2.2281), (30, 2.0423), (499, 1.9647), (math.inf, 1.9600)],
)
def test_t_quantile_as_in_tables(df, expected):
    assert st.t_quantile(float(df)) == pytest.approx(expected, abs=1e-4)


def test_t_two_sided_as_in_tables():
    assert st.t_two_sided(2.2281, 10) == pytest.approx(0.05, abs=1e-5)
    assert st.t_two_sided(1.0, 1) == pytest.approx(0.5, abs=1e-12)
    assert st.t_lower(-1.0, 1) == pytest.approx(0.25, abs=1e-12)


# --- influence
# -----------------------------------------------------------------------------------------------------

# base 1 1 1 0, adapted 1 0 1 0: B = .75, A = .5, r = 2/3, D = −33.3; psi = 100 (a − r b)/(4 · .75)
HAND = paired("mean", [1, 1, 1, 0], [1, 0, 1, 0])


def test_influence_of_a_mean_by_hand():
    assert HAND.deviation == pytest.approx(-100 / 3)
    assert HAND.psi == pytest.approx([100 / 9, -200 / 9, 100 / 9, 0])
    assert HAND.phi == pytest.approx([0.0625, -0.1875, 0.0625, 0.0625])


def test_standard_error_by_hand_without_the_few_flips_rule():
    # sum of squares (100/9)² + (200/9)² + (100/9)² = 740.74, times 4/3
    assert st.cluster_variance(HAND.psi, HAND.clusters) == pytest.approx(740.7407 * 4 / 3, rel=1e-6)


def test_few_flips_add_one_forgotten_and_one_gained():
    # forgotten adds (100 · r / (n B))² = (200/9)², gained (100 / (n B))² = (100/3)²
    assert HAND.few_psi == pytest.approx((200 / 9) ** 2 + (100 / 3) ** 2)
    assert HAND.few_phi == pytest.approx(2 / 16)
    many = paired("mean", [1, 0] * 10, [0, 1] * 10)
    assert many.contested == 20
    assert many.few_psi == 0


def test_no_flips_still_gives_a_width():
    same = paired("mean", [1] * 500, [1] * 500)
    spread = st.combine([same], [1.0])
    assert spread.deviation == 0
    assert spread.se == pytest.approx(100 * math.sqrt(2) / 500, rel=0.01)
    assert st.t_test(spread) == 1.0


def test_influence_of_a_ratio_of_sums_by_hand():
    # tool arguments: base 3 of 4, adapted 2 of 5
    p = paired("ratio", [1, 2], [1, 1], per_base=[2, 2], per_adapted=[2, 3])
    assert (p.base, p.adapted) == (0.75, 0.4)
    # base parts (x − .75 y)/4, adapted parts (x − .4 y)/5
    base, adapted = np.array([-0.125, 0.125]), np.array([0.04, -0.04])
    assert p.psi == pytest.approx(100 / 0.75 * (adapted - 0.4 / 0.75 * base))
    assert p.psi.sum() == pytest.approx(0)


def test_influence_of_a_standard_deviation_by_hand():
    # base 1 3: s = 1, e² = 1; adapted 0 4: s = 2, e² = 4: nothing to pull
    p = paired("std", [1, 3, 2, 2], [0, 4, 2, 2])
    s_b, s_a = math.sqrt(0.5), math.sqrt(2)
    assert (p.base, p.adapted) == pytest.approx((s_b, s_a))
    e_b, e_a, r = np.array([1, 1, 0, 0]), np.array([4, 4, 0, 0]), s_a / s_b
    expected = 100 * ((e_a - s_a**2) / (8 * s_b * s_a) - r * (e_b - s_b**2) / (8 * s_b**2))
    assert p.psi == pytest.approx(expected)


@pytest.mark.parametrize("statistic", ["mean", "sum", "std", "ratio"])
def test_influence_is_the_derivative_of_the_deviation(statistic):
    """Giving one sample a little more weight changes D by psi of that sample times n."""
    rng = np.random.default_rng(3)
    n = 40
    b, a = rng.uniform(1, 5, n), rng.uniform(1, 5, n)
    y_b, y_a = rng.uniform(1, 3, n), rng.uniform(1, 3, n)
    p = paired(statistic, b, a, per_base=y_b, per_adapted=y_a)

    def deviation(w):
        def value(x, y):
            if statistic == "ratio":
                return (w * x).sum() / (w * y).sum()
            mean = (w * x).sum() / w.sum()
            return mean if statistic != "std" else math.sqrt((w * (x - mean) ** 2).sum() / w.sum())

        return 100 * (value(a, y_a) / value(b, y_b) - 1)

    for i in (0, 7, 31):
        w = np.ones(n)
        w[i] += 1e-6
        assert (deviation(w) - deviation(np.ones(n))) / 1e-6 == pytest.approx(p.psi[i], rel=1e-3, abs=1e-4)


def test_sum_over_pairs_pulls_as_the_mean_does():
    assert paired("sum", [1, 2, 3], [2, 2, 2]).psi == pytest.approx(paired("mean", [1, 2, 3], [2, 2, 2]).psi)


def test_clusters_are_summed_before_they_are_squared():
    p = paired("mean", [1, 1, 0, 0], [1, 1, 1, 1], clusters=[5, 5, 9, 9])
    sums = [p.psi[:2].sum(), p.psi[2:].sum()]
    assert st.cluster_variance(p.psi, p.clusters) == pytest.approx(2 / 1 * (sums[0] ** 2 + sums[1] ** 2))


# --- sums of metrics
# -------------------------------------------------------------------------------------------------


def draws(rng, n, rate, flip, loss=0.0):
    """Base and adapted flags with a share of flips; `loss` more of them are forgotten than gained."""
    b = rng.random(n) < rate
    lose = b & (rng.random(n) < (flip / 2 + loss / 2) / rate)
    gain = ~b & (rng.random(n) < (flip / 2 - loss / 2) / (1 - rate))
    return b.astype(float), ((b & ~lose) | gain).astype(float)


def test_metrics_of_one_source_question_are_not_independent():
    rng = np.random.default_rng(1)
    b, a = draws(rng, 300, 0.6, 0.2)
    one = paired("mean", b, a)
    # the same scores twice: the mean of both is no more certain than one
    twice = st.combine([one, one], [0.5, 0.5])
    assert twice.se == pytest.approx(st.combine([one], [1.0]).se, rel=1e-9)
    # the same scores of other questions: a block of its own, and half the variance
    other = paired("mean", b, a, clusters=np.arange(300) + 300)
    apart = st.combine([one, other], [0.5, 0.5])
    assert apart.se == pytest.approx(twice.se / math.sqrt(2), rel=1e-9)


def test_satterthwaite_by_hand():
    rng = np.random.default_rng(2)
    large = paired("mean", *draws(rng, 500, 0.6, 0.2))
    small = paired("mean", *draws(rng, 12, 0.6, 0.9), clusters=np.arange(12) + 500)
    v = [0.25 * st.combine([m], [1.0]).se ** 2 for m in (large, small)]
    both = st.combine([large, small], [0.5, 0.5])
    assert both.se**2 == pytest.approx(sum(v))
    assert both.df == pytest.approx(sum(v) ** 2 / (v[0] ** 2 / 499 + v[1] ** 2 / 11))
    assert 11 < both.df < 500


def test_spread_between_runs_enters():
    scores = np.tile([1.0, 0.0], 100)
    worse = scores.copy()
    worse[:20] = 0
    one = st.pair_up("mean", scores[None], scores[None], np.arange(200))
    two = st.pair_up("mean", scores[None], np.array([scores, worse]), np.arange(200))
    assert two.adapted_runs == (0.5, 0.45)
    alone = st.combine(
        [st.pair_up("mean", scores[None], np.array([(scores + worse) / 2]), np.arange(200))], [1.0]
    )
    spread = st.combine([two], [1.0])
    # runs at 100 % and 90 % of the base: variance of their mean 50/2 = 25
    assert spread.se**2 == pytest.approx(alone.se**2 + 25.0, rel=1e-6)
    assert spread.df < 2
    assert st.combine([one], [1.0]).df == 199


def test_a_row_with_a_zero_base_has_no_interval():
    assert st.combine([paired("mean", [0, 0], [0, 1])], [1.0]) is None


def test_median_by_bootstrap_agrees_with_many_plain_draws():
    rng = np.random.default_rng(5)
    b, a = rng.normal(10, 2, 120), rng.normal(10.5, 2, 120)
    spread = st.combine([paired("median", b, a)], [1.0])
    plain = []
    for _ in range(2000):
        i = rng.integers(0, 120, 120)
        plain.append(100 * (np.median(a[i]) / np.median(b[i]) - 1))
    assert spread.deviation == pytest.approx(100 * (np.median(a) / np.median(b) - 1))
    assert spread.se == pytest.approx(np.std(plain), rel=0.1)


@pytest.mark.parametrize("statistic", ["median", "p90"])
def test_weighted_quantiles_are_quantiles_of_the_repeated_sample(statistic):
    rng = np.random.default_rng(6)
    scores = rng.normal(size=17)
    weights = rng.multinomial(17, np.full(17, 1 / 17), size=50)
    level = 0.5 if statistic == "median" else 0.9
    expected = [np.quantile(np.repeat(scores, w), level) for w in weights]
    assert st.weighted_quantile_draws(scores, weights, statistic) == pytest.approx(expected)


def test_a_median_enters_a_row_by_its_draws():
    rng = np.random.default_rng(7)
    b, a = rng.normal(10, 2, 200), rng.normal(10, 2, 200)
    mean, median = paired("mean", b, a), paired("median", b, a)
    row = st.combine([mean, median], [0.5, 0.5])
    single = [st.combine([m], [1.0]).se for m in (mean, median)]
    assert max(single) * 0.5 < row.se < sum(single) / 2 * 1.05


# --- intervals
# -------------------------------------------------------------------------------------------------------


def test_log_delta_by_hand():
    low, high = st.percent_interval(st.Spread(-20.0, 5.0, math.inf))
    h = 1.959964 * 5 / 80
    assert (low, high) == pytest.approx((80 * math.exp(-h) - 100, 80 * math.exp(h) - 100), rel=1e-5)
    assert low < -20 < high


def test_nothing_left_gives_the_plain_interval():
    assert st.percent_interval(st.Spread(-100.0, 2.0, math.inf)) == pytest.approx((-103.92, -96.08), abs=0.01)


@pytest.mark.parametrize(
    ("right", "n", "expected"),
    [(300, 500, ""), (20, 500, "low base"), (5, 500, "unreliable"), (0, 500, "unreliable")],
)
def test_base_quality(right, n, expected):
    b = np.r_[np.ones(right), np.zeros(n - right)]
    a = b.copy()
    a[-1] = 1
    assert st.base_quality(paired("mean", b, a)) == expected


def test_nothing_right_after_adaptation_is_unreliable():
    assert st.base_quality(paired("mean", [1] * 50 + [0] * 50, [0] * 100)) == "unreliable"


def test_points_interval_by_hand():
    low, high = st.points_interval(HAND)
    # phi² = 3 · .0625² + .1875² = .046875, few flips 2/16, C/(C−1) = 4/3
    se = math.sqrt(4 / 3 * (0.046875 + 0.125))
    assert (low + high) / 2 == pytest.approx(-0.25)
    assert (high - low) / 2 == pytest.approx(st.t_quantile(3.0) * se)


# --- tests and corrections
# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forgotten", "gained", "expected"),
    [(1, 0, 0.5), (0, 1, 0.5), (0, 0, 1.0), (3, 3, 1.0), (5, 0, 1 / 32), (4, 1, 2 * (1 / 32) + 5 / 32)],
)
def test_mcnemar_mid_p(forgotten, gained, expected):
    assert st.mcnemar_mid_p(forgotten, gained) == pytest.approx(expected)


def test_one_contested_item_is_p_one_half_and_never_zero():
    b = np.array([1.0] * 30 + [0.0] * 20)
    a = b.copy()
    a[0] = 0
    assert st.metric_test(paired("mean", b, a)) == (pytest.approx(0.5), "McNemar mid-p")


def test_sign_flip_is_exact_for_few_clusters():
    sums = np.array([3.0, 1.0, 2.0, 1.5])
    every = [abs(np.dot(signs, sums)) for signs in itertools.product((-1, 1), repeat=4)]
    assert st.sign_flip_p(sums) == pytest.approx(sum(v >= 7.5 for v in every) / 16)


def test_sign_flip_is_seeded_and_never_zero():
    sums = np.arange(1.0, 21.0)
    p = st.sign_flip_p(sums)
    assert p == st.sign_flip_p(sums)
    assert 0 < p < 0.001


@pytest.mark.parametrize(
    ("n", "clustered", "ordinal", "name"),
    [
        (100, False, False, "McNemar mid-p"),
        (100, True, False, "paired t"),
        (20, True, False, "sign-flip"),
        (100, True, True, "sign-flip"),
    ],
)
def test_which_test(n, clustered, ordinal, name):
    rng = np.random.default_rng(8)
    b, a = draws(rng, n, 0.6, 0.3)
    clusters = np.arange(n) // 2 if clustered else np.arange(n)
    assert st.metric_test(paired("mean", b, a, clusters), ordinal)[1] == name


def test_benjamini_hochberg_by_hand():
    assert st.benjamini_hochberg([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert st.benjamini_hochberg([]) == []


def test_holm_by_hand():
    assert st.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_smallest_change_by_hand():
    assert st.smallest_change(0.2, 500) == pytest.approx(5.6)


def test_bounds_for_unjudged_samples_by_hand():
    # base 60 of 100, none open; adapted 54 of 90 with 10 open: between 54/100 and 64/100
    low, high = st.missing_bounds((60.0, 100, 0), (54.0, 90, 10), 0.0, 1.0)
    assert (low, high) == pytest.approx((-10.0, 100 * (64 / 60 - 1)))
    assert st.missing_bounds((0.0, 50, 50), (10.0, 100, 0), 0.0, 1.0)[1] is None


def test_loss_p_agrees_with_the_interval():
    """The one-sided p at the interval's end is half of what is outside."""
    spread = st.Spread(-8.0, 2.5, 120.0)
    low, _ = st.percent_interval(spread)
    assert 1 - st.loss_p(spread, -low) == pytest.approx(0.025, abs=1e-9)
    assert st.loss_p(spread, 8.0) == pytest.approx(0.5)


# --- known wrong values
# ------------------------------------------------------------------------------------------------


def test_standard_error_of_500_flags_is_not_divided_by_the_draws():
    """0.0219, not 0.0007: the standard deviation over draws is the standard error."""
    scores = np.r_[np.ones(300), np.zeros(200)]
    _, parts = st.influence("mean", scores)
    assert math.sqrt(st.cluster_variance(parts, np.arange(500))) == pytest.approx(0.0219, abs=0.0001)
    rng = np.random.default_rng(9)
    b = rng.normal(100, 10, 400)
    median = st.combine([paired("median", b, b[::-1].copy())], [1.0])
    assert median.se > 0.5  # 100 · sqrt(2) · 1.25 · 10 / 20 / 100 is about 0.9; divided by √2000 it were 0.02


def test_paired_not_unpaired():
    """60 → 55 % on 300 shared items with 9 % flips is found; an unpaired z test (p = .21) would not find
    it."""
    b = np.r_[np.ones(180), np.zeros(120)]
    a = b.copy()
    a[:21] = 0
    a[180:186] = 1
    p, _ = st.metric_test(paired("mean", b, a))
    pooled = math.sqrt(0.575 * 0.425 * 2 / 300)
    unpaired = math.erfc(0.05 / pooled / math.sqrt(2))
    assert unpaired > 0.2
    assert p < 0.01
    low, high = st.percent_interval(st.combine([paired("mean", b, a)], [1.0]))
    assert low < high < 0


# --- speed and simulation
# ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_simulated_coverage_and_false_finds():
    """Seeded: coverage 94–97.5 % with ten flips and more, never under 94 % with fewer; A/A and gate error
    rates."""
    rng = np.random.default_rng(20260301)
    runs, n = 4000, 500
    started = time.time()
    for rate, flip, loss in [
        (0.6, 0.15, 0.0),
        (0.6, 0.2, 0.06),
        (0.3, 0.1, 0.03),
        (0.9, 0.08, 0.02),
        (0.6, 0.012, 0.004),
        (0.8, 0.006, 0.0),
        (0.5, 0.008, 0.004),
    ]:
        truth = -100 * loss / rate
        hits = 0
        for _ in range(runs):
            spread = st.combine([paired("mean", *draws(rng, n, rate, flip, loss))], [1.0])
            low, high = st.percent_interval(spread)
            hits += low <= truth <= high
        coverage, error = hits / runs, 2 * math.sqrt(0.05 * 0.95 / runs)
        few = flip * n < 10
        assert coverage >= 0.94 - error * few * 0, (rate, flip, coverage)
        if not few:
            assert coverage <= 0.975 + error, (rate, flip, coverage)
    # an A/A comparison flags at most 5 % of rows before correction, plus two Monte-Carlo errors
    flags = 0
    for _ in range(runs):
        metrics = [
            paired("mean", *draws(rng, 200, 0.6, 0.15), clusters=np.arange(200) + 200 * k) for k in range(3)
        ]
        flags += st.t_test(st.combine(metrics, [1 / 3] * 3)) < 0.05
    assert flags / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    # a true change of exactly −δ: REGRESSION in at most 5 %, PASS in at most 2.5 %, plus two errors
    delta, regressions, passes = 5.0, 0, 0
    for _ in range(runs):
        spread = st.combine([paired("mean", *draws(rng, n, 0.6, 0.15, 0.03))], [1.0])
        regressions += st.loss_p(spread, delta) < 0.05
        passes += st.percent_interval(spread)[0] > -delta
    assert regressions / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    assert passes / runs <= 0.025 + 2 * math.sqrt(0.025 * 0.975 / runs)
    print(f"simulation: {time.time() - started:.0f} s")


@pytest.mark.long
@pytest.mark.parametrize("rate", [0.03, 0.1, 0.95])
def test_simulated_coverage_on_low_and_high_bases(rate):
    rng = np.random.default_rng(31)
    hits, runs = 0, 3000
    for _ in range(runs):
        spread = st.combine([paired("mean", *draws(rng, 1000, rate, min(0.04, rate / 2)))], [1.0])
        low, high = st.percent_interval(spread)
        hits += low <= 0 <= high
    assert 0.94 <= hits / runs <= 0.985


@pytest.mark.long
def test_simulated_coverage_of_unequal_blocks_and_shared_questions():
    """Blocks of 500 and 12 samples, and two tasks that ask the same questions: 94 % and more."""
    rng = np.random.default_rng(32)
    runs, hits, shared_hits = 3000, 0, 0
    for _ in range(runs):
        large = paired("mean", *draws(rng, 500, 0.6, 0.15))
        small = paired("mean", *draws(rng, 12, 0.6, 0.4), clusters=np.arange(12) + 500)
        low, high = st.percent_interval(st.combine([large, small], [0.5, 0.5]))
        hits += low <= 0 <= high
        b, a = draws(rng, 300, 0.6, 0.15)
        again = rng.random(300) < 0.1  # the second task differs on a tenth of the questions
        b2, a2 = np.where(again, 1 - b, b), np.where(again, 1 - a, a)
        low, high = st.percent_interval(
            st.combine([paired("mean", b, a), paired("mean", b2, a2)], [0.5, 0.5])
        )
        shared_hits += low <= 0 <= high
    assert hits / runs >= 0.94
    assert 0.94 <= shared_hits / runs <= 0.975
