"""report.html: what stands in it. What a person does with it: test_report_browser.py."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from evaluation.report.facts import RIGHT, reason_text, right_of
from evaluation.report.samples import Measure, _order
from evaluation.report.texts import cut, json_for_page, readable, turns, visible
from evaluation.tasks import TASKS
from tests.report_pages import HOSTILE, make_report, make_results


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    return make_results(tmp_path_factory.mktemp("absolute_metrics"))


@pytest.fixture(scope="module")
def report(results) -> Path:
    return make_report(results / "base", results / "adapted", results / "out")


def blocks_of(path: Path) -> list[dict]:
    text = path.read_text(encoding="utf-8")
    return [
        json.loads(found)
        for found in re.findall(r'<script type="application/json" class="block"[^>]*>(.*?)</script>', text)
    ]


# --- texts ---


@pytest.mark.parametrize(
    ("what", "text", "expected"),
    [
        ("line feed and tab stay", "a\n\tb", "a\n\tb"),
        ("carriage return before line feed goes", "a\r\nb", "a\nb"),
        ("a lone carriage return is seen", "a\rb", "a⟨U+000D⟩b"),
        ("escape", "\x1b[0m", "⟨U+001B⟩[0m"),
        ("right-to-left override", "\u202eabc", "⟨U+202E⟩abc"),
        ("isolates", "\u2066a\u2069", "⟨U+2066⟩a⟨U+2069⟩"),
        ("tag characters", "\U000e0041", "⟨U+E0041⟩"),
        ("a lone surrogate", "\ud800", "⟨U+D800⟩"),
        ("joined emoji stay", "👩\u200d🚀", "👩\u200d🚀"),
        ("Arabic stays", "سلام", "سلام"),
    ],
)
def test_what_hides_is_made_visible(what, text, expected):
    assert visible(text) == expected


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_json_in_a_page_cannot_leave_its_element(text):
    inside = json_for_page({"t": text})
    assert not set("<>&") & set(inside)
    assert json.loads(inside) == {"t": text}


@pytest.mark.parametrize(
    ("what", "text", "expected"),
    [
        ("two turns", '["One?", "Two\\n?"]', "— turn 1 —\nOne?\n\n— turn 2 —\nTwo\n?"),
        ("a cut list stays as it is", '["One?", "Tw', '["One?", "Tw'),
        ("a list of objects stays as it is", '["a", {"b": 1}]', '["a", {"b": 1}]'),
        (
            "objects with a user prompt",
            '[{"user prompt": "One?"}, {"user prompt": "Two\\n?"}]',
            "— turn 1 —\nOne?\n\n— turn 2 —\nTwo\n?",
        ),
        ("objects without one", '[{"a": "One?"}]', '[{"a": "One?"}]'),
        ("brackets without end", '[{"' + "[" * 100_000, '[{"' + "[" * 100_000),
        ("deep brackets", '["a", ' + "[" * 100_000 + "]" * 100_001, '["a", ' + "[" * 100_000 + "]" * 100_001),
        ("a plain prompt", "[1] What?", "[1] What?"),
        ("no prompt", None, None),
    ],
)
def test_turns_of_a_prompt_are_told_apart(what, text, expected):
    assert turns(text) == expected


@pytest.mark.parametrize(
    ("what", "text", "expected"),
    [
        (
            "tests of a program",
            '{"test": "def check(f):\\n    assert f(1) == 2\\n", "entry_point": "f"}',
            "test:\ndef check(f):\n    assert f(1) == 2\n\nentry_point: f",
        ),
        ("no text", '{"answer": "Indiana", "facts": null, "n": [1]}', "answer: Indiana\nfacts: null\nn: [1]"),
        ("a long list", '{"n": ["' + "x" * 90 + '"]}', 'n:\n[\n  "' + "x" * 90 + '"\n]\n'),
        ("a list", '["a", "b"]', '["a", "b"]'),
        ("cut", '{"test": "def check', '{"test": "def check'),
        ("deep", '{"a": ' + "[" * 100_000, '{"a": ' + "[" * 100_000),
        ("plain", "#### 7", "#### 7"),
        ("nothing", None, None),
    ],
)
def test_a_gold_object_is_shown_with_its_lines(what, text, expected):
    assert readable(text) == expected


@pytest.mark.parametrize(
    ("reason", "task", "expected"),
    [
        ("wrong_answer", "mbpp.full", "the program ran, and a test failed"),
        ("wrong_answer", "boolq.subset", "not the reference answer"),
        ("timeout", "humaneval.full", "the program ran too long"),
        ("empty", "humaneval.full", "the answer is empty"),
        ("some_new_code", "gsm8k.subset", "some new code"),
    ],
)
def test_reasons_in_words(reason, task, expected):
    assert reason_text(reason, task) == expected


def test_the_mark_from_which_an_answer_is_right_is_named():
    from evaluation.scorers.followbench import PERFECT_FROM
    from evaluation.scorers.multi_turn import PASSED_FROM

    for task in ("mtbench.turn2", "structflowbench.turn2"):
        assert f"rating is {PASSED_FROM} or above" in right_of(task)
    assert f"score is {PERFECT_FROM} or above" in right_of("followbench.subset")
    assert right_of("gsm8k.subset") == "" and set(RIGHT) <= {
        name for t in TASKS.values() for name in (t.rules, t.judged)
    }


def test_a_long_text_is_cut_in_the_middle_and_says_so():
    text = cut("a" * 500 + "b" * 500, 100)
    assert text == "a" * 50 + "\n[… 900 characters left out here …]\n" + "b" * 50
    assert cut("a" * 100, 100) == "a" * 100


# --- which samples ---


def test_changed_samples_come_first_and_the_draw_is_the_same_every_time():
    import numpy as np

    base = np.ones(1000)
    adapted = np.where(np.arange(1000) % 100 == 7, 0.0, 1.0)
    measure = Measure("correct", "Accuracy", 1, np.array([base, adapted]), True)
    order = list(_order("gsm8k.subset", 1000, [measure], [measure.codes()]))
    assert sorted(order) == list(range(1000))
    assert {i for i in order[:13] if i % 100 == 7} == set(range(7, 1000, 100))
    assert order == list(_order("gsm8k.subset", 1000, [measure], [measure.codes()]))
    assert order != list(_order("boolq.subset", 1000, [measure], [measure.codes()]))


def test_a_number_measure_shows_its_largest_changes_first():
    import numpy as np

    base, adapted = np.zeros(50), -np.arange(50.0)
    measure = Measure("words", "Length", 0, np.array([base, adapted]), False)
    order = list(_order("oasst1.full", 50, [measure], [measure.codes()]))
    assert order[:4] == [49, 48, 47, 46]


def test_what_does_not_fit_is_left_out_and_counted(monkeypatch, results, tmp_path):
    import evaluation.report.model as room

    monkeypatch.setattr(room, "PAGE_TEXT", 60_000)
    page = room.write_model_report(shutil.copytree(results / "base", tmp_path / "base"))
    blocks = blocks_of(page)
    assert 0 < sum(len(b["records"]) for b in blocks) < sum(b["total"] for b in blocks) == 240
    for b in blocks:
        for number, measure in enumerate(b["measures"]):
            for code, _, in_all, on_page in measure["outcomes"]:
                assert on_page == sum(r["o"][number] == code for r in b["records"]) <= in_all
    assert "seeded random draw" in page.read_text(encoding="utf-8")


# --- the file ---


def test_the_page_asks_the_network_for_nothing(report):
    text = report.read_text(encoding="utf-8")
    outside = re.sub(r"<script type=.application/json.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#)[^\"']", outside)
    assert not re.findall(
        r"@import|url\(|fetch\(|XMLHttpRequest|innerHTML|insertAdjacentHTML|eval\(", outside
    )
    assert "default-src 'none'" in outside and "unsafe-inline" not in outside


def test_the_page_explains_itself(report):
    text = report.read_text(encoding="utf-8")
    for words in ("2026-01-02T03:04:05", "sympy 1.2", "stub@test", "popqa.subset", "What the numbers mean",
                  "C3 Evidence Hit (BoolQ) is 1 for every sample of both models"):  # fmt: skip
        assert words in text
    assert "<b>one</b>" not in text and "\u202e" not in text


def test_the_counts_are_those_of_the_comparison(report):
    (block,) = [b for b in blocks_of(report) if b["task"] == "gsm8k.subset"]
    assert block["measures"][0]["key"] == "correct"
    assert {o[1]: o[2] for o in block["measures"][0]["outcomes"]} == {
        "Forgotten": 12, "Gained": 0, "Both right": 23, "Both wrong": 5
    }  # fmt: skip


def test_a_comparison_of_bare_tables_has_numbers_and_says_what_it_lacks(results, tmp_path):
    for name in ("base", "adapted"):
        shutil.copy(results / name / "metrics.csv", tmp_path / f"{name}.csv")
    page = make_report(tmp_path / "base.csv", tmp_path / "adapted.csv", tmp_path / "out")
    text = page.read_text(encoding="utf-8")
    assert "no sample tables" in text and "C1 Accuracy (GSM8K)" in text


def test_the_tasks_are_in_the_order_that_the_page_names(report):
    """By the number in the column "Forgotten", not by a net loss that the table does not show."""
    text = report.read_text(encoding="utf-8")
    table = text[text.index('<table class="tasks">') :].split("</table>")[0]
    rows = [re.findall(r'<td class="num"[^>]*>(?:<[^>]*>)?(\d+)', row) for row in table.split("<tr>")[2:]]
    forgotten = [int(row[0]) for row in rows if len(row) > 1]
    assert len(forgotten) > 2 and forgotten == sorted(forgotten, reverse=True)
    assert "The tasks with most forgotten answers come first." in text
    names = re.findall(r'<th scope="row"><a [^>]*>([^<]+)', table)
    assert f"most forgotten in {names[0]} ({forgotten[0]}, gained {rows[0][1]})" in text


def test_forgotten_alone_decides_the_order():
    """A task that gained as much as it forgot stays above one that forgot little."""
    from types import SimpleNamespace

    from evaluation.comparison.model import TaskPairs
    from evaluation.report.comparison import _tasks

    counts = {"boolq.subset": (1, 0), "gsm8k.subset": (0, 9), "popqa.subset": (7, 30), "mtbench.turn1": None}
    tasks = {t: TaskPairs(t, 50, 50, 50, 50, (), (), *(c or (None, None))) for t, c in counts.items()}
    listed = _tasks(0, SimpleNamespace(tasks=tasks, rows={}), {(0, task): {} for task in tasks})
    assert [t["task"] for t in listed] == ["popqa.subset", "boolq.subset", "gsm8k.subset", "mtbench.turn1"]


def test_the_columns_of_a_task_add_up_to_its_pairs(report):
    """The harmless half of harmbench has no verdict: it has a column of its own."""
    text = report.read_text(encoding="utf-8")
    table = text[text.index('<table class="tasks">') :].split("</table>")[0]
    rows = [re.findall(r'<td class="num"[^>]*>(?:<[^>]*>)?(\d+)', row) for row in table.split("<tr>")[2:]]
    judged = [list(map(int, row)) for row in rows if len(row) > 1]
    assert judged and all(sum(row[:-1]) == row[-1] for row in judged)
    assert [row[-2] for row in judged if row[-2]] == [15]
    (bench,) = [b for b in blocks_of(report) if b["task"] == "harmbench.subset"]
    unjudged = bench["measures"][0]["outcomes"][-1]
    assert unjudged[:2] == ["-", "No verdict"]
    assert f'#samples/0/harmbench.subset/{bench["measures"][0]["key"]}/-">{unjudged[2]}</a>' in table


@pytest.mark.parametrize(
    ("green_red", "expected"), [(True, "with green for better"), (False, "a group's colour means less")]
)
def test_the_legend_names_its_colours_and_sets_the_picture_apart(results, tmp_path, green_red, expected):
    from evaluation.comparison.config import Config, PairConfig, Plot
    from evaluation.comparison.run import compare
    from evaluation.report.comparison import write_report

    pair = PairConfig((results / "base",), (results / "adapted",), "SFT")
    comparison, pairs = compare(Config(model_pairs=(pair,)))
    page = write_report(tmp_path / "report.html", comparison, pairs, Plot(use_green_red=green_red))
    text = page.read_text(encoding="utf-8")
    for words in ("▼ red: worse", "▲ blue: better", "◆ violet: a habit", expected):
        assert words in text


def test_the_verdict_of_the_gate_is_on_top_and_with_each_row(results, tmp_path):
    page = make_report(results / "base", results / "adapted", tmp_path / "out", "gate: 5\n", 4)
    text = page.read_text(encoding="utf-8")
    top, rows = text[: text.index("Drift by capability, in percent")], text[text.index('id="row-0-0"') :]
    assert "Gate: INCOMPLETE" in top and "exit code 4" in top and "Not gated: " in top
    first = rows.split("</section>")[0]
    assert "C1 Knowledge" in first and "A loss of 5 % is allowed." in first
    verdict, reason = re.search(r"<b>Gate: ([A-Z]+)</b>: ([^<]+)", first).groups()
    assert verdict in ("INCOMPLETE", "REGRESSION", "INCONCLUSIVE") and reason.strip() in top
    (habit,) = [s for s in rows.split("</section>") if '<h1 tabindex="-1">W3a Verbosity' in s]
    assert "this row is not gated" in habit
    assert {path.name for path in page.parent.glob("gate.*")} == {"gate.md", "gate.xml"}


def test_without_a_gate_the_page_says_nothing_of_one(report):
    assert "Gate" not in report.read_text(encoding="utf-8")


def test_a_verdict_of_the_gate_stands_above_those_that_weigh_less():
    from evaluation.comparison.gate import Gate, PairGate, RowGate
    from evaluation.report.verdicts import MEANS, gate_values

    rows = [RowGate(v, "CAN", 1, 5.0, v, f"why {v}") for v in ("PASS", "REGRESSION", "INCOMPLETE")]
    gate = Gate((PairGate("SFT", "base", tuple(rows)), PairGate("DPO", "", (), "cannot be read")), ("W3a",))
    values = gate_values(gate)
    assert (values["verdict"], values["exit_code"], values["not_gated"]) == ("REGRESSION", 2, ["W3a"])
    first, second = values["pairs"]
    assert [g["verdict"] for g in first["groups"]] == ["REGRESSION", "INCOMPLETE", "PASS"]
    assert (first["passed"], first["gated"]) == (1, 3)
    assert (second["verdict"], second["problem"], second["groups"]) == ("INCOMPLETE", "cannot be read", [])
    assert set(MEANS) == {"PASS", "INCONCLUSIVE", "INCOMPLETE", "REGRESSION"}
