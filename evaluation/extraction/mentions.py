"""Short answers in words: where a text states one, and whether it asserts a given name or only mentions it.

Example: short_answer("It was built in Lund.\\nAnswer: Otto Salk") is "Otto Salk"; mention("Oslo", "It is not
Oslo, it is Bergen", …) is "denied", since the only mention is denied. All scans are linear.
"""

from __future__ import annotations

import re
from typing import Any

from evaluation.extraction.answers import before_next_question, boxes, labelled, last_line, strip_markup
from evaluation.extraction.courtesies import without_courtesies, without_heading
from evaluation.extraction.normalise import contains, is_unspaced, normalise, places, text_words, words

_ACTION = re.compile(r"\b(?:finish|answer)\[([^\[\]\n]{1,400})\]", re.IGNORECASE)


def _own(text: str) -> str:
    """The text without further questions that a base model asks itself."""
    head = before_next_question(text)
    return head if head.strip() else text


def stated_answer(text: str) -> str:
    """What answers in a text: all behind its last "Answer:", else the whole; no further questions."""
    plain = strip_markup(_own(text))
    marks = [mark for mark in labelled(plain) if mark.colon and mark.value]
    return plain[marks[-1].end :].strip() if marks else plain.strip()


def short_answer(text: str) -> str:
    """The answer of one line: the last label's value, box or "Finish[…]", whichever is last; else the last
    line. A label with nothing behind it is no answer ("")."""
    text = without_heading(_own(text))
    plain = strip_markup(text)
    found = [
        (mark.start, mark.value)
        for mark in labelled(plain)
        if mark.colon or mark.start == 0 or _own_line(plain, mark)
    ]
    found += boxes(plain)
    found += [(match.start(), match[1].strip()) for match in _ACTION.finditer(plain)]
    return max(found, key=lambda pair: pair[0])[1] if found else last_line(without_courtesies(text))


def _own_line(plain: str, mark: Any) -> bool:
    """Whether "The answer is" opens its line, so that it is a label and no part of a longer sentence."""
    before = plain[max(0, mark.start - 30) : mark.start].rpartition("\n")[2]
    return (
        re.fullmatch(
            r"\W*(?:(?:so|thus|therefore|hence)\W+)?(?:(?:the|my)\s)?(?:(?:final|correct)\s)?", before.lower()
        )
        is not None
    )


# words that deny what follows in the same clause, and phrases with them that do not
_DENIAL = re.compile(
    r"\b(?:not|never|no|cannot|nor|neither|isnt|wasnt|arent|werent|doesnt|didnt|dont|cant|wont"
    r"|rather than|instead of|unlike|"
    r"except|without|nicht|kein|keine|nie|pas|jamais|nunca|jamas|не|нет|никогда|nao|non)\b"
)
_HARMLESS = re.compile(
    r"\bnot only\b|\bno doubt\b|\bno question\b|\bno other than\b|\bnone other than\b|\bnot just\b"
    r"|\bno later than\b"
)
_DENIED_AFTER = re.compile(
    r"(?:\w+ ){0,3}?(?:is|was|are|were|would be) (?:not|never|wrong|incorrect|false)\b|(?:isnt|wasnt"
    r"|arent|werent)\b"
)
_CLAUSE = re.compile(
    r"[,;:!?。，；！？\n]|\.(?:\s|$)|\b(?:but|it is|it's|however|rather|instead|although|though)\b|\s[-–—]\s",
    re.I,
)
_DENIAL_CJK = re.compile(r"(?:不是|并非|没有|ではなく|じゃなく|ไม่ใช่)$")
_REACH = 6  # words between a denial and what it denies


def mention(gold: str, answer: str, golds: list[str]) -> str | None:
    """How `gold` stands in an answer: None (asserted), "not_found", "denied" or "many_candidates"."""
    if is_unspaced(gold):
        needle, hay = "".join(normalise(gold).split()), "".join(normalise(answer).split())
        parts = hay.split(needle) if needle else [hay]
        if len(parts) < 2:
            return "not_found"
        denied = all(_DENIAL_CJK.search(part[-4:]) for part in parts[:-1])
        return "denied" if denied else None
    needle = words(gold)
    if not contains(gold, answer):
        return "not_found"
    asserted = [
        clause for clause in _clauses(answer) if contains(gold, clause) and not _denied(needle, clause)
    ]
    # a gold of several clauses ("Paris, France") is found in the whole answer alone
    if not asserted and any(contains(gold, clause) for clause in _clauses(answer)):
        return "denied"
    return "many_candidates" if _is_one_of_many(gold, answer, golds) else None


def _clauses(text: str) -> list[str]:
    return [clause for clause in _CLAUSE.split(text) if clause.strip()]


def _denied(needle: list[str], clause: str) -> bool:
    """Whether every mention in a clause is denied before ("not Oslo") or after ("Oslo is not")."""
    hay = text_words(spelled(clause))
    for index in places(needle, hay):
        before = _HARMLESS.sub(" ", " ".join(hay[max(0, index - _REACH) : index]))
        # a denial that belongs to the gold itself ("The Man Who Was Not There") stands inside the match, not
        # before
        after = " ".join(hay[index + len(needle) : index + len(needle) + 6])
        if not _DENIAL.search(before) and not _DENIED_AFTER.match(after):
            return False
    return True


def spelled(text: str) -> str:
    """With "isn't" as "isnt", so that normalising keeps one word of it."""
    return re.sub(r"n['’]t\b", "nt", text)


_HEDGE = re.compile(
    r"\b(?:possibly|perhaps|maybe|either|might|may|could|probably|one of|guess|unsure|not sure)\b", re.I
)


def _is_one_of_many(gold: str, answer: str, golds: list[str]) -> bool:
    """Whether the gold is one of several guesses: three or more joined by "or" (two behind "maybe",
    "either"), or a bare list of four, or of five where the gold leads it (a place may be named by town,
    county, state, country)."""
    for line in re.split(r"[\n;]|\.(?:\s|$)", answer):
        if not contains(gold, line):
            continue
        either = re.search(r"\bor\b|/", line, re.I)
        joined = re.search(r"\band\b|&", line, re.I)
        items = [item.strip() for item in re.split(r",|/|\bor\b|\band\b|&", line, flags=re.I) if item.strip()]
        items = [item for item in items if len(item.split()) <= 6]
        mine = [item for item in items if any(contains(text, item) for text in golds)]
        others = len(items) - len(mine)
        if not mine or not others:
            continue
        if either and (others >= 2 or _HEDGE.search(line)):
            return True
        first = items[0] in mine
        if (
            not either
            and not joined
            and len(items) >= (5 if first else 4)
            and len(line.split()) <= 4 * len(items)
        ):
            return True
    return False
