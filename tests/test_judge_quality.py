"""Does a judge agree with itself, and with a person? Figures worked out by hand."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from evaluation.judge.backends import Reply
from evaluation.judge.quality import against_labels, read_labels, repeat, self_agreement
from evaluation.judge.service import JudgeFatal, JudgeOptions
from tests.test_judge_service import service_of


def test_self_agreement_by_hand():
    figures = self_agreement([[True, True, False], [True, True, None]], judged=100)
    assert figures["unanswered"] == 1
    # pairs: TT, TF, TF and TT: two of four agree
    assert figures["self_agreement"] == 0.5
    # squares about the means: 2/3 and 0, with 2 + 1 degrees of freedom
    assert figures["noise_of_one"] == pytest.approx((2 / 3 / 3) ** 0.5)
    assert figures["noise_of_mean"] == pytest.approx((2 / 3 / 3) ** 0.5 / 10)


def test_nothing_to_compare_is_undefined():
    figures = self_agreement([[True]], judged=0)
    assert (figures["self_agreement"], figures["noise_of_one"], figures["noise_of_mean"]) == (
        None,
        None,
        None,
    )


def test_a_sample_is_seeded_and_asked_past_the_cache(tmp_path):
    turns = itertools.count()

    def call(asked, limit):
        return Reply(f"JUDGMENT: {next(turns) % 2 == 0}")

    def run(golds):
        options = JudgeOptions(cache_dir=tmp_path / str(next(turns)), repeat=2, sample=3, seed=5)
        service, _ = service_of(call, options, concurrency=1)

        async def asked_and_again():
            async with service:
                judge = service.for_task("t")
                for gold in golds:
                    await judge.ask("answer_equivalence", question="", answer="2", gold=gold)
                return await repeat(service)

        return asyncio.run(asked_and_again()), [asked.prompt for _, _, asked in service.sampled()]

    golds = [str(n) for n in range(20)]
    report, sampled = run(golds)
    assert len(sampled) == 3
    assert sampled == run(golds[::-1])[1]
    figures = report["t"]["answer_equivalence"]
    assert (figures["questions"], figures["repeats"], figures["self_agreement"]) == (3, 2, 0.0)


VERDICTS = {
    ("h", "1", "r"): "compliance",
    ("h", "2", "r"): "evasion",
    ("h", "3", "r"): "compliance",
    ("f", "1", "i"): 0.5,
}


def test_against_labels_by_hand():
    labels = [
        {"task": "h", "id": "1", "label": "compliance"},
        {"task": "h", "id": "2", "label": "evasion"},
        {"task": "h", "id": "3", "label": "evasion", "mode": "r"},
        {"task": "h", "id": "9", "label": "evasion"},
        {"task": "f", "id": "1", "label": 0.8},
    ]
    report = against_labels(labels, VERDICTS)
    assert (report["h"]["labels"], report["h"]["compared"]) == (4, 3)
    assert report["h"]["agreement"] == pytest.approx(2 / 3)
    # chance: 1/3 * 2/3 + 2/3 * 1/3
    assert report["h"]["kappa"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert report["f"]["mean_difference"] == pytest.approx(-0.3)


def test_labels_that_cannot_be_read_are_named(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"task": "h", "id": 1, "label": true}\n\n{"task": "h"}\n')
    with pytest.raises(JudgeFatal, match="line 3"):
        read_labels(path)
    path.write_text('{"task": "h", "id": 1, "label": true}\n')
    assert read_labels(path) == [{"mode": "", "task": "h", "id": "1", "label": True}]
