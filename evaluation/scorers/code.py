"""HumanEval (https://arxiv.org/abs/2107.03374) and MBPP (https://arxiv.org/abs/2108.07732): does it pass?

A row has its tests and the function's name in ctx, or else in gold; either one may be text:
    ctx   ["def check(candidate):\\n    assert candidate(3) == 6\\n", "twice"]
    ctx   [["assert sq(2) == 4", "assert sq(-3) == 9"], ""]
    gold  {"test": "def check(candidate): …", "entry_point": "twice"}
"""

from __future__ import annotations

import ast
import json
from typing import Any

from evaluation.extraction import code
from evaluation.rows import OK, Row, is_missing, text_of
from evaluation.sandbox import UNSCORED, Limits, SandboxError, run_program

LIMITS = Limits()
_SHOWN_CHARACTERS = 4000
# longer lists as text are not read: the parser's cost and depth are the row's to choose
_LONGEST_LITERAL = 200_000


def score(row: Row) -> dict[str, Any]:
    """correct: the program passed its tests (None with reason no_tests or broken_tests, where they say
    nothing).

    reason: why not (sandbox.WRONG; empty or truncated without an answer). extracted: the program, cut to
    4,000 characters. detail: one line for people. Runs a sandboxed process, 10 s of processor time at most;
    correct None with reason no_sandbox where there is neither a sandbox nor permission to do without one.
    """
    tests, entry = tests_of(row)
    if not tests.strip():
        return _result(None, "no_tests")
    if row.state != OK:
        return _result(False, row.state)
    wanted = entry or code.wanted_name(tests)
    prompt = text_of(row.get("prompt"))
    programs = code.programs(row.answer, wanted, prompt)
    if not programs:
        return _result(False, "no_code_found")
    before = code.prelude(prompt, wanted)
    try:
        outcome = run_program(programs, tests, entry, LIMITS, prelude=before, wanted=wanted)
    except SandboxError as error:
        return _result(None, "no_sandbox", detail=str(error))
    verdict = None if outcome.reason in UNSCORED else outcome.passed
    return _result(verdict, outcome.reason or None, programs[outcome.chosen], outcome.detail)


def _result(
    correct: bool | None, reason: str | None, extracted: str | None = None, detail: str = ""
) -> dict[str, Any]:
    shown = extracted[:_SHOWN_CHARACTERS] if extracted else None
    return {"correct": correct, "reason": reason, "extracted": shown, "detail": detail or None}


def tests_of(row: Row) -> tuple[str, str]:
    """(test code, entry point), "" for what the row does not have; from ctx if that is a list, else from
    gold.
    """
    for source in (row.get("ctx"), row.gold):
        value = _read(source)
        if isinstance(value, dict):
            tests = next(
                (value[key] for key in ("test", "tests", "test_list") if not is_missing(value.get(key))), ""
            )
            entry = value.get("entry_point")
        elif isinstance(value, (list, tuple)) and value:
            tests, entry = value[0], value[1] if len(value) > 1 else ""
            if len(value) > 2 or _is_test(entry):
                # a bare list of assertions
                tests, entry = list(value), ""
        else:
            continue
        lines = tests if isinstance(tests, (list, tuple)) else [tests]
        text = "\n".join(text_of(line) for line in lines)
        if text.strip():
            return text, text_of(entry).strip()
    return "", ""


def _is_test(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip().startswith("assert")


def _read(value: Any) -> Any:
    """A list or object, also where it is written as text (JSON, or as Python prints it); else None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text[:1] not in ("[", "{") or len(text) > _LONGEST_LITERAL:
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None
