"""Two more pictures: every row with its interval (forest plot), and each capability along a checkpoint
series.

Forest plot: one panel a model, at most four beside each other; a filled mark where the interval excludes
zero, an open one where it spans zero; ◆ for drift that is neither better nor worse. Series: one small panel
a capability, x the training step, the band the 95 % interval.
"""

from __future__ import annotations

import math
import textwrap
from typing import Any

from evaluation.comparison.heatmap import (
    BETTER,
    GROUP_COLORS,
    NEITHER,
    WORSE,
)
from evaluation.comparison.model import Comparison, PairResult
from evaluation.comparison.words import footer, shorten

PANELS = 4
QUIET = "#8a8a8a"


def _figure(width: float, height: float) -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def draw_forest(comparison: Comparison, color_cap: float) -> Any | None:
    """All rows with their intervals; None where no row has one."""
    rows = [r for p in comparison.pairs for r in p.rows.values() if r.has_interval]
    if not rows:
        return None
    count = len(comparison.pairs)
    across = min(count, PANELS)
    down = math.ceil(count / PANELS)
    titles = comparison.row_titles
    # extreme intervals are cut at the edge and get an arrow
    farthest = max(max(abs(r.interval_low), min(abs(r.interval_high), 1e6)) for r in rows)
    limit = min(max(5.0, farthest * 1.08), 4 * color_cap)
    high = 0.2 * len(titles) + 1.0
    width = 2.5 + 2.6 * across if across > 1 else 7.2
    foot = textwrap.wrap(" ".join(footer(comparison)), int(width * 17))
    bottom = 0.15 * len(foot) + 0.65
    figure = _figure(width, high * down + bottom + 0.4)
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    for i, axis in enumerate(grid.flat):
        if i >= count:
            axis.axis("off")
            continue
        _forest_panel(axis, comparison, comparison.pairs[i], limit)
    total = high * down + bottom + 0.4
    figure.subplots_adjust(
        left=2.35 / width,
        right=1 - 0.2 / width,
        top=1 - 0.65 / total,
        bottom=(bottom + 0.1) / total,
        wspace=0.08,
        hspace=0.9 / high,
    )
    figure.text(
        0.15 / width,
        1 - 0.2 / total,
        "Deviation from the base with 95 % intervals (%)",
        fontsize=11,
        fontweight="bold",
        va="center",
    )
    for i, line in enumerate(foot):
        figure.text(
            0.15 / width,
            (0.15 * (len(foot) - i)) / total,
            line,
            fontsize=6.8,
            color="#333333",
            parse_math=False,
        )
    return figure


def _forest_panel(axis: Any, comparison: Comparison, pair: PairResult, limit: float) -> None:
    titles = comparison.row_titles
    axis.axvline(0, color="black", lw=0.8, zorder=1)
    last_group = None
    for y, title in enumerate(titles):
        row = pair.rows[title]
        if last_group is not None and row.group != last_group:
            axis.axhline(y - 0.5, color="#bbbbbb", lw=0.7)
        last_group = row.group
        if row.mean is None:
            axis.text(0, y, " n/a", fontsize=6.5, va="center", color=QUIET, style="italic")
            continue
        sure = row.moved
        center = row.paired_mean if row.paired_mean is not None else row.mean
        if row.direction == 0:
            color, mark = NEITHER, "D"
        else:
            worse = center * row.direction < 0
            color, mark = (WORSE, "v") if worse else (BETTER, "^")
        if not sure:
            color = QUIET
        if row.has_interval:
            low, high = max(row.interval_low, -limit), min(row.interval_high, limit)
            axis.plot([low, high], [y, y], color=color, lw=1.8 if sure else 1.0, zorder=2)
            for end, cut, arrow in (
                (-limit, row.interval_low < -limit, "<"),
                (limit, row.interval_high > limit, ">"),
            ):
                if cut:
                    axis.plot([end], [y], marker=arrow, color=color, ms=4, zorder=3, clip_on=False)
        if abs(center) <= limit:
            axis.plot([center], [y], marker=mark, ms=5, color=color, mfc=color if sure else "white", zorder=4)
    axis.set_xlim(-limit, limit)
    axis.set_ylim(len(titles) - 0.5, -0.5)
    axis.set_yticks(range(len(titles)), [shorten(t, 34) for t in titles], fontsize=7.5)
    for label, title in zip(axis.get_yticklabels(), titles, strict=False):
        label.set_color(GROUP_COLORS[comparison.row_groups[title]])
        label.set_parse_math(False)
    axis.tick_params(axis="x", labelsize=7)
    axis.locator_params(axis="x", nbins=5, prune="both")
    axis.set_title(
        "\n".join(textwrap.wrap(shorten(pair.name, 54), 30)),
        fontsize=8.5,
        fontweight="bold",
        parse_math=False,
    )
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.tick_params(axis="y", length=0)


def draw_series(comparison: Comparison) -> Any | None:
    """Small multiples of a checkpoint series; None where the adapted models have no steps."""
    if not comparison.is_series:
        return None
    titles = comparison.row_titles
    across = min(4, len(titles))
    down = math.ceil(len(titles) / across)
    width = 2.55 * across + 0.5
    foot = textwrap.wrap(" ".join(footer(comparison)), int(width * 17))
    bottom = 0.15 * len(foot) + 0.65
    height = 1.55 * down + bottom + 0.5
    figure = _figure(width, height)
    grid = figure.subplots(down, across, squeeze=False, sharex=True)
    steps = [p.step for p in comparison.pairs]
    for i, axis in enumerate(grid.flat):
        if i >= len(titles):
            axis.axis("off")
            continue
        title = titles[i]
        color = GROUP_COLORS[comparison.row_groups[title]]
        rows = [p.rows[title] for p in comparison.pairs]
        nan = math.nan
        axis.axhline(0, color="black", lw=0.7)
        lows = [r.interval_low if r.has_interval else nan for r in rows]
        highs = [r.interval_high if r.has_interval else nan for r in rows]
        axis.fill_between(steps, lows, highs, color=color, alpha=0.22, lw=0)
        axis.plot(steps, [nan if r.mean is None else r.mean for r in rows], color=color, lw=1.5)
        for step, row in zip(steps, rows, strict=True):
            if row.mean is not None:
                face = color if row.moved else "white"
                axis.plot([step], [row.mean], marker="o", ms=4, color=color, mfc=face)
        neutral = " ◇" if comparison.row_directions[title] == 0 else ""
        axis.set_title(shorten(title, 30) + neutral, fontsize=8, color=color, loc="left", parse_math=False)
        axis.tick_params(labelsize=6.5)
        axis.margins(x=0.08)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
        if i + across >= len(titles):
            axis.tick_params(labelbottom=True)
            axis.set_xlabel("step", fontsize=7)
    figure.subplots_adjust(
        left=0.5 / width,
        right=1 - 0.15 / width,
        top=1 - 0.65 / height,
        bottom=(bottom + 0.15) / height,
        wspace=0.28,
        hspace=0.55,
    )
    figure.text(
        0.15 / width,
        1 - 0.2 / height,
        "Deviation from the base along the series (%), band: 95 % interval, filled: excludes zero",
        fontsize=10,
        fontweight="bold",
        va="center",
    )
    for i, line in enumerate(foot):
        figure.text(
            0.15 / width,
            (0.15 * (len(foot) - i)) / height,
            line,
            fontsize=6.8,
            color="#333333",
            parse_math=False,
        )
    return figure
