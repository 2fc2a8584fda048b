"""Runs whole tasks: streams rows from response files, scores them, and leaves a sample table a task.

Rules run in worker processes, a chunk of rows at a time; a judged scorer's rows then all run on one asyncio
loop in this process, so that the questions of every task go through one limit. A worker that dies (out of
memory, a crash in a library) costs the row that killed it, never the run.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from evaluation.clusters import cluster_keys, pair_key, prompt_of, source_candidates
from evaluation.judge import Judge, Verdict
from evaluation.responses import LoadError, ResponseFile
from evaluation.results import SampleTable
from evaluation.rows import Row, is_missing, text_of
from evaluation.scoring import score_by_judge, score_by_rules
from evaluation.tasks import TASKS

log = logging.getLogger("captrack")

# per row, from columns or from meta: what a breakdown may group by, and its name
BREAKDOWNS = {
    "language": "language",
    "lang": "language",
    "subject": "subject",
    "category": "category",
    "level": "level",
    "constraint_type": "constraint_type",
    "side": "side",
}
# texts kept for people in the sample table, cut in the middle beyond this many characters
_KEPT = {"prompt": 4_000, "answer": 20_000, "gold": 4_000}
_ROWS_AT_ONCE = 256  # judged rows whose coroutines are alive together


@dataclass
class TaskRun:
    """One task on its way: its file, and the samples in file order as they become ready.

    samples: position -> record of the sample table (results.py), complete when `waiting` is empty.
    waiting: positions whose rule part asks for a judge, with that part. problem: why the task has no result.
    """

    file: ResponseFile
    side: str | None = None
    samples: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[tuple[int, Row, dict[str, Any]]] = field(default_factory=list)
    problem: str | None = None
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def task(self) -> str:
        return self.file.task


class WorkerPool:
    """Worker processes that score chunks of rows; a broken pool is replaced and the guilty row named."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def map(self, chunks: Iterable[list[Row]]) -> Iterator[tuple[list[Row], list[dict[str, Any]]]]:
        """Yields (rows, rule scores) in the order of the chunks, with a bounded number of them in flight."""
        if self.workers <= 1:
            for chunk in chunks:
                yield chunk, score_chunk(chunk)
            return
        flying: list[tuple[list[Row], Future]] = []
        for chunk in chunks:
            flying.append((chunk, self._submit(chunk)))
            if len(flying) >= 4 * self.workers:
                yield self._finish(flying)
        while flying:
            yield self._finish(flying)

    def in_threads(self, chunks: Iterable[list[Row]]) -> Iterator[tuple[list[Row], list[dict[str, Any]]]]:
        """As map, for rows whose scorer starts a process of its own and waits for it.

        Every row is submitted at once, two in flight a worker: a program that hangs costs its limit and
        holds up nobody else's row.
        """
        rows = [row for chunk in chunks for row in chunk]
        with ThreadPoolExecutor(2 * self.workers) as threads:
            for row, scores in zip(rows, threads.map(lambda row: score_chunk([row]), rows), strict=True):
                yield [row], scores

    def _submit(self, chunk: list[Row]) -> Future:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.workers, initializer=_begin_worker)
        try:
            return self._pool.submit(score_chunk, chunk)
        except BrokenProcessPool as error:
            failed: Future = Future()
            failed.set_exception(error)
            return failed

    def _finish(self, flying: list[tuple[list[Row], Future]]) -> tuple[list[Row], list[dict[str, Any]]]:
        chunk, future = flying.pop(0)
        try:
            return chunk, future.result()
        except BrokenProcessPool:
            self.close(broken=True)
            scores = [self._alone(row) for row in chunk]
            # what else was in flight died with the pool: hand it to the new one
            flying[:] = [(c, f if _is_finished(f) else self._submit(c)) for c, f in flying]
            return chunk, scores

    def _alone(self, row: Row) -> dict[str, Any]:
        try:
            return self._submit([row]).result()[0]
        except BrokenProcessPool:
            self.close(broken=True)
            return {"reason": "worker_died"}

    def close(self, broken: bool = False) -> None:
        if self._pool is not None:
            # a whole pool is waited for: Python complains at its exit where one is still going down
            self._pool.shutdown(wait=not broken, cancel_futures=True)
            self._pool = None


def _begin_worker() -> None:
    """In a worker: it must not outlive a killed parent, whose end the pool's own pipes do not tell it."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _is_finished(future: Future) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def score_chunk(rows: list[Row]) -> list[dict[str, Any]]:
    """Rule scores of rows, in order. A scorer's fault costs its row and is told: {"reason", "error"}."""
    scores = []
    for row in rows:
        if "outputs" not in row.columns:
            scores.append({"reason": "no_output"})
            continue
        try:
            scores.append(score_by_rules(row))
        except Exception as error:  # told per row: see TaskRun.errors
            scores.append({"reason": "scorer_error", "error": f"{type(error).__name__}: {error}"})
    return scores


