"""Our own verdict beside the published one: what a careful reader would say that the instruction asks.

Where a function of published.py already says it, the table in table.py uses that; README.md in this folder
lists the differences. Example: keyword_existence("The party started", {"keywords": ("art",)}) → False, since
"art" is no word there. Texts are visible answers, stripped and not blank. Every scan is linear, whatever the
text.
"""

from __future__ import annotations

import json
import re

from evaluation.scorers.instructions.language_tools import language_of, sentences
from evaluation.scorers.instructions.parameters import Unscored
from evaluation.scorers.instructions.patterns import straight, whole_word
from evaluation.scorers.instructions.published import CONSTRAINED_OPTIONS, Kwargs, bracketed, related

_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
# marks that may stand before the first word of a line without being part of it
_MARKUP = ' \t#*_>~`"“'
_STOP = re.compile(r"(?<=[。！？｡।۔؟])")
# contractions and grouped numbers are one word
_WORD = re.compile(r"\w(?:\w|['’](?=\w)|(?<=\d)[.,](?=\d))*")
_STAR_DIVIDER = re.compile(r"(?<!\S)\*\*\*(?!\S)")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_FIRST_WORD = re.compile(r"[^\W_](?:[^\W_]|['’-](?=[^\W_]))*")
_NOT_A_PLACEHOLDER = re.compile(r"\^.*|[\d\s,;–-]+|[xX]|https?:.*")
_RULE = re.compile(r"([*_-])[ \t]*(?:\1[ \t]*){2,}")
_BULLET = re.compile(r"[*+-][ \t]+\S")
_EMPHASIS = re.compile(r"(?<!\*)(\*{1,3})(?![\s*])[^*\n]+(?<!\s)\1(?!\*)")
_COMMAS = frozenset(",，،、﹐﹑､")
_OPENING = {'"': '"', "“": "”", "„": "“”", "«": "»"}


def keyword_existence(text: str, kw: Kwargs) -> bool:
    text = straight(text)
    return all(whole_word(word).search(text) for word in kw["keywords"])


def keyword_frequency(text: str, kw: Kwargs) -> bool:
    found = sum(1 for _ in whole_word(kw["keyword"]).finditer(straight(text)))
    return related(found, kw["relation"], kw["frequency"])


def forbidden_words(text: str, kw: Kwargs) -> bool:
    text = straight(text)
    return not any(whole_word(word).search(text) for word in kw["forbidden_words"])


def letter_frequency(text: str, kw: Kwargs) -> bool:
    return related(text.lower().count(kw["letter"]), kw["let_relation"], kw["let_frequency"])


def response_language(text: str, kw: Kwargs) -> bool:
    return language_of(text) == kw["language"]


def number_sentences(text: str, kw: Kwargs) -> bool:
    found = sum(
        bool(_LETTER_OR_DIGIT.search(sentence)) for part in _STOP.split(text) for sentence in sentences(part)
    )
    return related(found, kw["relation"], kw["num_sentences"])


def number_paragraphs(text: str, kw: Kwargs) -> bool:
    parts = _STAR_DIVIDER.split(text)
    if any(not part.strip() for part in parts[1:-1]):
        return False
    return sum(1 for part in parts if part.strip()) == kw["num_paragraphs"]


def number_words(text: str, kw: Kwargs) -> bool:
    return related(sum(1 for _ in _WORD.finditer(text)), kw["relation"], kw["num_words"])


def nth_paragraph_first_word(text: str, kw: Kwargs) -> bool:
    if not 1 <= kw["nth_paragraph"] <= kw["num_paragraphs"]:
        raise Unscored("bad_kwargs")
    filled = [part for part in _BLANK_LINE.split(text) if part.strip()]
    if len(filled) != kw["num_paragraphs"]:
        return False
    return _first_word(filled[kw["nth_paragraph"] - 1]) == _first_word(kw["first_word"])


def _first_word(text: str) -> str:
    match = _FIRST_WORD.search(text)
    return straight(match.group()).lower() if match else ""


def number_placeholders(text: str, kw: Kwargs) -> bool:
    found = 0
    for start, end in bracketed(text):
        inner = text[start + 1 : end - 1].strip()
        # a bracket right behind is the target of a Markdown link
        is_link = text[end : end + 1] in ("(", "[") and bool(text[end:])
        found += bool(inner) and not is_link and not _NOT_A_PLACEHOLDER.fullmatch(inner)
    return found >= kw["num_placeholders"]


