"""How full the judge keeps the line: questions a second at 64 in flight against a local server that takes
200 ms.

    python -m tests.benchmarks.bench_judge [QUESTIONS] [ROUNDS]

For each SDK two ways are measured in turn, round by round: bare threads (64 threads, one shared client,
nothing else) and the judge service with its pool, limit and cache. Printed: both rates, their ratio (to
reach: 0.90) and the share of the ceiling 64 / 0.2 s = 320 a second (to reach: 0.70).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from evaluation.judge.backends import Connection, bedrock, gemini, openai
from evaluation.judge.modes import question
from evaluation.judge.service import JudgeOptions, JudgeService

ROOT = Path(__file__).resolve().parents[2]
IN_FLIGHT, DELAY = 64, 0.2
CEILING = IN_FLIGHT / DELAY


def fields(tag: str, number: int) -> dict[str, str]:
    return {"question": "", "answer": "2", "gold": f"{tag} {number} " + "some words of a gold answer " * 20}


def bare(made: Connection, count: int, tag: str) -> float:
    """Questions a second through threads that do nothing but call."""
    questions = iter([question("answer_equivalence", fields(tag, n)) for n in range(count)])
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                asked = next(questions, None)
            if asked is None:
                return
            made.call(asked, 100)

    threads = [threading.Thread(target=work) for _ in range(IN_FLIGHT)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - started)


def service(made: Connection, count: int, tag: str) -> float:
    """Questions a second through the judge service, from its first question on (the limit starts at 16)."""
    spec = f"m@{made.backend}"

    async def run() -> float:
        with tempfile.TemporaryDirectory() as folder:
            options = JudgeOptions(concurrency=IN_FLIGHT, cache_dir=Path(folder))
            async with JudgeService({"t": spec}, options, connections={spec: made}) as judge_service:
                judge = judge_service.for_task("t")
                started = time.perf_counter()
                asked = (judge.ask("answer_equivalence", **fields(tag, n)) for n in range(count))
                verdicts = await asyncio.gather(*asked)
                passed = time.perf_counter() - started
        assert all(verdict.value is True for verdict in verdicts)
        return count / passed

    return asyncio.run(run())


def connections(url: str) -> dict[str, Connection]:
    """One shared client each, pointed at the local server."""
    from google.oauth2.credentials import Credentials

    os.environ.update(
        OPENAI_API_KEY="x",
        OPENAI_BASE_URL=f"{url}/v1",
        AWS_ACCESS_KEY_ID="x",
        AWS_SECRET_ACCESS_KEY="x",
        AWS_REGION="us-east-1",
        AWS_ENDPOINT_URL_BEDROCK_RUNTIME=url,
        GOOGLE_CLOUD_PROJECT="p",
        GOOGLE_VERTEX_BASE_URL=url,
    )
    os.environ.pop("AWS_BEARER_TOKEN_BEDROCK", None)
    return {
        "openai": openai.connect("m"),
        "bedrock": bedrock.connect("m"),
        "gemini": gemini.connect("m", credentials=Credentials(token="x")),
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1920
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    command = [sys.executable, "-m", "tests.judge_server", str(DELAY)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        made = connections(f"http://127.0.0.1:{server.stdout.readline().strip()}")
        for name, one in made.items():
            bare(one, IN_FLIGHT * 2, f"warm {name}")
            rates: dict[str, list[float]] = {"bare": [], "service": []}
            for number in range(rounds):
                rates["bare"].append(bare(one, count, f"bare {number}"))
                rates["service"].append(service(one, count, f"service {number}"))
            plain, ours = median(rates["bare"]), median(rates["service"])
            print(
                f"{name:8} bare {plain:6.1f}/s  service {ours:6.1f}/s  service/bare {ours / plain:.3f}  "
                f"service/ceiling {ours / CEILING:.3f}",
                flush=True,
            )
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
