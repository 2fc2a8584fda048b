"""What a second engine on a second core gives: samples a second of two engines against one, as a ratio.

    .venv-vllm/bin/python tests/benchmarks/bench_parallel.py [PROMPTS] [REPEATS]

A tiny model on vLLM's CPU build, where an engine is bound by its one core: two can reach 2.0 at most, less
what the parent needs of the same two cores, and less the end, where one engine waits for the other. Runs
alternate, and the best of each kind counts. Only the time between the engines' start and the last answer is
taken. Where others use the machine, two engines lose more to them than one does: so the ratio that two free
cores would give is printed beside it, from the processor time of all processes (that of a run of 8 prompts,
which is the start's, taken off). Ends with 1 where the measured ratio is under 1.6.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
LEAST = 1.6


def main(prompts: int, repeats: int) -> int:
    from tests.inference.conftest import ENGINE, ENVIRONMENT, manifest, start, write_task
    from tests.inference.tiny_model import make_model

    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        print("needs two cores")
        return 1
    os.environ.update(ENVIRONMENT)
    words = ["river", "hill", "story", "question", "answer", "capital", "number", "step", "short", "long"]
    speeds: dict[int, list[float]] = {1: [], 2: []}
    used: dict[tuple[int, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        model = make_model(root / "model", window=2048)
        asked = [" ".join(words[(n * k + k) % 10] for k in range(1, 60 + n % 80)) for n in range(prompts)]
        rows = [{"id": str(n), "formatted_prompt": f"{n}: {text}"} for n, text in enumerate(asked)]
        write_task(root / "data", "ifeval.subset", rows)
        engine = json.dumps(ENGINE | {"kv_cache_memory_bytes": 2**29})
        plan = [(engines, count) for count in (8, *[prompts] * repeats) for engines in (1, 2)]
        for number, (engines, count) in enumerate(plan):
            out = root / str(number)
            options = ["--model", model, "--dataset", root / "data", "--output_dir", out, "--name", "m"]
            options += ["--tasks", "ifeval.subset", "--max_tokens", 128, "--vllm_kwargs", engine]
            options += ["--data_parallel_size", engines, "--limit", count]
            before = processor_seconds()
            process = start(*(str(option) for option in options))
            _, error = process.communicate()
            if process.returncode:
                print(error)
                return 1
            used.setdefault((engines, count), []).append(processor_seconds() - before)
            run = manifest(out / "m")["runs"][0]
            speed = run["samples"] / run["engine_seconds"]
            if count == prompts:
                speeds[engines].append(speed)
            print(
                f"{engines} engine(s), {count} prompts: {speed:.1f} samples/s, {run['engine_seconds']:.1f} s"
                f" after a start of {run['engine_start_seconds']:.1f} s, {used[engines, count][-1]:.1f} s of"
                f" processor; load {os.getloadavg()[0]:.1f} on {cores} cores"
            )
    one, two = (min(used[n, prompts]) - used[n, 8][0] for n in (1, 2))
    ratio = max(speeds[2]) / max(speeds[1])
    print(f"two engines / one engine: {ratio:.2f}; on two cores of their own {2 * one / two:.2f}")
    return int(ratio < LEAST)


def processor_seconds() -> float:
    """Of all processes that this one has started and that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:3]]
    sys.exit(main(*(given + [2000, 2][len(given) :])))
