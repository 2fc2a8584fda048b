"""The gate: verdicts, reasons, exit codes, files; its error rates in simulation (marked long)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import synthetic
from support import ROOT

import compare_models
from evaluation.comparison import gate as g
from evaluation.comparison import gate_output as out
from evaluation.comparison import model as m
from evaluation.comparison import statistics as st
from evaluation.comparison.deviations import RowPlan, plan_rows
from evaluation.comparison.gate_config import GateError, Incomplete, gated_rows, read_gate, with_margin
from evaluation.comparison.truncation import cut_shares
from evaluation.pipeline import worst as worst_code
from evaluation.results import ModelResult
from evaluation.taxonomy import COLUMN_BY_NAME, COLUMNS, DEFAULT_CATEGORIES

UP = "C1 Accuracy (PopQA)"
UP_TOO = "C1 Accuracy (GSM8K)"
ALL_UP, ALL_DOWN = ([c.name for c in COLUMNS if c.direction == d] for d in (1, -1))
DOWN, DOWN_TOO = ALL_DOWN[:2]
NEUTRAL = next(c.name for c in COLUMNS if c.direction == 0)
RULES = Incomplete()


# --- material ---


def scores(n: int, right: int, forgotten: int = 0, gained: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Base and adapted flags (n,): `right` of n in the base, of which some are forgotten, and some gained."""
    base, adapted = np.zeros(n), np.zeros(n)
    base[:right] = 1
    adapted[forgotten : right + gained] = 1
    return base, adapted


def metric(
    column: str, base: np.ndarray, adapted: np.ndarray, shared: bool = False, **other
) -> m.MetricResult:
    """shared: the tasks of a row ask the same questions."""
    known = COLUMN_BY_NAME[column]
    offset = 0 if shared else 100_000 * COLUMNS.index(known)
    paired = st.pair_up("mean", base[None], adapted[None], np.arange(len(base)) + offset)
    b, a = paired.base, paired.adapted
    status = m.OK if b > 0 else m.ZERO_BASE
    made = m.MetricResult(
        column, known.task, known.unit, known.direction,
        b, a, paired.deviation, a - b, status, status == m.OK,
        pairs=len(base), paired=paired if b > 0 else None,
    )  # fmt: skip
    return replace(made, **other)


def row(title: str, metrics: Sequence[m.MetricResult], **other) -> m.RowResult:
    counted = [x for x in metrics if x.counted]
    spread = st.combine([x.paired for x in counted], [1 / len(counted)] * len(counted)) if counted else None
    low, high = st.percent_interval(spread) if spread else (None, None)
    mean = sum(x.deviation for x in counted) / len(counted) if counted else None
    found = {x.direction for x in metrics}
    made = m.RowResult(
        title, "CAN", "C1", tuple(x.column for x in metrics), found.pop() if len(found) == 1 else 0,
        mean, 0.0, mean, len(counted),
        weights={x.column: 1 / len(counted) for x in counted},
        paired_mean=spread.deviation if spread else None,
        se=spread.se if spread else None,
        df=spread.df if spread else None,
        interval_low=low, interval_high=high,
    )  # fmt: skip
    return replace(made, **other)


def pair(rows: dict[str, Sequence[m.MetricResult]], tasks: dict | None = None, **other) -> m.PairResult:
    metrics = {x.column: x for found in rows.values() for x in found}
    made = {title: row(title, found) for title, found in rows.items()}
    return m.PairResult(
        "SFT", "base", "sft", 1, 1, metrics, {**made, **other}, {}, None, tasks or {}, (), True
    )


def decide(
    found: Sequence[m.MetricResult], margin: float = 5.0, rules: Incomplete = RULES, **tasks
) -> g.RowGate:
    of_task = {t.task: t for t in tasks.values()}
    return g.judge_pair(pair({"Row": found}, of_task), {"Row": margin}, rules).rows[0]


def popqa(**facts) -> m.TaskPairs:
    return replace(m.TaskPairs("popqa.subset", 500, 500, 500, 500), **facts)


# --- verdicts ---

