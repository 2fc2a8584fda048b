"""What run_captrack.py does: which model needs which step, the three scripts as processes, one summary at
the end."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import compare_models
import compute_metrics
import run_inference
from evaluation.cli import ERROR, UsageError
from evaluation.files import safe_name, whole_file
from evaluation.models import (
    ROOT,
    Model,
    environment_of,
    inference_options_of,
    inference_python,
    model_options,
    needs_inference,
    plan_models,
    shared_window,
)

# from best to worst, for "ends with the worst code": done, inconclusive, incomplete, regression, error
SEVERITY = (0, 3, 4, 2, 1)


def worst(codes: Sequence[int]) -> int:
    """The worst exit code; one that no script of ours uses (a signal) counts as an error."""
    return max((code if code in SEVERITY else ERROR for code in codes), key=SEVERITY.index, default=0)


def run(options: Namespace, others: Sequence[str], stages: Sequence[str]) -> int:
    """Runs the stages for all models. Raises UsageError before anything is spent where something can't
    work."""
    forwarded = share_out(others)
    parser = run_inference.build_parser()
    parser.prog = "run_captrack.py"
    inference_options = parser.parse_args(["--model", "-", *forwarded["run_inference"]])
    if inference_options.base_url:
        raise UsageError(
            "--base_url belongs to run_inference.py; here an address is given as a model: --base URL#NAME."
        )
    models = plan_models(options)
    shares = {model.name: inference_options_of(model, models, forwarded["run_inference"]) for model in models}
    if "compare" in stages:
        check_comparison(options, models, forwarded["compare_models"])
    waiting = []
    if "inference" in stages:
        waiting = [m for m in models if needs_inference(m, options, inference_options)]
    python = inference_python(options, waiting) if waiting else ""
    check(options, forwarded, shares, waiting, python, stages)
    steps: list[tuple[str, int]] = []
    if waiting:
        base_model = inference_options.base_model
        window = shared_window(models, waiting, forwarded["run_inference"], python, base_model)
        for model in waiting:
            code = call(
                f"inference of {model.name}",
                [python, "run_inference.py", *model_options(model), "--name", model.name],
                ["--output_dir", options.responses_dir, *tasks_of(options), *window],
                shares[model.name],
                environment=environment_of(python),
            )
            steps.append((f"inference of {model.name}", code))
        if worst([code for _, code in steps]) == ERROR:
            return finish(options, models, steps)
    if "metrics" in stages:
        for model in models:
            code = call(
                f"metrics of {model.name}",
                [sys.executable, "compute_metrics.py", "--model_name", model.name],
                [
                    "--data_dir",
                    options.responses_dir,
                    "--output_dir",
                    options.metrics_dir,
                    *tasks_of(options),
                ],
                forwarded["compute_metrics"],
            )
            steps.append((f"metrics of {model.name}", code))
        if worst([code for _, code in steps]) == ERROR:
            return finish(options, models, steps)
    if "compare" in stages:
        config = write_config(options, models)
        code = call(
            "comparison",
            [sys.executable, "compare_models.py", "--config", str(config)],
            forwarded["compare_models"],
        )
        steps.append(("comparison", code))
    return finish(options, models, steps)


# ------------------------------------------------------------------------------------------------ options


def share_out(others: Sequence[str]) -> dict[str, list[str]]:
    """script -> the options that go there; an option that none of the other two knows goes to
    run_inference."""
    parsers: dict[str, ArgumentParser] = {
        "compute_metrics": compute_metrics.build_parser(),
        "compare_models": compare_models.build_parser(),
    }
    shares: dict[str, list[str]] = {"run_inference": [], **{name: [] for name in parsers}}
    targets = ["run_inference"]
    for token in others:
        if token.startswith("--"):
            option = token.split("=", 1)[0]
            known = [name for name, parser in parsers.items() if option in parser._option_string_actions]
            targets = known or ["run_inference"]
        for target in targets:
            shares[target].append(token)
    for name, parser in parsers.items():
        parser.prog = "run_captrack.py"
        parser.parse_known_args(shares[name])  # a wrong value is told here, before anything runs
    return shares


def tasks_of(options: Namespace) -> list[str]:
    return ["--tasks", *options.tasks] if options.tasks else []


# ------------------------------------------------------------------------------------------------ steps


def check(
    options: Namespace,
    forwarded: dict[str, list[str]],
    shares: dict[str, list[str]],
    waiting: Sequence[Model],
    python: str,
    stages: Sequence[str],
) -> None:
    """Before anything is spent: checkpoints, window, memory, disk; then judge and sandbox."""
    if not waiting:
        return
    if "metrics" in stages:
        code = call(
            "check of judge and sandbox",
            [sys.executable, "compute_metrics.py", "--check", *tasks_of(options)],
            forwarded["compute_metrics"],
        )
        if code == ERROR:
            raise UsageError("the check of judge and sandbox failed; nothing was generated.")
    rows: dict[str, tuple[int, int]] = {}
    for model in waiting:
        lines: list[str] = []
        code = call(
            f"check of {model.name}",
            [python, "run_inference.py", *model_options(model), "--name", model.name, "--check"],
            ["--output_dir", options.responses_dir, *tasks_of(options)],
            shares[model.name],
            environment=environment_of(python),
            output=lines,
        )
        if code == ERROR:
            raise UsageError(f"the check of {model.name} failed; nothing was generated.")
        for task, entry in checked_tasks(lines).items():
            known = rows.get(task, (0, 0))
            rows[task] = (known[0] + entry["rows"], known[1] + entry["prompt_tokens"])
    if rows and "metrics" in stages:
        print("\n== judging, at most (rules decide many rows, equal questions are asked once)")
        print("\n".join(judge_forecast(rows, forwarded["compute_metrics"])))


def checked_tasks(lines: Sequence[str]) -> dict[str, dict[str, int]]:
    """task -> rows and prompt tokens, from the line of JSON that run_inference.py --check prints last."""
    try:
        found = json.loads(lines[-1])["tasks"] if lines else {}
    except (ValueError, KeyError, TypeError):
        return {}
    return {task: entry for task, entry in found.items() if {"rows", "prompt_tokens"} <= set(entry)}


def judge_forecast(rows: dict[str, tuple[int, int]], arguments: Sequence[str]) -> list[str]:
    """The most that judging these rows can cost, as a table."""
    from evaluation.judge.estimate import estimate_lines, forecast, read_prices
    from evaluation.judging import PRICES, judge_specs

    chosen = compute_metrics.build_parser().parse_args(list(arguments))
    return estimate_lines(
        forecast(rows, judge_specs(chosen, list(rows), compute_metrics.TASK_CONFIGS)), read_prices(PRICES)
    )


def call(
    what: str,
    *arguments: Sequence[str],
    environment: dict[str, str] | None = None,
    output: list[str] | None = None,
) -> int:
    """Runs one script from the project's folder, its output passing through; returns its exit code.

    output: where given, takes the lines of the script's standard output in place of the console.
    """
    command = [word for part in arguments for word in part]
    script = next(i for i, word in enumerate(command) if word.endswith(".py"))
    command[script] = str(ROOT / command[script])
    print(f"\n== {what}\n   {shlex.join(Path(w).name if i <= script else w for i, w in enumerate(command))}")
    sys.stdout.flush()
    if output is None:
        return subprocess.run(command, env=environment, check=False).returncode
    done = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    output += done.stdout.splitlines()
    return done.returncode


def write_config(options: Namespace, models: Sequence[Model]) -> Path:
    """The comparison's configuration, kept beside its result: --config's settings with this run's models."""
    import yaml

    settings: dict[str, Any] = {}
    if options.config:
        try:
            settings = yaml.safe_load(Path(options.config).read_text(encoding="utf-8-sig")) or {}
        except (OSError, yaml.YAMLError) as error:
            raise UsageError(f"--config {options.config}: {' '.join(str(error).split())}") from None
        if not isinstance(settings, dict):
            raise UsageError(f"--config {options.config}: a mapping of settings is needed.")
    base, *adapted = models
    folder = Path(options.output_dir) / comparison_name(base, adapted)
    metrics = Path(options.metrics_dir)
    settings["model_pairs"] = [
        {
            "base": str(metrics / safe_name(base.name)),
            "adapted": str(metrics / safe_name(model.name)),
            "name": model.name,
        }
        for model in adapted
    ]
    settings["output_dir"] = str(folder)
    path = folder / "config.yaml"
    with whole_file(path) as handle:
        yaml.safe_dump(settings, handle, sort_keys=False, allow_unicode=True)
    return path


