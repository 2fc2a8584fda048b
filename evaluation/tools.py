"""What tasks need besides Python: a fence for model-written code, a parser of LaTeX. Found out before a run.

A tool that is missing fails at the start, by name, never row by row in silence.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable

from evaluation.tasks import TASKS


class ToolMissing(RuntimeError):
    """One clear line: what cannot be scored, why, and the remedy."""


def prepare(tasks: Iterable[str], options: Namespace) -> tuple[dict[str, str], dict[str, str]]:
    """({tool: what was found}, {task: why it cannot be scored here}) for the tools that the tasks need.

    Also sets --allow_unsafe_code for this process and the workers that it starts.
    """
    from evaluation import sandbox

    sandbox.configure(options.allow_unsafe_code)
    found: dict[str, str] = {}
    lacking: dict[str, str] = {}
    problems: dict[str, str] = {}
    for task in tasks:
        tool = TASKS[task].tool
        if not tool:
            continue
        if tool not in found and tool not in lacking:
            try:
                found[tool] = TOOLS[tool]()
            except ToolMissing as error:
                lacking[tool] = str(error)
        if tool in lacking:
            problems[task] = f"{task}: {lacking[tool]}"
    return found, problems


def _sandbox() -> str:
    from evaluation import sandbox

    level = sandbox.probe()
    if level.fence:
        return str(level)
    if sandbox.allows_unsafe():
        return f"none, allowed by --allow_unsafe_code: {level}"
    raise ToolMissing(
        f"no fence for model-written code on this machine: {level}. Install bubblewrap, or accept the risk "
        "with --allow_unsafe_code."
    )


def _latex() -> str:
    from evaluation.scorers.symbolic import ParserMissing, check_parser

    try:
        check_parser()
    except ParserMissing as error:
        raise ToolMissing(str(error)) from None
    return "math-verify"


TOOLS: dict[str, Callable[[], str]] = {"sandbox": _sandbox, "latex": _latex}
