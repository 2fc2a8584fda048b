"""The factual claims of a text, and how much of a context's wording an answer uses.

Example: claims_of("However, Dr. Vale sold the mill. Is it old?\\n- The roof is slate") is
["Dr. Vale sold the mill", "The roof is slate"]. Lists, headings, tables and code are read by their lines;
questions, opinions, instructions to the reader and refusals are no claims; a repeated claim is one claim.
Every scan is linear.
"""

from __future__ import annotations

import re

_TERMINAL = ".!?。！？"
_FENCE = re.compile(r"^\s{0,8}(?:```|~~~)")
_RULE_LINE = re.compile(r"^\s*(?:[-*_=]\s?){3,}$")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_LIST_MARK = re.compile(r"^\s*(?:[-*+•–—‣◦▪]|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))\s+")
_TABLE_RULE = re.compile(r"^[\s|:+-]+$")
_BOLD_LABEL = re.compile(r"^\*\*[^*\n]{1,60}:\s?\*\*\s*|^\*\*[^*\n]{1,60}\*\*:\s+")
# after these a period ends no sentence
_TITLES = frozenset(
    (
        "dr",
        "mr",
        "mrs",
        "ms",
        "mx",
        "prof",
        "st",
        "mt",
        "gen",
        "rep",
        "sen",
        "rev",
        "hon",
        "capt",
        "col",
        "lt",
        "sgt",
        "gov",
        "pres",
        "vs",
        "e.g",
        "i.e",
        "cf",
        "fig",
        "eq",
        "no",
        "vol",
        "pp",
        "approx",
        "ca",
        "dept",
        "est",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "u.s",
        "u.k",
        "u.n",
        "d.c",
        "ph.d",
    )
)
# after these it does where a capital follows
_OPEN_ENDED = frozenset(
    (
        "inc",
        "jr",
        "sr",
        "co",
        "ltd",
        "corp",
        "etc",
        "a.m",
        "p.m",
        "al",
    )
)
_CLOSERS = "\"'”’»)]*_`"
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_MARKER = re.compile(
    r"(?:(?:additionally|answer|conclusion|finally|however|moreover|therefore|step \d{1,4}):|"
    r"(?:additionally|however|moreover|therefore|note that|furthermore|in conclusion|in summary)\b,?)\s*",
    re.IGNORECASE,
)
_ORDER_MARKER = re.compile(
    r"(?:step \d{1,4}\b[:.]?|(?:finally|first|next|second|then|third)\b[,.]?)\s*", re.IGNORECASE
)
_NOT_A_CLAIM = re.compile(
    r"(?:i (?:believe|think)|in my opinion|it seems|let|let['’]s|make sure|maybe|perhaps|please|possibly|"
    r"probably|remember|try)\b(?!['’]?\w)",
    re.IGNORECASE,
)
_ATTRIBUTIONS = re.compile(
    r"\b(?:according to|based on|it appears|this (?:indicates|means|shows|suggests)|we can see)\b",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"(?:because|since|although|though|while|if|unless|so that|due to)\b", re.IGNORECASE
)
_REFUSAL = re.compile(
    r"(?:i['’]m|i am) (?:very |really |so )?sorry\b|(?:i|we) apologi[sz]e\b|sorry,? (?:but )?(?:i|we)\b"
    r"|(?:i|we) (?:can(?:no|['’])t|can not|won['’]t|will not|am unable to|are unable to|am not able to|"
    r"do not have|don['’]t have) (?:\w+ )?(?:answer|help|assist|explain|provide|give|say|tell|determine|"
    r"enough|sufficient|that|this|comply|discuss)\b"
    r"|(?:i['’]m|i am) (?:unable|not able) to\b|unable to answer\b"
    r"|there(?: is|['’]s) (?:not enough|insufficient|no) information\b|as an ai\b",
    re.IGNORECASE,
)


def claims_of(text: str) -> list[str]:
    """The claims in order, each once; [] for an empty text or one that claims nothing."""
    found: dict[str, str] = {}
    for block in _blocks(text):
        for sentence, end in _sentences(block):
            claim = _claim(sentence, end)
            if claim:
                found.setdefault(claim.lower(), claim)
    return list(found.values())


def _blocks(text: str) -> list[str]:
    """Paragraphs and list items as one line each.

    Without code, headings, rules and lines that only introduce.
    """
    blocks: list[list[str]] = []  # lines of a block
    in_code = False
    open_block = False
    for raw in text.replace("\r\n", "\n").replace("\u2028", "\n").split("\n"):
        if _FENCE.match(raw):
            in_code, open_block = not in_code, False
            continue
        line = " ".join(raw.split())
        if in_code or not line or _HEADING.match(raw) or _RULE_LINE.match(line) or _TABLE_RULE.match(line):
            if line and blocks and _TABLE_RULE.match(line) and "|" in line and "|" in blocks[-1][-1]:
                blocks.pop()  # what stands over the line of a table is its header
            open_block = False
            continue
        item = _LIST_MARK.sub("", line, count=1)
        if open_block and item == line and line[0].islower() and blocks[-1][-1][-1:] not in _TERMINAL + ":":
            blocks[-1].append(line)  # a line that was only wrapped
        else:
            blocks.append([item])
        open_block = True
    return [_plain(" ".join(lines)) for lines in blocks]


