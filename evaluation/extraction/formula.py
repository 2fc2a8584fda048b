r"""Reads LaTeX and plain mathematics into a small tree, by a grammar of its own: nothing is ever evaluated as code.

Example: read_value(r"\left( 1\frac12, \sqrt{12}\right]") gives
("tuple", "(", "]", [("num", Fraction(3, 2)), ("root", ("num", 12), 2)]).

Trees of expressions: ("num", Fraction) ("const", "pi"|"e"|"i") ("sym", name) ("add", [..]) ("mul", [..]) ("neg", x)
("div", x, y) ("pow", x, y) ("root", x, n) ("call", name, [..]) ("fact", x) ("inf",).
Values around them: ("list", [..]) and ("set", [..]) without order, ("tuple", open, close, [..]) with order,
("matrix", [[..]]), ("rel", [..], [operators]), ("quantity", x, unit), ("percent", x), ("time", minutes, am_pm),
("ratio", [..]), ("text", words). Whatever the grammar does not know raises Unreadable.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import Any

Node = tuple[Any, ...]

MAX_LENGTH = 1500
MAX_DEPTH = 60
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
    r"\\(?:[,;:!> ]|q?quad(?![A-Za-z])|displaystyle|textstyle|limits|hfill|phantom\{[^{}]*\})|~|&nbsp;"
)
_SIZES = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])\s?\.?")
_WRAP = re.compile(
    r"\\(?:text|textbf|textit|textrm|textnormal|mbox|mathrm|mathbf|mathit|mathsf|rm|bf|operatorname\*?|boldsymbol)\s?"
    r"(?:\{([^{}]{0,300})\}|(?=\s))"
)
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
    text = text.replace("$", " ")
    for _ in range(3):  # wrappers may be nested, in sane texts not deeper
        unwrapped = _WRAP.sub(lambda m: f" {m.group(1) or ''} ", text)
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
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}

# unit spellings -> one name; a word that is in no line stands for itself, without a plural s
_UNITS = {
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
_SINGLE_UNITS = frozenset("mgshLlNJWVK")

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
    """Tokens of a normalised text. thousands: whether `1,234` outside brackets is one number. Raises Unreadable."""
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


_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s?(?:([ap])\.?\s?m\.?)?", re.IGNORECASE)
_MATRIX = re.compile(r"(?:\\begin\{([pbB]?matrix|array)\})(?:\{[lcr| ]{0,40}\})?(.*)\\end\{\1\}", re.S)
_LETTERS = re.compile(r"[^\W\d_]+(?:[\s'’.,-]+[^\W\d_]+)*[.!]?")


def read_value(text: str, thousands: bool = True) -> Node:
    """The value that a text denotes. Raises Unreadable."""
    clean = normalise(text)
    if not clean:
        raise Unreadable("empty")
    matrix = _MATRIX.fullmatch(clean)
    if matrix:
        body = matrix.group(2).strip()
        rows = [row for row in body.split("\\\\") if row.strip()]
        return ("matrix", [[read_value(cell) for cell in row.split("&")] for row in rows])
    time = _TIME.fullmatch(clean)
    if time and int(time[2]) < 60 and int(time[1]) < 24 and int(time[3] or 0) < 60:
        hour, half = int(time[1]), (time[4] or "").lower()
        if half and 1 <= hour <= 12:
            hour = hour % 12 + (12 if half == "p" else 0)
        return ("time", Fraction(hour * 60 + int(time[2])) + Fraction(int(time[3] or 0), 60), half)
    return _value(tokenise(clean, thousands), 0)


def is_words(text: str) -> bool:
    """Whether a text is nothing but words (of any script)."""
    return bool(_LETTERS.fullmatch(_plain(text))) and not text.strip().startswith("\\")


def words_of(text: str) -> str:
    """Words in one spelling: wrappers and marks off, case folded, one blank between."""
    return " ".join(_plain(text).casefold().strip(" .!").split())


def _plain(text: str) -> str:
    text = text.strip().strip("$").strip()
    for _ in range(2):
        text = _WRAP.sub(lambda m: f" {m.group(1) or ''} ", text)
    text = unicodedata.normalize("NFKC", text).replace("\\ ", " ").strip()
    single = re.fullmatch(r"\(\s?([A-Za-z])\s?\)", text)  # the choice (C)
    return single.group(1) if single else text.strip('"“”').strip()


def _value(tokens: list[Token], depth: int) -> Node:
    if depth > 20:
        raise Unreadable("nested too deeply")
    while tokens and tokens[0].kind == "op" and tokens[0].value == "~":
        tokens = tokens[1:]
    if not tokens:
        raise Unreadable("empty")
    for sign in ("pm", "mp"):
        if any(t.kind == "op" and t.value == sign for t in tokens):
            return ("list", [_value(_signed(tokens, upper), depth + 1) for upper in (True, False)])
    parts = _split(tokens, ("and", "or", ";", ","))
    if len(parts) > 1:
        if not parts[-1]:
            parts.pop()
        items = [part for part in parts if part]  # "1, 2, and 3" has an empty part
        return (
            _value(items[0], depth + 1)
            if len(items) == 1
            else ("list", [_value(p, depth + 1) for p in items])
        )
    parts = _split(tokens, ("cup",))
    if len(parts) > 1:
        return ("list", [_value(part, depth + 1) for part in parts])
    relation = _relation(tokens, depth)
    if relation:
        return relation
    return _bracketed(tokens, depth) or _quantity(tokens)


def _signed(tokens: list[Token], upper: bool) -> list[Token]:
    signs = {"pm": "+" if upper else "-", "mp": "-" if upper else "+"}
    return [
        Token("op", signs[t.value], t.space) if t.kind == "op" and t.value in signs else t for t in tokens
    ]


_OPEN, _CLOSE = ("(", "[", "\\{", "{", "lfloor", "lceil"), (")", "]", "\\}", "}", "rfloor", "rceil")


def _split(tokens: list[Token], at: tuple[str, ...]) -> list[list[Token]]:
    """Parts between the given signs outside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "op":
            if token.value in _OPEN:
                depth += 1
            elif token.value in _CLOSE:
                depth -= 1
            elif depth == 0 and token.value in at:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts


