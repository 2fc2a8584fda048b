"""The model on disk or on the hub: where it is, what it is, whether its weights are those of the last run.

Example: resolve("HuggingFaceTB/SmolLM2-135M-Instruct") gives Checkpoint(model="HuggingFaceTB/…",
revision="12fd25…", config={…}, weights="HuggingFaceTB/…@12fd25…", weight_bytes=269060552, …); a folder's
`weights` is a hash of its index, file sizes and times. Neither vLLM nor torch is needed; huggingface_hub only
for models that are no folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.files import safe_name

WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_COMMIT = re.compile(r"[0-9a-f]{40}")
# folder names that tell nothing without their parent
_PLAIN = re.compile(
    r"(checkpoint|step|epoch|global_step)[-_]?\d+|final|last|best|latest|merged|model|output|hf|\d+"
)
# https://docs.vllm.ai: rope types whose factor does not lengthen max_position_embeddings (it is counted there
# already)
_COUNTED_ROPE = ("default", "su", "longrope", "llama3", "mrope")
_WINDOW_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")


class ModelError(Exception):
    """One line for a person: which model, what is wrong, what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """model: a folder's absolute path, or a hub id. revision: the commit of a hub model, None for a folder.

    weights: changes whenever the weights may have changed. weight_bytes: size of the weight files, None where
    unknown.
    cached: every weight file is on this machine.
    """

    model: str
    revision: str | None
    config: dict[str, Any]
    weights: str
    weight_bytes: int | None
    cached: bool


def resolve(model: str, revision: str | None = None) -> Checkpoint:
    """Finds the model without loading it. ModelError where it is not there, not complete or not
    accessible.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        return _local(path.resolve())
    if path.exists() or model.startswith((".", "/", "~")) or model.count("/") > 1 or not model.strip():
        raise ModelError(
            f"{model}: no such model folder (a local checkpoint is a folder with config.json and weights)"
        )
    return _hub(model, revision)


def default_name(model: str) -> str:
    """A readable folder name: "org/model" → "org__model"; "runs/a/checkpoint-500" → "a__checkpoint-500"."""
    path = Path(model).expanduser()
    if not path.is_dir():
        return safe_name(model)
    parts = [part for part in path.resolve().parts if part not in ("/", "\\")]
    kept = parts[-1:]
    while len(kept) < len(parts) and _PLAIN.fullmatch(kept[0]):
        kept = parts[-len(kept) - 1 :]
    return safe_name("/".join(kept))


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of a configuration that also describes images or sound."""
    inner = config.get("text_config")
    return config | inner if isinstance(inner, dict) else config


def native_window(config: dict[str, Any]) -> int | None:
    """The context length in tokens that the checkpoint was made for, RoPE scaling included; None where it is
    not named.
    """
    config = text_config(config)
    windows = [config[key] for key in _WINDOW_KEYS if isinstance(config.get(key), int)]
    if not windows:
        return None
    window = min(windows)
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    kind = rope.get("rope_type") or rope.get("type") or "default"
    factor = rope.get("factor")
    if kind in _COUNTED_ROPE or not isinstance(factor, (int, float)):
        return window
    if kind == "yarn":
        window = rope.get("original_max_position_embeddings") or window
    return int(window * factor)


def parallel_size(config: dict[str, Any], gpus: int) -> int:
    """Tensor parallel size: the most GPUs of `gpus` over which the attention heads and the KV heads can be
    shared out.

    28 heads, 4 KV heads, 8 GPUs → 4: seven would share out the heads, but not the KV heads.
    """
    config = text_config(config)
    heads = config.get("num_attention_heads") or config.get("n_head") or 1
    kv_heads = config.get("num_key_value_heads") or heads
    fitting = (t for t in range(max(gpus, 1), 0, -1) if heads_fit(heads, kv_heads, t))
    return next(fitting, 1)


def heads_fit(heads: int, kv_heads: int, size: int) -> bool:
    return heads % size == 0 and (kv_heads % size == 0 or size % kv_heads == 0)


def cache_bytes(config: dict[str, Any], tokens: int, bytes_a_value: int = 2) -> int | None:
    """Size of the key-value cache of one sequence of `tokens`; None where the configuration does not tell."""
    config = text_config(config)
    layers, heads = config.get("num_hidden_layers"), config.get("num_attention_heads")
    if not layers or not heads or not config.get("hidden_size"):
        return None
    size = config.get("head_dim") or config["hidden_size"] // heads
    return 2 * layers * (config.get("num_key_value_heads") or heads) * size * tokens * bytes_a_value


