r"""Reasoning steps of a solution, and whether a step says anything.

Example: "Step 1: Let x be 2.\nStep 2: Birds fly.\nAnswer: 2" has two steps, of which the first is valid.
Definitions as published for MATH and SuperGPQA, with whole words, and with a check of plain arithmetic: "2
+ 2 = 5" is no valid step. Every scan is linear.
"""

# ruff: noqa: E501, SIM905  (word lists and patterns)

from __future__ import annotations

import re
from fractions import Fraction

_REASONING = re.compile(r"\s{0,9}(?:[*#_]{0,4})reasoning(?:[*_]{0,4}):[*_]{0,4}", re.IGNORECASE)
_END = re.compile(r"(?:final\s)?answer\s?[*_]{0,4}:", re.IGNORECASE)
_HEAD = re.compile(r"[#*_]{0,6}\s{0,2}\bstep\s{1,3}(\d{1,6})\s{0,2}[*_]{0,3}:", re.IGNORECASE)
_CLOSING = re.compile(r"the final answer", re.IGNORECASE)
_STOP = re.compile(r"(?<=\.)(?=\s|$)|(?=\n[^\S\n]{0,20}(?:\d{1,4}[.)]|[-*•])\s)")
_MARKER = re.compile(r"(?:\d{1,4}[.)]|[-*•])\s{1,9}")
_NOT_A_STEP = re.compile(r"step|##|\d{1,9}[.)]", re.IGNORECASE)
_ONLY_VALUE = re.compile(r"\$?\$?\\boxed|[{\[]?\s?[\"']?answer\b[\"']\s?:", re.IGNORECASE)

MIN_SENTENCE = 9  # characters, published
MIN_STEP = 8  # characters, published; shorter steps need an equation


def steps(answer: str) -> list[str]:
    """The steps of a visible answer: `Step 1: …` heads if there are any, else sentences and list items."""
    text = answer.strip()
    opening = _REASONING.match(text)
    if opening:
        text = text[opening.end() :]
    end = _END.search(text)
    if end:
        text = text[: end.start()]
    heads = list(_HEAD.finditer(text))
    if heads:
        bounds = [*(head.start() for head in heads[1:]), len(text)]
        contents = []
        for head, stop in zip(heads, bounds, strict=True):
            content = text[head.end() : stop]
            closing = _CLOSING.search(content)
            contents.append(_one_line(content[: closing.start()] if closing else content))
        return [content for content in (c.strip("*# ") for c in contents) if content]
    return [sentence for sentence in map(_sentence, _STOP.split(text)) if sentence]


def _sentence(text: str) -> str:
    """A sentence as a step, "" where it is none: too short, a bare heading, a bare value."""
    text = text.strip()
    marker = _MARKER.match(text)
    if marker:
        text = text[marker.end() :].strip()
    if len(text) < MIN_SENTENCE or _NOT_A_STEP.match(text) or _ONLY_VALUE.match(text):
        return ""
    return _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- validity -------------------------------------------------------------------------------------

# published keywords, each as a whole word in its usual forms (verbs and nouns are spelled by their stem)
_STEMS = (
    "add approximat assum calculat cancel check circumference combin complement confirm congruent continuity contradict"
    " cos derivative determinant differentiat distribut divergence divid eigenvalue eigenvector eliminat equal equivalen"
    " estimat expand exponent factor foil gcd given gradient hence identical impl integrat intersect laplacian lcm"
    " let limit log map matri maxim mean median minim mode multipl normaliz optimiz parallel perimeter permutation"
    " perpendicular probabilit pythagorean quotient rationaliz rearrang reduc reflect remainder rotat round scal similar"
    " simplif sin so solv substitut subset subtract tan test therefore thus transform translat transpos trigonometric"
    " truncat union validat varianc verif theorem method technique approach formula because curl"
).split()
_ENDINGS = (
    "", "s", "es", "ed", "e", "d", "ing", "ion", "ions", "ation", "ations", "y", "ying", "ied", "ies", "ication", "ying",
    "er", "or", "ors", "ce", "cy", "ity", "ly", "x", "ces", "ve", "ive", "um", "ising", "ise", "ised", "izes", "izing",
    "ize", "ized", "al", "ial", "ting", "ted", "tion", "tions", "ling", "led", "ality", "able", "ping", "ped", "a", "ional",
    "ication", "ications", "e's", "ities", "ment", "ments", "ning", "itive", "ition", "itions", "ution", "ication",
)  # fmt: skip
# words that are whole only as they stand: "sin" has no forms, and "sos", "logs", "lets" are other words
_EXACT = frozenset(
    "so sin cos tan log let gcd lcm foil curl map mode mean hence thus therefore because given similar tans".split()
)
_WORDS = frozenset(
    stem + ending for stem in _STEMS if stem not in _EXACT for ending in _ENDINGS if len(stem + ending) > 2
) | frozenset(
    "so sin cos tan log let gcd lcm foil curl map maps mode mean means extremum extrema similarly hence thus therefore because given similar".split()
)
_PHRASES = (
    "both sides", "chain rule", "collect terms", "critical point", "cross multiplication", "cross product", "cube root",
    "dot product", "element of", "function composition", "greater than", "if and only if", "inverse function",
    "inverse trig", "l'hopital's rule", "least common multiple", "less than", "maclaurin series", "modular arithmetic",
    "power rule", "product rule", "proof by induction", "quotient rule", "square root", "taylor series", "unit circle",
)  # fmt: skip
_STRUCTURES = (
    re.compile(r"=\s?[^=\s]"),
    re.compile(r"\$[^$]"),
    re.compile(r"\\(?:[dt]?frac|sqrt|cdot|times|boxed)(?![A-Za-z])"),
    re.compile(r"\d\.?\s?[-+*/×÷−]\s?\d"),
    re.compile(r"\([^()]{0,200}[\d+*/]"),
    re.compile(r"\d\s?\^\s?\{?\d"),
    re.compile(r"sqrt\("),
)
_TOKENS = re.compile(r"[a-z]+(?:'[a-z]+)*")
_CLAIM = re.compile(
    r"(?<![\w.,^_+\-*/=(){}\\$×÷−])\$?(\d{1,12}(?:\.\d{1,9})?(?:\s?(?:[-+*/×÷−]|\\times|\\cdot|\\div)\s?\d{1,12}(?:\.\d{1,9})?){1,8})"
    r"\s?=\s?([-−]?\d{1,15}(?:\.\d{1,12})?)(?![\w^_!%,:/*+×÷°\\({-]|\.\d|\s?[-+*/×÷^−!=(\\%]|\s?[A-Za-z]{1,2}\b)"
)


