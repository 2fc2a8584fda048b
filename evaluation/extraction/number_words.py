"""Numbers written without digits: English words, Chinese and Japanese numerals.

Example: written_number("one hundred and twenty-five eggs") is 125, written_number("四十二") is 42.
"""

from __future__ import annotations

import re
from fractions import Fraction

_CJK_ROWS = ("〇零", "一壱", "二两兩弐", "三参", "四", "五", "六", "七", "八", "九")
_CJK_DIGITS = {char: value for value, chars in enumerate(_CJK_ROWS) for char in chars}
_CJK_SMALL = {"十": 10, "拾": 10, "百": 100, "千": 1000, "백": 100, "천": 1000}
_CJK_LARGE = {"万": 10**4, "萬": 10**4, "만": 10**4, "億": 10**8, "亿": 10**8, "억": 10**8, "兆": 10**12}
_CJK_RUN = re.compile(r"[〇零一壱二两兩弐三参四五六七八九十拾百千万萬億亿兆]++")


def cjk_value(text: str, start: Fraction | None = None) -> Fraction | None:
    """The value of Chinese or Japanese numerals ("四十二", "二〇二四"); None for other text.

    start: digits that stood before `text`, so that "3万5千" is cjk_value("万5千", Fraction(3)).
    """
    total, section, current = Fraction(0), Fraction(0), start
    for token in re.findall(r"\d+|\D", text[:60]):
        if token in _CJK_LARGE:
            whole = section + (current or 0)
            total, section, current = total + (whole or 1) * _CJK_LARGE[token], Fraction(0), None
        elif token in _CJK_SMALL:
            section, current = section + (1 if current is None else current) * _CJK_SMALL[token], None
        elif token in _CJK_DIGITS:
            current = _CJK_DIGITS[token] + (current * 10 if current is not None else 0)
        elif token.isdigit():
            current = Fraction(int(token))
        else:
            return None
    return total + section + (current or 0)


_UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = [
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
]  # fmt: skip
_WORDS = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
}
_WORD_SCALES = {"hundred": 100, "dozen": 12, "thousand": 1000, "million": 10**6, "billion": 10**9}
_WORD = re.compile(r"[A-Za-z]+")


def _in_words(text: str) -> Fraction | None:
    """The last number written in English words ("twelve", "one hundred and five", "minus twenty-five")."""
    found: Fraction | None = None
    total = current = None
    negative = False
    for match in (*_WORD.finditer(text[:2000]), None):
        word = match.group().lower() if match else ""
        if word in _WORDS:
            current = (current or 0) + _WORDS[word]
        elif word in _WORD_SCALES:
            scale = _WORD_SCALES[word]
            if scale <= 100:
                current = (current or 1) * scale
            else:
                total, current = (total or 0) + (current or 1) * scale, None
        elif word == "and" and (current is not None or total is not None):
            continue
        else:
            if current is not None or total is not None:
                found = Fraction((total or 0) + (current or 0)) * (-1 if negative else 1)
            total = current = None
            negative = word in ("minus", "negative")
    return found


def written_number(text: str) -> Fraction | None:
    """A number without digits: English words, else Chinese or Japanese numerals; None where there is none."""
    words = _in_words(text)
    if words is not None:
        return words
    runs = _CJK_RUN.findall(text)
    return cjk_value(runs[-1]) if runs else None