ROWS = {
    "nothing changed, enough samples": ([metric(UP, *scores(5000, 3000, 20, 20))], 5, g.PASS, "is excluded"),
    "gained": ([metric(UP, *scores(500, 250, 0, 60))], 5, g.PASS, "no loss"),
    "much lost": ([metric(UP, *scores(500, 300, 100, 5))], 5, g.REGRESSION, "lost 31.7 %"),
    "all lost": ([metric(UP, *scores(500, 300, 300, 0))], 5, g.REGRESSION, "lost 100.0 %"),
    "a loss within a wide margin": ([metric(UP, *scores(2000, 1200, 100, 0))], 20, g.PASS, "a loss of"),
    "too few samples to tell": ([metric(UP, *scores(40, 24, 3, 2))], 5, g.INCONCLUSIVE, "too few samples"),
    "no flip in ten samples proves nothing": ([metric(UP, *scores(10, 6))], 5, g.INCONCLUSIVE, "too few"),
    "less is better, and it rose": (
        [metric(DOWN, *scores(500, 200, 0, 100))], 5, g.REGRESSION, "rose 50.0 %, more than the 5 % allowed",
    ),
    "less is better, and it fell": ([metric(DOWN, *scores(500, 200, 100, 0))], 5, g.PASS, "no rise"),
    "less is better, 20 % allowed": ([metric(DOWN, *scores(4000, 2000, 10, 60))], 20, g.PASS, "a rise of"),
    "mixed: what fell and should, and what rose and should": (
        [metric(UP, *scores(500, 200, 0, 60)), metric(DOWN, *scores(500, 200, 60, 0))], 5, g.PASS, "no loss",
    ),
    "mixed: losses that a plain mean would cancel": (
        [metric(UP, *scores(500, 300, 100, 0)), metric(DOWN, *scores(500, 300, 0, 100))],
        5, g.REGRESSION, "lost 33.3 %",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("metrics", "margin", "verdict", "words"), ROWS.values(), ids=ROWS)
def test_verdict_of_a_row(metrics, margin, verdict, words):
    found = decide(metrics, margin)
    assert (found.verdict, words in found.reason) == (verdict, True), found.reason


HALF = scores(500, 300, 100, 5)
WHAT_LACKS = {
    "a missing metric": (
        [metric(UP, *HALF), replace(metric(UP_TOO, *HALF), status=m.MISSING, counted=False)],
        {}, "missing", f"missing: {UP_TOO}",
    ),
    "less than 95 % judged": (
        [metric(UP, *HALF, judged_base=(474, 500))], {}, "judged", "474 of 500 judged (base)",
    ),
    "less than 95 % judged in the adapted model": (
        [metric(UP, *HALF, judged_base=(500, 500), judged_adapted=(0, 500))], {}, "judged",
        "0 of 500 judged (adapted)",
    ),
    "answers cut in one model": (
        [metric(UP, *HALF)], {"cut": (m.CutShares("unfinished answers", 0.0, 0.02),)}, "truncated",
        "unfinished answers: 0.0 % (base), 2.0 % (adapted)",
    ),
    "samples that one model lacks": (
        [metric(UP, *HALF)], {"adapted_rows": 400, "shared": 400}, "paired", "400 of 500 samples",
    ),
    "unjudged samples that could excuse it": (
        [metric(UP, *HALF, bounds=(-40.0, 2.0))], {}, "unjudged", "could make it",
    ),
    "unjudged samples, and a base that may be 0": (
        [metric(UP, *HALF, bounds=(-90.0, None))], {}, "unjudged", "could make it",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("metrics", "task", "rule", "words"), WHAT_LACKS.values(), ids=WHAT_LACKS)
def test_what_lacks_makes_a_row_incomplete_unless_it_is_allowed(metrics, task, rule, words):
    found = decide(metrics, popqa=popqa(**task))
    assert found.verdict == g.INCOMPLETE
    assert words in found.reason and found.reason.endswith("so far it reads REGRESSION")
    off = False if isinstance(getattr(RULES, rule), bool) else None
    assert decide(metrics, rules=replace(RULES, **{rule: off}), popqa=popqa(**task)).verdict == g.REGRESSION


NEARLY = {
    "exactly 95 % judged": ({"judged_base": (475, 500)}, {}),
    "shares cut that differ by one point exactly": ({}, {"cut": (m.CutShares("prompts cut", 0.02, 0.03),)}),
    "exactly 95 % paired": ({}, {"base_rows": 475, "shared": 475}),
    "unjudged samples that change nothing": ({"bounds": (-33.0, -30.0)}, {}),
}


@pytest.mark.parametrize(("facts", "task"), NEARLY.values(), ids=NEARLY)
def test_what_is_just_enough(facts, task):
    assert decide([metric(UP, *HALF, **facts)], popqa=popqa(**task)).verdict == g.REGRESSION


def test_a_row_without_any_number_is_incomplete_whatever_is_allowed():
    lax = Incomplete(None, None, None, False, False)
    nothing = [replace(metric(UP, *HALF), status=m.MISSING, counted=False, paired=None)]
    assert decide(nothing, rules=lax).verdict == g.INCOMPLETE
    assert "base is 0" in decide([metric(UP, *scores(100, 0, 0, 10))], rules=lax).reason
    without = replace(row("Row", [metric(UP, *HALF)]), se=None, interval_low=None, interval_high=None)
    found = g.judge_pair(pair({"Row": [metric(UP, *HALF)]}, Row=without), {"Row": 5.0}, lax).rows[0]
    assert (found.verdict, found.p) == (g.INCOMPLETE, None)
    assert "no samples" in found.reason


def test_a_rate_of_mistakes_that_rose_from_nothing_does_not_pass():
    rose = [metric(DOWN, *scores(5000, 2500, 10, 10)), metric(DOWN_TOO, *scores(100, 0, 0, 50))]
    found = decide(rose)
    assert (
        found.verdict == g.INCOMPLETE
        and f"rose from 0, so that no percent exists: {DOWN_TOO}" in found.reason
    )
    stayed = [metric(DOWN, *scores(5000, 2500, 10, 10)), metric(DOWN_TOO, *scores(100, 0))]
    assert decide(stayed).verdict == g.PASS


def test_a_gated_row_that_is_not_there_is_incomplete_unless_it_may_be_missing():
    one = pair({"Row": [metric(UP, *scores(5000, 3000, 20, 20))]})
    margins = {"Row": 5.0, "Gone": 5.0}
    assert [r.verdict for r in g.judge_pair(one, margins, RULES).rows] == [g.PASS, g.INCOMPLETE]
    lax = g.judge_pair(one, margins, replace(RULES, missing=False))
    assert (len(lax.rows), lax.verdict) == (1, g.PASS)
    assert g.judge_pair(one, {"Gone": 5.0}, replace(RULES, missing=False)).verdict == g.INCOMPLETE


def test_a_settled_sign_that_unjudged_samples_could_turn_is_incomplete():
    gain = metric(UP, *scores(5000, 2500, 0, 60))
    assert decide([gain]).low > 0
    found = decide([replace(gain, bounds=(-0.5, 4.0))])
    assert found.verdict == g.INCOMPLETE and "turn a gain into a loss" in found.reason
    # nothing is claimed about the sign of a row whose interval holds zero: its verdict stands
    still = metric(UP, *scores(5000, 2500, 30, 30), bounds=(-0.5, 0.5))
    assert decide([still]).verdict == g.PASS


def test_bounds_of_a_row_in_which_less_is_better_are_turned_round():
    steady = metric(DOWN, *scores(5000, 2500, 30, 30))
    assert decide([replace(steady, bounds=(-60.0, 1.0))]).verdict == g.PASS
    assert decide([replace(steady, bounds=(-1.0, 60.0))]).verdict == g.INCOMPLETE


def test_signed_numbers_are_turned_round_where_less_is_better():
    found = decide([metric(DOWN, *scores(500, 200, 0, 100))])
    assert found.deviation == pytest.approx(50.0)
    assert found.signed == pytest.approx(-50.0)
    assert found.low < found.signed < found.high < 0
    assert found.direction == -1


def test_rise_p_agrees_with_the_interval():
    spread = st.Spread(8.0, 2.0, 200.0)
    low, _ = st.percent_interval(spread)
    assert g.rise_p(spread, low) == pytest.approx(0.025, abs=1e-9)
    assert g.rise_p(st.Spread(5.0, 0.0, 9.0), 5.0) == 1.0
    assert g.rise_p(st.Spread(5.1, 0.0, 9.0), 5.0) == 0.0
    assert g.rise_p(st.Spread(-120.0, 5.0, 50.0), 5.0) > 0.999


def test_holm_over_the_gated_rows_and_over_no_other():
    """One borderline row: proven alone, not beside nine others; a row that is not gated counts nothing."""
    border = [metric(UP, *scores(600, 360, 44, 10))]
    calm = [metric(UP_TOO, *scores(600, 360, 20, 20))]
    alone = g.judge_pair(pair({"Row": border, "Other": calm}), {"Row": 5.0}, RULES).rows[0]
    assert 0.005 < alone.p == alone.holm < 0.05 and alone.verdict == g.REGRESSION
    many = pair({"Row": border, **{f"Calm {i}": calm for i in range(9)}})
    beside = g.judge_pair(many, dict.fromkeys(many.rows, 5.0), RULES).rows[0]
    assert (beside.p, beside.holm) == (alone.p, pytest.approx(10 * alone.p))
    assert beside.verdict == g.INCONCLUSIVE
    assert "not proven" in beside.reason and "10 rows" in beside.reason


@pytest.mark.parametrize(
    ("verdicts", "expected", "code"),
    [
        ([g.PASS, g.PASS], g.PASS, 0),
        ([g.PASS, g.INCONCLUSIVE], g.INCONCLUSIVE, 3),
        ([g.INCOMPLETE, g.INCONCLUSIVE], g.INCOMPLETE, 4),
        ([g.INCOMPLETE, g.REGRESSION, g.PASS], g.REGRESSION, 2),
        ([], g.INCOMPLETE, 4),
    ],
)
def test_the_worst_verdict_decides_the_exit_code(verdicts, expected, code):
    rows = tuple(g.RowGate(str(i), "CAN", 1, 5.0, v, "") for i, v in enumerate(verdicts))
    gate = g.Gate((g.PairGate("SFT", "base", rows),))
    assert (gate.verdict, gate.exit_code) == (expected, code)
    if verdicts:
        assert worst_code([g.EXIT_CODES[v] for v in verdicts]) == code  # run_captrack.py ends the same way


def test_a_pair_that_could_not_be_compared_is_incomplete():
    comparison = comparison_of(pair({"Row": [metric(UP, *scores(5000, 3000, 20, 20))]}))
    assert g.run_gate(comparison, {"Row": 5.0}, RULES).verdict == g.PASS
    failed = replace(comparison, failed=(("DPO", "dpo: no such result folder"),))
    gate = g.run_gate(failed, {"Row": 5.0}, RULES)
    assert [p.verdict for p in gate.pairs] == [g.PASS, g.INCOMPLETE]
    assert gate.exit_code == 4
    assert "no such result folder" in out.console(gate) and "no such result folder" in out.markdown(gate)


def comparison_of(*pairs: m.PairResult) -> m.Comparison:
    titles = tuple(dict.fromkeys(t for p in pairs for t in p.rows))
    return m.Comparison(tuple(pairs), titles, {}, {}, True, "zero", "keep")


# --- what is cut ---


@pytest.mark.parametrize(
    ("what", "base", "adapted", "expected"),
    [
        ("unfinished answers", {"truncated": 5, "rows": 100}, {"truncated": 0, "rows": 50}, (0.05, 0.0)),
        ("one side without the count", {"truncated": 5, "rows": 100}, {"rows": 50}, None),
        ("a task without rows", {"truncated": 0, "rows": 0}, {"truncated": 0, "rows": 50}, None),
    ],
)
def test_shares_of_unfinished_answers(what, base, adapted, expected):
    sides = [[ModelResult(Path(), "x", {}, {"tasks": {"t": facts}})] for facts in (base, adapted)]
    found = cut_shares(*sides, "t")
    assert [(c.base, c.adapted) for c in found] == ([] if expected is None else [expected])


def test_shares_that_inference_recorded_are_means_over_runs():
    def run(cut: int, ended: int) -> ModelResult:
        facts = {"answered": 100, "truncated_prompts": cut, "ended_by_length": ended}
        return ModelResult(Path(), "x", {}, {"tasks": {}, "inference": {"tasks": {"t": facts}}})

    found = {c.what: (c.base, c.adapted) for c in cut_shares([run(0, 4)], [run(10, 0), run(20, 8)], "t")}
    assert found == {"prompts cut": (0.0, pytest.approx(0.15)), "answers at the output limit": (0.04, 0.04)}
    assert cut_shares([run(0, 4)], [ModelResult(Path(), "csv", {}, None)], "t") == ()


# --- configuration ---

PLANS = plan_rows(DEFAULT_CATEGORIES)


def test_without_rows_all_that_is_better_or_worse_is_gated():
    margins = gated_rows(with_margin(None, 5.0), PLANS)
    assert margins == {p.title: 5.0 for p in PLANS if p.direction}
    assert 0 < len(margins) < len(PLANS)


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        (5, {"C1 Knowledge": 5.0, "C2 Reasoning": 5.0}),
        ({"margin": 5, "rows": ["c2"]}, {"C2 Reasoning": 5.0}),
        ({"margin": 5, "rows": ["CAN", "C1 Knowledge"]}, {"C1 Knowledge": 5.0, "C2 Reasoning": 5.0}),
        ({"margins": {"CAN": 3}}, {"C1 Knowledge": 3.0, "C2 Reasoning": 3.0}),
        (
            {"margin": 5, "margins": {"C1 Knowledge": 1, "C1": 2, "CAN": 3}},
            {"C1 Knowledge": 1.0, "C2 Reasoning": 3.0},
        ),
        ({"margin": 5, "margins": {"c1": 4, "C1": 2}}, {"C1 Knowledge": 2.0, "C2 Reasoning": 5.0}),
        ({"margin": 0, "_remark": "none may be lost"}, {"C1 Knowledge": 0.0, "C2 Reasoning": 0.0}),
    ],
    ids=str,
)
def test_margins_of_rows(gate, expected):
    assert gated_rows(read_gate(gate), plan_rows(["C1", "C2"])) == expected


