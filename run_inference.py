#!/usr/bin/env python3
"""Generates a model's responses to the CapTrack tasks with vLLM, one file a task.

    python run_inference.py --model ORG/MODEL
    python run_inference.py --model checkpoints/mine --name mine --limit 20
    python run_inference.py --model ORG/MODEL --check            # everything but the generation
    python run_inference.py --model ORG/MODEL --download_only    # for a node without network

Responses go to model_responses/NAME/TASK.jsonl, what made them to model_responses/NAME/run.json. The same
command again goes on where it stopped. Exit codes: 0 every response is there; 1 nothing was done (one line
says why) or it was stopped; 4 done in part.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import hashlib
import json
import logging
import platform
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from evaluation.files import safe_name
from evaluation.inference import preflight
from evaluation.inference.checkpoint import (
    Checkpoint,
    ModelError,
    default_name,
    native_window,
    parallel_size,
    resolve,
)
from evaluation.inference.data import (
    DataError,
    TaskAbsent,
    TaskData,
    load,
    resolve_revision,
)
from evaluation.inference.engine import (
    RESERVED,
    Completion,
    Engine,
    EngineError,
    Sampling,
    installed,
    unknown_arguments,
)
from evaluation.inference.engine import (
    load as load_vllm,
)
from evaluation.inference.manifest import (
    FOREIGN,
    Manifest,
    differences,
    folder_state,
    own_files,
    read_manifest,
    settings_sha256,
    write_manifest,
)
from evaluation.inference.prompts import Chat, PromptError, prepare
from evaluation.inference.store import StoreError
from evaluation.inference.work import Rendered, Work, markup, pending, plan, render, task_entry
from evaluation.tasks import TASKS

DONE, FAILED, IN_PART = 0, 1, 4
DATASET = "tri-fair-lab/captrack"
SYSTEM_PROMPT = "You are a helpful assistant."
# arguments of vllm.LLM that decide how fast and where, not what: they may differ between two runs of one
# folder
RESOURCES = {
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "max_num_seqs",
    "max_num_batched_tokens",
    "pipeline_parallel_size",
    "distributed_executor_backend",
    "download_dir",
    "load_format",
    "cpu_offload_gb",
    "disable_log_stats",
    "trust_remote_code",
}
log = logging.getLogger("captrack.inference")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(FAILED, f"{self.prog}: {message}\n")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON ({error}): {text}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"not a JSON object: {text}")
    return value


def _whole(lowest: int) -> Any:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest:
            raise argparse.ArgumentTypeError(f"not a whole number from {lowest}: {text}")
        return value

    return read


def _between(lowest: float, highest: float) -> Any:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(f"not a number from {lowest} to {highest}: {text}")
        return value

    return read


def build_parser() -> argparse.ArgumentParser:
    """The options; also read by run_captrack.py, which forwards them."""
    parser = _Parser(
        prog="run_inference.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", help="Hugging Face model id or local checkpoint folder")
    add("--revision", help="commit, branch or tag of a hub model")
    add("--name", help="folder name of the responses (default: made from the model's)")
    add("--tasks", nargs="+", metavar="TASK", help="only these tasks (default: all that the data has)")
    add(
        "--dataset",
        default=DATASET,
        help="hub data set, or a folder with TASK.jsonl or data/TASK/data.parquet",
    )
    add("--dataset_revision", default="main", help="commit, branch or tag of the hub data set")
    add("--output_dir", default="model_responses")
    add("--limit", type=_whole(0), help="only the first N samples of each task")
    add("--max_tokens", type=_whole(1), help="caps the output limit of every task")
    add("--max_model_len", type=_whole(16), help="context length in tokens (default: the model's own)")
    add(
        "--tensor_parallel_size",
        type=_whole(1),
        help="GPUs (default: all visible that the model's heads allow)",
    )
    add("--system_prompt", default=SYSTEM_PROMPT, help="'' for none")
    add("--chat_template", help="file with a Jinja chat template, in place of the model's")
    add("--chat_template_kwargs", type=_json_object, default={}, metavar="JSON")
    add("--vllm_kwargs", type=_json_object, default={}, metavar="JSON", help="further arguments of vllm.LLM")
    add("--temperature", type=_between(0, 10), default=0.0, help="default 0: greedy decoding")
    add("--top_p", type=_between(1e-6, 1), default=1.0)
    add("--top_k", type=_whole(0), default=0, help="0: no limit")
    add("--seed", type=_whole(0), default=0)
    add("--overwrite", action="store_true", help="throw away this folder's responses of other settings")
    add("--check", action="store_true", help="the checks alone; a line of JSON on stdout sums them up")
    add("--download_only", action="store_true", help="fetch task data and model, then end")
    return parser


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Checked options. A mistake ends the process with one line and exit code 1."""
    parser = build_parser()
    options = parser.parse_args(argv)
    if not options.model and not options.download_only:
        parser.error("--model is missing")
    options.tasks = [name for given in options.tasks or () for name in given.split(",") if name] or None
    by_name = {name.replace(".", "_"): name for name in TASKS}
    for number, task in enumerate(options.tasks or ()):
        name = by_name.get(task.replace(".", "_"))
        if name is None:
            near = difflib.get_close_matches(task, TASKS, 1)
            parser.error(f"--tasks: there is no task {task}" + (f"; is it {near[0]}?" if near else ""))
        options.tasks[number] = name
    for name in options.vllm_kwargs:
        if name in RESERVED:
            parser.error(f"--vllm_kwargs: {name} is set by {RESERVED[name]}")
    if options.chat_template:
        path = Path(options.chat_template)
        if not path.is_file():
            parser.error(f"--chat_template: no such file: {path}")
        options.chat_template = path.read_text(encoding="utf-8")
    return options


