"""The judge of a run: opens what the tasks name, asks each question once, keeps what was paid for, and
counts.

    specs = {"ragtruth.subset": "gpt-4o-mini@openai", "harmbench.subset": "gpt-4.1-mini@openai"}
    async with JudgeService(specs, JudgeOptions(cache_dir=Path("cache"))) as service:
        await service.check()                                   # one tiny question to each judge, before a
        run verdict = await service.for_task("harmbench.subset").ask("refusal_detection", prompt="…",
        response="…")
    service.summary()                                           # for run.json: judges, served models, counts

`ask` never raises because of a judge: what it did not get is a verdict without a value. Once judging has
ended (bad key, unknown model, no quota, the allowed calls are made) every further `ask` returns at once;
`service.ended` says why.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from evaluation.judge import FAILED, FILTERED, OK, REFUSED, TRUNCATED, UNREADABLE, Verdict
from evaluation.judge.backends import BACKENDS, Connection, Failure, Reply, connect
from evaluation.judge.cache import Cache, key
from evaluation.judge.modes import Question, question
from evaluation.judge.pool import JudgingEnded, Pool
from evaluation.judge.verdicts import declines

TEMPERATURE = 0.0
# a reply without text that ended at its token limit: a model that reasons first needs more room, from then on
ROOM = 4


class JudgeFatal(Exception):
    """Judging can't start or has ended; the message says why and what to do."""


@dataclass(frozen=True)
class JudgeOptions:
    """override: "MODEL@BACKEND" for every task. cache_dir: None keeps nothing. max_calls: requests of this
    run.

    repeat: how often quality.repeat asks each of at most `sample` questions a task again, those whose hash
    with `seed` is smallest; 0 keeps none.
    """

    override: str | None = None
    concurrency: int = 64
    cache_dir: Path | None = None
    max_calls: int | None = None
    repeat: int = 0
    sample: int = 40
    seed: int = 0


DEFAULTS = JudgeOptions()


@dataclass
class TaskCounts:
    """One task's questions. statuses: verdicts by status. cached: answered from disk. models: served ids."""

    asked: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Progress:
    """A look at a run. done.

    Verdicts given. waiting: asked and not answered. rate: verdicts a second from the wire.
    """

    done: int
    waiting: int
    rate: float
    failed: int
    retries: int
    prompt_tokens: int
    completion_tokens: int
    limit: int

    def line(self) -> str:
        """For the console: "412 judged, 3.1/s, 25 waiting (about 8 s), 2 failed, 310k tokens"."""
        left = f" (about {self.waiting / self.rate:.0f} s)" if self.rate > 0 and self.waiting else ""
        tokens = (self.prompt_tokens + self.completion_tokens) / 1000
        return (
            f"{self.done} judged, {self.rate:.1f}/s, {self.waiting} waiting{left}, {self.failed} failed, "
            f"{tokens:.0f}k tokens"
        )


def parse_spec(spec: str) -> tuple[str, str]:
    """("gpt-4o-mini", "openai") from "gpt-4o-mini@openai", split at the last @. Raises JudgeFatal."""
    model, at, backend = spec.strip().rpartition("@")
    backend = backend.lower()
    if not at or backend not in BACKENDS or (not model and backend not in ("gemini", "azure_openai")):
        raise JudgeFatal(
            f"judge {spec!r}: MODEL@BACKEND is needed, with one of the backends {', '.join(BACKENDS)}"
        )
    return model, backend


def override_specs(specs: Mapping[str, str], options: JudgeOptions) -> dict[str, str]:
    """task -> judge as it will be asked. Raises JudgeFatal where a setting names no backend."""
    made = {task: options.override or spec for task, spec in specs.items()}
    for spec in made.values():
        parse_spec(spec)
    return made