def test_a_row_with_a_neutral_metric_is_never_gated_and_one_of_both_directions_is():
    plans = [
        RowPlan("Mixed", (UP, DOWN), "", "", 0),
        RowPlan("Partly neutral", (UP, NEUTRAL), "", "", 0),
        RowPlan("Neutral", (NEUTRAL,), "", "", 0),
        RowPlan("Unheard of", ("My metric",), "", "", 0),
    ]
    assert list(gated_rows(with_margin(None, 5.0), plans)) == ["Mixed"]


WRONG_GATES = {
    "empty": (None, "gate: give a margin"),
    "true": (True, "gate: give a margin"),
    "text": ("strict", "gate: give a margin"),
    "no margin": ({"rows": ["CAN"]}, "gate.margin: is missing"),
    "a row without a margin": ({"margins": {"CAN": 3}}, "says nothing about 'W1 Unsafe Refusal'"),
    "margin below 0": ({"margin": -5}, "gate.margin: a margin is"),
    "margin of all": ({"margin": 100}, "gate.margin: a margin is"),
    "margin that is no number": ({"margin": float("nan")}, "gate.margin: a margin is"),
    "margin as text": ({"margin": "5"}, "gate.margin: a margin is"),
    "margin as truth value": ({"margins": {"CAN": True}}, "gate.margins.CAN: a margin is"),
    "margins as list": ({"margins": [3]}, "gate.margins: must be a mapping"),
    "mistyped key": ({"margin": 5, "row": ["CAN"]}, "gate.row: unknown key. Known: margin, margins"),
    "mistyped key of incomplete": ({"margin": 5, "incomplete": {"judge": 9}}, "judge: unknown key"),
    "rows as text": ({"margin": 5, "rows": "CAN"}, "gate.rows: must be a list"),
    "no rows": ({"margin": 5, "rows": []}, "gate.rows: must be a list"),
    "unknown row": ({"margin": 5, "rows": ["C1 Knowlege"]}, "Did you mean 'C1 Knowledge'?"),
    "unknown name of a margin": ({"margin": 5, "margins": {"C9": 3}}, "gate.margins: 'C9' is no row"),
    "neutral row": ({"margin": 5, "rows": ["W3a Verbosity"]}, "neither better nor worse"),
    "neutral capability": ({"margin": 5, "margins": {"W3b": 1}}, "neither better nor worse"),
    "judged above all": ({"margin": 5, "incomplete": {"judged": 101}}, "judged: must be 0 to 100"),
    "judged true": ({"margin": 5, "incomplete": {"judged": True}}, "judged: must be 0 to 100"),
    "missing as number": ({"margin": 5, "incomplete": {"missing": 3}}, "missing: must be true"),
    "incomplete as number": ({"margin": 5, "incomplete": 95}, "gate.incomplete: must be a mapping"),
}  # fmt: skip


