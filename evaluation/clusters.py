"""Which samples are not independent: the same question in several turns, languages or wordings, or one
passage.

Standard errors count clusters, not samples (specs: the id without its task suffix where ids have one; else
the hash of the context or the prompt). Example: mtbench-81-t1 and mtbench-81-t2 are both of the cluster
"mtbench:mtbench-81".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import Any

from evaluation.rows import Row, is_missing, text_of

_SUFFIX = re.compile(
    r"[-_./#:](?:t\d|turn_?\d|l\d|level_?\d|rephrased|schema|table_schema|subset|core|full|citation|variant_?\d+)$",
    re.IGNORECASE,
)
# only where the task has languages: elsewhere "item-aa", "item-ab" are two items
_LANGUAGE = re.compile(r"[-_./#:][a-z]{2}$", re.IGNORECASE)
_WITH_LANGUAGES = ("mgsm.", "xtreme.")
# a text that so large a share of a task's rows has in common is no source but a template
_TOO_COMMON = 0.2


def text_hash(value: Any) -> str:
    """16 hex digits of a text's or a JSON value's SHA-256."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def prompt_of(row: Row) -> Any:
    """What was asked: the prompt, else the formatted prompt; None where neither is there."""
    prompt = row.get("prompt")
    return row.get("formatted_prompt") if is_missing(prompt) or prompt == "" else prompt


def pair_key(row: Row) -> str | None:
    """What pairs a sample with the same sample of another model: its id, else the hash of its prompt."""
    if row.id is not None:
        return row.id
    prompt = prompt_of(row)
    return None if prompt is None else f"prompt:{text_hash(prompt)}"


def source_candidates(row: Row) -> tuple[str | None, str | None]:
    """(cluster by id, cluster by text): the id's stem where it has a task suffix; the context's or prompt's
    hash."""
    family = text_of(row.get("family")) or row.task.split(".")[0]
    stem = _SUFFIX.sub("", row.id) if row.id else None
    if stem and row.task.startswith(_WITH_LANGUAGES):
        stem = _LANGUAGE.sub("", stem)
    by_id = f"{family}:{stem}" if stem and stem != row.id else None
    text = row.get("ctx") or prompt_of(row)
    return by_id, f"text:{text_hash(text)}" if text else None


def cluster_keys(candidates: list[tuple[str | None, str | None]], keys: list[str | None]) -> list[str]:
    """The cluster of each of a task's samples, given what source_candidates and pair_key say of them."""
    shared = Counter(text for _, text in candidates if text)
    limit = max(3, _TOO_COMMON * len(candidates))
    result = []
    for number, ((by_id, by_text), key) in enumerate(zip(candidates, keys, strict=True)):
        if by_id:
            result.append(by_id)
        elif by_text and shared[by_text] <= limit:
            result.append(by_text)
        else:
            result.append(key if key is not None else f"row:{number}")
    return result
