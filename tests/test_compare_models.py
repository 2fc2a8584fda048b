"""compare_models.py and the rooms behind it, on synthetic results: pairs, refusals, words, tables,
pictures."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest
import synthetic
from support import ROOT

import compare_models
from evaluation.comparison import config as cf
from evaluation.comparison import deviations as dv
from evaluation.comparison import model as m
from evaluation.comparison.analysis import Rules, compare_pair, mean_values
from evaluation.comparison.compatibility import between_runs, differences
from evaluation.comparison.run import ComparisonError, compare
from evaluation.comparison.tally import tally
from evaluation.comparison.words import footer
from evaluation.results import ModelResult, ResultError, read_result
from evaluation.taxonomy import CAPABILITIES, COLUMNS, DEFAULT_CATEGORIES

FEW = ("popqa.subset", "gsm8k.subset", "gsm8k.rephrased", "mtbench.turn1", "oasst1.full", "bfcl.subset")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """A base, a model that forgot popqa, the base once more with other noise, and one without two tasks."""
    folder = tmp_path_factory.mktemp("absolute_metrics")
    synthetic.model(folder, "base", n=200)
    synthetic.model(folder, "forgot", {"popqa.subset": -1.2, "mtbench.turn1": 0.8}, n=200, run_seed=2)
    synthetic.model(folder, "again", n=200, run_seed=3)
    synthetic.model(folder, "part", n=200, run_seed=4, tasks=FEW)
    return folder


def pair_of(results: Path, adapted: str = "forgot", base: str = "base", rules: Rules | None = None, **plan):
    plans = dv.plan_rows(plan.get("categories", DEFAULT_CATEGORIES), plan.get("aggregate", True))
    loaded = [[read_result(results / name)] for name in (base, adapted)]
    return compare_pair(adapted, *loaded, plans, rules or Rules())


def run(*arguments: object, pictures: bool = False) -> int:
    """The script's exit code; pictures are drawn only where a test is about them."""
    undrawn = nullcontext() if pictures else patch("evaluation.comparison.run._draw", lambda *_: ([], []))
    with undrawn:
        return compare_models.main([str(a) for a in arguments])


def csv_lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


# --- deviations ---


@pytest.mark.parametrize(
    ("what", "base", "adapted", "expected"),
    [
        ("zero base has points only", 0.0, 0.1, (None, 0.1, m.ZERO_BASE)),
        ("zero to zero is 0 points, not 0 %", 0.0, 0.0, (None, 0.0, m.ZERO_BASE)),
        ("-2 to -1 is an improvement, not -50 %", -2.0, -1.0, (None, 1.0, m.ZERO_BASE)),
        ("missing adapted", 0.5, None, (None, None, m.MISSING)),
        ("missing base", None, 0.5, (None, None, m.MISSING)),
        ("less", 0.5, 0.4, (pytest.approx(-20.0), pytest.approx(-0.1), m.OK)),
        ("all lost", 0.5, 0.0, (-100.0, -0.5, m.OK)),
    ],
)
def test_relative_deviation(what, base, adapted, expected):
    assert dv.relative_deviation(base, adapted) == expected


@pytest.mark.parametrize(
    ("missing", "mean", "share"), [("zero", pytest.approx(5.0), 5.0), ("exclude", 10.0, 10.0)]
)
def test_a_missing_metric_in_a_row(missing, mean, share):
    row = dv.row_mean({"a": 10.0, "b": None}, {"a": m.OK, "b": m.MISSING}, missing)
    assert (row.mean, row.share, row.present) == (mean, pytest.approx(share), 1)


def test_a_row_of_which_nothing_is_there_has_no_mean_but_counts_in_its_group():
    row = dv.row_mean({"a": None}, {"a": m.MISSING}, "zero")
    assert (row.mean, row.share) == (None, 0.0)
    assert dv.row_mean({"a": None}, {"a": m.MISSING}, "exclude").share is None
    assert dv.group_mean([10.0, 0.0], [1.0])[0] == 5.0
    assert dv.group_mean([], []) == (None, None)


def test_a_zero_base_never_counts_as_zero():
    row = dv.row_mean({"a": 10.0, "b": None}, {"a": m.OK, "b": m.ZERO_BASE}, "zero")
    assert (row.mean, row.present) == (10.0, 1)


def test_group_spread_by_hand():
    assert dv.group_mean([1.0, 3.0], [3.0, 4.0]) == (2.0, pytest.approx((12.5**0.5) / 2**0.5))


def test_equal_names_stay_apart():
    assert dv.different_names(["a", "a", "b", "a", "a (2)"]) == ["a", "a (2)", "b", "a (3)", "a (2) (2)"]


def test_rows_of_the_tree():
    assert len(dv.plan_rows(DEFAULT_CATEGORIES)) == 19
    assert [p.title for p in dv.plan_rows(["W1"])] == ["W1 Unsafe Refusal", "W1 Underspec. Comp."]
    assert {p.group for p in dv.plan_rows(["WILL"])} == {"WILL"}
    assert len(dv.plan_rows(["WILL"])) == 6
    assert len(dv.plan_rows(None, aggregate=False)) == len(COLUMNS)
    # columns without a row of their own are shown when somebody asks for them
    assert [p.title for p in dv.plan_rows(["W2b"])] == [c.name for c in COLUMNS if c.capability == "W2b"]


# --- an adapted model that is its base ---


@pytest.mark.parametrize(("changed", "said"), [(0, True), (2, True), (3, False)])
def test_answers_that_equal_the_bases_are_told_everywhere(tmp_path, capsys, changed, said):
    """2 of 200 answers may differ; 99 % is the limit."""
    table = synthetic.task_table("popqa.subset", 200)
    synthetic.write_result(tmp_path / "base", "base", {"popqa.subset": table})
    table.columns["answer"][:changed] = ["something else"] * changed
    table.columns["key"].reverse()  # pairs are made by key, never by position
    for column in ("answer", *(name for name in table.columns if name not in ("key", "answer"))):
        table.columns[column].reverse()
    synthetic.write_result(tmp_path / "lora", "lora", {"popqa.subset": table})
    arguments = ("--base", tmp_path / "base", "--adapted", tmp_path / "lora", "--output", tmp_path / "out")
    assert run(*arguments) == 0
    words = "HARDLY DIFFERS"
    console = " ".join(capsys.readouterr().out.split())
    summary = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    pair = pair_of(tmp_path, "lora")
    comparison = m.Comparison((pair,), (), {}, {}, True, "zero", "keep")
    assert [words in text for text in (console, summary, " ".join(footer(comparison)))] == [said] * 3
    if said:
        assert f"{200 - changed} of 200 answers are the base's word for word" in console


# --- pairs, intervals, verdicts ---