def main(argv: list[str] | None = None) -> int:
    options = parse_arguments(argv)
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    log.setLevel(logging.INFO)
    # a scheduler's SIGTERM ends the run as Ctrl-C does
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(options)
    except (DataError, EngineError, ModelError, PromptError, StoreError) as error:
        print(f"run_inference.py: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(
            "run_inference.py: stopped; finished samples are kept, the same command goes on", file=sys.stderr
        )
    return FAILED


def run(options: argparse.Namespace) -> int:
    """Data, checks, generation. Raises the errors that main turns into one line."""
    began = time.perf_counter()
    data, absent, data_revision = load_data(options)
    if options.download_only:
        return download(options, data, absent)
    checkpoint = resolve(options.model, options.revision)
    window = options.max_model_len or native_window(checkpoint.config) or 0
    findings = preflight.window_checks(
        checkpoint, options.max_model_len, "hf_overrides" in options.vllm_kwargs
    )
    stop_on_errors(findings)
    folder = Path(options.output_dir) / safe_name(options.name or default_name(options.model))
    if folder_state(folder) == FOREIGN:
        raise StoreError(f"{folder} holds files that run_inference.py did not write; choose another --name")
    old = read_manifest(folder)
    chat = prepare(load_tokenizer(checkpoint, options), options.system_prompt, options.chat_template,
                   options.chat_template_kwargs)  # fmt: skip
    version = installed()
    settings = settings_of(
        options, checkpoint, chat, window, version or (old or {}).get("settings", {}).get("vllm")
    )
    with locked(folder, options.check):
        old = take_over(folder, old, settings, data, options)
        works = plan(data, folder, settings_sha256(settings), options.limit, options.max_tokens)
        left = sum(len(work.pending()) for work in works.values())
        if left and version is None:
            raise EngineError(
                "vLLM is not installed in this environment (environment-inference.yml makes one)"
            )
        importing = load_vllm() if left else 0.0
        gpus = preflight.visible_gpus() if left else []
        size = options.tensor_parallel_size or parallel_size(checkpoint.config, len(gpus))
        findings += machine_findings(options, checkpoint, window, size, gpus, version, folder) if left else []
        first = render(pending(works, 1), works, chat, window, options.max_tokens)
        warnings = warnings_of(chat, findings, works, first, absent)
        if old and old["runs"] and old["runs"][-1]["tensor_parallel_size"] != size and left:
            warnings.append(f"tensor parallel size {size}, before {old['runs'][-1]['tensor_parallel_size']}")
        report = report_of(options, folder, checkpoint, window, size, works, first, left, warnings)
        say(report, chat, first, warnings)
        stop_on_errors(findings)
        if options.check:
            print(json.dumps(report))
            return IN_PART if absent and options.tasks else DONE
        manifest: Manifest = {
            "name": folder.name,
            "model": {"given": options.model, "path": checkpoint.model, "revision": checkpoint.revision},
            "settings": settings,
            "settings_sha256": settings_sha256(settings),
            "dataset": {"name": options.dataset, "revision": data_revision},
            "system_role": "merged into the user turn" if chat.merged else "own",
            "bos": {"id": chat.tokenizer.bos_token_id, "added": chat.add_bos},
            "warnings": warnings,
            "first_prompt": first_prompt(first) or (old or {}).get("first_prompt"),
            "tasks": (old or {}).get("tasks", {}),
            "runs": (old or {}).get("runs", []),
        }
        record = {
            "started": now(),
            "ended": None,
            "state": "running",
            "versions": {"vllm": version, "python": platform.python_version()},
            "gpus": [gpu.name for gpu in gpus],
            "driver": gpus[0].driver if gpus else None,
            "tensor_parallel_size": size,
            "engine_arguments": engine_arguments(options, checkpoint, window, size),
            "samples": 0,
            "output_tokens": 0,
            "vllm_import_seconds": round(importing, 3),
        }
        manifest["tasks"] |= {task: task_entry(work, chat.template) for task, work in works.items()}
        if left:
            manifest["runs"] = [*manifest["runs"], record]
        write_manifest(folder, manifest)
        try:
            if left:
                generate(works, first, chat, window, options, record, began)
            record["state"] = "complete"
        except BaseException as error:
            record["state"] = f"stopped: {type(error).__name__}"
            raise
        finally:
            for work in works.values():
                work.store.close()
                if work.complete() or work.failed:
                    save(work)
            record["ended"] = now()
            manifest["tasks"] |= {task: task_entry(work, chat.template) for task, work in works.items()}
            write_manifest(folder, manifest)
        return summary(folder, works, absent if options.tasks else [], record)