@pytest.mark.parametrize(("gate", "words"), WRONG_GATES.values(), ids=WRONG_GATES)
def test_a_wrong_gate_is_one_clear_line(gate, words):
    with pytest.raises(GateError) as error:
        gated_rows(read_gate(gate), PLANS)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_no_row_left_to_gate():
    with pytest.raises(GateError, match="nothing to decide"):
        gated_rows(with_margin(None, 5.0), plan_rows(["W3a", "W3b"]))


def test_what_counts_as_incomplete_can_be_set_and_stays_under_a_margin_of_the_command_line():
    gate = read_gate(
        {"margin": 5, "rows": ["CAN"], "incomplete": {"judged": 80, "truncated": False, "missing": False}}
    )
    assert gate.incomplete == Incomplete(80, None, 95.0, False, True)
    assert with_margin(gate, 3.0).incomplete == gate.incomplete
    assert with_margin(gate, 3.0).rows is None
    assert read_gate(False) is None


# --- words and files ---

HOSTILE = 'a<b>&"\x00\x1b[31m]]>\ud800￾|\r\n' + "x" * 500


def hostile_gate() -> g.Gate:
    rows = [g.RowGate(HOSTILE, "CAN", 1, 5.0, v, HOSTILE) for v in g.VERDICTS]
    rows.append(g.RowGate("Row", "", -1, 5.0, g.PASS, "", 1.5e9, -1.5e9, float("-inf"), 3.0, 0.5, 1.0))
    return g.Gate(
        (g.PairGate(HOSTILE, HOSTILE, tuple(rows)), g.PairGate("v1.5", "", (), HOSTILE)), (HOSTILE,)
    )


