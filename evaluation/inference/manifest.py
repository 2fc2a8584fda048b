"""run.json: what made the responses in a model's folder, and whether all of them are there. No vLLM, no
tokenizer needed.

    {"written_by": "run_inference.py", "layout": 1, "name": "my-model",
     "settings": {"model": "…", "weights": "…", "template": "…", "temperature": 0.0, …}, "settings_sha256":
     "…", "tasks": {"boolq.subset": {"rows": 20, "available": 150, "answered": 20, "failed": [],
     "data_sha256": "…", …}}, "runs": [{"started": "…", "ended": "…", "state": "complete", "vllm": "0.32.0",
     "gpus": […], …}], "first_prompt": {"task": "…", "text": "…", "ids": […]}, "warnings": […], …}

The settings are those that decide an answer; a folder holds answers of one set of settings only.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from evaluation.files import write_json
from evaluation.inference.limits import output_limit
from evaluation.inference.samples import fingerprint, samples_of
from evaluation.inference.store import final_answers, main_turn

FILE = "run.json"
WRITER = "run_inference.py"
ABSENT, OURS, FOREIGN = "absent", "ours", "foreign"
ENDINGS = (".json", ".jsonl", ".csv", ".parquet")

Manifest = dict[str, Any]


def folder_state(folder: Path) -> str:
    """ABSENT (no such folder, or an empty one), OURS (has our run.json) or FOREIGN (anything else: never
    written to).
    """
    if read_manifest(folder) is not None:
        return OURS
    if folder.is_dir():
        return FOREIGN if any(folder.iterdir()) else ABSENT
    return FOREIGN if folder.exists() else ABSENT


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's run.json, None where there is none of ours."""
    try:
        value = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) and value.get("written_by") == WRITER else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    write_json(folder / FILE, {"written_by": WRITER, "layout": 1, **manifest})


def settings_sha256(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """One line a setting that differs: "temperature: 0.0 there, 0.7 now"."""
    names = dict.fromkeys((*old, *new))
    return [
        f"{name}: {_short(old.get(name))} there, {_short(new.get(name))} now"
        for name in names
        if old.get(name) != new.get(name)
    ]


def missing_samples(
    folder: Path, data: dict[str, list[dict[str, Any]]], limit: int | None = None
) -> dict[str, list[str]]:
    """Task → keys of the rows that lack a response under the folder's own settings; {} means that every one
    is there.

    data: task → all its rows (data.load). Only whole response files count. A folder without our run.json
    lacks everything. DataError or StoreError as in samples.py and store.py.
    """
    manifest = read_manifest(folder)
    out = {}
    for task, rows in data.items():
        if manifest is None:
            keys = [sample.key for sample in samples_of(task, rows[:limit])]
            lacking = list(dict.fromkeys(keys))
        else:
            lacking = _missing_of(folder, manifest, task, rows, limit)
        if lacking:
            out[task] = lacking
    return out


def missing_by_count(folder: Path, tasks: list[str], limit: int | None = None) -> dict[str, int]:
    """As missing_samples, from run.json alone, for where the task data cannot be read: task → number of rows
    that lack.

    -1 where a task was never run there.
    """
    manifest = read_manifest(folder) or {}
    out = {}
    for task in tasks:
        entry = manifest.get("tasks", {}).get(task)
        if entry is None or not (folder / f"{task}.jsonl").exists():
            out[task] = -1
            continue
        wanted = entry["available"] if limit is None else min(limit, entry["available"])
        if entry["answered"] < wanted:
            out[task] = wanted - entry["answered"]
    return out


def own_files(folder: Path, manifest: Manifest) -> list[Path]:
    """The files that --overwrite takes away: those that run_inference.py wrote, nothing else."""
    names = [
        name for task in manifest.get("tasks", {}) for name in (f"{task}.jsonl", f"{task}.jsonl.partial")
    ]
    return [path for name in [*names, FILE] if (path := folder / name).is_file()]


def _missing_of(
    folder: Path, manifest: Manifest, task: str, rows: list[dict[str, Any]], limit: int | None
) -> list[str]:
    there = final_answers(task, folder / f"{task}.jsonl")
    room = output_limit(task, manifest["settings"].get("max_tokens"))
    out = []
    for sample in samples_of(task, rows[:limit]):
        if sample.turn == main_turn(task):
            answer = there.get((sample.key, sample.turn), {})
            if answer.get("fingerprint") != fingerprint(manifest["settings_sha256"], sample, room):
                out.append(sample.key)
    return out


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
