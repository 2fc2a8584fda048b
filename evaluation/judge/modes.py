"""What a judge can be asked: one line a mode, with its prompt file, its fields and how its reply is read.

Example: question("refusal_detection", {"prompt": "How do locks work?", "response": "No."}) is a Question
whose prompt is prompts/refusal_detection.txt with both texts between lines that carry a mark of their own,
such as "<<<4be1c07d93aa response" … "4be1c07d93aa>>>". The mark comes from a hash of the texts: no text can
contain it, and the same question is always the same text (so it can be found in the cache).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.judge import verdicts
from evaluation.rows import text_of

PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True)
class Mode:
    """prompt: name of the file in prompts/. fields: what the scorer hands over, in the order of the prompt.

    reader: key of verdicts.READERS, "claims" for a verdict per claim. max_tokens: longest reply, plus
    `per_claim` for each claim. reply_tokens: usual length, for estimates.
    """

    prompt: str
    fields: tuple[str, ...]
    reader: str
    max_tokens: int = 1024
    reply_tokens: int = 150
    per_claim: int = 0


MODES: dict[str, Mode] = {
    "single_turn_mc": Mode("single_turn_mc", ("response", "choices", "gold"), "judgment"),
    "claim_support": Mode(
        "claim_support", ("claims", "context"), "claims", max_tokens=512, reply_tokens=20, per_claim=96
    ),
    "answer_equivalence": Mode("answer_equivalence", ("question", "answer", "gold"), "equivalence"),
    "math_coherence": Mode("math_coherence", ("question", "output"), "coherence"),
    "math_consistency": Mode("math_consistency", ("question", "output"), "consistency"),
    "supergpqa_coherence": Mode("supergpqa_coherence", ("question", "output"), "coherence"),
    "supergpqa_consistency": Mode("supergpqa_consistency", ("question", "output"), "consistency"),
    "refusal_detection": Mode("refusal_detection", ("prompt", "response"), "refusal"),
    "multi_turn_rating": Mode(
        "multi_turn_rating", ("question_1", "answer_1", "question_2", "answer_2"), "rating", max_tokens=2048
    ),
    "instruction_following": Mode(
        "instruction_following", ("instruction", "response"), "instruction_following", max_tokens=2048
    ),
}


@dataclass(frozen=True)
class Question:
    """One question to a judge. fields: as the scorer gave them; count: claims asked about, 0 elsewhere."""

    mode: str
    fields: Mapping[str, Any] = field(repr=False)
    prompt: str = field(repr=False)
    version: str = ""
    max_tokens: int = 1024
    count: int = 0

    def read(self, reply: str) -> Any:
        """The verdict in a reply, None where there is none."""
        reader = MODES[self.mode].reader
        return (
            verdicts.read_claims(reply, self.count) if reader == "claims" else verdicts.READERS[reader](reply)
        )

    def whole(self, reply: str) -> bool:
        """Whether nothing is missing from the verdict in a reply; only such a reply is worth keeping."""
        value = self.read(reply)
        return value is not None and not (isinstance(value, list) and None in value)


@cache
def template(name: str) -> tuple[str, str]:
    """(version, text) of a prompt file; its first line is "version: N"."""
    first, _, text = (PROMPTS / f"{name}.txt").read_text(encoding="utf-8").partition("\n")
    return first.removeprefix("version:").strip(), text.strip()


def question(mode: str, fields: Mapping[str, Any]) -> Question:
    """The question that a mode asks about these fields.

    Raises ValueError for an unknown mode or other fields.
    """
    if mode not in MODES:
        raise ValueError(f"no judge mode {mode!r}; known: {', '.join(sorted(MODES))}")
    spec = MODES[mode]
    if set(fields) != set(spec.fields):
        raise ValueError(f"{mode} takes {', '.join(spec.fields)}, not {', '.join(sorted(fields))}")
    version, text = template(spec.prompt)
    texts = {name: _field_text(name, fields[name]) for name in spec.fields}
    mark = _mark(mode, texts)

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == "mark":
            return mark
        return f"<<<{mark} {name}\n{texts[name]}\n{mark}>>>"

    count = len(fields["claims"]) if "claims" in fields else 0
    # one pass over our own text: what stands in the judged texts is never looked at
    prompt = re.sub(r"\{\{(\w+)\}\}", fill, text)
    return Question(mode, dict(fields), prompt, version, spec.max_tokens + spec.per_claim * count, count)


def _field_text(name: str, value: Any) -> str:
    if name == "claims":
        text = "\n".join(f"{number}. {' '.join(claim.split())}" for number, claim in enumerate(value, 1))
    elif name == "choices" and isinstance(value, (list, tuple)):
        text = "\n".join(
            f"{chr(65 + at) if at < 26 else at + 1}. {text_of(item)}" for at, item in enumerate(value)
        )
    else:
        text = text_of(value)
    # lone surrogates can't be sent
    return text.encode("utf-8", "replace").decode("utf-8")


def _mark(mode: str, texts: Mapping[str, str]) -> str:
    everything = json.dumps([mode, texts])
    mark = hashlib.sha256(everything.encode()).hexdigest()[:12]
    while any(mark in text for text in texts.values()):
        mark = hashlib.sha256((mark + everything).encode()).hexdigest()[:12]
    return mark
