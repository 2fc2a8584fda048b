"""MATH and SuperGPQA: the final answer by rules, the steps by rules, the reasoning by a judge.

Example: outputs "Step 1: Let x be 2.\\nStep 2: Birds fly.\\nAnswer: 2", gold "2" gives correct True,
num_steps 2, step_validity 0.5; the judge adds logical_coherence and step_consistency (0..1), and
reasoning_score is the mean of the three. Where one of them is missing there is no reasoning_score.
Benchmarks: MATH (https://arxiv.org/abs/2103.03874), SuperGPQA (https://arxiv.org/abs/2502.14739).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evaluation.extraction.courtesies import without_courtesies
from evaluation.extraction.latex import final_answer
from evaluation.extraction.letters import options_of, read_letter
from evaluation.extraction.steps import steps, valid_mathematics, valid_options
from evaluation.judge import OK as JUDGED
from evaluation.judge import Judge
from evaluation.rows import OK, Row, is_missing, text_of
from evaluation.scorers.equivalence import compare
from evaluation.scorers.mathematics import gold_value
from evaluation.scorers.multiple_choice import gold_letter

_LETTERS = 10  # SuperGPQA has up to ten options, A to J (arXiv 2502.14739)


def score_math(row: Row) -> dict[str, Any]:
    """Rule part of MATH: correct, extracted, num_steps, step_validity; pending where a judge can weigh
    steps.
    """
    gold = gold_value(row.gold)
    answer = final_answer(row.answer) if row.state == OK else None
    if gold is None:
        correct, reason = None, "no_gold"
    elif row.state != OK:
        correct, reason = False, row.state
    elif answer is None:
        correct, reason = False, "no_answer_found"
    else:
        verdict = compare(gold, answer)
        correct, reason = bool(verdict.equal), verdict.reason
    return _with_steps(row, correct, answer, reason, valid_mathematics)


def score_supergpqa(row: Row) -> dict[str, Any]:
    """Rule part of SuperGPQA: correct, extracted (a letter), num_steps, step_validity; pending as for
    MATH.
    """
    options = options_of(row.get("choices")).at_least(_LETTERS)
    gold = gold_letter(row, options)
    letter = read_letter(without_courtesies(row.answer), options) if row.state == OK else None
    if gold is None:
        correct, reason = None, "no_gold"
    elif row.state != OK:
        correct, reason = False, row.state
    elif letter is None:
        correct, reason = False, "no_answer_found"
    else:
        correct, reason = letter == gold, None if letter == gold else "wrong_option"
    return _with_steps(row, correct, letter, reason, valid_options)


def _with_steps(
    row: Row, correct: bool | None, extracted: str | None, reason: str | None, valid: Callable[[str], bool]
) -> dict[str, Any]:
    score: dict[str, Any] = {
        "correct": correct,
        "extracted": extracted,
        "reason": reason,
        # a response that is not there has no count; an empty one has no steps
        "num_steps": None if is_missing(row.columns.get("outputs")) else 0,
        "step_validity": None,
        "logical_coherence": None,
        "step_consistency": None,
        "reasoning_score": None,
    }
    found = steps(row.answer) if row.state == OK else []
    if found:
        score["num_steps"] = len(found)
        score["step_validity"] = sum(map(valid, found)) / len(found)
        score["pending"] = "judge_reasoning"
    elif reason is None:
        score["reason"] = "no_steps"
    return score


async def judge_math(row: Row, judge: Judge) -> dict[str, Any]:
    """Coherence and consistency of a MATH solution, each 0..1, and the score of the three."""
    return await _judge(row, judge, "math_coherence", "math_consistency")


async def judge_supergpqa(row: Row, judge: Judge) -> dict[str, Any]:
    """The same for SuperGPQA, with the options in view."""
    return await _judge(row, judge, "supergpqa_coherence", "supergpqa_consistency")


async def _judge(row: Row, judge: Judge, coherence_mode: str, consistency_mode: str) -> dict[str, Any]:
    fields = {"question": text_of(row.get("prompt")), "output": row.answer}
    # in the published order; one after the other, the engine keeps many rows in flight
    consistency = await judge.ask(consistency_mode, **fields)
    coherence = await judge.ask(coherence_mode, **fields)
    values = [verdict.value if verdict.status == JUDGED else None for verdict in (coherence, consistency)]
    score: dict[str, Any] = {"logical_coherence": values[0], "step_consistency": values[1]}
    failed = next((v for v in (coherence, consistency) if v.status != JUDGED), None)
    if failed is not None:
        score["reasoning_score"] = None
        score["reason"] = f"judge_{failed.status}"
    else:
        score["reasoning_score"] = (row.rules["step_validity"] + values[0] + values[1]) / 3
    return score
