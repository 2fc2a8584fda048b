"""Keeps the line full: all questions of all tasks go through one limit that follows what the provider bears.

Example: 64 questions arrive, 16 are sent; each clean reply raises the limit by one until 64 are in flight;
a 429 or 5xx lowers it by a third, and the question is asked again after max(Retry-After, a jittered
back-off). Requests run in threads with a shared client; waiting happens on the event loop, so that a
question that waits holds no thread.

Judging ends for all, and stays ended, on a fatal failure, on a demanded wait of more than ten minutes, when
the allowed number of calls is used up, and when no question has come through for a long time.
"""

from __future__ import annotations

import asyncio
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evaluation.judge import FAILED, NO_CREDENTIALS
from evaluation.judge.backends import Failure

T = TypeVar("T")

START = 16
ATTEMPTS = 8  # for one question
LONGEST_WAIT = 600.0  # seconds; a longer one ends judging
BACKOFF, LONGEST_BACKOFF = 1.0, 60.0
# so many questions in a row lost after all their attempts: the judge is not there
LOST_IN_A_ROW = 20
SHRINK = 2 / 3


class JudgingEnded(Exception):
    """Judging has ended. status: what the verdicts of unasked questions say."""

    def __init__(self, message: str, status: str = FAILED):
        super().__init__(message)
        self.status = status


@dataclass
class Limit:
    """How many requests may be in flight: grows by one a clean reply, shrinks once for what was sent
    together."""

    cap: int
    now: float = 0.0
    in_flight: int = 0
    shrunk: bool = False
    last_shrink: float = float("-inf")
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.now = float(min(START, self.cap))

    async def enter(self) -> None:
        if self.in_flight < int(self.now) and not self.waiting:
            self.in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def grow(self) -> None:
        """By one a reply until the first shrink, then by one for each full round."""
        self.now = min(float(self.cap), self.now + (1 / self.now if self.shrunk else 1))
        self._admit()

    def shrink(self, sent: float, at: float) -> None:
        """sent, at: when the failed request was sent and failed. What was sent before the last shrink
        counts no more."""
        if sent >= self.last_shrink:
            self.now, self.shrunk, self.last_shrink = max(1.0, self.now * SHRINK), True, at

    def _admit(self) -> None:
        while self.waiting and self.in_flight < int(self.now):
            turn = self.waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)


@dataclass
class Counters:
    """What happened so far. calls: requests sent. failures: failed requests by HTTP status or kind."""

    calls: int = 0
    retries: int = 0
    failures: dict[str, int] = field(default_factory=dict)


class Pool:
    """run(job) for jobs that make one request each. clock, sleep and rng can be replaced, so that no test
    waits."""

    def __init__(
        self,
        concurrency: int = 64,
        attempts: int = ATTEMPTS,
        max_calls: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        rng: random.Random | None = None,
    ):
        self.limit = Limit(max(1, concurrency))
        self.counters = Counters()
        self.ended: JudgingEnded | None = None
        self._attempts = attempts
        self._max_calls = max_calls
        self._clock, self._sleep = clock, sleep
        self._rng = rng or random.Random()
        self._threads = _Threads()
        self._not_before = float("-inf")
        self._lost = 0

    async def run(self, job: Callable[[], T]) -> T:
        """The job's result. Raises Failure when all attempts failed, JudgingEnded when none may be made any
        more."""
        for attempt in range(self._attempts):
            await self._turn()
            sent = self._clock()
            self.counters.calls += 1
            try:
                result = await self._threads.submit(job)
            except Failure as failure:
                self._failed(failure, sent)
                if failure.kind != "retry":
                    if failure.kind == "rejected":
                        self._lose(failure)
                    raise
                if attempt + 1 == self._attempts:
                    self._lose(failure)
                    raise
                self.counters.retries += 1
                wait = max(failure.retry_after or 0.0, self._backoff(attempt))
            else:
                self._lost = 0
                self.limit.grow()
                return result
            finally:
                self.limit.leave()
            await self._sleep(wait)
        raise AssertionError("attempts is at least 1")

    async def off_loop(self, job: Callable[[], T]) -> T:
        """A job of ours (a look into the cache) in one of the threads, outside the limit."""
        return await self._threads.submit(job)

    def end(self, message: str, status: str = FAILED) -> JudgingEnded:
        """Ends judging; the first reason stays."""
        if self.ended is None:
            self.ended = JudgingEnded(message, status)
        return self.ended

    def close(self) -> None:
        self._threads.close()

    async def _turn(self) -> None:
        self._check()
        await self.limit.enter()
        try:
            while self._not_before > self._clock():
                await self._sleep(self._not_before - self._clock())
            self._check()
        except BaseException:
            self.limit.leave()
            raise

    def _check(self) -> None:
        if self._max_calls is not None and self.counters.calls >= self._max_calls:
            self.end(f"the allowed {self._max_calls} judge calls are made")
        if self.ended:
            raise self.ended

    def _failed(self, failure: Failure, sent: float) -> None:
        name = str(failure.status or failure.kind)
        self.counters.failures[name] = self.counters.failures.get(name, 0) + 1
        now = self._clock()
        if failure.kind in ("fatal", "no_credentials"):
            self.end(str(failure), NO_CREDENTIALS if failure.kind == "no_credentials" else FAILED)
        if failure.kind == "retry":
            self.limit.shrink(sent, now)
            if failure.retry_after is not None and failure.retry_after > LONGEST_WAIT:
                until = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + failure.retry_after))
                raise self.end(f"{failure}: the judge is to be asked again after {until}; run again then")
            if failure.retry_after:
                # all wait, not only this one: the others would be refused as well
                self._not_before = max(self._not_before, now + failure.retry_after)

    def _lose(self, failure: Failure) -> None:
        self._lost += 1
        if self._lost >= LOST_IN_A_ROW:
            self.end(f"{self._lost} questions in a row got no answer, the last one: {failure}")

    def _backoff(self, attempt: int) -> float:
        return min(LONGEST_BACKOFF, BACKOFF * 2**attempt) * self._rng.uniform(0.5, 1.5)


class _Threads:
    """Threads as needed, none of which keeps the process alive: a reply that hangs must not hold up the
    end."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._busy = self._count = 0

    async def submit(self, job: Callable[[], T]) -> T:
        future = asyncio.get_running_loop().create_future()
        self._busy += 1
        if self._busy > self._count:
            self._count += 1
            threading.Thread(target=self._work, name=f"judge-{self._count}", daemon=True).start()
        self._jobs.put((job, future))
        try:
            return await future
        finally:
            self._busy -= 1

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, future = item
            result, error = None, None
            try:
                result = job()
            except BaseException as raised:
                error = raised
            try:
                future.get_loop().call_soon_threadsafe(_deliver, future, result, error)
            except RuntimeError:  # the loop has closed: nobody waits for this reply
                return

    def close(self) -> None:
        for _ in range(self._count):
            self._jobs.put(None)


def _deliver(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