def test_what_was_forgotten_is_found_and_the_rest_is_not(results):
    pair = pair_of(results)
    row, metric = pair.rows["C1 Knowledge"], pair.metrics["C1 Accuracy (PopQA)"]
    assert metric.high < 0
    assert metric.forgotten > 3 * metric.gained
    assert metric.pairs == 200
    assert metric.test == "McNemar mid-p"
    assert row.verdict == m.FORGOT
    assert pair.rows["W3a Verbosity"].verdict == m.DRIFTED
    assert pair.tasks["popqa.subset"].forgotten == metric.forgotten
    assert pair.tasks["popqa.subset"].both_right + pair.tasks["popqa.subset"].forgotten == round(
        200 * metric.base
    )
    quiet = pair_of(results, "again")
    verdicts = [r.verdict for r in quiet.rows.values()]
    assert m.FORGOT not in verdicts


def test_every_published_column_has_its_interval(results):
    pair = pair_of(results, categories=None, aggregate=False)
    without = [c for c, metric in pair.metrics.items() if metric.low is None and metric.status == m.OK]
    assert without == []
    for metric in pair.metrics.values():
        if metric.low is not None:
            assert metric.low <= metric.paired_deviation <= metric.high
            assert metric.paired_deviation == pytest.approx(metric.deviation, abs=1e-9)


def test_rows_and_groups_have_intervals_around_their_means(results):
    pair = pair_of(results)
    for found in (*pair.rows.values(), *pair.groups.values(), pair.overall):
        assert found.interval_low < found.mean < found.interval_high
    assert pair.groups["CAN"].mean == pytest.approx(
        sum(pair.rows[t].mean for t in pair.groups["CAN"].rows) / 7
    )
    assert pair.overall.mean == pytest.approx(sum(g.mean for g in pair.groups.values()) / 3)
    assert pair.groups["CAN"].se < max(pair.rows[t].se for t in pair.groups["CAN"].rows)


def test_q_values_are_never_below_p(results):
    rows = pair_of(results).rows.values()
    assert all(row.q >= row.p for row in rows)


def test_pairs_are_made_by_id_and_the_rest_is_named(tmp_path):
    base = synthetic.task_table("popqa.subset", 50)
    adapted = synthetic.task_table("popqa.subset", 50, run_seed=2)
    order = list(range(49, -1, -1))  # another order, and one other id
    adapted.columns = {name: [values[i] for i in order] for name, values in adapted.columns.items()}
    adapted.columns["id"][0] = adapted.columns["key"][0] = adapted.columns["cluster"][0] = "other"
    synthetic.write_result(tmp_path / "a", "a", {"popqa.subset": base})
    synthetic.write_result(tmp_path / "b", "b", {"popqa.subset": adapted})
    task = pair_of(tmp_path, "b", "a").tasks["popqa.subset"]
    assert (task.base_rows, task.adapted_rows, task.shared) == (50, 50, 49)
    assert (task.only_base, task.only_adapted) == (("q0049",), ("other",))
    same = pair_of(tmp_path, "a", "a")
    assert same.tasks["popqa.subset"].forgotten == same.tasks["popqa.subset"].gained == 0


def test_both_deviations_are_shown_where_the_sets_differ(tmp_path):
    synthetic.model(tmp_path, "a", n=120, tasks=("popqa.subset",))
    table = synthetic.task_table("popqa.subset", 120, run_seed=2)
    for name in table.columns:
        table.columns[name] = table.columns[name][:60]
    synthetic.write_result(tmp_path / "b", "b", {"popqa.subset": table})
    pair = pair_of(tmp_path, "b", "a", Rules("exclude"))
    metric = pair.metrics["C1 Accuracy (PopQA)"]
    assert metric.pairs == 60
    assert metric.deviation != pytest.approx(metric.paired_deviation, abs=0.01)
    assert any("samples that both models have" in note for note in pair.rows["C1 Knowledge"].notes)


@pytest.mark.parametrize(
    ("key", "words"), [("q0001", "more than once: q0001"), ("prompt:ab12", "rows without id")]
)
def test_a_key_that_occurs_twice_is_an_error_that_lists_it(tmp_path, key, words):
    table = synthetic.task_table("popqa.subset", 20)
    table.columns["key"][3] = table.columns["key"][4] = key
    table.columns["key"][1] = key
    synthetic.write_result(tmp_path / "a", "a", {"popqa.subset": table})
    synthetic.model(tmp_path, "b", n=20, tasks=("popqa.subset",))
    pair = pair_of(tmp_path, "b", "a")
    assert [(u.task, u.is_error) for u in pair.unpaired] == [("popqa.subset", True)]
    assert words in pair.unpaired[0].reason


@pytest.mark.parametrize(
    ("keys", "words", "code"),
    [
        ([None] * 60, "rows have neither id nor prompt, so they cannot be paired; give them an id column", 0),
        ([None, *(f"q{i:04d}" for i in range(1, 60))], "1 of 60 rows have neither id nor prompt", 0),
        (["prompt:ab"] * 2 + [f"q{i:04d}" for i in range(58)], "more than once (prompt:ab)", 4),
    ],
)
def test_a_task_that_cannot_be_paired_has_no_interval_and_the_others_go_on(
    tmp_path, capsys, keys, words, code
):
    for name, seed in (("a", 1), ("b", 2)):
        tables = {t: synthetic.task_table(t, 60, run_seed=seed) for t in ("popqa.subset", "boolq.subset")}
        tables["popqa.subset"].columns["key"] = keys
        file = {"tasks": {"popqa.subset": {"file": "responses/popqa.subset.jsonl"}}}
        synthetic.write_result(tmp_path / name, name, tables, file)
    assert run("--base", tmp_path / "a", "--adapted", tmp_path / "b", "--output", tmp_path / "o") == code
    captured = capsys.readouterr()
    said = f"a (responses/popqa.subset.jsonl), popqa.subset: {'rows without' if code else ''}"
    assert said in " ".join(captured.out.split())
    assert words in " ".join(captured.out.split())
    assert (words in captured.err) == bool(code)
    long = {line["name"]: line for line in csv_lines(tmp_path / "o" / "comparison_long.csv")}
    assert long["C1 Accuracy (PopQA)"]["deviation"] and not long["C1 Accuracy (PopQA)"]["low"]
    assert long["C3 Accuracy (BoolQ)"]["low"]


@pytest.mark.parametrize(
    ("adapted", "words"),
    [
        ({"popqa.subset": 500, "boolq.subset": 500}, "NO SAMPLE PAIRED in any of 2 shared tasks"),
        ({"gsm8k.subset": 0}, "NOTHING IN COMMON"),
    ],
)
def test_two_models_with_nothing_in_common_end_with_4_and_a_word_at_the_top(tmp_path, capsys, adapted, words):
    """Adapted: tasks, and where their ids begin (the base's end at 40)."""
    synthetic.model(tmp_path, "a", n=40, tasks=("popqa.subset", "boolq.subset"))
    tables = {t: synthetic.task_table(t, 40, run_seed=2, skip=skip) for t, skip in adapted.items()}
    synthetic.write_result(tmp_path / "b", "b", tables)
    arguments = ("--base", tmp_path / "a", "--adapted", tmp_path / "b", "--output", tmp_path / "o")
    assert run(*arguments) == 4
    top = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert top[0].startswith("! ")
    assert words in " ".join(top)
    line = csv_lines(tmp_path / "o" / "relative_differences.csv")[0]
    assert bool(line["C1 Knowledge"]) == (words != "NOTHING IN COMMON")


