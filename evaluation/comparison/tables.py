"""The comparison as files for machines and spreadsheets: CSV and Excel.

    relative_differences.csv       pair name × rows, percent (as published)
    relative_differences_std.csv   the spreads, same shape (with aggregation)
    averages.csv                   one line a pair and group: mean, spread, interval
    forgetting_statistics.csv      one line a pair and group: fell, rose, worst three, forgotten, gained
    flips.csv                      one line a pair and task: forgotten, gained, both right, both wrong
    comparison_long.csv            everything, one line a pair and metric, row or group
    relative_differences.xlsx      the same as sheets

Numbers are written in full; a value that does not exist is an empty cell, and `notes` says why.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from evaluation.comparison.model import OVERALL, Comparison, GroupResult, MetricResult, PairResult, RowResult
from evaluation.comparison.tally import tally
from evaluation.comparison.words import present_words
from evaluation.files import whole_file

Table = tuple[list[str], list[list[Any]]]

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
WORKBOOK = "relative_differences.xlsx"
CELL_LIMIT = 32_767  # characters in a cell of a workbook


def relative_differences(comparison: Comparison) -> Table:
    return _wide(comparison, "mean")


def relative_spreads(comparison: Comparison) -> Table:
    return _wide(comparison, "std")


def _wide(comparison: Comparison, field: str) -> Table:
    header = ["", *comparison.row_titles]
    return header, [
        [pair.name, *(getattr(pair.rows[title], field) for title in comparison.row_titles)]
        for pair in comparison.pairs
    ]


def _groups(pair: PairResult) -> list[GroupResult]:
    return [*pair.groups.values(), *([pair.overall] if pair.overall else [])]


def averages(comparison: Comparison) -> Table:
    """spread is the published one of an average: sqrt(mean of squared row spreads) / sqrt(rows)."""
    header = [
        "pair",
        "group",
        "title",
        "mean",
        "spread",
        "low",
        "high",
        "rows",
        "rows_without_value",
        "mean_without_low_bases",
    ]
    return header, [
        [pair.name, g.key, g.title, g.mean, g.std, g.interval_low, g.interval_high, len(g.rows),
        "; ".join(g.missing_rows), g.mean_without_low]
        for pair in comparison.pairs
        for g in _groups(pair)
    ]  # fmt: skip


def forgetting(comparison: Comparison) -> Table:
    header = [
        "pair", "group", "mean", "spread", "low", "high", "rows", "rows_fell", "rows_rose", "rows_drifted",
        "metrics", "metrics_fell", "metrics_rose", "worst_three", "samples_forgotten", "samples_gained",
        "metrics_missing", "rows_fell_perhaps", "rows_rose_perhaps", "rows_drifted_perhaps",
    ]  # fmt: skip
    lines = []
    for pair in comparison.pairs:
        for group in _groups(pair):
            t = tally(pair, group)
            worst = "; ".join(f"{title} {mean:.1f} %" for title, mean in t.worst)
            lines.append([
                pair.name, t.group, t.mean, t.std, t.low, t.high, t.rows, t.fell, t.rose, t.drifted,
                t.metrics, t.metrics_fell, t.metrics_rose, worst, t.forgotten, t.gained, t.missing,
                t.fell_perhaps, t.rose_perhaps, t.drifted_perhaps,
            ])  # fmt: skip
    return header, lines


def flip_counts(comparison: Comparison) -> Table:
    header = [
        "pair", "task", "base_samples", "adapted_samples", "paired", "clusters", "only_base", "only_adapted",
        "forgotten", "gained", "both_right", "both_wrong", "ids_only_base", "ids_only_adapted",
    ]  # fmt: skip
    return header, [
        [
            pair.name, t.task, t.base_rows, t.adapted_rows, t.shared, t.clusters, len(t.only_base),
            len(t.only_adapted), t.forgotten, t.gained, t.both_right, t.both_wrong, _ids(t.only_base),
            _ids(t.only_adapted),
        ]
        for pair in comparison.pairs
        for t in pair.tasks.values()
    ]  # fmt: skip


def _ids(ids: Sequence[str], shown: int = 50) -> str:
    return "; ".join(ids[:shown]) + (f"; and {len(ids) - shown} more" if len(ids) > shown else "")


LONG = [
    "pair", "level", "name", "group", "capability", "task", "unit", "direction", "base", "adapted",
    "deviation",
    "std", "points", "status", "counted", "low", "high", "points_low", "points_high", "paired_deviation",
    "se", "df",
    "p", "test", "q", "verdict", "quality", "pairs", "clusters", "unscored", "forgotten", "gained",
    "smallest_change_points", "judged_base", "judged_adapted", "bound_low", "bound_high",
    "made_differently", "notes",
]  # fmt: skip


def long_table(comparison: Comparison) -> Table:
    """One tidy table: level is metric, row, group or overall."""
    lines = []
    for pair in comparison.pairs:
        places = {c: row for row in pair.rows.values() for c in row.columns}
        stamp = "; ".join(str(d) for d in pair.differences)
        for metric in pair.metrics.values():
            lines.append(_line(pair, stamp, _metric_fields(metric, places.get(metric.column))))
        for row in pair.rows.values():
            lines.append(_line(pair, stamp, _row_fields(row)))
        for group in _groups(pair):
            lines.append(_line(pair, stamp, _group_fields(group)))
    return LONG, lines


def _line(pair: PairResult, stamp: str, fields: dict[str, Any]) -> list[Any]:
    return [{"pair": pair.name, "made_differently": stamp, **fields}.get(name) for name in LONG]


def _metric_fields(m: MetricResult, row: RowResult | None) -> dict[str, Any]:
    judged = [None if j is None else f"{j[0]}/{j[1]}" for j in (m.judged_base, m.judged_adapted)]
    return {
        "level": "metric", "name": m.column, "group": row.group if row else "",
        "capability": m.column.split(" ")[0], "task": m.task, "unit": m.unit, "direction": m.direction,
        "base": m.base, "adapted": m.adapted, "deviation": m.deviation, "points": m.points,
        "status": m.status,
        "counted": bool(row and m.column in row.weights), "low": m.low, "high": m.high,
        "points_low": m.points_low, "points_high": m.points_high, "paired_deviation": m.paired_deviation,
        "se": m.se, "df": m.df, "p": m.p, "test": m.test, "quality": m.quality,
        "pairs": m.pairs, "clusters": m.clusters, "unscored": m.unscored,
        "forgotten": m.forgotten, "gained": m.gained, "smallest_change_points": m.smallest,
        "judged_base": judged[0], "judged_adapted": judged[1],
        "bound_low": m.bounds[0] if m.bounds else None, "bound_high": m.bounds[1] if m.bounds else None,
        "notes": m.note,
    }  # fmt: skip


def _row_fields(r: RowResult) -> dict[str, Any]:
    return {
        "level": "row", "name": r.title, "group": r.group, "capability": r.capability,
        "direction": r.direction,
        "deviation": r.mean, "std": r.std, "low": r.interval_low, "high": r.interval_high,
        "paired_deviation": r.paired_mean, "se": r.se, "df": r.df, "p": r.p, "q": r.q, "verdict": r.verdict,
        "status": ", ".join(present_words(r)),
        "bound_low": r.bounds[0] if r.bounds else None, "bound_high": r.bounds[1] if r.bounds else None,
        "notes": "; ".join(r.notes),
    }  # fmt: skip


def _group_fields(g: GroupResult) -> dict[str, Any]:
    return {
        "level": "overall" if g.key == OVERALL else "group", "name": g.title, "group": g.key,
        "deviation": g.mean,
        "std": g.std, "low": g.interval_low, "high": g.interval_high, "paired_deviation": g.paired_mean,
        "se": g.se, "df": g.df,
        "notes": f"n/a: {', '.join(g.missing_rows)}" if g.missing_rows else "",
    }  # fmt: skip


def csv_tables(comparison: Comparison) -> dict[str, Table]:
    """File stem → table, in the order of writing."""
    tables = {"relative_differences": relative_differences(comparison)}
    if comparison.aggregated:
        tables["relative_differences_std"] = relative_spreads(comparison)
    tables["averages"] = averages(comparison)
    tables["forgetting_statistics"] = forgetting(comparison)
    if comparison.has_samples:
        tables["flips"] = flip_counts(comparison)
    tables["comparison_long"] = long_table(comparison)
    return tables


def file_names() -> list[str]:
    """Every file that write_csvs can write, and the workbook."""
    return [*(f"{stem}.csv" for stem in _SHEETS), WORKBOOK]


def write_csvs(folder: Path, comparison: Comparison) -> list[Path]:
    """Writes every CSV; returns the paths."""
    paths = []
    for stem, (header, lines) in csv_tables(comparison).items():
        path = folder / f"{stem}.csv"
        with whole_file(path) as handle:
            writer = csv.writer(handle, lineterminator="\n")
            writer.writerow(header)
            writer.writerows([_csv_cell(v) for v in line] for line in lines)
        paths.append(path)
    return paths


def _csv_cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# --- Excel
# --------------------------------------------------------------------------------------------------------

_SHEETS = {  # every table that csv_tables can give
    "relative_differences": "Relative Differences",
    "relative_differences_std": "Standard Deviations",
    "averages": "Averages",
    "forgetting_statistics": "Forgetting",
    "flips": "Flips",
    "comparison_long": "All Numbers",
}


def write_excel(path: Path, comparison: Comparison, remarks: Iterable[str]) -> None:
    """A formatted workbook: the CSV tables as sheets, and what must be known about them on the last."""
    import openpyxl
    from openpyxl.formatting.rule import ColorScaleRule
    from openpyxl.utils import get_column_letter

    book = openpyxl.Workbook()
    book.remove(book.active)
    for stem, (header, lines) in csv_tables(comparison).items():
        sheet = book.create_sheet(_SHEETS[stem])
        _fill(sheet, header, lines)
        if stem == "relative_differences" and lines:
            last = f"{get_column_letter(len(header))}{len(lines) + 1}"
            sheet.conditional_formatting.add(
                f"B2:{last}",
                ColorScaleRule(
                    start_type="num", start_value=-15, start_color="D6604D",
                    mid_type="num", mid_value=0, mid_color="FFFFFF",
                    end_type="num", end_value=15, end_color="92C5DE",
                ),
            )  # fmt: skip
    _fill(book.create_sheet("About"), ["About this comparison"], [[remark] for remark in remarks])
    with whole_file(path, "wb") as handle:
        book.save(handle)


def _fill(sheet: Any, header: list[str], lines: list[list[Any]]) -> None:
    from openpyxl.styles import Alignment, Font, PatternFill
    from openpyxl.utils import get_column_letter

    bold, grey = Font(bold=True), PatternFill("solid", fgColor="E8E8E8")
    for column, name in enumerate(header, 1):
        cell = _put(sheet, 1, column, name)
        cell.font, cell.fill = bold, grey
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    for row, line in enumerate(lines, 2):
        for column, value in enumerate(line, 1):
            cell = _put(sheet, row, column, value)
            if isinstance(value, float):
                cell.number_format = "0.000" if header[column - 1] in ("p", "q", "base", "adapted") else "0.0"
    sheet.freeze_panes = "B2"
    for column in range(1, len(header) + 1):
        texts = [line[column - 1] for line in lines[:200] if isinstance(line[column - 1], str)]
        widest = max((len(t) for t in texts), default=8)
        sheet.column_dimensions[get_column_letter(column)].width = min(max(widest + 2, 11), 48)


def _put(sheet: Any, row: int, column: int, value: Any) -> Any:
    """A cell whose text stays text: "=1+1" is no formula, control characters are gone."""
    cell = sheet.cell(row, column)
    if isinstance(value, str):
        cell.value = clean_text(value)
        cell.data_type = "s"
        if value[:1] in "=+-@":
            cell.quotePrefix = True
    elif isinstance(value, float) and value in (float("inf"), float("-inf")):
        cell.value = "∞" if value > 0 else "−∞"
    else:
        cell.value = value
    return cell


def clean_text(text: str) -> str:
    """Without characters that a workbook cannot hold, cut at its limit."""
    return _CONTROL.sub("", text)[:CELL_LIMIT]