class JudgeService:
    """Opens judges when they are first asked. `pool` and `connections` are there for tests."""

    def __init__(
        self,
        specs: Mapping[str, str],
        options: JudgeOptions = DEFAULTS,
        pool: Pool | None = None,
        connections: Mapping[str, Connection] | None = None,
    ):
        """specs: task -> "MODEL@BACKEND". Raises JudgeFatal where a setting names no backend."""
        self.specs = override_specs(specs, options)
        self.options = options
        self.pool = pool or Pool(options.concurrency, max_calls=options.max_calls)
        self.counts: dict[str, TaskCounts] = {task: TaskCounts() for task in self.specs}
        self.cache: Cache | None = None
        self._connections: dict[str, Connection] = dict(connections or {})
        self._opening: dict[str, asyncio.Future[Connection]] = {}
        self._asking: dict[str, asyncio.Future[tuple[Reply, bool, float] | Exception]] = {}
        self._room: set[str] = set()
        self._sample: dict[str, dict[str, tuple[str, Question]]] = {}
        self._waiting = 0
        self._from_wire = 0
        self._started = time.monotonic()

    async def __aenter__(self) -> JudgeService:
        if self.options.cache_dir is not None and self.cache is None:
            folder = self.options.cache_dir
            try:
                self.cache = await self.pool.off_loop(lambda: Cache(folder))
            except Exception as error:
                raise JudgeFatal(f"judge cache {folder}: {error}; use another --judge_cache") from None
        return self

    async def __aexit__(self, *_: object) -> None:
        self.pool.close()
        if self.cache is not None:
            self.cache.close()

    @property
    def ended(self) -> str | None:
        """Why judging has ended; None while it goes on."""
        return str(self.pool.ended) if self.pool.ended else None

    @property
    def offline(self) -> bool:
        """Whether the offline demo judge answers any task: then results are not for reporting."""
        return any(parse_spec(spec)[1] == "builtin" for spec in self.specs.values())

    def for_task(self, task: str) -> TaskJudge:
        """The judge that a task's scorer receives. Raises KeyError for a task without a judge."""
        return TaskJudge(self, task, self.specs[task])

    async def check(self) -> dict[str, str]:
        """Asks each judge one tiny question, past the cache.

        Returns spec -> served model. Raises JudgeFatal.
        """
        asked = question("answer_equivalence", {"question": "1 + 1 = ?", "answer": "2", "gold": "2"})
        served: dict[str, str] = {}
        for spec in sorted(set(self.specs.values())):
            try:
                connection = await self._connection(spec)
                reply = await self.pool.run(lambda c=connection: c.call(asked, asked.max_tokens))
            except (Failure, JudgingEnded) as error:
                told = str(error)
                raise JudgeFatal(told if told.startswith("judge ") else f"judge {spec}: {told}") from None
            served[spec] = reply.model
        return served

    async def verdict(self, task: str, spec: str, asked: Question) -> Verdict:
        """The verdict on a question, from whoever asked it first, the cache, or the wire."""
        counts = self.counts[task]
        counts.asked += 1
        self._waiting += 1
        try:
            made = await self._verdict(spec, asked)
        finally:
            self._waiting -= 1
        counts.statuses[made.status] += 1
        counts.cached += made.cached
        counts.prompt_tokens += made.prompt_tokens
        counts.completion_tokens += made.completion_tokens
        if made.model:
            counts.models[made.model] += 1
        if self.options.repeat and made.status == OK:
            self._keep(task, spec, asked)
        return made

    def _keep(self, task: str, spec: str, asked: Question) -> None:
        """Of all questions those with the smallest hashes: the same ones, whatever the order they come in."""
        kept = self._sample.setdefault(task, {})
        kept[sha256(f"{self.options.seed} {asked.prompt}".encode()).hexdigest()] = (spec, asked)
        if len(kept) > self.options.sample:
            del kept[max(kept)]

    def sampled(self) -> list[tuple[str, str, Question]]:
        """(task, judge, question) of the seeded sample, in an order of its own."""
        return [(task, *kept[mark]) for task, kept in sorted(self._sample.items()) for mark in sorted(kept)]

    async def ask_again(self, spec: str, asked: Question) -> Reply | None:
        """A new reply to a question, neither from the cache nor into it; None where there was none."""
        try:
            connection = await self._connection(spec)
            reply, _, _ = await self.pool.run(_job(connection, None, "", asked, spec in self._room))
        except (Failure, JudgingEnded):
            return None
        return reply

    async def _verdict(self, spec: str, asked: Question) -> Verdict:
        model, backend = parse_spec(spec)
        mark = key(backend, model, {"temperature": TEMPERATURE, "max_tokens": asked.max_tokens}, asked)
        running = self._asking.get(mark)
        first = running is None
        if running is None:
            running = self._asking[mark] = asyncio.get_running_loop().create_future()
            try:
                outcome: Any = await self._reply(spec, mark, asked)
            except (Failure, JudgingEnded) as error:
                outcome = error
            except BaseException:
                running.cancel()
                del self._asking[mark]
                raise
            running.set_result(outcome)
            if isinstance(outcome, Exception):
                del self._asking[mark]  # the same question may be asked again
        outcome = await asyncio.shield(running)
        if isinstance(outcome, Exception):
            return Verdict(None, _status(outcome), reply=str(outcome), model="")
        reply, cached, seconds = outcome
        made = verdict_of(asked, reply)
        if first and not cached:
            return replace(made, seconds=seconds)
        # billed once only
        return replace(made, prompt_tokens=0, completion_tokens=0, cached=cached or not first)

    async def _reply(self, spec: str, mark: str, asked: Question) -> tuple[Reply, bool, float]:
        """(reply, whether it came from disk, seconds on the wire)."""
        cache = self._cache_for(spec)
        if cache is not None and (self.pool.ended or cache.may_hold(mark)):
            kept = await self.pool.off_loop(lambda: _kept(cache, mark, asked))
            if kept is not None:
                return kept, True, 0.0
        if self.pool.ended:
            raise self.pool.ended
        connection = await self._connection(spec)
        room = spec in self._room
        reply, cached, seconds = await self.pool.run(_job(connection, cache, mark, asked, room))
        if reply.finish == "length" and not (reply.text or "").strip() and not room:
            if spec not in self._room:
                self._room.add(spec)
                connection.adaptations.append(
                    f"{ROOM} times as many tokens: a reply ended before its text began"
                )
            reply, cached, seconds = await self.pool.run(_job(connection, cache, mark, asked, True))
        self._from_wire += not cached
        return reply, cached, seconds

    def _cache_for(self, spec: str) -> Cache | None:
        """The offline judge costs nothing: its replies are not kept, so that its rules may change."""
        return None if parse_spec(spec)[1] == "builtin" else self.cache

    async def _connection(self, spec: str) -> Connection:
        """Opened once, in a thread: an SDK's import takes its time."""
        if spec in self._connections:
            return self._connections[spec]
        opening = self._opening.get(spec)
        if opening is None:
            model, backend = parse_spec(spec)
            opening = self._opening[spec] = asyncio.ensure_future(
                self.pool.off_loop(lambda: connect(model, backend))
            )
        try:
            connection = await asyncio.shield(opening)
        except Failure as error:
            status = "no_credentials" if error.kind == "no_credentials" else FAILED
            raise self.pool.end(f"judge {spec}: {error}", status) from None
        except ImportError as error:
            raise self.pool.end(f"judge {spec}: {error}; install requirements.txt") from None
        self._connections[spec] = connection
        return connection

    def progress(self) -> Progress:
        """A look at the run so far."""
        counts = self.counts.values()
        done = sum(sum(c.statuses.values()) for c in counts)
        good = sum(c.statuses[OK] for c in counts)
        passed = time.monotonic() - self._started
        return Progress(
            done,
            self._waiting,
            self._from_wire / passed if passed > 0 else 0.0,
            done - good,
            self.pool.counters.retries,
            sum(c.prompt_tokens for c in counts),
            sum(c.completion_tokens for c in counts),
            int(self.pool.limit.now),
        )

    def summary(self) -> dict[str, Any]:
        """JSON for run.json: per task the judge, served models, verdicts by status and tokens.

        And the whole run.
        """
        tasks = {
            task: {
                "judge": self.specs[task],
                "asked": counts.asked,
                "judged": counts.statuses[OK],
                "cached": counts.cached,
                "statuses": dict(sorted(counts.statuses.items())),
                "served_models": dict(sorted(counts.models.items())),
                "prompt_tokens": counts.prompt_tokens,
                "completion_tokens": counts.completion_tokens,
            }
            for task, counts in self.counts.items()
            if counts.asked
        }
        made: dict[str, Any] = {
            "tasks": tasks,
            "calls": self.pool.counters.calls,
            "retries": self.pool.counters.retries,
            "failed_calls": dict(sorted(self.pool.counters.failures.items())),
            "adaptations": {s: list(c.adaptations) for s, c in self._connections.items() if c.adaptations},
            "temperature": TEMPERATURE,
            "ended": self.ended,
        }
        if self.offline:
            made["notice"] = OFFLINE_NOTICE
        return made


