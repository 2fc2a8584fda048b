"""Politeness around an answer: "Sure!" before it, "Let me know if you need anything else!" behind it.

Example: without_courtesies("Sure! C\\n\\nI hope this helps!") gives "C". For readers that look at the first
or last line of an answer; what describes the text itself (style, IFEval) reads the text as it is. Linear.
"""

from __future__ import annotations

import re

_OPENING = re.compile(
    r"\s{0,9}(?:sure(?: thing)?|certainly|of course|absolutely|great question|happy to help|gladly"
    r"|here you go)"
    r"(?:!|[.:,](?=\s{0,3}\n))\s{0,9}",
    re.IGNORECASE,
)
# a heading of the whole answer and no label of its value, where a line of three words and more follows
_HEADING = re.compile(
    r"\s{0,9}(?:(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok)[,.!]\s{1,3})?"
    r"here(?:['’]s| is) (?:the|my|your|an?) (?:[\w-]{1,20} ){0,2}(?:answer|solution|response)[^:\n]{0,60}:"
    r"[*_]{0,2}[ \t]{0,9}\n\s{0,9}(?=\S{1,40}[ \t]\S{1,40}[ \t]\S)",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\W{0,9}(?:(?:please )?(?:do )?(?:let me know|feel free|don['’]t hesitate)\b"
    r"(?=.{0,80}\b(?:if|should|to ask|to reach)\b)"
    r"(?=.{0,120}\b(?:need|anything|any|questions?|help|further|else|more|ask|reach)\b)"
    r"|(?:i )?hope (?:this|that|it) (?:helps?|clarif|answers|is helpful|was helpful)"
    r"|(?:if you (?:have|need|want|would like)\b.{0,80}\b(?:anything|questions?|help|further|else)\b)"
    r"|is there anything else\b|happy to help\b|have a (?:great|nice|good|wonderful) (?:day|one)\b"
    r"|you(?:['’]re| are) welcome\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)")
_MOST = 4  # courtesies behind one another


def without_courtesies(text: str) -> str:
    """The text without a polite exclamation at its head and polite sentences at its tail; a text that is
    nothing else stays."""
    text = without_heading(text).strip()
    opening = _OPENING.match(text)
    rest = text[opening.end() :] if opening and text[opening.end() :].strip() else text
    for _ in range(_MOST):
        shorter = _without_last(rest)
        if shorter == rest:
            break
        rest = shorter
    return rest


def without_heading(text: str) -> str:
    """The text without an opening "Sure, here is the answer:" that stands over several words of a next
    line."""
    heading = _HEADING.match(text)
    return text[heading.end() :] if heading else text


def _without_last(text: str) -> str:
    """Without the last sentence where that is a courtesy; only the end of a long line is looked at."""
    begin = max(text.rfind("\n") + 1, len(text) - 400)
    breaks = [match.end() for match in _SENTENCE.finditer(text, begin)]
    start = breaks[-1] if breaks else begin
    if start == 0 or not _CLOSING.match(text, start):
        return text
    return text[:start].rstrip() or text
