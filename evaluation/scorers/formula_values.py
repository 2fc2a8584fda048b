r"""Values of formula trees at points: the cheap and bounded test of identity.

Example: sin(x)^2 + cos(x)^2 and 1 agree to 60 digits at every point, x and x + 10^-9 at none. Rational
trees are computed exactly. Every operation is bounded (digits of numbers, size of exponents, factorials),
so that 9^9^9^9 raises TooLarge at once.
"""

# ruff: noqa: SIM905  (word lists)

from __future__ import annotations

import threading
import zlib
from fractions import Fraction
from functools import cache
from math import comb, factorial, floor, gcd, isqrt, lcm
from typing import Any

from evaluation.extraction.formula import Node

MAX_BITS = 60_000  # of an exact numerator or denominator
MAX_EXPONENT10 = 5_000  # of an approximate value
MAX_FACTORIAL = 2_000
DIGITS = 60
POINTS = 5


class Undefined(ArithmeticError):
    """No value: division by zero, a sign that has no number."""


class TooLarge(ArithmeticError):
    """The value is beyond the bounds: not computed."""


class NotRational(Exception):
    """The tree has parts that have no exact rational value here."""


def symbols(node: Any, found: frozenset[str] = frozenset()) -> frozenset[str]:
    """Names of the unknowns in a tree."""
    if isinstance(node, (list, tuple)):
        if node and node[0] == "sym":
            return found | {node[1]}
        for part in node:
            if isinstance(part, (list, tuple)):
                found = symbols(part, found)
    return found


def point(name: str, number: int) -> Fraction:
    """A fixed rational value of an unknown at point `number`, never an integer; points 3 and on have
    negative values.
    """
    seed = zlib.crc32(f"{name}:{number}".encode())
    value = Fraction(seed % 9973 + 1009, 3001)
    return value if number < 3 or seed & 1 else -value


def same_value(left: Node, right: Node, tolerance: Fraction) -> bool | None:
    """Whether two expressions have one value. None where neither is shown. Raises TooLarge or Undefined.

    tolerance: allowed absolute difference, for plain rational numbers only (decimals that were rounded).
    """
    names = sorted(symbols(left) | symbols(right))
    try:
        difference = exact(left, {}) - exact(right, {}) if not names else None
    except NotRational:
        difference = None
    if difference is not None:
        return abs(difference) <= tolerance
    return _agree_at_points(left, right, names)


def _agree_at_points(left: Node, right: Node, names: list[str]) -> bool | None:
    compared = 0
    undefined = 0
    for number in range(POINTS if names else 1):
        values = {name: point(name, number) for name in names}
        try:
            try:
                if exact(left, values) != exact(right, values):
                    return False
                compared += 1
                continue
            except NotRational:
                a, b = approximate(left, values), approximate(right, values)
        except Undefined:
            undefined += 1
            continue
        if names and (_is_real(a) != _is_real(b)):
            continue  # ln(x^2) and 2 ln x: compared where both are real
        if not close(a, b):
            return False
        compared += 1
    if undefined == POINTS or (undefined and not names):
        raise Undefined
    return True if compared >= (2 if names else 1) else None


def proportional(left: Node, right: Node) -> bool | None:
    """Whether left = 0 and right = 0 are one equation: their quotient is one constant other than zero."""
    names = sorted(symbols(left) | symbols(right))
    if not names:
        return None
    quotient = None
    seen = 0
    for number in range(POINTS):
        values = {name: point(name, number) for name in names}
        try:
            a, b = _exact_or_not(left, values), _exact_or_not(right, values)
            if a == 0 or b == 0:
                return False if (a == 0) != (b == 0) else None
            ratio = a / b
        except (Undefined, ZeroDivisionError):
            continue
        if quotient is not None and not close(ratio, quotient):
            return False
        quotient = ratio
        seen += 1
    return True if seen >= 3 else None


