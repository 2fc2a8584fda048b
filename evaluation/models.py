"""The models of a run of run_captrack.py: their names and folders, who generates, with which interpreter and
window.

Example: --base org/model --adapted ./sft become Model(role="base", source="org/model", name="org__model",
…) and Model(role="adapted", source="./sft", name="sft", …).
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.cli import UsageError, select_tasks
from evaluation.files import safe_name
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


@dataclass(frozen=True)
class Model:
    """One model of the run. source: what was given on the command line. responses: its folder."""

    role: str
    source: str
    name: str
    responses: Path
    state: str


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