def test_an_unscored_sample_leaves_the_pair(tmp_path):
    synthetic.model(tmp_path, "a", n=100, tasks=("ragtruth.subset",))
    synthetic.model(tmp_path, "b", n=100, run_seed=2, tasks=("ragtruth.subset",), unjudged=7)
    metric = pair_of(tmp_path, "b", "a").metrics["C4 Faithfulness (RAGTruth)"]
    assert (metric.pairs, metric.unscored) == (93, 7)
    assert metric.bounds[0] < metric.deviation < metric.bounds[1]


def test_a_sign_that_unjudged_samples_could_turn_is_no_verdict(tmp_path):
    synthetic.model(tmp_path, "a", n=300, tasks=("ragtruth.subset",))
    synthetic.model(tmp_path, "b", -0.6, n=300, run_seed=2, tasks=("ragtruth.subset",), unjudged=120)
    row = pair_of(tmp_path, "b", "a", Rules("exclude")).rows["W2 Coverage"]
    assert row.incomplete
    assert row.verdict == m.COULD_NOT_TELL
    assert "unjudged samples could turn the sign" in row.notes


def test_zero_judged_rows_are_missing_with_a_reason(tmp_path):
    synthetic.model(tmp_path, "a", n=30, tasks=("ragtruth.subset",))
    synthetic.model(tmp_path, "b", n=30, run_seed=2, tasks=("ragtruth.subset",), unjudged=30)
    metric = pair_of(tmp_path, "b", "a").metrics["C4 Faithfulness (RAGTruth)"]
    assert (metric.status, metric.note) == (m.MISSING, "missing in adapted")


def test_a_base_of_zero_shows_points_with_an_interval(tmp_path):
    for name, right in (("a", 0), ("b", 12)):
        table = synthetic.task_table("popqa.subset", 100)
        table.columns["correct"] = [i < right for i in range(100)]
        synthetic.write_result(tmp_path / name, name, {"popqa.subset": table})
    pair = pair_of(tmp_path, "b", "a")
    metric = pair.metrics["C1 Accuracy (PopQA)"]
    assert (metric.deviation, metric.status, metric.low) == (None, m.ZERO_BASE, None)
    assert metric.points_low < 0.12 < metric.points_high
    assert metric.p < 0.001
    assert "+12.0 points" in " ".join(pair.rows["C1 Knowledge"].notes)


@pytest.mark.parametrize("low_base", ["keep", "exclude"])
def test_a_low_base_is_kept_or_left_out_and_always_named(tmp_path, low_base):
    for name, right in (("a", 3), ("b", 9)):
        tables = {t: synthetic.task_table(t, 200) for t in ("popqa.subset", "gsm8k.subset")}
        tables["popqa.subset"].columns["correct"] = [i < right for i in range(200)]
        synthetic.write_result(tmp_path / name, name, tables)
    row = pair_of(tmp_path, "b", "a", Rules("exclude", low_base)).rows["C1 Knowledge"]
    assert row.low == ("C1 Accuracy (PopQA)",)
    if low_base == "keep":
        assert row.mean == pytest.approx(100.0)
        assert row.mean_without_low == pytest.approx(0.0)
    else:
        assert row.mean == pytest.approx(0.0)
        assert row.present == 1
    assert any("base too low" in note for note in row.notes)


def test_an_average_that_rests_on_a_low_base_says_what_it_is_without(tmp_path, capsys):
    """C1: PopQA 3 → 9 of 200 beside GSM8K 100 → 110; C4: TruthfulQA 2 → 14 of 200 alone; C3: 100 → 90."""
    counts = {"popqa.subset": (3, 9), "gsm8k.subset": (100, 110), "truthfulqa.full": (2, 14)}
    for side, name in enumerate(("a", "b")):
        tables = {t: synthetic.task_table(t, 200) for t in (*counts, "boolq.subset")}
        for task, both in counts.items():
            tables[task].columns["correct"] = [i < both[side] for i in range(200)]
        synthetic.write_result(tmp_path / name, name, tables)
    group = pair_of(tmp_path, "b", "a", Rules("exclude")).groups["CAN"]
    assert group.low_rows == ("C1 Knowledge", "C4 Faithfulness")
    # C1 (200 + 10) / 2, C3 0, C4 600; without: C1 10, C3 0
    assert (group.mean, group.mean_without_low) == (pytest.approx(235.0), pytest.approx(5.0))
    arguments = ("--base", tmp_path / "a", "--adapted", tmp_path / "b", "--output", tmp_path / "o")
    assert run(*arguments, "--missing", "exclude") == 0
    words = "too low for a percent: CAN 235.0 % (without those in C1 Knowledge, C4 Faithfulness: 5.0 %)"
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in (tmp_path / "o" / "summary.md").read_text(encoding="utf-8")
    assert csv_lines(tmp_path / "o" / "averages.csv")[0]["mean_without_low_bases"].startswith("5.0")
    left_out = pair_of(tmp_path, "b", "a", Rules("exclude", "exclude")).groups["CAN"]
    assert (left_out.mean, left_out.low_rows) == (pytest.approx(5.0), ())


def test_several_runs_are_averaged_and_widen_the_interval(results, tmp_path):
    runs = [read_result(results / name) for name in ("forgot", "again")]
    base = [read_result(results / "base")]
    plans = dv.plan_rows(DEFAULT_CATEGORIES)
    both = compare_pair("two", base, runs, plans, Rules())
    values = mean_values(runs)
    metric = both.metrics["C1 Accuracy (PopQA)"]
    assert metric.adapted == values["C1 Accuracy (PopQA)"]
    assert metric.paired.adapted_runs == pytest.approx([run.values["C1 Accuracy (PopQA)"] for run in runs])
    single = compare_pair("one", base, runs[:1], plans, Rules()).metrics["C1 Accuracy (PopQA)"]
    assert metric.se > single.se
    assert both.adapted_runs == 2


def test_lower_is_better_and_neutral_are_no_gains(results):
    pair = pair_of(results, categories=("W2b", "W3a", "C1"))
    assert pair.rows["W3a Verbosity"].direction == 0
    assert pair.rows["W2b Overreach (ELI5)"].direction == -1
    counted = tally(pair, pair.groups["WILL"])
    assert counted.drifted == 1
    assert counted.fell + counted.rose == sum(
        r.direction != 0 and (r.interval_low > 0 or r.interval_high < 0)
        for r in pair.rows.values()
        if r.group == "WILL"
    )
    assert all(not title.startswith("W3a") for title, _ in counted.worst)