def _exact_or_not(node: Node, values: dict[str, Fraction]) -> Any:
    try:
        value = exact(node, values)
    except NotRational:
        return approximate(node, values)
    return _number(value) if value else 0


def exact(node: Node, values: dict[str, Fraction]) -> Fraction:
    """The rational value. Raises NotRational, Undefined, TooLarge."""
    kind = node[0]
    if kind == "num":
        return node[1]
    if kind == "sym":
        if node[1] not in values:
            raise NotRational
        return values[node[1]]
    if kind == "add":
        return _bounded(sum((exact(part, values) for part in node[1]), Fraction(0)))
    if kind == "mul":
        value = Fraction(1)
        for part in node[1]:
            value = _bounded(value * exact(part, values))
        return value
    if kind == "neg":
        return -exact(node[1], values)
    if kind == "div":
        lower = exact(node[2], values)
        if not lower:
            raise Undefined
        return _bounded(exact(node[1], values) / lower)
    if kind == "pow":
        return _exact_power(exact(node[1], values), exact(node[2], values))
    if kind == "root":
        return _exact_root(exact(node[1], values), node[2])
    if kind == "fact":
        return Fraction(_factorial(exact(node[1], values)))
    if kind == "call":
        return _exact_call(node[1], [exact(part, values) for part in node[2]])
    if kind == "inf":
        raise Undefined
    raise NotRational


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() > MAX_BITS or value.denominator.bit_length() > MAX_BITS:
        raise TooLarge
    return value


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        if exponent.denominator > 12 or base < 0:
            raise NotRational
        return _exact_power(_exact_root(base, exponent.denominator), Fraction(exponent.numerator))
    power = int(exponent)
    if not base:
        if power > 0:
            return base
        raise Undefined
    if abs(base) == 1:
        return base if power % 2 else Fraction(1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(power) * bits > MAX_BITS:
        raise TooLarge
    return base**power


def _exact_root(value: Fraction, index: int) -> Fraction:
    if value < 0:
        if index % 2:
            return -_exact_root(-value, index)
        raise NotRational
    upper, lower = _integer_root(value.numerator, index), _integer_root(value.denominator, index)
    return Fraction(upper, lower)


def _integer_root(value: int, index: int) -> int:
    if index == 1 or value < 2:
        return value
    if index == 2:
        root = isqrt(value)
    else:
        if value.bit_length() > 900:
            raise NotRational
        root = round(value ** (1 / index))
    if root**index != value:
        raise NotRational
    return root


def _factorial(value: Fraction) -> int:
    if value.denominator != 1:
        raise NotRational
    if value < 0:
        raise Undefined
    if value > MAX_FACTORIAL:
        raise TooLarge
    return factorial(int(value))


def _exact_call(name: str, arguments: list[Fraction]) -> Fraction:
    first = arguments[0]
    if name == "abs":
        return abs(first)
    if name in ("floor", "ceil"):
        return Fraction(floor(first) if name == "floor" else -floor(-first))
    if any(value.denominator != 1 for value in arguments):
        raise NotRational
    whole = [int(value) for value in arguments]
    if name in ("gcd", "lcm"):
        return Fraction((gcd if name == "gcd" else lcm)(*whole))
    if name == "binom" and len(whole) == 2:
        if not 0 <= whole[1] <= whole[0]:
            raise Undefined
        if whole[0] > MAX_FACTORIAL:
            raise TooLarge
        return Fraction(comb(*whole))
    if name == "base" and len(whole) == 2:
        digits = str(whole[0])
        if not 2 <= whole[1] <= 10 or not digits.isdigit() or any(int(d) >= whole[1] for d in digits):
            raise Undefined
        return Fraction(int(digits, whole[1]))
    raise NotRational


# --- approximate values, to 60 digits -------------------------------------------------------------

_lock = threading.RLock()


@cache
def _context() -> Any:
    """An mpmath context of our own: the package's global one is shared and changes its precision in every
    thread.
    """
    from mpmath.ctx_mp import MPContext

    context = MPContext()
    context.dps = DIGITS
    return context


def _number(value: Fraction) -> Any:
    context = _context()
    return context.mpf(value.numerator) / value.denominator


def approximate(node: Node, values: dict[str, Fraction]) -> Any:
    """The value to 60 digits, real or complex. Raises Undefined, TooLarge."""
    with _lock:
        try:
            return _approximate(node, values)
        except (ZeroDivisionError, ValueError):
            raise Undefined from None
        except (OverflowError, MemoryError):
            raise TooLarge from None


def _approximate(node: Node, values: dict[str, Fraction]) -> Any:
    context = _context()
    kind = node[0]
    if kind == "num":
        return _number(node[1])
    if kind == "const":
        return {"pi": +context.pi, "e": +context.e, "i": context.j}[node[1]]
    if kind == "sym":
        return _number(values[node[1]])
    if kind == "add":
        return sum((_approximate(part, values) for part in node[1]), context.mpf(0))
    if kind == "mul":
        value = context.mpf(1)
        for part in node[1]:
            value = _sized(value * _approximate(part, values))
        return value
    if kind == "neg":
        return -_approximate(node[1], values)
    if kind == "div":
        return _sized(_approximate(node[1], values) / _approximate(node[2], values))
    if kind == "pow":
        return _power(_approximate(node[1], values), _approximate(node[2], values))
    if kind == "root":
        value, index = _approximate(node[1], values), node[2]
        if index % 2 and _is_real(value) and context.re(value) < 0:
            return -context.root(-context.re(value), index)
        return context.root(value, index)
    if kind == "fact":
        value = _approximate(node[1], values)
        if abs(value) > MAX_FACTORIAL:
            raise TooLarge
        return context.gamma(value + 1)
    if kind == "call":
        return _call(node[1], [_approximate(part, values) for part in node[2]])
    raise Undefined


def _sized(value: Any) -> Any:
    size = abs(value)
    if size and abs(_context().mag(size)) > MAX_EXPONENT10 * 3.33:
        raise TooLarge
    return value


def _power(base: Any, exponent: Any) -> Any:
    context = _context()
    if base == 0:
        if context.re(exponent) > 0:
            return context.mpf(0)
        raise Undefined
    if abs(exponent) * abs(context.log(base)) > MAX_EXPONENT10 * 2.31:
        raise TooLarge
    return base**exponent


def _call(name: str, arguments: list[Any]) -> Any:
    context = _context()
    first = arguments[0]
    if name.startswith("?"):
        # an unknown function: any fixed smooth one, other for each name and place
        seed = zlib.crc32(name.encode()) % 97 + 3
        return sum(
            (
                context.cos(_sized(a) * (seed + 2 * number) / 7) * (number + 2)
                for number, a in enumerate(arguments)
            ),
            context.mpf(0),
        )
    if len(arguments) == 2 and name == "log":
        return context.log(first) / context.log(arguments[1])
    if len(arguments) != 1:
        raise Undefined
    if name in ("exp", "sinh", "cosh", "tanh") and abs(first) > MAX_EXPONENT10:
        raise TooLarge
    if name in _ONE_ARGUMENT:
        return getattr(context, _ONE_ARGUMENT[name])(first)
    if name == "abs":
        return abs(first)
    raise Undefined


_ONE_ARGUMENT = {
    **{name: name for name in "sin cos tan cot sec csc sinh cosh tanh exp asin acos atan floor ceil".split()},
    "ln": "log",
    "log": "log",
    "lg": "log10",
}


def _is_real(value: Any) -> bool:
    context = _context()
    return abs(context.im(value)) <= context.mpf(10) ** -40 * max(1, abs(context.re(value)))


def close(a: Any, b: Any) -> bool:
    """Equal but for the last digits of 60; far apart enough to tell pi from 3.14159265358979323846."""
    context = _context()
    gap = abs(a - b)
    return gap <= context.mpf(10) ** -35 * max(abs(a), abs(b)) or gap <= context.mpf(10) ** -50