def check_comparison(options: Namespace, models: Sequence[Model], arguments: Sequence[str]) -> None:
    """A comparison or a gate that cannot be made is told before hours are spent. Raises UsageError."""
    from evaluation.comparison.config import ConfigError
    from evaluation.comparison.run import check_gate

    with tempfile.TemporaryDirectory() as folder:
        path = write_config(Namespace(**{**vars(options), "output_dir": folder}), models)
        try:
            comparison = compare_models.build_parser().parse_args(["--config", str(path), *arguments])
            check_gate(compare_models.configuration(comparison))
        except ConfigError as error:
            raise UsageError(str(error)) from None


def comparison_name(base: Model, adapted: Sequence[Model]) -> str:
    return safe_name(f"{base.name}_vs_{'_'.join(model.name for model in adapted)}")


def finish(options: Namespace, models: Sequence[Model], steps: Sequence[tuple[str, int]]) -> int:
    """Prints where everything is and what did not go well; returns the worst code."""
    code = worst([c for _, c in steps])
    words = {0: "done", 1: "FAILED", 2: "regression", 3: "inconclusive", 4: "done in part"}
    print("\n== summary")
    for step, c in steps:
        print(f"   {step}: {words.get(c, f'ended with {c}')}")
    for model in models:
        print(f"   responses of {model.name}: {model.responses}/")
    if any(step.startswith("metrics") for step, _ in steps):
        print(f"   metrics: {options.metrics_dir}/")
    folder = Path(options.output_dir) / comparison_name(models[0], models[1:])
    if ("comparison", ERROR) not in steps and any(step == "comparison" for step, _ in steps):
        print(f"   comparison: {folder}/")
        for picture in sorted(folder.glob("*heatmap*")):
            print(f"   heatmap: {picture}")
        if (folder / "report.html").exists():
            print(f"   report: {folder / 'report.html'}")
    return code
