"""The heatmap: rows are capabilities, columns adapted models, cells the relative deviation in percent.

Positive is more than the base, negative less. A cell whose interval excludes zero has a frame, bold text
and a mark (▼ worse, ▲ better, ◆ drift that is neither; "?" where it does not hold after correction for many
rows); one whose interval spans zero is quiet: faint in colour, its text small. Averages likewise, but without
a mark: bold with a thick frame, or quiet with a thin one. Missing entries and bases too low for a percent are
hatched and say so. Drawn in inches on one axis, so that 1 and 12 models are equally legible. Agg only,
nothing is ever shown on a screen.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.comparison.config import Plot
from evaluation.comparison.model import (
    MAYBE,
    NO_SAMPLES,
    Comparison,
    GroupResult,
    PairResult,
    RowResult,
)
from evaluation.comparison.words import footer, mark_of, number, points_text, present_words, shorten, span
from evaluation.files import whole_file
from evaluation.taxonomy import GROUPS

GROUP_COLORS = {"CAN": "#1f5fa8", "WILL": "#b35a00", "HOW": "#2f7d4f", "": "#555555"}
WORSE, BETTER, NEITHER = "#b2182b", "#1a7f45", "#6a4c93"
MORE = "#4a4a4a"  # more than the base, where colours are the groups'; dark, so that quiet is no kind of it
QUIET_TEXT = "#5c5c5c"
FULL, QUIET = 0.9, 0.22  # how much of its colour a cell shows at most

_LABELS, _BAND, _MARGIN = 2.35, 0.34, 0.2  # inches
_ROW, _AVERAGE = 0.44, 0.42


@dataclass(frozen=True)
class Cell:
    """How a cell looks. text: big line; small: lines below. strength: 0..1 of `color`. mark is part of the
    text. moved: framed, bold and marked; bold: an average whose interval excludes zero."""

    text: str
    small: tuple[str, ...]
    color: str
    strength: float
    moved: bool = False
    sure: bool = True
    quiet: bool = False
    bold: bool = False
    hatched: bool = False


def row_cell(pair: PairResult, row: RowResult, plot: Plot) -> Cell:
    """The cell of a capability row."""
    if row.mean is None:
        points = [points_text(pair.metrics[c]) for c in row.zero_base]
        small = (points[0].split(" [")[0],) if points else ()
        if len(points) > 1:
            small = ("base 0",)
        return Cell("n/a", small, "#ffffff", 0.0, hatched=True)
    moved = row.moved
    sure = row.verdict != MAYBE
    text = number(row.mean)
    if moved:
        text = f"{mark_of(row.mean, row.direction)}{'' if sure else '?'} {text}"
    small = []
    if plot.show_interval and row.has_interval:
        small.append(span(row.interval_low, row.interval_high))
    elif row.std is not None and row.expected > 1:  # one metric has no spread
        small.append(f"(±{number(row.std)})")
    if row.missing or row.zero_base:
        small += present_words(row)
    if row.mean_without_low is not None:
        small.append(f"{number(row.mean_without_low)} w/o low base")
    elif row.low and len(row.columns) == 1:
        small.append(points_text(pair.metrics[row.columns[0]]))
    if row.incomplete:
        small.append("unjudged: sign open")
    return Cell(
        text,
        tuple(small),
        cell_color(row.mean, row.direction, row.group, plot.use_green_red),
        min(1.0, abs(row.mean) / plot.color_cap),
        moved,
        sure,
        quiet=not moved and row.verdict != NO_SAMPLES,
        hatched=row.flagged or row.incomplete,
    )


def average_cell(group: GroupResult, plot: Plot) -> Cell:
    """The cell of a separator row."""
    if group.mean is None:
        return Cell("n/a", (), "#ffffff", 0.0, hatched=True)
    small = []
    if plot.show_interval and group.interval_low is not None:
        small.append(span(group.interval_low, group.interval_high))
    elif group.std is not None:
        small.append(f"(±{number(group.std)})")
    if group.mean_without_low is not None:
        small.append(f"{number(group.mean_without_low)} w/o low base")
    if group.missing_rows:
        small.append(f"{len(group.missing_rows)} of {len(group.rows)} rows n/a")
    color = cell_color(group.mean, 0 if plot.use_green_red else 1, group.key, plot.use_green_red)
    strength = min(1.0, abs(group.mean) / plot.color_cap)
    known = group.interval_low is not None
    quiet = known and group.interval_low <= 0 <= group.interval_high
    return Cell(number(group.mean), tuple(small), color, strength, quiet=quiet, bold=known and not quiet)


def cell_color(mean: float, direction: int, group: str, green_red: bool) -> str:
    """The full colour of a cell: by group and sign, or by better and worse."""
    if not green_red:
        return GROUP_COLORS.get(group, GROUP_COLORS[""]) if mean < 0 else MORE
    if direction == 0:
        return NEITHER
    return WORSE if mean * direction < 0 else BETTER


def draw_heatmap(comparison: Comparison, plot: Plot) -> Any:
    """The figure. Raises ValueError where there is no row or no pair."""
    if not comparison.pairs or not comparison.row_titles:
        raise ValueError("nothing to draw")
    figure_of = canvas()
    from matplotlib.patches import Rectangle

    count = len(comparison.pairs)
    width_of_cell = 2.6 if count == 1 else 1.75 if count <= 3 else 1.28
    lines = _plan_lines(comparison, plot)
    width = _MARGIN * 2 + _BAND + _LABELS + count * width_of_cell
    width = max(width, 6.2)
    wrap = int((width - 2 * _MARGIN) * 17)
    foot = textwrap.wrap(" ".join(footer(comparison)), wrap) + textwrap.wrap(_legend_text(comparison), wrap)
    names = [
        textwrap.wrap(shorten(p.name, 54), int(width_of_cell * 10), max_lines=4) for p in comparison.pairs
    ]
    header = 0.62 + 0.155 * max(len(n) for n in names)
    body = sum(height for *_, height in lines)
    legend = 0.5
    height = _MARGIN + header + body + legend + 0.15 * len(foot) + 0.3
    figure, axis = figure_of(width, height)
    left = _MARGIN + _BAND + _LABELS
    axis.text(
        _MARGIN,
        _MARGIN + 0.1,
        "Relative deviation from the base model (%)",
        fontsize=11,
        fontweight="bold",
        va="center",
    )
    if comparison.mismatched:
        axis.text(
            width - _MARGIN,
            _MARGIN + 0.1,
            "MADE DIFFERENTLY",
            fontsize=9,
            color=WORSE,
            ha="right",
            va="center",
        )
    for i, name in enumerate(names):
        axis.text(
            left + (i + 0.5) * width_of_cell,
            _MARGIN + header - 0.1,
            "\n".join(name),
            fontsize=8.5,
            ha="center",
            va="bottom",
            fontweight="bold",
            parse_math=False,
        )
    y = _MARGIN + header
    band_start: dict[str, float] = {}
    band_end: dict[str, float] = {}
    for kind, key, label, cells, line_height in lines:
        group = key
        band_start.setdefault(group, y)
        band_end[group] = y + line_height
        average = kind == "average"
        axis.text(
            left - 0.08,
            y + line_height / 2,
            label,
            fontsize=8.5,
            ha="right",
            va="center",
            parse_math=False,
            fontweight="bold" if average else "normal",
            color=GROUP_COLORS[group] if average else "black",
        )
        for i, cell in enumerate(cells):
            at = left + i * width_of_cell
            _draw_cell(axis, at, y, width_of_cell, line_height, cell)
            if average:
                axis.add_patch(
                    Rectangle(
                        (at, y),
                        width_of_cell,
                        line_height,
                        fill=False,
                        lw=1.6 if cell.bold else 0.7,
                        edgecolor=GROUP_COLORS[group],
                        zorder=6,
                    )
                )
        y += line_height
    for group, start in band_start.items():
        if not group:
            continue
        end = band_end[group]
        axis.add_patch(
            Rectangle(
                (_MARGIN, start + 0.02), _BAND - 0.08, end - start - 0.04, color=GROUP_COLORS[group], lw=0
            )
        )
        title = group if end - start < 2.0 else f"{group} – {GROUPS[group]}"
        axis.text(
            _MARGIN + (_BAND - 0.08) / 2,
            (start + end) / 2,
            title,
            rotation=90,
            color="white",
            fontsize=8,
            ha="center",
            va="center",
            fontweight="bold",
        )
        axis.plot([_MARGIN, left + count * width_of_cell], [end, end], color="black", lw=1.1, zorder=7)
    _draw_scale(axis, _MARGIN, y + 0.14, min(width - 2 * _MARGIN, 6.0), comparison, plot)
    for i, line in enumerate(foot):
        axis.text(
            _MARGIN,
            y + legend + 0.1 + 0.15 * i,
            line,
            fontsize=6.8,
            va="center",
            color="#333333",
            parse_math=False,
        )
    if plot.figsize:
        figure.set_size_inches(*plot.figsize)
    return figure


def _plan_lines(comparison: Comparison, plot: Plot) -> list[tuple[str, str, str, list[Cell], float]]:
    """(kind, group, label, cells, height in inches) from top to bottom; a group's average follows its
    rows."""
    lines = []
    for group in (*GROUPS, ""):
        titles = [t for t in comparison.row_titles if comparison.row_groups[t] == group]
        if not titles:
            continue
        for title in titles:
            cells = [row_cell(p, p.rows[title], plot) for p in comparison.pairs]
            neutral = " ◇" if comparison.row_directions[title] == 0 else ""
            label = shorten(title, 36) + neutral
            lines.append(("row", group, label, cells, _height(cells, _ROW)))
        if (plot.show_average and group and comparison.aggregated) or (plot.show_average and group):
            cells = [average_cell(p.groups[group], plot) for p in comparison.pairs]
            lines.append(("average", group, f"{group} Average", cells, _height(cells, _AVERAGE)))
    return lines


def _height(cells: list[Cell], least: float) -> float:
    most = max((len(c.small) for c in cells), default=0)
    return max(least, 0.26 + 0.13 * most)


def _draw_cell(axis: Any, x: float, y: float, w: float, h: float, cell: Cell) -> None:
    from matplotlib.patches import Rectangle

    fill = mix(cell.color, cell.strength * (QUIET if cell.quiet else FULL))
    axis.add_patch(Rectangle((x, y), w, h, facecolor=fill, edgecolor="#d0d0d0", lw=0.5, zorder=1))
    if cell.hatched:
        axis.add_patch(
            Rectangle((x, y), w, h, fill=False, hatch="////", edgecolor="#b9b9b9", lw=0.0, zorder=2)
        )
    if cell.moved:
        inset = 0.03
        axis.add_patch(
            Rectangle(
                (x + inset, y + inset),
                w - 2 * inset,
                h - 2 * inset,
                fill=False,
                edgecolor="black",
                zorder=5,
                lw=1.5 if cell.sure else 0.9,
                linestyle="-" if cell.sure else (0, (3, 2)),
            )
        )
    ink = "white" if luminance(fill) < 0.5 else QUIET_TEXT if cell.quiet else "black"
    weight = "bold" if cell.moved or cell.bold else "normal"
    back = {"facecolor": fill, "edgecolor": "none", "pad": 0.8} if cell.hatched else None
    below = 0.145 + 0.125 * (len(cell.small) - 1) if cell.small else 0.0
    top = y + h / 2 - below / 2 + (0.01 if cell.small else 0.0)
    axis.text(
        x + w / 2,
        top,
        cell.text,
        fontsize=7.5 if cell.quiet else 9,
        ha="center",
        va="center",
        color=ink,
        fontweight=weight,
        zorder=8,
        bbox=back,
    )
    for i, small in enumerate(cell.small):
        size = 6.6 if len(small) * 0.058 < w else 5.4
        axis.text(
            x + w / 2,
            top + 0.145 + 0.125 * i,
            small,
            fontsize=size,
            ha="center",
            va="center",
            color=ink,
            zorder=8,
            bbox=back,
        )


def _draw_scale(axis: Any, x: float, y: float, width: float, comparison: Comparison, plot: Plot) -> None:
    from matplotlib.patches import Rectangle

    groups = [g for g in GROUPS if g in comparison.row_groups.values()]
    if plot.use_green_red:
        ramps = [("worse", WORSE), ("better", BETTER), ("neither", NEITHER)]
    else:
        ramps = [(f"less, {g}", GROUP_COLORS[g]) for g in groups] + [("more", MORE)]
    steps, step = 8, 0.1
    at = x
    for label, color in ramps:
        for i in range(steps):
            fill = mix(color, FULL * (i + 0.5) / steps)
            axis.add_patch(Rectangle((at + i * step, y), step, 0.12, facecolor=fill, lw=0))
        axis.text(at, y + 0.2, f"{label}: 0 to {plot.color_cap:g}+", fontsize=6.2, va="center")
        at += max(steps * step + 0.2, width / len(ramps) - 0.1)


def _legend_text(comparison: Comparison) -> str:
    words = [
        "Cells: mean over the capability's metrics, (±) standard deviation over them, no measure of chance."
    ]
    if comparison.has_samples:
        words.append(
            "Framed and bold: the 95 % interval excludes zero (▼ worse ▲ better ◆ neither; dashed with ?: "
            "not after "
            "correction for many rows). Quiet (faint colour, small figures): it spans zero, which proves "
            "nothing. Averages: bold or quiet likewise."
        )
    if 0 in comparison.row_directions.values():
        words.append("◇ a habit, neither better nor worse.")
    if any(r.flagged or r.incomplete for p in comparison.pairs for r in p.rows.values()):
        words.append("Hatched: missing entries, unjudged samples, or a base too low for a percent.")
    return " ".join(words)


def mix(color: str, strength: float) -> tuple[float, float, float]:
    """A colour on white: strength 0 is white, 1 the colour."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return tuple(1 - strength * (1 - c) for c in channels)


def luminance(rgb: tuple[float, float, float]) -> float:
    return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]


def canvas() -> Callable[[float, float], tuple[Any, Any]]:
    """A maker of (figure, axis) measured in inches, y downwards; without pyplot, so nothing can pop up or
    leak."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def make(width: float, height: float) -> tuple[Any, Any]:
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_xlim(0, width)
        axis.set_ylim(height, 0)
        axis.axis("off")
        return figure, axis

    return make


def save_figure(figure: Any, path: Path) -> None:
    """Writes a figure whole; the suffix is the format (pdf, png, svg). Text stays text, missing glyphs stay
    quiet."""
    import warnings

    import matplotlib

    with (
        whole_file(path, "wb") as handle,
        matplotlib.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "hatch.linewidth": 0.6}),
        warnings.catch_warnings(),
    ):
        # a model name may hold characters that the font lacks: a box in the picture, no failure
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(handle, format=path.suffix.lstrip("."), dpi=200, metadata=_metadata(path))


def _metadata(path: Path) -> dict[str, Any]:
    """No dates in files: the same comparison gives the same bytes."""
    return {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix, {})
