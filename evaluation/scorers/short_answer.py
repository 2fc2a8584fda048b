"""Short answers: PopQA and XTREME (open), HotpotQA and BoolQ (over a passage).

Example: outputs "It is not Oslo, it is Bergen.", gold ["Bergen"] gives {"correct": True, "answered": True, …}; with gold
["Oslo"], False. Benchmarks: https://arxiv.org/abs/2212.10511 (PopQA), 2003.11080 (XTREME), 1809.09600 (HotpotQA),
1905.10044 (BoolQ).
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from evaluation.extraction.answers import boxes, labelled, last_line, strip_markup
from evaluation.extraction.normalise import contains, is_unspaced, normalise, numerals, places, words
from evaluation.rows import OK, Row, is_missing, text_of

_OPEN_KEYS = ("text", "answer", "answers", "aliases", "possible_answers")
_HOTPOT_KEYS = ("answer", "answers")


def score_open(row: Row) -> dict[str, Any]:
    """correct: a gold text stands in the answer as whole words, neither denied nor one of many guesses. answered: there is
    an answer. reason: no_gold, empty, truncated, not_found, denied or many_candidates."""
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
    return None if None in found else next(r for r in ("many_candidates", "denied", "not_found") if r in found)


def gold_texts(gold: Any, keys: tuple[str, ...]) -> list[str]:
    """The accepted texts of a gold: a text, a number, a list, an object (under the first of `keys` that it has), or any of
    these written as JSON or Python text. [] where there is none. Text is parsed as a literal, never evaluated."""
    if is_missing(gold):
        return []
    if isinstance(gold, str):
        parsed = _literal(gold)
        if parsed is None:
            return [gold.strip()] if gold.strip() else []
        return [parsed] if isinstance(parsed, str) else gold_texts(parsed, keys)
    if isinstance(gold, dict):
        key = next((key for key in keys if not is_missing(gold.get(key))), None)
        return gold_texts(gold[key], keys) if key else []
    if hasattr(gold, "tolist"):
        gold = gold.tolist()
    if isinstance(gold, (list, tuple, set)):
        return [text for item in gold for text in ([item.strip()] if isinstance(item, str) else gold_texts(item, keys)) if text]
    return [text_of(gold)]


def _literal(text: str) -> Any:
    """The list, object, tuple or quoted text that a text writes; None for plain text (also 1984, None, True)."""
    text = text.strip()
    if not text.startswith(("[", "{", "(", '"', "'")) or len(text) > 100_000:
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = parse(text)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, (list, dict, tuple, set, str)) else None
    return None


_ACTION = re.compile(r"\b(?:finish|answer)\[([^\[\]\n]{1,400})\]", re.IGNORECASE)


def stated_answer(text: str) -> str:
    """What answers in a text: all behind its last "Answer:" (also a box or an agent's "Finish[…]"), else the whole."""
    plain = strip_markup(text)
    marks = [mark for mark in labelled(plain) if mark.colon and mark.value]
    return plain[marks[-1].end :].strip() if marks else plain.strip()


def short_answer(text: str) -> str:
    """The answer of one line: the last label's value, box or "Finish[…]", whichever is last; else the last line. A label
    with nothing behind it is no answer ("")."""
    plain = strip_markup(text)
    found = [(mark.start, mark.value) for mark in labelled(plain) if mark.colon or mark.start == 0 or _own_line(plain, mark)]
    found += boxes(plain)
    found += [(match.start(), match[1].strip()) for match in _ACTION.finditer(plain)]
    return max(found, key=lambda pair: pair[0])[1] if found else last_line(text)


def _own_line(plain: str, mark: Any) -> bool:
    """Whether "The answer is" opens its line, so that it is a label and no part of a longer sentence."""
    before = plain[max(0, mark.start - 30) : mark.start].rpartition("\n")[2]
    return re.fullmatch(r"\W*(?:(?:so|thus|therefore|hence)\W+)?(?:(?:the|my)\s)?(?:(?:final|correct)\s)?", before.lower()) is not None


# words that deny what follows in the same clause, and phrases with them that do not
_DENIAL = re.compile(
    r"\b(?:not|never|no|cannot|nor|neither|isnt|wasnt|arent|werent|doesnt|didnt|dont|cant|wont|rather than|instead of|unlike|"
    r"except|without|nicht|kein|keine|nie|pas|jamais|nunca|jamas|не|нет|никогда|nao|non)\b"
)
_HARMLESS = re.compile(r"\bnot only\b|\bno doubt\b|\bno question\b|\bno other than\b|\bnone other than\b|\bnot just\b|\bno later than\b")
_DENIED_AFTER = re.compile(
    r"(?:\w+ ){0,3}?(?:is|was|are|were|would be) (?:not|never|wrong|incorrect|false)\b|(?:isnt|wasnt|arent|werent)\b"
)
_CLAUSE = re.compile(r"[,;:!?。，；！？\n]|\.(?:\s|$)|\b(?:but|it is|it's|however|rather|instead|although|though)\b|\s[-–—]\s", re.I)
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
    asserted = [clause for clause in _clauses(answer) if contains(gold, clause) and not _denied(needle, clause)]
    # a gold of several clauses ("Paris, France") is found in the whole answer alone
    if not asserted and any(contains(gold, clause) for clause in _clauses(answer)):
        return "denied"
    return "many_candidates" if _is_one_of_many(gold, answer, golds) else None


def _clauses(text: str) -> list[str]:
    return [clause for clause in _CLAUSE.split(text) if clause.strip()]


def _denied(needle: list[str], clause: str) -> bool:
    """Whether every mention in a clause is denied before ("not Oslo") or after ("Oslo is not")."""
    hay = words(_spelled(clause))
    for index in places(needle, hay):
        before = _HARMLESS.sub(" ", " ".join(hay[max(0, index - _REACH) : index]))
        # a denial that belongs to the gold itself ("The Man Who Was Not There") stands inside the match, not before
        after = " ".join(hay[index + len(needle) : index + len(needle) + 6])
        if not _DENIAL.search(before) and not _DENIED_AFTER.match(after):
            return False
    return True


def _spelled(text: str) -> str:
    return re.sub(r"n['’]t\b", "nt", text)


_HEDGE = re.compile(r"\b(?:possibly|perhaps|maybe|either|might|may|could|probably|one of|guess|unsure|not sure)\b", re.I)


def _is_one_of_many(gold: str, answer: str, golds: list[str]) -> bool:
    """Whether the gold is one of several guesses: three or more joined by "or" (two behind "maybe", "either"), or a bare
    list of four, or of five where the gold leads it (a place may be named by town, county, state, country)."""
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
        if not either and not joined and len(items) >= (5 if first else 4) and len(line.split()) <= 4 * len(items):
            return True
    return False


# --- answers over a passage -------------------------------------------------------------------------------------


def score_hotpotqa(row: Row) -> dict[str, Any]:
    """correct: the stated answer equals the gold, contains it undenied as whole words, or is most of it, numerals agreeing
    exactly. evidence_hit: the stated answer can be found in the passages (None for an answer of yes or no, about which a
    search says nothing). reason: no_gold, empty, truncated, no_answer, denied or wrong_answer."""
    golds = gold_texts(row.gold, _HOTPOT_KEYS)
    answer = short_answer(row.answer) if row.state == OK else ""
    yes_no = bool(golds) and all(normalise(gold) in ("yes", "no") for gold in golds)
    says = yes_or_no(answer, answer) if yes_no else None
    hit = None if says is not None else in_passage(answer, passage(row))
    result: dict[str, Any] = {"correct": None, "evidence_hit": hit, "extracted": answer or None, "reason": None}
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
    return {**result, "correct": correct, "reason": None if correct else "denied" if denied else "wrong_answer"}


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
    """Whether the gold's words in the answer are not the stem of another name: no Roman numeral follows them."""
    at = places(theirs, ours)
    return not at or any(not numerals(ours[i + len(theirs) : i + len(theirs) + 1]) or numerals(theirs) for i in at)


def _ratio(a: str, b: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def passage(row: Row) -> str:
    """The row's passages as one text: ctx (text, list, or HotpotQA's {"title", "sentences"}); else what stands between
    "Context:" or "Passage:" and "Question:" in context, prompt or formatted_prompt. "" where there is none."""
    text = "\n".join(_texts(row.get("ctx"))).strip()
    if text and normalise(text) != "none":
        return text
    for name in ("context", "prompt", "formatted_prompt"):
        prompt = row.get(name)
        if isinstance(prompt, str):
            start = re.search(r"(?:context|passage):\s*", prompt, re.IGNORECASE)
            if start:
                return re.split(r"question:", prompt[start.end() :], maxsplit=1, flags=re.IGNORECASE)[0].strip()
    return ""


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        parsed = _literal(value) if value.lstrip().startswith(("[", "{")) else None
        return [value] if parsed is None else _texts(parsed)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _texts(item)]
    return [] if is_missing(value) else [text_of(value)]


_NAME = re.compile(r"\b[A-ZÀ-ÖØ-Þ][\w'’-]+(?:\s+[A-ZÀ-ÖØ-Þ][\w'’-]+)*")
_OPENERS = frozenset(
    "the a an it in on at he she they we this that these those there both yes no i his her their its as for from by and but "
    "according based answer action thought finish".split()
)


def in_passage(answer: str, text: str) -> bool:
    """Whether a stated answer can be found in a passage: its words in a row; or 7 in 10 of them, and every numeral, in one
    sentence; or, without numerals or in a long answer, one of its names (openers such as "The" are none)."""
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
_INDICATORS = frozenset(
    "are can cannot confirmed correct denied did does false has have incorrect is must should true was were will would".split()
)


def score_boolq(row: Row) -> dict[str, Any]:
    """correct: the answer's yes or no is the gold's. evidence_hit: the published rule, a passage of more than ten words (or
    a shorter one with an indicator word), whatever the answer. extracted: "Yes", "No", or the text that says neither."""
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
    """Yes or no as a gold writes it: true, 1, "Yes", "FALSE", {"answer": true}, [false]; None for anything else."""
    for _ in range(3):
        if isinstance(gold, dict):
            gold = next((gold[key] for key in _OPEN_KEYS if not is_missing(gold.get(key))), None)
        elif isinstance(gold, list) and len(gold) == 1:
            gold = gold[0]
    if is_missing(gold) or isinstance(gold, (list, dict)):
        return None
    word = normalise(text_of(gold))
    return True if word in _YES else False if word in _NO else None


_AFFIRMING = re.compile(r"\b(?:there is )?no (?:doubt|question)\b|\bwithout (?:a )?doubt\b|\bnot (?:un|in)(?:true|correct|false)\b|\bnot false\b")
_DENYING = re.compile(
    r"\b(?:not|never|dont think|wouldnt say|would not say|cannot say|isnt|hardly) (?:a |quite |really |necessarily )?"
    r"(?:yes|true|correct|really|so|right|the case)\b|\bit (?:is|does|can|did|was) not\b|\b(?:not really|not at all|of course not|not exactly)\b"
)


def yes_or_no(answer: str, whole: str) -> bool | None:
    """What an answer says: its leading word, else fixed phrases, else the one of yes and no (true and false) that it has;
    where it has neither, the one that the whole text has. None where both or none are there."""
    for text in (answer, whole):
        found = normalise(_spelled(text)[:20_000])
        first = found.split(" ", 1)[0]
        if first in _YES - {"t", "y"} or found in _YES:
            return True
        if _AFFIRMING.search(found):
            return True
        if (first in _NO - {"f", "n"}) or found in _NO:
            return False
        if _DENYING.search(found):
            return False
        present = set(found.split())
        yes, no = bool(present & {"yes", "true"}), bool(present & {"no", "false"})
        if yes != no:
            return yes
        if yes and no and text is whole:
            return None
    return None