def load_data(options: argparse.Namespace) -> tuple[dict[str, TaskData], list[str], str]:
    """(task → data, tasks asked for that the source lacks, revision). DataError where there is nothing at
    all.
    """
    revision = resolve_revision(options.dataset, options.dataset_revision)
    data, absent = {}, []
    for task in options.tasks or TASKS:
        try:
            data[task] = load(options.dataset, revision, task)
        except TaskAbsent:
            absent.append(task)
    if not data:
        wanted = ", ".join(options.tasks) if options.tasks else "any CapTrack task"
        raise DataError(f"{options.dataset} has no data for {wanted}")
    return data, absent, revision


def download(options: argparse.Namespace, data: dict[str, TaskData], absent: list[str]) -> int:
    for task, task_data in data.items():
        log.info("%-24s %6d rows", task, len(task_data.rows))
    if options.model and not Path(options.model).expanduser().is_dir():
        checkpoint = resolve(options.model, options.revision)
        from huggingface_hub import snapshot_download

        try:
            skipped = ["original/*", "*.gguf", "*.onnx", "onnx/*"]
            snapshot_download(checkpoint.model, revision=checkpoint.revision, ignore_patterns=skipped)
        except Exception as error:
            raise ModelError(f"{options.model} cannot be downloaded: {error}") from error
    elif options.model:
        resolve(options.model)
    for task in absent:
        log.warning("%s: no data", task)
    return IN_PART if absent and options.tasks else DONE


def load_tokenizer(checkpoint: Checkpoint, options: argparse.Namespace) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise EngineError(
            "transformers is not installed in this environment (environment-inference.yml)"
        ) from error
    try:
        return AutoTokenizer.from_pretrained(
            checkpoint.model,
            revision=checkpoint.revision,
            trust_remote_code=bool(options.vllm_kwargs.get("trust_remote_code", False)),
        )
    except Exception as error:
        raise ModelError(
            f"{options.model}: the tokenizer cannot be loaded: {' '.join(str(error).split())[:300]}"
        ) from error


def settings_of(
    options: argparse.Namespace, checkpoint: Checkpoint, chat: Chat, window: int, version: str | None
) -> dict[str, Any]:
    """Everything that decides an answer beside the row itself; a folder holds answers of one such set."""
    return {
        "weights": checkpoint.weights,
        "template": hashlib.sha256(chat.template.encode()).hexdigest()[:16],
        "chat_template_kwargs": options.chat_template_kwargs,
        "system_prompt": options.system_prompt,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "seed": options.seed if options.temperature > 0 else None,
        "max_tokens": options.max_tokens,
        "max_model_len": window,
        "vllm_kwargs": {key: value for key, value in options.vllm_kwargs.items() if key not in RESOURCES},
        "vllm": version,
    }


