"""report.html of a comparison: words, live heatmap, metrics with intervals, and the samples behind them.

    write_report(Path("captrack_relative_results/report.html"), comparison, pairs, plot)

This room turns a Comparison into the plain values that templates/comparison.html prints. Views of the page
are named in its address: #row-0-3 is the fourth row of the first adapted model, #samples/0/TASK/MEASURE/f
the samples that fell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation import DEFINITIONS_VERSION
from evaluation.comparison.analysis import metric_of
from evaluation.comparison.config import Plot
from evaluation.comparison.flips import verdict_columns
from evaluation.comparison.gate import Gate
from evaluation.comparison.heatmap import Cell, average_cell, row_cell
from evaluation.comparison.model import Comparison, MetricResult, PairResult, RowResult
from evaluation.comparison.pairing import Units, pair_task
from evaluation.comparison.summary import notes_of, verdict_rows
from evaluation.comparison.words import MINUS, number, points_text, span, stamps
from evaluation.report.facts import gaps_of, how_of, made_of, value_text
from evaluation.report.page import write_page
from evaluation.report.samples import PAGE_TEXT, block, measures_of, sides_of_pair
from evaluation.report.texts import visible
from evaluation.report.verdicts import gate_values, rows_of_gate
from evaluation.results import ModelResult, read_samples
from evaluation.taxonomy import CAPABILITIES, COLUMN_BY_NAME, COLUMNS, GROUPS

LEVELS = 8  # steps of a cell's colour

Pairs = Sequence[tuple[PairResult, ModelResult, ModelResult]]
Outcomes = dict[tuple[int, str], dict[str, dict[str, int]]]  # (pair, task) → measure → outcome code → samples
Constants = dict[tuple[int, str, str], float]  # (pair, task, measure) → the one value of every sample


def write_report(
    path: Path, comparison: Comparison, pairs: Pairs, plot: Plot, gate: Gate | None = None
) -> Path:
    """Writes the page; where there are no sample tables it has the numbers alone, and says so. gate: its
    verdicts are shown first, and with each row."""
    blocks, constants = _blocks(pairs)
    there = {
        (b["pair"], b["task"]): {m["key"]: {o[0]: o[2] for o in m["outcomes"]} for m in b["measures"]}
        for b in blocks
    }
    values = {
        "stamps": stamps(comparison),
        "gate": gate_values(gate) if gate else None,
        "gate_rows": rows_of_gate(gate),
        "row_places": {
            (pair.name, title): f"#row-{n}-{place}"
            for n, (pair, *_) in enumerate(pairs)
            for place, title in enumerate(pair.rows)
        },
        "pairs": [
            _pair(n, pair, results, plot, constants, there) for n, (pair, *results) in enumerate(pairs)
        ],
        "groups": _heatmap(comparison, plot),
        "aggregated": comparison.aggregated,
        "missing_rule": comparison.missing_rule,
        "failed": comparison.failed,
        "dropped": comparison.dropped_rows,
        "made": made_of(_distinct(pairs)),
        "definitions": DEFINITIONS_VERSION,
        "any_samples": bool(blocks),
        "shown": sum(len(b["records"]) for b in blocks),
        "total": sum(b["total"] for b in blocks),
        "cap": plot.color_cap,
        "picture_says_better": plot.use_green_red,
        "page": {"models": [[visible(pair.base_name), visible(pair.adapted_name)] for pair, *_ in pairs],
                 "names": [visible(pair.name) for pair, *_ in pairs]},
    }  # fmt: skip
    return write_page(path, "comparison.html", values, blocks)


def _distinct(pairs: Pairs) -> list[ModelResult]:
    return list({str(r.path): r for _, *results in pairs for r in results}.values())


# ------------------------------------------------------------------------------------------------ samples


def _blocks(pairs: Pairs) -> tuple[list[dict[str, Any]], Constants]:
    """The sample blocks of all pairs, and the measures that are constant in them."""
    wanted = [(n, task) for n, (pair, *_) in enumerate(pairs) for task in pair.tasks]
    blocks: list[dict[str, Any]] = []
    constants: Constants = {}
    room = PAGE_TEXT
    for left, (n, task) in zip(range(len(wanted), 0, -1), wanted, strict=True):
        _, base, adapted = pairs[n]
        tables = [read_samples(r.path / "samples" / f"{task}.parquet") for r in (base, adapted)]
        if None in tables:
            continue
        paired = pair_task(tables[:1], tables[1:], Units(), (base.name, adapted.name))
        sides = sides_of_pair(task, (base, adapted), paired)
        measures = measures_of(task, sides)
        found, used = block(sides, measures, room // left)
        room -= used
        blocks.append({"pair": n, **found})
        for measure in measures:
            if (value := measure.constant) is not None:
                constants[n, task, measure.key] = value
    return blocks, constants


# ------------------------------------------------------------------------------------------------ heatmap


def _heatmap(comparison: Comparison, plot: Plot) -> list[dict[str, Any]]:
    places = {title: i for i, title in enumerate(comparison.row_titles)}
    groups = []
    for key in (*GROUPS, ""):
        titles = [t for t in comparison.row_titles if comparison.row_groups[t] == key]
        if not titles:
            continue
        rows = [
            {
                "title": title,
                "about": _about(comparison.pairs[0].rows[title]),
                "habit": comparison.row_directions[title] == 0,
                "cells": [
                    {
                        "href": f"#row-{n}-{places[title]}",
                        **_cell(row_cell(pair, pair.rows[title], plot), row=pair.rows[title]),
                    }
                    for n, pair in enumerate(comparison.pairs)
                ],
            }
            for title in titles
        ]
        average = (
            [_cell(average_cell(p.groups[key], plot), group=p.groups[key]) for p in comparison.pairs]
            if key
            else []
        )
        groups.append({"key": key, "title": GROUPS.get(key, "Other rows"), "rows": rows, "average": average})
    return groups


def _about(row: RowResult) -> str:
    return CAPABILITIES[row.capability][1] if row.capability in CAPABILITIES else ""


def _cell(cell: Cell, row: RowResult | None = None, group: Any = None) -> dict[str, Any]:
    one = row or group
    classes = []
    if one.mean is not None:
        direction = row.direction if row else 0
        kind = "habit" if direction == 0 else "worse" if one.mean * direction < 0 else "better"
        level = round(cell.strength * LEVELS * (0.5 if cell.quiet else 1.0))
        classes = [kind, f"level-{level}"]
    classes += [name for name in ("moved", "quiet", "hatched") if getattr(cell, name)]
    if not cell.sure:
        classes.append("unsure")
    interval = span(one.interval_low, one.interval_high) if one.interval_low is not None else ""
    return {
        "text": cell.text,
        "small": [s for s in (interval, *cell.small) if s],
        "classes": " ".join(classes),
        "verdict": row.verdict if row else "",
    }


# ------------------------------------------------------------------------------------------------ one pair


def _pair(
    n: int,
    pair: PairResult,
    results: Sequence[ModelResult],
    plot: Plot,
    constants: Constants,
    there: Outcomes,
) -> dict[str, Any]:
    places = {title: i for i, title in enumerate(pair.rows)}
    shown = [
        (heading, [{"words": words, "href": f"#row-{n}-{places[row.title]}"} for row, words in rows])
        for heading, rows in verdict_rows(pair)
    ]
    return {
        "number": n,
        "name": pair.name,
        "base_name": pair.base_name,
        "adapted_name": pair.adapted_name,
        "runs": (pair.base_runs, pair.adapted_runs),
        "verdicts": shown,
        "flips": _flips_told(pair),
        "notes": notes_of(pair),
        "differences": [str(d) for d in pair.differences],
        "tasks": _tasks(n, pair, there),
        "rows": [
            {
                "id": f"row-{n}-{places[row.title]}",
                "title": row.title,
                "about": _about(row),
                "habit": row.direction == 0,
                "verdict": row.verdict,
                "cell": _cell(row_cell(pair, row, plot), row=row),
                "std": None if row.std is None or row.expected < 2 else number(row.std),
                "q": None if row.q is None else _small(row.q),
                "notes": row.notes,
                "metrics": [
                    _metric(n, pair.metrics[c], c in row.weights, constants, there) for c in row.columns
                ],
                "deeper": [
                    _metric(n, pair.metrics[c], None, constants, there)
                    for c in _deeper(row)
                    if c in pair.metrics
                ],
            }
            for row in pair.rows.values()
        ],
        "uninformative": _uninformative(n, constants),
        "gaps": [
            (side, gaps_of(r)) for side, r in zip((pair.base_name, pair.adapted_name), results, strict=True)
        ],
        "has_samples": pair.has_samples,
    }


def _flips_told(pair: PairResult) -> str:
    """Forgotten and gained in one sentence, in the order of the table of tasks."""
    counted = [t for t in pair.tasks.values() if t.forgotten is not None]
    if not counted:
        return ""
    most = sorted((t for t in counted if t.forgotten), key=lambda t: (-t.forgotten, t.gained))[:3]
    named = ", ".join(f"{t.task} ({t.forgotten:,}, gained {t.gained:,})" for t in most)
    forgotten, gained = sum(t.forgotten for t in counted), sum(t.gained for t in counted)
    told = f"Samples forgotten {forgotten:,}, gained {gained:,}"
    return f"{told}; most forgotten in {named}." if named else f"{told}."


def _deeper(row: RowResult) -> Iterator[str]:
    """Columns of the capability's deep dive and parts, which enter no mean."""
    for column in COLUMNS:
        part = column.capability
        if (
            row.capability
            and part != row.capability
            and part.startswith(row.capability)
            and column.name not in row.columns
        ):
            yield column.name


