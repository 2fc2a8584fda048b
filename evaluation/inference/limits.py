"""Room for answers: how long an output may grow, and how much of the window a prompt must leave free. Data.

Example: LIMITS["ruler.32k"] is Limit(output=4096, reserve=64): the answer may take up to 4,096 tokens where
the window has them, and a prompt of 31,000 tokens stays whole in a window of 32,768.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.tasks import TASKS


@dataclass(frozen=True)
class Limit:
    """output: most tokens of an answer, thinking included. reserve: tokens that a prompt leaves free before
    it is cut.
    """

    output: int
    reserve: int


# by the kind of answer that tasks.py names
KINDS: dict[str, Limit] = {
    "letter": Limit(output=4096, reserve=64),  # or a number, after whatever the model cares to say first
    "short": Limit(output=4096, reserve=128),  # a name, a sentence, a call, a small object
    "prose": Limit(output=4096, reserve=512),
    "code": Limit(output=4096, reserve=512),
    "reasoning": Limit(output=8192, reserve=1024),
}
LIMITS: dict[str, Limit] = {task: KINDS[entry.answer] for task, entry in TASKS.items()}


def output_limit(task: str, max_tokens: int | None) -> int:
    """Most output tokens for a sample of `task`; max_tokens caps every task."""
    limit = LIMITS[task].output
    return limit if max_tokens is None else min(limit, max_tokens)


def prompt_room(task: str, window: int, max_tokens: int | None) -> int:
    """Most prompt tokens that stay uncut in a window of `window` tokens (at least 1).

    The reserve is never more than a quarter of the window, nor more than the answer may take; the engine
    itself caps the answer to what the prompt leaves. Every prompt leaves one token free, else the engine
    would refuse it.
    """
    reserve = min(LIMITS[task].reserve, window // 4, output_limit(task, max_tokens))
    return max(1, window - max(1, reserve))