def valid_mathematics(step: str) -> bool:
    """Whether a step of a MATH solution reasons: a formula or a mathematical word, and no false
    arithmetic.
    """
    formula = any(pattern.search(step) for pattern in _STRUCTURES)
    if len(step) < MIN_STEP and "=" not in step:
        return False
    if not formula and not _mathematical_words(step):
        return False
    return not false_arithmetic(step)


def _mathematical_words(step: str) -> bool:
    words = _TOKENS.findall(step.lower().replace("’", "'"))
    if any(word in _WORDS for word in words):
        return True
    joined = " " + " ".join(words) + " "
    if any(f" {phrase} " in joined for phrase in _PHRASES):
        return True
    return " rule of " in joined or (" if " in joined and " then " in joined[joined.find(" if ") :])


def false_arithmetic(step: str) -> bool:
    """Whether the step states an equation of plain numbers that does not hold, beyond rounding."""
    return any(_is_false(match.group(1), match.group(2)) for match in _CLAIM.finditer(step))


def _is_false(left: str, right: str) -> bool:
    from evaluation.extraction.formula import Unreadable, read_value
    from evaluation.scorers.formula_values import NotRational, exact

    right = right.replace("−", "-")
    try:
        value = exact(read_value(left), {})
    except (Unreadable, NotRational, ArithmeticError):
        return False
    decimals = len(right.partition(".")[2])
    rounding = Fraction(1, 10**decimals) if decimals or value.denominator != 1 else Fraction(0)
    return abs(value - Fraction(right)) > rounding


_OPTION_WORDS = (
    "because cannot considering contains dismiss dismissed eliminate eliminated eliminates eliminating exclude excluded"
    " excludes excluding given gives has hence impossible inconsistent incorrect indicates invalid lacks missing reject"
    " rejected rejects shows since so therefore thus wrong"
).split()
_OPTION_PHRASES = (
    "based on", "cannot be", "does not apply", "doesn't have", "it appears", "looking at", "not applicable", "not correct",
    "not possible", "rule out", "rules out", "ruled out", "ruling out", "this means", "we can see", "we need",
)  # fmt: skip
_OPTION_WORD_SET = frozenset(_OPTION_WORDS) - {"cannot"}
_MENTIONS = (
    re.compile(r"\b(?:options?|choices?)\s(?:is\s)?\(?[a-j](?!\w)", re.IGNORECASE),
    re.compile(r"\banswers?\s(?:is\s)?\(?(?:[A-J]|[b-hj])(?!\w)"),
    re.compile(r"\b[A-J]\s(?:gives|has|is|shows|contains)\b"),
    re.compile(r"\b[A-J](?:,\s[A-J]){1,9},?\s(?:all|both|each|have|are|show|contain)\b"),
    re.compile(r"(?<![\w'-])[A-J]\s?(?:\s(?:and|or|through|to|thru)\s|[-–])[A-J](?![\w'-])"),
)


def valid_options(step: str) -> bool:
    """Whether a step of a SuperGPQA solution reasons: it weighs an option, or gives a ground. Whole words
    only.
    """
    if len(step) < MIN_STEP:
        return False
    if any(pattern.search(step) for pattern in _MENTIONS):
        return True
    words = _TOKENS.findall(step.lower().replace("’", "'"))
    if any(word in _OPTION_WORD_SET for word in words):
        return True
    joined = " " + " ".join(words) + " "
    return any(f" {phrase} " in joined for phrase in _OPTION_PHRASES)