def run_rules(run: TaskRun, pool: WorkerPool, progress: Callable[[int], None] = lambda n: None) -> None:
    """Streams a task's file through the rules into run.samples and run.waiting. Faults end in run.problem."""
    started = time.perf_counter()
    try:
        score = pool.in_threads if TASKS[run.task].tool == "sandbox" else pool.map
        for rows, scores in score(_chunks(run)):
            for row, score in zip(rows, scores, strict=True):
                _take_score(run, row, score)
            progress(len(rows))
    except LoadError as error:
        run.problem = str(error)
        run.samples.clear()
        run.waiting.clear()
    run.seconds += time.perf_counter() - started


def _chunks(run: TaskRun) -> Iterator[list[Row]]:
    size = TASKS[run.task].chunk
    chunk: list[Row] = []
    for row in run.file.rows():
        if run.side:
            row.columns["side"] = run.side
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _take_score(run: TaskRun, row: Row, score: dict[str, Any]) -> None:
    if error := score.pop("error", None):
        run.errors.append(f"row {row.number + 1}: {error}")
    if score.get("pending"):
        run.waiting.append((len(run.samples), row, score))
    run.samples.append({**describe(row), **score, "judgements": None})


def describe(row: Row) -> dict[str, Any]:
    """The columns that every sample table has, and what its breakdowns group by."""
    by_id, by_text = source_candidates(row)
    meta = row.meta
    groups = {}
    for source, name in BREAKDOWNS.items():
        value = row.get(source, meta.get(source))
        if not is_missing(value) and not isinstance(value, (list, dict)) and value != "":
            groups.setdefault(f"by_{name}", text_of(value))
    return {
        "id": row.id,
        "key": pair_key(row),
        "sources": (by_id, by_text),
        "row": row.number,
        "state": row.state,
        "reason": None,
        "extracted": None,
        "prompt": cut(text_of(prompt_of(row)), _KEPT["prompt"]),
        "answer": cut(row.answer, _KEPT["answer"]),
        "gold": cut(text_of(row.gold), _KEPT["gold"]),
        **groups,
    }


def cut(text: str, limit: int) -> str:
    """The text, or its head and tail with the number of characters left out between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


# ------------------------------------------------------------------------------------------------ judged part


class Recorder:
    """A judge that notes what it was asked for one sample: the scorer need not."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.judgements: list[dict[str, Any]] = []

    async def ask(self, mode: str, **fields: Any) -> Verdict:
        verdict = await self.judge.ask(mode, **fields)
        self.judgements.append(
            {
                "mode": mode,
                "value": verdict.value,
                "status": verdict.status,
                "reply": cut(verdict.reply, 4_000),
            }
        )
        return verdict


async def run_judged(
    runs: list[TaskRun], judge_of: Callable[[str], Judge], progress: Callable[[int], None] = lambda n: None
) -> None:
    """Finishes every waiting sample of all tasks together. Each failure costs its sample alone."""
    gate = asyncio.Semaphore(_ROWS_AT_ONCE)

    async def one(run: TaskRun, position: int, row: Row, by_rules: dict[str, Any]) -> None:
        recorder = Recorder(judge_of(run.task))
        try:
            score = await score_by_judge(row, by_rules, recorder)
        except Exception as error:  # told per row: see TaskRun.errors
            run.errors.append(f"row {row.number + 1}: {type(error).__name__}: {error}")
            score = {**by_rules, "reason": "scorer_error"}
        finally:
            gate.release()
        score.pop("pending", None)
        run.samples[position].update(score)
        if recorder.judgements:
            run.samples[position]["judgements"] = json.dumps(recorder.judgements, ensure_ascii=False)
        progress(1)

    async with asyncio.TaskGroup() as group:
        for run in runs:
            for position, row, by_rules in run.waiting:
                await gate.acquire()
                group.create_task(one(run, position, row, by_rules))
            run.waiting = []


def leave_unjudged(run: TaskRun, reason: str) -> None:
    """Where no judge is to be asked: the waiting samples keep what the rules gave, and say why the rest is
    missing."""
    for position, _, by_rules in run.waiting:
        run.samples[position].update({**by_rules, "reason": reason})
        run.samples[position].pop("pending", None)
    run.waiting = []


# ------------------------------------------------------------------------------------------------ sample
# table


def sample_table(task: str, runs: list[TaskRun]) -> SampleTable:
    """The table of a task from its own run and those of tasks whose rows it also scores.

    Keys of the other tasks' rows carry their side, so that ids cannot meet.
    """
    samples = []
    for number, run in enumerate(runs):
        for sample in run.samples:
            if number and sample["key"] is not None:
                sample = {**sample, "key": f"{run.side}:{sample['key']}"}
            samples.append(sample)
    names: dict[str, None] = {}
    for sample in samples:
        names.update(dict.fromkeys(sample))
    keys = [sample["key"] for sample in samples]
    clusters = cluster_keys([sample["sources"] for sample in samples], keys)
    columns: dict[str, list[Any]] = {}
    for name in names:
        if name == "sources":
            columns["cluster"] = clusters
        elif name != "pending":
            columns[name] = [sample.get(name) for sample in samples]
    return SampleTable(task, columns)
