"""The judged part of a run: opens the judges that the tasks name, asks for every waiting sample, tells how
it goes."""

from __future__ import annotations

import asyncio
import logging
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.cli import UsageError
from evaluation.engine import TaskRun, leave_unjudged, run_judged
from evaluation.tasks import TASKS

log = logging.getLogger("captrack")


def judge_specs(
    options: Namespace, tasks: Sequence[str], configs: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """task -> "MODEL@BACKEND", by --judge or by TASK_CONFIGS; tasks without a judge are left out."""
    specs = {task: options.judge or configs.get(task, {}).get("judge", "") for task in tasks}
    return {task: spec for task, spec in specs.items() if spec}


def judge_options(options: Namespace) -> Any:
    """The judge service's options from the command line's."""
    from evaluation.judge.service import JudgeOptions

    folder = options.judge_cache or Path(options.output_dir) / ".judge_cache"
    return JudgeOptions(
        concurrency=options.judge_concurrency,
        cache_dir=None if options.no_judge_cache else Path(folder),
        max_calls=options.max_judge_calls,
    )


def judge_waiting(
    runs: Sequence[TaskRun], options: Namespace, configs: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Finishes every waiting sample. Returns run.json's entry "judging"; {} where no judge was needed.

    Raises UsageError for a setting that names no judge.
    """
    waiting = [run for run in runs if run.waiting]
    specs = judge_specs(options, [run.task for run in waiting], configs)
    for run in waiting:
        if run.task not in specs:
            leave_unjudged(run, "no_judge")
    waiting = [run for run in waiting if run.task in specs]
    if not waiting:
        return {}
    from evaluation.judge.service import JudgeFatal

    try:
        return asyncio.run(_judge(waiting, specs, options))
    except JudgeFatal as error:
        raise UsageError(str(error)) from None


async def _judge(waiting: Sequence[TaskRun], specs: Mapping[str, str], options: Namespace) -> dict[str, Any]:
    from evaluation.judge.service import JudgeService

    async with JudgeService(specs, judge_options(options)) as service:
        rows = sum(len(run.waiting) for run in waiting)
        log.info("judging %d samples of %d tasks", rows, len(waiting))
        watcher = asyncio.create_task(_watch(service))
        try:
            await run_judged(list(waiting), service.for_task)
        finally:
            watcher.cancel()
        log.info("judge: %s", service.progress().line())
        if service.ended:
            log.error("judging ended early: %s. What was judged is kept; run again to go on.", service.ended)
        return service.summary()


async def _watch(service: Any) -> None:
    """A line that renews itself on a terminal, a line a minute elsewhere."""
    live = sys.stderr.isatty()
    while True:
        await asyncio.sleep(0.5 if live else 60)
        line = service.progress().line()
        if live:
            print(f"\r{line[:79]:<79}", end="", file=sys.stderr, flush=True)
        else:
            log.info("%s", line)


def check_judges(
    options: Namespace, tasks: Sequence[str], configs: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Asks each judge that the tasks need one tiny question; returns spec -> served model. Raises
    UsageError."""
    from evaluation.judge.service import JudgeFatal, JudgeService

    specs = judge_specs(options, tasks, configs)

    async def ask() -> dict[str, str]:
        async with JudgeService(specs, judge_options(options)) as service:
            return await service.check()

    try:
        return asyncio.run(ask()) if specs else {}
    except JudgeFatal as error:
        raise UsageError(str(error)) from None


def judge_entry(judging: Mapping[str, Any], task: str) -> dict[str, Any]:
    """What a task's entry in run.json says of its judge; {} where none was asked."""
    told = judging.get("tasks", {}).get(task)
    if not told:
        return {}
    from evaluation.judge.modes import MODES, template

    return {
        "judge": told["judge"],
        "judge_served_model": ", ".join(sorted(told["served_models"])) or None,
        "prompt_versions": {mode: template(MODES[mode].prompt)[0] for mode in TASKS[task].modes},
    }
