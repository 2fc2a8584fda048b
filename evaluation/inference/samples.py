"""Samples: what the model is asked, one for every row (and one more for a first turn that nobody else asks).

Example: the row {"id": "7", "formatted_prompt": "2 + 3?"} of gsm8k.subset becomes
Sample(task="gsm8k.subset", key="7", turn=1, users=("2 + 3?",), row=0).
A second-turn row {"prompt": ["Name a stew.", "A vegan one."]} has users=("Name a stew.", "A vegan one.") and
needs the model's own first answer, taken from `first`: the sample that asks the same first question.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from evaluation.extraction.visible import visible_answer
from evaluation.inference.data import DataError
from evaluation.tasks import TASKS

# the task whose answers serve as first turns where the question is the same
SECOND_TURN = {task: entry.first_turn or None for task, entry in TASKS.items() if entry.turns == 2}


@dataclass(frozen=True)
class Sample:
    """users: the user's turns. turn: which of them is answered. row: position of the row in the task's data.

    key: the row's id; without one, a hash of its prompt. first: (task, key, turn) of the sample whose answer
    stands between the two turns.
    """

    task: str
    key: str
    turn: int
    users: tuple[str, ...]
    row: int
    first: tuple[str, str, int] | None = None

    @property
    def name(self) -> tuple[str, str, int]:
        return self.task, self.key, self.turn


def samples_of(task: str, rows: list[dict[str, Any]], turn1: dict[str, str] | None = None) -> list[Sample]:
    """The samples of a task, first turns of their own included. DataError where rows lack what is needed.

    turn1: question → key of the task that shares its first answers (SECOND_TURN), where that task is run or
    answered too.
    """
    keys = row_keys(task, rows)
    if task not in SECOND_TURN:
        return [Sample(task, keys[n], 1, (single_turn(task, row, n),), n) for n, row in enumerate(rows)]
    out = []
    for number, row in enumerate(rows):
        first, second = both_turns(task, row, number)
        donor = (turn1 or {}).get(first)
        if donor is not None:
            source = (str(SECOND_TURN[task]), donor, 1)
        else:
            source = (task, keys[number], 1)
            out.append(Sample(task, keys[number], 1, (first,), number))
        out.append(Sample(task, keys[number], 2, (first, second), number, source))
    return out


def single_turn(task: str, row: dict[str, Any], number: int) -> str:
    """The user message of a row: its formatted_prompt, as it stands."""
    text = row.get("formatted_prompt")
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{task}, row {number + 1}: the column formatted_prompt is missing or empty")
    return text


def both_turns(task: str, row: dict[str, Any], number: int) -> tuple[str, str]:
    """The two user turns in `prompt`: two texts, or two objects with "user prompt"; also as JSON text.

    formatted_prompt is taken for the second turn where it holds that turn and not the first one.
    """
    value = row.get("prompt")
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    turns = []
    for item in value if isinstance(value, list) else []:
        text = item.get("user prompt") if isinstance(item, dict) else item
        if isinstance(text, str) and text.strip():
            turns.append(text)
    if len(turns) < 2:
        raise DataError(f"{task}, row {number + 1}: the column prompt must hold both user turns")
    first, second = turns[:2]
    formatted = row.get("formatted_prompt")
    if isinstance(formatted, str) and second in formatted and first not in formatted:
        second = formatted
    return first, second


def row_keys(task: str, rows: list[dict[str, Any]]) -> list[str]:
    """What names each row: its id, else a hash of its prompt. DataError lists ids (or prompts) that occur
    twice.
    """
    keys = []
    for row in rows:
        given = row.get("id")
        if given is None or given == "":
            asked = json.dumps([row.get("prompt"), row.get("formatted_prompt")], sort_keys=True)
            keys.append("prompt-" + hashlib.sha256(asked.encode()).hexdigest()[:16])
        else:
            keys.append(str(given))
    seen: set[str] = set()
    twice = sorted({key for key in keys if key in seen or seen.add(key)})
    if twice:
        shown = ", ".join(twice[:5]) + (", …" if len(twice) > 5 else "")
        raise DataError(f"{task}: {len(twice)} ids occur more than once in the task data: {shown}")
    return keys


def turn1_keys(task: str, rows: list[dict[str, Any]]) -> dict[str, str]:
    """question → key for a task whose answers may serve as first turns."""
    keys = row_keys(task, rows)
    return {single_turn(task, row, n): keys[n] for n, row in enumerate(rows)}


def first_answer(outputs: str) -> str:
    """What stands in context as the model's first answer: what a person saw of it, without the thinking."""
    return visible_answer(outputs)[0]


def fingerprint(settings: str, sample: Sample, output_limit: int) -> str:
    """16 hex digits of everything that decides the answer to a sample; needs no tokenizer.

    settings: hash of the model's weights and revision, template, system prompt, sampling and window (see
    manifest.py).
    """
    parts = [settings, sample.task, sample.key, sample.turn, list(sample.users), output_limit]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