def test_what_is_counted_is_what_the_verdicts_say(results):
    from dataclasses import replace

    pair = pair_of(results)
    verdicts = (m.FORGOT, m.GAINED, m.DRIFTED, m.MAYBE, m.COULD_NOT_TELL, m.NO_CHANGE)
    low = {"interval_low": -9.0, "interval_high": -3.0, "mean": -6.0}
    titles = list(pair.rows)
    rows = dict(pair.rows)
    for title, verdict in zip(titles, verdicts, strict=False):
        # COULD_NOT_TELL with such an interval: unjudged samples could turn the sign
        changed = {**low, "direction": 0 if verdict == m.DRIFTED else 1}
        if verdict == m.GAINED:
            changed |= {"interval_low": 3.0, "interval_high": 9.0, "mean": 6.0}
        rows[title] = replace(rows[title], verdict=verdict, **changed)
    pair = replace(pair, rows={title: rows[title] for title in titles[: len(verdicts)]})
    counted = tally(pair, pair.overall)
    assert (counted.fell, counted.rose, counted.drifted) == (2, 1, 1)
    assert (counted.fell_perhaps, counted.rose_perhaps, counted.drifted_perhaps) == (1, 0, 0)


# --- made differently ---


def with_run(result: ModelResult, **changes) -> ModelResult:
    return ModelResult(result.path, result.name, result.values, {**result.run, **changes})


SETTINGS = {
    "weights": "w1",
    "template": "t1",
    "chat_template_kwargs": {},
    "system_prompt": "You are a helpful assistant.",
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "seed": 1,
    "max_tokens": None,
    "max_model_len": 4096,
    "vllm_kwargs": {},
    "vllm": "0.32.0",
}
MADE = {
    "settings": SETTINGS,
    "dataset": {"name": "org/data", "revision": "r1"},
    "system_role": "own",
    "tasks": {"popqa.subset": {"truncated_prompts": 0, "rows": 200, "data_sha256": "d1"}},
}


def made_with(**settings) -> dict:
    """A manifest whose settings differ from MADE's."""
    return {"inference": {**MADE, "settings": {**SETTINGS, **settings}}}


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("definitions version", {"definitions_version": "2"}),
        ("demo judge", {"demo_judge": True}),
        ("judge of ragtruth.subset", {"tasks": {"ragtruth.subset": {"judge": "other@test"}}}),
        ("data set revision", {"inference": {**MADE, "dataset": {"name": "org/data", "revision": "r2"}}}),
        ("data set", {"inference": {**MADE, "dataset": {"name": "org/other", "revision": "r1"}}}),
        ("system prompt", made_with(system_prompt="")),
        ("system role", {"inference": {**MADE, "system_role": "merged"}}),
        ("chat template", made_with(template="t2")),
        ("chat template arguments", made_with(chat_template_kwargs={"enable_thinking": False})),
        ("temperature", made_with(temperature=1.0)),
        ("context window", made_with(max_model_len=8192)),
        ("vLLM version", made_with(vllm="0.33.0")),
        (
            "rows generated (--limit) of popqa.subset",
            {"inference": {**MADE, "tasks": {"popqa.subset": {"rows": 20}}}},
        ),
        (
            "rows of the data set of popqa.subset",
            {"inference": {**MADE, "tasks": {"popqa.subset": {"rows": 200, "data_sha256": "d2"}}}},
        ),
        (
            "prompts cut in popqa.subset",
            {"inference": {**MADE, "tasks": {"popqa.subset": {"truncated_prompts": 9, "rows": 200}}}},
        ),
    ],
)
def test_a_difference_in_the_making_is_found(results, what, changes):
    base = with_run(read_result(results / "base"), inference=MADE)
    same = with_run(base)
    assert differences(base, same) == ()
    found = differences(base, with_run(same, **changes))
    assert [d.what for d in found] == [what]


def test_prompt_versions_and_served_judges_are_compared(results):
    base = read_result(results / "base")
    facts = {"judge": "stub@test", "judge_served_model": "x-2025", "prompt_versions": {"claim_support": "1"}}
    one = with_run(base, tasks={"ragtruth.subset": facts})
    two = with_run(
        base,
        tasks={
            "ragtruth.subset": {
                **facts,
                "judge_served_model": "x-2026",
                "prompt_versions": {"claim_support": "2"},
            }
        },
    )
    assert [d.what for d in differences(one, two)] == [
        "served judge model of ragtruth.subset",
        "judge prompts of ragtruth.subset",
    ]


def test_what_is_not_recorded_is_no_difference(results):
    base = read_result(results / "base")
    assert differences(with_run(base, inference=MADE), base) == ()
    assert differences(ModelResult(base.path, "x", base.values, {}), base) == ()


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_a_broken_run_file_is_one_message(results, tmp_path, text):
    import shutil

    shutil.copytree(results / "part", tmp_path / "part")
    (tmp_path / "part" / "run.json").write_text(text)
    with pytest.raises(ResultError, match=r"Run compute_metrics\.py again"):
        read_result(tmp_path / "part")


def test_another_seed_is_no_other_making(results):
    base = read_result(results / "base")
    one = with_run(base, inference=MADE)
    two = with_run(base, **made_with(seed=2, weights="w2"))
    assert between_runs([one, two]) == differences(one, two) == ()
    three = with_run(base, **made_with(temperature=1.0, seed=2))
    assert [d.what for d in between_runs([one, three])] == ["temperature between runs of base"]


def test_ours_against_a_bare_csv_is_refused_and_stamped_when_allowed(results, tmp_path, capsys):
    bare = tmp_path / "model_averaged.csv"
    bare.write_bytes((results / "forgot" / "metrics.csv").read_bytes())
    arguments = (
        "--base",
        results / "base",
        "--adapted",
        bare,
        "--output",
        tmp_path / "out",
        "--figure_format",
        "png",
    )
    assert run(*arguments) == 1
    assert "bare metrics CSV" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert run(*arguments, "--allow_mismatch") == 0
    assert "MADE DIFFERENTLY" in capsys.readouterr().out
    assert "MADE DIFFERENTLY" in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    lines = csv_lines(tmp_path / "out" / "comparison_long.csv")
    assert all("kind of result" in line["made_differently"] for line in lines)


def test_two_bare_csvs_give_deviations_and_say_that_there_are_no_intervals(results, tmp_path, capsys):
    for name in ("base", "forgot"):
        (tmp_path / f"{name}.csv").write_bytes((results / name / "metrics.csv").read_bytes())
    assert (
        run("--base", tmp_path / "base.csv", "--adapted", tmp_path / "forgot.csv", "--output", tmp_path / "o")
        == 0
    )
    out = capsys.readouterr().out
    assert "No interval (deviations only)" in out
    assert not (tmp_path / "o" / "flips.parquet").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (",C1 Accuracy (PopQA)\na,0.5\nb,0.6\n", "2 rows"),
        (",C1 Accuracy (PopQA)\na,much\n", "is not a number"),
        (",C1 Accuracy (PopQA)\na,inf\n", "infinite"),
        (",Other\na,1\n", "none of its columns"),
        (",C1 Accuracy (PopQA)\n", "1 line"),
    ],
)
def test_a_csv_that_cannot_be_used(tmp_path, text, words):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ResultError, match=words):
        read_result(tmp_path / "x.csv")


