"""Text brought to a form in which only its words count, and questions about words in it.

Example: words("The U.S.A., café №5: 12,450 m") gives ["usa", "cafe", "no5", "12450", "m"]: NFKC, case folded,
accents and vowel marks folded, other scripts' digits made ASCII, punctuation gone, opening English articles
dropped (nearly as in SQuAD's evaluation, https://arxiv.org/abs/1606.05250). The same folding is applied to
both sides of a comparison. All scans are linear.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_FOLDED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŋ": "n"}
)
# scripts without blanks between words: Han, kana, Thai, Lao, Khmer, Burmese
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u3400-\u9fff\U00020000-\U0002ffff"
)
_UNSPACED_CHAR = re.compile(f"[{_UNSPACED}]")
_BORDER = re.compile(f"(?<=[{_UNSPACED}])(?=[^\\s{_UNSPACED}])|(?<=[^\\s{_UNSPACED}])(?=[{_UNSPACED}])")
_GROUP = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DROPPED = re.compile(
    r"['’ʼ`´\u0640\u200b-\u200f\u2060\ufeff]|(?<=\w)\.(?=\w)(?!(?<=\d\.)\d)|(?<=\w)\.(?=\s|$)"
)
_POINT = re.compile(r"(?<=\d)\.(?=\d)")


@lru_cache(maxsize=64)  # one answer is asked about many names
def normalise(text: str) -> str:
    """The folded text, words parted by one blank; articles stay."""
    text = unicodedata.normalize("NFKC", text).casefold().translate(_FOLDED)
    if not text.isascii():
        text = _NOT_ASCII.sub(_folded, unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", text)
    text = _GROUP.sub("", text)
    text = _POINT.sub("\ue000", text)  # 3.5 stays one word
    text = _DROPPED.sub("", text)
    text = _NO_LETTER.sub(_without_punctuation, text)
    if not text.isascii():
        text = _BORDER.sub(" ", text)
    return " ".join(text.split()).replace("\ue000", ".")


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NO_LETTER = re.compile("[^\\w \ue000]+|_+")


def _folded(match: re.Match[str]) -> str:
    """Accents (202 to 240) and Hebrew and Arabic vowel marks (10 to 36) go; marks that make other letters
    stay."""
    char = match.group()
    combining = unicodedata.combining(char)
    if combining >= 200 or 10 <= combining <= 36:
        return ""
    digit = unicodedata.decimal(char, None)
    return char if digit is None else str(digit)


def _without_punctuation(match: re.Match[str]) -> str:
    """Punctuation becomes blanks; vowel signs of Indic scripts, which are no letters to a regular expression,
    stay."""
    found = match.group()
    if found.isascii():
        return " "
    return "".join(char if unicodedata.category(char)[0] == "M" else " " for char in found)


def words(text: str) -> list[str]:
    """The words of the folded text without "the", and without an "a" or "an" that opens it, if more is
    left."""
    found = text_words(text)
    return found[1:] if len(found) > 1 and found[0] in ("a", "an") else found


def text_words(text: str) -> list[str]:
    """The words of a running text: as `words`, with every "a" in its place ("vitamin A")."""
    found = normalise(text).split()
    return [word for word in found if word != "the"] or found


def is_unspaced(text: str) -> bool:
    """Whether the text is written, in whole or part, in a script without blanks between words."""
    return bool(_UNSPACED_CHAR.search(text))


def places(needle: list[str], hay: list[str]) -> list[int]:
    """Where the words `needle` stand in a row in `hay`: the index of each first word. At most 1,000
    places."""
    if not needle:
        return []
    size, found = len(needle), []
    for index, word in enumerate(hay):
        if word == needle[0] and hay[index : index + size] == needle:
            found.append(index)
            if len(found) == 1000:
                break
    return found


def contains(needle: str, hay: str) -> bool:
    """Whether the whole words of `needle` stand in a row in `hay`; plain containment in scripts without
    blanks."""
    if is_unspaced(needle):
        return "".join(normalise(needle).split()) in "".join(normalise(hay).split())
    return bool(places(words(needle), text_words(hay)))


_ROMAN = re.compile(r"(?=[ivx])x{0,3}(?:ix|iv|v?i{0,3})")


def numerals(found: list[str]) -> list[str]:
    """The words that must agree exactly between two names or dates: those with digits, and Roman numerals,
    sorted."""
    return sorted(
        word for word in found if any(c.isdigit() for c in word) or (word != "i" and _ROMAN.fullmatch(word))
    )
