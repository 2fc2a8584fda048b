"""Answers that must name their sources (hotpotqa.citation: page titles; qasper.citation: section titles).

Example: "She went to Marrow Island [Ostrel Bay] [Ida Verhoeven]." with gold {"answer": "Marrow Island",
"supporting_facts": {"title": ["Ostrel Bay", "Ida Verhoeven"], …}, "context_titles": […]} is complete.
Published definitions (arXiv 2603.06610) with recall of the required titles as source accuracy; precision
stands beside it. Every scan is linear.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evaluation.rows import Row, is_missing, text_of

_EMPTY = {
    "complete": None,
    "format_correct": None,
    "answer_correct": None,
    "source_recall": None,
    "source_precision": None,
    "uses_citation": None,
}
ANSWER_OVERLAP = 0.8  # Jaccard index of the words, published
TITLE_OVERLAP = 0.7

_BRACKETS = re.compile(r"\[([^\[\]]*)\]|【([^【】]*)】|［([^［］]*)］")
_PARENTHESES = re.compile(r"\(([^()]*)\)")
_TAGS = re.compile(r"<(?:cite|source|citation|ref)>([^<>]*)</(?:cite|source|citation|ref)>", re.IGNORECASE)
_SOURCE_LINE = re.compile(r"\b(?:sources?|references?|citations?)[ \t]*:[ \t]*([^\n]*)", re.IGNORECASE)
_ACCORDING = re.compile(r"\baccording to[ \t]+([^\n.]{1,300})", re.IGNORECASE)
_NOTE = re.compile(r"\s*(?:edit|note|sic|citation needed|emphasis|x)\b", re.IGNORECASE)
_YEAR_END = re.compile(r"(?:^|\D)(?:1[5-9]|20)\d\d[a-z]?$")
_NUMBERS = re.compile(r"\s*[1-9]\d{0,3}(?:\s*[,;–-]\s*[1-9]\d{0,3})*\s*")
_NUMBERED_PART = re.compile(
    r"(?:section|sec\.?|§|chapter|paragraph|doc(?:ument)?|page|source)\s*\d[\d.]*|\d[\d.]*", re.I
)
_CITABLE = re.compile(r"[^\W_]")
_INTERVAL = re.compile(r"[\s\d.,;:+-]*")
_ARTICLES = frozenset(("the", "a", "an"))
_WORD = re.compile(r"[^\W_]+")
_UNANSWERABLE = re.compile(
    r"\b(?:unanswerable|not answerable|cannot be answered|can't be answered|no answer"
    r"|(?:does|do|did)(?: not|n't) (?:say|state|mention|specify|provide|tell|report|give|contain|discuss)"
    r"|(?:not|never) (?:say|said|stated|mentioned|specified|provided|given|reported|discussed|known|clear)"
    r"|no (?:information|mention)|insufficient information|not enough information)\b"
)


@dataclass(frozen=True)
class Gold:
    """answers: accepted answers. required: cleaned titles that must be cited. known: cleaned titles in the
    context.
    """

    answers: tuple[str, ...]
    required: tuple[str, ...]
    known: frozenset[str]


@dataclass(frozen=True)
class Reading:
    """citations: as written, in order. answer: the text without them. asked_form: in brackets or
    parentheses.
    """

    citations: tuple[str, ...]
    answer: str
    asked_form: bool = True


def score(row: Row) -> dict[str, Any]:
    """complete: form and answer right and every source named. source_recall, source_precision: 0..1.

    None: the recall where no source is required or only numbers are cited, the precision where nothing is
    cited, form and completeness where sources are named in another form than brackets. reason: no_citation,
    other_citation_form, wrong_answer, missing_sources, incorrect_source; no_gold.
    """
    gold = read_gold(row.gold)
    if gold is None:
        return {**_EMPTY, "extracted": None, "reason": "no_gold"}
    reading = read_citations(row.answer, gold.known)
    cited = reading.citations
    right = any(answer_is_right(reading.answer, answer) for answer in gold.answers) if gold.answers else None
    recall, precision = sources(cited, gold)
    form = bool(cited) if reading.asked_form else None
    return {
        "complete": _all((form, right, None if recall is None else recall == 1.0)),
        "format_correct": form,
        "answer_correct": right,
        "source_recall": recall,
        "source_precision": precision,
        "uses_citation": bool(cited),
        "extracted": "; ".join(cited[:50]) or None,
        "reason": _reason(cited, form, right, recall, precision, len(gold.required)),
    }


def _all(parts: tuple[bool | None, ...]) -> bool | None:
    """False if any part is False, else None if any is unknown."""
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def _reason(
    cited: tuple[str, ...],
    form: bool | None,
    right: bool | None,
    recall: float | None,
    precision: float | None,
    required: int,
) -> str | None:
    if not cited:
        return "no_citation"
    if form is None:
        return "other_citation_form"
    if right is False:
        return "wrong_answer"
    if recall is None or recall == 1.0:
        return None
    if recall == 0.0:
        return "missing_sources" if len(cited) < required else "incorrect_source"
    return "missing_sources" if precision == 1.0 else "incorrect_source"


def read_gold(gold: Any) -> Gold | None:
    """The gold in any of its shapes, None where there is none.

    A text is an answer without required sources, or JSON text. supporting_facts: {"title": […]}, pairs
    [title, sentence], or titles.
    """
    if isinstance(gold, str) and gold.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            gold = json.loads(gold)
    if not isinstance(gold, dict):
        gold = {"answer": gold}
    answers = gold.get("answer")
    answers = answers if isinstance(answers, (list, tuple)) else [answers]
    answers = tuple(text for text in (text_of(answer).strip() for answer in answers) if text)
    required = _titles(gold.get("supporting_facts"))
    context = gold.get("context_titles")
    known = {clean(text_of(title)) for title in context} if isinstance(context, (list, tuple)) else set()
    if isinstance(context, (list, tuple)):
        required = [title for title in required if title in known]
    if not answers and not required:
        return None
    return Gold(answers, tuple(dict.fromkeys(required)), frozenset(known | set(required)))


def _titles(facts: Any) -> list[str]:
    if isinstance(facts, dict):
        facts = facts.get("title", facts.get("titles"))
    if not isinstance(facts, (list, tuple)):
        return []
    titles = [fact[0] if isinstance(fact, (list, tuple)) and fact else fact for fact in facts]
    return [clean(text_of(title)) for title in titles if not is_missing(title) and clean(text_of(title))]


def clean(text: str) -> str:
    """White space collapsed, final . ! ? removed, small letters."""
    return " ".join(text.split()).rstrip(".!? ").casefold()


def read_citations(text: str, known: frozenset[str]) -> Reading:
    """The citations of an answer. Brackets of any width come first, then parentheses, then other forms.

    A bracket counts if it can name something: no Markdown link, array index, display mathematics, interval,
    dots or editor's note. Parentheses only count if they hold a known title (or, where none is known, look
    like one).
    """
    spans: list[tuple[int, int]] = []
    cited: list[str] = []
    for match in _BRACKETS.finditer(text):
        inside = next(group for group in match.groups() if group is not None)
        if _is_citation_bracket(text, match, inside, known):
            cited += split_titles(inside, known)
            spans.append(match.span())
    if not cited:
        for match in _PARENTHESES.finditer(text):
            parts = split_titles(match.group(1), known)
            if any(_looks_like_a_title(part, known) for part in parts):
                cited += parts
                spans.append(match.span())
    if cited:
        return Reading(tuple(cited), _without(text, spans))
    return _other_forms(text, known)


def _is_citation_bracket(text: str, match: re.Match[str], inside: str, known: frozenset[str]) -> bool:
    if clean(inside) in known:
        return True
    before, after = text[max(0, match.start() - 3) : match.start()], text[match.end() : match.end() + 1]
    if not _CITABLE.search(inside) or after == "(" or before.endswith("\\") or inside.endswith("\\"):
        return False
    if _NOTE.match(inside) and (
        len(inside.strip()) < 4 or ":" in inside or "needed" in inside or "sic" in inside
    ):
        return False
    if _INTERVAL.fullmatch(inside):
        attached_index = before[-1:].isalnum() and not (len(before) == 3 and before.isalpha())
        return bool(_NUMBERS.fullmatch(inside)) and not attached_index
    return True


def _looks_like_a_title(part: str, known: frozenset[str]) -> bool:
    if known:
        return clean(part) in known or any(_matches(clean(part), title) for title in known)
    words = part.split()
    return len(words) > 1 and all(word[0].isupper() for word in words) and not re.search(r"\d", part)


def split_titles(inside: str, known: frozenset[str]) -> list[str]:
    """The titles in one bracket, separated by ; or , – a title that holds a comma itself stays whole."""
    titles: list[str] = []
    for part in [inside] if clean(inside) in known else inside.split(";"):
        part = part.strip()
        if clean(part) in known or _YEAR_END.search(part):
            # "Brandt et al., 2019" is one source
            titles.append(part)
            continue
        titles += _split_at_commas([piece.strip() for piece in part.split(",")], known)
    return [title for title in titles if _CITABLE.search(title)]


def _split_at_commas(pieces: list[str], known: frozenset[str]) -> list[str]:
    longest = 1 + max((title.count(",") for title in known), default=0)
    titles, at = [], 0
    while at < len(pieces):
        for size in range(min(longest, len(pieces) - at), 0, -1):
            joined = ", ".join(pieces[at : at + size])
            if size == 1 or clean(joined) in known:
                titles.append(joined)
                at += size
                break
    return titles


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    kept, position = [], 0
    for start, end in spans:
        kept.append(text[position:start])
        position = end
    return " ".join([*kept, text[position:]]).strip()


def _other_forms(text: str, known: frozenset[str]) -> Reading:
    """Sources named in tags, on a "Source:" line, or by "according to" a known title."""
    for pattern in (_TAGS, _SOURCE_LINE):
        matches = list(pattern.finditer(text))
        cited = [title for match in matches for title in split_titles(match.group(1), known)]
        if cited:
            return Reading(
                tuple(cited), _without(text, [match.span() for match in matches]), asked_form=False
            )
    named = []
    for match in _ACCORDING.finditer(text):
        said = f" {_words(match.group(1))} "
        named += [title for title in known if said.startswith(f" {_words(title)} ")]
    return Reading(tuple(dict.fromkeys(named)), text, asked_form=not named)


def sources(cited: tuple[str, ...], gold: Gold) -> tuple[float | None, float | None]:
    """(recall of the required titles, precision of the citations), see score()."""
    if not gold.required:
        return None, None
    named = list(dict.fromkeys(clean(title) for title in cited))
    numbers = [title for title in named if title not in gold.known and _NUMBERED_PART.fullmatch(title)]
    comparable = [title for title in named if title not in numbers]
    if numbers and not comparable:
        return None, None
    found: set[str] = set()
    hits = 0
    # a title cited to the letter is never spent on another one that it is a part of
    for title in sorted(comparable, key=lambda t: t not in gold.known):
        if title in gold.known:
            candidates = [title] if title in gold.required else []
        else:
            candidates = [other for other in gold.required if _matches(title, other)]
        if candidates:
            hits += 1
            found.add(next((other for other in candidates if other not in found), candidates[0]))
    return len(found) / len(gold.required), hits / len(comparable) if comparable else None


def _matches(title: str, required: str) -> bool:
    """Whether a citation means a title that it does not spell exactly: words in a row, or most words shared.

    A single word of under four letters ("o", "the", "M") names nothing.
    """
    a = [word for word in _WORD.findall(title) if word not in _ARTICLES]
    b = [word for word in _WORD.findall(required) if word not in _ARTICLES]
    if not a or not b:
        return False
    if a == b:
        return True
    shorter, longer = sorted((a, b), key=len)
    if (len(shorter) > 1 or len(shorter[0]) >= 4) and f" {' '.join(shorter)} " in f" {' '.join(longer)} ":
        return True
    return len(set(a) & set(b)) / len(set(a) | set(b)) >= TITLE_OVERLAP


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def answer_is_right(answer: str, gold: str) -> bool:
    """Equal, contained as whole words, or sharing at least 0.8 of the words; yes and no by the first that is
    said.
    """
    said, wanted = _words(answer), _words(gold)
    if not said or not wanted:
        return False
    if wanted in ("yes", "no"):
        return next((word for word in said.split() if word in ("yes", "no")), None) == wanted
    if wanted == "unanswerable":
        return bool(_UNANSWERABLE.search(" ".join(answer.casefold().replace("’", "'").split())))
    if f" {wanted} " in f" {said} ":
        return True
    a, b = set(said.split()), set(wanted.split())
    return len(a & b) / len(a | b) >= ANSWER_OVERLAP