def _local(folder: Path) -> Checkpoint:
    config_file = folder / "config.json"
    if not config_file.is_file():
        if (folder / "adapter_config.json").is_file():
            raise ModelError(
                f"{folder} holds an unmerged adapter: merge it into its base model and give that folder"
            )
        raise ModelError(f"{folder} has no config.json: it is no model folder")
    try:
        config = json.loads(config_file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{config_file} is not JSON: {error}") from error
    files = next((found for kind in WEIGHTS if (found := sorted(folder.glob(kind)))), [])
    if not files:
        raise ModelError(f"{folder} holds no weights (*.safetensors)")
    _check_shards(folder)
    if not list(folder.glob("tokenizer*")) and not list(folder.glob("*.model")):
        raise ModelError(
            f"{folder} holds no tokenizer: save the tokenizer beside the model (tokenizer.save_pretrained)"
        )
    sizes = [file.stat().st_size for file in files]
    return Checkpoint(str(folder), None, config, weight_hash(folder, files), sum(sizes), cached=True)


def _check_shards(folder: Path) -> None:
    """ModelError where the index names a shard that is not there: an upload or a training run that broke
    off.
    """
    for index in folder.glob("*.index.json"):
        try:
            named = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError) as error:
            raise ModelError(f"{index} is damaged") from error
        lacking = sorted(name for name in named if not (folder / name).is_file())
        if lacking:
            raise ModelError(
                f"{folder} is not complete: {len(lacking)} of {len(named)} weight files lack, first"
                f" {lacking[0]}"
            )


def weight_hash(folder: Path, files: list[Path]) -> str:
    """Over contents of configuration, index and tokenizer files, and over sizes and times of the weight
    files.
    """
    digest = hashlib.sha256()
    for file in sorted({*folder.glob("*.json"), *folder.glob("*.model"), *folder.glob("*.jinja")}):
        digest.update(file.name.encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    for file in files:
        state = file.stat()
        digest.update(f"{file.name} {state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()[:32]


def _hub(model: str, revision: str | None) -> Checkpoint:
    try:
        import huggingface_hub as hub
    except ImportError as error:
        raise ModelError(
            f"{model} is no folder, and huggingface_hub is not installed here to look it up"
        ) from error
    offline = os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0")
    weight_bytes, commit = None, revision
    if not offline:
        try:
            info = hub.HfApi().model_info(model, revision=revision, files_metadata=True)
        except Exception as error:  # told apart by name: the classes move between versions of the package
            kind = type(error).__name__
            if kind == "GatedRepoError":
                raise ModelError(
                    f"{model} is gated: accept its terms at https://huggingface.co/{model}, then set HF_TOKEN"
                ) from error
            if kind in ("RepositoryNotFoundError", "RevisionNotFoundError", "HFValidationError"):
                raise ModelError(
                    f"{model} (revision {revision or 'main'}) is neither a folder here nor a model on"
                    f" the hub that this"
                    " HF_TOKEN may read"
                ) from error
        else:
            commit = info.sha
            weight_bytes = _hub_bytes(info.siblings or [])
    try:
        config_path = Path(hub.hf_hub_download(model, "config.json", revision=commit))
    except Exception as error:
        if type(error).__name__ == "GatedRepoError":
            raise ModelError(
                f"{model} is gated: accept its terms at https://huggingface.co/{model}, then set HF_TOKEN"
            ) from error
        why = (
            "offline and not in the cache"
            if offline
            else "the hub cannot be reached, or it has no config.json"
        )
        raise ModelError(f"{model}: {why} (a local checkpoint is given by its folder)") from error
    snapshot = config_path.parent  # …/snapshots/COMMIT
    commit = snapshot.name if _COMMIT.fullmatch(snapshot.name) else commit
    files = sorted(snapshot.glob("*.safetensors")) or sorted(snapshot.glob("*.bin"))
    sizes = [file.stat().st_size for file in files]
    cached = bool(files) and (weight_bytes is None or sum(sizes) >= weight_bytes)
    if offline and not cached:
        raise ModelError(f"{model}: offline, and its weights are not in the cache")
    config = json.loads(config_path.read_text(encoding="utf-8"))
    size = weight_bytes if weight_bytes is not None else (sum(sizes) or None)
    return Checkpoint(model, commit, config, f"{model}@{commit}", size, cached)


def _hub_bytes(siblings: list[Any]) -> int | None:
    """Bytes of the weight files that will be loaded: safetensors where there are any."""
    for ending in (".safetensors", ".bin"):
        sizes = [
            file.size or 0
            for file in siblings
            if file.rfilename.endswith(ending) and "/" not in file.rfilename
        ]
        if sizes:
            return sum(sizes)
    return None
