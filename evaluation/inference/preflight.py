"""Before anything is spent: the machine, the room in memory and on disk, and what the settings mean for it.

Example: checks(…) gives [Finding("error", "the weights (141 GB) do not fit on 1 GPU of 80 GB; …"),
Finding("warning", …)]. An error ends the run before the engine starts; a warning is printed and recorded.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.inference.checkpoint import Checkpoint, cache_bytes, heads_fit, native_window, text_config

GIB = 2**30
# https://docs.nvidia.com/deploy/cuda-compatibility: lowest driver of each CUDA major version on Linux
LOWEST_DRIVER = {"11": 450, "12": 525, "13": 580}
BITS = {"float32": 32, "float": 32, "bfloat16": 16, "float16": 16, "half": 16}


@dataclass(frozen=True)
class Finding:
    level: str  # "error" or "warning"
    text: str


@dataclass(frozen=True)
class Gpu:
    """memory, free: bytes."""

    name: str
    memory: int
    free: int
    driver: str


def visible_gpus() -> list[Gpu]:
    """The NVIDIA GPUs that this process may use, asked from the driver's own tool (no CUDA context is
    made).
    """
    query = "--query-gpu=index,uuid,name,memory.total,memory.free,driver_version"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return parse_gpus(done.stdout, os.environ.get("CUDA_VISIBLE_DEVICES"))


def parse_gpus(text: str, visible: str | None) -> list[Gpu]:
    """Lines "0, GPU-5e…, NVIDIA H200, 143771, 143000, 580.65.06"; visible: CUDA_VISIBLE_DEVICES, indices or
    UUIDs.
    """
    gpus: dict[str, Gpu] = {}
    for line in text.split("\n"):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 6:
            continue
        index, uuid, name, memory, free, driver = parts
        # a GPU with unified memory reports no figure
        sizes = [int(value) * 2**20 if value.isdigit() else 0 for value in (memory, free)]
        gpus[index] = gpus[uuid] = Gpu(name, sizes[0], sizes[1], driver)
    if visible is None:
        return [gpu for key, gpu in gpus.items() if key.isdigit()]
    chosen = []
    for wanted in (part.strip() for part in visible.split(",")):
        if wanted.isdigit():
            found = gpus.get(wanted)
        else:  # a UUID, or the beginning of one
            found = next((gpu for key, gpu in gpus.items() if wanted and key.startswith(wanted)), None)
        if found is None:
            break  # as CUDA does: the first wrong entry ends the list
        chosen.append(found)
    return chosen


def cuda_version() -> str | None:
    """Major CUDA version that the installed torch was built for; None for a CPU build."""
    names = {
        (distribution.metadata["Name"] or "").lower(): distribution.version
        for distribution in importlib.metadata.distributions()
    }
    for name, version in names.items():
        if match := re.fullmatch(r"nvidia-cuda-runtime(?:-cu(\d+))?", name):
            return match.group(1) or version.split(".")[0]
    return None


def window_checks(checkpoint: Checkpoint, asked: int | None, overrides: bool) -> list[Finding]:
    """asked: --max_model_len. overrides: --vllm_kwargs holds hf_overrides, which may lengthen the window."""
    native = native_window(checkpoint.config)
    if native is None and asked is None:
        return [Finding("error", "the model's configuration names no context length: give --max_model_len")]
    if native is not None and asked is not None and asked > native and not overrides:
        return [
            Finding(
                "error",
                f"--max_model_len {asked} is more than the model's window of {native}; RoPE scaling"
                f" goes through"
                " --vllm_kwargs '{\"hf_overrides\": …}'",
            )
        ]
    return []


def machine_checks(
    checkpoint: Checkpoint, window: int, size: int, gpus: list[Gpu], version: str, kwargs: dict[str, Any]
) -> list[Finding]:
    """GPUs, driver, weights and one full window of cache against memory."""
    out: list[Finding] = []
    if "cpu" in version:
        return out
    if not gpus:
        return [
            *out,
            Finding("error", "no GPU is visible (nvidia-smi, CUDA_VISIBLE_DEVICES), and this vLLM needs one"),
        ]
    stages = kwargs.get("pipeline_parallel_size", 1)
    parallel = size * (stages if isinstance(stages, int) else 1)
    out += driver_checks(gpus[0].driver, cuda_version())
    weights = _loaded_bytes(checkpoint, kwargs)
    room = min(gpu.memory for gpu in gpus) * parallel * float(kwargs.get("gpu_memory_utilization", 0.92))
    cache = cache_bytes(checkpoint.config, window) or 0
    if room and weights and weights > room:
        out.append(
            Finding(
                "error",
                f"the weights ({_gib(weights)}) do not fit on {parallel} GPU of {_gib(gpus[0].memory)}:"
                f" more GPUs",
            )
        )
    elif room and weights and weights + cache > room:
        out.append(
            Finding(
                "error",
                f"weights ({_gib(weights)}) and the cache of one window of {window} tokens"
                f" ({_gib(cache)}) do not fit on"
                f" {parallel} GPU of {_gib(gpus[0].memory)}: lower --max_model_len, or more GPUs",
            )
        )
    busy = [gpu for gpu in gpus[:parallel] if gpu.memory and gpu.free < 0.9 * gpu.memory]
    if busy:
        out.append(
            Finding(
                "warning", f"{len(busy)} of the GPUs are in use: {_gib(busy[0].free)} free on {busy[0].name}"
            )
        )
    return out


def parallel_checks(
    config: dict[str, Any], size: int, engines: int, gpus: int, version: str, kwargs: dict[str, Any]
) -> list[Finding]:
    """Whether the model can be split so, and whether there is a GPU for every part.

    size: tensor parallel size. engines: --data_parallel_size. gpus: visible on this machine. kwargs: of
    vllm.LLM, among them pipeline_parallel_size and distributed_executor_backend.
    """
    config = text_config(config)
    heads = config.get("num_attention_heads") or 1
    kv_heads = config.get("num_key_value_heads") or heads
    layers = config.get("num_hidden_layers")
    wrong = []
    if not heads_fit(heads, kv_heads, size):
        wrong.append(
            f"--tensor_parallel_size {size}: the model's {heads} heads ({kv_heads} KV) do not divide so"
        )
    stages = kwargs.get("pipeline_parallel_size", 1)
    if type(stages) is not int or stages < 1:
        text = f"--vllm_kwargs: pipeline_parallel_size is a whole number from 1, not {stages!r}"
        return [Finding("error", text)]
    backend = kwargs.get("distributed_executor_backend")
    cpu = "cpu" in version
    if isinstance(layers, int) and stages > layers:
        wrong.append(f"pipeline_parallel_size {stages}: the model has {layers} layers")
    if cpu and stages > 1:
        wrong.append("pipeline_parallel_size: vLLM's CPU build cannot do it")
    if backend == "ray" and cpu:
        wrong.append("distributed_executor_backend ray: vLLM's CPU build cannot do it")
    elif backend == "ray" and importlib.util.find_spec("ray") is None:
        wrong.append(
            "distributed_executor_backend ray: vLLM does not bring Ray along: pip install ray on every node,"
            " then ray start"
        )
    if kwargs.get("nnodes", 1) != 1:
        wrong.append(
            "nnodes: run_inference.py starts no workers on other machines; Ray does, or vllm serve, see"
            " docs/scaling.md"
        )
    if engines > 1 and backend == "ray":
        wrong.append(f"--data_parallel_size {engines} is for the GPUs of one machine, without Ray")
    needed = engines * size * stages
    there = len(os.sched_getaffinity(0)) if cpu else gpus
    counted = engines > 1 if cpu else gpus > 0  # no GPU at all is told by machine_checks
    if counted and backend != "ray" and needed > there:
        how = f"{engines} engines x {size} x {stages}" if engines > 1 else f"{size} x {stages}"
        wrong.append(
            f"{needed} {'core' if cpu else 'GPU'}s are asked for on this machine ({how}, tensor x pipeline)"
            f" and {there} are visible; docs/scaling.md tells how to use several machines"
        )
    return [Finding("error", text) for text in wrong]


def driver_checks(driver: str, cuda: str | None) -> list[Finding]:
    """An old driver lets torch see no GPU at all, with a message that names no remedy."""
    lowest = LOWEST_DRIVER.get(cuda or "")
    major = driver.split(".")[0]
    if lowest and major.isdigit() and int(major) < lowest:
        return [
            Finding(
                "error",
                f"the driver {driver} is too old for CUDA {cuda}, for which this torch was built"
                f" ({lowest} or newer); the"
                " README says which vLLM suits older drivers",
            )
        ]
    return []


def disk_checks(checkpoint: Checkpoint, output: Path, hub_cache: Path) -> list[Finding]:
    out = []
    if not checkpoint.cached and checkpoint.weight_bytes:
        free = shutil.disk_usage(_existing(hub_cache)).free
        if free < checkpoint.weight_bytes * 1.02:
            out.append(
                Finding(
                    "error",
                    f"{hub_cache} has {_gib(free)} free, the download needs"
                    f" {_gib(checkpoint.weight_bytes)}: set HF_HOME",
                )
            )
    free = shutil.disk_usage(_existing(output)).free
    if free < GIB:
        out.append(Finding("warning", f"{output} has only {_gib(free)} free"))
    return out


def template_warnings(template: str, unused: tuple[str, ...], merged: bool, system: str) -> list[str]:
    """What a person should know of a chat template before comparing models."""
    out = [f"--chat_template_kwargs: the template does not use {name}, it changes nothing" for name in unused]
    if merged and system:
        out.append("the template takes no system role: the system prompt stands at the head of the user turn")
    if "strftime_now" in template:
        out.append(
            "the template writes today's date into every prompt: runs on different days differ; if it"
            " takes one, fix it with"
            ' --chat_template_kwargs \'{"date_string": "…"}\''
        )
    return out


def vocabulary_warnings(checkpoint: Checkpoint, tokens: int) -> list[str]:
    """tokens: length of the tokenizer. A token without a row in the embedding breaks the engine."""
    size = text_config(checkpoint.config).get("vocab_size")
    if isinstance(size, int) and tokens > size:
        return [f"the tokenizer has {tokens} tokens and the model {size}: an embedding was not resized"]
    return []


def hub_cache() -> Path:
    """Where huggingface_hub keeps models."""
    given = os.environ.get("HF_HUB_CACHE")
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    return Path(given or Path(home) / "hub").expanduser()


def _loaded_bytes(checkpoint: Checkpoint, kwargs: dict[str, Any]) -> int | None:
    """Bytes of the weights in memory: float32 files are loaded as 16 bits unless dtype says otherwise."""
    if checkpoint.weight_bytes is None or kwargs.get("quantization"):
        return None
    config = text_config(checkpoint.config)
    stored = BITS.get(str(config.get("dtype") or config.get("torch_dtype")), 16)
    if config.get("quantization_config"):
        return checkpoint.weight_bytes
    loaded = BITS.get(str(kwargs.get("dtype", "auto")), 16)
    return checkpoint.weight_bytes * loaded // stored


def _existing(path: Path) -> Path:
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
