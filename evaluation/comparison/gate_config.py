"""What a gate is told: the loss that is allowed, the rows that count, and what makes a row incomplete.

    gate:
      margin: 5                          # percent of the base that a row may lose
      margins: {CAN: 3, C5c: 8}          # other margins; a row's title goes before its capability and group
      rows: [CAN, H1, "W2 Coverage"]     # without it every row that has a better and a worse
      incomplete: {judged: 95, truncated: 1, paired: 95, missing: true, unjudged: true}

`gate: 5` is short for `gate: {margin: 5}`, `gate: false` is no gate. Unlike in other sections, an unknown key
is an error here: a gate with a mistyped key would let through what it should stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluation.comparison.deviations import RowPlan
from evaluation.taxonomy import COLUMN_BY_NAME, GROUPS


class GateError(ValueError):
    """A gate that cannot be used; the message names the key and the remedy."""


@dataclass(frozen=True)
class Incomplete:
    """When a row has no verdict. None or False turns a check off.

    judged: percent of a task's judgements that must be there, in each model. truncated: points by which
    the shares of cut prompts or answers may differ. paired: percent of a task's samples that both models
    must have. missing: a metric without a value. unjudged: the unjudged samples could change the verdict.
    """

    judged: float | None = 95.0
    truncated: float | None = 1.0
    paired: float | None = 95.0
    missing: bool = True
    unjudged: bool = True


@dataclass(frozen=True)
class GateConfig:
    """margin: percent, for every row that `margins` (group, capability or row title → percent) says nothing
    about. rows: groups, capabilities, row titles; None for all rows with a direction."""

    margin: float | None = None
    margins: dict[str, float] = field(default_factory=dict)
    rows: tuple[str, ...] | None = None
    incomplete: Incomplete = field(default_factory=Incomplete)


def read_gate(raw: Any) -> GateConfig | None:
    """The `gate` section of a configuration, None for `false`. Raises GateError."""
    if raw is False:
        return None
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return GateConfig(check_margin(raw, "gate"))
    if not isinstance(raw, Mapping) or not raw:
        raise GateError("gate: give a margin in percent, such as gate: {margin: 5}, or false for no gate.")
    values = _known(raw, ("margin", "margins", "rows", "incomplete"), "gate.")
    margin = values.get("margin")
    margins = values.get("margins") or {}
    if not isinstance(margins, Mapping):
        raise GateError("gate.margins: must be a mapping such as {CAN: 3, H1: 8}.")
    if margin is None and not margins:
        raise GateError(
            "gate.margin: is missing; give the loss in percent that is allowed, such as margin: 5."
        )
    rows = values.get("rows")
    if rows is not None and (not isinstance(rows, list) or not rows):
        raise GateError("gate.rows: must be a list of groups, capabilities or row titles.")
    return GateConfig(
        None if margin is None else check_margin(margin, "gate.margin"),
        {str(name): check_margin(value, f"gate.margins.{name}") for name, value in margins.items()},
        None if rows is None else tuple(str(row) for row in rows),
        _incomplete(values.get("incomplete")),
    )


def with_margin(gate: GateConfig | None, margin: float) -> GateConfig:
    """One margin for all rows with a direction; what counts as incomplete stays as the file says."""
    return GateConfig(margin, incomplete=gate.incomplete if gate else Incomplete())


def check_margin(value: Any, where: str) -> float:
    """A margin in percent, at least 0 and below 100 (nothing can lose more). Raises GateError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 100:
        raise GateError(f"{where}: a margin is a number of percent, at least 0 and below 100, not {value!r}.")
    return float(value)


def _incomplete(raw: Any) -> Incomplete:
    if raw is None:
        return Incomplete()
    if not isinstance(raw, Mapping):
        raise GateError("gate.incomplete: must be a mapping such as {judged: 95, truncated: 1}.")
    rules = Incomplete()
    for key, value in _known(raw, tuple(Incomplete.__dataclass_fields__), "gate.incomplete.").items():
        if isinstance(getattr(rules, key), bool):
            if not isinstance(value, bool):
                raise GateError(f"gate.incomplete.{key}: must be true or false, not {value!r}.")
        elif value is False:
            value = None
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 100:
            raise GateError(
                f"gate.incomplete.{key}: must be 0 to 100, or false to turn it off, not {value!r}."
            )
        rules = replace(rules, **{key: value})
    return rules


def _known(raw: Mapping[Any, Any], known: Sequence[str], where: str) -> dict[str, Any]:
    values = {str(k): v for k, v in raw.items() if not str(k).startswith(("_", "#", "//", "comment"))}
    for key in values:
        if key not in known:
            raise GateError(f"{where}{key}: unknown key. Known: {', '.join(known)}.")
    return values


def directions(columns: Sequence[str]) -> set[int]:
    """The directions of a row's metrics; a column that the taxonomy does not know counts as neutral."""
    return {COLUMN_BY_NAME[c].direction if c in COLUMN_BY_NAME else 0 for c in columns}


def gated_rows(gate: GateConfig, plans: Sequence[RowPlan]) -> dict[str, float]:
    """Row title → margin of every row that the gate decides on, in the order of `plans`.

    A row with a neutral metric is never gated. Raises GateError: a name that stands for no row shown, or for
    neutral rows only; a row without a margin; no row left.
    """
    able = [plan for plan in plans if 0 not in directions(plan.columns)]
    for key, names in (("rows", gate.rows or ()), ("margins", gate.margins)):
        for name in names:
            _check_name(name, f"gate.{key}", plans, able)
    chosen = able if gate.rows is None else [p for p in able if any(_rank(n, p) for n in gate.rows)]
    if not chosen:
        raise GateError("gate: none of the rows shown is better or worse, so there is nothing to decide.")
    margins: dict[str, float] = {}
    for plan in chosen:
        named = [(_rank(name, plan), margin) for name, margin in gate.margins.items() if _rank(name, plan)]
        # of two names that mean a row equally well the stricter margin counts
        margin = max(named, key=lambda n: (n[0], -n[1]))[1] if named else gate.margin
        if margin is None:
            raise GateError(f"gate.margin: is missing, and gate.margins says nothing about {plan.title!r}.")
        margins[plan.title] = margin
    return margins


def _rank(name: str, plan: RowPlan) -> int:
    """How exactly a name means a row: 3 its title, 2 its capability, 1 its group, 0 not at all."""
    keys = (plan.group, plan.capability, plan.title)
    return max((rank for rank, key in enumerate(keys, 1) if key and key.lower() == name.lower()), default=0)


def _check_name(name: str, where: str, plans: Sequence[RowPlan], able: Sequence[RowPlan]) -> None:
    if any(_rank(name, plan) for plan in able):
        return
    if any(_rank(name, plan) for plan in plans):
        raise GateError(f"{where}: {name!r} is neither better nor worse when it changes, it cannot be gated.")
    import difflib

    known = dict.fromkeys([*GROUPS, *(p.capability for p in able), *(p.title for p in able)])
    close = difflib.get_close_matches(name, list(known), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise GateError(f"{where}: {name!r} is no row of this comparison.{hint}")
