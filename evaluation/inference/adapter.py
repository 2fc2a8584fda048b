"""A LoRA adapter that was not merged: found, checked, and what vLLM needs to load it on its base model.

adapter_config.json, as PEFT writes it: {"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 64,
"rank_pattern": {"q_proj": 128}, "target_modules": ["q_proj", "v_proj"], …}. Needs neither peft nor vLLM.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.inference.checkpoint import Checkpoint, ModelError, resolve, weight_hash

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt")
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # vllm/config/lora.py, MaxLoRARanks
# initialisations after which the saved adapter is a plain one (vllm/lora/peft_helper.py); others change the
# base
PLAIN_STARTS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")
# keys under which an adapter is more than two thin matrices a module, and vLLM refuses or overlooks it
MORE = (
    "use_dora",
    "lora_bias",
    "modules_to_save",
    "alora_invocation_tokens",
    "layer_replication",
    "use_bdlora",
    "use_qalora",
    "trainable_token_indices",
)


@dataclass(frozen=True)
class Adapter:
    """path: its folder, absolute. base: model id or folder. rank: the largest of any module. weights: changes
    whenever the adapter may have changed. has_tokenizer: its own one, with which it was trained.
    """

    path: str
    base: str
    base_revision: str | None
    rank: int
    weights: str
    has_tokenizer: bool

    def arguments(self) -> dict[str, Any]:
        """The arguments of vllm.LLM beside the base model's."""
        kept = {"tokenizer": self.path, "tokenizer_revision": None} if self.has_tokenizer else {}
        return {"enable_lora": True, "max_loras": 1, "max_lora_rank": allowed_rank(self.rank), **kept}


def locate(
    model: str, revision: str | None = None, base_model: str | None = None
) -> tuple[Checkpoint, Adapter | None]:
    """The checkpoint to load, and the adapter on it where `model` is the folder of one.

    base_model: in place of the one that the adapter names. ModelError as in checkpoint.resolve.
    """
    folder = Path(model).expanduser()
    if not is_adapter(folder):
        return resolve(model, revision), None
    adapter = read_adapter(folder.resolve(), base_model)
    try:
        return resolve(adapter.base, revision or adapter.base_revision), adapter
    except ModelError as error:
        hint = "" if base_model else "; --base_model names another place of the base model"
        raise ModelError(f"the base model of the adapter {model}: {error}{hint}") from error


def is_adapter(folder: Path) -> bool:
    """A merged model that still has the adapter's files beside its own is none."""
    if not (folder / CONFIG).is_file():
        return False
    own = [*folder.glob("model*.safetensors"), *folder.glob("pytorch_model*.bin")]
    return not ((folder / "config.json").is_file() and own)


def read_adapter(folder: Path, base_model: str | None = None) -> Adapter:
    """ModelError where it is damaged, or is of a kind that vLLM does not load unmerged."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{folder / CONFIG} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise ModelError(f"{folder / CONFIG} is no JSON object")
    if reasons := obstacles(config):
        raise ModelError(
            f"{folder}: vLLM does not load this adapter unmerged ({'; '.join(reasons)}): merge it into its"
            " base model and give that folder"
        )
    files = [folder / name for name in WEIGHTS if (folder / name).is_file()]
    if not files:
        raise ModelError(f"{folder} holds no adapter weights ({WEIGHTS[0]})")
    named = config.get("base_model_name_or_path")
    base = base_model or named
    if not isinstance(base, str) or not base.strip():
        raise ModelError(f"{folder / CONFIG} names no base model: give --base_model")
    if not base_model and not Path(base).is_absolute() and (folder / base).is_dir():
        base = str(folder / base)
    revision = None if base_model else config.get("revision")
    return Adapter(
        str(folder),
        base,
        revision if isinstance(revision, str) and revision else None,
        needed_rank(config),
        weight_hash(folder, files),
        (folder / "tokenizer_config.json").is_file(),
    )


def obstacles(config: dict[str, Any]) -> list[str]:
    """Why an adapter cannot be loaded as it is; [] where it can."""
    out = []
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        return [f"it is {kind}, not LORA"]
    out += [f"{key}: {json.dumps(config[key])[:60]}" for key in MORE if config.get(key)]
    if config.get("bias", "none") != "none":
        out.append(f"bias: {config['bias']}")
    start = config.get("init_lora_weights", True)
    if isinstance(start, str) and start.lower() not in PLAIN_STARTS:
        out.append(f"init_lora_weights {start} changes the base model's weights")
    ranks = _ranks(config)
    if not all(isinstance(rank, int) and not isinstance(rank, bool) and rank > 0 for rank in ranks):
        out.append("its rank (r, rank_pattern) is no whole number above 0")
    elif max(ranks) > RANKS[-1]:
        out.append(f"rank {max(ranks)}, at most {RANKS[-1]}")
    return out


def needed_rank(config: dict[str, Any]) -> int:
    """The largest rank of any module: {"r": 8, "rank_pattern": {"q_proj": 24}} → 24."""
    return max(_ranks(config))


def allowed_rank(rank: int) -> int:
    """The smallest max_lora_rank that vLLM knows and that holds `rank`: 24 → 32."""
    return next(allowed for allowed in RANKS if allowed >= rank)


def _ranks(config: dict[str, Any]) -> list[Any]:
    pattern = config.get("rank_pattern")
    return [config.get("r"), *(pattern.values() if isinstance(pattern, dict) else ())]
