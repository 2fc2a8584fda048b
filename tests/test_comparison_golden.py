"""The published comparison and the compare cases: our deviations, spreads and averages against recorded
ones."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from support import GOLDEN

from evaluation.comparison.analysis import Rules, compare_pair, make_comparison
from evaluation.comparison.config import load_config
from evaluation.comparison.deviations import plan_rows
from evaluation.comparison.model import Comparison
from evaluation.comparison.run import compare
from evaluation.comparison.words import number
from evaluation.results import ModelResult
from evaluation.taxonomy import DEFAULT_CATEGORIES

PUBLISHED = json.loads(
    (GOLDEN / "published_comparison" / "published_comparison.json").read_text(encoding="utf-8")
)
FOLDER = GOLDEN / "instructions_style_tools_turns_judge_comparison"
CASES = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))["compare"]


def published(categories: Any) -> Comparison:
    plans = plan_rows(categories)
    models = {name: ModelResult(Path(name), name, values) for name, values in PUBLISHED["models"].items()}
    pairs = [
        compare_pair(name, [models[base]], [models[adapted]], plans, Rules())
        for base, adapted, name in PUBLISHED["pairs"]
    ]
    return make_comparison(pairs, plans, Rules(), True, list(models.values()))


@pytest.fixture(scope="module")
def default() -> Comparison:
    return published(DEFAULT_CATEGORIES)


@pytest.mark.parametrize("name", list(PUBLISHED["expected_relative"]))
def test_published_cells_and_spreads(default, name):
    pair = next(p for p in default.pairs if p.name == name)
    expected = PUBLISHED["expected_relative"][name]
    assert list(pair.rows) == list(expected)
    assert len(expected) == 19
    for title, value in expected.items():
        assert pair.rows[title].mean == pytest.approx(value, abs=1e-9), title
        assert pair.rows[title].std == pytest.approx(PUBLISHED["expected_std"][name][title], abs=1e-9), title


@pytest.mark.parametrize("group", list(PUBLISHED["expected_averages"]))
@pytest.mark.parametrize("name", list(PUBLISHED["expected_relative"]))
def test_published_averages(default, group, name):
    expected = PUBLISHED["expected_averages"][group][name]
    found = next(p for p in default.pairs if p.name == name).groups[group]
    assert found.mean == pytest.approx(expected["mean"], abs=1e-9)
    assert found.std == pytest.approx(expected["std"], abs=1e-9)


@pytest.mark.parametrize("name", list(PUBLISHED["heatmap_cells"]))
def test_published_cell_texts(default, name):
    """What the heatmap prints; a negative zero is printed as 0.0 and a minus is a true one."""
    pair = next(p for p in default.pairs if p.name == name)
    texts = PUBLISHED["heatmap_cells"][name]
    texts = list(texts.values()) if isinstance(texts, dict) else texts
    for label, text in zip(PUBLISHED["heatmap_columns"], texts, strict=True):
        if label.endswith(" Average"):
            found = pair.groups[label.removesuffix(" Average")]
        else:
            found = pair.rows[label]
        shown = f"{number(found.mean)}\n(±{number(found.std)})".replace("\N{MINUS SIGN}", "-")
        assert shown == ("0.0" + text[4:] if text.startswith("-0.0") else text), label


def test_published_without_a_filter_keeps_w2_overreach_apart_from_its_rate():
    """Only W2 columns enter W2 Overreach (the published code mixed in the W2b rates of the same title)."""
    everything = published(None)
    assert len(everything.row_titles) == 37
    recorded = PUBLISHED["expected_relative_when_categories_is_null"]
    for pair in everything.pairs:
        for title, value in recorded[pair.name].items():
            if title == "W2 Overreach":
                assert pair.rows[title].mean == pytest.approx(
                    PUBLISHED["expected_relative"][pair.name][title], abs=1e-9
                )
            else:
                assert pair.rows[title].mean == pytest.approx(value, abs=1e-9), title


def run_case(name: str, missing: str = "exclude") -> Comparison:
    from dataclasses import replace

    folder = FOLDER / "compare" / name
    here = Path.cwd()
    try:
        os.chdir(folder.parent)  # paths in the file are tried beside the file
        comparison, _ = compare(replace(load_config(folder / "config.yaml"), missing=missing))
    finally:
        os.chdir(here)
    return comparison


def expected_values(case: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """pair → row → mean, std, n: the corrected values where there are some, else the recorded ones."""
    if "values" in case.get("right", {}):
        return case["right"]["values"]
    reference = case["reference"]
    return {
        pair: {
            title: {"mean": mean, "std": reference.get("std", {}).get(pair, {}).get(title)}
            for title, mean in rows.items()
        }
        for pair, rows in reference["relative"].items()
    }


@pytest.mark.parametrize("name", [c for c in CASES if c != "c09_same_name_twice"])
def test_compare_case(name):
    comparison = run_case(name)
    expected = expected_values(CASES[name])
    assert {p.name for p in comparison.pairs} == set(expected)
    for pair in comparison.pairs:
        have = {title for title, row in pair.rows.items() if row.present or row.zero_base}
        assert have == set(expected[pair.name])
        for title, values in expected[pair.name].items():
            row = pair.rows[title]
            for field, found in (("mean", row.mean), ("std", row.std), ("n", row.present)):
                if field not in values or (field == "std" and not comparison.aggregated):
                    continue
                if values[field] is None:
                    assert found is None, (title, field)
                else:
                    assert found == pytest.approx(values[field], abs=1e-9), (title, field)


def test_equal_names_are_two_rows():
    comparison = run_case("c09_same_name_twice")
    assert [p.name for p in comparison.pairs] == ["Same", "Same (2)"]
    recorded = CASES["c09_same_name_twice"]["reference"]["relative"]["Same"]
    for title, value in recorded.items():  # the published code kept the last pair
        assert comparison.pairs[1].rows[title].mean == pytest.approx(value, abs=1e-9)
        assert comparison.pairs[0].rows[title].mean != pytest.approx(value, abs=1e-3)


def test_a_missing_column_counts_as_zero_by_default_and_is_named():
    comparison = run_case("c05_adapted_lacks_column", missing="zero")
    row = comparison.pairs[0].rows["H3 Tool Use"]
    excluded = run_case("c05_adapted_lacks_column").pairs[0].rows["H3 Tool Use"]
    assert row.mean == pytest.approx(excluded.mean * 3 / 4)
    assert row.missing == ("H3 Arguments (MNMS)",)
    assert any("counted as 0" in note and "H3 Arguments (MNMS)" in note for note in row.notes)


def test_no_infinity_and_no_silent_zero_from_zero_bases():
    pair = run_case("c03_zero_base").pairs[0]
    assert pair.rows["C4 Faithfulness"].mean is None
    assert set(pair.rows["C4 Faithfulness"].zero_base) == {
        "C4 Faithfulness (RAGTruth)",
        "C4 Accuracy (TruthfulQA)",
    }
    assert all(m.deviation is None or math.isfinite(m.deviation) for m in pair.metrics.values())
    assert pair.groups["CAN"].mean == pytest.approx(20.0)
