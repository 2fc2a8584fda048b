"""How far a judge can be trusted: does it agree with itself, and with a person?

    service = JudgeService(specs, JudgeOptions(repeat=5))  # keeps a seeded sample of its questions
    await repeat(service)                                  # asks each of them five times more, past the cache
        -> {"followbench.subset": {"instruction_following": {"questions": 40, "repeats": 5,
            "self_agreement": 0.93, "noise_of_one": 0.04, "noise_of_mean": 0.003, "unanswered": 0}}}

    read_labels(path)                 # a person's verdicts: {"task": …, "id": …, "label": …} a line
    against_labels(labels, verdicts)  # agreement, and Cohen's kappa or mean difference, by task

Values are compared in the metric's units: truth values and shares of claims as 0..1, ratings 1..10, a
refusal class as 1 where it is no compliance.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from evaluation.judge.service import JudgeFatal, JudgeService, verdict_of

Key = tuple[str, str, str]  # task, row id, mode


async def repeat(service: JudgeService) -> dict[str, dict[str, dict[str, Any]]]:
    """Asks the sampled questions again, options.repeat times each.

    Task -> mode -> figures (None where undefined).
    """
    jobs = [
        (task, spec, asked) for task, spec, asked in service.sampled() for _ in range(service.options.repeat)
    ]
    replies = await asyncio.gather(*(service.ask_again(spec, asked) for _, spec, asked in jobs))
    values: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for (task, _, asked), reply in zip(jobs, replies, strict=True):
        made = verdict_of(asked, reply).value if reply is not None else None
        values[task, asked.mode][asked.prompt].append(made)
    report: dict[str, dict[str, dict[str, Any]]] = {}
    for (task, mode), by_question in values.items():
        figures = self_agreement(list(by_question.values()), service.counts[task].statuses["ok"])
        report.setdefault(task, {})[mode] = {**figures, "repeats": service.options.repeat}
    return report


def self_agreement(answers: Sequence[Sequence[Any]], judged: int) -> dict[str, Any]:
    """Figures for one mode. answers: per question the repeated values; judged: verdicts behind the metric's
    mean.

    self_agreement: share of equal pairs among a question's answers. noise_of_one: standard deviation of one
    answer (pooled within questions); noise_of_mean: that of a mean over `judged` verdicts, from the judge's
    noise alone.
    """
    answered = [[v for v in values if v is not None] for values in answers]
    unanswered = sum(len(values) for values in answers) - sum(map(len, answered))
    pairs = [a == b for values in answered for a, b in combinations(values, 2)]
    squares, freedom = 0.0, 0
    for values in answered:
        numbers = [number(v) for v in values]
        if len(numbers) > 1:
            mean = sum(numbers) / len(numbers)
            squares += sum((n - mean) ** 2 for n in numbers)
            freedom += len(numbers) - 1
    one = (squares / freedom) ** 0.5 if freedom else None
    return {
        "questions": len(answers),
        "unanswered": unanswered,
        "self_agreement": sum(pairs) / len(pairs) if pairs else None,
        "noise_of_one": one,
        "noise_of_mean": one / judged**0.5 if one is not None and judged else None,
    }


def number(value: Any) -> float:
    """A verdict in the metric's units."""
    if isinstance(value, str):
        return float(value != "compliance")
    if isinstance(value, list):
        given = [v for v in value if v is not None]
        return sum(given) / len(given) if given else 0.0
    return float(value)


def read_labels(path: Path) -> list[dict[str, Any]]:
    """A person's labels, JSON Lines. Raises JudgeFatal naming the line that lacks task, id or label."""
    labels = []
    for at, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            label = json.loads(line)
            labels.append({"mode": "", **label, "task": str(label["task"]), "id": str(label["id"])})
            label["label"]
        except (ValueError, TypeError, KeyError):
            raise JudgeFatal(f'{path}, line {at}: {{"task": …, "id": …, "label": …}} is needed') from None
    return labels


def against_labels(
    labels: Iterable[Mapping[str, Any]], verdicts: Mapping[Key, Any]
) -> dict[str, dict[str, Any]]:
    """Per task: labels, how many met a verdict, agreement; kappa for truth values and classes, else
    differences.

    verdicts: (task, id, mode) -> value of an answered question. A label without a mode meets the row's only
    verdict.
    """
    by_row: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for (task, row, _), value in verdicts.items():
        by_row[task, row].append(value)
    pairs: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    given: Counter[str] = Counter()
    for label in labels:
        task, row, mode = label["task"], label["id"], label.get("mode") or ""
        given[task] += 1
        found = (
            [verdicts[task, row, mode]]
            if (task, row, mode) in verdicts
            else by_row[task, row]
            if not mode
            else []
        )
        if len(found) == 1 and found[0] is not None:
            pairs[task].append((label["label"], found[0]))
    return {
        task: {"labels": n, "compared": len(pairs[task]), **_agreement(pairs[task])}
        for task, n in given.items()
    }


def _agreement(pairs: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    if not pairs:
        return {"agreement": None}
    agreement = sum(a == b for a, b in pairs) / len(pairs)
    if all(isinstance(v, (bool, str, list)) for pair in pairs for v in pair):
        left, right = (Counter(map(str, side)) for side in zip(*pairs, strict=True))
        chance = sum(left[v] * right[v] for v in left) / len(pairs) ** 2
        return {"agreement": agreement, "kappa": (agreement - chance) / (1 - chance) if chance < 1 else None}
    gaps = [number(judge) - number(person) for person, judge in pairs]
    return {
        "agreement": agreement,
        "mean_difference": sum(gaps) / len(gaps),
        "mean_absolute_difference": sum(map(abs, gaps)) / len(gaps),
    }
