"""What is left to do: per task the samples, which of them are answered already, and the prompts of the rest.

Example: with 150 rows of boolq.subset, --limit 20 and 12 answers on disk, a Work has 20 wanted samples and 8
pending ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.inference.data import TaskData
from evaluation.inference.engine import Completion, Request
from evaluation.inference.limits import output_limit, prompt_room
from evaluation.inference.prompts import Chat, Prompt, foreign_markup
from evaluation.inference.samples import (
    SECOND_TURN,
    Sample,
    fingerprint,
    first_answer,
    samples_of,
    turn1_keys,
)
from evaluation.inference.store import Answer, TaskStore, main_turn


@dataclass
class Work:
    """One task. samples: of all rows of the data; wanted: those of the first --limit rows, first turns
    included.

    prints: (key, turn) → fingerprint. failed: (key, turn) → why the engine gave no answer.
    """

    task: str
    data: TaskData
    store: TaskStore
    wanted: list[Sample]
    prints: dict[tuple[str, int], str]
    rows: int
    limit: int
    failed: dict[tuple[str, int], str] = field(default_factory=dict)

    def answer(self, sample: Sample) -> Answer | None:
        return self.store.get(sample, self.prints[sample.key, sample.turn])

    def pending(self) -> list[Sample]:
        """Wanted samples without an answer; a first turn only where its second turn lacks one too."""
        answered = {
            s.key for s in self.wanted if s.turn == main_turn(self.task) and self.answer(s) is not None
        }
        return [s for s in self.wanted if s.key not in answered and self.answer(s) is None]

    def complete(self) -> bool:
        return not self.pending()


def plan(
    data: dict[str, TaskData], folder: Path, settings_hash: str, limit: int | None, max_tokens: int | None
) -> dict[str, Work]:
    """The work of every task. DataError where rows cannot be asked, StoreError where files are not ours."""
    out = {}
    for task, task_data in data.items():
        donor = SECOND_TURN.get(task)
        turn1 = turn1_keys(donor, data[donor].rows[:limit]) if donor and donor in data else None
        room = output_limit(task, max_tokens)
        samples = samples_of(task, task_data.rows, turn1)
        prints = {(s.key, s.turn): fingerprint(settings_hash, s, room) for s in samples}
        count = len(task_data.rows) if limit is None else min(limit, len(task_data.rows))
        wanted = [s for s in samples if s.row < count]
        store = TaskStore(folder, task).load()
        out[task] = Work(task, task_data, store, wanted, prints, count, room)
    return out


def pending(works: dict[str, Work], turn: int) -> list[Sample]:
    return [sample for work in works.values() for sample in work.pending() if sample.turn == turn]


def conversation(sample: Sample, works: dict[str, Work]) -> list[str] | None:
    """The turns before the answer, the model's own first answer in their middle; None where that one is not
    there.
    """
    if sample.first is None:
        return list(sample.users)
    task, key, turn = sample.first
    donor = works[task]
    first = donor.store.answers.get((key, turn))
    if first is None or first.get("fingerprint") != donor.prints[key, turn]:
        return None
    return [sample.users[0], first_answer(first["outputs"]), sample.users[1]]


@dataclass
class Rendered:
    """A sample with its prompt, ready for the engine. turn1: the first answer as it stands in the prompt."""

    sample: Sample
    prompt: Prompt
    max_tokens: int
    turn1: str | None = None

    def request(self) -> Request:
        return Request(self.sample.name, self.prompt.ids, self.max_tokens, self.prompt.unrendered)

    def answer(self, completion: Completion, fingerprint_: str) -> Answer:
        """What the store keeps of an answer."""
        kept = {
            "fingerprint": fingerprint_,
            "outputs": completion.text,
            "finish_reason": completion.finish_reason,
            "prompt_tokens": completion.prompt_tokens,
            "output_tokens": completion.output_tokens,
            "truncated_tokens": self.prompt.cut + completion.cut,
        }
        return kept if self.turn1 is None else {**kept, "turn1_response": self.turn1}


def render(
    samples: list[Sample], works: dict[str, Work], chat: Chat, window: int, max_tokens: int | None
) -> list[Rendered]:
    """Prompts of samples, longest first: a long one that starts last would run alone at the end."""
    asked, turns = [], []
    for sample in samples:
        talk = conversation(sample, works)
        if talk is None:
            works[sample.task].failed[sample.key, sample.turn] = "its first turn has no answer"
        else:
            asked.append(sample)
            turns.append(talk)
    rooms = [prompt_room(sample.task, window, max_tokens) for sample in asked]
    prompts = chat.prompts(turns, rooms)
    out = []
    for sample, talk, prompt in zip(asked, turns, prompts, strict=True):
        limit = min(works[sample.task].limit, window - len(prompt.ids))
        out.append(Rendered(sample, prompt, max(1, limit), talk[1] if sample.first else None))
    return sorted(out, key=lambda item: -item.prompt.size - item.max_tokens)


def task_entry(work: Work, template: str) -> dict[str, Any]:
    """A task's part of run.json."""
    answers = [
        answer
        for sample in work.wanted
        if sample.turn == main_turn(work.task) and (answer := work.answer(sample)) is not None
    ]
    return {
        "rows": work.rows,
        "available": len(work.data.rows),
        "answered": len(answers),
        "failed": sorted({key for key, _ in work.failed}),
        "data_sha256": work.data.sha256,
        "prompt_tokens": sum(answer["prompt_tokens"] for answer in answers),
        "output_tokens": sum(answer["output_tokens"] for answer in answers),
        "ended_by_length": sum(answer["finish_reason"] == "length" for answer in answers),
        "truncated_prompts": sum(answer["truncated_tokens"] > 0 for answer in answers),
        "truncated_tokens": sum(answer["truncated_tokens"] for answer in answers),
        "chat_markup": dict(markup(work, template)),
    }


def markup(work: Work, template: str) -> Counter[str]:
    """Chat format → number of wanted rows whose prompt carries its markup already."""
    return Counter(
        name
        for sample in work.wanted
        if sample.turn == main_turn(work.task)
        for name in foreign_markup("\n".join(sample.users), template)
    )
