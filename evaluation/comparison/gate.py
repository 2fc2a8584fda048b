"""The gate: may this adapted model pass? One verdict a row, one for all, as an exit code. Pure, no files.

    RowGate("C1 Knowledge", margin=5.0, signed=-16.0, low=-21.0, high=-11.0, p=0.0003, verdict="REGRESSION",
            reason="lost 16.0 %, more than the 5 % allowed (p = 0.0003 after correction for 15 rows)")

`signed`, `low` and `high` are in percent of the base with below zero always the worse side: a row in which
less is better is turned round. With the margin δ,

    PASS          the plain 95 % interval lies above −δ (all rows must pass, so nothing is corrected)
    REGRESSION    one-sided p for a loss beyond δ, after Holm over the gated rows, is below 0.05
    INCONCLUSIVE  neither: too few samples to exclude the loss or to prove it
    INCOMPLETE    data are missing, or what is missing could change the verdict
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.comparison import statistics as st
from evaluation.comparison.gate_config import Incomplete, directions
from evaluation.comparison.model import MISSING, ZERO_BASE, Comparison, MetricResult, PairResult, RowResult
from evaluation.comparison.words import number

PASS, INCONCLUSIVE, INCOMPLETE, REGRESSION = "PASS", "INCONCLUSIVE", "INCOMPLETE", "REGRESSION"
VERDICTS = (PASS, INCONCLUSIVE, INCOMPLETE, REGRESSION)  # from best to worst
EXIT_CODES = {PASS: 0, REGRESSION: 2, INCONCLUSIVE: 3, INCOMPLETE: 4}
LEVEL = 0.05


@dataclass(frozen=True)
class RowGate:
    """The verdict on one row. deviation: as the heatmap shows it. signed, low, high: turned so that below
    zero is worse; of the samples that both models have. p: one-sided, a loss beyond the margin; holm: the
    same after correction. direction: 1 or −1, 0 where the row's metrics have both."""

    title: str
    group: str
    direction: int
    margin: float
    verdict: str
    reason: str
    deviation: float | None = None
    signed: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    holm: float | None = None


@dataclass(frozen=True)
class PairGate:
    """One adapted model. problem: why it could not be compared at all, else ""."""

    name: str
    base_name: str
    rows: tuple[RowGate, ...]
    problem: str = ""

    @property
    def verdict(self) -> str:
        return INCOMPLETE if self.problem or not self.rows else worst(row.verdict for row in self.rows)


@dataclass(frozen=True)
class Gate:
    """All adapted models. not_gated: rows shown that the gate does not decide on."""

    pairs: tuple[PairGate, ...]
    not_gated: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        return worst(pair.verdict for pair in self.pairs)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]


def worst(verdicts) -> str:
    """The worst of some verdicts; INCOMPLETE of none, for nothing was decided."""
    return max(verdicts, key=VERDICTS.index, default=INCOMPLETE)


def run_gate(comparison: Comparison, margins: Mapping[str, float], rules: Incomplete) -> Gate:
    """The verdicts on every pair; `margins`: the gated rows, see gate_config.gated_rows."""
    pairs = [judge_pair(pair, margins, rules) for pair in comparison.pairs]
    pairs += [PairGate(name, "", (), reason) for name, reason in comparison.failed]
    shown = dict.fromkeys((*comparison.row_titles, *comparison.dropped_rows))
    return Gate(tuple(pairs), tuple(title for title in shown if title not in margins))


def judge_pair(pair: PairResult, margins: Mapping[str, float], rules: Incomplete) -> PairGate:
    """The verdicts on one adapted model. A gated row that is not there is INCOMPLETE, unless missing rows are
    allowed."""
    present = [(pair.rows[title], margin) for title, margin in margins.items() if title in pair.rows]
    known = [_evidence(row, pair.metrics, margin) for row, margin in present]
    now = _decide(known, [0.0 for _ in known])
    lowest = _decide(known, [e.worst for e in known])
    highest = _decide(known, [e.best for e in known])
    rows: dict[str, RowGate] = {}
    for evidence, decided, *ends in zip(known, now, lowest, highest, strict=True):
        rows[evidence.row.title] = _row_gate(evidence, decided, ends, len(known), pair, rules)
    if rules.missing:
        for title in [title for title in margins if title not in rows]:
            reason = "neither model has any of its metrics"
            rows[title] = RowGate(title, "", 1, margins[title], INCOMPLETE, reason)
    return PairGate(pair.name, pair.base_name, tuple(rows[t] for t in margins if t in rows))


@dataclass(frozen=True)
class _Evidence:
    """What speaks for a row's verdict. spread: None without an interval; of the signed mean where metrics
    of both directions are mixed (direction is 1 then). worst, best: how far unjudged samples could move the
    signed deviation."""

    row: RowResult
    margin: float
    direction: int
    mixed: bool
    spread: st.Spread | None
    worst: float = 0.0
    best: float = 0.0