def postscript(text: str, kw: Kwargs) -> bool:
    marker = kw["postscript_marker"]
    pattern = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}.get(marker) or re.escape(marker)
    starts = re.compile(pattern, re.IGNORECASE)
    lines = text.split("\n")
    filled = [number for number, line in enumerate(lines) if _LETTER_OR_DIGIT.search(line)]
    for number in filled[1:]:
        end = _opens_with(starts, lines[number])
        if end is not None:
            # something has to follow, on its line or below
            return bool(_LETTER_OR_DIGIT.search(lines[number], end)) or number != filled[-1]
    return False


def _opens_with(pattern: re.Pattern[str], line: str) -> int | None:
    """Where the pattern ends that the line begins with, before or after Markdown's marks; else None."""
    for start in (len(line) - len(line.lstrip()), len(line) - len(line.lstrip(_MARKUP))):
        match = pattern.match(line, start)
        if match:
            return match.end()
    return None


def number_bullet_lists(text: str, kw: Kwargs) -> bool:
    lines = (line.strip() for line in text.split("\n"))
    found = sum(1 for line in lines if _BULLET.match(line) and not _RULE.fullmatch(line))
    return found == kw["num_bullets"]


def constrained_response(text: str, kw: Kwargs) -> bool:
    """Exactly one of the options, not merely quoted inside a sentence."""
    given = [option for option in CONSTRAINED_OPTIONS if option in text]
    if len(given) != 1:
        return False
    before = text[: text.index(given[0])].rstrip()
    quoted = before[-1:] in ('"', "“", "'", "‘") and bool(before)
    word_before = before[:-1].rstrip()[-1:]
    return not (quoted and (word_before.isalnum() or word_before == ","))


def number_highlighted_sections(text: str, kw: Kwargs) -> bool:
    return sum(1 for _ in _EMPHASIS.finditer(text)) >= kw["num_highlights"]


def multiple_sections(text: str, kw: Kwargs) -> bool:
    heading = re.compile(re.escape(kw["section_spliter"]) + r"\s?\d")
    found = sum(1 for line in text.split("\n") if _opens_with(heading, line) is not None)
    return found >= kw["num_sections"]


def json_format(text: str, kw: Kwargs) -> bool:
    body = text
    if body.startswith("```"):
        body = re.sub(r"\A```(?:json)?", "", body, flags=re.IGNORECASE).removesuffix("```")
    try:
        # numbers stay text: one of 5,000 digits is JSON too
        json.loads(body.strip(), parse_constant=_no_constant, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def title(text: str, kw: Kwargs) -> bool:
    return any(_has_title(line) for line in text.split("\n"))


def _has_title(line: str) -> bool:
    """<<…>> with something in it; with blanks inside the brackets only where the line has nothing else."""
    start = line.find("<<")
    end = line.find(">>", start + 2)
    if start < 0 or end < 0:
        return False
    inner = line[start + 2 : end].strip("<>")
    if not inner.strip():
        return False
    alone = not _LETTER_OR_DIGIT.search(line[:start] + line[end + 2 :])
    return alone or inner == inner.strip()


def repeat_prompt(text: str, kw: Kwargs) -> bool:
    request = kw["prompt_to_repeat"].lower()
    answer = text.lower()
    return answer.startswith(request) and bool(_LETTER_OR_DIGIT.search(answer, len(request)))


def end_checker(text: str, kw: Kwargs) -> bool:
    phrase = kw["end_phrase"].lower()
    body = text.strip('"').lower()
    if not body.endswith(phrase):
        return False
    before = body[: len(body) - len(phrase)][-1:]
    return not (before.isalnum() and phrase[0].isalnum())


def quotation(text: str, kw: Kwargs) -> bool:
    """One pair of double quotation marks around the whole: the first is not closed before the end."""
    closing = _OPENING.get(text[:1], "")
    if len(text) < 2 or text[-1] not in closing:
        return False
    inner = text[1:-1]
    if text[0] == '"':
        at = inner.find('"')
        # an inner mark with a blank before it (or escaped) opens a quotation within
        return at < 0 or at == 0 or inner[at - 1].isspace() or inner[at - 1] in "([{\\—"
    depth = 1
    for character in inner:
        if character in closing:
            depth -= 1
        elif character in _OPENING and character != '"':
            depth += 1
        if depth == 0:
            return False
    return True


def english_capital(text: str, kw: Kwargs) -> bool:
    # the language guesser passes over words in capitals, so it is asked about small letters
    return text.isupper() and language_of(text.lower()) == "en"


def english_lowercase(text: str, kw: Kwargs) -> bool:
    return text.islower() and language_of(text) == "en"


def no_comma(text: str, kw: Kwargs) -> bool:
    return _COMMAS.isdisjoint(text)