OFFLINE_NOTICE = "offline demo judge, not for reporting"


class TaskJudge:
    """ask() for one task. Safe for any number of coroutines on one loop."""

    def __init__(self, service: JudgeService, task: str, spec: str):
        self._service = service
        self.task = task
        self.spec = spec

    async def ask(self, mode: str, **fields: Any) -> Verdict:
        """See judge/__init__.py. Raises ValueError only for a mode or fields that do not exist."""
        return await self._service.verdict(self.task, self.spec, question(mode, fields))


def _kept(cache: Cache, mark: str, asked: Question) -> Reply | None:
    """The reply on disk; None also for one that is no longer read as a whole verdict."""
    kept = cache.get(mark)
    return kept if kept is not None and asked.whole(kept.text or "") else None


def _job(
    connection: Connection, cache: Cache | None, mark: str, asked: Question, room: bool
) -> Callable[[], tuple[Reply, bool, float]]:
    """One request and what belongs to it, for a thread.

    Another run may have asked by now; a good reply is kept.
    """

    def job() -> tuple[Reply, bool, float]:
        kept = _kept(cache, mark, asked) if cache is not None else None
        if kept is not None:
            return kept, True, 0.0
        started = time.perf_counter()
        try:
            reply = connection.call(asked, asked.max_tokens * (ROOM if room else 1))
        except Failure:
            raise
        except Exception as error:  # whatever else an SDK raises costs this question, not the run
            raise Failure("rejected", f"{type(error).__name__}: {error}") from None
        seconds = time.perf_counter() - started
        if cache is not None and reply.finish == "stop" and asked.whole(reply.text or ""):
            cache.put(mark, asked.mode, reply)
        return reply, False, seconds

    return job


def verdict_of(asked: Question, reply: Reply) -> Verdict:
    """What a reply amounts to."""
    text = reply.text or ""
    counted = {
        "reply": text,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "model": reply.model,
    }
    if reply.finish in ("filtered", "refused"):
        return Verdict(None, FILTERED if reply.finish == "filtered" else REFUSED, **counted)
    if reply.finish == "length":
        return Verdict(None, TRUNCATED, **counted)
    value = asked.read(text)
    if value is not None:
        return Verdict(value, OK, **counted)
    return Verdict(None, REFUSED if declines(text) else UNREADABLE, **counted)


def _status(error: Exception) -> str:
    if isinstance(error, JudgingEnded):
        return error.status
    if isinstance(error, Failure) and error.kind == "filtered":
        return FILTERED
    return "no_credentials" if isinstance(error, Failure) and error.kind == "no_credentials" else FAILED
