"""The published numbers: relative deviation, rows, groups. Plain arithmetic, no samples, no files.

    deviation   100 (adapted − base) / base, in percent; none for a base of 0 or below, none for a missing
    value row         plain mean over its metrics, and the population standard deviation over them (divisor n)
    group       plain mean over its rows; its spread is sqrt(mean of squared row spreads) / sqrt(number of
    rows)

Source: Thede et al. 2026, arXiv 2603.06610. Our rules on top: no infinity, no silent zero; a missing entry
counts as a deviation of 0 (`zero`), is left out (`exclude`), or ends the run (`error`), and is always named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.comparison.model import LOW_BASE, MISSING, OK, ZERO_BASE
from evaluation.taxonomy import CAPABILITIES, COLUMN_BY_NAME, COLUMNS, DEFAULT_CATEGORIES, GROUPS

ZERO, EXCLUDE, ERROR = "zero", "exclude", "error"
MISSING_RULES = (ZERO, EXCLUDE, ERROR)
LOW_BASE_RULES = ("keep", "exclude")


class MissingError(ValueError):
    """`missing: error` and something is missing; the message names every entry."""


def relative_deviation(base: float | None, adapted: float | None) -> tuple[float | None, float | None, str]:
    """(percent, points, status). A base of 0 or below has points only: −2 → −1 is +1 point, not −50 %."""
    if base is None or adapted is None:
        return None, None, MISSING
    points = adapted - base
    if base <= 0:
        return None, points, ZERO_BASE
    return 100 * points / base, points, OK


@dataclass(frozen=True)
class RowMean:
    """A row's numbers: see RowResult. weights: column → its weight in the mean."""

    mean: float | None
    std: float | None
    share: float | None
    present: int
    weights: dict[str, float]


def row_mean(deviations: dict[str, float | None], statuses: dict[str, str], missing: str) -> RowMean:
    """Mean, spread and share in the group of a row, its metrics' deviations and statuses given by column.

    A metric without a percent (zero base) or left out for its low base is out of the mean; a missing one
    counts as 0 under `zero`. A row of which nothing is present has no mean.
    """
    present = {c: d for c, d in deviations.items() if statuses[c] == OK and d is not None}
    zeros = [c for c in deviations if statuses[c] == MISSING and missing == ZERO]
    if not present:
        return RowMean(None, None, 0.0 if zeros else None, 0, {})
    values = [*present.values(), *(0.0 for _ in zeros)]
    mean, std = mean_and_std(values)
    return RowMean(mean, std, mean, len(present), dict.fromkeys(present, 1 / len(values)))


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and population standard deviation (divisor n); values not empty."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))


def group_mean(
    shares: Sequence[float | None], stds: Sequence[float | None]
) -> tuple[float | None, float | None]:
    """Mean over rows and the published spread; rows without a share are left out, (None, None) for no
    rows."""
    kept = [s for s in shares if s is not None]
    if not kept:
        return None, None
    spreads = [s for s in stds if s is not None]
    spread = (
        math.sqrt(math.fsum(s * s for s in spreads) / len(spreads)) / math.sqrt(len(spreads))
        if spreads
        else None
    )
    return math.fsum(kept) / len(kept), spread


@dataclass(frozen=True)
class RowPlan:
    """A row to show: title, columns, and where it stands. group is "" for a title outside CAN, WILL, HOW."""

    title: str
    columns: tuple[str, ...]
    group: str
    capability: str
    direction: int


def plan_rows(
    categories: Sequence[str] | None,
    aggregate: bool = True,
    aggregation: dict[str, list[str]] | None = None,
) -> tuple[RowPlan, ...]:
    """The rows of a comparison, in the order of the tree.

    categories: capability keys and group names (a group stands for its capabilities shown by default); None
    means all. Without aggregation every column is a row. A capability named in `categories` that has
    columns without an aggregated row (such as H1_DD) shows these columns one by one.
    """
    wanted = None if categories is None else _capabilities(categories)
    named = set(categories or ())
    if aggregation is not None:
        plans = (_plan(title, tuple(columns)) for title, columns in aggregation.items())
        return tuple(p for p in plans if wanted is None or p.capability in wanted or not p.capability)
    plans: dict[str, list[str]] = {}
    for column in COLUMNS:
        if wanted is not None and column.capability not in wanted:
            continue
        if not aggregate or (not column.row and column.capability in named):
            plans[column.name] = [column.name]
        elif column.row:
            plans.setdefault(column.row, []).append(column.name)
    return tuple(_plan(title, tuple(columns)) for title, columns in plans.items())


def _capabilities(categories: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for name in categories:
        if name in GROUPS:
            found.update(c for c in DEFAULT_CATEGORIES if CAPABILITIES[c][0] == name)
        else:
            found.add(name)
    return found


def _plan(title: str, columns: tuple[str, ...]) -> RowPlan:
    known = [COLUMN_BY_NAME[c] for c in columns if c in COLUMN_BY_NAME]
    first = title.split(" ")[0]
    capability = first if first in CAPABILITIES else (known[0].capability if known else "")
    directions = {c.direction for c in known}
    return RowPlan(
        title,
        columns,
        CAPABILITIES[capability][0] if capability else "",
        capability,
        directions.pop() if len(directions) == 1 else 0,
    )


def different_names(names: Sequence[str]) -> list[str]:
    """Equal names get " (2)", " (3)" …: no pair disappears behind another."""
    taken: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name} ({number})"
        taken.add(candidate)
        result.append(candidate)
    return result


def status_with_base_quality(status: str, quality: str, low_base: str) -> str:
    """The status of a metric once its base is known to be unreliable and such bases are to be left out."""
    return LOW_BASE if status == OK and quality == "unreliable" and low_base == "exclude" else status
