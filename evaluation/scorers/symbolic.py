r"""math-verify behind a guard: one child process for each worker process, killed at a limit and replaced.

Example: ask(r"\sum_{k=1}^{4} k", "10") is "equal"; a question that does not end is "timeout" after LIMIT_S
seconds, and the next question gets a fresh child. Only text of a small alphabet and known commands is sent
(`allowed`), and only to math-verify's LaTeX grammar, never to the parser of its that evaluates text. Limits
are set from outside, by a timer that kills, so they hold in threads and whatever the child does.
"""

# ruff: noqa: E501, SIM905  (word lists and patterns)

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LIMIT_S = 5.0
START_LIMIT_S = 120.0
MAX_LENGTH = 400
CHILD = Path(__file__).with_name("symbolic_child.py")

EQUAL, UNEQUAL, UNPARSED, TIMEOUT = "equal", "unequal", "unparsed", "timeout"

# what our own grammar does not know and math-verify does
_HARD = frozenset(
    "sum int iint prod lim mod bmod pmod cap setminus partial overline det tr Re Im arg max min".split()
)
_EASY = frozenset(
    "frac sqrt cdot times div pm mp pi infty sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log lg exp"
    " le leq ge geq lt gt ne neq in cup circ binom begin end to mathbb alpha beta gamma delta epsilon theta lambda mu"
    " nu rho sigma tau phi psi omega left right lfloor rfloor lceil rceil emptyset varnothing notin subset forall"
    " ldots cdots dots quad backslash lbrace rbrace prime ell".split()
)
_COMMAND = re.compile(r"\\([A-Za-z]+|[{}|,; ])")
_ALPHABET = re.compile(r"[0-9A-Za-z \^_{}()\[\]+\-*/=<>|,.!&']*")
_RUN = re.compile(r"[A-Za-z]{4,}|__|\.[A-Za-z]|[A-Za-z]\.")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[pbBv]?(?:matrix|cases|array)\}|\\mathbb\{?[A-Z]\}?")


class ParserMissing(RuntimeError):
    """math-verify or the runtime of its grammar cannot be loaded: nothing can be scored, a setting to
    repair.
    """


def allowed(text: str) -> bool:
    """Whether a normalised text may be sent: short, a small alphabet, known commands, no run of letters."""
    if not 0 < len(text) <= MAX_LENGTH:
        return False
    bare = _ENVIRONMENT.sub(" ", text)
    commands = _COMMAND.findall(bare)
    if not all((len(c) == 1 and not c.isalpha()) or c in _EASY or c in _HARD for c in commands):
        return False
    rest = _COMMAND.sub(" ", bare)
    return bool(_ALPHABET.fullmatch(rest)) and not _RUN.search(rest)


def worth_asking(gold: str, answer: str) -> bool:
    """Whether one of them has a command that math-verify knows and our own grammar does not."""
    return any(c in _HARD for text in (gold, answer) for c in _COMMAND.findall(text[:MAX_LENGTH]))


def ask(gold: str, answer: str) -> str:
    """Whether math-verify holds two normalised texts equal: "equal", "unequal", "unparsed" or "timeout".

    Raises ParserMissing where the child cannot be started at all.
    """
    return _guard.ask({"gold": gold, "answer": answer}, LIMIT_S)


def check_parser() -> None:
    """Loads and tries the parser once, before anything is scored. Raises ParserMissing with one clear
    line.
    """
    remedy = "Install the pinned requirements: pip install -r requirements.txt"
    for package in ("sympy", "latex2sympy2_extended", "antlr4", "math_verify"):
        if find_spec(package) is None:
            raise ParserMissing(f"mathematics cannot be scored: the package {package} is missing. {remedy}")
    verdict = _guard.ask({"gold": r"\frac{1}{2}", "answer": r"\frac{2}{4}"}, START_LIMIT_S)
    if verdict != EQUAL:
        raise ParserMissing(
            f"mathematics cannot be scored: the LaTeX parser says {verdict} of 1/2 = 2/4. {remedy}"
        )


class Guard:
    """One child at a time, started when first asked. A lock lets any thread ask."""

    def __init__(self, child: Path = CHILD) -> None:
        self.child = child
        self.lock = threading.Lock()
        self.process: subprocess.Popen[str] | None = None
        self.starts = 0

    def ask(self, question: dict[str, Any], limit_s: float) -> str:
        with self.lock:
            for _ in range(2):
                if self.process is None or self.process.poll() is not None:
                    self._start()
                reply, killed = self._exchange(json.dumps(question), limit_s)
                if reply:
                    return reply
                self.close()
                if killed:
                    return TIMEOUT
            return TIMEOUT  # it died twice of its own limits: memory, or a fault in a parser

    def _start(self) -> None:
        self.starts += 1
        keep = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP", "TMP")
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(self.child)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**{k: os.environ[k] for k in keep if k in os.environ}, "PYTHONHASHSEED": "0"},
            text=True,
            encoding="utf-8",
        )
        ready, _ = self._exchange(None, START_LIMIT_S)
        if ready != "ready":
            self.close()
            raise ParserMissing(
                f"mathematics cannot be scored: the parser did not start ({ready or 'no reply'})."
            )

    def _exchange(self, line: str | None, limit_s: float) -> tuple[str, bool]:
        """(reply, whether the timer killed the child); reply "" where none came."""
        process = self.process
        killed = threading.Event()

        def stop() -> None:
            killed.set()
            process.kill()

        timer = threading.Timer(limit_s, stop)
        timer.daemon = True
        timer.start()
        try:
            if line is not None:
                process.stdin.write(line + "\n")
                process.stdin.flush()
            reply = process.stdout.readline().strip()
        except (OSError, ValueError):
            reply = ""
        finally:
            timer.cancel()
        return ("" if killed.is_set() else reply), killed.is_set()

    def close(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()
        process.wait()


_guard = Guard()
_inherited: Guard | None = None  # kept, so that nothing of it is finalised in the wrong process


def close() -> None:
    """Ends this process's child, if there is one."""
    with _guard.lock:
        _guard.close()


def _after_fork() -> None:
    """A forked worker must not talk to its parent's child, nor keep it alive by an open pipe."""
    global _guard, _inherited
    _inherited, _guard = _guard, Guard()
    process = _inherited.process
    for stream in (process.stdin, process.stdout) if process else ():
        with contextlib.suppress(OSError, ValueError):
            stream.close()


atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
