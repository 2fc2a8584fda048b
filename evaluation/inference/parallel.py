"""Several engines on one machine, each a process with GPUs of its own; the parent shares out the samples.

    parent ─ stdin ─► {"arguments": {…}, "adapter": null, "cores": []}        once, then vLLM starts
                      {"sampling": {"temperature": 0.0, …}}                   once
                      {"name": ["boolq.subset", "7", 1], "ids": [1, 31, …], "max_tokens": 64}
    parent ◄─ pipe ── {"ready": true, "window": 32768, "at_once": 256, "seconds": 41.2}
                      {"name": ["boolq.subset", "7", 1], "text": "yes", "finish_reason": "stop", …}

Engines behaves as engine.Engine does, so that the parent alone writes files. vLLM's own data parallelism is
made for servers of mixture-of-experts models and refuses dense ones offline; these processes know nothing of
each other. A sample is handed out when an engine has room for it, so a slow engine takes fewer. An engine
that dies is started again, and what it had in hand goes back to the head of the queue; a sample that kills
every engine is found out by being asked alone, and costs itself only.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import selectors
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evaluation.inference.engine import (
    Completion,
    Engine,
    EngineError,
    Failure,
    Name,
    Request,
    Sampling,
    load_vllm,
)

log = logging.getLogger("captrack.inference")

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (
    sys.executable,
    "-c",
    f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom evaluation.inference.parallel import main\nmain()",
)
# a sample that was in hand at so many deaths is asked alone from then on, and given up at the next one
SUSPECT = 2
# so often an engine may die without an answer between; more often than one sample may kill it
DEATHS = 4
PATIENCE = 15.0  # seconds that an engine gets to end by itself


@dataclass(frozen=True)
class Place:
    """What one engine has for itself. environment: of its process; cores: empty where it is not bound."""

    environment: dict[str, str]
    cores: tuple[int, ...] = ()


def places(count: int, gpus_each: int, gpus: Sequence[str], cores: Sequence[int]) -> list[Place]:
    """`count` places of `gpus_each` GPUs; without GPUs, equal shares of the cores (vLLM's CPU build).

    gpus: as CUDA_VISIBLE_DEVICES names them. ["0", "1", "2", "3"] for 2 × 2 gives "0,1" and "2,3".
    """
    if gpus:
        slices = [gpus[n * gpus_each : (n + 1) * gpus_each] for n in range(count)]
        return [Place({"CUDA_VISIBLE_DEVICES": ",".join(part)}) for part in slices]
    share = max(1, len(cores) // (count * gpus_each))  # of one worker
    out = []
    for number in range(count):
        part = tuple(cores[number * share * gpus_each : (number + 1) * share * gpus_each])
        workers = (part[n * share : (n + 1) * share] for n in range(gpus_each))
        bind = "|".join(",".join(map(str, worker)) for worker in workers)
        out.append(Place({"OMP_NUM_THREADS": str(share), "VLLM_CPU_OMP_THREADS_BIND": bind}, part))
    return out


def gpu_names(count: int, visible: str | None) -> list[str]:
    """The first `count` entries of CUDA_VISIBLE_DEVICES; without it the GPUs are 0, 1, 2, …"""
    if visible is None:
        return [str(number) for number in range(count)]
    return [part.strip() for part in visible.split(",")][:count]


# --- the parent


@dataclass
class _Child:
    """One engine's process and what it has in hand. deaths: in a row, without an answer between them."""

    number: int
    place: Place
    process: subprocess.Popen[bytes] | None = None
    pipe: int = -1
    rest: bytes = b""
    ready: bool = False
    told: bool = False
    at_once: int = 0
    deaths: int = 0
    why: str = ""
    flying: dict[Name, Request] = field(default_factory=dict)


class Engines:
    """Several engines as one; see engine.Engine for window, seconds, start_seconds and run."""

    def __init__(
        self,
        arguments: dict[str, Any],
        adapter: str | None,
        where: Sequence[Place],
        command: Sequence[str] = COMMAND,
    ):
        """Waits until every engine has started or failed; EngineError where none did start.

        arguments, adapter: as of engine.Engine. command: runs `serve` with the number of a pipe behind it.
        """
        began = time.perf_counter()
        self._hello = {"arguments": arguments, "adapter": adapter}
        self._command = list(command)
        self._children = [_Child(number, place) for number, place in enumerate(where, 1)]
        self._selector = selectors.DefaultSelector()
        self._queue: deque[Request] = deque()
        self._lost: Counter[Name] = Counter()
        self.window = 0
        try:
            for child in self._children:
                self._start(child)
            while any(child.process and not child.ready for child in self._children):
                for _ in self._listen():
                    pass
            if not any(child.ready for child in self._children):
                raise EngineError(self._children[0].why)
        except BaseException:
            self.close()
            raise
        self.seconds = self.start_seconds = time.perf_counter() - began

    def run(
        self, requests: Iterable[Request], sampling: Sampling
    ) -> Iterator[tuple[Name, Completion | Failure]]:
        """Answers of all engines as they are finished. EngineError where none is left.

        sampling: one and the same for the life of the engines.
        """
        self._queue.extend(requests)
        while self._queue or any(child.flying for child in self._children):
            began = time.perf_counter()
            try:
                self._revive()
                self._feed(sampling)
                finished = list(self._listen())
            finally:
                self.seconds += time.perf_counter() - began
            yield from finished

    def close(self) -> None:
        """Ends the processes: those with nothing in hand by themselves, the others at once."""
        for child in self._children:
            if child.process and child.ready and not child.flying:
                self._send(child, {"end": True})
            elif child.process:
                child.process.terminate()
        limit = time.monotonic() + PATIENCE
        for child in self._children:
            if child.process:
                with suppress(subprocess.TimeoutExpired):
                    child.process.wait(max(0.1, limit - time.monotonic()))
                self._bury(child)
        self._selector.close()

    def _start(self, child: _Child) -> None:
        receive, send = os.pipe()
        prefix = {"VLLM_LOGGING_PREFIX": f"[engine {child.number}] "}
        try:
            child.process = subprocess.Popen(
                [*self._command, str(send)],
                env=prefix | os.environ | child.place.environment,
                stdin=subprocess.PIPE,
                stdout=2,  # vLLM's own lines
                pass_fds=[send],
                start_new_session=True,  # so that what the engine starts can be ended with it
            )
        finally:
            os.close(send)
        os.set_blocking(receive, False)
        child.pipe, child.rest, child.ready, child.told, child.why = receive, b"", False, False, ""
        self._selector.register(receive, selectors.EVENT_READ, child)
        self._send(child, {**self._hello, "cores": list(child.place.cores)})
        log.info("engine %d of %d: process %d, %s", child.number, len(self._children), child.process.pid,
                 ", ".join(f"{k}={v}" for k, v in child.place.environment.items()))  # fmt: skip

    def _revive(self) -> None:
        for child in self._children:
            if child.process is None and child.deaths < DEATHS:
                self._start(child)
        if all(child.process is None for child in self._children):
            raise EngineError(f"no engine is left: {self._children[-1].why}")

    def _feed(self, sampling: Sampling) -> None:
        """Gives every engine as much as it can batch, and never more than its share of what is left."""
        alive = [child for child in self._children if child.process]
        left = len(self._queue) + sum(len(child.flying) for child in alive)
        share = -(-left // len(alive))
        for child in alive:
            room = min(child.at_once + child.at_once // 4 + 1, share) if child.ready else 0
            if room and not child.told:
                self._send(child, {"sampling": asdict(sampling)})
                child.told = True
            while self._queue and len(child.flying) < room and not self._must_wait(child):
                request = self._queue.popleft()
                child.flying[request.name] = request
                ids = request.ids.tolist()
                self._send(child, {"name": request.name, "ids": ids, "max_tokens": request.max_tokens})

    def _must_wait(self, child: _Child) -> bool:
        """Whether the next sample, or the one in hand, is to be asked alone."""
        if not child.flying:
            return False
        names = (self._queue[0].name, next(iter(child.flying)))
        return any(self._lost[name] >= SUSPECT for name in names)

    def _listen(self) -> Iterator[tuple[Name, Completion | Failure]]:
        """Answers that have come, waiting at most a second for the first; looks after the dead."""
        heard = [key.data for key, _ in self._selector.select(1.0)]
        for child in self._children:
            if child.process is None:
                continue
            gone = child.process.poll() is not None  # asked before reading, so that no last word is missed
            if gone or child in heard:
                for message in self._read(child):
                    yield from self._take(child, message)
                    gone = gone or "end" in message
            if gone:
                yield from self._mourn(child)

    def _read(self, child: _Child) -> Iterator[dict[str, Any]]:
        """The whole messages in the pipe; {"end": True} where it is closed."""
        while True:
            try:
                data = os.read(child.pipe, 2**20)
            except BlockingIOError:
                return
            *lines, child.rest = (child.rest + data).split(b"\n")
            yield from map(json.loads, lines)
            if not data:
                yield {"end": True}
                return

    def _take(self, child: _Child, message: dict[str, Any]) -> Iterator[tuple[Name, Completion | Failure]]:
        if "ready" in message:
            child.ready, child.at_once = True, message["at_once"]
            self.window = min(self.window or message["window"], message["window"])
        elif "error" in message:
            child.why = message["error"]
        elif "name" in message:
            name = tuple(message.pop("name"))
            child.flying.pop(name)
            child.deaths = 0
            yield name, Failure(**message) if "message" in message else Completion(**message)

    def _mourn(self, child: _Child) -> Iterator[tuple[Name, Completion | Failure]]:
        """Takes the dead engine's work back, but for a sample that has seen too many engines die."""
        assert child.process
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(1)  # it may have said its last word and be about to end
        status = self._bury(child)
        child.deaths += 1
        child.why = child.why or f"its process ended with {_ending(status)}"
        what = "is started again" if child.deaths < DEATHS else "is given up"
        log.warning("engine %d of %d %s: %s", child.number, len(self._children), what, child.why)
        flying, child.flying = child.flying, {}
        for name, request in reversed(flying.items()):
            self._lost[name] += 1
            if self._lost[name] <= SUSPECT:
                self._queue.appendleft(request)
            else:
                yield name, Failure(f"{self._lost[name]} engines died with it in hand: {child.why}")

    def _bury(self, child: _Child) -> int:
        """Ends whatever is left of the process and of what it started; gives its exit status."""
        process = child.process
        assert process and process.stdin
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        with suppress(OSError):
            process.stdin.close()
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        child.process, child.ready = None, False
        return status

    def _send(self, child: _Child, message: dict[str, Any]) -> None:
        assert child.process and child.process.stdin
        with suppress(OSError):  # it has died, which is noticed when listening
            child.process.stdin.write(json.dumps(message).encode() + b"\n")
            child.process.stdin.flush()


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    name = signal.Signals(-status).name
    return f"{name} (out of memory?)" if -status == signal.SIGKILL else name


# --- an engine's process


def serve(make_engine: Callable[[dict[str, Any], str | None], Any]) -> None:
    """The life of one engine's process: start, then answer what comes until told to end.

    make_engine: engine.Engine, or what behaves like it. The last argument on the command line is the number
    of the pipe for answers. Where the parent dies, this process ends with all that it has started.
    """
    pipe = int(sys.argv[-1])
    os.set_inheritable(pipe, False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    out = os.fdopen(pipe, "w", encoding="utf-8")

    def tell(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    hello = json.loads(sys.stdin.buffer.readline())
    if hello["cores"]:
        os.sched_setaffinity(0, hello["cores"])  # before any thread of the engine's exists
    incoming: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(incoming,), daemon=True).start()
    try:
        engine = make_engine(hello["arguments"], hello["adapter"])
        at_once, seconds = engine.at_once, engine.start_seconds
        tell({"ready": True, "window": engine.window, "at_once": at_once, "seconds": seconds})
        first = incoming.get()
        if first is None:
            return
        flying: set[Name] = set()
        for name, outcome in engine.run(_requests(incoming, flying), Sampling(**first["sampling"])):
            flying.discard(name)
            tell({"name": name, **asdict(outcome)})
    except EngineError as error:
        tell({"error": str(error)})
        sys.exit(1)


def _receive(incoming: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "end" in message:
            incoming.put(None)
            return
        incoming.put(message)
    os.killpg(0, signal.SIGKILL)  # the parent is gone, and nobody waits for an answer


def _requests(
    incoming: queue.SimpleQueue[dict[str, Any] | None], flying: set[Name]
) -> Iterator[Request | None]:
    """What has come in; None while there is nothing new and the engine has something to do."""
    while True:
        try:
            message = incoming.get(block=not flying)
        except queue.Empty:
            yield None
            continue
        if message is None:
            return
        name = tuple(message["name"])
        flying.add(name)
        yield Request(name, array("I", message["ids"]), message["max_tokens"])


def _engine(arguments: dict[str, Any], adapter: str | None) -> Engine:
    load_vllm()
    return Engine(arguments, adapter)


def main() -> None:
    serve(_engine)