_RELATIONS = ("=", "<", ">", "<=", ">=", "!=", "in")


def _relation(tokens: list[Token], depth: int) -> Node | None:
    parts = _split(tokens, _RELATIONS)
    if len(parts) == 1:
        return None
    signs, level = [], 0
    for token in tokens:
        if token.kind == "op":
            level += (token.value in _OPEN) - (token.value in _CLOSE)
            if level == 0 and token.value in _RELATIONS:
                signs.append(token.value)
    if not all(parts) or len(parts) > 12:
        raise Unreadable("relation")
    if signs == ["in"]:
        return _value(parts[1], depth + 1)
    # an unknown with a name of words ("area = 5") is a label
    sides = []
    for number, part in enumerate(parts):
        if number == 0 and all(t.kind == "word" for t in part):
            sides.append(("sym", " ".join(str(t.value) for t in part)))
        else:
            sides.append(_value(part, depth + 1))
    return ("rel", sides, signs)


def _bracketed(tokens: list[Token], depth: int) -> Node | None:
    """A tuple, an interval or a set, where one pair of brackets holds the whole."""
    first, last = tokens[0], tokens[-1]
    if len(tokens) < 2 or first.kind != "op" or last.kind != "op":
        return None
    if first.value not in ("(", "[", "\\{", "{") or last.value not in (")", "]", "\\}", "}"):
        return None
    level = 0
    for number, token in enumerate(tokens):
        if token.kind == "op":
            level += (token.value in _OPEN) - (token.value in _CLOSE)
            if level == 0 and number < len(tokens) - 1:
                return None
    inner = tokens[1:-1]
    braces = first.value in ("\\{", "{")
    if braces != (last.value in ("\\}", "}")):
        return None
    parts = _split(inner, (",", ";")) if inner else []
    if braces:
        return ("set", [_value(part, depth + 1) for part in parts if part])
    if any(not part for part in parts) or not parts:
        raise Unreadable("empty part")
    if len(parts) == 1 and first.value == "[":
        return None
    return ("tuple", first.value, last.value, [_value(part, depth + 1) for part in parts])


