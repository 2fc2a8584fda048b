"""The public IFEval data (google/IFEval, split train), for rows that bring no instructions of their own.

Each entry is {"prompt": …, "instruction_id_list": […], "kwargs": […]}. Looked for in this order: the file
that CAPTRACK_IFEVAL_DATA names (.jsonl, .json, .parquet), the copy in the cache folder (CAPTRACK_CACHE, else
~/.cache/captrack), and the Hugging Face hub, once, kept in the cache. A prompt is found by its whole text
alone.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.files import whole_file

VARIABLE = "CAPTRACK_IFEVAL_DATA"
_URL = "https://huggingface.co/datasets/google/IFEval/resolve/main/ifeval_input_data.jsonl"
_MOST_BYTES = 20_000_000
_LOG = logging.getLogger(__name__)
_LOCK = threading.Lock()
_LOADED: list[Entries | None] = []

_MARKER = "Instruction:"
_USER = re.compile(r"<\|start_header_id\|>user<\|end_header_id\|>")
_TURN_END = "<|eot_id|>"
_SYSTEM_LINE = ("You are", "Your task")
# quotation marks and back-ticks differ between copies of the same prompt
_QUOTES = str.maketrans("", "", "`'\"“”‘’")


@dataclass(frozen=True)
class Entries:
    """The data set and, per normalised prompt, the position of its first entry."""

    rows: list[dict[str, Any]]
    positions: dict[str, int] = field(default_factory=dict)

    def find(self, prompt: str) -> int | None:
        """The position of the entry whose whole prompt is this one or stands in it; None where none or
        several do.
        """
        candidates = [normal for text in core_texts(prompt) if (normal := normal_form(text))]
        for normal in reversed(candidates):
            if normal in self.positions:
                return self.positions[normal]
        for normal in candidates:
            within = [entry for entry in self.positions if _stands_in(entry, normal)]
            # of prompts that contain each other the longest is meant
            outer = [one for one in within if not any(one != other and one in other for other in within)]
            if outer:
                return self.positions[outer[0]] if len(outer) == 1 else None
        return None


def make_entries(rows: list[dict[str, Any]]) -> Entries:
    """Entries with their index."""
    positions: dict[str, int] = {}
    for at, row in enumerate(rows):
        normal = normal_form(str(row.get("prompt") or ""))
        if normal:
            positions.setdefault(normal, at)
    return Entries(rows, positions)


def normal_form(text: str) -> str:
    """White space collapsed, lower case, without quotation marks and back-ticks."""
    return " ".join(text.translate(_QUOTES).lower().split())


def core_texts(prompt: str) -> list[str]:
    """What may be the task in a prompt, the narrowest first: the last "Instruction:" block up to "Rules:" or
    "Response:", the last user turn of a Llama template without leading system lines, that turn, the whole.
    """
    texts = []
    users = list(_USER.finditer(prompt))
    turn = prompt[users[-1].end() :].partition(_TURN_END)[0] if users else prompt
    if _MARKER in turn:
        block = turn.rpartition(_MARKER)[2]
        for end in ("Rules:", "Response:"):
            block = block.partition(end)[0]
        texts.append(block)
    if users:
        lines = turn.strip().split("\n")
        while lines and (not lines[0].strip() or lines[0].strip().startswith(_SYSTEM_LINE)):
            del lines[0]
        texts += ["\n".join(lines), turn]
    return [*texts, prompt]


def _stands_in(entry: str, text: str) -> bool:
    """Whether the entry's whole prompt is a part of the text, between word boundaries."""
    at = text.find(entry)
    if at < 0:
        return False
    before, after = text[:at][-1:], text[at + len(entry) :][:1]
    return not (before.isalnum() and entry[0].isalnum()) and not (after.isalnum() and entry[-1].isalnum())


def entries() -> Entries | None:
    """The data, loaded once a process; None where it cannot be had (said once, as a warning)."""
    if not _LOADED:
        with _LOCK:
            if not _LOADED:
                try:
                    _LOADED.append(make_entries(load()))
                except Exception as error:  # whatever a hub client or a reader of foreign files raises
                    _LOG.warning("%s", _message(error))
                    _LOADED.append(None)
    return _LOADED[0]


def forget() -> None:
    """Makes the next call load again (after the variable or the cache changed)."""
    _LOADED.clear()


def cache_file() -> Path:
    """Where the downloaded copy is kept."""
    folder = os.environ.get("CAPTRACK_CACHE")
    return (Path(folder) if folder else Path.home() / ".cache" / "captrack") / "ifeval.jsonl"


def load() -> list[dict[str, Any]]:
    """The entries from file, cache or hub. Raises OSError, ValueError or what the hub's client raises."""
    named = os.environ.get(VARIABLE)
    if named:
        return _read(Path(named))
    cached = cache_file()
    if cached.is_file():
        return _read(cached)
    if any(
        os.environ.get(name, "").lower() in ("1", "true", "yes")
        for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
    ):
        raise OSError("the Hugging Face hub is switched off by HF_HUB_OFFLINE or HF_DATASETS_OFFLINE")
    rows = _download()
    try:
        with whole_file(cached) as handle:
            for row in rows:
                handle.write(json.dumps(row, ensure_ascii=False) + "\n")
    except OSError as error:
        _LOG.warning("The IFEval data could not be kept in %s: %s", cached, error)
    return rows


def _read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(path).to_pylist()
    else:
        text = path.read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("["):
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    return _checked(rows, path)


def _checked(rows: Any, source: Any) -> list[dict[str, Any]]:
    fields = {"prompt", "instruction_id_list"}
    if not rows or not all(isinstance(row, dict) and fields <= row.keys() for row in rows):
        raise ValueError(f"{source} does not hold IFEval entries (prompt, instruction_id_list, kwargs)")
    return rows


def _download() -> list[dict[str, Any]]:
    """From the hub: by its client where that is installed (it knows mirrors), else the file itself."""
    try:
        import datasets
    except ImportError:
        import urllib.request

        with urllib.request.urlopen(_URL, timeout=30) as reply:  # a fixed https address
            text = reply.read(_MOST_BYTES).decode("utf-8")
        return _checked([json.loads(line) for line in text.split("\n") if line.strip()], _URL)
    columns = ("key", "prompt", "instruction_id_list", "kwargs")
    data = datasets.load_dataset("google/IFEval", split="train")
    return [{name: row.get(name) for name in columns} for row in data]


def _message(error: Exception) -> str:
    return (
        "IFEval: rows without instruction_id_list and kwargs need the public data (google/IFEval), which "
        f"cannot be loaded: {type(error).__name__}: {error}. These rows stay unscored. Remedy: add the two "
        f"columns, or name a .jsonl, .json or .parquet copy of the data in {VARIABLE}, or put a .jsonl copy "
        f"at {cache_file()}, or allow network access."
    )
