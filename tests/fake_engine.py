"""An engine's process without vLLM: `python tests/fake_engine.py PIPE`, started by parallel.Engines in tests.

Its "arguments" say how it behaves: at_once; window; refuses (text, or number → text, by engine); dies_at (key
of the sample at which the process is killed) with once (a file that is made so that it dies but once);
dies_starting (numbers of engines that are killed on every start but the first).
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evaluation.inference.engine import Completion, EngineError, Failure
from evaluation.inference.parallel import serve

NUMBER = re.sub(r"\D", "", os.environ["VLLM_LOGGING_PREFIX"])


class FakeEngine:
    def __init__(self, arguments, adapter=None):
        self.arguments, self.adapter = arguments, adapter
        self.window, self.at_once, self.start_seconds = (
            arguments.get("window", 100),
            arguments["at_once"],
            0.0,
        )
        text = arguments.get("refuses", {})
        text = text.get(NUMBER) if isinstance(text, dict) else text
        if text:
            raise EngineError(text)
        if folder := arguments.get("folder"):
            started = Path(folder) / f"started-{NUMBER}"
            if NUMBER in arguments.get("dies_starting", ()) and started.exists():
                os.kill(os.getpid(), signal.SIGKILL)
            started.touch()

    def run(self, requests, sampling):
        """Answers every sample with its key, the ids and what it knows of its place, newest first."""
        waiting, batch = iter(requests), []
        while True:
            while (request := next(waiting, None)) is not None:
                batch.append(request)
            if not batch:
                return
            request = batch.pop()
            self._perhaps_die(request)
            if request.max_tokens == 0:
                yield request.name, Failure("nothing to say")
                continue
            place = os.environ.get("CUDA_VISIBLE_DEVICES"), sorted(os.sched_getaffinity(0)), self.adapter
            text = f"{request.name[1]} {request.ids.tolist()} {sampling.temperature} {place} {NUMBER}\u2028"
            yield request.name, Completion(text, "stop", len(request.ids), 1)

    def _perhaps_die(self, request):
        if request.name[1] != self.arguments.get("dies_at"):
            return
        if once := self.arguments.get("once"):
            if Path(once).exists():
                return
            Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(FakeEngine)
