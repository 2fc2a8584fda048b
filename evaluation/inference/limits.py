"""Room for answers: how long an output may grow, and how much of the window a prompt must leave free. Data.

Example: LIMITS["ruler.32k"] is Limit(output=4096, reserve=64): the answer may take up to 4,096 tokens where
the window has them, and a prompt of 31,000 tokens stays whole in a window of 32,768.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """output: most tokens of an answer, thinking included. reserve: tokens that a prompt leaves free before
    it is cut.
    """

    output: int
    reserve: int


LETTER = Limit(output=4096, reserve=64)  # a letter or a number, after whatever the model cares to say first
SHORT = Limit(output=4096, reserve=128)  # a name, a sentence, a call, a small object
PROSE = Limit(output=4096, reserve=512)
CODE = Limit(output=4096, reserve=512)
REASONING = Limit(output=8192, reserve=1024)

LIMITS: dict[str, Limit] = {
    "mmlu_pro.subset": LETTER,
    "mmlu_pro.rephrased": LETTER,
    "mmlu_pro.schema": SHORT,
    "mmlu_pro.table_schema": SHORT,
    "gsm8k.subset": REASONING,
    "gsm8k.rephrased": REASONING,
    "gsm8k.schema": REASONING,
    "gsm8k.table_schema": REASONING,
    "mgsm.subset": REASONING,
    "humaneval.full": CODE,
    "math.subset": REASONING,
    "supergpqa.subset": REASONING,
    "hotpotqa.subset": SHORT,
    "hotpotqa.citation": PROSE,
    "boolq.subset": LETTER,
    "ragtruth.subset": PROSE,
    "winogrande.subset": LETTER,
    "hellaswag.subset": LETTER,
    "ifeval.subset": PROSE,
    "bfcl.subset": SHORT,
    "ruler.4k": LETTER,
    "ruler.32k": LETTER,
    "mtbench.turn1": PROSE,
    "mtbench.turn2": PROSE,
    "harmbench.subset": PROSE,
    "popqa.subset": SHORT,
    "livemathbench.full": REASONING,
    "mbpp.full": CODE,
    "truthfulqa.full": LETTER,
    "xtreme.subset": SHORT,
    "eli5.subset": PROSE,
    "oasst1.full": PROSE,
    "followbench.subset": PROSE,
    "mnms.full": SHORT,
    "structflowbench.turn2": PROSE,
    "longbenchv2.full": LETTER,
    "qasper.citation": PROSE,
}


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