def _plain(block: str) -> str:
    block = _BOLD_LABEL.sub("", block, count=1).replace("**", "").replace("__", "").replace("`", "")
    if block.startswith("|"):
        block = ", ".join(cell.strip() for cell in block.strip("|").split("|") if cell.strip())
    return block.strip()


def _sentences(block: str) -> list[tuple[str, str]]:
    """(sentence, the mark that ends it or "") in order."""
    sentences: list[tuple[str, str]] = []
    start = at = 0
    size = len(block)
    while at < size:
        if block[at] not in _TERMINAL:
            at += 1
            continue
        end = at
        while end < size and block[end] in _TERMINAL:
            end += 1
        after = end
        while after < size and block[after] in _CLOSERS:
            after += 1
        wide = block[at] in "。！？"
        if (after >= size or wide or block[after].isspace()) and not (
            block[at] == "." and end == at + 1 and after < size and _no_end(block, start, at, after)
        ):
            sentences.append((block[start:at], block[at:end]))
            start = after
        at = after
    sentences.append((block[start:], ""))
    return sentences


def _no_end(block: str, start: int, at: int, after: int) -> bool:
    """Whether the period at `at` belongs to an abbreviation or an initial."""
    begin = at
    while (
        begin > start
        and begin > at - 12
        and not block[begin - 1].isspace()
        and block[begin - 1] not in "(\"'“‘[*"
    ):
        begin -= 1
    word = block[begin:at]
    low = word.lower()
    if low in _TITLES or (len(word) == 1 and word.isupper() and word != "I"):
        return True
    follows = block[after : after + 20].lstrip()[:1]
    return low in _OPEN_ENDED and not follows.isupper() and not follows.isdigit()


def _claim(sentence: str, end: str) -> str | None:
    """The claim that a sentence makes, without marker and end; None where it makes none."""
    text = sentence.strip().strip('"“”')
    if "?" in end or "？" in end or text.endswith(":"):
        return None
    for _ in range(2):
        text = _MARKER.sub("", text, count=1) if _MARKER.match(text) else text
    text = text.strip().rstrip(".").strip()
    if _CJK.search(text):
        return text if len(text) >= 4 else None
    words = len(_WORD.findall(text))
    if words < 2 or len(text) < 6 or _NOT_A_CLAIM.match(text) or _REFUSAL.match(text):
        return None
    if words < 3 and ("!" in end or _SUBORDINATE.match(text)):
        return None  # "Hope so!", "Because osmosis."
    order = _ORDER_MARKER.match(text)
    if order and len(_WORD.findall(text[order.end() :])) < 3:
        return None
    phrases = _ATTRIBUTIONS.findall(text)
    if phrases and words - sum(len(phrase.split()) for phrase in phrases) < 3:
        return None
    return text


# words without evidence in them
_STOP = frozenset(
    (
        "and",
        "are",
        "been",
        "but",
        "could",
        "for",
        "had",
        "has",
        "have",
        "should",
        "that",
        "the",
        "these",
        "this",
        "those",
        "was",
        "were",
        "will",
        "with",
        "would",
    )
)
_MEASURE = re.compile(r"\b\d+(?:\.\d+)?\s*(?:inches?|feet?|cm|mm|meters?|degrees?|%)\b", re.IGNORECASE)
_RUN = re.compile(r"\b[a-z]{2,}(?:\s+[a-z]{2,})*\b", re.IGNORECASE)
_STEP = re.compile(r"\bstep \d+", re.IGNORECASE)


def evidence_use(answer: str, context: str) -> float | None:
    """Share 0..1 of the context's terms that the answer uses, plus at most 0.2 for shared phrases; None
    without terms.

    CapTrack's evidence_utilization_score; terms are counted once on both sides, so that a copy of the
    context uses all of it.
    """
    wanted = _terms(context)
    if not wanted:
        return None
    share = len(_terms(answer) & wanted) / len(wanted)
    special = _special(context)
    if special:
        share += 0.2 * len(_special(answer) & special) / len(special)
    return min(1.0, share)


def _terms(text: str) -> set[str]:
    low = text.lower()
    words = {word for word in re.findall(r"\w+", low) if len(word) > 2 and word not in _STOP}
    return words | set(_MEASURE.findall(low))


def _special(text: str) -> set[str]:
    return set(_MEASURE.findall(text)) | set(_RUN.findall(text)) | set(_STEP.findall(text))
