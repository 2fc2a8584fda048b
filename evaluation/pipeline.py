"""What run_captrack.py does: which model needs which step, the three scripts as processes, one summary at
the end."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import compare_models
import compute_metrics
import run_inference
from evaluation.cli import ERROR, UsageError, select_tasks
from evaluation.files import safe_name, whole_file
from evaluation.inference.address import name_of, split
from evaluation.inference.checkpoint import default_name
from evaluation.inference.manifest import (
    ABSENT,
    FOREIGN,
    OURS,
    folder_state,
    missing_by_count,
    read_manifest,
)

ROOT = Path(__file__).resolve().parent.parent
# options of run_inference.py that only a checkpoint, or only a served model, can follow
CHECKPOINT_ONLY = ("--vllm_kwargs", "--tensor_parallel_size", "--data_parallel_size", "--base_model")
SERVED_ONLY = ("--tokenizer",)
# from best to worst, for "ends with the worst code": done, inconclusive, incomplete, regression, error
SEVERITY = (0, 3, 4, 2, 1)


@dataclass(frozen=True)
class Model:
    """One model of the run. source: what was given on the command line. responses: its folder."""

    role: str
    source: str
    name: str
    responses: Path
    state: str


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


def plan_models(options: Namespace) -> list[Model]:
    """Base first, then the adapted ones, each with a name of its own."""
    names = options.adapted_names
    if names is not None and len(names) != len(options.adapted):
        raise UsageError(f"--adapted_names: {len(names)} names for {len(options.adapted)} adapted models.")
    responses = Path(options.responses_dir)
    wanted = [("base", options.base, options.base_name)]
    wanted += [("adapted", source, names[i] if names else None) for i, source in enumerate(options.adapted)]
    models: list[Model] = []
    for role, source, given in wanted:
        known = not Path(source).is_absolute() and (responses / source).is_dir()
        name = given or (source if known else name_of(source) if split(source) else default_name(source))
        if any(name == model.name for model in models):
            raise UsageError(
                f"two models would be called {name!r}. Give them names with --base_name and --adapted_names."
            )
        folder = responses / (name if (responses / name).is_dir() else safe_name(name))
        models.append(Model(role, source, name, folder, folder_state(folder)))
    return models


# ------------------------------------------------------------------------------------------------ inference


def needs_inference(model: Model, options: Namespace, inference_options: Namespace) -> bool:
    """Whether responses have to be generated. A folder that a person brought is never added to."""
    if model.state == FOREIGN:
        return False
    if model.state == OURS:
        return bool(
            missing_by_count(model.responses, list(select_tasks(options.tasks)), inference_options.limit)
        )
    return True


def model_of(model: Model) -> str:
    """The checkpoint behind a name: what was given, or for a folder of ours what its manifest names."""
    if Path(model.source).exists() or model.state == ABSENT:
        return model.source
    manifest = read_manifest(model.responses) or {}
    made_of = manifest.get("model") or {}
    return str(made_of.get("path") or made_of.get("given") or model.source)


def address_of(model: Model) -> tuple[str, str | None] | None:
    """(URL, served name) of http://host:8000/v1#name, or of a folder of ours that was made from a server."""
    if model.state == OURS and not split(model.source):
        made_of = (read_manifest(model.responses) or {}).get("model") or {}
        return (made_of["served_at"], made_of["given"]) if "served_at" in made_of else None
    return split(model.source)


def model_options(model: Model) -> list[str]:
    """How run_inference.py is told the model."""
    if address := address_of(model):
        url, name = address
        return ["--base_url", url, *(["--model", name] if name else [])]
    return ["--model", model_of(model)]


def inference_options_of(model: Model, models: Sequence[Model], words: Sequence[str]) -> list[str]:
    """The words without the options that are meant for models of the other kind, where there are such."""
    served = address_of(model) is not None
    if all((address_of(other) is not None) == served for other in models):
        return list(words)
    others, kept, dropped = CHECKPOINT_ONLY if served else SERVED_ONLY, [], False
    for word in words:
        if word.startswith("--"):
            dropped = word.split("=", 1)[0] in others
        if not dropped:
            kept.append(word)
    return kept


def inference_python(options: Namespace, waiting: Sequence[Model]) -> str:
    """The interpreter that has vLLM, for served models alone this one; raises UsageError that names the way
    out where there is none.
    """
    if options.inference_python:
        path = Path(options.inference_python).expanduser()
        if not path.is_file() or not os.access(path, os.X_OK):
            raise UsageError(f"--inference_python: {path} is no program that can be run.")
        return str(path)
    from importlib.util import find_spec

    if find_spec("vllm") or all(address_of(model) for model in waiting):
        return sys.executable
    names = ", ".join(model.name for model in waiting)
    there = sorted(path.name for path in Path(options.responses_dir).glob("*") if path.is_dir())
    close = [name for model in waiting for name in difflib.get_close_matches(model.source, there, n=1)]
    hint = f" Did you mean {close[0]}?" if close else ""
    raise UsageError(
        f"{names}: no responses in {options.responses_dir}/ yet.{hint} Inference is needed "
        "(run_inference.py), and this Python has no vLLM: pass --inference_python, or put responses there."
    )


def environment_of(python: str) -> dict[str, str]:
    """The environment in which an interpreter called by its path finds its own programs and packages."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment["PATH"] = f"{Path(python).parent}{os.pathsep}{environment.get('PATH', '')}"
    return environment


def shared_window(
    models: Sequence[Model],
    waiting: Sequence[Model],
    arguments: Sequence[str],
    python: str,
    base_model: str | None = None,
) -> list[str]:
    """--max_model_len for all models: the smallest native window, so that no prompt is cut for one alone."""
    if any(a.split("=")[0] == "--max_model_len" for a in arguments) or len(models) == 1:
        return []
    windows = [recorded_window(m) for m in models if m not in waiting] + [
        native_window(m, python, base_model) for m in waiting
    ]
    known = [w for w in windows if w]
    return ["--max_model_len", str(min(known))] if known else []


def recorded_window(model: Model) -> int | None:
    settings = (read_manifest(model.responses) or {}).get("settings", {})
    return settings.get("max_model_len")


def native_window(model: Model, python: str, base_model: str | None = None) -> int | None:
    """Asked of the interpreter that will load the model: it knows the hub's cache and its packages."""
    if address := address_of(model):
        code = (
            "import json, sys; from evaluation.inference.served import Engine; "
            "print(json.dumps(Engine(sys.argv[1], sys.argv[2] or None).limit))"
        )
        arguments = [address[0], address[1] or ""]
    else:
        code = (
            "import json, sys; from evaluation.inference.adapter import locate; "
            "from evaluation.inference.checkpoint import native_window; "
            "print(json.dumps(native_window(locate(sys.argv[1], None, sys.argv[2] or None)[0].config)))"
        )
        arguments = [model_of(model), base_model or ""]
    done = subprocess.run(
        [python, "-c", code, *arguments],
        cwd=ROOT,
        env=environment_of(python),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"{model.source}: {reason}")
    return json.loads(done.stdout)


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