def take_over(
    folder: Path,
    old: Manifest | None,
    settings: dict[str, Any],
    data: dict[str, TaskData],
    options: argparse.Namespace,
) -> Manifest | None:
    """The folder's manifest where this run may go on in it; None for a fresh start. StoreError lists what
    differs.
    """
    if old is None:
        return None
    changed = differences(old["settings"], settings)
    for task, entry in old["tasks"].items():
        if task in data and entry["data_sha256"] != data[task].sha256:
            changed.append(f"the data of {task} has changed")
    if not changed:
        return old
    if not options.overwrite:
        raise StoreError(
            f"{folder} holds responses of other settings ({'; '.join(changed)}); --overwrite replaces"
            f" them, --name keeps both"
        )
    if not options.check:
        for path in own_files(folder, old):
            path.unlink()
    return None


def machine_findings(
    options: argparse.Namespace,
    checkpoint: Checkpoint,
    window: int,
    size: int,
    gpus: list[preflight.Gpu],
    version: str | None,
    folder: Path,
) -> list[preflight.Finding]:
    found = preflight.machine_checks(checkpoint, window, size, gpus, version or "", options.vllm_kwargs)
    found += preflight.disk_checks(checkpoint, folder, preflight.hub_cache())
    unknown = unknown_arguments(options.vllm_kwargs) if options.vllm_kwargs else []
    if unknown:
        found.append(
            preflight.Finding("error", f"--vllm_kwargs: vLLM {version} does not know {', '.join(unknown)}")
        )
    return found


def warnings_of(
    chat: Chat,
    findings: list[preflight.Finding],
    works: dict[str, Work],
    first: list[Rendered],
    absent: list[str],
) -> list[str]:
    """What is printed, and kept in run.json."""
    out = [finding.text for finding in findings if finding.level == "warning"]
    out += preflight.template_warnings(chat.template, chat.unused, chat.merged, chat.system)
    for task, work in works.items():
        for name, count in markup(work, chat.template).items():
            out.append(f"{task}: {count} of {work.rows} prompts carry chat markup already: {name}")
        cut = [item.prompt.cut for item in first if item.sample.task == task and item.prompt.cut]
        if cut:
            out.append(
                f"{task}: {len(cut)} of {work.rows} prompts do not fit and lose their middle (at most"
                f" {max(cut)} tokens)"
            )
    if absent:
        out.append(f"no data for {', '.join(absent)}")
    return out


def report_of(
    options: argparse.Namespace,
    folder: Path,
    checkpoint: Checkpoint,
    window: int,
    size: int,
    works: dict[str, Work],
    first: list[Rendered],
    left: int,
    warnings: list[str],
) -> dict[str, Any]:
    """What --check prints: one object, for run_captrack.py and for people."""
    tasks = {
        task: {"rows": work.rows, "left": 0, "prompt_tokens": 0, "longest": 0, "cut": 0}
        for task, work in works.items()
    }
    for task, work in works.items():
        tasks[task]["left"] = len({sample.key for sample in work.pending()})
    for item in first:
        entry = tasks[item.sample.task]
        entry["prompt_tokens"] += len(item.prompt.ids)
        entry["longest"] = max(entry["longest"], len(item.prompt.ids) + item.prompt.cut)
        entry["cut"] += item.prompt.cut > 0
    return {
        "model": options.model,
        "name": folder.name,
        "folder": str(folder),
        "native_window": native_window(checkpoint.config),
        "max_model_len": window,
        "tensor_parallel_size": size,
        "samples_left": left,
        "prompt_tokens": sum(entry["prompt_tokens"] for entry in tasks.values()),
        "output_tokens_at_most": sum(item.max_tokens for item in first)
        + sum(works[sample.task].limit for sample in pending(works, 2)),
        "tasks": tasks,
        "warnings": warnings,
    }


def say(report: dict[str, Any], chat: Chat, first: list[Rendered], warnings: list[str]) -> None:
    log.info("%-24s %7s %7s %13s %9s", "task", "rows", "left", "prompt tokens", "longest")
    for task, entry in report["tasks"].items():
        log.info(
            "%-24s %7d %7d %13d %9d", task, *(entry[k] for k in ("rows", "left", "prompt_tokens", "longest"))
        )
    log.info(
        "%d samples left; %d prompt tokens, at most %d output tokens; window %d, tensor parallel size"
        " %d; to %s",
        report["samples_left"],
        report["prompt_tokens"],
        report["output_tokens_at_most"],
        report["max_model_len"],
        report["tensor_parallel_size"],
        report["folder"],
    )
    if first:
        log.info(
            "first ids of the first prompt: %s, BOS is %s",
            first[0].prompt.ids[:6].tolist(),
            chat.tokenizer.bos_token_id,
        )
    for warning in warnings:
        log.warning("warning: %s", warning)