def _tasks(n: int, pair: PairResult, there: Outcomes) -> list[dict[str, Any]]:
    """The tasks, those with most forgotten answers first, those without a verdict last."""
    listed = []
    for task, info in pair.tasks.items():
        if (n, task) not in there:
            continue
        verdict = verdict_columns(task)
        key = "" if not verdict else verdict[0] if len(verdict) == 1 else "verdict"
        titles = dict.fromkeys(
            r.title
            for r in pair.rows.values()
            for c in r.columns
            if c in COLUMN_BY_NAME and COLUMN_BY_NAME[c].task == task
        )
        counts = {"f": info.forgotten, "g": info.gained, "h": info.both_right, "l": info.both_wrong}
        counts["-"] = info.shared - sum(count or 0 for count in counts.values())
        listed.append(
            {
                "task": task,
                "rows": ", ".join(titles),
                "shared": info.shared,
                "href": f"#samples/{n}/{task}",
                "judged": info.forgotten is not None,
                "counts": [
                    {"count": c, "href": f"#samples/{n}/{task}/{key}/{code}"} for code, c in counts.items()
                ],
            }
        )

    def order(entry: dict[str, Any]) -> tuple[bool, int, int]:
        info = pair.tasks[entry["task"]]
        return not entry["judged"], -(info.forgotten or 0), info.gained or 0

    return sorted(listed, key=order)


