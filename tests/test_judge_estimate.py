"""An estimate counts what would be sent, and an unknown price is unknown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support import ROOT, golden_rows

from evaluation.judge.backends import Reply
from evaluation.judge.estimate import EstimateService, cost, estimate_lines, read_prices, tokens
from evaluation.judge.service import DEFAULTS, JudgeFatal, JudgeOptions
from evaluation.scoring import score_row
from tests.test_judge_service import ROWS, ask_all, service_of

SPEC = "gpt-4o-mini@openai"


def count(rows, options: JudgeOptions = DEFAULTS, spec: str = SPEC):
    with EstimateService({task: spec for task, _ in rows}, options) as service:

        async def run():
            for task, row in rows:
                await score_row(task, row, service.for_task(task))

        asyncio.run(run())
        return service.estimates()


def test_counts_after_rules_and_duplicates():
    rows = [
        ("followbench.subset", row)
        for row in golden_rows("instructions_style_tools_turns_judge_comparison/followbench.subset.jsonl")
    ]
    (estimate,) = count([*rows, *rows[:3], ("followbench.subset", {"prompt": "Sing.", "outputs": ""})])
    assert (estimate.calls, estimate.repeated, estimate.cached) == (len(rows), 3, 0)
    assert estimate.prompt_tokens > 200 * len(rows)


def test_what_is_in_the_cache_is_free(tmp_path):
    service, _ = service_of(lambda asked, limit: Reply("JUDGMENT: True"), JudgeOptions(cache_dir=tmp_path))
    ask_all(service, ["a", "b"])
    with EstimateService({"t": "m@openai"}, JudgeOptions(cache_dir=tmp_path)) as counting:

        async def run():
            for gold in "abc":
                await counting.for_task("t").ask("answer_equivalence", question="", answer="2", gold=gold)

        asyncio.run(run())
        (estimate,) = counting.estimates()
    assert (estimate.calls, estimate.cached) == (1, 2)


def test_the_count_is_what_a_run_then_sends():
    calls = []
    tasks = {task for task, _ in ROWS}
    rows = [(task, row) for task, row in ROWS if task in tasks]
    expected = sum(e.calls for e in count(rows))
    from tests.test_judge_service import builtin, scores

    scores(lambda asked, limit: calls.append(1) or builtin.call(asked, limit))
    assert len(calls) == expected


def test_unknown_prices(tmp_path):
    (estimate,) = count(ROWS[:3], spec="mystery@openai")
    prices = read_prices(ROOT / "configs" / "judge_prices.yaml")
    assert cost(estimate, prices) is None
    lines = estimate_lines([estimate], prices)
    assert "unknown" in lines[1]
    assert lines[-1].endswith("at least $0.00")
    (estimate,) = count(ROWS[:3])
    assert cost(estimate, prices) > 0
    assert cost(estimate, {**prices, SPEC: (1e6, 0.0)}) == estimate.prompt_tokens


def test_a_table_that_cannot_be_read(tmp_path):
    path = Path(tmp_path / "prices.yaml")
    path.write_text("gpt-4o: 3\n")
    with pytest.raises(JudgeFatal, match="a line reads"):
        read_prices(path)
    assert read_prices(tmp_path / "none.yaml") == {}


def test_tokens():
    assert tokens("abcd" * 100) == 101
    assert tokens("港" * 100) == 101
