"""Which samples a page shows, and their records: one block of JSON a task (and adapted model).

    {"task": "gsm8k.subset", "total": 500, "files": ["model_responses/base/gsm8k.subset.jsonl", …],
     "measures": [{"key": "correct", "title": "C1 Accuracy (GSM8K)", "direction": 1, "flag": true,
                   "outcomes": [["f", "Forgotten", 12, 12], …]}],        code, label, in all, on the page
     "right": "the judge's rating is 7 or above, of 10", "program": false,
     "records": [{"id": "q7", "p": prompt, "g": gold, "o": "f", "v": [[1, 0]],
                  "s": [{"a": answer, "x": extracted, "r": reason, "d": detail, "t": state, "n": 8,
                         "j": […]}, …]}]}

A measure is a per-sample column that a metric reads. "o" holds one outcome code a measure, "v" its value for
each model, "s" one side a model, "n" the row in the response file (from 1). Where a task's texts do not fit
into the page, a seeded draw decides: changed samples first, of number measures the largest changes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.comparison.analysis import metric_of
from evaluation.comparison.flips import verdict_columns
from evaluation.comparison.pairing import PairedTask
from evaluation.report.facts import is_program, reason_text, right_of
from evaluation.report.texts import readable, shown, turns, visible
from evaluation.results import ModelResult, SampleTable
from evaluation.tasks import TASKS
from evaluation.taxonomy import COLUMNS

PAGE_TEXT = 24_000_000  # characters of samples in a page; what opens in well under two seconds
LONGEST = {
    "prompt": 2_000, "gold": 3_000, "answer": 4_000, "extracted": 400, "program": 4_000, "reply": 1_000
}  # fmt: skip
JUDGEMENTS = 8  # of one side of a sample
CHANGED_FIRST = 4  # changed samples for each unchanged one, where not all fit

# outcome codes
FELL, ROSE, HIGH, LOW, SAME, SCORED, UNSCORED = "f", "g", "h", "l", "e", "v", "-"
_FLIPS = (
    (FELL, "Forgotten"), (ROSE, "Gained"), (HIGH, "Both right"), (LOW, "Both wrong"), (UNSCORED, "No verdict")
)  # fmt: skip
_HABITS = (
    (FELL, "Yes → no"), (ROSE, "No → yes"), (HIGH, "Both yes"), (LOW, "Both no"), (UNSCORED, "Not scored")
)  # fmt: skip
_CHANGES = ((FELL, "Fell"), (ROSE, "Rose"), (SAME, "Equal"), (UNSCORED, "Not scored"))
_ONE_FLAG = ((LOW, "Wrong"), (HIGH, "Right"), (UNSCORED, "Not scored"))
_ONE_HABIT = ((HIGH, "Yes"), (LOW, "No"), (UNSCORED, "Not scored"))
_ONE_NUMBER = ((SCORED, "Scored"), (UNSCORED, "Not scored"))


@dataclass(frozen=True)
class Measure:
    """values: shape (sides, n), NaN where a sample is unscored. flag: every value is 0 or 1."""

    key: str
    title: str
    direction: int
    values: Any
    flag: bool

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        if len(self.values) == 1:
            return (_ONE_FLAG if self.direction > 0 else _ONE_HABIT) if self.flag else _ONE_NUMBER
        return (_FLIPS if self.direction > 0 else _HABITS) if self.flag else _CHANGES

    @property
    def constant(self) -> float | None:
        """The one value that every sample of every model has, None where they differ: such a measure says
        nothing."""
        import numpy as np

        known = self.values[np.isfinite(self.values)]
        return float(known[0]) if len(known) > 1 and known.min() == known.max() else None

    def codes(self) -> Any:
        """One outcome code a sample, shape (n,)."""
        import numpy as np

        first, last = self.values[0], self.values[-1]
        known = np.isfinite(self.values).all(axis=0)
        if len(self.values) == 1 and not self.flag:
            return np.where(known, SCORED, UNSCORED)
        equal = np.where(first > 0.5, HIGH, LOW) if self.flag else np.full(len(first), SAME)
        changed = np.where(last < first, FELL, ROSE)
        return np.where(known, np.where(first == last, equal, changed), UNSCORED)


def measures_of(task: str, pairs: Any) -> list[Measure]:
    """The measures of a task, the verdict of right or wrong first. pairs: numbers(column) → one array of
    shape (n,) a side."""
    import numpy as np

    found: dict[str, Measure] = {}

    def add(key: str, title: str, direction: int, values: Sequence[Any]) -> None:
        stacked = np.array(values, dtype=float)
        known = stacked[np.isfinite(stacked)]
        if key not in found and len(known):
            found[key] = Measure(key, title, direction, stacked, bool(np.isin(known, (0.0, 1.0)).all()))

    verdict = verdict_columns(task)
    names: dict[str, str] = {}
    for column in COLUMNS:  # the first of several columns that read the same values is the plainest
        if column.task == task and (metric := metric_of(column.name)):
            names.setdefault(metric.column, column.name)
    if len(verdict) == 2:
        passed, whole = (pairs.numbers(column) for column in verdict)
        add(
            "verdict",
            "All parts right",
            1,
            [np.where(np.isfinite(p + w), p >= w, np.nan) for p, w in zip(passed, whole, strict=True)],
        )
    elif verdict:
        title = names.get(verdict[0], f"Verdict: {verdict[0].replace('_', ' ')}")
        add(verdict[0], title, 1, pairs.numbers(verdict[0]))
    for column in (c for c in COLUMNS if c.task == task):
        metric = metric_of(column.name)
        if metric is None:
            continue
        values = pairs.numbers(metric.column)
        if metric.per:
            with np.errstate(divide="ignore", invalid="ignore"):
                parts = [v / p for v, p in zip(values, pairs.numbers(metric.per), strict=True)]
            values = [np.where(np.isfinite(p), p, np.nan) for p in parts]
        add(metric.column, column.name, column.direction, values)
    return list(found.values())


@dataclass(frozen=True)
class Sides:
    """The samples of a task as records are made from them: one table and one array of positions a model.

    Example: base and adapted of a comparison, or the one table of a model's own page.
    """

    task: str
    results: tuple[ModelResult, ...]
    tables: tuple[SampleTable, ...]
    at: tuple[Any, ...]

    def numbers(self, column: str) -> list[Any]:
        return [table.numbers(column)[at] for table, at in zip(self.tables, self.at, strict=True)]

    def text(self, side: int, column: str, i: int) -> str | None:
        values = self.tables[side].columns.get(column)
        return None if values is None else values[self.at[side][i]]


def sides_of_pair(task: str, results: tuple[ModelResult, ModelResult], paired: PairedTask) -> Sides:
    """The first run of both models."""
    tables = (paired.base[0], paired.adapted[0])
    return Sides(task, results, tables, (paired.base_at[0], paired.adapted_at[0]))


def block(sides: Sides, measures: Sequence[Measure], room: int) -> tuple[dict[str, Any], int]:
    """A task's block with about `room` characters of records; returns it and the characters used."""
    count = len(sides.at[0])
    codes = [measure.codes() for measure in measures]
    chosen: dict[int, dict[str, Any]] = {}
    used = 0
    for i in _order(sides.task, count, measures, codes):
        if used >= room:
            break
        chosen[i] = record = _record(sides, measures, codes, i)
        texts = (
            record["p"],
            record["g"],
            *(t for s in record["s"] for t in (s["a"], s.get("x"), s.get("j"))),
        )
        used += 200 + sum(len(str(text)) for text in texts if text)
    places = sorted(chosen)
    described = []
    for measure, code in zip(measures, codes, strict=True):
        listed = list(code[places]) if places else []
        outcomes = [[c, label, int((code == c).sum()), listed.count(c)] for c, label in measure.labels]
        described.append(
            {
                "key": measure.key,
                "title": measure.title,
                "direction": measure.direction,
                "flag": measure.flag,
                "outcomes": [o for o in outcomes if o[2] or o[0] != UNSCORED],
            }
        )
    files = {side: _files(result, sides.task) for side, result in enumerate(sides.results)}
    return {
        "task": sides.task,
        "total": count,
        "files": [visible(files[side][""]) for side in files],
        "other_files": {
            name: [visible(files[side].get(name, "")) for side in files]
            for name in TASKS[sides.task].also.values()
        },
        "measures": described,
        "right": right_of(sides.task),
        "program": is_program(sides.task),
        "records": [chosen[i] for i in places],
    }, used


