r"""One spelling and tokens for LaTeX and plain mathematics: the first half of reading a formula.

Example: normalise(r"$\dfrac{1}{2}\,\text{cm}$") is r"\frac{1}{2} cm"; its tokens are the function frac, the
numbers 1 and 2 in groups, and the word cm. Signs and commands that are not in the tables raise Unreadable.
"""

# ruff: noqa: E501, SIM905  (tables and word lists, one line a kind)

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import Any

MAX_LENGTH = 1500
MAX_DIGITS = 4000


class Unreadable(ValueError):
    """The text is not in the grammar."""


_CHARS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "×": "*", "·": "*", "⋅": "*", "∙": "*", "∗": "*", "÷": "/", "⁄": "/", "∕": "/",
    "π": r"\pi ", "∞": r"\infty ", "√": r"\sqrt ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ",
    "∈": r"\in ", "∪": r"\cup ", "∩": r"\cap ", "±": r"\pm ", "∓": r"\mp ", "°": r"^\circ ", "º": r"^\circ ", "∅": r"\emptyset ",
    "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "λ": r"\lambda ", "φ": r"\phi ", "ϕ": r"\phi ",
    "½": r"\frac{1}{2}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}",
    "⅛": r"\frac{1}{8}", "，": ",", "；": ";", "：": ":", "（": "(", "）": ")", "【": "[", "】": "]", "％": "%", "∶": ":",
    "‖": "|", "∣": "|", "。": ".", "\u200b": "", "\ufeff": "",
}  # fmt: skip
_TABLE = str.maketrans(_CHARS)
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERS = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_SUBS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SUBSCRIPTS = re.compile(r"[₀₁₂₃₄₅₆₇₈₉]+")
_SPACES = re.compile(
    r"(?<!\\)\\(?:[,;:!> ]|q?quad(?![A-Za-z])|displaystyle|textstyle|limits|hfill|phantom\{[^{}]*\})|~|&nbsp;"
)
_SIZES = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])\s?\.?")
WRAP = re.compile(
    r"\\(?:text|textbf|textit|textrm|textnormal|mbox|mathrm|mathbf|mathit|mathsf|rm|bf|operatorname\*?|boldsymbol)\s?"
    r"(?:\{([^{}]{0,300})\}|(?=\s))"
)
_REALS = re.compile(r"\\mathbb\s?(?:\{\s?R\s?\}|R(?![A-Za-z]))(?!\s?[\^_])")
_FRACS = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_GROUPS = re.compile(r"(?<![\d.,}])\d{1,3}(?:\{,\}\d{3})+(?!\d)")
_THIN = re.compile(r"(?<=\d)(?:\\[,!;: ]|\u00a0|\u202f|\u2009|~)(?=\d{3}(?!\d))")
_MIXED = re.compile(r"(?<![\w.^_/}{])(\d{1,9})\s{1,3}(\d{1,9})\s?/\s?(\d{1,9})(?![\w.(])")
_BLANK_GROUPS = re.compile(r"-?\d{1,3}(?: \d{3})+(?:\.\d+)?")


def normalise(text: str) -> str:
    """One spelling for what has many: signs, spaces, sizes, wrappers, thousands separators. Linear."""
    text = text.strip()
    text = _SUPERS.sub(lambda m: "^{" + m.group().translate(_SUPER) + "}", text)
    text = _SUBSCRIPTS.sub(lambda m: "_{" + m.group().translate(_SUBS) + "}", text)
    text = _THIN.sub("{,}", text.replace(",\\!", "{,}").translate(_TABLE))
    text = unicodedata.normalize("NFKC", text)
    text = text.replace("\\$", " USD ").replace("\\(", " ").replace("\\)", " ")
    text = text.replace("\\[", " ").replace("\\]", " ").replace("$$", " ")
    if text.count("$") == 1 and re.match(r"\s?-?\$\s?-?[\d.]", text):
        text = text.replace("$", " USD ")
    text = _REALS.sub(r"(-\\infty,\\infty)", text.replace("$", " "))
    for _ in range(3):  # wrappers may be nested, in sane texts not deeper
        unwrapped = WRAP.sub(lambda m: f" {m.group(1) or ''} ", text)
        if unwrapped == text:
            break
        text = unwrapped
    text = _SPACES.sub(" ", _SIZES.sub(" ", text))
    text = _FRACS.sub(r"\\frac", text).replace("**", "^").replace("\\%", "%").replace("\\lvert", "|")
    text = text.replace("\\rvert", "|").replace("\\vert", "|").replace("\\mid", "|")
    text = _GROUPS.sub(lambda m: m.group().replace("{,}", ""), text)
    text = re.sub(r"\s+", " ", text).strip()
    if _BLANK_GROUPS.fullmatch(text):
        text = text.replace(" ", "")
    return _MIXED.sub(r"\1\\frac{\2}{\3}", text)


