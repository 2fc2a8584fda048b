"""How much of a run is not vLLM's: 2,000 prompts through run_inference.py with a tiny model on the CPU.

    .venv-vllm/bin/python tests/benchmarks/bench_inference.py [PROMPTS]

A tiny model is the hardest case: the engine's own steps are as short as they get, so whatever the script does
beside them weighs most. Prints the parts of the wall time and ends with 1 where more than 5 % is spent
outside the engine (its steps, its start, and the imports of vLLM and transformers, which every user of the
engine pays).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
MOST = 0.05


def main(prompts: int) -> int:
    from tests.inference.conftest import ENGINE, ENVIRONMENT, manifest, write_task
    from tests.inference.tiny_model import make_model

    os.environ.update(ENVIRONMENT)
    import run_inference

    words = ["river", "hill", "story", "question", "answer", "capital", "number", "step", "short", "long"]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        model = make_model(root / "model", window=2048)
        asked = [" ".join(words[(n * k + k) % 10] for k in range(1, 60 + n % 80)) for n in range(prompts)]
        rows = [{"id": str(n), "formatted_prompt": f"{n}: {text}"} for n, text in enumerate(asked)]
        write_task(root / "data", "ifeval.subset", rows)
        options = ["--model", model, "--dataset", root / "data", "--output_dir", root, "--name", "m"]
        options += [
            "--max_tokens",
            128,
            "--vllm_kwargs",
            json.dumps(ENGINE | {"kv_cache_memory_bytes": 2**29}),
        ]
        if run_inference.main([str(option) for option in options]) != 0:
            return 1
        run = manifest(root / "m")["runs"][0]
    outside = run["outside_engine_seconds"]
    counted = ("samples", "output_tokens", "tokens_per_second")
    for name in (*counted, "seconds", "import_seconds", "engine_start_seconds"):
        print(f"{name}: {run[name]}")
    steps = run["engine_seconds"]
    print(f"engine steps: {steps} s; outside the engine: {outside} s")
    of_wall, of_work = outside / run["seconds"], outside / (outside + steps)
    print(f"{of_wall:.1%} of the wall time, {of_work:.1%} of steps and script alone")
    return int(outside > MOST * run["seconds"])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
