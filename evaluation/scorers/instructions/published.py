"""The verdicts of the public IFEval checker (https://arxiv.org/abs/2311.07911), one function an instruction.

Each takes the text of an answer (not blank) and the instruction's parameters, e.g. number_words("Two words",
{"num_words": 3, "relation": "less than"}) → True. The rules are the public checker's with their faults, so
that results compare with everybody's; corrected.py has ours. Every scan is linear, whatever the text.
"""

from __future__ import annotations

import json
import re
from typing import Any

from evaluation.scorers.instructions.language_tools import capital_word_count, language_of, sentences
from evaluation.scorers.instructions.parameters import Unscored
from evaluation.scorers.instructions.patterns import public_pattern

Kwargs = dict[str, Any]

CONSTRAINED_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_WORD = re.compile(r"\w+")
_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_ITALIC = re.compile(r"\*[^\n*]*\*")
_BOLD = re.compile(r"\*\*[^\n*]*\*\*")
_PPS = re.compile(r"p\.\s?p\.\s?s")
_PS = re.compile(r"p\.\s?s\.")


def related(count: int, relation: str, limit: int) -> bool:
    """A relation, "less than" or "at least" between a count and its limit."""
    return count < limit if relation == "less than" else count >= limit


def keyword_existence(text: str, kw: Kwargs) -> bool:
    patterns = [public_pattern(word) for word in kw["keywords"]]
    return all(pattern.search(text) for pattern in patterns)


def keyword_frequency(text: str, kw: Kwargs) -> bool:
    found = sum(1 for _ in public_pattern(kw["keyword"]).finditer(text))
    return related(found, kw["relation"], kw["frequency"])


def forbidden_words(text: str, kw: Kwargs) -> bool:
    patterns = [public_pattern(word, before=r"\b", after=r"\b") for word in kw["forbidden_words"]]
    return not any(pattern.search(text) for pattern in patterns)


def letter_frequency(text: str, kw: Kwargs) -> bool:
    # the public checker replaces any other character by a random letter, so it has no verdict of its own on
    # one
    if not "a" <= kw["letter"] <= "z":
        raise Unscored("letter_not_a_to_z")
    return related(text.lower().count(kw["letter"]), kw["let_relation"], kw["let_frequency"])


def response_language(text: str, kw: Kwargs) -> bool:
    return language_of(text) in (kw["language"], None)


def number_sentences(text: str, kw: Kwargs) -> bool:
    return related(len(sentences(text)), kw["relation"], kw["num_sentences"])


def number_paragraphs(text: str, kw: Kwargs) -> bool:
    parts = _without_blank_ends(_DIVIDER.split(text))
    return parts is not None and len(parts) == kw["num_paragraphs"]


def number_words(text: str, kw: Kwargs) -> bool:
    return related(len(_WORD.findall(text)), kw["relation"], kw["num_words"])


def nth_paragraph_first_word(text: str, kw: Kwargs) -> bool:
    if not 1 <= kw["nth_paragraph"] <= kw["num_paragraphs"]:
        raise Unscored("bad_kwargs")
    parts = text.split("\n\n")
    filled = sum(1 for part in parts if part.strip())
    if kw["nth_paragraph"] > filled:
        return False
    tokens = parts[kw["nth_paragraph"] - 1].split(maxsplit=1)
    if not tokens:
        return False
    word = re.split(r"[.,?!'\"]", tokens[0].lstrip("'").lstrip('"'), maxsplit=1)[0].lower()
    return filled == kw["num_paragraphs"] and word == kw["first_word"].lower()


def number_placeholders(text: str, kw: Kwargs) -> bool:
    return sum(1 for _ in bracketed(text)) >= kw["num_placeholders"]


def bracketed(text: str) -> list[tuple[int, int]]:
    """(start, end) of each shortest [ … ] within a line; a scan, as the pattern would be quadratic."""
    found = []
    start = text.find("[")
    while start >= 0:
        line_end = text.find("\n", start)
        line_end = len(text) if line_end < 0 else line_end
        close = text.find("]", start, line_end)
        if close < 0:
            start = text.find("[", line_end)
            continue
        found.append((start, close + 1))
        start = text.find("[", close + 1)
    return found


def postscript(text: str, kw: Kwargs) -> bool:
    marker = kw["postscript_marker"]
    special = {"P.P.S": _PPS, "P.S.": _PS}.get(marker)
    pattern = special or public_pattern(marker.lower(), ignore_case=False)
    return pattern.search(text.lower()) is not None


def number_bullet_lists(text: str, kw: Kwargs) -> bool:
    lines = text.split("\n")
    stars = hyphens = 0
    swallowed = False
    for number, line in enumerate(lines):
        body = line.lstrip()
        hyphens += body.startswith("-")
        if swallowed:
            swallowed = False
        elif body.startswith("*") and body[1:2] != "*":
            # a lone star takes the line end for its following character, and the next line with it
            swallowed = len(body) == 1
            stars += not (swallowed and number == len(lines) - 1)
    return stars + hyphens == kw["num_bullets"]


def constrained_response(text: str, kw: Kwargs) -> bool:
    return any(option in text for option in CONSTRAINED_OPTIONS)


def number_highlighted_sections(text: str, kw: Kwargs) -> bool:
    single = sum(1 for match in _ITALIC.findall(text) if match.strip("*").strip())
    double = sum(1 for match in _BOLD.findall(text) if match[2:-2].strip())
    return single + double >= kw["num_highlights"]


def multiple_sections(text: str, kw: Kwargs) -> bool:
    pattern = public_pattern(kw["section_spliter"], before=r"\s?", after=r"\s?\d+\s?", ignore_case=False)
    return sum(1 for _ in pattern.finditer(text)) >= kw["num_sections"]


def json_format(text: str, kw: Kwargs) -> bool:
    body = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        body = body.removeprefix(fence)
    try:
        json.loads(body.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def title(text: str, kw: Kwargs) -> bool:
    return any(
        line[start : end + 2].lstrip("<").rstrip(">").strip()
        for line in text.split("\n")
        if (start := line.find("<<")) >= 0 and (end := line.rfind(">>")) >= start + 3
    )


def two_responses(text: str, kw: Kwargs) -> bool:
    parts = _without_blank_ends(text.split("******"))
    return parts is not None and len(parts) == 2 and parts[0].strip() != parts[1].strip()


def repeat_prompt(text: str, kw: Kwargs) -> bool:
    return text.strip().lower().startswith(kw["prompt_to_repeat"].lower())


def end_checker(text: str, kw: Kwargs) -> bool:
    return text.strip().strip('"').lower().endswith(kw["end_phrase"].lower())


def quotation(text: str, kw: Kwargs) -> bool:
    body = text.strip()
    return len(body) > 1 and body[0] == body[-1] == '"'


def capital_word_frequency(text: str, kw: Kwargs) -> bool:
    return related(capital_word_count(text), kw["capital_relation"], kw["capital_frequency"])


def english_capital(text: str, kw: Kwargs) -> bool:
    return text.isupper() and language_of(text) in ("en", None)


def english_lowercase(text: str, kw: Kwargs) -> bool:
    return text.islower() and language_of(text) in ("en", None)


def no_comma(text: str, kw: Kwargs) -> bool:
    return "," not in text


def _without_blank_ends(parts: list[str]) -> list[str] | None:
    """The parts without a blank first and last one; None where one in the middle is blank."""
    if any(not part.strip() for part in parts[1:-1]):
        return None
    return [part for part in parts if part.strip()]
