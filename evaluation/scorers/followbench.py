"""FollowBench (followbench.subset): how completely a response keeps the constraints of its instruction, 0..1.

https://arxiv.org/abs/2310.20410; the rating by a judge and its two thresholds are CapTrack's.
"""

from __future__ import annotations

from typing import Any

from evaluation.judge import OK, Judge
from evaluation.rows import Row, text_of

PERFECT_FROM = 0.9
GOOD_FROM = 0.7


async def score(row: Row, judge: Judge) -> dict[str, Any]:
    """score 0..1, perfect and good as truth values.

    All None where the response is empty or the judge failed.
    """
    nothing = {"score": None, "perfect": None, "good": None, "extracted": None}
    instruction = text_of(row.get("prompt")).strip()
    if not row.answer:
        return {**nothing, "reason": "empty"}
    if not instruction:
        return {**nothing, "reason": "no_prompt"}
    verdict = await judge.ask("instruction_following", instruction=instruction, response=row.answer)
    if verdict.status != OK:
        return {**nothing, "reason": f"judge_{verdict.status}"}
    value = float(verdict.value)
    return {
        "score": value,
        "perfect": value >= PERFECT_FROM,
        "good": value >= GOOD_FROM,
        "extracted": None,
        "reason": None,
    }