def _quantity(tokens: list[Token]) -> Node:
    """An expression with its unit, currency or percent sign, if it has one."""
    if all(t.kind == "word" and t.value.lower() in _NUMBER_WORDS for t in tokens) and len(tokens) == 1:
        return ("num", Fraction(_NUMBER_WORDS[tokens[0].value.lower()]))
    ratio = _split(tokens, (":",))
    if len(ratio) > 1:
        return ("ratio", [parse_expression(part) for part in ratio])
    unit = ""
    sign: list[Token] = []
    if len(tokens) > 1 and tokens[0].kind == "op" and tokens[0].value in ("-", "+"):
        sign, tokens = tokens[:1], tokens[1:]
    if len(tokens) > 1 and (
        (tokens[0].kind == "word" and tokens[0].value.upper() in ("USD", "US", "EUR", "GBP", "RS"))
        or (tokens[0].kind == "op" and tokens[0].value in ("€", "£"))
    ):
        unit, tokens = unit_name([tokens[0]]), tokens[1:]
    tokens = sign + tokens
    cut = _unit_start(tokens)
    if cut < len(tokens):
        tail, tokens = tokens[cut:], tokens[:cut]
        while tail and tail[0].kind == "word" and tail[0].value.lower() in _SCALES and tokens:
            scale = Fraction(_SCALES[tail[0].value.lower()])
            tokens = [*tokens, Token("op", "*", True), Token("num", scale, True)]
            tail = tail[1:]
        if tail and (
            (tail[0].kind == "op" and tail[0].value == "%")
            or (tail[0].kind == "word" and tail[0].value.lower() in ("percent", "percentage", "percents"))
        ):
            return ("percent", parse_expression(tokens))
        unit = unit_name(tail) if tail else unit
    value = parse_expression(tokens)
    return ("quantity", value, unit) if unit else value


def _unit_start(tokens: list[Token]) -> int:
    """Where the unit begins: the first word (or known letter after a blank) behind a value; len(tokens) without one."""
    level = 0
    for number, token in enumerate(tokens):
        if token.kind == "op":
            if level == 0 and number and token.value in ("%", "¢", "€", "£"):
                return number
            if level == 0 and number and token.value == "^" and _is_degree(tokens[number:]):
                return number
            if level == 0 and number and token.value == "degree" and number == len(tokens) - 1:
                return number
            level += (token.value in _OPEN) - (token.value in _CLOSE)
        elif level == 0 and number and _ends_value(tokens[number - 1]):
            known = token.kind == "word" and token.value.lower() in _UNITS
            product = token.kind == "word" and len(token.value) <= 3 and not token.space
            # behind a name only a known unit is one: "a half turn" is no quantity
            if known or (token.kind == "word" and not product and _has_number(tokens[:number])):
                return number
            single = token.kind == "sym" and token.space and token.value in _SINGLE_UNITS
            if single and tokens[number - 1].kind == "num":
                return number
    return len(tokens)


def _has_number(tokens: list[Token]) -> bool:
    return any(t.kind == "num" or (t.kind == "const" and t.value == "pi") for t in tokens)


def _is_degree(tokens: list[Token]) -> bool:
    shown = [t.value for t in tokens if t.kind == "op" and t.value not in ("{", "}")]
    rest = [t for t in tokens if t.kind != "op"]
    return shown == ["^", "circ"] and all(t.kind in ("sym", "word") for t in rest) and len(rest) <= 1


def _ends_value(token: Token) -> bool:
    return token.kind in ("num", "sym", "const") or (
        token.kind == "op" and token.value in (")", "}", "]", "!")
    )


def unit_name(tokens: list[Token]) -> str:
    """One name for a unit: "square centimeters", "cm^2" and "\\text{ cm}^{2}" are all "cm^2"."""
    names: list[str] = []
    power = ""
    for token in tokens:
        value = str(token.value)
        lower = value.lower()
        if token.kind == "op":
            if value in ("circ", "degree"):
                names.append("degree")
            elif value == "/":
                names.append("/")
            elif value in ("€", "£", "¢"):
                names.append(_UNITS[value])
            elif value in ("and", "or", "=", "+"):
                raise Unreadable("unit")
        elif token.kind == "num":
            if token.value != 1 and names:
                names[-1] += f"^{token.value}"
        elif lower in ("square", "sq", "squared"):
            power = "^2"
        elif lower in ("cubic", "cubed"):
            power = "^3"
        elif lower in ("per", "a", "an", "each"):
            names.append("/")
        elif lower in ("of", "the", "total", "in", "about"):
            continue
        else:
            name = _UNITS.get(lower) or _UNITS.get(lower.removesuffix("s")) or lower.removesuffix("s")
            names.append(name + power)
            power = ""
    if power and names:
        names[-1] += power
    return " ".join(names)


