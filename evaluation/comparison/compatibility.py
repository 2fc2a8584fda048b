"""Were two results made the same way? A difference in the making would be read as a difference of the models.

Compared where both sides have recorded it: definitions, row limit, demo judge; per task judge, served judge
and prompt versions; of the inference data set revision, limit, system prompt, chat template, sampling but
its seed, context window and the share of prompts that were cut. A result of ours against a bare CSV is a
difference too: nobody knows how the other was made. Example: Difference("judge of ragtruth.subset",
"gpt-4o-mini@openai", "gpt-4o@openai").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from evaluation.aggregate import take
from evaluation.comparison.model import Difference
from evaluation.results import ModelResult

SHOWN = 60  # characters of a value in a message
CUT_SHARES = 0.01  # shares of cut prompts may differ by one point

_RUN = (("definitions_version", "definitions version"), ("demo_judge", "demo judge"))
_TASK = (
    ("judge", "judge"),
    ("judge_served_model", "served judge model"),
    ("prompt_versions", "judge prompts"),
)
# where the manifest of run_inference.py says what decided an answer; the seed is left out, so that repeated
# runs of one model can be compared
_INFERENCE = (
    ("dataset/name", "data set"),
    ("dataset/revision", "data set revision"),
    ("settings/system_prompt", "system prompt"),
    ("system_role", "system role"),
    ("settings/template", "chat template"),
    ("settings/chat_template_kwargs", "chat template arguments"),
    ("settings/temperature", "temperature"),
    ("settings/top_p", "top_p"),
    ("settings/top_k", "top_k"),
    ("settings/max_tokens", "max_tokens"),
    ("settings/max_model_len", "context window"),
    ("settings/vllm_kwargs", "engine arguments"),
    ("settings/vllm", "vLLM version"),
)
_INFERENCE_TASK = (("rows", "rows generated (--limit)"), ("data_sha256", "rows of the data set"))


def differences(base: ModelResult, adapted: ModelResult) -> tuple[Difference, ...]:
    """Everything in which two results are known to have been made differently."""
    if base.run is None and adapted.run is None:
        return ()
    if base.run is None or adapted.run is None:
        kinds = [
            "a bare metrics CSV" if r.run is None else "a result of this toolkit" for r in (base, adapted)
        ]
        return (Difference("kind of result", *kinds),)
    return tuple(_of_runs(base.run, adapted.run))


def _of_runs(base: dict[str, Any], adapted: dict[str, Any]) -> Iterator[Difference]:
    yield from _compare(base, adapted, _RUN)
    tasks_b, tasks_a = base.get("tasks") or {}, adapted.get("tasks") or {}
    for task in tasks_b:
        if task in tasks_a:
            for difference in _compare(tasks_b[task] or {}, tasks_a[task] or {}, _TASK):
                yield Difference(f"{difference.what} of {task}", difference.base, difference.adapted)
    made_b, made_a = base.get("inference"), adapted.get("inference")
    if isinstance(made_b, dict) and isinstance(made_a, dict):
        yield from _of_inference(made_b, made_a)


def _of_inference(base: dict[str, Any], adapted: dict[str, Any]) -> Iterator[Difference]:
    flat_b, flat_a = (
        {path: take(made, path) for path, _ in _INFERENCE if take(made, path) is not None}
        for made in (base, adapted)
    )
    yield from _compare(flat_b, flat_a, _INFERENCE)
    tasks_b, tasks_a = base.get("tasks") or {}, adapted.get("tasks") or {}
    for task in tasks_b:
        if task in tasks_a:
            for found in _compare(tasks_b[task], tasks_a[task], _INFERENCE_TASK):
                yield Difference(f"{found.what} of {task}", found.base, found.adapted)
            shares = [_cut_share(tasks[task]) for tasks in (tasks_b, tasks_a)]
            if None not in shares and abs(shares[0] - shares[1]) > CUT_SHARES:
                yield Difference(f"prompts cut in {task}", f"{shares[0]:.1%}", f"{shares[1]:.1%}")


def _cut_share(entry: dict[str, Any]) -> float | None:
    cut, rows = entry.get("truncated_prompts"), entry.get("rows")
    return cut / rows if isinstance(cut, int) and rows else None


def _compare(
    base: dict[str, Any], adapted: dict[str, Any], keys: Sequence[tuple[str, str]]
) -> Iterator[Difference]:
    for key, name in keys:
        if key not in base or key not in adapted:
            continue
        b, a = base[key], adapted[key]
        if b != a and b is not None and a is not None:
            yield Difference(name, _short(b), _short(a))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if value is None:
        text = "none"
    text = " ".join(text.split()) or "(empty)"
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def between_runs(runs: Sequence[ModelResult]) -> tuple[Difference, ...]:
    """Differences between the runs of one model."""
    found = [
        Difference(f"{d.what} between runs of {runs[0].name}", d.base, d.adapted)
        for other in runs[1:]
        for d in differences(runs[0], other)
    ]
    return tuple(dict.fromkeys(found))


def refusal(name: str, found: Sequence[Difference]) -> str:
    """The message for a pair that is not compared."""
    lines = "\n".join(f"  - {difference}" for difference in found)
    return (
        f"{name}: the two results were made differently:\n{lines}\n"
        "  Make them the same way, or pass --allow_mismatch (the output is then stamped)."
    )
