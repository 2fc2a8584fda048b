"""Scores rows: resolves a task's scorers and applies them to one row. Whole tasks are engine.py's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from evaluation.judge import Judge
from evaluation.rows import Row, make_row
from evaluation.tasks import TASKS


@cache
def scorer(name: str) -> Callable[..., Any]:
    """The function behind "module:function" in evaluation/scorers/; imported when first used."""
    module, function = name.split(":")
    return getattr(importlib.import_module(f"evaluation.scorers.{module}"), function)


def score_by_rules(row: Row) -> dict[str, Any]:
    """The rule part of a row's score; {"pending": …} alone where the task has no rules."""
    rules = TASKS[row.task].rules
    return scorer(rules)(row) if rules else {"pending": "judge"}


async def score_by_judge(row: Row, by_rules: dict[str, Any], judge: Judge) -> dict[str, Any]:
    """The finished score of a row whose rule part is `by_rules`."""
    by_rules = dict(by_rules)
    if not by_rules.pop("pending", None):
        return by_rules
    judged = await scorer(TASKS[row.task].judged)(replace(row, rules=by_rules), judge)
    return {**by_rules, **judged}


async def score_row(task: str, columns: dict[str, Any], judge: Judge | None = None) -> dict[str, Any]:
    """Both parts for one loaded row: what tests and small tools call."""
    row = make_row(task, columns)
    by_rules = score_by_rules(row)
    return await score_by_judge(row, by_rules, judge) if judge else by_rules
