"""run_captrack.py: the chain, what is forwarded where, and how it ends."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from pathlib import Path

import pytest

import run_captrack
from evaluation.models import plan_models
from evaluation.pipeline import (
    checked_tasks,
    comparison_name,
    judge_forecast,
    share_out,
    worst,
)

ROOT = Path(__file__).resolve().parent.parent
TASKS = ("popqa.subset", "gsm8k.subset")


@pytest.fixture
def places(tmp_path):
    """Two demo models with two tasks each, and the options that keep everything below tmp_path."""
    for name in ("demo-base", "demo-adapted"):
        (tmp_path / "r" / name).mkdir(parents=True)
        for task in TASKS:
            shutil.copy(ROOT / "model_responses" / name / f"{task}.jsonl", tmp_path / "r" / name)
    folders = {"responses_dir": "r", "metrics_dir": "m", "output_dir": "c"}
    return [word for key, name in folders.items() for word in (f"--{key}", str(tmp_path / name))]


def test_main_job_from_response_files_to_a_heatmap(places, tmp_path, capfd):
    ended = run_captrack.main(
        [
            "--base",
            "demo-base",
            "--adapted",
            "demo-adapted",
            *places,
            "--figure-format",
            "png",
            "--workers",
            "1",
        ]
    )
    out = capfd.readouterr().out
    folder = tmp_path / "c" / "demo-base_vs_demo-adapted"
    assert ended == 0
    assert (folder / "relative_differences_heatmap.png").stat().st_size > 10_000
    assert "== summary" in out and str(folder) in out


def test_absent_task_asked_for_is_told_and_goes_on(places, tmp_path, capfd):
    ended = run_captrack.main(
        [
            "--base",
            "demo-base",
            "--adapted",
            "demo-adapted",
            *places,
            "--tasks",
            "popqa.subset",
            "boolq.subset",
        ]
    )
    assert ended == 4
    assert "no response file: boolq.subset" in capfd.readouterr().out
    assert (tmp_path / "c" / "demo-base_vs_demo-adapted" / "summary.md").exists()


def test_settings_of_a_comparison_file_are_taken(places, tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text(
        "categories_to_plot: [C1]\nsave_options: {figure_format: svg, save_csv: true}\n", encoding="utf-8"
    )
    arguments = ["--base", "demo-base", "--adapted", "demo-adapted", *places, "--config", str(config)]
    assert run_captrack.main(arguments) == 0
    folder = tmp_path / "c" / "demo-base_vs_demo-adapted"
    assert (folder / "relative_differences_heatmap.svg").exists()
    assert "C1 Knowledge" in (folder / "relative_differences.csv").read_text(encoding="utf-8").splitlines()[0]


def test_stages_run_a_part(places, tmp_path):
    arguments = ["--base", "demo-base", "--adapted", "demo-adapted", *places]
    assert run_captrack.main([*arguments, "--stages", "metrics"]) == 0
    assert (tmp_path / "m" / "demo-base" / "metrics.csv").exists() and not (tmp_path / "c").exists()
    assert run_captrack.main([*arguments, "--stages", "compare"]) == 0
    assert (tmp_path / "c" / "demo-base_vs_demo-adapted" / "summary.md").exists()


REFUSED = {
    # what is wrong: (arguments after --base demo-base, words)
    "no responses and no engine": (["--adapted", "nothere"], "pass --inference_python"),
    "a typing error": (["--adapted", "demo-adpated"], "Did you mean demo-adapted?"),
    "unknown option": (["--adapted", "demo-adapted", "--taks", "x"], "--taks"),
    "unknown stage": (["--adapted", "demo-adapted", "--stages", "score"], "none of inference"),
    "unknown task": (["--adapted", "demo-adapted", "--tasks", "popqa"], "Did you mean popqa.subset"),
    "no such interpreter": (["--adapted", "nothere", "--inference_python", "/no/python"], "no program"),
    "a wrong value for inference": (["--adapted", "demo-adapted", "--limit", "many"], "--limit"),
    "a wrong value for metrics": (["--adapted", "demo-adapted", "--file_format", "xml"], "--file_format"),
    "a wrong value for the comparison": (["--adapted", "demo-adapted", "--missing", "maybe"], "--missing"),
    "two models of one name": (["--adapted", "demo-base"], "--adapted_names"),
    "too few names": (["--adapted", "demo-adapted", "--adapted_names", "a", "b"], "2 names for 1"),
    "no adapted model": ([], "--adapted"),
    "no such comparison file": (["--adapted", "demo-adapted", "--config", "no.yaml"], "no.yaml"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_runs(places, tmp_path, capfd, case):
    arguments, words = REFUSED[case]
    try:
        ended = run_captrack.main(["--base", "demo-base", *arguments, *places])
    except SystemExit as error:
        ended = error.code
    assert ended == 1
    assert words in capfd.readouterr().err
    if case != "no such comparison file":
        assert not (tmp_path / "m").exists()


def test_options_go_to_the_script_that_knows_them():
    words = [
        "--judge",
        "overlap@builtin",
        "--limit",
        "3",
        "--missing=exclude",
        "--vllm_kwargs",
        '{"a": 1}',
        "--workers",
        "1",
    ]
    assert share_out(words) == {
        "run_inference": ["--limit", "3", "--vllm_kwargs", '{"a": 1}'],
        "compute_metrics": ["--judge", "overlap@builtin", "--workers", "1"],
        "compare_models": ["--missing=exclude"],
    }


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0, 4], 4),
        ([4, 3], 4),
        ([4, 2], 2),
        ([2, 1], 1),
        ([0, 3], 3),
        ([0, -9], 1),
        ([0, 137], 1),
    ],
)
def test_worst_code(codes, expected):
    assert worst(codes) == expected


FAKE_PYTHON = """#!{python}
import json, os, pathlib, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], os.environ["PATH"].split(os.pathsep)[0], "PYTHONPATH" in
    os.environ]) + "\\n")
