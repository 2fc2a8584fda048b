"""Short answers: PopQA and XTREME (open), HotpotQA and BoolQ (over a passage).

Example: outputs "It is not Oslo, it is Bergen.", gold ["Bergen"] gives {"correct": True, "answered": True,
…}; with gold ["Oslo"], False. Benchmarks: https://arxiv.org/abs/2212.10511 (PopQA), 2003.11080 (XTREME),
1809.09600 (HotpotQA), 1905.10044 (BoolQ).
"""

from __future__ import annotations

import re
from typing import Any

from evaluation.extraction.literals import gold_texts, literal
from evaluation.extraction.mentions import mention, short_answer, spelled, stated_answer
from evaluation.extraction.normalise import contains, is_unspaced, normalise, numerals, places, words
from evaluation.rows import OK, Row, is_missing, text_of

_OPEN_KEYS = ("text", "answer", "answers", "aliases", "possible_answers")
_HOTPOT_KEYS = ("answer", "answers")


def score_open(row: Row) -> dict[str, Any]:
    """correct: a gold text stands in the answer as whole words, neither denied nor one of many guesses.
    answered: there is an answer. reason: no_gold, empty, truncated, not_found, denied or many_candidates."""
    golds = gold_texts(row.gold, _OPEN_KEYS)
    result: dict[str, Any] = {"correct": None, "answered": row.state == OK, "extracted": None, "reason": None}
    if not golds:
        return {**result, "reason": "no_gold"}
    if row.state != OK:
        return {**result, "correct": False, "reason": row.state}
    answer = stated_answer(row.answer)
    reason = _best(mention(gold, answer, golds) for gold in golds)
    return {**result, "correct": reason is None, "extracted": answer[:500], "reason": reason}


def _best(reasons: Any) -> str | None:
    """The verdict over all golds: right (None) where one is, else the reason that says most."""
    found = set(reasons)
    return (
        None if None in found else next(r for r in ("many_candidates", "denied", "not_found") if r in found)
    )


def score_hotpotqa(row: Row) -> dict[str, Any]:
    """correct: the stated answer equals the gold, contains it undenied as whole words, or is most of it,
    numerals agreeing exactly. evidence_hit: the stated answer can be found in the passages (None for an
    answer of yes or no, about which a search says nothing). reason: no_gold, empty, truncated, no_answer,
    denied or wrong_answer."""
    # a loader may deliver a yes or no gold as a truth value
    golds = [{"true": "yes", "false": "no"}.get(gold, gold) for gold in gold_texts(row.gold, _HOTPOT_KEYS)]
    answer = short_answer(row.answer) if row.state == OK else ""
    yes_no = bool(golds) and all(normalise(gold) in ("yes", "no") for gold in golds)
    says = yes_or_no(answer, answer) if yes_no else None
    hit = None if says is not None else in_passage(answer, passage(row))
    result: dict[str, Any] = {
        "correct": None,
        "evidence_hit": hit,
        "extracted": answer or None,
        "reason": None,
    }
    if not golds:
        return {**result, "reason": "no_gold"}
    if row.state != OK or not answer:
        return {**result, "correct": False, "reason": "no_answer" if row.state == OK else row.state}
    if yes_no:
        says = yes_or_no(answer, row.answer) if says is None else says
        correct = says == (normalise(golds[0]) == "yes")
        return {**result, "correct": correct, "reason": None if correct else "wrong_answer"}
    correct = any(same_answer(answer, gold) for gold in golds)
    denied = not correct and any(mention(gold, answer, golds) == "denied" for gold in golds)
    return {
        **result,
        "correct": correct,
        "reason": None if correct else "denied" if denied else "wrong_answer",
    }


def same_answer(answer: str, gold: str) -> bool:
    """Whether a stated short answer gives the gold (see score_hotpotqa)."""
    answer = answer[:5000]
    ours, theirs = words(answer), words(gold)
    if ours == theirs:
        return True
    if is_unspaced(gold) or mention(gold, answer, [gold]) is None:
        # "Henry Marlow III" does not give Henry Marlow, nor 14 March 1957 the 14 March of another year
        return _same_name(ours, theirs)
    if mention(gold, answer, [gold]) == "denied" or numerals(ours) != numerals(theirs):
        return False
    if places(ours, theirs) and 2 * len(ours) >= len(theirs):
        return True
    return max(len(answer), len(gold)) <= 200 and _ratio(" ".join(ours), " ".join(theirs)) >= 0.8


def _same_name(ours: list[str], theirs: list[str]) -> bool:
    """Whether the gold's words in the answer are not the stem of another name: no Roman numeral follows
    them."""
    at = places(theirs, ours)
    return not at or any(
        not numerals(ours[i + len(theirs) : i + len(theirs) + 1]) or numerals(theirs) for i in at
    )


def _ratio(a: str, b: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def passage(row: Row) -> str:
    """The row's passages as one text: ctx (text, list, or HotpotQA's {"title", "sentences"}); else what
    stands between "Context:" or "Passage:" and "Question:" in context, prompt or formatted_prompt. "" where
    there is none."""
    text = "\n".join(_texts(row.get("ctx"))).strip()
    if text and normalise(text) != "none":
        return text
    for name in ("context", "prompt", "formatted_prompt"):
        prompt = row.get(name)
        if isinstance(prompt, str):
            start = re.search(r"(?:context|passage):\s*", prompt, re.IGNORECASE)
            if start:
                return re.split(r"question:", prompt[start.end() :], maxsplit=1, flags=re.IGNORECASE)[
                    0
                ].strip()
    return ""


def _texts(value: Any, depth: int = 0) -> list[str]:
    if depth > 50:
        return []
    if isinstance(value, str):
        parsed = literal(value) if value.lstrip().startswith(("[", "{")) else None
        return [value] if parsed is None else _texts(parsed, depth + 1)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _texts(item, depth + 1)]
    return [] if is_missing(value) else [text_of(value)]


