"""Whether the adapted model answers as its base does, word for word: then nothing was adapted.

An adapter whose module names do not fit its base loads without an error and does nothing; a merge may have
been forgotten; two names may lead to one set of weights. Each gives a comparison full of zeros that looks
like good news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluation.comparison.pairing import keys_of
from evaluation.results import ModelResult


def same_answers(base: Mapping[str, str | None], adapted: Mapping[str, str | None]) -> tuple[int, int]:
    """(equal, compared) over the keys of both; where both said nothing there is nothing to compare.

    {"q1": "yes", "q2": ""} and {"q1": "yes", "q2": "", "q3": "no"} give (1, 1).
    """
    pairs = [(text, adapted[key]) for key, text in base.items() if key in adapted]
    told = [(b, a) for b, a in pairs if b is not None and a is not None and (b or a)]
    return sum(b == a for b, a in told), len(told)


def same_in_tasks(base: ModelResult, adapted: ModelResult, tasks: Iterable[str]) -> tuple[int, int]:
    """(equal, compared) over all samples of the tasks, from the visible answers in the sample tables."""
    counts = [same_answers(_answers(base, task), _answers(adapted, task)) for task in tasks]
    return sum(equal for equal, _ in counts), sum(compared for _, compared in counts)


def _answers(result: ModelResult, task: str) -> dict[str, str | None]:
    table = result.answers(task)
    if table is None or "answer" not in table.columns:
        return {}
    return dict(zip(keys_of(table, result.name), table.columns["answer"], strict=True))
