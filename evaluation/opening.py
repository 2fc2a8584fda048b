"""Which response file belongs to which task: opens what is there, and names what is nobody's.

model_responses/MODEL/boolq.subset.jsonl   the task's own file
model_responses/MODEL/all.csv              one file for several tasks (--task_column)
"""

from __future__ import annotations

import difflib
import logging
from argparse import Namespace
from pathlib import Path

from evaluation.cli import UsageError
from evaluation.engine import TaskRun
from evaluation.files import safe_name
from evaluation.responses import (
    FORMATS,
    LoadError,
    ResponseFile,
    find_combined_file,
    find_file,
    format_of,
    split_by_task,
)
from evaluation.tasks import TASKS

log = logging.getLogger("captrack")


def responses_folder(options: Namespace) -> Path:
    """The model's folder of responses. Raises UsageError, with the names that are there."""
    base = Path(options.data_dir)
    for name in dict.fromkeys((options.model_name, safe_name(options.model_name))):
        # a name longer than a file system takes can only be there under its safe form
        if len(name.encode()) <= 255 and (base / name).is_dir():
            return base / name
    there = sorted(p.name for p in base.glob("*") if p.is_dir()) if base.is_dir() else []
    close = difflib.get_close_matches(options.model_name, there, n=1)
    known = f" Did you mean {close[0]}?" if close else f" There: {', '.join(there[:8])}." if there else ""
    raise UsageError(
        f"{base / options.model_name}: no such folder of responses.{known} run_inference.py "
        "writes them, or bring your own."
    )


def open_tasks(
    folder: Path, options: Namespace, tasks: tuple[str, ...], spool: Path
) -> tuple[dict[str, list[TaskRun]], dict[str, str]]:
    """(task -> its run and those of the tasks whose rows it also scores, task -> why it can't be opened)."""
    parts: dict[str, Path] | None = None
    combined = folder
    others: dict[str, int] = {}
    if options.task_column:
        try:
            combined = find_combined_file(folder, options.file_format)
            source = ResponseFile("", combined, format_of(combined, options.file_format))
            wanted = tuple(dict.fromkeys([*tasks, *(also for t in tasks for also in TASKS[t].also)]))
            parts, others = split_by_task(source, options.task_column, wanted, spool)
        except LoadError as error:
            raise UsageError(str(error)) from None

    def opened(task: str, needs: tuple[str, ...]) -> ResponseFile | None:
        path = parts.get(task) if parts is not None else find_file(folder, task, options.file_format)
        if path is None:
            return None
        kind = "jsonl" if parts is not None else format_of(path, options.file_format)
        return ResponseFile(
            task,
            path,
            kind,
            options.output_column,
            options.gold_column,
            needs,
            shown=combined if parts is not None else path,
        )

    runs: dict[str, list[TaskRun]] = {}
    problems: dict[str, str] = {}
    for task in tasks:
        try:
            file = opened(task, TASKS[task].needs)
            if file is None:
                continue
            also = TASKS[task].also
            runs[task] = [TaskRun(file, side="unsafe" if also else None)]
            for other, side in also.items():
                if other_file := opened(other, ("prompt",)):
                    other_file.task = task
                    runs[task].append(TaskRun(other_file, side=side))
                else:
                    log.warning("%s: %s is absent, so its %s side is missing", task, other, side)
        except LoadError as error:
            problems[task] = str(error)
    problems |= nobodys_files(folder) if parts is None else nobodys_rows(combined, others)
    return runs, problems


def nobodys_rows(path: Path, others: dict[str, int]) -> dict[str, str]:
    """value of the task column -> what is wrong with it, for values that are no task's name."""
    known = {spelling for task in TASKS for spelling in (task, task.replace(".", "_"))}
    found = {}
    for value, rows in others.items():
        if value not in known:
            close = difflib.get_close_matches(value, TASKS, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]}?" if close else " --tasks list prints the names."
            found[value] = f"{path}: {rows} rows are of {value!r}, which is no task; they are not read.{hint}"
    return found


def nobodys_files(folder: Path) -> dict[str, str]:
    """file name -> what is wrong with it, for files that look like responses but carry no task's name."""
    spellings = {spelling: task for task in TASKS for spelling in (task, task.replace(".", "_"))}
    families = {task.split(".")[0] for task in TASKS}
    found = {}
    for path in sorted(folder.glob("*")):
        if path.suffix not in FORMATS or path.stem in spellings or path.name.startswith("."):
            continue
        lowered = path.stem.lower().replace("-", "_")
        close = difflib.get_close_matches(lowered, spellings, n=1, cutoff=0.5)
        if any(lowered.startswith(family) for family in families) or (close and path.suffix != ".json"):
            hint = f" Did you mean {spellings[close[0]]}?" if close else " --tasks list prints the names."
            found[path.name] = f"{path}: no task is called {path.stem!r}, so it was not read.{hint}"
    return found
