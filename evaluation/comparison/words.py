"""Numbers and sentences that pictures, tables and summary share.

number(-0.04) = "0.0"    span(-21.2, -11.4) = "[−21, −11]"    mark_of(-3.0, 1) = "▼"
"""

from __future__ import annotations

from evaluation.comparison.model import Comparison, MetricResult, RowResult

MINUS = "\N{MINUS SIGN}"


def number(value: float, digits: int = 1) -> str:
    """One decimal, a true minus, never "-0.0"; very large values without decimals."""
    if abs(value) >= 1000:
        digits = 0
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(value: float) -> str:
    """number() with a plus where it is not below zero: "+3.0", "−0.5", "+0.0"."""
    text = number(value)
    return text if text.startswith(MINUS) else f"+{text}"


def span(low: float, high: float) -> str:
    """[−21, −11]; more decimals where the interval is narrow, or where an end would be rounded to zero."""
    digits = 0 if max(abs(low), min(abs(high), 1e9)) >= 10 else 1
    while digits < 2 and any(end != 0 and abs(end) < 1e9 and round(end, digits) == 0 for end in (low, high)):
        digits += 1
    top = "∞" if high == float("inf") else number(high, digits)
    return f"[{number(low, digits)}, {top}]"


def mark_of(mean: float, direction: int) -> str:
    """▼ worse, ▲ better, ◆ a habit that drifted."""
    return "◆" if direction == 0 else "▼" if mean * direction < 0 else "▲"


def footer(comparison: Comparison) -> list[str]:
    """What stands below every picture: how it was made, and what must not be overlooked."""
    bases = sorted({p.base_name for p in comparison.pairs})
    lines = [f"Base: {', '.join(shorten(b, 60) for b in bases)}."]
    runs = {(p.base_runs, p.adapted_runs) for p in comparison.pairs}
    if runs != {(1, 1)}:
        lines[0] += " Means of several runs; their spread is part of the intervals."
    counts = [t.shared for p in comparison.pairs for t in p.tasks.values()]
    if counts:
        total = {sum(t.shared for t in p.tasks.values()) for p in comparison.pairs}
        many = f"{min(total):,}" if len(total) == 1 else f"{min(total):,}–{max(total):,}"
        tasks = sorted({len(p.tasks) for p in comparison.pairs})
        lines.append(
            f"Samples paired: {many} a model in {'–'.join(map(str, tasks[:1] + tasks[1:][-1:]))} tasks."
        )
    else:
        lines.append("No per-sample results: deviations only, nothing says whether they are real.")
    if comparison.judges:
        lines.append(f"Judge: {', '.join(comparison.judges)}.")
    if comparison.definitions:
        lines.append(f"Definitions {', '.join(comparison.definitions)}.")
    lines += stamps(comparison)
    return lines


def stamps(comparison: Comparison) -> list[str]:
    """Words that limit what the numbers may be used for."""
    found = []
    if comparison.limits:
        found.append(f"First {min(comparison.limits)} samples of each task only.")
    if comparison.demo_judge:
        found.append("Offline demo judge, not for reporting.")
    if comparison.mismatched:
        what = sorted({d.what for p in comparison.pairs for d in p.differences})
        shown = ", ".join(what[:4]) + (f" and {len(what) - 4} more" if len(what) > 4 else "")
        found.append(f"MADE DIFFERENTLY, compared all the same: {shown}.")
    for pair in comparison.pairs:
        if pair.nothing_in_common:
            found.append(
                f"{shorten(pair.name, 60)}: NOTHING IN COMMON, no metric has a value for both models."
            )
        elif pair.nothing_paired:
            tasks = len(pair.tasks) + len(pair.unpaired)
            found.append(
                f"{shorten(pair.name, 60)}: NO SAMPLE PAIRED in any of {tasks} shared tasks: "
                "deviations only, nothing says whether they are real."
            )
        if pair.without_effect:
            found.append(
                f"{shorten(pair.name, 60)} HARDLY DIFFERS: {pair.same[0]:,} of {pair.same[1]:,} answers are"
                " the base's word for word. An adapter without effect, or the same weights twice?"
            )
    missing = {c for p in comparison.pairs for r in p.rows.values() for c in r.missing}
    if missing:
        shown = {c for p in comparison.pairs for r in p.rows.values() for c in r.columns}
        many = f"{len(missing)} of {len(shown)} metrics missing"
        found.append(
            f"{many}, counted as 0: averages are diluted; --missing exclude leaves them out. Hatched."
            if comparison.missing_rule == "zero"
            else f"{many}, left out. Hatched."
        )
    return found


def present_words(row: RowResult) -> list[str]:
    """["4 of 6 metrics", "2 counted as 0"]: what a row's mean rests on. Left out are missing entries under
    `exclude`, bases of 0 and, where asked for, low bases."""
    words = [f"{row.present} of {row.expected} metrics"]
    if row.zeros:
        words.append(f"{row.zeros} counted as 0")
    left_out = row.expected - row.present - row.zeros
    if left_out and row.mean is not None:
        words.append(f"{left_out} left out")
    return words


def low_base_lines(comparison: Comparison) -> list[str]:
    """One line an adapted model whose averages rest on bases too low for a percent: what they would be
    without."""
    lines = []
    for pair in comparison.pairs:
        groups = [
            f"{g.key} {number(g.mean)} % (without those in {', '.join(g.low_rows)}: "
            + ("n/a)" if g.mean_without_low is None else f"{number(g.mean_without_low)} %)")
            for g in pair.groups.values()
            if g.mean is not None and g.low_rows and _reads_otherwise(g.mean, g.mean_without_low)
        ]
        if groups:
            name = f"{shorten(pair.name, 60)}: " if len(comparison.pairs) > 1 else ""
            lines.append(f"{name}Averages that rest on bases too low for a percent: {'; '.join(groups)}.")
    return lines


def _reads_otherwise(mean: float, without: float | None) -> bool:
    return without is None or number(mean) != number(without)


def shorten(name: str, width: int) -> str:
    """A name cut in the middle."""
    name = " ".join(name.split())
    return name if len(name) <= width else name[: width // 2 - 1] + "…" + name[-(width - width // 2) :]


def points_text(metric: MetricResult) -> str:
    """The difference in the metric's own unit, shares in points of percent, with its paired interval."""
    if metric.points is None:
        return "n/a"
    scale, unit = (100, "points") if metric.unit == "share" else (1, metric.unit.split(" ")[0])
    text = f"{signed(scale * metric.points)} {unit}"
    if metric.points_low is not None:
        text += f" [{signed(scale * metric.points_low)}, {signed(scale * metric.points_high)}]"
    return text
