"""Times 600 programs in the sandbox, ten of which hang, against as many bare starts of the interpreter.

python tests/benchmarks/bench_code.py [RUNS IN FLIGHT, default twice the cores]
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from evaluation import sandbox
from evaluation.rows import Row, make_row
from evaluation.scorers.code import LIMITS, score

PROGRAMS, HANGING = 600, 10


def rows() -> list[Row]:
    tests = "def check(candidate):\n    assert candidate([3, 1]) == [1, 3]\n    assert candidate([]) == []\n"
    honest = "Here it is:\n```python\ndef order(items: list) -> list:\n    return sorted(items)\n```\nDone."
    hanging = "def order(items):\n    while True:\n        pass"
    places = {number * PROGRAMS // HANGING for number in range(HANGING)}
    answers = [hanging if number in places else honest for number in range(PROGRAMS)]
    return [
        make_row("humaneval.full", {"outputs": answer, "ctx": [tests, "order"]}, number)
        for number, answer in enumerate(answers)
    ]


def spawn(_: int) -> None:
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)


def timed(function, items, in_flight: int) -> tuple[float, float, list]:
    """(wall seconds, the children's processor seconds, results)."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with ThreadPoolExecutor(in_flight) as pool:
        results = list(pool.map(function, items))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, used, results


def main() -> int:
    cores = os.cpu_count() or 1
    in_flight = int(sys.argv[1]) if len(sys.argv) > 1 else 2 * cores
    print(f"sandbox: {sandbox.probe()}; {cores} cores, {in_flight} in flight")
    bare, bare_used, _ = timed(spawn, range(PROGRAMS), in_flight)
    honest = [row for row in rows() if "while" not in row.answer]
    quick, quick_used, verdicts = timed(score, honest, in_flight)
    assert all(verdict["correct"] for verdict in verdicts)
    whole, _, verdicts = timed(score, rows(), in_flight)
    timeouts = sum(verdict["reason"] == "timeout" for verdict in verdicts)
    assert timeouts == HANGING and sum(verdict["correct"] for verdict in verdicts) == PROGRAMS - HANGING
    limits = HANGING * LIMITS.cpu_seconds / cores
    print(f"{PROGRAMS} bare starts of the interpreter  {bare:6.1f} s   {bare_used:5.1f} s of processor time")
    # of processor time: on a shared machine wall time says little
    ratio = quick_used / bare_used * PROGRAMS / len(honest)
    used = f"{quick_used:5.1f} s of processor time, {ratio:.1f} x a bare start"
    print(f"{len(honest)} programs that end               {quick:6.1f} s   {used}")
    print(
        f"{PROGRAMS} programs, {HANGING} hang               {whole:6.1f} s   {limits:.0f} s of it at limits"
    )
    good = whole < 60 + limits
    print("under 60 s plus limits" if good else "OVER 60 s plus limits")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
