"""Counting in natural language: which language a text is in, its sentences, its capital words.

Example: language_of("Der alte Turm steht am Fluss.") is "de"; sentence_count("Dr. Vu came. He sat.") is 2;
capital_word_count("It's NASA's DON'T") is 3 (NASA, DO, N'T: contractions are two tokens, as in the Penn
Treebank). Models are loaded when first used, once a process, and every answer depends on the text alone.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Any

_LOCK = threading.Lock()
_LOADED: dict[str, Any] = {}


def _once(name: str, build: Any) -> Any:
    """What `build` returns, built by one thread only."""
    if name not in _LOADED:
        with _LOCK:
            if name not in _LOADED:
                _LOADED[name] = build()
    return _LOADED[name]


def _detector_factory() -> Any:
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    # langdetect samples n-grams; without a seed short texts change their language from run to run
    factory.set_seed(0)
    return factory


def _sentence_model() -> Any:
    import punkt

    return punkt.tokenizer_for("english")


# variants of one answer often are asked for more than once (strict, loose, corrected)
@lru_cache(maxsize=512)
def language_of(text: str) -> str | None:
    """langdetect's code (ISO 639-1; zh-cn, zh-tw), None where the text has nothing to tell a language by."""
    from langdetect.lang_detect_exception import LangDetectException

    detector = _once("langdetect", _detector_factory).create()
    try:
        detector.append(text)
        return detector.detect()
    except LangDetectException:
        return None


@lru_cache(maxsize=512)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences that the English Punkt model finds (Kiss and Strunk 2006)."""
    return tuple(_once("punkt", _sentence_model).tokenize(text))


# What parts tokens that hold letters. Commas and colons stay inside numbers.
_SEPARATORS = re.compile(r"[\s;@#$%&?!*\[\](){}<>\"“”«»„‘’`]+|--+|\.{2,}|''|[:,](?!\d)")
_CLITIC = re.compile(r"(?<=[^'\s])(?:'[smd]|'ll|'re|'ve|n't|'[SMD]|'LL|'RE|'VE|N'T)(?=\.?(?:\s|$))")
_LONE_LETTER = re.compile(r"'(?!re|ve|ll|m|t|s|d|n)(?=\w\b)", re.IGNORECASE)
_JOINED = re.compile(
    r"\b(?:can(?=not\b)|gim(?=me\b)|gon(?=na\b)|got(?=ta\b)|lem(?=me\b)|wan(?=na\b)|d(?='ye\b)|more(?='n\b))"
    r"|(?<!\S)'t(?=(?:is|was)\b)",
    re.IGNORECASE,
)


@lru_cache(maxsize=512)
def capital_word_count(text: str) -> int:
    """Tokens with a capital letter and no small one; tokens as Penn Treebank rules cut them.

    "I", "A1", "U.S." and "WELL-KNOWN" are one each, "DON'T" and "CANNOT" two each.
    """
    text = _JOINED.sub(r"\g<0> ", text)
    text = _LONE_LETTER.sub("' ", text)
    text = _SEPARATORS.sub(" ", text)
    text = _CLITIC.sub(r" \g<0>", text)
    return sum(token.isupper() for token in text.split())
