"""The grammar of expressions: tokens to a tree, by recursive descent, bounded in depth.

Example: the tokens of "2x+1" become ("add", [("mul", [("num", 2), ("sym", "x")]), ("num", 1)]).
"""

# ruff: noqa: E501, SIM905  (word lists and patterns)

from __future__ import annotations

from fractions import Fraction
from typing import Any

from evaluation.extraction.formula_tokens import Token, Unreadable

Node = tuple[Any, ...]
MAX_DEPTH = 60


def parse_expression(tokens: list[Token]) -> Node:
    """An arithmetic or algebraic expression. Raises Unreadable."""
    parser = _Parser(tokens)
    node = parser.sum()
    if parser.position != len(tokens):
        raise Unreadable("rest")
    return node


def _times(left: Node, right: Node) -> Node:
    """A product, kept flat: a tree as deep as the text is long would be no tree to walk."""
    return ("mul", [*left[1], right]) if left[0] == "mul" else ("mul", [left, right])


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
        divisions = 0
        while True:
            if self.at("*"):
                self.position += 1
                node = _times(node, self.signed())
            elif self.at("/"):
                self.position += 1
                divisions += 1
                if divisions > MAX_DEPTH:
                    raise Unreadable("divisions")
                node = ("div", node, self.signed())
            elif self._starts_factor():
                token, before = self.peek(), self.tokens[self.position - 1]
                if token.kind == "num" and before.kind == "num":
                    raise Unreadable("two numbers side by side")
                node = _times(node, self.power())
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
        start = self.position
        while self.at("!", "%", "degree"):
            sign = self.peek().value
            self.position += 1
            if self.position - start > 3:
                raise Unreadable("signs")
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
        if self.at("("):
            arguments = self._arguments()
        else:
            arguments = [self._bare_argument()]
        if base is not None:
            arguments = [*arguments, base]
        node: Node = ("call", name, arguments)
        return node if power is None else ("pow", node, power)

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
            node = _times(node, self.power())


_STOP = frozenset(
    "the is are not no nor yes all any one two six ten odd but for it its if to of on at by we he she his her an as be"
    " do up so can may was has had who how why day men man set sum ali bob eve sue tom tim amy dan ben jim joe sam none"
    " cat dog red am pm".split()
)
