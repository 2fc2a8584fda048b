"""Synthetic result folders for tests: metrics.csv, run.json and sample tables as compute_metrics.py leaves
them.

Scores are drawn per source question, so that the base and the adapted model agree as real models do: each
sample has a difficulty, each model a skill, and a model's own noise is small.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from evaluation.files import write_json
from evaluation.results import SampleTable, write_metrics_csv, write_samples
from evaluation.tasks import TASKS, Metric
from evaluation.taxonomy import COLUMNS

FLAG_NAMES = ("words", "sentences", "sentence_words", "rating", "num_steps", "items", "n_extracted")


def statistic(metric: Metric, table: SampleTable) -> float | None:
    """A metric's value from a table, as the engine computes it."""
    from evaluation.comparison.statistics import plain_statistic

    scores = table.numbers(metric.column)
    per = table.numbers(metric.per) if metric.per else None
    known = np.isfinite(scores) & (np.isfinite(per) if per is not None else True)
    if not known.any():
        return None
    value = plain_statistic(metric.statistic, scores[known], per[known] if per is not None else None)
    return float(value) if np.isfinite(value) else None


def task_table(
    task: str,
    n: int,
    skill: float = 0.0,
    run_seed: int = 1,
    skip: int = 0,
    noise: float = 0.35,
    unjudged: int = 0,
) -> SampleTable:
    """n samples; `skill` shifts every score (0.3 is much); two models with one run_seed differ by skill
    alone."""
    shared = np.random.default_rng(abs(hash_text(task)))
    own = np.random.default_rng([run_seed, hash_text(task)])
    metrics = TASKS[task].metrics
    columns: dict[str, list[Any]] = {}
    ids = [f"q{i:04d}" for i in range(skip, skip + n)]
    hard = shared.normal(size=n + skip)[skip:]
    level = hard + skill + noise * own.normal(size=n)
    for name in dict.fromkeys(c for m in metrics for c in (m.column, m.per) if c):
        offset = shared.normal() * 0.3
        tilt = shared.normal(size=n + skip)[skip:] * 0.5
        score = level + offset + tilt
        if name in ("words", "sentence_words"):
            columns[name] = [float(round(v)) for v in np.exp(5 + 0.35 * score)]
        elif name in ("sentences", "num_steps", "n_extracted"):
            columns[name] = [float(round(v)) for v in np.exp(1.8 + 0.3 * score)]
        elif name in ("shortest_sentence", "longest_sentence"):
            columns[name] = [float(round(v)) for v in np.exp(2.5 + 0.3 * score)]
        elif name == "rating":
            columns[name] = [float(np.clip(round(6.5 + 1.5 * v), 1, 10)) for v in score]
        elif name == "items":
            columns[name] = [float(1 + i % 3) for i in range(n)]
        elif name.endswith("_total"):
            columns[name] = [1.0 if t > -0.2 else 0.0 for t in tilt]
        elif "coherence" in name or "coverage" in name or name in ("score", "faithfulness", "step_validity"):
            columns[name] = [float(v) for v in 1 / (1 + np.exp(-score - 1))]
        else:
            columns[name] = [bool(v > -0.4) for v in score]
    for metric in metrics:  # passes never exceed their total
        if metric.per and metric.per != "sentences":
            columns[metric.column] = [
                float(min(t, round(t * bool(v))))
                for v, t in zip(columns[metric.column], columns[metric.per], strict=True)
            ]
    reasons: list[str | None] = [None] * n
    for i in range(unjudged):
        reasons[i] = "judge_failed"
        for metric in metrics:
            columns[metric.column][i] = None
    fixed = {
        "id": ids,
        "key": ids,
        "cluster": ids,
        "row": list(range(n)),
        "state": ["ok"] * n,
        "reason": reasons,
        "extracted": [None] * n,
        "prompt": [f"Question {i} of {task}" for i in ids],
        "answer": [f"Answer of run {run_seed} to {i}. " * 20 for i in ids],
        "gold": ["gold"] * n,
        "judgements": [None] * n,
    }
    return SampleTable(task, {**fixed, **columns})


def hash_text(text: str) -> int:
    """A stable small number of a text (hash() is salted)."""
    import zlib

    return zlib.crc32(text.encode())


def write_result(
    folder: Path,
    name: str,
    tables: dict[str, SampleTable],
    run: dict[str, Any] | None = None,
    values: dict[str, float | None] | None = None,
) -> Path:
    """Writes a result folder; metrics.csv follows from the tables, `values` overrides single columns."""
    metrics: dict[str, float | None] = {}
    for column in COLUMNS:
        table = tables.get(column.task)
        metric = next((m for m in TASKS[column.task].metrics if m.path == column.path), None)
        metrics[column.name] = statistic(metric, table) if table and metric else None
    write_metrics_csv(folder / "metrics.csv", name, {**metrics, **(values or {})})
    for task, table in tables.items():
        write_samples(folder / "samples" / f"{task}.parquet", table)
    facts = {
        task: {"rows": len(t), "scored": len(t), "judge": "stub@test", "judged": [len(t), len(t)]}
        if TASKS[task].judged
        else {"rows": len(t), "scored": len(t)}
        for task, t in tables.items()
    }
    base = {
        "definitions_version": "1",
        "model_name": name,
        "options": {"limit": None},
        "tasks": facts,
        "absent": [],
        "demo_judge": False,
        "inference": None,
    }
    write_json(folder / "run.json", {**base, **(run or {})})
    return folder


def model(
    folder: Path,
    name: str,
    skill: float | dict[str, float] = 0.0,
    n: int = 60,
    run_seed: int = 1,
    tasks: tuple[str, ...] | None = None,
    run: dict[str, Any] | None = None,
    **options: Any,
) -> Path:
    """A whole synthetic model in one call; `skill` may be given by task."""
    tables = {}
    for task in tasks or tuple(TASKS):
        shift = skill.get(task, 0.0) if isinstance(skill, dict) else skill
        tables[task] = task_table(task, n, shift, run_seed, **options)
    return write_result(folder / name, name, tables, run)
