"""Task data: rows from the Hugging Face data set or from a local folder, as plain Python values, hashed.

Example: load("tri-fair-lab/captrack", "main", "boolq.subset", cache) gives
TaskData(task="boolq.subset", rows=[{"id": "7", "formatted_prompt": "Q: …", "gold": "yes", …}, …],
sha256="9f…").

What is downloaded is kept as cache/DATASET/REVISION/TASK.jsonl, so that a second run needs neither network
nor `datasets`. A local folder holds TASK.jsonl, TASK.json or TASK.parquet (dots of the task's name may be
underscores), or data/TASK/*.parquet.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.files import safe_name, whole_file
from evaluation.tasks import TASKS

IFEVAL_COLUMNS = ("instruction_id_list", "kwargs")
SPLIT = "train"
_COMMIT = re.compile(r"[0-9a-f]{40}")


class DataError(Exception):
    """One line for a person: which data, what is wrong, what to do."""


class TaskAbsent(DataError):
    """The source has no data for this task; other tasks may go on."""


@dataclass(frozen=True)
class TaskData:
    """rows: every row of the task, in order. sha256: over all of them, whatever --limit says."""

    task: str
    rows: list[dict[str, Any]]
    sha256: str


def is_local(dataset: str) -> bool:
    return Path(dataset).is_dir()


def cache_root() -> Path:
    """CAPTRACK_CACHE, else .cache/ beside the scripts (shared by nodes that share the folder)."""
    return Path(os.environ.get("CAPTRACK_CACHE") or Path(__file__).resolve().parents[2] / ".cache")


def load(dataset: str, revision: str, task: str, cache: Path | None = None) -> TaskData:
    """The rows of a task. TaskAbsent where the source lacks it, DataError where it cannot be read."""
    if is_local(dataset):
        rows = read_rows(local_file(Path(dataset), task))
    else:
        rows = _cached_or_downloaded(dataset, revision, task, cache or cache_root())
    rows = [plain(row) for row in rows]
    return TaskData(task, rows, rows_sha256(rows))


def resolve_revision(dataset: str, revision: str, cache: Path | None = None) -> str:
    """The commit that a branch or tag means: asked from the hub; offline, the one that was downloaded last
    under this name.

    A local folder has none: "local".
    """
    if is_local(dataset):
        return "local"
    if _COMMIT.fullmatch(revision):
        return revision
    known = _folder(dataset, revision, cache or cache_root()) / "commit.txt"
    try:
        if os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0"):
            raise OSError("HF_HUB_OFFLINE is set")
        from huggingface_hub import HfApi

        commit = HfApi().dataset_info(dataset, revision=revision).sha
    except Exception as error:  # no package, no network, no access: what was downloaded before still serves
        if known.exists():
            return known.read_text(encoding="utf-8").strip()
        raise DataError(
            f"the data set {dataset} (revision {revision}) cannot be reached and was not downloaded"
            f" before: {_line(error)}"
            " (run_inference.py --download_only fetches it; --dataset FOLDER takes local files)"
        ) from error
    with whole_file(known) as handle:
        handle.write(f"{commit}\n")
    return commit


def local_file(folder: Path, task: str) -> Path | list[Path]:
    """The file (or parquet shards) that holds `task`; never another task's. TaskAbsent where there is
    none.
    """
    found = [
        path
        for name in dict.fromkeys((task, task.replace(".", "_")))
        for ending in (".jsonl", ".json", ".parquet")
        if (path := folder / f"{name}{ending}").is_file()
    ]
    shards = sorted((folder / "data" / task).glob("*.parquet"))
    if len(found) + bool(shards) > 1:
        names = ", ".join(str(path) for path in [*found, *shards[:1]])
        raise DataError(f"more than one file holds {task}: {names}; leave one")
    if found:
        return found[0]
    if shards:
        return shards
    raise TaskAbsent(f"{folder} has no data for {task} ({task}.jsonl, {task}.parquet or data/{task}/)")


def read_rows(path: Path | list[Path]) -> list[dict[str, Any]]:
    """Rows of a .jsonl, .json (a list of objects) or .parquet file; DataError names file and line."""
    if isinstance(path, list):
        return [row for part in path for row in read_rows(part)]
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path).to_pylist()
        text = path.read_bytes().decode("utf-8-sig")
        if path.suffix == ".json":
            rows = json.loads(text)
        else:
            rows = [
                _json_line(line, path, number)
                for number, line in enumerate(text.split("\n"), 1)
                if line.strip()
            ]
    except ImportError as error:
        raise DataError(f"{path}: reading parquet needs pyarrow ({_line(error)})") from error
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise DataError(f"{path} cannot be read: {_line(error)}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: expected a list of objects, one a row")
    return rows


def plain(value: Any) -> Any:
    """JSON values only: NaN is null, tuples are lists, dates and bytes are text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def rows_sha256(rows: list[dict[str, Any]]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, allow_nan=False).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def join_ifeval(rows: list[dict[str, Any]], source: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Rows with instruction_id_list and kwargs from the public IFEval rows; and how many found no partner.

    The prompts must be equal but for white space, or the public prompt must stand whole inside the row's one.
    """
    known = {_spaces(item["prompt"]): item for item in source}
    out, lacking = [], 0
    for row in rows:
        if all(row.get(column) is not None for column in IFEVAL_COLUMNS):
            out.append(row)
            continue
        texts = [
            _spaces(row[name]) for name in ("prompt", "formatted_prompt") if isinstance(row.get(name), str)
        ]
        item = next((known[text] for text in texts if text in known), None)
        if item is None:
            inside = [key for key in known if any(key in text for text in texts)]
            item = known[max(inside, key=len)] if inside else None
        if item is None:
            lacking += 1
            out.append(row)
        else:
            out.append(row | {column: plain(item[column]) for column in IFEVAL_COLUMNS})
    return out, lacking


def _cached_or_downloaded(dataset: str, commit: str, task: str, cache: Path) -> list[dict[str, Any]]:
    path = _folder(dataset, commit, cache) / f"{task}.jsonl"
    if path.exists():
        return read_rows(path)
    rows = [plain(row) for row in hub_rows(dataset, task, commit)]
    source = TASKS[task].constraints if task in TASKS else ""
    if source and not all(row.get(name) is not None for row in rows for name in IFEVAL_COLUMNS):
        rows, lacking = join_ifeval(rows, hub_rows(source, None, None))
        if lacking:
            raise DataError(f"{task}: {lacking} of {len(rows)} prompts are not in {source}")
    with whole_file(path) as handle:
        for row in rows:
            handle.write(json.dumps(row, allow_nan=False) + "\n")
    return rows


def hub_rows(dataset: str, task: str | None, revision: str | None) -> list[dict[str, Any]]:
    """One configuration of a data set, split train, through the `datasets` package."""
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            f"{dataset} is not downloaded and the package `datasets` is not installed here"
        ) from error
    try:
        return datasets.load_dataset(dataset, task, split=SPLIT, revision=revision).to_list()
    except ValueError as error:
        if task and "not found" in str(error) and "onfig" in str(error):
            raise TaskAbsent(f"{dataset} has no configuration {task}") from error
        raise DataError(f"{dataset}, {task or 'default'}: {_line(error)}") from error
    except Exception as error:  # the hub client has many: no network, no access, no such data set
        raise DataError(f"{dataset}, {task or 'default'} cannot be loaded: {_line(error)}") from error


def _folder(dataset: str, revision: str, cache: Path) -> Path:
    return cache / "data" / safe_name(dataset) / safe_name(revision)


def _json_line(line: str, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {error}") from error


def _spaces(text: str) -> str:
    return " ".join(text.split())


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."