arguments = sys.argv[1:]
if arguments[0] == "-c":
    print(4096 if "big" in arguments[-1] else 2048)
elif "--check" not in arguments:
    value = lambda name: arguments[arguments.index(name) + 1]
    if value("--name") == "broken":
        sys.exit(1)
    folder = pathlib.Path(value("--output_dir")) / value("--name")
    folder.mkdir(parents=True)
    source = pathlib.Path({source!r}) / "popqa.subset.jsonl"
    (folder / source.name).write_bytes(source.read_bytes())
    (folder / "run.json").write_text(json.dumps({{"written_by": "run_inference.py", "settings": {{}},
    "tasks": {{}}}}))
"""


@pytest.fixture
def fake_python(tmp_path, monkeypatch):
    """An interpreter that notes how it was called and, asked for inference, copies demo responses."""
    log = tmp_path / "calls.jsonl"
    program = tmp_path / "venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(
        FAKE_PYTHON.format(
            python=sys.executable, log=str(log), source=str(ROOT / "model_responses" / "demo-base")
        ),
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    return program, lambda: [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_inference_gets_its_environment_and_the_smaller_window(places, tmp_path, fake_python):
    program, calls = fake_python
    for name in ("big", "small"):
        (tmp_path / name).mkdir()
    models = ["--base", str(tmp_path / "big"), "--adapted", str(tmp_path / "small")]
    arguments = [*models, *places, "--inference_python", str(program), "--limit", "3"]
    assert run_captrack.main([*arguments, "--judge", "overlap@builtin"]) == 0
    generated = [c for c, _, _ in calls() if c[0] != "-c" and "--check" not in c]
    assert len(generated) == 2
    for call in generated:
        assert call[call.index("--max_model_len") + 1] == "2048"
        assert call[call.index("--limit") + 1] == "3"
        assert "--judge" not in call
    assert all(first == str(program.parent) and not polluted for _, first, polluted in calls())
    checked = [i for i, (c, _, _) in enumerate(calls()) if "--check" in c]
    assert max(checked) < min(i for i, (c, _, _) in enumerate(calls()) if c in generated)


def test_a_failed_model_keeps_the_others_responses(places, tmp_path, fake_python, capfd):
    program, _ = fake_python
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
    models = ["--base", str(tmp_path / "bad"), "--base_name", "broken", "--adapted", str(tmp_path / "good")]
    arguments = [*models, *places, "--inference_python", str(program), "--judge", "overlap@builtin"]
    assert run_captrack.main([*arguments, "--adapted_names", "good"]) == 1
    assert (tmp_path / "r" / "good" / "popqa.subset.jsonl").exists()
    assert "inference of broken: FAILED" in capfd.readouterr().out


def test_responses_that_a_person_brought_never_start_inference(places, tmp_path, fake_python):
    program, _ = fake_python
    arguments = [
        "--base",
        "demo-base",
        "--adapted",
        "demo-adapted",
        *places,
        "--inference_python",
        str(program),
    ]
    assert run_captrack.main(arguments) == 0
    assert not (tmp_path / "calls.jsonl").exists()
    assert sorted(p.name for p in (tmp_path / "r" / "demo-base").iterdir()) == sorted(
        f"{t}.jsonl" for t in TASKS
    )


def test_judging_is_forecast_before_a_token_is_spent():
    lines = judge_forecast(
        {"math.subset": (100, 20_000), "popqa.subset": (50, 900)}, ["--judge", "gpt-4o@openai"]
    )
    (line,) = [line.split() for line in lines if line.startswith("math.subset")]
    # two questions a row, each with prompt, answer and instructions; one reply each
    assert line[1:3] == ["gpt-4o@openai", "200"]
    assert line[5:] == ["200,000", "40,000", "$0.90"]
    assert not any("popqa" in line for line in lines)


@pytest.mark.parametrize(
    ("lines", "tasks"),
    [
        ([], {}),
        (["x"], {}),
        (["[1]"], {}),
        (['{"tasks": {"a": {"rows": 1, "prompt_tokens": 2}, "b": {}}}'], {"a"}),
    ],
)
def test_what_a_check_tells(lines, tasks):
    assert set(checked_tasks(lines)) == set(tasks)


def test_names_are_readable(places, tmp_path):
    options = run_captrack.build_parser().parse_args(
        ["--base", "org/model-7b", "--adapted", "demo-adapted", *places]
    )
    models = plan_models(options)
    assert [m.name for m in models] == ["org__model-7b", "demo-adapted"]
    assert comparison_name(models[0], models[1:]) == "org__model-7b_vs_demo-adapted"


@pytest.fixture(scope="module")
def demo_results(tmp_path_factory):
    """A working folder with absolute_metrics/ of both demo models, all 37 tasks, judged offline."""
    import compute_metrics

    folder = tmp_path_factory.mktemp("demo")
    for name in ("demo-base", "demo-adapted"):
        places = [
            "--data_dir",
            str(ROOT / "model_responses"),
            "--output_dir",
            str(folder / "absolute_metrics"),
        ]
        assert compute_metrics.main(["--model_name", name, *places, "--judge", "overlap@builtin"]) == 0
    return folder


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*example*.yaml")), ids=lambda p: p.stem)
def test_every_example_runs_on_the_demo(demo_results, path, monkeypatch, capfd):
    import compare_models

    monkeypatch.chdir(demo_results)
    code = compare_models.main(["--config", str(path), "--figure_format", "png"])
    # six samples a task cannot pass a gate, and must not fail one
    assert code == (3 if path.stem == "gate_example" else 0)
    assert list(demo_results.rglob("relative_differences_heatmap.png"))
