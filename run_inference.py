#!/usr/bin/env python3
"""Generates a model's responses to the CapTrack tasks with vLLM, one file a task.

    python run_inference.py --model ORG/MODEL
    python run_inference.py --model checkpoints/mine --name mine --limit 20
    python run_inference.py --model ORG/MODEL --check  # generates nothing
    python run_inference.py --model ORG/MODEL --download_only
    python run_inference.py --base_url http://127.0.0.1:8000/v1 # a served model

Responses go to model_responses/NAME/TASK.jsonl, what made them to model_responses/NAME/run.json. The same
command again goes on where it stopped. Exit codes: 0 every response is there; 1 nothing was done (one line
says why) or it was stopped; 4 done in part.

With --base_url the model is served by somebody (vllm serve, a router, a vendor); no vLLM is needed here.
The server renders the prompts. With --tokenizer they are rendered, and cut, here, and go to /v1/completions
as token ids: the very prompts of an offline run. A key is taken from CAPTRACK_INFERENCE_API_KEY. Start vllm
serve with --generation-config vllm, else a limit in the checkpoint's generation_config.json may end answers.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import logging
import os
import platform
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.cli import Parser, UsageError, select_tasks, start
from evaluation.files import safe_name
from evaluation.inference import address, preflight
from evaluation.inference.adapter import Adapter, is_adapter, locate
from evaluation.inference.checkpoint import (
    Checkpoint,
    ModelError,
    default_name,
    native_window,
    parallel_size,
    resolve,
)
from evaluation.inference.data import DataError, TaskAbsent, TaskData, load, resolve_revision
from evaluation.inference.engine import RESERVED, EngineError, installed, load_vllm, unknown_arguments
from evaluation.inference.folder import discard, locked, settings_of, sweep, take_over
from evaluation.inference.generate import engine_arguments, generate, save
from evaluation.inference.manifest import (
    FOREIGN,
    Manifest,
    folder_state,
    read_manifest,
    settings_sha256,
    write_manifest,
)
from evaluation.inference.parallel import Place, gpu_names, places
from evaluation.inference.preflight import window_checks
from evaluation.inference.prompts import Chat, PromptError, prepare
from evaluation.inference.report import (
    DONE,
    FAILED,
    IN_PART,
    first_prompt,
    report_of,
    say,
    summary,
    warnings_of,
)
from evaluation.inference.store import StoreError
from evaluation.inference.work import Rendered, Work, pending, plan, render, task_entry
from evaluation.tasks import TASKS

DATASET = "tri-fair-lab/captrack"
SYSTEM_PROMPT = "You are a helpful assistant."
log = logging.getLogger("captrack.inference")


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


def build_parser() -> Parser:
    """The options; also read by run_captrack.py, which forwards them."""
    parser = Parser(prog="run_inference.py", description=__doc__)
    add = parser.add_argument
    add("--model", help="Hugging Face model id, local checkpoint folder, or folder of a LoRA adapter")
    add("--base_model", help="what a LoRA adapter is loaded on (default: the base that it names)")
    add(
        "--base_url",
        metavar="URL",
        help="a server's address, http://HOST:PORT/v1; --model names what it serves",
    )
    add(
        "--tokenizer",
        metavar="MODEL",
        help="with --base_url: render the prompts here, with this one's template",
    )
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
        help="GPUs of an engine (default: all visible that the model's heads allow)",
    )
    add(
        "--data_parallel_size",
        type=_whole(1),
        default=1,
        help="engines on this machine that share the work, each with its own GPUs",
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
    if not options.model and not options.download_only and not options.base_url:
        parser.error("--model is missing")
    if mistake := served_mistake(options):
        parser.error(mistake)
    try:
        options.tasks = list(select_tasks(options.tasks)) if options.tasks else None
    except UsageError as error:
        parser.error(str(error))
    for name in options.vllm_kwargs:
        if name in RESERVED:
            parser.error(f"--vllm_kwargs: {name} is set by {RESERVED[name]}")
    if options.chat_template:
        path = Path(options.chat_template)
        if not path.is_file():
            parser.error(f"--chat_template: no such file: {path}")
        options.chat_template = path.read_text(encoding="utf-8")
    return options


def served_mistake(options: argparse.Namespace) -> str | None:
    """What does not go together with --base_url, or without it."""
    if not options.base_url:
        return "--tokenizer: only with --base_url; a checkpoint brings its own" if options.tokenizer else None
    if not address.split(options.base_url) or "#" in options.base_url:
        return f"--base_url: not an address as http://HOST:PORT/v1: {options.base_url}"
    if options.vllm_kwargs or options.tensor_parallel_size or options.data_parallel_size > 1:
        return "--vllm_kwargs, --…_parallel_size: with --base_url the server has settings of its own"
    if options.chat_template and not options.tokenizer:
        return "--chat_template: with --base_url the server renders with its own; --tokenizer renders here"
    return None


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


@dataclass(frozen=True)
class Setup:
    """What a run is made of, known before a single row is rendered. version: vLLM's, None where it is not
    here. server: in place of an engine of our own.
    """

    options: argparse.Namespace
    checkpoint: Checkpoint
    adapter: Adapter | None
    window: int
    folder: Path
    chat: Chat
    version: str | None
    settings: dict[str, Any]
    loading: float
    server: Any = None  # served.Engine where the model is served
    notes: tuple[str, ...] = ()


def run(options: argparse.Namespace) -> int:
    """Data, checks, generation. Raises the errors that main turns into one line."""
    began = time.perf_counter()
    data, absent, data_revision = load_data(options)
    if options.download_only:
        return download(options, data, absent)
    setup = set_up_served(options) if options.base_url else set_up(options)
    server = setup.server
    with locked(setup.folder, options.check):
        old = take_over(setup.folder, setup.settings, data, options.overwrite)
        works = plan(data, setup.folder, settings_sha256(setup.settings), options.limit, options.max_tokens)
        left = sum(len(work.pending()) for work in works.values())
        if left and setup.version is None and server is None:
            raise EngineError(
                "vLLM is not installed in this environment (environment-inference.yml makes one)"
            )
        own = left and server is None  # an engine of our own is to be started
        # the processes of several engines import it themselves; the names of --vllm_kwargs are checked here
        here = options.data_parallel_size == 1 or options.vllm_kwargs
        importing = load_vllm() if own and here else 0.0
        gpus = preflight.visible_gpus() if own else []
        size = options.tensor_parallel_size or tensor_parallel_size(setup, len(gpus))
        size = size if server is None else None
        findings = machine_findings(setup, size, gpus) if own else []
        first = render(pending(works, 1), works, setup.chat, setup.window, options.max_tokens)
        warnings = warnings_of(setup.chat, findings, works, first, absent)
        if server is None:
            warnings += preflight.vocabulary_warnings(setup.checkpoint, len(setup.chat.tokenizer))
        warnings += setup.notes
        if options.base_model and not setup.adapter:
            warnings.append(f"--base_model is not used: {options.model} is no LoRA adapter")
        if left and old and old["runs"] and old["runs"][-1]["tensor_parallel_size"] != size:
            warnings.append(f"tensor parallel size {size}, before {old['runs'][-1]['tensor_parallel_size']}")
        report = report_of(setup, size, works, first, warnings)
        say(report, setup.chat, first, warnings)
        stop_on_errors(findings)
        if options.check:
            print(json.dumps(report))
            return IN_PART if absent and options.tasks else DONE
        if old is None:
            discard(setup.folder)
        sweep(setup.folder)
        manifest = manifest_of(setup, data_revision, warnings, first, works, old)
        where = places_of(setup, size, gpus) if own else []
        record = record_of(setup, size, gpus, importing)
        if left:
            manifest["runs"].append(record)
        write_manifest(setup.folder, manifest)
        try:
            if left:
                generate(works, first, setup, record, where, began)
            record["state"] = "complete"
        except BaseException as error:
            record["state"] = f"stopped: {type(error).__name__}"
            raise
        finally:
            if server is not None:
                record["server"] = server.record()
                server.close()
            for work in works.values():
                work.store.close()
                if work.complete() or (work.failed and record["state"] == "complete"):
                    save(work)
            record["ended"] = now()
            manifest["tasks"] |= {task: task_entry(work, setup.chat.template) for task, work in works.items()}
            write_manifest(setup.folder, manifest)
        return summary(setup.folder, works, absent if options.tasks else [], record)


def set_up(options: argparse.Namespace) -> Setup:
    """Model, window, template and folder; every error that needs no task data comes from here."""
    checkpoint, adapter = locate(options.model, options.revision, options.base_model)
    stop_on_errors(window_checks(checkpoint, options.max_model_len, "hf_overrides" in options.vllm_kwargs))
    window = options.max_model_len or native_window(checkpoint.config)
    folder = Path(options.output_dir) / safe_name(options.name or default_name(options.model))
    if folder_state(folder) == FOREIGN:
        raise StoreError(f"{folder} holds files that run_inference.py did not write; choose another --name")
    tokenizer, loading = load_tokenizer(checkpoint, adapter, options)
    chat = prepare(tokenizer, options.system_prompt, options.chat_template, options.chat_template_kwargs)
    version = installed()
    # a folder where nothing is left to do may be looked at without vLLM
    known = version or (read_manifest(folder) or {}).get("settings", {}).get("vllm")
    weights = f"{checkpoint.weights}+{adapter.weights}" if adapter else checkpoint.weights
    settings = settings_of(options, weights, chat, window, known)
    return Setup(options, checkpoint, adapter, window, folder, chat, version, settings, loading)


def tensor_parallel_size(setup: Setup, gpus: int) -> int:
    """The most GPUs that an engine's share of them and the model's heads allow."""
    engines, stages = (
        setup.options.data_parallel_size,
        setup.options.vllm_kwargs.get("pipeline_parallel_size"),
    )
    stages = stages if isinstance(stages, int) and stages > 0 else 1
    return parallel_size(setup.checkpoint.config, gpus // (engines * stages))


def places_of(setup: Setup, size: int, gpus: list[preflight.Gpu]) -> list[Place]:
    """One place for each engine; see parallel.places."""
    count = setup.options.data_parallel_size
    if count == 1:
        return [Place({})]
    each = size * setup.options.vllm_kwargs.get("pipeline_parallel_size", 1)
    count_of_gpus = 0 if "cpu" in (setup.version or "") else len(gpus)
    names = gpu_names(count_of_gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    return places(count, each, names, sorted(os.sched_getaffinity(0)))


def set_up_served(options: argparse.Namespace) -> Setup:
    """As set_up, of a model that somebody serves; EngineError where the server does not answer as it
    should.
    """
    from evaluation.inference import served  # brings the judge's pool and its event loop

    server = served.Engine(options.base_url, options.model)
    options.model = server.model
    name = options.name or address.name_of(f"{server.url}#{server.model}")
    folder = Path(options.output_dir) / safe_name(name)
    if folder_state(folder) == FOREIGN:
        raise StoreError(f"{folder} holds files that run_inference.py did not write; choose another --name")
    server.window = options.max_model_len or server.limit or 0
    if not server.window:
        raise EngineError(f"{address.shown(server.url)} names no context length: give --max_model_len")
    if server.window > (server.limit or server.window):
        raise EngineError(
            f"--max_model_len {server.window} is more than the server's window of {server.limit}"
        )
    identity = f"served:{server.model}" + (f" ({server.root})" if server.root else "")
    config = {"max_position_embeddings": server.limit or server.window}
    origin = options.tokenizer or server.model
    checkpoint = Checkpoint(origin, options.revision, config, identity, None, cached=True)
    notes, loading = list(server.notes), 0.0
    if options.tokenizer:
        tokenizer, loading = load_tokenizer(checkpoint, None, options)
        chat = prepare(tokenizer, options.system_prompt, options.chat_template, options.chat_template_kwargs)
        notes += server.check_rendered(chat)
    else:
        chat = server.prepare(options.system_prompt, options.chat_template_kwargs)
    settings = settings_of(options, identity, chat, server.window, server.version)
    settings |= {"served": "token ids" if options.tokenizer else "messages"}
    if not options.tokenizer:
        settings["template"] = None  # the server's
    return Setup(
        options, checkpoint, None, server.window, folder, chat, None, settings, loading, server, tuple(notes)
    )


def manifest_of(
    setup: Setup,
    data_revision: str,
    warnings: list[str],
    first: list[Rendered],
    works: dict[str, Work],
    old: Manifest | None,
) -> Manifest:
    """run.json as it stands when the engine starts."""
    old = old or {}
    entries = {task: task_entry(work, setup.chat.template) for task, work in works.items()}
    checkpoint, options = setup.checkpoint, setup.options
    return {
        "name": setup.folder.name,
        "model": {"given": options.model, "path": checkpoint.model, "revision": checkpoint.revision}
        if setup.server is None
        else {"given": setup.server.model, "served_at": address.shown(setup.server.url)},
        "adapter": setup.adapter and asdict(setup.adapter),
        "settings": setup.settings,
        "settings_sha256": settings_sha256(setup.settings),
        "dataset": {"name": options.dataset, "revision": data_revision},
        "system_role": "merged into the user turn" if setup.chat.merged else "own",
        "bos": {"id": getattr(setup.chat.tokenizer, "bos_token_id", None), "added": setup.chat.add_bos},
        "rendered": rendered_by(setup),
        "warnings": list(dict.fromkeys([*old.get("warnings", []), *warnings])),
        "first_prompt": old.get("first_prompt") or first_prompt(first),
        "tasks": old.get("tasks", {}) | entries,
        "runs": list(old.get("runs", [])),
    }


def rendered_by(setup: Setup) -> str:
    """Who made prompts of messages, and what that means for those that do not fit."""
    if setup.server is None:
        return "here"
    if setup.options.tokenizer:
        return f"here, with the tokenizer of {setup.options.tokenizer}; sent as token ids"
    return (
        "by the server, with its own template; a prompt that does not fit loses characters of its longest"
        " message's middle, truncated_tokens is an estimate"
    )


def record_of(setup: Setup, size: int | None, gpus: list[preflight.Gpu], importing: float) -> dict[str, Any]:
    """One entry of run.json's "runs"; generate() adds what was done and how long it took."""
    return {
        "started": now(),
        "ended": None,
        "state": "running",
        "versions": {
            "python": platform.python_version(),
            "vllm": setup.version,
            **{name: package_version(name) for name in ("torch", "transformers", "datasets")},
        },
        "gpus": [gpu.name for gpu in gpus],
        "driver": gpus[0].driver if gpus else None,
        "tensor_parallel_size": size,
        "data_parallel_size": setup.options.data_parallel_size,
        "engine_arguments": {} if size is None else engine_arguments(setup, size),
        "samples": 0,
        "output_tokens": 0,
        "import_seconds": round(importing + setup.loading, 3),
    }