def _order(task: str, count: int, measures: Sequence[Measure], codes: Sequence[Any]) -> Iterator[int]:
    """Every sample once, the ones to show first in front: rounds over (measure, outcome), changed ones more
    often."""
    import numpy as np

    drawn = np.random.default_rng(zlib.crc32(task.encode())).permutation(count)
    queues: list[tuple[int, list[int]]] = []
    for measure, code in zip(measures, codes, strict=True):
        for outcome, _ in measure.labels:
            places = [int(i) for i in drawn if code[i] == outcome]
            changed = outcome in (FELL, ROSE)
            if changed and not measure.flag:
                delta = np.abs(measure.values[-1] - measure.values[0])
                places.sort(key=lambda i, delta=delta: -delta[i])
            if places:
                queues.append((CHANGED_FIRST if changed else 1, places))
    queues = queues or [(1, [int(i) for i in drawn])]
    seen: set[int] = set()
    cursors = [0] * len(queues)
    while any(cursor < len(places) for cursor, (_, places) in zip(cursors, queues, strict=True)):
        for q, (at_once, places) in enumerate(queues):
            for i in places[cursors[q] : cursors[q] + at_once]:
                if i not in seen:
                    seen.add(i)
                    yield i
            cursors[q] += at_once


def _record(sides: Sides, measures: Sequence[Measure], codes: Sequence[Any], i: int) -> dict[str, Any]:
    def first(column: str) -> str | None:
        return next(
            (t for s in range(len(sides.tables)) if (t := sides.text(s, column, i)) is not None), None
        )

    record = {
        "id": shown(first("id") or first("key"), 200),
        "p": shown(turns(first("prompt")), LONGEST["prompt"]),
        "g": shown(readable(first("gold")), LONGEST["gold"]),
        "o": "".join(code[i] for code in codes),
        "v": [[_plain(side[i]) for side in measure.values] for measure in measures],
        "s": [_side(sides, s, i) for s in range(len(sides.tables))],
    }
    if other := first("by_side") if TASKS[sides.task].also else None:
        record["u"] = other
    return record


