"""A language model as judge: ask(mode, **fields) -> Verdict.

Scorers know only the small interface below. What stands behind `ask` (a real backend, a counter for an
estimate, a function in a test) is none of their business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

# why a verdict has a value, or has none
OK = "ok"
UNREADABLE = "unreadable"  # a reply without a verdict in it
REFUSED = "refused"  # the judge itself declined
FILTERED = "filtered"  # a content filter stopped the question or the reply
TRUNCATED = "truncated"  # the reply ended at its token limit before a verdict
FAILED = "failed"  # no reply after all retries
NO_CREDENTIALS = "no_credentials"
STATUSES = (OK, UNREADABLE, REFUSED, FILTERED, TRUNCATED, FAILED, NO_CREDENTIALS)


@dataclass(frozen=True)
class Verdict:
    """What a judge said. `value` is None unless status is "ok": a judge that fails never becomes a score.

    value: bool (single_turn_mc, answer_equivalence), list of bool | None (claim_support), float 0..1, a
    number 1..10 (multi_turn_rating), or a refusal class as text. reply: the judge's whole text. tokens: as
    billed, 0 from the cache. seconds: time on the wire.
    """

    value: Any
    status: str
    reply: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    model: str = ""
    cached: bool = False


class Judge(Protocol):
    """What a judged scorer receives."""

    async def ask(self, mode: str, **fields: Any) -> Verdict: ...
