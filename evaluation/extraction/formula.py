r"""Reads LaTeX and plain mathematics into a small tree, by a grammar of its own: nothing is ever evaluated
as code.

Example: read_value(r"\left( 1\frac12, \sqrt{12}\right]") gives
("tuple", "(", "]", [("num", Fraction(3, 2)), ("root", ("num", 12), 2)]).

Trees of expressions: ("num", Fraction) ("const", "pi"|"e"|"i") ("sym", name) ("add", [..]) ("mul", [..])
("neg", x) ("div", x, y) ("pow", x, y) ("root", x, n) ("call", name, [..]) ("fact", x) ("inf",). Values
around them: ("list", [..]) and ("set", [..]) without order, ("tuple", open, close, [..]) with order,
("matrix", [[..]]), ("rel", [..], [operators]), ("quantity", x, unit), ("percent", x), ("time", minutes,
am_pm), ("ratio", [..]), ("text", words). Whatever the grammar does not know raises Unreadable.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from evaluation.extraction.formula_grammar import Node, parse_expression
from evaluation.extraction.formula_tokens import (
    NUMBER_WORDS,
    SCALES,
    SINGLE_UNITS,
    UNITS,
    WRAP,
    Token,
    Unreadable,
    normalise,
    tokenise,
)

__all__ = ["Node", "Unreadable", "is_words", "normalise", "read_value", "words_of"]

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
    return bool(_LETTERS.fullmatch(_plain(text)))


def words_of(text: str) -> str:
    """Words in one spelling: wrappers and marks off, case folded, one blank between."""
    return " ".join(_plain(text).casefold().strip(" .!").split())


def _plain(text: str) -> str:
    text = text.strip().strip("$").strip()
    for _ in range(2):
        text = WRAP.sub(lambda m: f" {m.group(1) or ''} ", text)
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
    parts = _split(tokens, ("and", "or", ";", ","))
    if len(parts) > 1:
        items = [part for part in parts if part]  # "1, 2, and 3" has an empty part
        return _value(items[0], depth + 1) if len(items) == 1 else ("list", _values(items, depth))
    if _has_sign(tokens) and not (tokens[0].kind == "op" and tokens[0].value in ("\\{", "{")):
        return ("list", _values([_signed(tokens, True), _signed(tokens, False)], depth))
    parts = _split(tokens, ("cup",))
    if len(parts) > 1:
        return ("list", _values(parts, depth))
    relation = _relation(tokens, depth)
    if relation:
        return relation
    return _bracketed(tokens, depth) or _quantity(tokens)


def _values(parts: list[list[Token]], depth: int) -> list[Node]:
    """The values of the parts, lists among them opened (1 \\pm 2 is two of the values of a set)."""
    found: list[Node] = []
    for part in parts:
        value = _value(part, depth + 1)
        found.extend(value[1] if value[0] == "list" else [value])
    return found


def _has_sign(tokens: list[Token]) -> bool:
    return any(t.kind == "op" and t.value in ("pm", "mp") for t in tokens)


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
        return ("set", _values([part for part in parts if part], depth))
    if any(not part for part in parts) or not parts:
        raise Unreadable("empty part")
    if len(parts) == 1 and first.value == "[":
        return None
    return ("tuple", first.value, last.value, [_value(part, depth + 1) for part in parts])


def _quantity(tokens: list[Token]) -> Node:
    """An expression with its unit, currency or percent sign, if it has one."""
    if all(t.kind == "word" and t.value.lower() in NUMBER_WORDS for t in tokens) and len(tokens) == 1:
        return ("num", Fraction(NUMBER_WORDS[tokens[0].value.lower()]))
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
        while tail and tail[0].kind == "word" and tail[0].value.lower() in SCALES and tokens:
            scale = Fraction(SCALES[tail[0].value.lower()])
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


_OF_ANGLES = ("sin", "cos", "tan", "cot", "sec", "csc")
MAX_UNIT_WORDS = 8


def _unit_start(tokens: list[Token]) -> int:
    """Where the unit begins: the first word (or known letter after a blank) behind a value; len(tokens)
    without one.
    """
    level = 0
    trigonometric = any(t.kind == "func" and t.value in _OF_ANGLES for t in tokens)
    for number, token in enumerate(tokens):
        if token.kind == "op":
            if level == 0 and number and token.value in ("%", "¢", "€", "£"):
                return number
            if (
                level == 0
                and number
                and token.value == "^"
                and _is_degree(tokens[number:])
                and not trigonometric
            ):
                return number
            if level == 0 and number and token.value == "degree" and number == len(tokens) - 1:
                return number
            level += (token.value in _OPEN) - (token.value in _CLOSE)
        elif level == 0 and number and _ends_value(tokens[number - 1]):
            known = token.kind == "word" and token.value.lower() in UNITS
            product = token.kind == "word" and len(token.value) <= 3 and not token.space
            # behind a name only a known unit is one: "a half turn" is no quantity
            if known or (token.kind == "word" and not product and _has_number(tokens[:number])):
                return number
            single = token.kind == "sym" and token.space and token.value in SINGLE_UNITS
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
    if len(tokens) > 3 * MAX_UNIT_WORDS or sum(t.kind == "word" for t in tokens) > MAX_UNIT_WORDS:
        raise Unreadable("a sentence, not a unit")
    for number, token in enumerate(tokens):
        value = str(token.value)
        lower = value.lower()
        if token.kind == "op":
            if value in ("circ", "degree"):
                names.append("degree")
            elif value == "/":
                names.append("/")
            elif value in ("€", "£", "¢"):
                names.append(UNITS[value])
            elif value in ("and", "or", "=", "+"):
                raise Unreadable("unit")
        elif token.kind == "num":
            raised = any(t.value == "^" for t in tokens[max(0, number - 2) : number])
            if not raised or not names:
                raise Unreadable("a number inside a unit")
            if token.value != 1:
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
            name = UNITS.get(lower) or UNITS.get(lower.removesuffix("s")) or lower.removesuffix("s")
            names.append(name + power)
            power = ""
    if power and names:
        names[-1] += power
    return " ".join(names)