def _plain(value: float) -> float | int | None:
    number = float(value)
    if number != number:
        return None
    return int(number) if number.is_integer() else round(number, 4)


def _side(sides: Sides, s: int, i: int) -> dict[str, Any]:
    side: dict[str, Any] = {
        "a": shown(sides.text(s, "answer", i), LONGEST["answer"]) or "",
        "n": int(sides.text(s, "row", i) or 0) + 1,
    }
    longest = LONGEST["program" if is_program(sides.task) else "extracted"]
    for key, column in (("x", "extracted"), ("r", "reason"), ("d", "detail"), ("t", "state")):
        value = shown(sides.text(s, column, i), longest)
        if key == "r" and value:
            value = reason_text(value, sides.task)
        if value is not None and (key, value) != ("t", "ok"):
            side[key] = value
    if told := sides.text(s, "judgements", i):
        side["j"] = _judgements(told)
    return side


def _judgements(text: str) -> list[dict[str, str]]:
    """What the judge was asked and replied, as texts; what cannot be read is shown as it is."""
    try:
        asked = json.loads(text)
        entries = [entry for entry in asked if isinstance(entry, dict)]
    except (ValueError, TypeError):
        return [{"mode": "?", "value": "", "status": "unreadable", "reply": shown(text, LONGEST["reply"])}]
    told = [
        {
            "mode": visible(entry.get("mode", "")),
            "value": shown(json.dumps(entry.get("value"), ensure_ascii=False), 300),
            "status": visible(entry.get("status", "")),
            "reply": shown(entry.get("reply") or "", LONGEST["reply"]),
        }
        for entry in entries[:JUDGEMENTS]
    ]
    left = len(entries) - len(told)
    return told + ([{"mode": f"{left} more", "value": "", "status": "", "reply": ""}] if left > 0 else [])


def _files(result: ModelResult, task: str) -> dict[str, str]:
    """The response file of a task as run.json names it, under ""; under a side's name the file that it came
    from."""
    tasks = (result.run or {}).get("tasks") or {}

    def file_of(name: str) -> str:
        return str((tasks.get(name) or {}).get("file") or f"the response file of {name}")

    return {"": file_of(task), **{side: file_of(other) for other, side in TASKS[task].also.items()}}
