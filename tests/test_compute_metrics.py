"""compute_metrics.py as a whole: what it writes, what it says, how it ends."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import compute_metrics
from evaluation.aggregate import metric_value, task_metrics
from evaluation.clusters import cluster_keys, pair_key, source_candidates
from evaluation.engine import TaskRun, WorkerPool, run_rules, sample_table, score_chunk
from evaluation.files import safe_name
from evaluation.responses import ResponseFile
from evaluation.results import SampleTable, read_result
from evaluation.rows import make_row
from evaluation.tasks import TASKS, Metric
from evaluation.taxonomy import COLUMNS

ROOT = Path(__file__).resolve().parent.parent
POPQA = [
    {"id": "1", "prompt": "a?", "outputs": "Rome", "gold": ["Rome"], "meta": {"language": "it"}},
    {"id": "2", "prompt": "b?", "outputs": "Oslo", "gold": ["Rome"], "meta": {"language": "it"}},
    {"id": "3", "prompt": "c?", "outputs": "", "gold": ["Rome"], "meta": {"language": "de"}},
    {"id": "4", "prompt": "d?", "outputs": "Bonn", "gold": None, "meta": {"language": "de"}},
]


def put(folder: Path, task: str, rows: list[dict]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(tmp_path: Path, *arguments: str) -> int:
    places = ("--data_dir", str(tmp_path / "r"), "--output_dir", str(tmp_path / "m"), "--workers", "1")
    return compute_metrics.main([*places, *arguments])


def test_what_is_written(tmp_path, capsys):
    put(tmp_path / "r" / "org" / "model", "popqa.subset", POPQA)
    assert run(tmp_path, "--model_name", "org/model") == 0
    folder = tmp_path / "m" / "org__model"
    assert {p.name for p in folder.iterdir()} == {
        "metrics.csv",
        "metrics.json",
        "capabilities.csv",
        "samples",
        "run.json",
    }
    header, row = csv.reader((folder / "metrics.csv").read_text(encoding="utf-8").splitlines())
    assert header[1:] == [c.name for c in COLUMNS] and row[0] == "org/model"
    assert row[header.index("C1 Accuracy (PopQA)")] == repr(1 / 3)
    assert row[header.index("C1 Accuracy (GSM8K)")] == ""
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["popqa.subset"]
    assert metrics["accuracy"] == pytest.approx(1 / 3)
    assert metrics["n"]["accuracy"] == 3 and metrics["samples"]["total"] == 4
    assert metrics["samples"]["reasons"]["no_gold"] == 1
    assert metrics["breakdowns"]["language"]["it"] == {"n": 2, "accuracy": 0.5, "answered_rate": 1.0}
    result = read_result(folder)
    table = result.samples("popqa.subset")
    assert table.columns["id"] == ["1", "2", "3", "4"]
    assert table.columns["correct"] == [True, False, False, None]
    assert table.columns["state"] == ["ok", "ok", "empty", "ok"]
    assert result.run["tasks"]["popqa.subset"]["rows"] == 4
    assert "popqa.subset" in capsys.readouterr().out


def test_a_name_of_300_characters(tmp_path):
    name = "m" * 300
    put(tmp_path / "r" / safe_name(name), "popqa.subset", POPQA)
    assert run(tmp_path, "--model_name", name) == 0
    assert len(list((tmp_path / "m").iterdir())) == 1


ENDINGS = {
    # what is wrong: (arguments, exit code, words on the console)
    "no such model": (["--model_name", "other"], 1, "no such folder of responses"),
    "no model named": ([], 1, "--model_name is missing"),
    "unknown option": (["--model_name", "m", "--taks", "x"], 1, "unrecognized arguments"),
    "unknown task": (["--model_name", "m", "--tasks", "popqa.subst"], 1, "Did you mean popqa.subset"),
    "task without a file": (["--model_name", "m", "--tasks", "boolq.subset"], 1, "no response file"),
    "one task asked for is absent": (
        ["--model_name", "m", "--tasks", "popqa.subset", "boolq.subset"],
        4,
        "Absent",
    ),
    "wildcard": (["--model_name", "m", "--tasks", "popqa.*"], 0, "popqa.subset"),
    "a hyphen for an underscore": (["--model-name", "m", "--output-column", "outputs"], 0, "popqa.subset"),
    "no such column": (["--model_name", "m", "--output_column", "reply"], 1, "--output_column"),
    "no workers": (["--model_name", "m", "--workers", "0"], 1, "at least 1"),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_exit_codes(tmp_path, capsys, case):
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    arguments, code, words = ENDINGS[case]
    try:
        ended = run(tmp_path, *arguments)
    except SystemExit as error:
        ended = error.code
    captured = capsys.readouterr()
    assert ended == code
    assert words in captured.out + captured.err


def test_one_bad_file_costs_its_task_alone(tmp_path, capsys):
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    (tmp_path / "r" / "m" / "boolq.subset.jsonl").write_text('{"id": 1\n{"id": 2}\n', encoding="utf-8")
    assert run(tmp_path, "--model_name", "m") == 4
    out = capsys.readouterr().out
    assert "boolq.subset.jsonl, line 1" in out
    assert read_result(tmp_path / "m" / "m").values["C1 Accuracy (PopQA)"] == pytest.approx(1 / 3)


def test_a_torn_file_is_done_in_part(tmp_path):
    path = put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    path.write_bytes(path.read_bytes()[:-20])
    assert run(tmp_path, "--model_name", "m") == 4


def test_a_failed_run_leaves_the_former_result(tmp_path):
    path = put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    assert run(tmp_path, "--model_name", "m") == 0
    before = (tmp_path / "m" / "m" / "metrics.csv").read_bytes()
    path.write_text("broken\n", encoding="utf-8")
    assert run(tmp_path, "--model_name", "m") == 1
    assert (tmp_path / "m" / "m" / "metrics.csv").read_bytes() == before
    assert [p.name for p in (tmp_path / "m").iterdir()] == ["m"]


def test_a_folder_of_other_files_is_not_touched(tmp_path, capsys):
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    (tmp_path / "m" / "m").mkdir(parents=True)
    (tmp_path / "m" / "m" / "thesis.txt").write_text("mine", encoding="utf-8")
    assert run(tmp_path, "--model_name", "m") == 1
    assert "no CapTrack result" in capsys.readouterr().err


def test_rows_of_one_file_by_task_column(tmp_path):
    rows = [{**row, "task": "popqa.subset"} for row in POPQA]
    put(tmp_path / "r" / "m", "all", rows)
    assert run(tmp_path, "--model_name", "m", "--task_column", "task") == 0
    result = read_result(tmp_path / "m" / "m")
    assert result.values["C1 Accuracy (PopQA)"] == pytest.approx(1 / 3)
    assert result.run["tasks"]["popqa.subset"]["file"].endswith("all.jsonl")


def told(capsys) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


@pytest.mark.parametrize("name", ["gsm8k.csv", "PopQA.jsonl", "boolq-subset.jsonl", "gsm8k.sub.jsonl"])
def test_a_file_with_no_tasks_name_is_told(tmp_path, capsys, name):
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    (tmp_path / "r" / "m" / name).write_text("{}\n", encoding="utf-8")
    assert run(tmp_path, "--model_name", "m") == 4
    assert f"{name}: no task is called" in told(capsys)


@pytest.mark.parametrize("name", ["notes.txt", "config.json", "tokenizer.json", ".hidden.jsonl"])
def test_other_files_are_nobodys_business(tmp_path, name):
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    (tmp_path / "r" / "m" / name).write_text("{}\n", encoding="utf-8")
    assert run(tmp_path, "--model_name", "m") == 0


def test_a_task_column_value_that_is_no_task_is_told(tmp_path, capsys):
    rows = [{**row, "task": "popqa.subset" if row["id"] != "4" else "popqa.sbset"} for row in POPQA]
    put(tmp_path / "r" / "m", "all", rows)
    assert run(tmp_path, "--model_name", "m", "--task_column", "task") == 4
    assert "1 rows are of 'popqa.sbset'" in told(capsys)


def test_a_task_without_any_gold_is_told(tmp_path, capsys):
    put(tmp_path / "r" / "m", "popqa.subset", [{**row, "gold": ""} for row in POPQA])
    put(tmp_path / "r" / "m", "xtreme.subset", POPQA)
    assert run(tmp_path, "--model_name", "m") == 4
    out = told(capsys)
    assert "popqa.subset.jsonl: no sample has a value (no_gold 4" in out
    assert "xtreme.subset.jsonl: 1 of 4 rows have no usable 'gold' (row 4)" in out


def test_rows_that_nothing_can_pair_are_told(tmp_path, capsys):
    put(tmp_path / "r" / "m", "popqa.subset", [{"outputs": "Rome", "gold": ["Rome"]}] * 3)
    assert run(tmp_path, "--model_name", "m") == 0
    assert "3 of 3 rows have neither id nor prompt" in told(capsys)


def test_list_prints_the_tree(capsys):
    assert compute_metrics.main(["--tasks", "list"]) == 0
    assert "H6_DD" in capsys.readouterr().out


def test_a_worker_that_dies_costs_its_row(tmp_path, monkeypatch):
    from evaluation import engine

    def deadly(row):
        if row.id == "2":
            os._exit(9)
        return {"correct": True}

    monkeypatch.setattr(engine, "score_by_rules", deadly)
    file = ResponseFile("popqa.subset", put(tmp_path, "popqa.subset", POPQA), "jsonl")
    task_run = TaskRun(file)
    pool = WorkerPool(2)
    run_rules(task_run, pool)
    pool.close()
    assert [sample["reason"] for sample in task_run.samples] == [None, "worker_died", None, None]
    assert [sample.get("correct") for sample in task_run.samples] == [True, None, True, True]


def test_a_scorer_fault_is_told_and_costs_its_row(monkeypatch):
    from evaluation import engine

    monkeypatch.setattr(engine, "score_by_rules", lambda row: 1 / 0)
    (score,) = score_chunk([make_row("popqa.subset", POPQA[0])])
    assert score == {"reason": "scorer_error", "error": "ZeroDivisionError: division by zero"}


def test_same_table_from_one_and_from_two_workers(tmp_path):
    file = put(tmp_path, "popqa.subset", [{**POPQA[i % 4], "id": str(i)} for i in range(300)])
    tables = []
    for workers in (1, 2):
        task_run = TaskRun(ResponseFile("popqa.subset", file, "jsonl"))
        pool = WorkerPool(workers)
        run_rules(task_run, pool)
        pool.close()
        tables.append(sample_table("popqa.subset", [task_run]).columns)
    assert tables[0] == tables[1]


def table_of(**columns) -> SampleTable:
    n = len(next(iter(columns.values())))
    fixed = {
        "key": [str(i) for i in range(n)],
        "reason": [None] * n,
        "state": ["ok"] * n,
        "judgements": [None] * n,
    }
    return SampleTable("mtbench.turn2", {**fixed, **columns})


STATISTICS = {
    # statistic: (values, expected)
    "mean": ([1, 2, None, 6], 3.0),
    "sum": ([1, 2, None, 6], 9.0),
    "std": ([1, 3, None], 1.0),
    "median": ([1, 2, 9, 10], 5.5),
    "p90": ([0, 10], 9.0),
    "min": ([3, None, 2], 2.0),
    "max": ([3, None, 2], 3.0),
    "count": ([3, None, 2], 2),
}


@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistic(statistic):
    values, expected = STATISTICS[statistic]
    assert metric_value(Metric("m", "x", statistic), table_of(x=values)) == expected
    assert metric_value(Metric("m", "x", statistic), table_of(x=[None, None])) is None


def test_ratio_is_of_sums_not_a_mean_of_ratios():
    table = table_of(x=[1, 0, None], y=[1, 9, 3])
    assert metric_value(Metric("m", "x", "ratio", per="y"), table) == 0.1
    assert metric_value(Metric("m", "x", "ratio", per="y"), table_of(x=[0], y=[0])) is None


def test_unjudged_samples_leave_the_count_and_bound_the_value():
    table = table_of(
        rating=[10, None, 4], reason=[None, "judge_failed", None], judgements=["[]", "[1]", "[1]"]
    )
    metrics = task_metrics(table)
    assert metrics["rating_stats"]["mean_rating"] == 7
    assert metrics["samples"]["judged"] == [2, 3]
    assert metrics["bounds"]["rating_stats/mean_rating"] == [5.0, 8.0]


CLUSTERS = {
    # name: (candidates by id and by text, keys, expected)
    "suffix": ([("f:a", "t"), ("f:a", "u")], ["a-t1", "a-t2"], ["f:a", "f:a"]),
    "shared passage": ([(None, "t"), (None, "t"), (None, "u")], ["1", "2", "3"], ["t", "t", "u"]),
    "a template is no source": ([(None, "t")] * 30, [str(i) for i in range(30)], [str(i) for i in range(30)]),
    "nothing known": ([(None, None)] * 2, [None, None], ["row:0", "row:1"]),
}


# (task, id, id of another row): whether they are one source
SOURCES = {
    ("mtbench.turn1", "mtbench-81-t1", "mtbench-81-t2"): True,
    ("followbench.subset", "followbench-content-1-L1", "followbench-content-1-L5"): True,
    ("mgsm.subset", "mgsm-7-de", "mgsm-7-th"): True,
    ("xtreme.subset", "xquad-7-de", "xquad-8-de"): False,
    ("popqa.subset", "item-aa", "item-ab"): False,
    ("humaneval.full", "HumanEval/0", "HumanEval/1"): False,
}


@pytest.mark.parametrize("case", SOURCES)
def test_ids_of_one_source(case):
    task, *ids = case
    rows = [make_row(task, {"id": i, "prompt": f"prompt of {i}", "outputs": ""}) for i in ids]
    first, second = cluster_keys([source_candidates(row) for row in rows], [pair_key(row) for row in rows])
    assert (first == second) == SOURCES[case]


@pytest.mark.parametrize("case", CLUSTERS)
def test_clusters(case):
    candidates, keys, expected = CLUSTERS[case]
    assert cluster_keys(candidates, keys) == expected


@pytest.mark.parametrize(
    "script", ["compute_metrics.py", "compare_models.py", "run_captrack.py", "run_inference.py"]
)
def test_help_imports_nothing_heavy(script):
    code = (
        "import sys, runpy; sys.argv = [sys.argv[1], '--help']\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'matplotlib', 'seaborn', 'openai', 'boto3', 'google.genai',"
        " 'sympy', 'yaml', 'langdetect', 'jsonschema', 'torch', 'vllm', 'transformers', 'tqdm', 'asyncio'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / script)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_rule_only_run_imports_no_cloud_sdk(tmp_path):
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    code = (
        "import sys, compute_metrics\n"
        "code = compute_metrics.main(sys.argv[1:])\n"
        "heavy = {'openai', 'boto3', 'google.genai', 'matplotlib', 'torch', 'seaborn'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "sys.exit(code)\n"
    )
    places = ["--data_dir", str(tmp_path / "r"), "--output_dir", str(tmp_path / "m"), "--model_name", "m"]
    done = subprocess.run([sys.executable, "-c", code, *places], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_demo_scores_every_task_offline(tmp_path, capsys):
    shutil.copytree(ROOT / "model_responses" / "demo-adapted", tmp_path / "r" / "demo-adapted")
    assert run(tmp_path, "--model_name", "demo-adapted", "--judge", "overlap@builtin") == 0
    result = read_result(tmp_path / "m" / "demo-adapted")
    assert set(result.run["tasks"]) == set(TASKS)
    assert [c for c in COLUMNS if result.values[c.name] is None and "_DD" not in c.capability] == []
    assert "not for reporting" in capsys.readouterr().out and result.run["demo_judge"] is True


def test_a_row_without_an_output_is_no_empty_answer(tmp_path):
    put(tmp_path / "r" / "a", "popqa.subset", [POPQA[0], POPQA[2], {"id": "9", "gold": ["Rome"]}])
    assert run(tmp_path, "--model_name", "a") == 4
    metrics = json.loads((tmp_path / "m" / "a" / "metrics.json").read_text(encoding="utf-8"))
    samples = metrics["popqa.subset"]["samples"]
    assert (samples["total"], samples["scored"], samples["empty"]) == (3, 2, 1)
    assert samples["reasons"] == {"empty": 1, "no_output": 1}
    assert metrics["popqa.subset"]["accuracy"] == 0.5


_KILLED = """
import os, signal
from evaluation.engine import WorkerPool
from evaluation.rows import make_row
pool = WorkerPool(2)
rows = [[make_row("popqa.subset", {"outputs": "Rome", "gold": "Rome"})] for _ in range(4)]
list(pool.map(rows))
print(*pool._pool._processes, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs SIGKILL and process ids as POSIX has them")
def test_workers_end_with_a_killed_parent():
    # output goes to a file: the workers would keep a pipe open
    with tempfile.TemporaryFile("w+") as out:
        done = subprocess.run([sys.executable, "-c", _KILLED], cwd=ROOT, stdout=out, check=False)
        out.seek(0)
        workers = [int(number) for number in out.read().split()]
    assert done.returncode == -9 and workers
    for _ in range(300):
        if not any(_is_alive(worker) for worker in workers):
            return
        time.sleep(0.1)
    pytest.fail("workers outlive their parent")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")  # a zombie that nobody reaps is as dead
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_run_killed_between_its_two_renames_loses_no_result(tmp_path):
    put(tmp_path / "r" / "a", "popqa.subset", POPQA)
    assert run(tmp_path, "--model_name", "a") == 0
    (tmp_path / "m" / "a").rename(tmp_path / "m" / ".a.99.former.partial")
    put(tmp_path / "r" / "a", "popqa.subset", [{"id": "1"}])
    assert run(tmp_path, "--model_name", "a") == 1
    assert read_result(tmp_path / "m" / "a").values["C1 Accuracy (PopQA)"] == 1 / 3
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["a"]


FOLLOWBENCH = [{"id": str(i), "prompt": f"Say {i}.", "outputs": f"It is {i}.", "gold": ""} for i in range(3)]


def test_without_a_key_the_rules_count_and_the_rest_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    put(tmp_path / "r" / "m", "followbench.subset", FOLLOWBENCH)
    assert run(tmp_path, "--model_name", "m") == 4
    captured = capsys.readouterr()
    assert "followbench.subset has 0 of 3 judgements" in captured.out
    assert captured.err.count("OPENAI_API_KEY is not set") == 1
    result = read_result(tmp_path / "m" / "m")
    assert result.values["C1 Accuracy (PopQA)"] == pytest.approx(1 / 3)
    assert result.values["H1 Accuracy (FollowBench)"] is None
    assert result.samples("followbench.subset").columns["reason"] == ["judge_no_credentials"] * 3


def test_check_finds_a_missing_key(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert run(tmp_path, "--check", "--tasks", "followbench.subset") == 1
    assert "OPENAI_API_KEY" in capsys.readouterr().err
    assert run(tmp_path, "--check", "--tasks", "popqa.subset") == 0


def test_estimate_counts_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    put(tmp_path / "r" / "m", "followbench.subset", [*FOLLOWBENCH, {**FOLLOWBENCH[0], "id": "again"}])
    assert run(tmp_path, "--model_name", "m", "--estimate") == 0
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("followbench.subset"))
    assert line.split()[1:5] == ["gpt-4o-mini@openai", "3", "0", "1"]
    assert not (tmp_path / "m" / "m").exists()


def test_a_judge_without_a_backend_is_refused(tmp_path, capsys):
    put(tmp_path / "r" / "m", "followbench.subset", FOLLOWBENCH)
    assert run(tmp_path, "--model_name", "m", "--judge", "gpt-4o-mini") == 1
    assert "MODEL@BACKEND" in capsys.readouterr().err


def test_an_entry_of_task_configs_can_be_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(compute_metrics.TASK_CONFIGS, "followbench.subset", {"judge": "overlap@builtin"})
    put(tmp_path / "r" / "m", "followbench.subset", FOLLOWBENCH)
    assert run(tmp_path, "--model_name", "m") == 0
    entry = read_result(tmp_path / "m" / "m").run["tasks"]["followbench.subset"]
    assert entry["judge"] == "overlap@builtin" and entry["judged"] == [3, 3]
    assert entry["prompt_versions"].keys() == {"instruction_following"}


def test_labels_and_repeats_are_reported(tmp_path, capsys):
    put(tmp_path / "r" / "m", "followbench.subset", FOLLOWBENCH)
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"task": "followbench.subset", "id": "0", "label": 0.5}\n', encoding="utf-8")
    judge = ["--judge", "overlap@builtin", "--judge_repeat", "2", "--judge_labels", str(labels)]
    assert run(tmp_path, "--model_name", "m", *judge) == 0
    out = capsys.readouterr().out
    assert "self-agreement 1" in out and "against labels" in out
    judging = read_result(tmp_path / "m" / "m").run["judging"]
    assert judging["against_labels"]["followbench.subset"]["compared"] == 1


def test_no_fence_means_no_code_scores(tmp_path, monkeypatch, capsys):
    from evaluation import sandbox

    monkeypatch.setattr(
        sandbox, "probe", lambda: sandbox.Level("none", missing={"landlock": "not in this kernel"})
    )
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    shutil.copy(ROOT / "model_responses" / "demo-base" / "mbpp.full.jsonl", tmp_path / "r" / "m")
    assert run(tmp_path, "--model_name", "m") == 4
    assert "--allow_unsafe_code" in capsys.readouterr().out
    assert read_result(tmp_path / "m" / "m").values["C1 Accuracy (mbpp)"] is None


def test_report_of_one_model(tmp_path):
    put(tmp_path / "r" / "m", "popqa.subset", POPQA)
    assert run(tmp_path, "--model_name", "m", "--report") == 0
    assert "popqa.subset" in (tmp_path / "m" / "m" / "report.html").read_text(encoding="utf-8")