def test_junit_is_xml_whatever_the_texts_hold(tmp_path):
    out.write_gate(tmp_path, hostile_gate(), [HOSTILE])
    root = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert root.attrib["tests"] == "6" and root.attrib["failures"] == "1"
    assert (root.attrib["errors"], root.attrib["skipped"]) == ("2", "1")
    cases = root.findall("testsuite/testcase")
    assert [c[0].tag for c in cases] == ["system-out", "skipped", "error", "failure", "system-out", "error"]
    assert cases[-1].attrib["classname"] == "captrack.v1_5"
    assert "\x1b" not in (tmp_path / "gate.xml").read_text(encoding="utf-8")


def test_console_has_no_line_beyond_80_columns_and_nothing_that_a_terminal_obeys():
    text = out.console(hostile_gate())
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.endswith("Gate: REGRESSION (exit code 2)")
    assert "\x1b" not in text and "\x00" not in text


def test_markdown_table_keeps_its_cells():
    lines = [line for line in out.markdown(hostile_gate(), [HOSTILE]).splitlines() if line.startswith("| a")]
    assert len(lines) == 4
    assert all(line.replace("\\|", "").count("|") == 8 for line in lines)
    assert "<b>" not in "".join(lines)


def test_names_of_cases_are_stable_and_files_repeat(tmp_path):
    """Neither a number nor a date in a name, so that a server can follow a case."""
    calm = pair({"C1 Knowledge": [metric(UP, *scores(5000, 3000, 20, 20))]})
    worse = pair({"C1 Knowledge": [metric(UP, *scores(500, 300, 100, 5))]})
    texts = [
        out.junit(g.run_gate(comparison_of(p), {"C1 Knowledge": 5.0}, RULES)) for p in (calm, worse, worse)
    ]
    cases = [ElementTree.fromstring(text).find("testsuite/testcase").attrib for text in texts]
    assert cases[0] == cases[1] == {"classname": "captrack.SFT.CAN", "name": "C1 Knowledge", "time": "0"}
    assert texts[1] == texts[2]


