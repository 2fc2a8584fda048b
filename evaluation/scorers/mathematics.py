"""LiveMathBench: the final answer against the gold, by rules where they can decide, else by a judge.

Example: outputs r"... \\boxed{\\frac{1}{2}}", gold "0.5" gives correct True, by_rule True; outputs "Answer:
two times pi" with gold r"2\\pi" is pending, and the judge is asked for equality, yes or no. Benchmark:
LiveMathBench (https://arxiv.org/abs/2412.13147).
"""

# ruff: noqa: SIM905  (word lists)

from __future__ import annotations

import re
from typing import Any

from evaluation.extraction.formula import words_of
from evaluation.extraction.latex import boxes, final_answer, reduce_phrase
from evaluation.judge import OK as JUDGED
from evaluation.judge import Judge
from evaluation.rows import OK, Row, is_missing, text_of
from evaluation.scorers.equivalence import LIVE, compare

# keys of a gold object, in the order in which they are looked up; published: "text"
_GOLD_KEYS = ("text", "answer", "final_answer", "solution", "value", "gold")
_NEGATIONS = frozenset("not never no neither nor cannot isn't aren't non without".split())


def gold_text(gold: Any) -> str | None:
    """The gold as text: the first item of a list, the value of an object; None where there is none."""
    for _ in range(4):
        if isinstance(gold, dict):
            key = next((k for k in _GOLD_KEYS if not is_missing(gold.get(k))), None)
            if key is None:
                key = next(iter(gold)) if len(gold) == 1 else None
            if key is None:
                break
            gold = gold[key]
        elif isinstance(gold, (list, tuple)):
            gold = gold[0] if gold else None
        else:
            break
    text = "" if isinstance(gold, (dict, list, tuple)) else text_of(gold).strip()
    return text or None


def gold_value(gold: Any) -> str | None:
    """The gold's answer: the last box of a whole solution, or the value of a phrase; None without gold."""
    text = gold_text(gold)
    if text is None:
        return None
    if boxes(text):
        return final_answer(text) or text
    if "\n" in text:
        return final_answer(text) or text
    return reduce_phrase(text) or text


def score_livemathbench(row: Row) -> dict[str, Any]:
    """Rule part. Returns correct (bool or None), by_rule (bool or None), extracted, reason; pending for
    the judge.

    by_rule is True where the rules decided, False where a judge is asked, None where there was nothing to
    decide.
    """
    gold = gold_value(row.gold)
    if gold is None:
        return {"correct": None, "by_rule": None, "extracted": None, "reason": "no_gold"}
    if row.state != OK:
        return {"correct": False, "by_rule": None, "extracted": None, "reason": row.state}
    answer = final_answer(row.answer)
    if answer is None:
        return {"correct": False, "by_rule": None, "extracted": None, "reason": "no_answer_found"}
    verdict = compare(gold, answer, LIVE)
    decided, reason = verdict.equal, verdict.reason
    if decided is None:
        decided = _by_words(gold, answer)
        reason = "unequal" if decided is False else reason
    if decided is None:
        return {
            "pending": "answer_equivalence",
            "correct": None,
            "by_rule": False,
            "extracted": answer,
            "reason": reason,
        }
    return {"correct": decided, "by_rule": True, "extracted": answer, "reason": None if decided else reason}


def _by_words(gold: str, answer: str) -> bool | None:
    """Published: neither side has a digit, and the answer has the gold's words. Whole words; a denial is
    not it.
    """
    if any(c.isdigit() for c in gold + answer) or "\\" in gold:
        return None
    wanted, given = _words(gold), _words(answer)
    if not wanted or not given:
        return None
    if not set(wanted) <= set(given):
        return None
    if (set(given) - set(wanted)) & _NEGATIONS:
        return False
    if "or" in given and "or" not in wanted:
        return None
    return True


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", words_of(text).replace("’", "'"))


async def judge_livemathbench(row: Row, judge: Judge) -> dict[str, Any]:
    """Asks whether the extracted answer equals the gold (mode answer_equivalence, a truth value)."""
    verdict = await judge.ask(
        "answer_equivalence",
        question=text_of(row.get("prompt")),
        answer=row.rules["extracted"],
        gold=gold_value(row.gold),
    )
    if verdict.status != JUDGED:
        return {"correct": None, "reason": f"judge_{verdict.status}"}
    return {"correct": verdict.value, "reason": None if verdict.value else "judged_unequal"}
