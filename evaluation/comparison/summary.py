"""The comparison in words: summary.md for a pull request or a model card, and lines for an 80-column console.

Forgot: C5c Multilingual −16 % [−21, −11]
No proven change: C1 Knowledge, C3 ICL Score
Could not tell: H5 Long-Context −8 % [−28, 17]
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from evaluation.comparison.model import (
    COULD_NOT_TELL,
    DRIFTED,
    FORGOT,
    GAINED,
    MAYBE,
    NO_CHANGE,
    NO_DATA,
    NO_SAMPLES,
    OVERALL,
    Comparison,
    PairResult,
    RowResult,
)
from evaluation.comparison.tally import tally
from evaluation.comparison.words import (
    low_base_lines,
    number,
    points_text,
    present_words,
    shorten,
    span,
    stamps,
)
from evaluation.files import whole_file

WIDTH = 80
NOTE_LINES, NOTE_HEIGHT = 12, 3  # console lines of notes in all, and of one note
_TOGETHER = re.compile(r"\[[^\[\]\n]{1,24}\]| %")  # an interval, a percent sign: never broken
NO_BREAK = "\N{NO-BREAK SPACE}"

# verdict → heading; rows of the first four are told with numbers
_HEADINGS = (
    (FORGOT, "Forgot"),
    (GAINED, "Gained"),
    (DRIFTED, "Drifted (neither better nor worse)"),
    (MAYBE, "Perhaps (not after correction for many rows)"),
    (NO_CHANGE, "No proven change"),
    (COULD_NOT_TELL, "Could not tell"),
    (NO_SAMPLES, "No interval (deviations only)"),
    (NO_DATA, "n/a"),
)
_PLAIN = (NO_CHANGE, NO_DATA)


def row_words(pair: PairResult, row: RowResult) -> str:
    """C5c Multilingual −16 % [−21, −11]; in points where the one metric's base is too low for a percent."""
    if row.low and len(row.columns) == 1:
        return f"{row.title} {points_text(pair.metrics[row.columns[0]])}, of a base too low for a percent"
    if row.mean is None:
        return row.title
    words = f"{row.title} {number(row.mean, 0 if abs(row.mean) >= 10 else 1)} %"
    return f"{words} {span(row.interval_low, row.interval_high)}" if row.has_interval else words


def verdict_rows(pair: PairResult) -> list[tuple[str, list[tuple[RowResult, str]]]]:
    """(heading, [(row, the row in words)]) of every verdict that occurs, the largest change first."""
    found = []
    for verdict, heading in _HEADINGS:
        rows = [r for r in pair.rows.values() if r.verdict == verdict]
        if rows:
            rows.sort(key=lambda r: -abs(r.mean or 0.0))
            found.append((heading, [(r, r.title if verdict in _PLAIN else row_words(pair, r)) for r in rows]))
    return found


def verdict_lines(pair: PairResult) -> list[tuple[str, list[str]]]:
    """verdict_rows without the rows themselves."""
    return [(heading, [words for _, words in rows]) for heading, rows in verdict_rows(pair)]


def notes_of(pair: PairResult) -> list[str]:
    """What a reader must not overlook: tasks that could not be paired, then one text a row, then the pairing
    of tasks whose samples differ. Rows of which everything is missing come last: a line above names them.
    """
    notes = [f"{'ERROR, ' if u.is_error else ''}no interval for {u.task}: {u.reason}" for u in pair.unpaired]
    rows = [row for row in pair.rows.values() if row.notes]
    notes += [f"{row.title}: {'; '.join(row.notes)}" for row in rows if len(row.missing) < row.expected]
    for task in pair.tasks.values():
        left = len(task.only_base) + len(task.only_adapted)
        if left:
            ids = [*task.only_base, *task.only_adapted]
            notes.append(
                f"{task.task}: {task.shared} samples paired, {left} left out "
                f"({', '.join(ids[:3])}{', …' if left > 3 else ''})"
            )
    partly = {
        m.task: (m.judged_base, m.judged_adapted)
        for m in pair.metrics.values()
        if any(j and j[0] < j[1] for j in (m.judged_base, m.judged_adapted))
    }
    for task, sides in partly.items():
        texts = [f"{j[0]}/{j[1]}" if j else "unknown" for j in sides]
        notes.append(f"{task}: judged {texts[0]} (base), {texts[1]} (adapted)")
    notes += [f"{row.title}: {'; '.join(row.notes)}" for row in rows if len(row.missing) == row.expected]
    return notes


