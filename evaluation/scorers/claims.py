"""Scope and grounding: ragtruth.subset (against passage and gold) and eli5.subset (against gold only).

The answer and the gold are split into claims; the judge says for each claim whether a text supports it.
All claims against one text are one question, so a row costs at most three:

    gold claims  against the answer    coverage      = supported / gold claims (of several golds the best)
    model claims against the passage   faithfulness  = supported / model claims; hallucination is the rest
    model claims against the gold      no_overreach  = supported / model claims; overreach is the rest

A claim without a verdict leaves the row's rate without a value: a rate over the remaining claims would be
another quantity. Metrics of CapTrack (arXiv 2603.06610).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from evaluation.extraction.claims import claims_of, evidence_use
from evaluation.judge import OK, Judge, Verdict
from evaluation.rows import Row, is_missing, text_of

_SCOPE = ("coverage", "overreach", "no_overreach")
_GROUNDING = ("hallucination", "faithfulness", "evidence_utilization")
# where a gold object keeps its text
_GOLD_KEYS = ("answer", "answers", "text", "gold", "response", "value", "claims")


async def score_grounded(row: Row, judge: Judge) -> dict[str, Any]:
    """ragtruth: the columns of scope and grounding, numbers 0..1 or None."""
    context = "\n\n".join(texts_of(row.get("ctx")))
    scope = _scope(row, judge)
    grounding = _grounding(row, context, judge)
    scoped, grounded = await asyncio.gather(scope, grounding)
    reasons = [part["reason"] for part in (scoped, grounded) if part["reason"]]
    # one row, one reason: a judge that failed comes first, the row could be judged another time
    reason = next((r for r in reasons if r.startswith("judge_")), reasons[0] if reasons else None)
    return {**scoped, **grounded, "reason": reason}


async def score_open(row: Row, judge: Judge) -> dict[str, Any]:
    """eli5: coverage, overreach and no_overreach, numbers 0..1 or None."""
    return await _scope(row, judge)


async def _scope(row: Row, judge: Judge) -> dict[str, Any]:
    result: dict[str, Any] = {**dict.fromkeys(_SCOPE), "extracted": None, "reason": None}
    golds = texts_of(row.gold)
    if not golds:
        return {**result, "reason": "no_gold"}
    gold_claims = [claims_of(gold) for gold in golds]
    if not row.answer:
        return {**result, "coverage": 0.0 if any(gold_claims) else None, "reason": "empty"}
    mine = claims_of(row.answer)
    result["extracted"] = json.dumps(mine, ensure_ascii=False)
    covered, supported = await asyncio.gather(
        _verdicts(judge, list(dict.fromkeys(c for claims in gold_claims for c in claims)), row.answer),
        _verdicts(judge, mine, "\n\n".join(golds)),
    )
    by_claim, missed = covered
    shares = [_share([by_claim[c] for c in claims]) for claims in gold_claims if claims]
    # the best of several gold answers is known only once all of them are
    result["coverage"] = max(shares) if shares and None not in shares else None
    by_claim, lost = supported
    share = _share(list(by_claim.values()))
    if share is not None:
        result["no_overreach"], result["overreach"] = share, 1 - share
    result["reason"] = missed or lost or _why_none(any(gold_claims), bool(mine))
    return result


async def _grounding(row: Row, context: str, judge: Judge) -> dict[str, Any]:
    result: dict[str, Any] = {**dict.fromkeys(_GROUNDING), "reason": None}
    if not context.strip():
        return {**result, "reason": "no_context"}
    result["evidence_utilization"] = evidence_use(row.answer, context)
    if not row.answer:
        return {**result, "reason": "empty"}
    by_claim, lost = await _verdicts(judge, claims_of(row.answer), context)
    share = _share(list(by_claim.values()))
    if share is not None:
        result["faithfulness"], result["hallucination"] = share, 1 - share
    result["reason"] = lost or (None if by_claim else "no_claims")
    return result


async def _verdicts(
    judge: Judge, claims: Sequence[str], context: str
) -> tuple[dict[str, bool | None], str | None]:
    """(claim -> True, False or None; a reason where a claim has no verdict). No claims, no question."""
    if not claims:
        return {}, None
    verdict: Verdict = await judge.ask("claim_support", claims=list(claims), context=context)
    if verdict.status != OK:
        return dict.fromkeys(claims), f"judge_{verdict.status}"
    values = dict(zip(claims, verdict.value, strict=True))
    return values, "judge_unreadable" if None in values.values() else None


def _share(verdicts: Sequence[bool | None]) -> float | None:
    """Supported / all; None for no claims or where one of them has no verdict."""
    if not verdicts or None in verdicts:
        return None
    return sum(map(bool, verdicts)) / len(verdicts)


def _why_none(gold_claims: bool, model_claims: bool) -> str | None:
    if not gold_claims:
        return "no_gold_claims"
    return None if model_claims else "no_claims"


def texts_of(value: Any) -> list[str]:
    """The texts in a gold or context value.

    Text, JSON text, a list of texts, an object that holds one. No blanks.
    """
    if is_missing(value):
        return []
    if isinstance(value, str):
        text = value.strip()
        if text[:1] in "[{" and text[-1:] in "]}":
            try:
                return texts_of(json.loads(text)) or [text]
            except (ValueError, RecursionError):
                pass
        return [text] if text else []
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in texts_of(item)]
    if isinstance(value, dict):
        for key in _GOLD_KEYS:
            found = texts_of(value.get(key))
            if found:
                return found
        return [text for item in value.values() if isinstance(item, str) for text in texts_of(item)]
    return [text_of(value)]
