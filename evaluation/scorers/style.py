"""How an answer is written: length, hedging, directness, lists, tables, emoji. No judge, no gold.

Example: "Yes. The water is clean and warm." gives words 7, sentences 2, direct True, all else False.
Definitions of the published CapTrack (arXiv 2603.06610), which describe habits and not merits: neither more
nor less of them is better. An answer that is missing has no style: every value is None.
"""

from __future__ import annotations

import re
from typing import Any

from evaluation.extraction.sentences import sentences
from evaluation.rows import OK, Row

COLUMNS = (
    "words",
    "sentence_words",
    "sentences",
    "shortest_sentence",
    "longest_sentence",
    "hedging",
    "direct",
    "bullets",
    "table",
    "emoji",
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"\w+")
_HEDGES = re.compile(
    r"(?<!\w)(?:might|may|could|would|should|possibly|probably|likely|unlikely|perhaps|maybe|potentially"
    r"|as an ai|i'm an ai|i am an ai|as a language model|as an assistant|i cannot guarantee|i can't guarantee"
    r"|i'm not sure|i am not sure|i don't know|i do not know"
    r"|it seems|it appears|it looks like|in my opinion|i think|i believe|to my knowledge|as far as i know"
    r"|if i understand correctly|if i'm not mistaken"
    r"|please note|keep in mind|bear in mind|it's worth noting|it should be noted"
    r"|however|although|nevertheless)(?!\w)",
    re.IGNORECASE,
)
# the month: "in May", "May 5", "5 May", and a May with a capital inside a sentence
_MONTH_BEFORE = re.compile(
    r"(?:\b(?:in|of|since|until|till|last|next|early|late|mid|through)|\d(?:st|nd|rd|th)?)[ -]$", re.I
)
_MONTH_AFTER = re.compile(r",? ?\d")

_INDICATORS = _set("is are was were yes no true false first second third main primary key")
_DIRECT_STARTS = (
    "the answer is",
    "the result is",
    "the solution is",
    "to answer",
    "simply put",
    "in short",
)
_MONTHS = _set("january february march april may june july august september october november december")
_ABSOLUTES = _set("always never all none every each")
_LEADING_MARK = re.compile(r"(?:[-*•+–#>]+\s+|\d{1,3}[.)]\s+)+")
_BARE_ANSWER = re.compile(r"[\"'*]*\w[\w.,:%/-]*(?:\s+\w[\w.,:%/-]*)?[.!\"'*]*")
# scripts that write no blanks between words: a "word" there may be a sentence
_NO_BLANKS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_BULLET = re.compile(r"\s{0,40}(?:[-*•+–‣◦▪●○·]|\d{1,3}[.)]|[A-Za-z]\))\s")
_LETTER_ITEM = re.compile(r"\s{0,40}([A-Za-z])\.\s")
_DIVIDER = re.compile(r"\s*(?:[-*_]\s*){3,}")

# Emoji_Presentation of Unicode, the pictographs among the dingbats, and anything that U+FE0F turns into an
# emoji
_EMOJI = re.compile(
    "[\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648-\u2653\u267f\u2693\u26a1\u26aa\u26ab"
    "\u26bd\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2702\u2705\u2708-\u270d\u270f\u2712"
    "\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797"
    "\u27a1\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55\ufe0f"
    "\U0001f004\U0001f0cf\U0001f18e\U0001f191-\U0001f19a\U0001f1e6-\U0001f1ff\U0001f201\U0001f21a\U0001f22f"
    "\U0001f232-\U0001f236\U0001f238-\U0001f23a\U0001f250\U0001f251\U0001f300-\U0001f64f\U0001f680-\U0001f6ff"
    "\U0001f7e0-\U0001f7eb\U0001f90c-\U0001f9ff\U0001fa70-\U0001faff]"
)