def parse_expression(tokens: list[Token]) -> Node:
    """An arithmetic or algebraic expression. Raises Unreadable."""
    parser = _Parser(tokens)
    node = parser.sum()
    if parser.position != len(tokens):
        raise Unreadable("rest")
    return node


class _Parser:
    """Recursive descent over tokens; each method reads one level of the grammar and returns its tree."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.bars = 0

    def peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def at(self, *values: str) -> bool:
        token = self.peek()
        return token is not None and token.kind == "op" and token.value in values

    def take(self, value: str) -> None:
        if not self.at(value):
            raise Unreadable(f"{value!r} expected")
        self.position += 1

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        terms = [self.product()]
        while self.at("+", "-"):
            minus = self.peek().value == "-"
            self.position += 1
            term = self.product()
            terms.append(("neg", term) if minus else term)
        self.depth -= 1
        return terms[0] if len(terms) == 1 else ("add", terms)

    def product(self) -> Node:
        node = self.signed()
        while True:
            if self.at("*"):
                self.position += 1
                node = ("mul", [node, self.signed()])
            elif self.at("/"):
                self.position += 1
                node = ("div", node, self.signed())
            elif self._starts_factor():
                token, before = self.peek(), self.tokens[self.position - 1]
                if token.kind == "num" and before.kind == "num":
                    raise Unreadable("two numbers side by side")
                node = ("mul", [node, self.power()])
            else:
                return node

    def _starts_factor(self) -> bool:
        token = self.peek()
        if token is None:
            return False
        if token.kind in ("num", "sym", "const", "func", "inf", "word"):
            return True
        return token.value in ("(", "[", "{", "lfloor", "lceil") or (token.value == "|" and not self.bars)

    def signed(self) -> Node:
        sign, count = False, 0
        while self.at("+", "-"):
            sign ^= self.peek().value == "-"
            self.position += 1
            count += 1
            if count > 4:
                raise Unreadable("signs")
        node = self.power()
        return ("neg", node) if sign else node

    def power(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        base = self.postfix(self.primary())
        if self.at("^"):
            self.position += 1
            base = self._raised(base)
        self.depth -= 1
        return base

    def _raised(self, base: Node) -> Node:
        if self.at("circ"):
            self.position += 1
            return ("div", ("mul", [base, ("const", "pi")]), ("num", Fraction(180)))
        if (
            self.at("{")
            and self.position + 2 < len(self.tokens)
            and self.tokens[self.position + 1].value == "circ"
        ):
            self.position += 2
            self.take("}")
            return ("div", ("mul", [base, ("const", "pi")]), ("num", Fraction(180)))
        if self.at("-", "+"):
            exponent = self.signed()
        elif self.at("{"):
            exponent = self.group()
            if self.at("^"):
                self.position += 1
                exponent = self._raised(exponent)
        else:
            exponent = self.power()
        return self.postfix(("pow", base, exponent))

    def postfix(self, node: Node) -> Node:
        while self.at("!", "%", "degree"):
            sign = self.peek().value
            self.position += 1
            if sign == "!":
                node = ("fact", node)
            elif sign == "%":
                node = ("div", node, ("num", Fraction(100)))
            else:
                node = ("div", ("mul", [node, ("const", "pi")]), ("num", Fraction(180)))
        return node

    def group(self) -> Node:
        self.take("{")
        node = self.sum()
        self.take("}")
        return node

    def argument(self) -> Node:
        r"""A LaTeX argument: a group, or one single sign (\frac12 is one half)."""
        if self.at("{"):
            return self.group()
        token = self.peek()
        if token is None:
            raise Unreadable("argument")
        if token.kind == "num":
            digits = str(token.value)
            if len(digits) > 1 and digits.isdigit():
                # \frac12 came as the number 12
                self.tokens[self.position : self.position + 1] = [
                    Token("num", Fraction(int(digit)), False) for digit in digits
                ]
            self.position += 1
            return ("num", self.tokens[self.position - 1].value)
        return self.primary()

    def primary(self) -> Node:
        token = self.peek()
        if token is None:
            raise Unreadable("end")
        self.position += 1
        if token.kind == "num":
            return self._number(token)
        if token.kind == "const":
            return ("const", token.value)
        if token.kind == "inf":
            return ("inf",)
        if token.kind == "sym":
            return self._symbol(token.value)
        if token.kind == "word":
            return self._letters(token)
        if token.kind == "func":
            return self._function(token.value)
        if token.value in ("(", "["):
            node = self.sum()
            self.take(")" if token.value == "(" else "]")
            return node
        if token.value == "{":
            self.position -= 1
            return self.group()
        if token.value in ("lfloor", "lceil"):
            node = self.sum()
            self.take("r" + token.value[1:])
            return ("call", token.value[1:], [node])
        if token.value == "|":
            self.bars += 1
            node = self.sum()
            self.take("|")
            self.bars -= 1
            return ("call", "abs", [node])
        raise Unreadable(f"sign {token.value!r}")

    def _number(self, token: Token) -> Node:
        following = self.peek()
        if self.at("_"):
            self.position += 1
            base = self.argument()
            return ("call", "base", [("num", token.value), base])
        mixed = (
            token.value.denominator == 1
            and following is not None
            and following.kind == "func"
            and following.value == "frac"
        )
        if mixed:
            start = self.position
            self.position += 1
            upper, lower = self.argument(), self.argument()
            if upper[0] == "num" and lower[0] == "num" and lower[1]:
                return ("num", token.value + upper[1] / lower[1])
            self.position = start
        return ("num", token.value)

    def _symbol(self, name: str) -> Node:
        if self.at("_"):
            self.position += 1
            index = self.argument()
            if index[0] not in ("num", "sym", "const"):
                raise Unreadable("index")
            name = f"{name}_{index[1]}"
        primes = 0
        while self.at("'"):
            self.position += 1
            primes += 1
        name += "'" * primes
        if name[0] in "fgFG" and self.at("("):
            return ("call", "?" + name, self._arguments())
        return ("sym", name)

    def _letters(self, token: Token) -> Node:
        """A run of up to three small letters is a product; longer runs are words."""
        text = token.value
        if len(text) > 3 or text.lower() in _STOP:
            raise Unreadable(f"word {text!r}")
        symbols = [("const", c) if c in "ei" else ("sym", c) for c in text]
        if self.at("^"):
            self.position += 1
            symbols[-1] = self._raised(symbols[-1])
        return ("mul", symbols)

    def _arguments(self) -> list[Node]:
        self.take("(")
        found = [self.sum()]
        while self.at(","):
            self.position += 1
            found.append(self.sum())
        self.take(")")
        return found

    def _function(self, name: str) -> Node:
        if name == "frac":
            upper = self.argument()
            return ("div", upper, self.argument())
        if name == "binom":
            upper = self.argument()
            return ("call", "binom", [upper, self.argument()])
        if name in ("sqrt", "cbrt"):
            index: Node = ("num", Fraction(2 if name == "sqrt" else 3))
            if self.at("["):
                self.position += 1
                index = self.sum()
                self.take("]")
            if index[0] != "num" or index[1].denominator != 1 or not 1 <= index[1] <= 1000:
                raise Unreadable("index of a root")
            radicand = self.primary() if self.at("(") else self.argument()
            return ("root", radicand, int(index[1]))
        base = None
        power = None
        for _ in range(2):
            if self.at("_") and name == "log":
                self.position += 1
                base = self.argument()
            elif self.at("^"):
                self.position += 1
                if self.at("{"):
                    power = self.group()
                elif self.at("-"):
                    power = self.signed()
                else:
                    power = self.argument()
        if power == ("neg", ("num", Fraction(1))) and name in ("sin", "cos", "tan"):
            name, power = "a" + name, None
        if self.at("(") and self._call_follows():
            arguments = self._arguments()
        else:
            arguments = [self._bare_argument()]
        if base is not None:
            arguments = [*arguments, base]
        node: Node = ("call", name, arguments)
        return node if power is None else ("pow", node, power)

    def _call_follows(self) -> bool:
        return True

    def _bare_argument(self) -> Node:
        """sin 2x: the factors side by side, up to a sign or the next function."""
        if self.at("-", "+"):
            return self.signed()
        node = self.power()
        while True:
            token = self.peek()
            if token is None or token.kind not in ("num", "sym", "const"):
                return node
            if token.kind == "num" and self.tokens[self.position - 1].kind == "num":
                raise Unreadable("two numbers side by side")
            node = ("mul", [node, self.power()])


_STOP = frozenset(
    "the is are not no nor yes all any one two six ten odd but for it its if to of on at by we he she his her an as be"
    " do up so can may was has had who how why day men man set sum ali bob eve sue tom tim amy dan ben jim joe sam none"
    " cat dog red am pm".split()
)