_NAME = re.compile(r"\b[A-ZÀ-ÖØ-Þ][\w'’-]+(?:\s+[A-ZÀ-ÖØ-Þ][\w'’-]+)*")
_OPENERS = frozenset({
    "the", "a", "an", "it", "in", "on", "at", "he", "she", "they", "we", "this", "that", "these",
    "those", "there", "both", "yes", "no", "i", "his", "her", "their", "its", "as", "for", "from", "by",
    "and", "but", "according", "based", "answer", "action", "thought", "finish",
})  # fmt: skip


def in_passage(answer: str, text: str) -> bool:
    """Whether a stated answer can be found in a passage: its words in a row; or 7 in 10 of them, and every
    numeral, in one sentence; or, without numerals or in a long answer, one of its names (openers such as
    "The" are none)."""
    ours = words(answer)
    if not ours or not text or ours[0] in ("a", "an", "the"):
        return False
    if contains(answer, text):
        return True
    exact = set(numerals(ours))
    sentences = [set(words(sentence)) for sentence in re.split(r"(?<=[.!?])\s+|\n", text)]
    if len(ours) > 1:
        counted = {word for word in ours if len(word) > 2} | exact
        if any(len(counted & found) >= 0.7 * len(ours) and exact <= found for found in sentences):
            return True
    if exact and len(ours) < 6:
        return False
    names = [_without_openers(match.group()) for match in _NAME.finditer(answer[:2000])]
    return any(name and contains(name, text) for name in names)


def _without_openers(name: str) -> str:
    parts = name.split()
    while parts and parts[0].lower() in _OPENERS:
        parts = parts[1:]
    return " ".join(parts)


_YES = frozenset(("yes", "true", "t", "y", "correct", "1", "yeah", "yep", "right"))
_NO = frozenset(("no", "false", "f", "n", "incorrect", "0", "nope", "wrong"))
# the published indicator words of an answer in a short passage
_INDICATORS = frozenset({
    "are", "can", "cannot", "confirmed", "correct", "denied", "did", "does", "false", "has", "have",
    "incorrect", "is", "must", "should", "true", "was", "were", "will", "would",
})  # fmt: skip


def score_boolq(row: Row) -> dict[str, Any]:
    """correct: the answer's yes or no is the gold's. evidence_hit: the published rule, a passage of more than
    ten words (or a shorter one with an indicator word), whatever the answer. extracted: "Yes", "No", or the
    text that says neither."""
    gold = gold_bool(row.gold)
    answer = short_answer(row.answer) if row.state == OK else ""
    verdict = yes_or_no(answer, row.answer) if row.state == OK else None
    found = re.findall(r"\w+", passage(row))
    hit = len(found) > 10 or bool(_INDICATORS & {word.lower() for word in found})
    extracted = {True: "Yes", False: "No", None: answer[:500] or None}[verdict]
    result = {"correct": None, "evidence_hit": hit, "extracted": extracted, "reason": None}
    if gold is None:
        return {**result, "reason": "no_gold"}
    if row.state != OK:
        return {**result, "correct": False, "reason": row.state}
    reason = "neither_yes_nor_no" if verdict is None else None if verdict == gold else "wrong_answer"
    return {**result, "correct": reason is None, "reason": reason}


def gold_bool(gold: Any) -> bool | None:
    """Yes or no as a gold writes it: true, 1, "Yes", "FALSE", {"answer": true}, [false]; None for anything
    else."""
    for _ in range(3):
        if isinstance(gold, dict):
            gold = next((gold[key] for key in _OPEN_KEYS if not is_missing(gold.get(key))), None)
        elif isinstance(gold, list) and len(gold) == 1:
            gold = gold[0]
    if is_missing(gold) or isinstance(gold, (list, dict)):
        return None
    word = normalise(text_of(gold))
    return True if word in _YES else False if word in _NO else None


_AFFIRMING = re.compile(
    r"\b(?:there is )?no (?:doubt|question)\b|\bwithout (?:a )?doubt\b|\bnot (?:un|in)(?:true|correct"
    r"|false)\b|\bnot false\b"
)
_DENYING = re.compile(
    r"\b(?:not|never|dont think|wouldnt say|would not say|cannot say|isnt|hardly) (?:a |quite |really "
    r"|necessarily )?"
    r"(?:yes|true|correct|really|so|right|the case)\b|\bit (?:is|does|can|did|was) not\b|\b(?:not really"
    r"|not at all|of course not|not exactly)\b"
)


_STATED = re.compile(
    r"\banswer (?:is|would be|must be) (?:therefore |thus |clearly |simply )?(yes|no|true|false)\b"
)


def yes_or_no(answer: str, whole: str) -> bool | None:
    """What an answer says: its leading word, else fixed phrases, else the one of yes and no (true and false)
    that it has; where it has neither, the one that the whole text has. None where both or none are there."""
    for text in (answer, whole):
        found = normalise(spelled(text)[:20_000])
        first = found.split(" ", 1)[0]
        if first in _YES - {"t", "y"} or found in _YES:
            return True
        if _AFFIRMING.search(found):
            return True
        if (first in _NO - {"f", "n"}) or found in _NO:
            return False
        if _DENYING.search(found):
            return False
        stated = _STATED.findall(found)
        if stated:
            return stated[-1] in _YES
        present = set(found.split())
        yes, no = bool(present & {"yes", "true"}), bool(present & {"no", "false", "incorrect", "untrue"})
        if yes != no:
            return yes
        if yes and no and text is whole:
            return None
    return None