def test_a_text_column_beside_the_metrics_is_no_matter(tmp_path):
    (tmp_path / "x.csv").write_text(",note,C1 Accuracy (PopQA),model_name\n0,good,0.5,m\n", encoding="utf-8")
    result = read_result(tmp_path / "x.csv")
    assert (result.name, result.values) == ("m", {"C1 Accuracy (PopQA)": 0.5})


# --- the whole ---


@pytest.fixture(scope="module")
def whole(results, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("out")
    assert (
        run(
            "--base",
            results / "base",
            "--adapted",
            results / "forgot",
            results / "again",
            "--output",
            out,
            "--save-excel",
            "--figure-format",
            "png",
            pictures=True,
        )
        == 0
    )
    return out


def test_everything_is_written(whole):
    assert {p.name for p in whole.iterdir()} == {
        "relative_differences_heatmap.png",
        "forest_plot.png",
        "relative_differences.csv",
        "relative_differences_std.csv",
        "averages.csv",
        "forgetting_statistics.csv",
        "flips.csv",
        "comparison_long.csv",
        "relative_differences.xlsx",
        "flips.parquet",
        "summary.md",
        "report.html",
    }


def test_flips_hold_ids_and_both_answers(whole):
    import pyarrow.parquet as pq

    rows = pq.read_table(whole / "flips.parquet").to_pylist()
    counts = csv_lines(whole / "flips.csv")
    expected = sum(int(line["forgotten"] or 0) + int(line["gained"] or 0) for line in counts)
    assert len(rows) == expected
    popqa = [
        r for r in rows if r["task"] == "popqa.subset" and r["pair"] == "forgot" and r["flip"] == "forgotten"
    ]
    line = next(c for c in counts if c["pair"] == "forgot" and c["task"] == "popqa.subset")
    assert len(popqa) == int(line["forgotten"])
    assert "run 1" in popqa[0]["base_answer"]
    assert "run 2" in popqa[0]["adapted_answer"]
    assert popqa[0]["prompt"].endswith("of popqa.subset")


def test_the_long_table_agrees_with_the_wide_one(whole):
    wide = {line[""]: line for line in csv_lines(whole / "relative_differences.csv")}
    long = csv_lines(whole / "comparison_long.csv")
    rows = [line for line in long if line["level"] == "row"]
    assert len(rows) == 2 * 19
    assert all(wide[line["pair"]][line["name"]] == line["deviation"] for line in rows)
    assert sum(line["level"] == "metric" for line in long) == 2 * len(COLUMNS)


def test_the_workbook_opens_and_its_text_is_no_formula(results, tmp_path):
    import openpyxl

    name = '=HYPERLINK("x")\x0b|\x00'
    out = tmp_path / "o"
    assert (
        run(
            "--base",
            results / "base",
            "--adapted",
            results / "forgot",
            "--name",
            name,
            "--output",
            out,
            "--save_excel",
            "--figure_format",
            "svg",
        )
        == 0
    )
    book = openpyxl.load_workbook(out / "relative_differences.xlsx")
    assert book.sheetnames[:2] == ["Relative Differences", "Standard Deviations"]
    cell = book["Relative Differences"]["A2"]
    assert cell.data_type == "s"
    assert cell.value == '=HYPERLINK("x")|'
    assert not [c for sheet in book for row in sheet.iter_rows() for c in row if c.data_type == "f"]


def test_words(whole, capsys):
    text = (whole / "summary.md").read_text(encoding="utf-8")
    assert "**Forgot:** C1 Knowledge" in text
    assert "**No proven change:**" in text
    assert text.count("| **CAN Average** |") == 2


@pytest.mark.parametrize("name", ["forgot", "x" * 300, "org/a|b\n<c>", "模型 é $x_1$ \u202e"])
def test_the_console_fits_80_columns(results, tmp_path, capsys, name):
    out = tmp_path / "o"
    assert (
        run(
            "--base",
            results / "base",
            "--adapted",
            results / "part",
            "--name",
            name,
            "--output",
            out,
            "--figure_format",
            "png",
        )
        == 0
    )
    printed = capsys.readouterr().out.split("\nWritten:")[0]
    assert max(map(len, printed.splitlines())) <= 80
    assert "missing (counted as 0)" in " ".join(printed.split())
    assert "\u202e" not in printed


@pytest.mark.parametrize("adapted", [("part",), ("part", "forgot", "part")])
def test_the_console_shows_few_notes_and_counts_the_rest(results, tmp_path, capsys, adapted):
    out = tmp_path / "o"
    folders = [results / name for name in adapted]
    assert run("--base", results / "base", "--adapted", *folders, "--output", out) == 0
    printed = capsys.readouterr().out.split("\nWritten:")[0]
    shown = [block.split("\n… and")[0].count("\n") + 1 for block in printed.split("\nnote: ")[1:]]
    assert sum(shown) <= 12 + 3
    summary = (out / "summary.md").read_text(encoding="utf-8").split("\n## ")[1]
    notes = summary.split("Notes:")[1].count("\n- ")
    first = printed.split(" against ")[1]
    left = notes - first.count("\nnote: ")
    assert left > 0
    assert f"\n… and {left} more notes in summary.md" in first


def test_no_line_breaks_before_a_percent_sign_or_inside_an_interval():
    from evaluation.comparison.summary import _wrap

    for shift in range(70, 82):
        lines = _wrap("x" * shift + " fell −12 % [−21, −11]; y" + " z" * 20, "  ")
        assert not [line for line in lines if line.lstrip().startswith(("%", "−11]"))]
        assert "−12 %" in " ".join(line.strip() for line in lines)
        assert max(map(len, lines)) <= max(80, shift)


def test_every_minus_is_a_minus(tmp_path):
    from evaluation.comparison.words import points_text, signed

    assert [signed(v) for v in (-0.5, 0.0, -0.04, 3.0)] == ["−0.5", "+0.0", "+0.0", "+3.0"]
    for name, right in (("a", 9), ("b", 3)):
        tables = {t: synthetic.task_table(t, 200) for t in ("popqa.subset", "gsm8k.subset")}
        tables["popqa.subset"].columns["correct"] = [i < right for i in range(200)]
        synthetic.write_result(tmp_path / name, name, tables)
    pair = pair_of(tmp_path, "b", "a", Rules("exclude"))
    assert points_text(pair.metrics["C1 Accuracy (PopQA)"]).startswith("−3.0 points [−")
    assert not any("-" in note.replace("MMLU-Pro", "") for note in pair.rows["C1 Knowledge"].notes)


def test_missing_error_names_every_entry(results, tmp_path, capsys):
    assert (
        run(
            "--base",
            results / "base",
            "--adapted",
            results / "part",
            "--missing",
            "error",
            "--output",
            tmp_path / "o",
        )
        == 1
    )
    assert "C1 Accuracy (MMLU-Pro)" in capsys.readouterr().err


def test_a_missing_task_is_not_a_silent_zero(results, tmp_path):
    out = tmp_path / "o"
    assert (
        run(
            "--base",
            results / "base",
            "--adapted",
            results / "part",
            "--output",
            out,
            "--figure_format",
            "png",
        )
        == 0
    )
    wide = csv_lines(out / "relative_differences.csv")[0]
    assert wide["H5 Long-Context"] == ""
    long = csv_lines(out / "comparison_long.csv")
    row = next(line for line in long if line["name"] == "H5 Long-Context")
    assert row["verdict"] == m.NO_DATA
    assert "missing (counted as 0)" in row["notes"]


@pytest.mark.parametrize(
    ("rule", "warning", "row", "will"),
    [
        (
            "zero",
            "49 of 54 metrics missing, counted as 0: averages are diluted; --missing exclude",
            True,
            True,
        ),
        ("exclude", "metrics missing, left out", False, False),
    ],
)
def test_zeros_for_missing_entries_are_told_in_words(results, tmp_path, capsys, rule, warning, row, will):
    few = ("popqa.subset", "gsm8k.subset", "bfcl.subset", "ifeval.subset")
    for name, seed in (("a", 1), ("b", 2)):
        synthetic.model(tmp_path, name, n=60, run_seed=seed, tasks=few)
    out = tmp_path / "o"
    arguments = ("--base", tmp_path / "a", "--adapted", tmp_path / "b", "--output", out, "--missing", rule)
    assert run(*arguments) == 0
    console = " ".join(capsys.readouterr().out.split())
    assert warning in console
    assert "No value" not in console
    summary = (out / "summary.md").read_text(encoding="utf-8")
    assert ("(2 of 6 metrics, 4 counted as 0)" in summary) == row
    assert ("(2 of 6 metrics, 4 left out)" in summary) != row
    averages = {line["group"]: line for line in csv_lines(out / "averages.csv")}
    # a group of which nothing was measured has no mean and no interval
    assert ("WILL" in averages) == will
    if will:
        assert (averages["WILL"]["mean"], averages["WILL"]["low"], averages["WILL"]["spread"]) == ("", "", "")
        assert averages["ALL"]["rows_without_value"] == "WILL"
        assert "| **WILL Average** | **n/a** |" in summary


def test_rows_that_no_model_has_leave_the_tree_under_exclude(results, tmp_path):
    out = tmp_path / "o"
    assert (
        run(
            "--base", results / "part", "--adapted", results / "part", "--missing", "exclude", "--output", out
        )
        == 0
    )
    wide = csv_lines(out / "relative_differences.csv")[0]
    assert list(wide) == [
        "",
        "C1 Knowledge",
        "C5a Prompt Robust.",
        "W3a Verbosity",
        "W3b Formatting Use",
        "H3 Tool Use",
    ]


def test_one_pair_that_cannot_be_read_ends_with_4(results, tmp_path, capsys):
    assert (
        run(
            "--base",
            results / "base",
            "--adapted",
            results / "forgot",
            tmp_path / "nowhere",
            "--output",
            tmp_path / "o",
            "--figure_format",
            "png",
        )
        == 4
    )
    captured = capsys.readouterr()
    assert "nowhere" in captured.err
    assert "Not compared" in captured.out


def test_nothing_that_can_be_read_ends_with_1_and_lists_everything(tmp_path, capsys):
    assert (
        run("--base", tmp_path / "x", "--adapted", tmp_path / "y", tmp_path / "z", "--output", tmp_path / "o")
        == 1
    )
    assert "compute_metrics.py" in capsys.readouterr().err


def test_a_picture_that_fails_loses_no_number(results, tmp_path, capsys, monkeypatch):
    def broken(*_):
        raise RuntimeError("no ink")

    monkeypatch.setattr("evaluation.comparison.heatmap.draw_heatmap", broken)
    out = tmp_path / "o"
    assert (
        run("--base", results / "base", "--adapted", results / "forgot", "--output", out, pictures=True) == 4
    )
    assert "no ink" in capsys.readouterr().err
    assert (out / "relative_differences.csv").exists() and (out / "forest_plot.pdf").exists()


def test_an_output_that_is_a_file_is_one_message(results, tmp_path, capsys):
    (tmp_path / "o").write_text("x")
    assert run("--base", results / "base", "--adapted", results / "forgot", "--output", tmp_path / "o") == 1
    assert "cannot be written" in capsys.readouterr().err


def test_the_noise_floor_of_two_runs(results, tmp_path, capsys):
    assert (
        run("--aa", results / "base", results / "again", "--output", tmp_path / "o", "--figure_format", "png")
        == 0
    )
    out = capsys.readouterr().out
    assert "Noise floor: base against again" in out
    assert "C1 Knowledge" in out
    assert max(map(len, out.split("\nWritten:")[0].splitlines())) <= 80


def test_a_noise_floor_leaves_a_comparison_alone(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("--base", results / "base", "--adapted", results / "forgot") == 0
    folder = tmp_path / "captrack_relative_results"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run("--aa", results / "base", results / "again") == 0
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before
    assert (folder / "aa_base_again" / "summary.md").exists()


def test_nothing_of_an_earlier_comparison_stands_beside_the_new_one(results, tmp_path, whole):
    """Other formats, kinds of tables and a series go; what is not ours stays."""
    import shutil

    out = shutil.copytree(whole, tmp_path / "o")
    for name in ("series.svg", "config.yaml", "notes.txt", "my_forest_plot.png"):
        (out / name).write_text("kept?")
    arguments = ("--base", results / "base", "--adapted", results / "again", "--output", out)
    assert run(*arguments, "--no-aggregate", "--categories", "C1", pictures=True) == 0
    assert {path.name for path in out.iterdir()} == {
        "config.yaml",
        "notes.txt",
        "my_forest_plot.png",
        "relative_differences_heatmap.pdf",
        "forest_plot.pdf",
        "relative_differences.csv",
        "averages.csv",
        "forgetting_statistics.csv",
        "flips.csv",
        "comparison_long.csv",
        "flips.parquet",
        "summary.md",
        "report.html",
    }


def test_a_comparison_that_fails_leaves_the_earlier_one_whole(results, tmp_path):
    out = tmp_path / "o"
    assert run("--base", results / "base", "--adapted", results / "forgot", "--output", out) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert run("--base", results / "base", "--adapted", tmp_path / "nowhere", "--output", out) == 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_the_same_comparison_gives_the_same_bytes(results, tmp_path):
    for name in ("one", "two"):
        assert (
            run(
                "--base",
                results / "base",
                "--adapted",
                results / "forgot",
                "--output",
                tmp_path / name,
                pictures=True,
            )
            == 0
        )
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("figure_format", ["pdf", "png", "svg"])
def test_formats_without_a_display(results, tmp_path, figure_format):
    out = tmp_path / "o"
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "compare_models.py",
            "--base",
            results / "base",
            "--adapted",
            results / "forgot",
            "--output",
            out,
            f"--figure-format={figure_format}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "MPLBACKEND": "TkAgg"},
    )
    assert done.returncode == 0, done.stderr
    start = (out / f"relative_differences_heatmap.{figure_format}").read_bytes()[:5]
    assert start == {"pdf": b"%PDF-", "png": b"\x89PNG\r", "svg": b"<?xml"}[figure_format]


# --- pictures ---


def test_cells_say_what_is_real_without_colour(results):
    from evaluation.comparison.heatmap import row_cell

    pair = pair_of(results)
    forgot = row_cell(pair, pair.rows["C1 Knowledge"], cf.Plot())
    assert forgot.moved and forgot.text.startswith("▼ \N{MINUS SIGN}")
    assert row_cell(pair, pair.rows["W3a Verbosity"], cf.Plot()).text.startswith("◆ ")
    quiet = next(r for r in pair.rows.values() if r.verdict == m.NO_CHANGE)
    cell = row_cell(pair, quiet, cf.Plot())
    assert cell.quiet and not cell.moved and not cell.hatched
    part = pair_of(results, "part")
    missing = row_cell(part, part.rows["H5 Long-Context"], cf.Plot())
    assert (missing.text, missing.hatched) == ("n/a", True)
    some = row_cell(part, part.rows["C1 Knowledge"], cf.Plot())
    assert some.hatched and "2 of 6 metrics" in some.small


@pytest.mark.parametrize(
    ("value", "text"), [(-0.04, "0.0"), (2.0, "2.0"), (-16.41, "\N{MINUS SIGN}16.4"), (1234.56, "1235")]
)
def test_numbers_have_no_negative_zero(value, text):
    from evaluation.comparison.words import number

    assert number(value) == text


@pytest.mark.parametrize("green_red", [False, True])
@pytest.mark.parametrize("kind", ["row", "average"])
def test_quiet_and_proven_cells_cannot_be_confused(results, kind, green_red):
    """At one deviation, full on the scale: a proven cell is bold and dark, a quiet one neither, and paler
    than any proven one from half the scale on."""
    from dataclasses import replace

    from evaluation.comparison.analysis import make_comparison
    from evaluation.comparison.heatmap import draw_heatmap, luminance

    def look(mean: float, low: float, high: float, verdict: str) -> tuple[str, float, float]:
        pair = pair_of(results, categories=("C1",))
        changed = {"mean": mean, "interval_low": low, "interval_high": high}
        if kind == "row":
            row = replace(
                pair.rows["C1 Knowledge"], verdict=verdict, low=(), mean_without_low=None, **changed
            )
            pair = replace(pair, rows={row.title: row})
        else:
            pair = replace(pair, groups={"CAN": replace(pair.groups["CAN"], **changed)})
        comparison = make_comparison([pair], dv.plan_rows(("C1",)), Rules(), True, [])
        axis = draw_heatmap(comparison, cf.Plot(use_green_red=green_red)).axes[0]
        text = next(
            t for t in axis.texts if t.get_text().endswith(f"{abs(mean)}") and "±" not in t.get_text()
        )
        y = text.get_position()[1]
        back = [
            p
            for p in axis.patches
            if p.get_fill() and p.get_width() > 1 and p.get_y() < y < p.get_y() + p.get_height()
        ]
        return text.get_fontweight(), text.get_fontsize(), luminance(back[0].get_facecolor()[:3])

    for sign in (-1, 1):
        ends = sorted((sign * 5.1, sign * 80.3))
        proven = look(sign * 30.3, *ends, m.FORGOT if sign < 0 else m.GAINED)
        half = look(sign * 7.7, *ends, m.FORGOT if sign < 0 else m.GAINED)
        quiet = look(sign * 30.3, -80.3, 80.3, m.COULD_NOT_TELL)
        assert (proven[0], half[0], quiet[0]) == ("bold", "bold", "normal")
        assert quiet[1] < proven[1]
        assert proven[2] < half[2] < quiet[2] - 0.05


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize("green_red", [False, True])
def test_no_text_leaves_the_heatmap(results, count, green_red):
    """Every text lies inside the figure, and no cell's text is wider than its cell."""
    from dataclasses import replace

    from evaluation.comparison.analysis import make_comparison
    from evaluation.comparison.heatmap import draw_heatmap

    pair = pair_of(results, "part")
    pairs = [replace(pair, name=f"a rather long model name {i}/checkpoint-{i}000") for i in range(count)]
    comparison = make_comparison(pairs, dv.plan_rows(DEFAULT_CATEGORIES), Rules(), True, [])
    figure = draw_heatmap(comparison, cf.Plot(use_green_red=green_red, show_interval=True))
    box = figure.bbox
    for text in figure.axes[0].texts:
        extent = text.get_window_extent(figure.canvas.get_renderer())
        assert extent.x0 >= box.x0 and extent.x1 <= box.x1 and extent.y0 >= box.y0, text.get_text()


def test_the_footer_says_what_limits_the_result(results):
    from evaluation.comparison.analysis import make_comparison
    from evaluation.comparison.words import footer

    base = with_run(read_result(results / "base"), options={"limit": 20}, demo_judge=True)
    comparison = make_comparison([pair_of(results)], dv.plan_rows(DEFAULT_CATEGORIES), Rules(), True, [base])
    text = " ".join(footer(comparison))
    assert "First 20 samples of each task only." in text
    assert "Offline demo judge, not for reporting." in text
    assert "Base: base." in text and "Judge: stub@test." in text and "Definitions 1." in text


# --- configuration ---


def write_yaml(folder: Path, text: str) -> Path:
    path = folder / "c.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_published_shape_is_read(tmp_path):
    """JSON with remarks, lists of three, comment keys, the published figure size."""
    path = write_yaml(
        tmp_path,
        """{
        # a remark
        "_comment": "text", "comment_pairs": "text",
        "model_pairs": [["base.csv", "ad.csv", "Name"]],
        "output_dir": "out", "categories_to_plot": null, "aggregate_metrics": true,
        "plot_settings": {"color_cap": 15.0, "show_average": true, "use_green_red": false, "figsize": [16,
        6]},
        "save_options": {"save_figure": true, "figure_format": "pdf", "save_csv": true, "save_excel": false}
        }""",
    )
    config = cf.load_config(path)
    assert config.model_pairs[0].name == "Name"
    assert config.categories is None
    assert config.plot == cf.Plot()
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("- a", "must be a mapping"),
        ("a: [", "not valid YAML"),
        ("model_pair: []", "Did you mean 'model_pairs'"),
        ("plot_settings: {colour_cap: 3}", "Did you mean 'color_cap'"),
        ("plot_settings: {color_cap: -1}", "above 0"),
        ("plot_settings: {show_average: 3}", "true or false"),
        ("plot_settings: {figsize: [1]}", "two numbers"),
        ("plot_settings: text", "must be a mapping"),
        ("save_options: {figure_format: pgn}", "Did you mean 'png'"),
        ("categories_to_plot: [C9]", "is no capability"),
        ("categories_to_plot: [CANN]", "Did you mean 'CAN'"),
        ("categories_to_plot: []", "must be a list"),
        ("missing: zeros", "Did you mean 'zero'"),
        ("low_base: drop", "none of keep, exclude"),
        ("aggregate_metrics: 'yes'", "true or false"),
        ("aggregation: {Mine: [C1 Acuracy (PopQA)]}", "Did you mean 'C1 Accuracy (PopQA)'"),
        ("aggregation: {Mine: []}", "list of metric columns"),
        ("model_pairs: [[a]]", "entry 1"),
        ("model_pairs: {a: b}", "must be a list"),
        ("model_pairs: [{base: a}]", "no adapted results"),
        ("model_pairs: [{base: a, adapted: b, step: x}]", "step must be a number"),
        ("model_pairs: [{base: a, adapted: [b, b]}]", "names the same results twice"),
        ("model_pairs: [{base: 3, adapted: b}]", "must be a path"),
        ("model_pairs: [!!python/tuple [a, b]]", "not valid YAML"),
    ],
)
def test_a_mistake_gets_its_message(tmp_path, text, words):
    with pytest.raises(cf.ConfigError) as caught:
        cf.load_config(write_yaml(tmp_path, text))
    assert words in str(caught.value)


