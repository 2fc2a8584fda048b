"""Judges for tests: they answer at the level of `ask` from what golden rows store."""

from __future__ import annotations

import re
from typing import Any

from evaluation.judge import FAILED, OK, UNREADABLE, Verdict
from evaluation.judge.modes import question


def verdict(mode: str, fields: dict[str, Any], reply: Any) -> Verdict:
    """The verdict that a stored reply stands for: text, null content, a failed call ({"http_status": …})."""
    if isinstance(reply, dict):
        return Verdict(None, FAILED)
    value = question(mode, fields).read(reply or "")
    return Verdict(value, OK if value is not None else UNREADABLE, reply or "")


class FixedJudge:
    """Gives the same stored reply to every question and keeps what it was asked."""

    def __init__(self, reply: Any):
        self.reply = reply
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def ask(self, mode: str, **fields: Any) -> Verdict:
        self.asked.append((mode, fields))
        return verdict(mode, fields, self.reply)


class WordsJudge:
    """Claims by the golden rows' rule words-v1 (README_context_scope_safety_citation.md), overrides first."""

    def __init__(self, columns: dict[str, str], overrides: list[dict[str, Any]]):
        self.columns = columns
        self.overrides = overrides
        self.asked: list[tuple[list[str], str]] = []

    async def ask(self, mode: str, claims: list[str], context: str) -> Verdict:
        assert mode == "claim_support"
        self.asked.append((claims, context))
        replies = [self._reply(claim, context) for claim in claims]
        single = [
            verdict(mode, {"claims": [c], "context": context}, r)
            for c, r in zip(claims, replies, strict=True)
        ]
        values = [v.value[0] if v.value else None for v in single]
        failed = next((v.status for v in single if v.status != OK), OK)
        return Verdict(None, failed) if all(v is None for v in values) else Verdict(values, OK)

    def _reply(self, claim: str, context: str) -> Any:
        against = {name for name, text in self.columns.items() if text == context}
        for one in self.overrides:
            if one["claim"] == claim and one["against"] in against:
                return one["reply"]
        return f"Checked with the word rule.\n\nJUDGMENT: {_supported(claim, context)}"


def _supported(claim: str, context: str) -> bool:
    words = [w for w in _runs(claim) if len(w) >= 4 or any(c.isdigit() for c in w)]
    return bool(words) and set(words) <= set(_runs(context))


def _runs(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())