def _uninformative(n: int, constants: Constants) -> list[str]:
    found = []
    for column in COLUMNS:
        metric = metric_of(column.name)
        value = constants.get((n, column.task, metric.column)) if metric else None
        if value is not None and column.row:
            found.append(f"{column.name} is {value:g} for every sample of both models")
    return found


def _metric(
    n: int,
    metric: MetricResult,
    counted: bool | None,
    constants: Constants,
    there: Outcomes,
) -> dict[str, Any]:
    """counted: enters its row's mean; None for a metric that is in no row."""
    known = metric_of(metric.column) if metric.column in COLUMN_BY_NAME else None
    key = known.column if known else ""
    outcomes = there.get((n, metric.task), {}).get(key)
    href = f"#samples/{n}/{metric.task}/{key}"
    judged = [("base", metric.judged_base), ("adapted", metric.judged_adapted)]
    return {
        "name": metric.column,
        "task": metric.task,
        "how": how_of(known),
        "base": value_text(metric.base, metric.unit),
        "adapted": value_text(metric.adapted, metric.unit),
        "change": "n/a" if metric.deviation is None else f"{number(metric.deviation)} %",
        "interval": "" if metric.low is None else span(metric.low, metric.high),
        "points": "" if metric.points is None else points_text(metric).replace("-", MINUS),
        "p": "" if metric.p is None else _small(metric.p),
        "test": metric.test,
        "kind": _kind(metric),
        "pairs": metric.pairs,
        "unscored": metric.unscored,
        "judged": [(who, counts) for who, counts in judged if counts],
        "flips": _flips(metric, outcomes, href),
        "href": href if outcomes else "",
        "notes": _metric_notes(metric, counted, constants.get((n, metric.task, key))),
    }


def _flips(metric: MetricResult, outcomes: dict[str, int] | None, href: str) -> list[dict[str, Any]]:
    """How many samples fell and rose, in the words that fit the metric."""
    if not outcomes:
        return []
    counts, words = (metric.forgotten, metric.gained), ("yes → no", "no → yes")
    if None in counts:
        counts, words = (outcomes.get("f", 0), outcomes.get("g", 0)), ("fell", "rose")
    elif metric.direction > 0:
        words = ("forgotten", "gained")
    return [
        {"count": count, "word": word, "href": f"{href}/{code}"}
        for count, word, code in zip(counts, words, "fg", strict=True)
    ]


def _metric_notes(metric: MetricResult, counted: bool | None, constant: float | None) -> list[str]:
    notes = [metric.note] if metric.note else []
    if counted is False and metric.deviation is not None:
        notes.append("not in the mean")
    if metric.quality:
        low = "base too low for a percent: read the difference"
        notes.append(low if metric.quality == "unreliable" else metric.quality)
    if constant is not None:
        notes.append(f"uninformative: {constant:g} for every sample of both models")
    if metric.bounds:
        high = "∞" if metric.bounds[1] is None else number(metric.bounds[1])
        notes.append(f"with the unjudged samples at worst and best: {number(metric.bounds[0])} to {high} %")
    return notes


def _kind(metric: MetricResult) -> str:
    if metric.low is None or not (metric.low > 0 or metric.high < 0):
        return "quiet"
    up = metric.low > 0
    return "habit" if metric.direction == 0 else "better" if up == (metric.direction > 0) else "worse"


def _small(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
