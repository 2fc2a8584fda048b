"""Keeps the line full: all questions of all tasks go through one limit that follows what the provider bears.

Example: 64 questions arrive, 16 are sent; each clean reply raises the limit by two until 64 are in flight;
a 429 or 5xx lowers it by a third, and the question is asked again after max(Retry-After, a jittered
back-off). A thread that has its reply takes the next question at once, without going round by the event
loop; waiting between attempts happens on the loop, so that a question that waits holds no thread. It keeps
its place, though: in an outage no new ones begin.

Judging ends for all, and stays ended, on a fatal failure, on a demanded wait of more than ten minutes, when
the allowed number of calls is used up, and when many questions in a row were lost after all their attempts.
"""

from __future__ import annotations

import asyncio
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
LOST_IN_A_ROW = 12
SHRINK = 2 / 3


class JudgingEnded(Exception):
    """Judging has ended. status: what the verdicts of unasked questions say."""

    def __init__(self, message: str, status: str = FAILED):
        super().__init__(message)
        self.status = status


@dataclass
class Limit:
    """How many questions may be in work.

    Two more for each clean reply until the first trouble, then one a round.
    """

    cap: int
    now: float = 0.0
    in_work: int = 0
    troubled: bool = False
    last_shrink: float = float("-inf")

    def __post_init__(self) -> None:
        self.now = float(min(START, self.cap))

    @property
    def free(self) -> bool:
        return self.in_work < int(self.now)

    def grow(self) -> None:
        self.now = min(float(self.cap), self.now + (1 / self.now if self.troubled else 2))

    def shrink(self, sent: float, at: float) -> None:
        """sent, at: when the failed request was sent and failed. One round of failures counts once."""
        if sent >= self.last_shrink:
            self.now, self.troubled, self.last_shrink = max(1.0, self.now * SHRINK), True, at


@dataclass
class Counters:
    """What happened so far. calls: requests sent. failures: failed requests by HTTP status or kind."""

    calls: int = 0
    retries: int = 0
    failures: dict[str, int] = field(default_factory=dict)


class _Paused(Exception):
    """The provider asked everybody to wait; this request was not sent."""


@dataclass
class _Item:
    job: Callable[[], Any]
    future: asyncio.Future[Any]


class Pool:
    """run(job) for jobs that make one request each.

    Clock, sleep and rng can be replaced, so that no test waits.
    """

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
        self._not_before = float("-inf")
        self._lost = 0
        # all below and the fields above are changed under the lock only; threads wait for `_ready`
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._again: deque[_Item] = deque()  # have a place already
        self._new: deque[_Item] = deque()
        self._threads = 0
        self._closed = False

    async def run(self, job: Callable[[], T]) -> T:
        """The job's result. Raises Failure when all attempts failed, JudgingEnded when none may be made."""
        attempt = 0
        has_place = False
        try:
            while True:
                try:
                    has_place, result = False, await self._submit(job, has_place)
                    return result
                except JudgingEnded:
                    has_place = False  # given back where it was noticed
                    raise
                except _Paused:
                    has_place = True
                    wait = self._not_before - self._clock()
                except Failure as failure:
                    has_place = True
                    attempt += 1
                    last = attempt == self._attempts
                    if failure.kind == "rejected" or (failure.kind == "retry" and last):
                        self._lose(failure)
                    if failure.kind != "retry" or last:
                        raise
                    if self.ended:
                        raise self.ended from None
                    self.counters.retries += 1
                    wait = max(failure.retry_after or 0.0, self._backoff(attempt - 1))
                await self._sleep(max(0.0, wait))
        finally:
            if has_place:
                self._leave()

    async def off_loop(self, job: Callable[[], T]) -> T:
        """A job of ours (opening a client, a look into the cache) in a thread, outside the limit."""
        return await asyncio.get_running_loop().run_in_executor(None, job)

    def end(self, message: str, status: str = FAILED) -> JudgingEnded:
        """Ends judging; the first reason stays."""
        if self.ended is None:
            self.ended = JudgingEnded(message, status)
        return self.ended

    def close(self) -> None:
        """Lets the threads go; one whose request hangs does not keep the process alive."""
        with self._lock:
            self._closed = True
            self._ready.notify_all()

    def _submit(self, job: Callable[[], T], has_place: bool) -> asyncio.Future[T]:
        item = _Item(job, asyncio.get_running_loop().create_future())
        with self._lock:
            if self._closed:
                raise self.end("closed")
            (self._again if has_place else self._new).append(item)
            self._ready.notify()
            # one thread for each place that the limit may ever give, no more than there are questions
            if self._threads < min(self.limit.cap, self.limit.in_work + len(self._again) + len(self._new)):
                self._threads += 1
                threading.Thread(target=self._work, name=f"judge-{self._threads}", daemon=True).start()
        return item.future

    def _leave(self) -> None:
        with self._lock:
            self.limit.in_work -= 1
            self._ready.notify()

    def _work(self) -> None:
        while (item := self._take()) is not None:
            result, error = None, None
            try:
                result = self._attempt(item.job)
            except BaseException as raised:
                error = raised
            try:
                item.future.get_loop().call_soon_threadsafe(_deliver, item.future, result, error)
            except RuntimeError:  # the loop has closed: nobody waits for this reply
                return

    def _take(self) -> _Item | None:
        with self._lock:
            while not (self._closed or self._again or (self._new and self.limit.free)):
                self._ready.wait()
            if self._closed:
                return None
            if self._again:
                return self._again.popleft()
            self.limit.in_work += 1
            return self._new.popleft()

    def _attempt(self, job: Callable[[], T]) -> T:
        """One request, in a thread. The place is given back with a result and where judging has ended."""
        with self._lock:
            if self._max_calls is not None and self.counters.calls >= self._max_calls:
                self.end(f"the allowed {self._max_calls} judge calls are made")
            if self.ended:
                self.limit.in_work -= 1
                raise self.ended
            sent = self._clock()
            if self._not_before > sent:
                raise _Paused
            self.counters.calls += 1
        try:
            result = job()
        except Failure as failure:
            with self._lock:
                ended = self._failed(failure, sent)
                if ended:
                    self.limit.in_work -= 1
                    raise ended from None
            raise
        with self._lock:
            self._lost = 0
            self.limit.grow()
            self.limit.in_work -= 1
            self._ready.notify(2)  # this thread takes one itself; the limit may have grown by two
        return result

    def _failed(self, failure: Failure, sent: float) -> JudgingEnded | None:
        """Counts a failure and draws the conclusions; returns the end of judging where this failure is it."""
        name = str(failure.status or failure.kind)
        self.counters.failures[name] = self.counters.failures.get(name, 0) + 1
        if failure.kind in ("fatal", "no_credentials"):
            self.end(str(failure), NO_CREDENTIALS if failure.kind == "no_credentials" else FAILED)
        if failure.kind == "retry":
            now = self._clock()
            self.limit.shrink(sent, now)
            wait = failure.retry_after or 0.0
            if wait > LONGEST_WAIT:
                until = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + wait))
                return self.end(f"{failure}: not to be asked again before {until}; run again then")
            # all wait, not only this one: the others would be refused as well
            self._not_before = max(self._not_before, now + wait)
        return None

    def _lose(self, failure: Failure) -> None:
        with self._lock:
            self._lost += 1
            if self._lost >= LOST_IN_A_ROW:
                self.end(f"{self._lost} questions in a row got no answer, the last one: {failure}")

    def _backoff(self, attempt: int) -> float:
        return min(LONGEST_BACKOFF, BACKOFF * 2**attempt) * self._rng.uniform(0.5, 1.5)


def _deliver(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