def test_a_row_in_which_less_is_better_is_shown_as_in_the_heatmap():
    gate = g.run_gate(
        comparison_of(pair({"Row": [metric(DOWN, *scores(500, 200, 0, 100))]})), {"Row": 5.0}, RULES
    )
    line = next(line for line in out.console(gate).splitlines() if line.startswith("Row "))
    low, high = line.split("[")[1].split("]")[0].split(", ")
    assert "50.0" in line and 0 < float(low) < 50 < float(high)


# --- the script ---


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """A base, an equal model, one that forgot popqa, and one with a fifth of a judge's verdicts missing."""
    folder = tmp_path_factory.mktemp("absolute_metrics")
    tasks = ("popqa.subset", "oasst1.full")
    synthetic.model(folder, "base", n=1500, tasks=tasks, noise=0.05)
    synthetic.model(folder, "equal", n=1500, run_seed=2, tasks=tasks, noise=0.05)
    synthetic.model(folder, "forgot", {"popqa.subset": -1.0}, n=1500, run_seed=2, tasks=tasks)
    synthetic.model(folder, "few", n=40, run_seed=2, tasks=tasks)
    synthetic.model(folder, "few-base", n=40, tasks=tasks)
    return folder


def config_file(tmp_path: Path, results: Path, adapted: str, base: str = "base", **keys) -> Path:
    settings = {
        "model_pairs": [{"base": str(results / base), "adapted": str(results / adapted), "name": adapted}],
        "output_dir": str(tmp_path / "out"),
        "aggregation": {
            "C1 Knowledge": [UP],
            "W3 Style": [c.name for c in COLUMNS if c.task == "oasst1.full"][:1],
        },
        "save_options": {"save_figure": False},
        **keys,
    }
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(settings))
    return path


GATE = {"margin": 5}
ENDS = {
    "pass": ("equal", "base", GATE, [], 0),
    "regression": ("forgot", "base", GATE, [], 2),
    "inconclusive": ("few", "few-base", GATE, [], 3),
    "incomplete: half of the samples": ("few", "base", GATE, [], 4),
    "--gate with a section": ("forgot", "base", GATE, ["--gate"], 2),
    "--gate with a margin and no section": ("forgot", "base", None, ["--gate", "5"], 2),
    "a margin of the command line goes first": ("forgot", "base", GATE, ["--gate=99"], 0),
    "no gate": ("forgot", "base", None, [], 0),
    "gate: false is none": ("forgot", "base", False, [], 0),
    "--gate without a section": ("forgot", "base", None, ["--gate"], 1),
    "--gate with gate: false": ("forgot", "base", False, ["--gate"], 1),
    "--gate with a word": ("forgot", "base", GATE, ["--gate", "strict"], 1),
    "--gate below 0": ("forgot", "base", GATE, ["--gate", "-1"], 1),
    "--gate that is no number": ("forgot", "base", GATE, ["--gate", "nan"], 1),
    "--gate and --aa": ("forgot", "base", GATE, ["--aa", "x", "y", "--gate"], 1),
    "unknown option": ("forgot", "base", GATE, ["--gates"], 1),
    "a wrong section": ("forgot", "base", {"margin": 5, "rows": ["H9"]}, [], 1),
    "a neutral row": ("forgot", "base", {"margin": 5, "rows": ["W3 Style"]}, [], 1),
    "no such result": ("nobody", "base", GATE, [], 1),
}


