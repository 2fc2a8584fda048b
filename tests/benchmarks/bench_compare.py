"""Three adapted models, 37 tasks of 500 samples: seconds and memory of a whole comparison in its own process.

    python tests/benchmarks/bench_compare.py

Aim: intervals, tables and pictures under 15 s on two cores and under 1 GiB. Prints one line; ends with 1
where the aim is missed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests import synthetic  # noqa: E402

SAMPLES, SECONDS, MEBIBYTES = 500, 15, 1024


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for seed, name in enumerate(("base", "one", "two", "three"), 1):
            synthetic.model(folder, name, -0.05 * seed, n=SAMPLES, run_seed=seed)
        command = [sys.executable, "compare_models.py", "--base", folder / "base", "--adapted"]
        command += [folder / name for name in ("one", "two", "three")]
        started = time.perf_counter()
        subprocess.run(
            [*command, "--output", folder / "out", "--save_excel"], cwd=ROOT, check=True, capture_output=True
        )
        seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    mebibytes = used.ru_maxrss / 1024
    cpu = used.ru_utime + used.ru_stime
    print(
        f"3 models x 37 tasks x {SAMPLES} samples: {seconds:.1f} s wall, {cpu:.1f} s CPU, {mebibytes:.0f} MiB"
    )
    return int(seconds > SECONDS or mebibytes > MEBIBYTES)


if __name__ == "__main__":
    raise SystemExit(main())
