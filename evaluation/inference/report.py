"""What a run says: the table before it starts, its warnings, the object that --check prints, the last lines.

Example of the last: {"model": "org/m", "name": "org__m", "native_window": 32768, "max_model_len": 32768,
"samples_left": 160, "tasks": {"boolq.subset": {"rows": 8, "left": 8, "longest": 85, …}}, "warnings": []}.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from evaluation.inference import preflight
from evaluation.inference.checkpoint import native_window
from evaluation.inference.prompts import Chat
from evaluation.inference.work import Rendered, Work, markup, pending

DONE, FAILED, IN_PART = 0, 1, 4
log = logging.getLogger("captrack.inference")


def warnings_of(
    chat: Chat,
    findings: list[preflight.Finding],
    works: dict[str, Work],
    first: list[Rendered],
    absent: list[str],
) -> list[str]:
    """What is printed, and kept in run.json."""
    out = [finding.text for finding in findings if finding.level == "warning"]
    out += preflight.template_warnings(chat.template, chat.unused, chat.merged, chat.system)
    for task, work in works.items():
        for name, count in markup(work, chat.template).items():
            out.append(f"{task}: {count} of {work.rows} prompts carry chat markup already: {name}")
    out += cut_warnings(works, first)
    if absent:
        out.append(f"no data for {', '.join(absent)}")
    return out


def cut_warnings(works: dict[str, Work], items: list[Rendered]) -> list[str]:
    """One line a task whose prompts do not all fit into the window."""
    out = []
    for task, work in works.items():
        cut = [item.prompt.cut for item in items if item.sample.task == task and item.prompt.cut]
        if cut:
            out.append(
                f"{task}: {len(cut)} of {work.rows} prompts do not fit and lose their middle"
                f" (at most {max(cut)} tokens)"
            )
    return out


def report_of(
    setup: Any, size: int | None, works: dict[str, Work], first: list[Rendered], warnings: list[str]
) -> dict[str, Any]:
    """What --check prints: one object, for run_captrack.py and for people. setup: run_inference.Setup."""
    tasks = {
        task: {"rows": work.rows, "left": 0, "prompt_tokens": 0, "longest": 0, "cut": 0}
        for task, work in works.items()
    }
    for task, work in works.items():
        tasks[task]["left"] = len({sample.key for sample in work.pending()})
    for item in first:
        entry = tasks[item.sample.task]
        entry["prompt_tokens"] += item.prompt.size
        entry["longest"] = max(entry["longest"], item.prompt.size + item.prompt.cut)
        entry["cut"] += item.prompt.cut > 0
    return {
        "model": setup.options.model,
        "name": setup.folder.name,
        "folder": str(setup.folder),
        "native_window": native_window(setup.checkpoint.config),
        "max_model_len": setup.window,
        "tensor_parallel_size": size,
        "samples_left": sum(len(work.pending()) for work in works.values()),
        "prompt_tokens": sum(entry["prompt_tokens"] for entry in tasks.values()),
        "output_tokens_at_most": sum(item.max_tokens for item in first)
        + sum(works[sample.task].limit for sample in pending(works, 2)),
        "tasks": tasks,
        "warnings": warnings,
    }


def say(report: dict[str, Any], chat: Chat, first: list[Rendered], warnings: list[str]) -> None:
    log.info("%-24s %7s %7s %13s %9s", "task", "rows", "left", "prompt tokens", "longest")
    for task, entry in report["tasks"].items():
        log.info(
            "%-24s %7d %7d %13d %9d", task, *(entry[k] for k in ("rows", "left", "prompt_tokens", "longest"))
        )
    log.info(
        "%d samples left; %d prompt tokens, at most %d output tokens; window %d, %s; to %s",
        report["samples_left"],
        report["prompt_tokens"],
        report["output_tokens_at_most"],
        report["max_model_len"],
        f"tensor parallel size {report['tensor_parallel_size']}"
        if report["tensor_parallel_size"]
        else "served",
        report["folder"],
    )
    if first and chat.tokenizer is not None:
        log.info(
            "first ids of the first prompt: %s, BOS is %s",
            first[0].prompt.ids[:6].tolist(),
            chat.tokenizer.bos_token_id,
        )
    for warning in warnings:
        log.warning("warning: %s", warning)


def first_prompt(first: list[Rendered]) -> dict[str, Any] | None:
    if not first:
        return None
    item = first[0]
    return {
        "task": item.sample.task,
        "id": item.sample.key,
        "text": item.prompt.text,
        "ids": item.prompt.ids.tolist(),
    }


def summary(folder: Path, works: dict[str, Work], absent: list[str], record: dict[str, Any]) -> int:
    failed = {task: len({key for key, _ in work.failed}) for task, work in works.items() if work.failed}
    log.info("%d samples generated; responses in %s", record["samples"], folder)
    for task, count in failed.items():
        log.warning(
            "%s: %d rows have no response (see run.json); the same command tries them again", task, count
        )
    for task in absent:
        log.warning("%s: no data, so no responses", task)
    return IN_PART if failed or absent else DONE
