"""IFEval on real answers: strict and loose verdicts against a third party's run of the public checker."""

from __future__ import annotations

import json

import pytest

from evaluation.rows import make_row
from evaluation.scorers.instructions import score


@pytest.mark.parametrize("model", ["real-base", "real-adapted"])
def test_agrees_with_the_public_checker(realdata, model):
    same = total = 0
    unexplained = []
    lines = (realdata / model / "ifeval.subset.jsonl").read_text(encoding="utf-8").split("\n")
    for line in filter(str.strip, lines):
        columns = json.loads(line)
        values = score(make_row("ifeval.subset", columns))
        for mode in ("strict", "loose"):
            labels = columns["source_label"][mode]["list"]
            ours = json.loads(values[f"{mode}_list"])
            for name, kwargs, mine, theirs in zip(
                columns["gold"], columns["meta"]["kwargs"], ours, labels, strict=True
            ):
                total += 1
                same += mine == theirs
                # the public checker counts a random letter where "#" or "!" is asked for
                if mine != theirs and kwargs.get("letter") not in ("#", "!"):
                    unexplained.append((columns["id"], mode, name, mine, theirs))
    assert unexplained == []
    assert total > 600
    assert same / total >= 0.99
