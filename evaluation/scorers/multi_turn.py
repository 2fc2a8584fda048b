"""The second answer of a conversation: mtbench.turn2 and structflowbench.turn2, rated 1..10 by a judge.

The prompt column holds both user turns: ["Plan a picnic.", "Add a rain plan."] or objects with "user
prompt". The rating is that of MT-Bench's single-answer grading (https://arxiv.org/abs/2306.05685), passed
from 7 (CapTrack).
"""

from __future__ import annotations

import json
from typing import Any

from evaluation.extraction.visible import visible_answer
from evaluation.judge import OK, Judge
from evaluation.rows import Row, text_of

PASSED_FROM = 7
_TURN_KEYS = ("user prompt", "user_prompt", "content", "prompt", "text")


async def score(row: Row, judge: Judge) -> dict[str, Any]:
    """rating 1..10 (halves stay) and passed.

    None where a part of the conversation is missing or the judge failed.
    """
    nothing = {"rating": None, "passed": None, "extracted": None}
    turns = user_turns(row.get("prompt"))
    first, _ = visible_answer(text_of(row.get("turn1_response")))
    if not row.answer:
        return {**nothing, "reason": "empty"}
    if len(turns) < 2 or not all(turns[:2]):
        return {**nothing, "reason": "no_second_turn"}
    if not first:
        return {**nothing, "reason": "no_first_answer"}
    verdict = await judge.ask(
        "multi_turn_rating", question_1=turns[0], answer_1=first, question_2=turns[1], answer_2=row.answer
    )
    if verdict.status != OK:
        return {**nothing, "reason": f"judge_{verdict.status}"}
    return {
        "rating": verdict.value,
        "passed": verdict.value >= PASSED_FROM,
        "extracted": None,
        "reason": None,
    }


def user_turns(value: Any) -> list[str]:
    """The user's turns in order.

    From a list of texts or objects, or the JSON text of one; [] for anything else.
    """
    if isinstance(value, str) and value.strip()[:1] == "[":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    if not isinstance(value, (list, tuple)):
        return []
    return [_turn(item) for item in value if not (isinstance(item, dict) and item.get("role") == "assistant")]


def _turn(item: Any) -> str:
    if isinstance(item, dict):
        return next((text_of(item[key]).strip() for key in _TURN_KEYS if item.get(key)), "")
    return text_of(item).strip()