_FUNCTIONS = {
    name: name
    for name in "sin cos tan cot sec csc sinh cosh tanh ln exp floor ceil gcd lcm".split()
} | {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "asin": "asin", "acos": "acos", "atan": "atan",
    "log": "log", "lg": "lg", "tg": "tan", "ctg": "cot",
}  # fmt: skip
_GREEK = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta kappa lambda mu nu xi rho sigma tau phi varphi"
    " chi psi omega Gamma Delta Theta Lambda Sigma Phi Psi Omega ell".split()
)
_COMMANDS = {
    "cdot": "*", "times": "*", "ast": "*", "div": "/", "le": "<=", "leq": "<=", "leqslant": "<=", "ge": ">=",
    "geq": ">=", "geqslant": ">=", "lt": "<", "gt": ">", "ne": "!=", "neq": "!=", "in": "in", "cup": "cup", "pm": "pm",
    "mp": "mp", "land": "and", "wedge": "and", "lor": "or", "vee": "or", "approx": "~", "colon": ":", "lbrack": "[",
    "rbrack": "]", "lbrace": "\\{", "rbrace": "\\}", "lfloor": "lfloor", "rfloor": "rfloor", "lceil": "lceil",
    "rceil": "rceil", "circ": "circ", "degree": "degree", "prime": "'",
}  # fmt: skip
SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}

# unit spellings -> one name; a word that is in no line stands for itself, without a plural s
UNITS = {
    spelling: name
    for name, spellings in {
        "cm": "cm centimeter centimetre", "mm": "mm millimeter millimetre", "km": "km kilometer kilometre",
        "m": "m meter metre", "in": "in inch inche", "ft": "ft foot feet", "yd": "yd yard", "mi": "mi mile",
        "g": "g gram gramme", "kg": "kg kilogram", "mg": "mg milligram", "lb": "lb lbs pound", "oz": "oz ounce",
        "s": "s sec second", "min": "min mins minute", "h": "h hr hrs hour", "day": "day", "L": "l liter litre",
        "ml": "ml milliliter millilitre", "mph": "mph", "usd": "usd dollar buck", "cent": "cent ¢", "eur": "€ euro eur",
        "gbp": "£ gbp", "degree": "deg degree", "rad": "rad radian", "hz": "hz hertz", "j": "j joule", "n": "n newton",
        "w": "w watt", "v": "v volt", "pa": "pa pascal", "mol": "mol mole", "k": "k kelvin", "c": "celsius",
        "f": "fahrenheit", "unit": "unit", "person": "person people", "child": "child children", "man": "man men",
        "die": "die dice", "penny": "penny pence pennie",
    }.items()
    for spelling in spellings.split()
}  # fmt: skip
SINGLE_UNITS = frozenset("mgshLlNJWVK")

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<repeat>\d*\.\d*\\(?:overline|bar|dot)\s?\{\d+\})"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,5}(?![\w.]))?)"
    r"|(?P<word>[A-Za-z]+)"
    r"|(?P<command>\\[A-Za-z]+)"
    r"|(?P<op><=|>=|!=|<|>|\\\{|\\\}|[-+*/^_=()\[\]{}|,;:!%'&~¢€£])"
    r"|(?P<other>.)",
    re.S,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d])(?:\.\d+)?")


