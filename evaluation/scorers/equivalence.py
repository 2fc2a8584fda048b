r"""Whether an answer denotes the same value as the gold: strict about what mathematics is strict about.

Example: compare(r"\frac{1}{2}", "0.5") is equal; compare("12 cm", "12 m") is not; compare("2x+1", "two
times pi") is undecided (equal is None). Four steps, cheapest first: equal text, exact numbers, our own
grammar with values at points, and last math-verify in a guarded process (symbolic.py) for what that grammar
does not know. Text is parsed, never evaluated.

Rules: a gold without unit ignores the answer's unit; with one, another unit is wrong and a missing one is
allowed, except for degrees (30 is 30 radians). Percent goes by the gold's form: 50% is 50 where the gold is
50 or 50%, and 0.5 where the gold is a share of at most 1. Tuples and intervals are ordered, bare lists and
sets are not. A rounded decimal is not the number that was rounded. Times are not numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from evaluation.extraction.formula import Node, Unreadable, is_words, normalise, read_value, words_of
from evaluation.scorers.formula_values import (
    TooLarge,
    Undefined,
    approximate,
    proportional,
    same_value,
    symbols,
)

MAX_TEXT = 2000
MAX_ITEMS = 60


@dataclass(frozen=True)
class Policy:
    """What the published definitions of two tasks settle differently.

    tolerance: of two plain decimals. bare_degrees: whether 30 is the gold 30 degrees (LiveMathBench compared
    the numbers; MATH wants the degree sign on both sides).
    """

    tolerance: Fraction
    bare_degrees: bool


MATH = Policy(Fraction(1, 10**10), False)
LIVE = Policy(Fraction(1, 10**6), True)
EXACT = Policy(Fraction(0), False)


@dataclass(frozen=True)
class Comparison:
    """A verdict.

    equal: True, False, or None where nothing is shown. reason: "unequal", "timeout", "too_large",
    "undefined", "unreadable" (not in the grammar) or "not_shown" (parsed, but neither shown);
    None where equal. symbolic: whether the guarded process was asked.
    """

    equal: bool | None
    reason: str | None = None
    symbolic: bool = False


_LOOSE = re.compile(r"(?<!\w)\s+|\s+(?!\w)")
EQUAL = Comparison(True)
UNEQUAL = Comparison(False, "unequal")


@lru_cache(maxsize=200_000)
def compare(gold: str, answer: str, policy: Policy = MATH) -> Comparison:
    """Compares two answers as texts. Never raises because of them; safe in threads; kept per (gold,
    answer).
    """
    if _squeezed(gold) == _squeezed(answer):
        return EQUAL
    if len(gold) > MAX_TEXT or len(answer) > MAX_TEXT:
        return Comparison(None, "unreadable")
    quick = _plain_numbers(gold, answer, policy)
    if quick is not None:
        return quick
    words = _compare_words(gold, answer)
    if words is not None:
        return words
    return _compare_values(gold, answer, policy)


def _squeezed(text: str) -> str:
    """Without white space, but for the blank between two words or digits: 1 2 is not 12."""
    return _LOOSE.sub("", text.strip()).strip("$").rstrip(".").strip()


def _plain_numbers(gold: str, answer: str, policy: Policy) -> Comparison | None:
    left, right = _plain_number(gold), _plain_number(answer)
    if left is None or right is None:
        return None
    return EQUAL if abs(left - right) <= policy.tolerance else UNEQUAL


def _plain_number(text: str) -> Fraction | None:
    text = text.strip().strip("$").strip()
    body = text.removeprefix("-")
    if not 0 < len(body) <= 400 or not all(c in "0123456789./" for c in body):
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _compare_words(gold: str, answer: str) -> Comparison | None:
    """Two texts of words: equal in one spelling, or two different single words. None: not for this rule to
    say.
    """
    if not (is_words(gold) and is_words(answer)):
        return None
    left, right = words_of(gold), words_of(answer)
    if left == right:
        # single letters are names: x is not X, but the choice c is the choice C only by case of words
        return EQUAL if len(left) > 1 or gold.strip() == answer.strip() else None
    if " " in left or " " in right or min(len(left), len(right)) == 1 == max(len(left), len(right)):
        return None
    if len(left) <= 3 and len(right) <= 3 and sorted(left) == sorted(right):
        return None  # xy and yx
    if {left, right} <= {"infinity", "inf", "oo"}:
        return EQUAL
    return UNEQUAL


def _compare_values(gold: str, answer: str, policy: Policy) -> Comparison:
    left, right = _read(gold), _read(answer)
    if left is None or right is None:
        return _by_symbols(gold, answer)
    if (left[0] == "list") != (right[0] == "list"):
        # 100,200,300 is a list where the other side is one
        again = _read(answer if left[0] == "list" else gold, thousands=False)
        if again is not None and again[0] == "list":
            left, right = (left, again) if left[0] == "list" else (again, right)
    try:
        equal = _same(left, right, policy)
    except (TooLarge, RecursionError):
        return Comparison(False, "too_large")
    except Undefined:
        return Comparison(None, "undefined")
    if equal:
        return EQUAL
    if equal is None:
        return Comparison(None, "not_shown")
    return UNEQUAL


def _read(text: str, thousands: bool = True) -> Node | None:
    try:
        return read_value(text, thousands)
    except (Unreadable, RecursionError):
        return None


def _by_symbols(gold: str, answer: str) -> Comparison:
    """What our grammar does not know and math-verify may: sums, integrals, limits."""
    from evaluation.scorers.symbolic import allowed, ask, worth_asking

    left, right = normalise(gold), normalise(answer)
    if not (worth_asking(left, right) and allowed(left) and allowed(right)):
        return Comparison(None, "unreadable")
    verdict = ask(left, right)
    if verdict == "equal":
        return Comparison(True, None, True)
    if verdict == "timeout":
        return Comparison(False, "timeout", True)
    return Comparison(None, "unreadable" if verdict == "unparsed" else "not_shown", True)


# --- values ---------------------------------------------------------------------------------------

_BARE = ("num", "const", "sym", "add", "mul", "neg", "div", "pow", "root", "call", "fact", "inf")


def _same(gold: Node, answer: Node, policy: Policy) -> bool | None:
    """Whether two values are one. None where nothing is shown."""
    if gold == answer:
        return True
    rule = _RULES.get((_family(gold), _family(answer)))
    if rule is not None:
        return rule(gold, answer, policy)
    return False


def _family(node: Node) -> str:
    return "expression" if node[0] in _BARE else node[0]


def _expressions(gold: Node, answer: Node, policy: Policy) -> bool | None:
    left, right = _infinite(gold), _infinite(answer)
    if left or right:
        return left == right
    return same_value(gold, answer, policy.tolerance)


def _infinite(node: Node) -> int:
    if node == ("inf",):
        return 1
    return -1 if node == ("neg", ("inf",)) else 0


def _quantities(gold: Node, answer: Node, policy: Policy) -> bool | None:
    unit = gold[2] if gold[0] == "quantity" else ""
    other = answer[2] if answer[0] == "quantity" else ""
    if unit and unit != other and (other or (unit == "degree" and not policy.bare_degrees)):
        return False
    left = gold[1] if gold[0] == "quantity" else gold
    right = answer[1] if answer[0] == "quantity" else answer
    return _same(left, right, policy)


def _percents(gold: Node, answer: Node, policy: Policy) -> bool | None:
    left = gold[1] if gold[0] == "percent" else gold
    right = answer[1] if answer[0] == "percent" else answer
    if _same(left, right, policy):
        return True
    if gold[0] == "percent":
        return False
    if not _at_most_one(gold):
        return False
    return _same(gold, ("div", right, ("num", Fraction(100))), policy)


def _at_most_one(node: Node) -> bool:
    return not symbols(node) and abs(approximate(node, {})) <= 1


def _unordered(gold: Node, answer: Node, policy: Policy) -> bool | None:
    left, right = _items(gold), _items(answer)
    if "set" in (gold[0], answer[0]):
        left, right = _distinct(left, policy), _distinct(right, policy)
    if len(left) != len(right):
        return False
    if len(left) > MAX_ITEMS:
        return None
    rest = list(right)
    for item in left:
        match = next((other for other in rest if _same(item, other, policy)), None)
        if match is None:
            return False
        rest.remove(match)
    return True


def _items(node: Node) -> list[Node]:
    if node[0] in ("list", "set"):
        return list(node[1])
    return [node]


def _distinct(items: list[Node], policy: Policy) -> list[Node]:
    kept: list[Node] = []
    for item in items[: MAX_ITEMS + 1]:
        if not any(_same(item, other, policy) for other in kept):
            kept.append(item)
    return kept


def _tuples(gold: Node, answer: Node, policy: Policy) -> bool | None:
    if gold[1:3] != answer[1:3] or len(gold[3]) != len(answer[3]):
        return False
    return _all_same(gold[3], answer[3], policy)


def _all_same(left: list[Node], right: list[Node], policy: Policy) -> bool | None:
    results = [_same(a, b, policy) for a, b in zip(left, right, strict=True)]
    if all(results):
        return True
    return False if False in results else None


def _opened(gold: Node, answer: Node, policy: Policy) -> bool | None:
    """(a) against a: brackets around one value."""
    if gold[0] == "tuple" and len(gold[3]) == 1:
        return _same(gold[3][0], answer, policy)
    if answer[0] == "tuple" and len(answer[3]) == 1:
        return _same(gold, answer[3][0], policy)
    return False


def _matrices(gold: Node, answer: Node, policy: Policy) -> bool | None:
    if [len(row) for row in gold[1]] != [len(row) for row in answer[1]]:
        return False
    return _all_same([c for row in gold[1] for c in row], [c for row in answer[1] for c in row], policy)


def _times(gold: Node, answer: Node, policy: Policy) -> bool | None:
    if gold[2] and not answer[2]:
        return False
    if answer[2] and not gold[2]:
        # an answer that adds a.m. or p.m. names the gold's hour on the twelve-hour clock
        return (gold[1] - answer[1]) % 720 == 0
    return gold[1] == answer[1]


def _ratios(gold: Node, answer: Node, policy: Policy) -> bool | None:
    if len(gold[1]) != len(answer[1]):
        return False
    first, second = gold[1][0], answer[1][0]
    return _all_same([("mul", [a, second]) for a in gold[1]], [("mul", [b, first]) for b in answer[1]], EXACT)


def _relations(gold: Node, answer: Node, policy: Policy) -> bool | None:
    if gold[2] == ["="] and answer[2] == ["="]:
        (a, b), (c, d) = gold[1], answer[1]
        if a == c:
            return _same(b, d, policy)
        if any(_family(side) not in ("expression",) for side in (a, b, c, d)):
            return _same(a, c, policy) and _same(b, d, policy)
        if a[0] == c[0] == "sym":
            return _same(a, d, policy) and _same(b, c, policy) if d[0] == "sym" else False
        return proportional(("add", [a, ("neg", b)]), ("add", [c, ("neg", d)]))
    left, right = _interval(gold), _interval(answer)
    if left and right:
        same_unknown = _unknown(gold) == _unknown(answer)
        return _same(left, right, policy) if same_unknown else False
    if all(sign == "=" for sign in answer[2]) and len(answer[2]) > 1:
        return _same(gold, ("rel", [answer[1][0], answer[1][-1]], ["="]), policy)
    if gold[2] == answer[2] and len(gold[1]) == len(answer[1]) and _all_same(gold[1], answer[1], policy):
        return True
    flipped = ("rel", answer[1][::-1], [_FLIPPED.get(sign, sign) for sign in answer[2][::-1]])
    if gold[2] == flipped[2] and len(gold[1]) == len(answer[1]) and _all_same(gold[1], flipped[1], policy):
        return True
    return None


_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _unknown(node: Node) -> Node | None:
    return next((side for side in node[1] if side[0] == "sym"), None)


def _interval(node: Node) -> Node | None:
    """x > 5 as (5, oo); 0 <= x < 1 as [0, 1)."""
    sides, signs = node[1], node[2]
    if len(sides) == 2 and signs[0] in _FLIPPED:
        if sides[0][0] == "sym" and sides[1][0] != "sym":
            sign, bound = signs[0], sides[1]
        elif sides[1][0] == "sym":
            sign, bound = _FLIPPED[signs[0]], sides[0]
        else:
            return None
        closed = sign.endswith("=")
        if sign.startswith("<"):
            return ("tuple", "(", "]" if closed else ")", [("neg", ("inf",)), bound])
        return ("tuple", "[" if closed else "(", ")", [bound, ("inf",)])
    if len(sides) == 3 and sides[1][0] == "sym":
        if all(sign in (">", ">=") for sign in signs):
            sides, signs = sides[::-1], [_FLIPPED[sign] for sign in signs[::-1]]
        if all(sign in ("<", "<=") for sign in signs):
            left, right = "[" if signs[0] == "<=" else "(", "]" if signs[1] == "<=" else ")"
            return ("tuple", left, right, [sides[0], sides[2]])
    return None


def _relation_and_value(gold: Node, answer: Node, policy: Policy) -> bool | None:
    """x = 5 against 5; x > 5 against an interval; the result of a chain of equations."""
    relation, value = (gold, answer) if gold[0] == "rel" else (answer, gold)
    interval = _interval(relation)
    if interval and value[0] in ("tuple", "list"):
        pair = (interval, value) if relation is gold else (value, interval)
        return _same(*pair, policy)
    if any(sign != "=" for sign in relation[2]):
        return False
    named = relation[1][0][0] == "sym" or (relation[1][0][0] == "call" and relation[1][0][1].startswith("?"))
    if relation is gold and not named:
        return False
    bare = relation[1][-1]
    if bare[0] == "sym" and not named and value[0] != "sym":
        bare = relation[1][0]  # 5 = x
    return _same(bare, value, policy) if relation is gold else _same(value, bare, policy)


def _relation_list(gold: Node, answer: Node, policy: Policy) -> bool | None:
    """x = 1, x = 2 against 1, 2: item by item, which the relation's own rules do; one relation is a list
    of one.
    """
    if _family(gold) == "rel" and _interval(gold) is None and gold[2] == ["="] and gold[1][0][0] == "sym":
        return _same(gold[1][1], answer, policy)
    if _family(answer) == "rel" and answer[2] == ["="] and answer[1][0][0] == "sym":
        return _same(gold, answer[1][1], policy)
    return False


def _single(gold: Node, answer: Node, policy: Policy) -> bool | None:
    """A set or list of one against the value itself."""
    left, right = _items(gold), _items(answer)
    return _same(left[0], right[0], policy) if len(left) == len(right) == 1 else False


def _named_tuple(gold: Node, answer: Node, policy: Policy) -> bool | None:
    """x = 3, y = 4 against (3, 4): the unknowns in their order of letters."""
    pairs, point = (gold, answer) if gold[0] == "list" else (answer, gold)
    if not all(item[0] == "rel" and item[2] == ["="] and item[1][0][0] == "sym" for item in pairs[1]):
        return False
    values = [item[1][1] for item in sorted(pairs[1], key=lambda item: item[1][0][1])]
    if point[1:3] != ("(", ")") or len(values) != len(point[3]):
        return False
    return _all_same(point[3], values, policy) if point is gold else _all_same(values, point[3], policy)


_RULES = {
    ("list", "tuple"): _named_tuple,
    ("tuple", "list"): _named_tuple,
    ("expression", "expression"): _expressions,
    ("quantity", "quantity"): _quantities,
    ("quantity", "expression"): _quantities,
    ("expression", "quantity"): _quantities,
    ("percent", "percent"): _percents,
    ("percent", "expression"): _percents,
    ("expression", "percent"): _percents,
    ("list", "list"): _unordered,
    ("set", "set"): _unordered,
    ("list", "set"): _unordered,
    ("set", "list"): _unordered,
    ("set", "expression"): _single,
    ("expression", "set"): _single,
    ("tuple", "tuple"): _tuples,
    ("matrix", "matrix"): _matrices,
    ("time", "time"): _times,
    ("ratio", "ratio"): _ratios,
    ("rel", "rel"): _relations,
    **{
        ("rel", kind): _relation_and_value
        for kind in ("expression", "quantity", "percent", "tuple", "time", "ratio")
    },
    **{
        (kind, "rel"): _relation_and_value
        for kind in ("expression", "quantity", "percent", "tuple", "time", "ratio")
    },
    **{("rel", kind): _relation_list for kind in ("list", "set", "matrix")},
    **{(kind, "rel"): _relation_list for kind in ("list", "set", "matrix")},
    **{("tuple", kind): _opened for kind in ("expression", "quantity", "percent")},
    **{(kind, "tuple"): _opened for kind in ("expression", "quantity", "percent")},
}