@dataclass(frozen=True)
class _Decided:
    verdict: str | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    holm: float | None = None


def _evidence(row: RowResult, metrics: Mapping[str, MetricResult], margin: float) -> _Evidence:
    found = directions(row.columns)
    mixed = len(found) > 1
    direction = 1 if mixed else min(found)
    spread = None
    if mixed and row.has_interval:
        signed = [weight * metrics[c].direction for c, weight in row.weights.items()]
        spread = st.combine([metrics[c].paired for c in row.weights], signed)
    elif row.has_interval:
        spread = st.Spread(row.paired_mean, row.se, row.df)
    return _Evidence(row, margin, direction, mixed, spread, *_room(row, metrics))


def _room(row: RowResult, metrics: Mapping[str, MetricResult]) -> tuple[float, float]:
    """How far unjudged samples could pull the signed mean down (≤ 0) and up (≥ 0), in percent."""
    down = up = 0.0
    for column, weight in row.weights.items():
        metric = metrics[column]
        if metric.bounds is None or metric.deviation is None:
            continue
        low, high = metric.bounds
        moves = (low - metric.deviation, math.inf if high is None else high - metric.deviation)
        ends = sorted(metric.direction * weight * move for move in moves)
        down, up = down + min(0.0, ends[0]), up + max(0.0, ends[1])
    return down, up


def _decide(known: Sequence[_Evidence], moves: Sequence[float]) -> list[_Decided]:
    """Verdicts from the numbers alone, each row's signed deviation moved by so many percent.

    Both an interval's end and a corrected p only fall when rows get worse, so the two ends enclose every
    verdict that the missing judgements allow.
    """
    tested = [_test(evidence, move) for evidence, move in zip(known, moves, strict=True)]
    corrected = iter(st.holm([t.p for t in tested if t.p is not None]))
    decided = []
    for evidence, test in zip(known, tested, strict=True):
        if test.p is None:
            decided.append(test)
            continue
        holm = next(corrected)
        passed = test.low > -evidence.margin
        verdict = PASS if passed else REGRESSION if holm < LEVEL else INCONCLUSIVE
        decided.append(replace(test, verdict=verdict, holm=holm))
    return decided


def _test(evidence: _Evidence, move: float) -> _Decided:
    if evidence.spread is None:
        return _Decided(None)
    if math.isinf(move):
        return _Decided(None, move, move, 0.0 if move < 0 else 1.0)
    spread = _moved(evidence.spread, evidence.direction * move)
    low, high = st.percent_interval(spread)
    if evidence.direction > 0:
        return _Decided(None, low, high, st.loss_p(spread, evidence.margin))
    return _Decided(None, -high, -low, rise_p(spread, evidence.margin))


def _moved(spread: st.Spread, move: float) -> st.Spread:
    """The same relative uncertainty around another deviation."""
    r, to = 1 + spread.deviation / 100, 1 + (spread.deviation + move) / 100
    scale = to / r if r > 0 and to > 0 else 1.0
    return replace(spread, deviation=spread.deviation + move, se=spread.se * scale)


def rise_p(spread: st.Spread, margin: float) -> float:
    """One-sided p against "the rise is at most `margin` percent", the mirror of statistics.loss_p."""
    r, limit = 1 + spread.deviation / 100, 1 + margin / 100
    if spread.se == 0:
        return 0.0 if spread.deviation > margin else 1.0
    if r <= 0:
        return st.t_lower((margin - spread.deviation) / spread.se, spread.df)
    return st.t_lower((math.log(limit) - math.log(r)) * 100 * r / spread.se, spread.df)


# ------------------------------------------------------------------------------------------------ in words


def _row_gate(
    evidence: _Evidence,
    decided: _Decided,
    ends: Sequence[_Decided],
    count: int,
    pair: PairResult,
    rules: Incomplete,
) -> RowGate:
    row = evidence.row
    sign = evidence.direction
    gate = RowGate(
        row.title, row.group, 0 if evidence.mixed else sign, evidence.margin, "", "", row.mean,
        sign * evidence.spread.deviation if evidence.spread else None,
        decided.low, decided.high, decided.p, decided.holm,
    )  # fmt: skip
    lacking = [*_lacking(row, pair, rules), *_unknown(evidence, decided, ends, rules)]
    if lacking:
        so_far = f"; so far it reads {decided.verdict}" if decided.verdict else ""
        return replace(gate, verdict=INCOMPLETE, reason="; ".join(lacking) + so_far)
    reason = _reason(gate, decided.verdict, count)
    if abs(row.paired_mean - row.mean) >= 0.05:
        reason += f"; that is of the samples that both models have, over all it is {number(row.mean)} %"
    return replace(gate, verdict=decided.verdict, reason=reason)


