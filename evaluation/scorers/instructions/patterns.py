"""Keywords as regular expressions, the way the public IFEval checker reads them, but never one that can hang.

The public checker puts a row's keyword into ``re`` as it stands, so "3.5" also finds 375. That verdict is
kept for what a keyword of real prompts may hold; a keyword whose matching could take more than linear time,
or that is no regular expression at all ("f(x"), has no published verdict.
"""

from __future__ import annotations

import re
from functools import lru_cache

from evaluation.scorers.instructions.parameters import Unscored

# Plain characters, escapes of one character, dots, anchors, simple classes, groups without quantifier,
# alternatives, and one quantified letter at the very end ("C++"): there nothing can fail behind it, so
# nothing is tried again.
_HARMLESS = re.compile(
    r"(?:[^\\.^$*+?{}\[\]()|]|\\[bBdDwWsS]|\\[^\w\s]|[.^$|()]|\[\^?(?:\w-\w|[\w ])+\])*(?:\w[+*?][+?]?)?"
)
# every alternative can double the ways through a pattern
_MOST_ALTERNATIVES = 6
_LONGEST = 500


@lru_cache(maxsize=4096)
def public_pattern(
    keyword: str, before: str = "", after: str = "", ignore_case: bool = True
) -> re.Pattern[str]:
    """The compiled keyword between two pieces of pattern.

    Raises Unscored("unsafe_pattern") for a keyword that could hang, Unscored("bad_pattern") for one that is
    no regular expression.
    """
    if re.escape(keyword) != keyword and not keyword.isalnum():
        if len(keyword) > _LONGEST or keyword.count("|") > _MOST_ALTERNATIVES:
            raise Unscored("unsafe_pattern")
        if not _HARMLESS.fullmatch(keyword):
            raise Unscored("bad_pattern" if _is_broken(keyword) else "unsafe_pattern")
        if after not in ("", r"\b") and keyword.endswith(("+", "*", "?")) and keyword[-2] != "\\":
            raise Unscored("unsafe_pattern")
    try:
        return re.compile(before + keyword + after, re.IGNORECASE if ignore_case else 0)
    except re.error:
        raise Unscored("bad_pattern") from None


def _is_broken(keyword: str) -> bool:
    """Whether it has an open bracket or a quantifier without object; only for a better reason code."""
    try:
        # FutureWarning ("possible nested set") must not surface, so classes are left out of the trial
        re.compile(re.sub(r"[\[\]]", "", keyword))
    except (re.error, OverflowError, RecursionError):
        return True
    return False


# scripts that write no blanks between words, where a word has no boundary to look for
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_SPACE = re.compile(r"\s+")


@lru_cache(maxsize=4096)
def whole_word(phrase: str) -> re.Pattern[str]:
    """Finds the phrase literally, ignoring case, as a whole word; runs of white space are alike."""
    phrase = straight(phrase.strip())
    literal = r"\s+".join(re.escape(part) for part in _SPACE.split(phrase))

    def edge(character: str) -> bool:
        return character.isalnum() and not _UNSPACED.match(character)

    before = r"(?<![^\W_])" if edge(phrase[:1]) else ""
    after = r"(?![^\W_])" if edge(phrase[-1:]) else ""
    return re.compile(before + literal + after, re.IGNORECASE)


def straight(text: str) -> str:
    """The text with typographic apostrophes made straight: "don’t" and "don't" are one word."""
    return text.replace("’", "'") if "’" in text else text