@pytest.mark.parametrize(("adapted", "base", "gate", "options", "code"), ENDS.values(), ids=ENDS)
def test_exit_codes(results, tmp_path, capsys, adapted, base, gate, options, code):
    keys = {} if gate is None else {"gate": gate}
    arguments = ["--config", str(config_file(tmp_path, results, adapted, base, **keys)), *options]
    try:
        ended = compare_models.main(arguments)
    except SystemExit as stop:
        ended = stop.code
    printed = capsys.readouterr()
    assert ended == code, printed.out + printed.err
    gated = code != 1 and (gate or options)
    assert (tmp_path / "out" / "gate.xml").exists() == bool(gated)
    assert (f"(exit code {code})" in printed.out) == bool(gated)
    if code == 1:
        assert "Traceback" not in printed.err and printed.err.strip()


def test_an_earlier_verdict_does_not_outlive_its_comparison(results, tmp_path):
    """A build server reads gate.xml also where this comparison ended with an error."""
    assert compare_models.main(["--config", str(config_file(tmp_path, results, "equal", gate=GATE))]) == 0
    assert (tmp_path / "out" / "gate.xml").exists()
    assert compare_models.main(["--config", str(config_file(tmp_path, results, "nobody", gate=GATE))]) == 1
    assert not (tmp_path / "out" / "gate.xml").exists()
    assert not (tmp_path / "out" / "gate.md").exists()


def test_a_pair_that_failed_beside_one_that_passed_is_incomplete(results, tmp_path, capsys):
    pairs = [
        {"base": str(results / "base"), "adapted": str(results / a), "name": a} for a in ("equal", "nobody")
    ]
    assert (
        compare_models.main(["--config", str(config_file(tmp_path, results, "", gate=5, model_pairs=pairs))])
        == 4
    )
    assert "INCOMPLETE, not compared" in capsys.readouterr().out


def test_unjudged_samples_reach_the_gate(results, tmp_path, capsys):
    """3 % unjudged is enough judged, but they could hold the whole loss."""
    table = synthetic.task_table("popqa.subset", 1500, 0.0, 2, noise=0.05, unjudged=45)
    folder = synthetic.write_result(tmp_path / "unjudged", "unjudged", {"popqa.subset": table})
    path = config_file(tmp_path, results, "equal", aggregation={"C1 Knowledge": [UP]}, gate=3)
    options = ["--base", str(results / "base"), "--adapted", str(folder)]
    assert compare_models.main(["--config", str(path), *options]) == 4
    assert "unjudged samples could make it" in " ".join(capsys.readouterr().out.split())
    assert compare_models.main(["--config", str(path), *options, "--gate", "60"]) == 0


def test_unfinished_answers_reach_the_gate(results, tmp_path, capsys):
    folder = synthetic.model(tmp_path, "thinks", n=1500, run_seed=2, tasks=("popqa.subset", "oasst1.full"))
    run = json.loads((folder / "run.json").read_text())
    run["tasks"]["popqa.subset"]["truncated"] = 40
    base = json.loads((results / "base" / "run.json").read_text())
    base["tasks"]["popqa.subset"]["truncated"] = 0
    (folder / "run.json").write_text(json.dumps(run))
    (results / "base" / "run.json").write_text(json.dumps(base))
    path = config_file(tmp_path, results, "equal", gate=5)
    arguments = ["--config", str(path), "--base", str(results / "base"), "--adapted", str(folder)]
    assert compare_models.main(arguments) == 4
    assert "unfinished answers: 0.0 % (base), 2.7 %" in " ".join(capsys.readouterr().out.split())


def test_a_bare_csv_is_incomplete(results, tmp_path, capsys):
    for name in ("base", "equal"):
        (tmp_path / f"{name}.csv").write_bytes((results / name / "metrics.csv").read_bytes())
    arguments = ["--base", str(tmp_path / "base.csv"), "--adapted", str(tmp_path / "equal.csv")]
    ended = compare_models.main(
        [*arguments, "--categories", "C1", "--output", str(tmp_path / "o"), "--gate", "5"]
    )
    assert ended == 4
    assert "no samples of both models" in " ".join(capsys.readouterr().out.split())