def _lacking(row: RowResult, pair: PairResult, rules: Incomplete) -> list[str]:
    """What the row has no data for, in words."""
    metrics = [pair.metrics[c] for c in row.columns]
    found = []
    missing = [m.column for m in metrics if m.status == MISSING]
    if missing and (rules.missing or row.mean is None):
        found.append(f"missing: {', '.join(missing)}")
    # a rate of mistakes that rose from nothing is a loss that no percent can show
    risen = [m.column for m in metrics if m.status == ZERO_BASE and m.direction < 0 and (m.points or 0) > 0]
    if risen:
        found.append(f"rose from 0, so that no percent exists: {', '.join(risen)}")
    tasks = dict.fromkeys(m.task for m in metrics if m.task)
    unpaired = [u.reason for u in pair.unpaired if u.task in tasks]
    found += unpaired
    if row.mean is not None and not row.has_interval and not unpaired:
        found.append("no samples of both models, so no interval (compare result folders, not bare CSV files)")
    elif row.mean is None and not missing:
        found.append("the base is 0 in every metric, so that no percent exists")
    for task in tasks:
        metric = next(m for m in metrics if m.task == task)
        found += _task_lacks(task, metric, pair, rules)
    return found


def _task_lacks(task: str, metric: MetricResult, pair: PairResult, rules: Incomplete) -> list[str]:
    found = []
    for side, judged in (("base", metric.judged_base), ("adapted", metric.judged_adapted)):
        if rules.judged is not None and judged and 100 * judged[0] < rules.judged * judged[1]:
            found.append(f"{task}: {judged[0]} of {judged[1]} judged ({side}), {rules.judged:g} % needed")
    pairs = pair.tasks.get(task)
    if pairs is None:
        return found
    rows = max(pairs.base_rows, pairs.adapted_rows)
    if rules.paired is not None and 100 * pairs.shared < rules.paired * rows:
        found.append(f"{task}: both models have {pairs.shared} of {rows} samples, {rules.paired:g} % needed")
    for cut in pairs.cut if rules.truncated is not None else ():
        # a millionth of a point: 3 of 100 against 2 of 100 differ by one point, not by more
        if 100 * abs(cut.adapted - cut.base) > rules.truncated + 1e-6:
            shares = f"{100 * cut.base:.1f} % (base), {100 * cut.adapted:.1f} % (adapted)"
            found.append(f"{task}, {cut.what}: {shares}")
    return found


def _unknown(
    evidence: _Evidence, decided: _Decided, ends: Sequence[_Decided], rules: Incomplete
) -> list[str]:
    """What the unjudged samples could change: the verdict, or a sign that the interval has settled."""
    if not rules.unjudged or decided.verdict is None or not (evidence.worst or evidence.best):
        return []
    signed = evidence.direction * evidence.spread.deviation
    possible = sorted({decided.verdict, *(e.verdict for e in ends)}, key=VERDICTS.index)
    if len(possible) > 1:
        span = " to ".join(_percent(signed + move) for move in (evidence.worst, evidence.best))
        return [f"the unjudged samples could make it {' or '.join(possible)} ({span})"]
    if (decided.low > 0 and signed + evidence.worst < 0) or (decided.high < 0 and signed + evidence.best > 0):
        return ["the unjudged samples could turn a gain into a loss, or a loss into a gain"]
    return []


def _percent(value: float) -> str:
    return ("any rise" if value > 0 else "any loss") if math.isinf(value) else f"{number(value)} %"


# loss, lost, gained: what they are called where more is better, and where less is
_WORDS = {1: ("loss", "lost", "gained"), -1: ("rise", "rose", "fell")}


def _reason(gate: RowGate, verdict: str, count: int) -> str:
    """One sentence; losses are told as positive numbers."""
    loss, lost, gained = _WORDS[gate.direction or 1]
    allowed = f"{gate.margin:g} %"
    corrected = f"{_p(gate.holm)} after correction for {count} rows"
    largest = "of any size" if math.isinf(gate.low) else f"of {number(-gate.low)} %"
    if verdict == PASS:
        if gate.low >= 0:
            return f"no {loss}: the interval begins at {number(gate.low)} %"
        return f"a {loss} {largest} or more is excluded ({allowed} is allowed)"
    if verdict == REGRESSION:
        return f"{lost} {number(-gate.signed)} %, more than the {allowed} allowed ({corrected})"
    if gate.high < -gate.margin:
        return f"probably {lost} more than the {allowed} allowed, but it is not proven ({corrected})"
    seen = f"{gained if gate.signed >= 0 else lost} {number(abs(gate.signed))} %"
    return f"{seen}; too few samples to exclude a {loss} {largest} ({allowed} is allowed)"


def _p(value: float) -> str:
    if value < 0.0001:
        return "p < 0.0001"
    return f"p = {value:.2g}" if value < 0.1 else f"p = {value:.2f}"
