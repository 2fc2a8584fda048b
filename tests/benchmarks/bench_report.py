"""How long report.html takes to write and to open: 37 tasks, 20,000 samples a model, texts of a usual length.

    python -m tests.benchmarks.bench_report [SAMPLES]

Prints seconds of writing, MiB of the page, and seconds until the overview stands in Chromium, until the
samples of the largest task stand, and until all tasks have been searched. Aim: open in under two seconds.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import compare_models
from evaluation.tasks import TASKS
from tests import synthetic

WORDS = ("the", "of", "answer", "number", "three", "because", "therefore", "river", "is", "42")


def with_texts(task: str, count: int, run_seed: int):
    """A table whose prompts have 900 characters and whose answers have 1,500, a tenth of them 8,000."""
    table = synthetic.task_table(task, count, -0.1 * run_seed, run_seed)
    draw = random.Random(f"{task} {run_seed}")
    lengths = [8_000 if i % 10 == 0 else 1_500 for i in range(count)]
    table.columns["prompt"] = [f"{i} " + "What is it? " * 75 for i in range(count)]
    table.columns["answer"] = [" ".join(draw.choices(WORDS, k=n // 6)) for n in lengths]
    return table


def main() -> int:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    each = -(-samples // len(TASKS))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for seed, name in enumerate(("base", "adapted"), 1):
            synthetic.write_result(folder / name, name, {t: with_texts(t, each, seed) for t in TASKS})
        config = folder / "config.yaml"
        config.write_text(
            f"model_pairs: [[{folder}/base, {folder}/adapted, N]]\noutput_dir: {folder}/out\n"
            "save_options: {save_figure: false}\n"
        )
        started = time.perf_counter()
        compare_models.main(["--config", str(config)])
        whole = time.perf_counter() - started
        page = folder / "out" / "report.html"
        print(f"comparison with report {whole:.1f} s; page {page.stat().st_size / 2**20:.1f} MiB")
        return open_page(page)


def open_page(path: Path) -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium here, the page was not opened")
        return 0
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto("about:blank")
        started = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("#overview.open")
        opened = time.perf_counter() - started
        started = time.perf_counter()
        page.evaluate("location.hash = '#samples/0/gsm8k.subset'")
        page.wait_for_selector(".card")
        listed = time.perf_counter() - started
        page.evaluate("location.hash = '#samples/0/*'")
        page.wait_for_selector("#samples-title:text('all tasks')")
        started = time.perf_counter()
        page.locator("#search").fill("found nowhere")
        page.locator(".card").first.wait_for(state="detached")
        searched = time.perf_counter() - started
        browser.close()
    print(f"opens in {opened:.2f} s; samples of a task {listed:.2f} s; search of all tasks {searched:.2f} s")
    return int(opened > 2)


if __name__ == "__main__":
    sys.exit(main())