def score(row: Row) -> dict[str, Any]:
    """The style of one answer. words, sentence_words: counts; *_sentence: words; the rest truth values.

    All None with reason "empty" where there is no answer.
    """
    if row.state != OK:
        return {**dict.fromkeys(COLUMNS), "extracted": None, "reason": "empty"}
    text = row.answer.replace("’", "'")
    # pieces of one character are no sentences (published definition)
    parts = [part for part in sentences(text) if len(part) > 1]
    lengths = [count_words(part) for part in parts]
    prose = _without_code(text)
    return {
        "words": count_words(text),
        "sentence_words": sum(lengths),
        "sentences": len(lengths),
        "shortest_sentence": min(lengths, default=None),
        "longest_sentence": max(lengths, default=None),
        "hedging": has_hedging(text),
        "direct": is_direct(text, parts),
        "bullets": has_bullets(prose),
        "table": has_table(prose),
        "emoji": bool(_EMOJI.search(text)),
        "extracted": None,
        "reason": None,
    }


def count_words(text: str) -> int:
    """Maximal runs of word characters: "don't" is 2, "1,000" is 2."""
    return sum(1 for _ in _WORD.finditer(text))


def has_hedging(text: str) -> bool:
    """Whether a hedging word or phrase stands in a text whose apostrophes are straight."""
    return any(
        match.group().lower() != "may" or not _is_month(text, match) for match in _HEDGES.finditer(text)
    )


def _is_month(text: str, may: re.Match[str]) -> bool:
    before = text[max(0, may.start() - 12) : may.start()]
    if _MONTH_BEFORE.search(before) or _MONTH_AFTER.match(text, may.end()):
        return True
    inside_sentence = bool(before.rstrip(" \"'(*")) and before.rstrip(" \"'(*")[-1] not in ".!?:\n"
    return may.group() == "May" and inside_sentence


def is_direct(text: str, parts: list[str]) -> bool:
    """Whether the answer opens with an answer: its first sentence states something, without hedge or
    question.

    A sentence of one or two words is direct if it opens with yes, no, true, false or a number, or is the
    whole answer. A longer one needs two indicators, or one beside concrete information (a name, a number, a
    month, an absolute such as "never").
    """
    if not parts:
        return bool(_BARE_ANSWER.fullmatch(text.strip()))
    mark = _LEADING_MARK.match(parts[0])
    first = parts[0][mark.end() if mark else 0 :].strip()
    if not first or first.rstrip("\"'*_)").endswith(("?", "？")) or has_hedging(first):
        return False
    words = _WORD.findall(first)
    if len(first.split()) < 3:
        if not _is_bare(first):
            return False
        return len(parts) == 1 or words[0].lower() in ("yes", "no", "true", "false") or words[0].isdigit()
    lowered = [word.lower() for word in words]
    number = any(word[0].isdigit() for word in words)
    points = len(_INDICATORS.intersection(lowered)) + number + first.lower().startswith(_DIRECT_STARTS)
    named = any(len(word) > 1 and word[0].isupper() for word in words[1:])
    concrete = number or named or not _ABSOLUTES.union(_MONTHS).isdisjoint(lowered)
    return points >= 2 or (points == 1 and concrete)


def _is_bare(text: str) -> bool:
    """One or two plain words or numbers and nothing else."""
    return len(text) <= 200 and bool(_BARE_ANSWER.fullmatch(text)) and not _NO_BLANKS.search(text)


def _without_code(text: str) -> str:
    """The text without fenced code: marks in code are no formatting of the answer."""
    kept, inside = [], False
    for line in text.split("\n"):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def has_bullets(text: str) -> bool:
    """A list item: a bullet, "1." or "a)" at a line's start; "A." only where the next letter's item
    follows.
    """
    letters = set()
    for line in text.split("\n"):
        if _BULLET.match(line) and not _DIVIDER.fullmatch(line):
            return True
        letter = _LETTER_ITEM.match(line)
        if letter:
            letters.add(letter.group(1))
            if chr(ord(letter.group(1)) - 1) in letters:
                return True
    return False


def has_table(text: str) -> bool:
    """A Markdown table: a rule of dashes and bars below a line with bars, or two neighbouring lines framed by
    bars that have the same number of cells, at least two."""
    above = ""
    for line in text.split("\n"):
        line = line.strip()
        if "|" in above and _is_rule(line):
            return True
        if _framed(line) and _framed(above) and line.count("|") == above.count("|"):
            return True
        above = line
    return False


def _is_rule(line: str) -> bool:
    return "-" in line and "|" in line and not line.strip("|-: \t+")


def _framed(line: str) -> bool:
    return line.startswith("| ") and line.endswith(" |") and line.count("|") >= 3
