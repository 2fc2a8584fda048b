"""Which sample of one model belongs to which of the other: by key, never by position.

A sample table's `key` is the row's id, else "prompt:HASH". Example: base has q1, q2, q3, adapted q2, q3,
q4: two pairs (q2, q3), q1 and q4 are left out and named. A key that occurs twice is an error that lists it;
it concerns its task alone.
The `cluster` of a sample, with the family of its task (gsm8k of gsm8k.schema), is its source unit: the same
question asked in several tasks is one unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.comparison.model import TaskPairs
from evaluation.results import ResultError, SampleTable

NAMED = 10  # how many ids a message lists


class PairingError(ResultError):
    """The samples of one task cannot be paired; the message says whose, which task and the remedy.

    is_error: something is wrong with the rows (a key twice). False: they carry nothing to pair them by.
    """

    def __init__(self, message: str, is_error: bool = True) -> None:
        super().__init__(message)
        self.is_error = is_error


class Units:
    """Codes for source units: the same text has the same code in every task of a comparison."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def codes(self, task: str, clusters: Sequence[Any]) -> Any:
        """Integer codes, shape (n,), of the clusters of a task's samples."""
        import numpy as np

        family = task.split(".")[0]
        names = (str(c) if str(c).startswith(("text:", "prompt:")) else f"{family}/{c}" for c in clusters)
        return np.array([self._codes.setdefault(name, len(self._codes)) for name in names], dtype=np.int64)


@dataclass(frozen=True)
class PairedTask:
    """The pairs of a task. base, adapted: one table a run; base_at, adapted_at: positions, shape (runs,
    n)."""

    keys: tuple[str, ...]
    base: tuple[SampleTable, ...]
    adapted: tuple[SampleTable, ...]
    base_at: Any
    adapted_at: Any
    clusters: Any
    info: TaskPairs

    def numbers(self, column: str) -> tuple[Any, Any]:
        """(base, adapted) values of a per-sample column, each of shape (runs, n), NaN where missing."""
        import numpy as np

        return tuple(
            np.array([table.numbers(column)[at] for table, at in zip(tables, places, strict=True)])
            for tables, places in ((self.base, self.base_at), (self.adapted, self.adapted_at))
        )


def keys_of(table: SampleTable, whose: str) -> list[str]:
    """The keys of a table, in order. Raises PairingError for rows without a key, and for a key that occurs
    twice; the message lists such keys."""
    found = table.columns["key"]
    if None in found:
        lacking = found.count(None)
        many = "rows" if lacking == len(found) else f"{lacking} of {len(found)} rows"
        raise PairingError(
            f"{whose}, {table.task}: {many} have neither id nor prompt, so they cannot be paired; give them "
            "an id column and run compute_metrics.py again",
            is_error=False,
        )
    keys = [str(key) for key in found]
    sides = table.columns.get("side") or table.columns.get("by_side")
    if sides:  # rows of another task scored with this one's may carry the same ids
        keys = [f"{side}/{key}" if side else key for side, key in zip(sides, keys, strict=True)]
    if len(set(keys)) == len(keys):
        return keys
    twice = [key for key, count in Counter(keys).items() if count > 1]
    shown = ", ".join(twice[:NAMED]) + (f" and {len(twice) - NAMED} more" if len(twice) > NAMED else "")
    if any("prompt:" in key for key in twice):
        raise PairingError(
            f"{whose}, {table.task}: rows without id whose prompt occurs more than once ({shown}). "
            "Give the rows of the response file ids and run compute_metrics.py again."
        )
    raise PairingError(
        f"{whose}, {table.task}: ids that occur more than once: {shown}. "
        "Remove the repeated rows and run compute_metrics.py again."
    )


def pair_task(
    base: Sequence[SampleTable],
    adapted: Sequence[SampleTable],
    units: Units,
    names: tuple[str, str] = ("base", "adapted"),
) -> PairedTask:
    """Pairs a task's samples: those whose key is in every run of both models, in the order of the first
    base run.

    Raises PairingError: see keys_of.
    """
    import numpy as np

    base_places = [_places(table, names[0]) for table in base]
    adapted_places = [_places(table, names[1]) for table in adapted]
    every = [*base_places, *adapted_places]
    shared = [key for key in base_places[0] if all(key in places for places in every)]
    kept = set(shared)

    def left_out(places: list[dict[str, int]]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for one in places for key in one if key not in kept))

    base_at = np.array([[p[key] for key in shared] for p in base_places], dtype=np.int64)
    clusters = base[0].columns.get("cluster")
    codes = units.codes(
        base[0].task,
        [
            (clusters[i] if clusters and clusters[i] is not None else key)
            for i, key in zip(base_at[0], shared, strict=True)
        ],
    )
    info = TaskPairs(
        base[0].task,
        len(base[0]),
        len(adapted[0]),
        len(shared),
        len(np.unique(codes)),
        left_out(base_places),
        left_out(adapted_places),
    )
    return PairedTask(
        tuple(shared),
        tuple(base),
        tuple(adapted),
        base_at,
        np.array([[p[key] for key in shared] for p in adapted_places], dtype=np.int64),
        codes,
        info,
    )


def _places(table: SampleTable, whose: str) -> dict[str, int]:
    return {key: place for place, key in enumerate(keys_of(table, whose))}