def package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def load_data(options: argparse.Namespace) -> tuple[dict[str, TaskData], list[str], str]:
    """(task → data, tasks that the source lacks, revision). DataError where there is nothing at all."""
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
    if options.base_url:
        log.info("the model is the server's business; --tokenizer is fetched when it is first used")
    elif options.model and (
        is_adapter(Path(options.model).expanduser()) or not Path(options.model).expanduser().is_dir()
    ):
        checkpoint, _ = locate(options.model, options.revision, options.base_model)
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


def load_tokenizer(
    checkpoint: Checkpoint, adapter: Adapter | None, options: argparse.Namespace
) -> tuple[Any, float]:
    """The tokenizer, an adapter's own one where it has one, and the seconds that the import of transformers
    took.
    """
    began = time.perf_counter()
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise EngineError(
            "transformers is not installed in this environment (environment-inference.yml)"
        ) from error
    loading = time.perf_counter() - began
    try:
        own = adapter is not None and adapter.has_tokenizer
        tokenizer = AutoTokenizer.from_pretrained(
            adapter.path if own else checkpoint.model,
            revision=None if own else checkpoint.revision,
            trust_remote_code=bool(options.vllm_kwargs.get("trust_remote_code", False)),
        )
    except Exception as error:
        raise ModelError(
            f"{options.model}: the tokenizer cannot be loaded: {' '.join(str(error).split())[:300]}"
        ) from error
    tokenizer.model_max_length = sys.maxsize  # lengths are looked after here; transformers would only warn
    return tokenizer, loading


def machine_findings(setup: Setup, size: int | None, gpus: list[preflight.Gpu]) -> list[preflight.Finding]:
    version, kwargs = setup.version or "", setup.options.vllm_kwargs
    engines = setup.options.data_parallel_size
    found = preflight.parallel_checks(setup.checkpoint.config, size, engines, len(gpus), version, kwargs)
    found += preflight.machine_checks(setup.checkpoint, setup.window, size, gpus, version, kwargs)
    found += preflight.disk_checks(setup.checkpoint, setup.folder, preflight.hub_cache())
    unknown = unknown_arguments(kwargs) if kwargs else []
    if unknown:
        text = f"--vllm_kwargs: vLLM {version} does not know {', '.join(unknown)}"
        found.append(preflight.Finding("error", text))
    return found


def stop_on_errors(findings: list[preflight.Finding]) -> None:
    errors = [finding.text for finding in findings if finding.level == "error"]
    if errors:
        raise EngineError("; ".join(errors))


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    start(main)
