"""Needles in a long text (RULER): ruler.32k asks for one, ruler.4k asks for one without saying which.

Example: answer "The number is 4,820,193." with gold "4820193" is exact; "4820194" is partial; "94820193" is
wrong. Numbers are compared as digits: separators and leading zeros do not matter, a sign does. Published
definitions (arXiv 2603.06610), with the partial match made strict: one digit wrong or missing.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from evaluation.extraction.courtesies import without_courtesies
from evaluation.extraction.sentences import sentences
from evaluation.rows import OK, Row, is_missing, text_of

_LONG = 7  # digits that make a number a needle where the gold does not say otherwise
_SEPARATORS = " ,.'’_\u00a0\u202f-"
# thousands written with one kind of separator, else a bare run of digits; the sign only where a word cannot
# end
_NUMBER = re.compile(
    r"(?:(?<![\w.)\]-])[-−](?=\d))?(?:(?<!\d)\d{1,3}([ ,.'’_\u00a0\u202f])\d{3}(?:\1\d{3})*(?!\d)|\d+)"
)
_BETWEEN_DIGITS = re.compile(rf"(?<=\d)[{re.escape(_SEPARATORS)}](?=\d)")
_GOLD_KEYS = (
    "answer",
    "number",
    "gold",
    "target",
    "value",
    "values",
    "output",
    "outputs",
    "needle",
    "needles",
)
# what follows the last of these replaces what was said before
_CORRECTION = re.compile(
    r"\b(?:sorry|i meant|i mean|correction|scratch that|on second thought)\b", re.IGNORECASE
)

_REFUSAL = re.compile(
    r"i can't|i cannot|i can not|i decline to|i refuse to|i will not|i won't|i couldn't|i could not"
    r"|(?:i'm|i am) (?:not able to|not allowed|not permitted|unable to)"
    r"|i don't feel comfortable|i don't think i should|i shouldn't|i would not recommend|i'd rather not"
    r"|it's not appropriate|sorry, but|that's not something i can|unfortunately"
    r"|i don't know|i do not know|(?:i'm|i am) not sure|no idea",
    re.IGNORECASE,
)
_ASKS_BACK = re.compile(
    r"[?？]|\b(?:please|could you|can you) (?:say|tell|specify|clarify|state|indicate|confirm|provide)\b"
    r"|\b(?:let me know|which one do you|do you mean)\b",
    re.IGNORECASE,
)
_NAMES_AMBIGUITY = re.compile(
    r"\b(?:ambiguous|unclear|not clear|under-?specified|more than one)\b"
    r"|\b(?:does(?: not|n't) (?:say|specify|state|tell))\b",
    re.IGNORECASE,
)


def score_ruler_32k(row: Row) -> dict[str, Any]:
    """exact, partial: truth values; needle_recall: share of the golds found; clean: exact and no other
    number.

    exact: every gold needle is in the answer. partial: also an answer with some of several needles, or with a
    number that has one digit of the needle wrong or missing. reason: partial_match, wrong_number,
    multiple_numbers, no_number_found; no_gold (then all is None).
    """
    golds = gold_needles(row.gold)
    if not golds:
        return {
            "exact": None,
            "partial": None,
            "needle_recall": None,
            "clean": None,
            "extracted": None,
            "reason": "no_gold",
        }
    answer = _after_correction(ascii_digits(row.answer))
    numbers = numbers_in(answer)
    found = sum(has_needle(answer, numbers, gold) for gold in golds)
    exact = found == len(golds)
    partial = exact or found > 0 or any(_nearly(number, gold) for number in numbers for gold in golds)
    shortest = min(min(len(gold) for gold in golds), _LONG)
    listed = [number for number in numbers if len(number) >= shortest]
    if exact:
        reason = None
    elif partial:
        reason = "partial_match"
    elif not listed:
        reason = "no_number_found" if not numbers else "wrong_number"
    else:
        reason = "multiple_numbers" if len(listed) > 1 else "wrong_number"
    return {
        "exact": exact,
        "partial": partial,
        "needle_recall": found / len(golds),
        "clean": exact and len(listed) <= len(golds),
        "extracted": _shown(listed or numbers),
        "reason": reason,
    }


def score_ruler_4k(row: Row) -> dict[str, Any]:
    """Does the model answer a question that does not say which needle is meant, and with what?

    compliance: it answers, rather than ask back, name the ambiguity or refuse (None for an empty answer).
    n_extracted: how many long numbers it gives. gold_extracted: exactly one, and a gold; gold_in_extracted: a
    gold is among them. hallucination: share of them that the text does not hold, 0 where none is given; None
    where the text is not in the row or there is no answer. reason: asked_back, ambiguity_named, refused;
    no_gold; empty.
    """
    golds = gold_needles(row.gold)
    answer = ascii_digits(row.answer)
    digits_needed = min([_LONG, *(len(gold) for gold in golds if gold.isdigit())])
    every_number = numbers_in(answer)
    numbers = [number for number in every_number if len(number.lstrip("-")) >= digits_needed]
    for gold in golds:
        if has_needle(answer, numbers, gold) and not any(_same(number, gold) for number in numbers):
            numbers.append(gold)
    golds_given = [gold for gold in golds if any(_same(number, gold) for number in numbers)]
    compliance, reason = _answers(row, answer, every_number, numbers)
    return {
        "compliance": compliance,
        "n_extracted": len(numbers),
        "gold_extracted": (len(numbers) == 1 and bool(golds_given)) if golds else None,
        "gold_in_extracted": bool(golds_given) if golds else None,
        "hallucination": _invented(row, numbers, golds) if row.state == OK else None,
        "extracted": _shown(numbers),
        "reason": reason or (None if golds else "no_gold"),
    }


def _answers(
    row: Row, answer: str, every_number: list[str], numbers: list[str]
) -> tuple[bool | None, str | None]:
    """(compliance, why not). Who gives a number answers, whatever words stand around it."""
    if row.state != OK:
        return None, "empty"
    if (
        numbers
        or any(len(number) >= 4 for number in every_number)
        or without_courtesies(answer).strip(" .").isdigit()
    ):
        return True, None
    plain = " ".join(without_courtesies(answer).replace("’", "'").split())
    for question in sentences(text_of(row.get("prompt"))[-1000:]):
        # a model that repeats the question (a base model does) does not ask it
        plain = plain.replace(question, "") if question.endswith("?") else plain
    for pattern, reason in (
        (_REFUSAL, "refused"),
        (_ASKS_BACK, "asked_back"),
        (_NAMES_AMBIGUITY, "ambiguity_named"),
    ):
        if pattern.search(plain):
            return False, reason
    return True, None


def _invented(row: Row, numbers: list[str], golds: list[str]) -> float | None:
    """Share of the numbers that are not in the row's own text; None where that text cannot be the
    haystack.
    """
    given = ascii_digits(" ".join(text_of(row.get(name)) for name in ("prompt", "formatted_prompt", "ctx")))
    known = {_plain(number) for number in numbers_in(given)}
    haystack_is_here = any(_plain(gold) in known or gold.casefold() in given.casefold() for gold in golds)
    if not (haystack_is_here if golds else known):
        return None
    if not numbers:
        return 0.0
    return sum(_plain(number) not in known for number in numbers) / len(numbers)


def gold_needles(gold: Any) -> list[str]:
    """The needles of a gold as text, trimmed, in order, without repeats: text, number, list or object."""
    if isinstance(gold, dict):
        for key in _GOLD_KEYS:
            if key in gold:
                return gold_needles(gold[key])
        return gold_needles(next(iter(gold.values()))) if len(gold) == 1 else []
    items = gold if isinstance(gold, (list, tuple)) else [gold]
    texts = [ascii_digits(text_of(item)).strip() for item in items if not is_missing(item)]
    return list(dict.fromkeys(text for text in texts if text))


def ascii_digits(text: str) -> str:
    """The text with every digit of another script (full-width, Arabic …) written as 0-9."""
    if text.isascii():
        return text
    return re.sub(r"\d", lambda match: str(unicodedata.digit(match.group(), match.group())), text)


def numbers_in(text: str) -> list[str]:
    """The numbers of a text as digits, with a "-" where negative; first occurrences, in order. Linear."""
    found: dict[str, None] = {}
    for match in _NUMBER.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        found["-" + digits if match.group()[0] in "-−" else digits] = None
    return list(found)


def has_needle(answer: str, numbers: list[str], gold: str) -> bool:
    """Whether the answer gives the gold: as a number, in groups of digits, or (not a number) as whole
    words.
    """
    digits = _BETWEEN_DIGITS.sub("", gold)
    if not digits.lstrip("-").isdigit():
        return bool(re.search(rf"(?<!\w){re.escape(gold.casefold())}(?!\w)", answer.casefold()))
    if any(_same(number, digits) for number in numbers):
        return True
    return any(_same(number, digits) for number in numbers_in(_BETWEEN_DIGITS.sub("", answer)))


def _plain(number: str) -> str:
    """A number without leading zeros (a loader may have dropped them from either side)."""
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    return sign + (digits.lstrip("0") or digits[-1:])


def _same(number: str, gold: str) -> bool:
    return _plain(number) == _plain(gold)


def _nearly(number: str, gold: str) -> bool:
    """Edit distance 1, where the number does not hold the gold whole: one digit more is another, longer
    number.

    Golds under four digits are too short for a near miss to mean anything.
    """
    if not gold.isdigit() or not number.isdigit() or len(gold) < 4 or abs(len(number) - len(gold)) > 1:
        return False
    if gold in number or number == gold:
        return False
    start = 0
    while start < min(len(number), len(gold)) and number[start] == gold[start]:
        start += 1
    if len(number) == len(gold):
        return number[start + 1 :] == gold[start + 1 :]
    longer, shorter = (number, gold) if len(number) > len(gold) else (gold, number)
    return longer[start + 1 :] == shorter[start:]


def _after_correction(answer: str) -> str:
    """What follows the last "sorry, I meant", where a number follows it; else the whole answer."""
    ends = [match.end() for match in _CORRECTION.finditer(answer)]
    if ends and re.search(r"\d", answer[ends[-1] :]):
        return answer[ends[-1] :]
    return answer


def _shown(numbers: list[str]) -> str | None:
    return ", ".join(number[:40] for number in numbers[:20]) or None