def _escape(text: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def markdown(comparison: Comparison) -> str:
    """summary.md: words first, then a table of all rows, then what to know."""
    lines = ["# CapTrack: drift against the base model", ""]
    for stamp in (*stamps(comparison), *low_base_lines(comparison)):
        lines += [f"> **{_escape(stamp)}**", ""]
    for pair in comparison.pairs:
        lines += [f"## {_escape(pair.name)} against {_escape(pair.base_name)}", ""]
        for heading, rows in verdict_lines(pair):
            lines.append(f"- **{heading}:** {_escape('; '.join(rows))}")
        lines += [
            "",
            "| Capability | Change | Spread | 95 % interval | Verdict |",
            "|---|---:|---:|:---:|---|",
        ]
        for group in pair.groups.values():
            for title in group.rows:
                lines.append(_table_line(pair.rows[title]))
            spread = "" if group.std is None else f"±{number(group.std)}"
            mean = "n/a" if group.mean is None else f"{number(group.mean)} %"
            interval = "" if group.interval_low is None else span(group.interval_low, group.interval_high)
            lines.append(f"| **{group.key} Average** | **{mean}** | {spread} | {interval} | |")
        lines += [_table_line(row) for row in pair.rows.values() if not row.group]
        flips = flip_sentence(pair)
        if flips:
            lines += ["", flips]
        notes = notes_of(pair)
        if notes:
            lines += ["", "Notes:", "", *(f"- {_escape(note)}" for note in notes)]
        for difference in pair.differences:
            lines.append(f"- made differently: {_escape(str(difference))}")
        lines.append("")
    lines += [
        "Change: relative deviation from the base in percent, the plain mean over the capability's metrics. "
        "Spread: "
        "standard deviation over these metrics, no measure of chance. Interval: from the paired samples. A "
        "drift is a "
        "diagnosis, not a verdict.",
        "",
    ]
    for name, reason in comparison.failed:
        lines += [f"Not compared: {_escape(name)}: {_escape(reason)}", ""]
    return "\n".join(lines)


def _table_line(row: RowResult) -> str:
    mean = "n/a" if row.mean is None else f"{number(row.mean)} %"
    spread = f"±{number(row.std)}" if row.std is not None and row.expected > 1 else ""
    interval = span(row.interval_low, row.interval_high) if row.has_interval else ""
    flag = f" ({', '.join(present_words(row))})" if row.missing or row.zero_base else ""
    return f"| {_escape(row.title)} | {mean} | {spread} | {interval} | {row.verdict}{flag} |"


def flip_sentence(pair: PairResult) -> str:
    counted = [t for t in pair.tasks.values() if t.forgotten is not None]
    if not counted:
        return ""
    forgotten, gained = sum(t.forgotten for t in counted), sum(t.gained for t in counted)
    worst = sorted(counted, key=lambda t: t.gained - t.forgotten)[:3]
    named = ", ".join(f"{t.task} {t.forgotten}:{t.gained}" for t in worst if t.forgotten > t.gained)
    return f"Samples forgotten {forgotten:,}, gained {gained:,}" + (
        f"; most lost in {named} (forgotten:gained)." if named else "."
    )


def write_summary(path: Path, comparison: Comparison) -> None:
    with whole_file(path) as handle:
        handle.write(markdown(comparison).encode("utf-8", "replace").decode())


def console(comparison: Comparison) -> str:
    """The summary for a terminal, no line longer than 80 columns."""
    lines: list[str] = []
    for stamp in (*stamps(comparison), *low_base_lines(comparison)):
        lines += _wrap(f"! {stamp}", "  ")
    for pair in comparison.pairs:
        lines += ["", *_wrap(f"{shorten(pair.name, 60)} against {shorten(pair.base_name, 60)}", "  ")]
        lines.append("-" * WIDTH)
        lines.append(
            f"{'':6}{'mean %':>9}{'95 % interval':>17}{'fell':>8}{'rose':>8}{'drifted':>8}"
            f"{'forgot/gained samples':>24}"
        )
        for group in [*pair.groups.values(), *([pair.overall] if pair.overall else [])]:
            t = tally(pair, group)
            mean = "n/a" if group.mean is None else number(group.mean)
            interval = "" if group.interval_low is None else span(group.interval_low, group.interval_high)
            samples = "" if t.forgotten is None else f"{t.forgotten:,} / {t.gained:,}"
            name = "All" if group.key == OVERALL else group.key
            counts = ((t.fell, t.fell_perhaps), (t.rose, t.rose_perhaps), (t.drifted, t.drifted_perhaps))
            moved = "".join(f"{_count(*count):>8}" for count in counts)
            lines.append(f"{name:6}{mean:>9}{interval:>17}{moved}{samples:>24}")
        lines += _wrap(_COUNTED if pair.has_samples else _BY_SIGN, "  ")
        for heading, rows in verdict_lines(pair):
            lines += _wrap(f"{heading}: {'; '.join(rows)}", "  ")
        lines += _notes(notes_of(pair), NOTE_LINES // len(comparison.pairs))
        for difference in pair.differences:
            lines += _wrap(f"made differently: {difference}", "  ")
    if comparison.dropped_rows:
        lines += _wrap(f"Left out, no model has them: {', '.join(comparison.dropped_rows)}", "  ")
    for name, reason in comparison.failed:
        lines += _wrap(f"Not compared: {name}: {reason}", "  ")
    return "\n".join(lines).lstrip("\n")


def _notes(notes: list[str], room: int) -> list[str]:
    """Notes for the console in about `room` lines, one at least; long ones are cut, the rest is counted."""
    lines: list[str] = []
    for told, note in enumerate(notes):
        wrapped = _wrap(f"note: {note}", "  ")
        if len(wrapped) > NOTE_HEIGHT:
            wrapped = [*wrapped[: NOTE_HEIGHT - 1], f"{wrapped[NOTE_HEIGHT - 1][: WIDTH - 2]} …"]
        if lines and len(lines) + len(wrapped) > room:
            left = len(notes) - told
            return [*lines, f"… and {left} more note{'s' if left > 1 else ''} in summary.md"]
        lines += wrapped
    return lines


_COUNTED = "fell, rose, drifted: rows whose interval excludes zero (1?: perhaps, see below)."
_BY_SIGN = "fell, rose, drifted: rows by their sign alone, nothing says whether it is real."


def _count(moved: int, perhaps: int) -> str:
    """3 rows of which 2 are unsure: 1+2?"""
    if not perhaps:
        return str(moved)
    return f"{moved - perhaps}+{perhaps}?" if moved > perhaps else f"{perhaps}?"


def noise_floor(comparison: Comparison) -> str:
    """For two runs of one model: what each row shows although nothing changed."""
    pair = comparison.pairs[0]
    lines = [
        *(line for stamp in stamps(comparison) for line in _wrap(f"! {stamp}", "  ")),
        *_wrap(f"Noise floor: {shorten(pair.base_name, 60)} against {shorten(pair.adapted_name, 60)}", "  "),
        "-" * WIDTH,
        f"{'':36}{'seen %':>10}{'floor ± %':>12}{'flips %':>10}",
    ]
    for row in pair.rows.values():
        seen = "n/a" if row.mean is None else number(row.mean)
        floor = "n/a" if not row.has_interval else number((row.interval_high - row.interval_low) / 2)
        lines.append(f"{shorten(row.title, 34):36}{seen:>10}{floor:>12}{_flip_share(pair, row):>10}")
    lines += _wrap(
        "floor: half of the 95 % interval of two runs that differ by noise alone; a change below it in a "
        "comparison of "
        "two models is not to be told from noise. flips: share of samples whose verdict changed.",
        "",
    )
    return "\n".join(lines)


def _flip_share(pair: PairResult, row: RowResult) -> str:
    flips = pairs = 0
    for column in row.columns:
        metric = pair.metrics[column]
        if metric.forgotten is not None:
            flips += metric.forgotten + metric.gained
            pairs += metric.pairs
    return number(100 * flips / pairs) if pairs else ""


def _wrap(text: str, indent: str) -> list[str]:
    text = "".join(c if c.isprintable() else " " for c in text)
    text = _TOGETHER.sub(lambda found: found[0].replace(" ", NO_BREAK), text)
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return [line.replace(NO_BREAK, " ") for line in lines]
