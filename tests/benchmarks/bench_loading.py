"""How fast JSON Lines loads, beside a bare json.loads loop, and how much memory a 500 MB file takes.

    python tests/benchmarks/bench_loading.py [MEGABYTES]

Example output: jsonl: 502 MB, loads 347 MB/s, peak memory 206 MB; bare json.loads loop 495 MB/s, ratio 0.70
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def write(folder: Path, megabytes: int) -> dict[str, Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = "The model answers at some length, with café and “quotes”. "
    row = {
        "prompt": words * 15,
        "formatted_prompt": words * 16,
        "ctx": None,
        "gold": "12",
        "outputs": words * 40,
    }
    n = megabytes * 1_000_000 // len(json.dumps(row, ensure_ascii=False).encode())
    jsonl, parquet = folder / "popqa.subset.jsonl", folder / "popqa.subset.parquet"
    with open(jsonl, "w", encoding="utf-8") as handle:
        for i in range(n):
            handle.write(json.dumps({"id": f"q{i}", **row}, ensure_ascii=False) + "\n")
    schema = pa.schema([("id", pa.string()), *((k, pa.string()) for k in row)])
    with pq.ParquetWriter(parquet, schema, compression="none", use_dictionary=False) as out:
        for start in range(0, n, 5000):
            part = [{"id": f"q{i}", **row} for i in range(start, min(n, start + 5000))]
            out.write_table(pa.Table.from_pylist(part, schema=schema))
    return {"jsonl": jsonl, "parquet": parquet}


def bare(path: Path) -> None:
    with open(path, "rb") as handle:
        for line in handle:
            json.loads(line)


def load(path: Path) -> None:
    from evaluation.responses import ResponseFile, format_of

    for _ in ResponseFile("popqa.subset", path, format_of(path)).rows():
        pass


def main() -> None:
    if len(sys.argv) == 3:  # a child: do one thing, print seconds and peak memory
        action, path = sys.argv[1], Path(sys.argv[2])
        started = time.perf_counter()
        {"bare": bare, "load": load}[action](path)
        seconds = time.perf_counter() - started
        print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), megabytes)
        for kind, path in files.items():
            size = path.stat().st_size / 1e6
            speeds: dict[str, list[float]] = {"load": [], "bare": []}
            memory = 0.0
            for _ in range(3):
                for action in ("load", "bare") if kind == "jsonl" else ("load",):
                    out = subprocess.run(
                        [sys.executable, __file__, action, str(path)],
                        capture_output=True,
                        text=True,
                        check=True,
                    ).stdout.split()
                    speeds[action].append(size / float(out[0]))
                    memory = max(memory, float(out[1])) if action == "load" else memory
            best = max(speeds["load"])
            line = f"{kind}: {size:.0f} MB, loads {best:.0f} MB/s, peak memory {memory:.0f} MB"
            if speeds["bare"]:
                bare_best = max(speeds["bare"])
                line += f"; bare json.loads loop {bare_best:.0f} MB/s, ratio {best / bare_best:.2f}"
            print(line)


if __name__ == "__main__":
    main()