def test_an_unknown_key_that_resembles_none_is_a_warning(tmp_path):
    config = cf.load_config(write_yaml(tmp_path, "zzz: 1\nplot_settings: {dpi_of_mine: 3}"))
    assert len(config.warnings) == 2


def test_null_sections_have_defaults(tmp_path):
    config = cf.load_config(write_yaml(tmp_path, "plot_settings:\nsave_options:\nmodel_pairs:"))
    assert (config.plot, config.save, config.model_pairs) == (cf.Plot(), cf.Save(), ())
    with pytest.raises(ComparisonError, match="nothing to compare"):
        compare(config)


def test_the_example_is_written_once_and_loads(tmp_path, capsys):
    path = tmp_path / "example.yaml"
    assert run("--create-config", path) == 0
    assert run("--create-config", path) == 1
    config = cf.load_config(path)
    assert config.plot == cf.Plot() and config.save == cf.Save()
    assert config.categories == DEFAULT_CATEGORIES
    assert path.read_text(encoding="utf-8") == (ROOT / "configs" / "example_config.yaml").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*example*.yaml")), ids=lambda p: p.name)
def test_shipped_configurations_load_without_a_warning(path):
    config = cf.load_config(path)
    assert config.model_pairs
    assert config.warnings == ()


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*example*.yaml")), ids=lambda p: p.name)
def test_shipped_configurations_run(results, tmp_path, monkeypatch, path):
    """On synthetic results under the names of the demo's."""
    import shutil

    monkeypatch.chdir(tmp_path)
    for name, source in (("demo-base", "base"), ("demo-adapted", "forgot")):
        shutil.copytree(results / source, tmp_path / "absolute_metrics" / name)
    assert run("--config", path, "--figure-format", "png", pictures=True) == 0
    assert list(tmp_path.glob("captrack_relative_results/**/relative_differences_heatmap.png"))


