"""HumanEval and MBPP on real answers: our verdict against that of whoever published them."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluation import sandbox
from evaluation.rows import make_row
from evaluation.scoring import score_by_rules

# (folder, id): our verdict and why the label differs
DISAGREEMENTS = {
    ("real-base", "HumanEval/133"): (
        False,
        "uses math without importing it; the label's process had it already",
    ),
    ("real-base", "HumanEval/143"): (
        False,
        "calls is_prime, which only an earlier row of that process defined",
    ),
    ("real-base", "HumanEval/150"): (
        False,
        "calls is_prime, which only an earlier row of that process defined",
    ),
    ("real-base", "mbpp_67_bell_number"): (True, "all three assertions hold, within milliseconds"),
    ("real-base", "mbpp_170_sum_range_list"): (True, "all three assertions hold, by hand as well"),
    ("real-adapted", "mbpp_170_sum_range_list"): (True, "all three assertions hold, by hand as well"),
}


@pytest.mark.long
@pytest.mark.skipif(not sandbox.probe().fence, reason=f"no sandbox here: {sandbox.probe()}")
def test_verdicts_agree_with_the_published_ones(realdata: Path) -> None:
    found, rows = {}, 0
    with ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        for folder in ("real-base", "real-adapted"):
            for task in ("humaneval.full", "mbpp.full"):
                text = (realdata / folder / f"{task}.jsonl").read_text(encoding="utf-8")
                columns = [json.loads(line) for line in text.split("\n") if line]
                scores = pool.map(lambda row, task=task: score_by_rules(make_row(task, row)), columns)
                for row, score in zip(columns, scores, strict=True):
                    rows += 1
                    if score["correct"] is not row["source_label"]["is_solved"]:
                        found[folder, row["id"]] = score["correct"]
    assert found == {key: verdict for key, (verdict, _) in DISAGREEMENTS.items()}
    assert len(found) / rows < 0.01
