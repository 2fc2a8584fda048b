"""A model's folder: may this run write there, does it go on with what is there, is it alone.

A folder holds answers of one set of settings (see `settings_of`); files of other people are never touched.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluation.inference.data import TaskData
from evaluation.inference.manifest import Manifest, differences, own_files, read_manifest
from evaluation.inference.prompts import Chat
from evaluation.inference.store import StoreError

# arguments of vllm.LLM that decide how fast and where, not what: they may differ between two runs of one
# folder
RESOURCES = {
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "max_num_seqs",
    "max_num_batched_tokens",
    "pipeline_parallel_size",
    "distributed_executor_backend",
    "max_lora_rank",
    "max_loras",
    "fully_sharded_loras",
    "download_dir",
    "load_format",
    "cpu_offload_gb",
    "disable_log_stats",
    "trust_remote_code",
}


def settings_of(
    options: argparse.Namespace, weights: str, chat: Chat, window: int, version: str | None
) -> dict[str, Any]:
    """Everything that decides an answer beside the row itself; a folder holds answers of one such set.

    weights: what names the weights of checkpoint and adapter.
    """
    return {
        "weights": weights,
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
    folder: Path, settings: dict[str, Any], data: dict[str, TaskData], overwrite: bool
) -> Manifest | None:
    """The folder's manifest where this run goes on in it, None for a fresh start.

    StoreError says what differs where settings or task data are other ones and `overwrite` is not set.
    """
    old = read_manifest(folder)
    if old is None:
        return None
    changed = differences(old["settings"], settings)
    for task, entry in old["tasks"].items():
        if task in data and entry["data_sha256"] != data[task].sha256:
            changed.append(f"the data of {task} has changed")
    if not changed:
        return old
    if not overwrite:
        raise StoreError(
            f"{folder} holds responses of other settings ({'; '.join(changed)});"
            " --overwrite replaces them, another --name keeps both"
        )
    return None


def discard(folder: Path) -> None:
    """Takes away what an earlier run wrote, before a fresh start; the last step before the engine's."""
    old = read_manifest(folder)
    for path in own_files(folder, old) if old else []:
        path.unlink()


def sweep(folder: Path) -> None:
    """Takes away what a killed run left of files that it was writing (see evaluation.files.whole_file)."""
    for name in ("run.json", "*.jsonl"):
        for path in folder.glob(f".{name}.*.partial"):
            path.unlink()


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