def stop_on_errors(findings: list[preflight.Finding]) -> None:
    errors = [finding.text for finding in findings if finding.level == "error"]
    if errors:
        raise EngineError("; ".join(errors))


def engine_arguments(
    options: argparse.Namespace, checkpoint: Checkpoint, window: int, size: int
) -> dict[str, Any]:
    return {
        "model": checkpoint.model,
        "revision": checkpoint.revision,
        "tokenizer_revision": checkpoint.revision,
        "max_model_len": window,
        "tensor_parallel_size": size,
        "seed": options.seed,
        # the model's own sampling defaults, among them a cap on the output, must not leak in
        "generation_config": "vllm",
        **options.vllm_kwargs,
    }


def generate(
    works: dict[str, Work],
    first: list[Rendered],
    chat: Chat,
    window: int,
    options: argparse.Namespace,
    record: dict[str, Any],
    began: float,
) -> None:
    """Both passes in one engine; each finished sample is on disk before the next step, each finished task a
    whole file.
    """
    engine = Engine(record["engine_arguments"])
    if engine.window < window:
        raise EngineError(
            f"vLLM gives a window of {engine.window}, not {window}: set --max_model_len {engine.window}"
        )
    sampling = Sampling(options.temperature, options.top_p, options.top_k, options.seed)
    left = {task: len(work.pending()) for task, work in works.items()}
    total, last = sum(left.values()), time.perf_counter()
    for turn in (1, 2):
        batch = first if turn == 1 else render(pending(works, 2), works, chat, window, options.max_tokens)
        items = {item.sample.name: item for item in batch}
        for name, outcome in engine.run((item.request() for item in batch), sampling):
            item, work = items.pop(name), works[name[0]]
            left[name[0]] -= 1
            if isinstance(outcome, Completion):
                print_ = work.prints[item.sample.key, item.sample.turn]
                work.store.append(item.sample, item.answer(outcome, print_))
                record["samples"] += 1
                record["output_tokens"] += outcome.output_tokens
            else:
                work.failed[item.sample.key, item.sample.turn] = outcome.message
                log.warning("%s, %s: no answer: %s", item.sample.task, item.sample.key, outcome.message)
            if left[name[0]] == 0 and not work.failed:
                save(work)
            if time.perf_counter() - last > 10:
                last = time.perf_counter()
                speed = record["output_tokens"] / max(engine.seconds - engine.start_seconds, 1e-9)
                log.info("%d of %d samples, %.0f tokens/s", record["samples"], total, speed)
    wall = time.perf_counter() - began
    generating = engine.seconds - engine.start_seconds
    record |= {
        "seconds": round(wall, 3),
        "engine_start_seconds": round(engine.start_seconds, 3),
        "engine_seconds": round(generating, 3),
        "outside_engine_seconds": round(wall - engine.seconds - record["vllm_import_seconds"], 3),
        "tokens_per_second": round(record["output_tokens"] / max(generating, 1e-9), 1),
    }


def save(work: Work) -> None:
    """The whole response file, where there is something that it does not hold yet."""
    if work.store.partial.exists() or not work.store.final.exists():
        work.store.finish(work.data.rows, work.prints)


def summary(folder: Path, works: dict[str, Work], absent: list[str], record: dict[str, Any]) -> int:
    failed = {task: len({key for key, _ in work.failed}) for task, work in works.items() if work.failed}
    log.info("%d samples generated; responses in %s", record["samples"], folder)
    for task, count in failed.items():
        log.warning(
            "%s: %d rows have no response (see run.json); the same command tries them again", task, count
        )
    for task in absent:
        log.warning("%s: no data, so no responses", task)
    return IN_PART if failed or absent else DONE


def first_prompt(first: list[Rendered]) -> dict[str, Any] | None:
    if not first:
        return None
    item = first[0]
    return {
        "task": item.sample.task,
        "id": item.sample.key,
        "text": item.prompt.text,
        "ids": item.prompt.ids.tolist(),
    }


@contextmanager
def locked(folder: Path, check: bool) -> Iterator[None]:
    """One run at a time in a folder; an empty folder that a failed run made is taken away again."""
    if check:
        yield
        return
    import fcntl
    import os

    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(f"another run is writing to {folder}") from error
        yield
    finally:
        os.close(handle)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