def test_a_series_is_put_in_order_and_drawn(results, tmp_path):
    path = write_yaml(
        tmp_path,
        json.dumps(
            {
                "model_pairs": [
                    {"base": str(results / "base"), "adapted": str(results / a), "name": a, "step": s}
                    for a, s in (("again", 2000), ("forgot", 1000))
                ],
                "output_dir": str(tmp_path / "o"),
                "save_options": {"figure_format": "png"},
            }
        ),
    )
    comparison, _ = compare(cf.load_config(path))
    assert [p.name for p in comparison.pairs] == ["forgot", "again"]
    assert comparison.is_series
    assert run("--config", path, pictures=True) == 0
    assert (tmp_path / "o" / "series.png").exists()


def test_options_override_the_file(results, tmp_path):
    path = write_yaml(
        tmp_path,
        f"model_pairs: [[{results / 'base'}, {results / 'forgot'}]]\noutput_dir: {tmp_path / 'no'}\n",
    )
    out = tmp_path / "yes"
    assert (
        run(
            "--config",
            path,
            "--output",
            out,
            "--categories",
            "C1",
            "H3",
            "--no-aggregate",
            "--figure-format=svg",
        )
        == 0
    )
    assert not (tmp_path / "no").exists()
    wide = csv_lines(out / "relative_differences.csv")[0]
    assert list(wide)[1:] == [c.name for c in COLUMNS if c.capability in ("C1", "H3")]
    assert not (out / "relative_differences_std.csv").exists()