class Token:
    """kind: num, word (letters), func, sym, const, op. space: white space stood before it."""

    __slots__ = ("kind", "space", "value")

    def __init__(self, kind: str, value: Any, space: bool) -> None:
        self.kind, self.value, self.space = kind, value, space

    def __repr__(self) -> str:
        return f"{self.kind}:{self.value}"


def tokenise(text: str, thousands: bool = True) -> list[Token]:
    """Tokens of a normalised text. thousands: whether `1,234` outside brackets is one number. Raises
    Unreadable.
    """
    if len(text) > MAX_LENGTH:
        raise Unreadable("too long")
    tokens: list[Token] = []
    position, space, depth = 0, False, 0
    while position < len(text):
        if thousands and depth == 0 and text[position].isdigit():
            group = _THOUSANDS.match(text, position)
            if group and not (position and text[position - 1] in ".,"):
                tokens.append(Token("num", _fraction(group.group().replace(",", "")), space))
                position, space = group.end(), False
                continue
        match = _TOKEN.match(text, position)
        kind, found = match.lastgroup, match.group()
        position = match.end()
        if kind == "space":
            space = True
            continue
        if kind == "number":
            tokens.append(Token("num", _fraction(found), space))
        elif kind == "repeat":
            tokens.append(Token("num", _repeating(found), space))
        elif kind == "word":
            tokens.append(_word(found, space))
        elif kind == "command":
            tokens.append(_command(found[1:], space))
        elif kind == "op":
            depth += (found in ("(", "[", "\\{", "{")) - (found in (")", "]", "\\}", "}"))
            tokens.append(Token("op", found, space))
        else:
            raise Unreadable(f"sign {found!r}")
        space = False
    return tokens


def _fraction(text: str) -> Fraction:
    if len(text) > MAX_DIGITS:
        raise Unreadable("too many digits")
    mantissa, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > MAX_DIGITS:
        raise Unreadable("exponent")
    return Fraction(text.rstrip(".") if not exponent else mantissa.rstrip(".") + "e" + exponent)


def _repeating(text: str) -> Fraction:
    """0.1\\overline{6} = 1/6."""
    whole, _, rest = text.partition(".")
    plain = re.match(r"\d*", rest).group()
    cycle = re.search(r"\{(\d+)\}", rest).group(1)
    if len(text) > 200:
        raise Unreadable("too many digits")
    base = Fraction(int((whole or "0") + plain), 10 ** len(plain))
    return base + Fraction(int(cycle), (10 ** len(cycle) - 1) * 10 ** len(plain))


def _word(text: str, space: bool) -> Token:
    if text in _FUNCTIONS:
        return Token("func", _FUNCTIONS[text], space)
    if text in ("sqrt", "cbrt", "binom", "frac"):
        return Token("func", text, space)
    if text in ("pi", "e", "i", "Pi"):
        return Token("const", text.lower(), space)
    if text == "I":  # the imaginary unit of computer algebra; a name it is on both sides or on none
        return Token("const", "i", space)
    if text.lower() in ("infinity", "inf", "oo"):
        return Token("inf", text, space)
    if len(text) == 1:
        return Token("sym", text, space)
    if text in _GREEK:
        return Token("sym", text, space)
    if text.lower() in ("and", "or"):
        return Token("op", text.lower(), space)
    if text == "in":
        return Token("word", "in", space)
    return Token("word", text, space)


def _command(name: str, space: bool) -> Token:
    if name in _COMMANDS:
        return Token("op", _COMMANDS[name], space)
    if name in _FUNCTIONS:
        return Token("func", _FUNCTIONS[name], space)
    if name in ("frac", "sqrt", "binom", "dbinom", "tbinom"):
        return Token("func", "binom" if name.endswith("binom") else name, space)
    if name == "pi":
        return Token("const", "pi", space)
    if name == "infty":
        return Token("inf", name, space)
    if name in _GREEK:
        return Token("sym", name.removeprefix("var"), space)
    if name in ("emptyset", "varnothing"):
        return Token("sym", "emptyset", space)
    raise Unreadable(f"command \\{name}")
