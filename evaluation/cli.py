"""What the four scripts share on the command line: exit codes, spelling of options, choice of tasks.

Light: --help and every argument error must cost a blink.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from evaluation.tasks import TASKS
from evaluation.taxonomy import CAPABILITIES, COLUMNS, GROUPS

DONE, ERROR, PARTIAL = 0, 1, 4  # 2 and 3 belong to the gate


class UsageError(ValueError):
    """Something a person can mend on the command line or in a file; its text is one clear line."""


class Parser(argparse.ArgumentParser):
    """argparse with exit code 1 for usage errors, and options accepted with hyphens or underscores alike."""

    def __init__(self, description: str, **settings) -> None:
        super().__init__(
            description=fitted(description),
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **settings,
        )

    def error(self, message: str) -> NoReturn:
        self.exit(ERROR, f"{self.prog}: {message.rstrip('.')}. See {self.prog} --help.\n")

    def parse_known_args(self, args=None, namespace=None):
        args = [underscored(a) for a in (sys.argv[1:] if args is None else args)]
        return super().parse_known_args(args, namespace)


def fitted(text: str, width: int = 79) -> str:
    """A docstring for a terminal: its paragraphs wrapped, its indented lines (commands) left as they are."""
    import textwrap

    blocks = []
    for block in text.strip().split("\n\n"):
        kept = block.startswith(" ")
        blocks.append(block if kept else "\n".join(textwrap.wrap(block, width)))
    return "\n\n".join(blocks)


def underscored(argument: str) -> str:
    """--output-column=x becomes --output_column=x; values are left alone."""
    if not argument.startswith("--") or len(argument) == 2:
        return argument
    name, equals, value = argument.partition("=")
    return "--" + name[2:].replace("-", "_") + equals + value


def select_tasks(patterns: Sequence[str] | None) -> tuple[str, ...]:
    """The tasks that names, wildcards, capabilities (H1) and groups (WILL) stand for, in the table's order.

    None means all. Raises UsageError for a word that stands for nothing.
    """
    if patterns is None:
        return tuple(TASKS)
    chosen: set[str] = set()
    for pattern in [p for word in patterns for p in word.split(",") if p]:
        found = _tasks_of(pattern)
        if not found:
            known = [*TASKS, *CAPABILITIES, *GROUPS]
            close = difflib.get_close_matches(pattern, known, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise UsageError(f"--tasks: nothing is called {pattern!r}.{hint} --tasks list prints all names.")
        chosen.update(found)
    return tuple(task for task in TASKS if task in chosen)


def _tasks_of(pattern: str) -> set[str]:
    by_name = set(fnmatch.filter(TASKS, pattern)) | {t for t in TASKS if t.replace(".", "_") == pattern}
    if by_name:
        return by_name
    key = pattern.upper()
    keys = {c.upper(): c for c in CAPABILITIES}
    if key in GROUPS:
        return {c.task for c in COLUMNS if c.group == key}
    if key in keys:
        return {c.task for c in COLUMNS if c.capability == keys[key]}
    # C5 means C5a, C5b and C5c; W3 means W3a and W3b
    family = [c for c in CAPABILITIES if c.upper().startswith(key) and "_" not in c]
    return {c.task for c in COLUMNS if len(key) == 2 and c.capability in family}


def task_list() -> str:
    """What --tasks list prints: groups, capabilities and their tasks."""
    lines = []
    for group, title in GROUPS.items():
        lines.append(f"{group}  {title}")
        for key, (of_group, name) in CAPABILITIES.items():
            if of_group == group:
                tasks = dict.fromkeys(c.task for c in COLUMNS if c.capability == key)
                lines.append(f"  {key:<8}{name}")
                lines.extend(f"          {task}" for task in tasks)
    return "\n".join(lines)


def set_up_logging(level: str) -> None:
    """Messages to standard error, so that standard output carries results alone."""
    logging.basicConfig(level=level.upper(), format="%(message)s", stream=sys.stderr, force=True)


def printable(text: str) -> str:
    """Text from models or files made safe for a terminal: control characters become visible escapes."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)


def fail(script: str, message: str) -> int:
    """Prints the one line of an error and returns the exit code for it."""
    print(f"{script}: {printable(message)}", file=sys.stderr)
    return ERROR


def start(main: Callable[[], int]) -> NoReturn:
    """Runs a script's main as its program: a reader that closes the pipe early (head) is no error."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        code = ERROR
    sys.exit(code)