def test_usage_errors_of_the_process_are_1():
    for options in (["--gate"], ["--gate", "x", "--base", "a"], ["--nonsense"], []):
        done = subprocess.run(
            [sys.executable, str(ROOT / "compare_models.py"), *options],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (1, False), options


def test_run_captrack_passes_the_gate_on_and_ends_with_its_code(tmp_path, capfd):
    import run_captrack

    def run(*options: str) -> int:
        places = ["--metrics_dir", str(tmp_path / "m"), "--output_dir", str(tmp_path / "c")]
        try:
            return run_captrack.main(
                ["--base", "demo-base", "--adapted", "demo-adapted", "--judge", "overlap@builtin", *places,
                 "--tasks", "popqa.subset", "gsm8k.subset", "--workers", "1", *options]
            )  # fmt: skip
        except SystemExit as stop:
            return stop.code

    # told before anything runs, not after hours of inference
    assert run("--gate") == 1
    assert "no gate section" in capfd.readouterr().err
    assert run("--gate", "much") == 1
    assert not (tmp_path / "m").exists() and not (tmp_path / "c").exists()
    config = tmp_path / "gate.yaml"
    config.write_text(json.dumps({"aggregation": {"C1": [UP, UP_TOO]}, "gate": {"margin": 1}}))
    assert run("--config", str(config), "--gate") == 3
    assert run("--config", str(config), "--gate", "--gate", "99") == 0
    assert run("--config", str(config)) == 3
    assert "comparison: inconclusive" in capfd.readouterr().out
    # the rows of all other tasks are missing
    assert run("--gate", "5") == 4
    assert (tmp_path / "c" / "demo-base_vs_demo-adapted" / "gate.xml").exists()


# --- error rates ---

ROWS_SIMULATED, SAMPLES = 8, 300


KINDS = {
    # row → its two columns. A mixed row is looked up by its columns, so they are different ones in every row
    "more is better": [(UP, UP_TOO)] * ROWS_SIMULATED,
    "less is better": [(DOWN, DOWN_TOO)] * ROWS_SIMULATED,
    "mixed": list(zip(ALL_UP, ALL_DOWN, strict=False))[:ROWS_SIMULATED],
}


def simulated_gate(
    rng: np.random.Generator, kind: str, change: float, margin: float, shared: bool
) -> g.PairGate:
    """Rows of two tasks each, binary, 300 samples, whose true signed change is `change` percent.

    shared: both tasks of a row ask the same questions, else each its own.
    """
    rows, metrics = {}, {}
    for number, columns in enumerate(KINDS[kind]):
        difficulty = rng.uniform(size=SAMPLES)
        found = []
        for column, low, high in zip(columns, (0.35, 0.6), (0.6, 0.8), strict=True):
            right = rng.uniform(low, high)
            drawn = difficulty if shared else rng.uniform(size=SAMPLES)
            again = np.where(rng.uniform(size=SAMPLES) < 0.8, drawn, rng.uniform(size=SAMPLES))
            base = drawn < right
            adapted = again < right * (1 + COLUMN_BY_NAME[column].direction * change / 100)
            found.append(metric(column, base.astype(float), adapted.astype(float), shared))
        rows[f"Row {number}"] = row(f"Row {number}", found)
        metrics |= {x.column: x for x in found}
    compared = m.PairResult("SFT", "base", "sft", 1, 1, metrics, rows, {}, None, {}, (), True)
    return g.judge_pair(compared, dict.fromkeys(rows, margin), RULES)


def rates(kind: str, change: float, margin: float, shared: bool, runs: int) -> tuple[float, float, float]:
    """As shares: runs with any REGRESSION, rows that PASS, runs in which all rows PASS."""
    rng = np.random.default_rng(20260301)
    gates = [simulated_gate(rng, kind, change, margin, shared) for _ in range(runs)]
    regressed = np.mean([any(r.verdict == g.REGRESSION for r in gate.rows) for gate in gates])
    passed = np.mean([r.verdict == g.PASS for gate in gates for r in gate.rows])
    return float(regressed), float(passed), float(np.mean([gate.verdict == g.PASS for gate in gates]))


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "margin", "shared", "runs"),
    [
        ("more is better", 5.0, True, 1000),
        ("more is better", 20.0, True, 1000),
        ("more is better", 5.0, False, 400),
        ("less is better", 5.0, True, 1000),
        ("less is better", 15.0, True, 1000),
        ("mixed", 5.0, True, 1000),
    ],
)
def test_error_rates_at_a_true_change_of_exactly_the_margin(kind, margin, shared, runs):
    """REGRESSION family-wise over the rows. PASS of one row, as in a gate whose other rows are beyond doubt:
    measured 2.2 to 3.4 %, the upper tail of an interval that covers 95 % in all but is a little skewed."""
    regressed, passed, all_passed = rates(kind, -margin, margin, shared, runs)
    assert regressed <= 0.05
    assert passed <= 0.025 + 2 * (0.025 * 0.975 / runs) ** 0.5
    assert all_passed <= 0.01
    # a gate that never says anything would hold the above
    assert regressed >= 0.015 and passed >= 0.015


@pytest.mark.long
def test_the_gate_finds_what_is_there():
    assert rates("more is better", -25.0, 5.0, True, 200)[0] > 0.95
    assert rates("more is better", 0.0, 15.0, True, 200)[1] > 0.95
    assert rates("more is better", 0.0, 5.0, True, 200)[0] < 0.05
