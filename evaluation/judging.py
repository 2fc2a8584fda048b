"""The judged part of a run: opens the judges that the tasks name, asks for every waiting sample, tells how
it goes."""

from __future__ import annotations

import asyncio
import json
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

PRICES = Path(__file__).resolve().parent.parent / "configs" / "judge_prices.yaml"


def judge_specs(
    options: Namespace, tasks: Sequence[str], configs: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """task -> "MODEL@BACKEND", by --judge or by TASK_CONFIGS; tasks without a judge are left out."""
    judged = [task for task in tasks if TASKS[task].judged]
    specs = {task: options.judge or configs.get(task, {}).get("judge", "") for task in judged}
    return {task: spec for task, spec in specs.items() if spec}


def judge_options(options: Namespace) -> Any:
    """The judge service's options from the command line's."""
    from evaluation.judge.service import JudgeOptions

    folder = options.judge_cache or Path(options.output_dir) / ".judge_cache"
    return JudgeOptions(
        concurrency=options.judge_concurrency,
        cache_dir=None if options.no_judge_cache else Path(folder),
        max_calls=options.max_judge_calls,
        repeat=options.judge_repeat or 0,
    )


def judge_waiting(
    runs: Sequence[TaskRun], options: Namespace, configs: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Finishes every waiting sample. Returns run.json's entry "judging"; {} where no judge was needed.

    Raises UsageError for a setting that names no judge.
    """
    waiting, specs = _with_a_judge(runs, options, configs)
    if not waiting:
        return {}
    from evaluation.judge.service import JudgeFatal

    try:
        labels = _labels(options)
        judging = asyncio.run(_judge(waiting, specs, options))
        if labels:
            judging["against_labels"] = _against_labels(labels, waiting)
        return judging
    except JudgeFatal as error:
        raise UsageError(str(error)) from None


def _with_a_judge(
    runs: Sequence[TaskRun], options: Namespace, configs: Mapping[str, Mapping[str, str]]
) -> tuple[list[TaskRun], dict[str, str]]:
    """(runs that wait for a judge they have, task -> judge); runs without one keep what the rules gave."""
    waiting = [run for run in runs if run.waiting]
    specs = judge_specs(options, [run.task for run in waiting], configs)
    for run in waiting:
        if run.task not in specs:
            leave_unjudged(run, "no_judge")
    return [run for run in waiting if run.task in specs], specs


def estimate_lines(
    runs: Sequence[TaskRun], options: Namespace, configs: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """--estimate: what would be asked now, by task and judge, with its cost where the price is known."""
    from evaluation.judge.estimate import EstimateService, read_prices
    from evaluation.judge.estimate import estimate_lines as lines_of
    from evaluation.judge.service import JudgeFatal

    waiting, specs = _with_a_judge(runs, options, configs)
    try:
        with EstimateService(specs, judge_options(options)) as service:
            asyncio.run(run_judged(waiting, service.for_task))
            return lines_of(service.estimates(), read_prices(PRICES))
    except JudgeFatal as error:
        raise UsageError(str(error)) from None


def _labels(options: Namespace) -> list[dict[str, Any]]:
    from evaluation.judge.quality import read_labels

    return read_labels(Path(options.judge_labels)) if options.judge_labels else []


def _against_labels(labels: Sequence[Mapping[str, Any]], runs: Sequence[TaskRun]) -> dict[str, Any]:
    from evaluation.judge.quality import against_labels

    verdicts = {
        (run.task, sample["id"], judgement["mode"]): judgement["value"]
        for run in runs
        for sample in run.samples
        if sample["judgements"]
        for judgement in json.loads(sample["judgements"])
    }
    return against_labels(labels, verdicts)


async def _judge(waiting: Sequence[TaskRun], specs: Mapping[str, str], options: Namespace) -> dict[str, Any]:
    from evaluation.judge.quality import repeat
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
        summary = service.summary()
        if options.judge_repeat and not service.ended:
            summary["repeated"] = await repeat(service)
        return summary


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
    from evaluation.judge.pool import Pool
    from evaluation.judge.service import JudgeFatal, JudgeService

    specs = judge_specs(options, tasks, configs)

    async def ask() -> dict[str, str]:
        # two tries: a person waits for the answer, and a server that is down stays down
        pool = Pool(options.judge_concurrency, attempts=2)
        async with JudgeService(specs, judge_options(options), pool) as service:
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


def told_of_judges(judging: Mapping[str, Any]) -> list[str]:
    """Lines for the console: the demo judge's notice, agreement with itself and with a person's labels."""
    lines = []
    if judging.get("notice"):
        judges = sorted({entry["judge"] for entry in judging["tasks"].values()})
        lines.append(f"Judged by {', '.join(judges)}: {judging['notice']}.")
    for task, modes in judging.get("repeated", {}).items():
        for mode, figures in modes.items():
            lines.append(
                f"{task}, {mode}: {figures['questions']} questions asked {figures['repeats']} times more, "
                f"self-agreement {_figure(figures['self_agreement'])}, noise of the mean "
                f"{_figure(figures['noise_of_mean'])}"
            )
    for task, figures in judging.get("against_labels", {}).items():
        told = ", ".join(f"{name} {_figure(value)}" for name, value in figures.items())
        lines.append(f"{task} against labels: {told}")
    return lines


def _figure(value: float | int | None) -> str:
    return "n/a" if value is None else str(value) if isinstance(value, int) else f"{value:.3g}"
