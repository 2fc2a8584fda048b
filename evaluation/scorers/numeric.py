"""Number answers: GSM8K (https://arxiv.org/abs/2110.14168) and MGSM (https://arxiv.org/abs/2210.03057).

Example: outputs "He pays 3 * $4.\\nAnswer: $12", gold "3*4=12\\n#### 12" gives {"correct": True, "extracted":
"12"}. An answer is right where the number that it states equals the gold within 1e-6.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from evaluation.extraction.numbers import answer_number, gold_number
from evaluation.rows import OK, Row, is_missing, text_of

# MGSM's languages, by every name that a row may use for them
_LANGUAGES = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "russian": "ru", "chinese": "zh",
    "japanese": "ja",
    "thai": "th", "swahili": "sw", "bengali": "bn", "telugu": "te",
}  # fmt: skip
_CODES = frozenset({
    "en", "de", "fr", "es", "ru", "zh", "ja", "th", "sw", "bn", "te", "ar", "hi", "it", "pt", "ko",
    "tr", "vi", "el", "pl", "nl", "ro", "id", "ur",
})  # fmt: skip
_GOLD_KEYS = ("answer", "answer_number", "text", "gold", "target")


def score_gsm8k(row: Row) -> dict[str, Any]:
    """correct (None without a readable gold), extracted, reason: no_gold, empty, truncated, no_number or
    wrong_number."""
    return _score(row, "en")


def score_mgsm(row: Row) -> dict[str, Any]:
    """As score_gsm8k, with the digits, decimal marks and grouping of the row's language; adds `language`."""
    language = language_of(row)
    return {**_score(row, language or "en"), "language": language}


def _score(row: Row, language: str) -> dict[str, Any]:
    gold = _gold(row.gold, language)
    found = answer_number(row.answer, language) if row.state == OK else None
    extracted = found.text if found else None
    if gold is None:
        return {"correct": None, "extracted": extracted, "reason": "no_gold"}
    if row.state != OK:
        return {"correct": False, "extracted": None, "reason": row.state}
    if found is None:
        return {"correct": False, "extracted": None, "reason": "no_number"}
    correct = found.equals(gold)
    return {"correct": correct, "extracted": extracted, "reason": None if correct else "wrong_number"}


def _gold(gold: Any, language: str) -> Fraction | None:
    """The gold's value: a number, a solution with "#### 12", a list (its first item) or an object with an
    answer in it."""
    for _ in range(4):
        if isinstance(gold, (list, tuple)):
            gold = gold[0] if gold else None
        elif isinstance(gold, dict):
            gold = next((gold[key] for key in _GOLD_KEYS if not is_missing(gold.get(key))), None)
    if isinstance(gold, (list, tuple, dict)):
        return None
    return gold_number(text_of(gold), language)


def language_of(row: Row) -> str | None:
    """The row's language as an ISO code, from language or lang, in the row or its meta, or the id
    ("mgsm-de-7"); or None."""
    for place in (row.columns, row.meta):
        for name in ("language", "lang"):
            code = _code(text_of(place.get(name)))
            if code:
                return code
    for part in re.split(r"[^A-Za-z]+", row.id or "")[:4]:
        if code := _code(part):
            return code
    return None


def _code(name: str) -> str | None:
    name = name.strip().casefold()
    code = _LANGUAGES.get(name) or re.split(r"[-_]", name)[0]
    return code if code in _CODES else None
