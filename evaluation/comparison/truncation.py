"""How much of a task was cut off, in prompts and in answers: a model that ran out of room did not forget.

    CutShares("answers cut off", base=0.0, adapted=0.12)

Two places record it: compute_metrics.py counts answers that end inside an unfinished thought (run.json,
tasks.TASK.truncated), run_inference.py counts prompts that did not fit and answers that reached the output
limit (inference.tasks.TASK).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.comparison.model import CutShares
from evaluation.results import ModelResult

# (words, where it stands in run.json, key of the count)
_COUNTS = (
    ("prompts cut", "inference", "truncated_prompts"),
    ("answers at the output limit", "inference", "ended_by_length"),
    ("unfinished answers", "metrics", "truncated"),
)


def cut_shares(
    base: Sequence[ModelResult], adapted: Sequence[ModelResult], task: str
) -> tuple[CutShares, ...]:
    """The shares (0 to 1, mean over runs) of a task's samples that were cut, of what both models recorded."""
    found = []
    for what, place, key in _COUNTS:
        sides = [_mean_share(side, task, place, key) for side in (base, adapted)]
        if None not in sides:
            found.append(CutShares(what, *sides))
    return tuple(found)


def _mean_share(runs: Sequence[ModelResult], task: str, place: str, key: str) -> float | None:
    shares = [_share(run.run or {}, task, place, key) for run in runs]
    return None if None in shares else sum(shares) / len(shares)


def _share(run: Mapping[str, Any], task: str, place: str, key: str) -> float | None:
    scored = _mapping(_mapping(run.get("tasks")).get(task))
    facts = scored
    if place == "inference":
        facts = _mapping(_mapping(_mapping(run.get("inference")).get("tasks")).get(task))
    cut, rows = facts.get(key), facts.get("answered") or facts.get("rows") or scored.get("rows")
    return cut / rows if isinstance(cut, int) and isinstance(rows, int) and rows > 0 else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