def test_aggregation_can_be_replaced(results, tmp_path):
    text = f"""
model_pairs: [[{results / "base"}, {results / "forgot"}]]
aggregation:
  C1 Questions: [C1 Accuracy (PopQA)]
  My row: [H4_DD Turn 2 Rating (median), C1 Accuracy (GSM8K)]
"""
    comparison, _ = compare(cf.load_config(write_yaml(tmp_path, text)))
    rows = comparison.pairs[0].rows
    assert list(rows) == ["C1 Questions", "My row"]
    assert rows["My row"].group == "HOW"
    assert rows["My row"].has_interval


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--base", "x"],
        ["--adapted", "x"],
        ["--nonsense"],
        ["--aa", "x"],
        ["--missing", "perhaps"],
        ["--base", "x", "--adapted", "y", "--name", "a", "b"],
        ["--aa", "x", "y", "--base", "z"],
    ],
)
def test_a_usage_error_exits_with_1(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        compare_models.main(arguments)
    assert caught.value.code == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_result_is_suggested_where_its_folder_was_left_out(results, tmp_path, monkeypatch, capsys):
    (tmp_path / "absolute_metrics").symlink_to(results)
    monkeypatch.chdir(tmp_path)
    assert run("--base", "base", "--adapted", "nowhere") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "base: no such result folder or metrics CSV. Did you mean absolute_metrics/base?" in error


def test_output_dir_is_another_name_of_output(results, tmp_path):
    """The other scripts call it so."""
    arguments = ("--base", results / "base", "--adapted", results / "forgot", "--categories", "C1")
    assert run(*arguments, "--output-dir", tmp_path / "o") == 0
    assert (tmp_path / "o" / "summary.md").exists()


def test_help_imports_nothing_heavy():
    code = (
        "import sys, compare_models\n"
        "try: compare_models.main(['--help'])\n"
        "except SystemExit: pass\n"
        "bad = {'numpy', 'pandas', 'pyarrow', 'matplotlib', 'yaml', 'openpyxl', 'openai'} & "
        "set(sys.modules)\n"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True).returncode == 0


def test_a_comparison_imports_no_judge(results, tmp_path):
    code = (
        "import sys, compare_models\n"
        "compare_models.main(sys.argv[1:])\n"
        "bad = {'openai', 'boto3', 'google.genai', 'torch', 'sympy', 'evaluation.judge'} & set(sys.modules)\n"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    arguments = ["--base", results / "base", "--adapted", results / "forgot", "--output", tmp_path / "o"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_capability_name_is_accepted():
    assert cf.check_categories(list(CAPABILITIES)) == tuple(CAPABILITIES)
    assert cf.check_categories("can, h1") == ("CAN", "H1")
