"""The three tables that hold names agree with each other and with what they name."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from compute_metrics import TASK_CONFIGS
from evaluation.cli import UsageError, select_tasks, task_list, underscored
from evaluation.scoring import scorer
from evaluation.tasks import TASKS
from evaluation.taxonomy import CAPABILITIES, COLUMNS, DEFAULT_CATEGORIES, GROUPS, rows_of

ROOT = Path(__file__).resolve().parent.parent


def test_same_37_tasks_everywhere():
    assert list(TASK_CONFIGS) == list(TASKS)
    assert len(TASKS) == 37
    assert {c.task for c in COLUMNS} <= set(TASKS)


def test_121_columns_with_names_of_their_own():
    assert len(COLUMNS) == len({c.name for c in COLUMNS}) == 121
    assert all(c.direction in (-1, 0, 1) for c in COLUMNS)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c.name)
def test_column_resolves(column):
    assert column.path in {metric.path for metric in TASKS[column.task].metrics}
    assert column.capability in CAPABILITIES and column.group in GROUPS
    assert column.name.startswith(column.capability + " ")


def test_default_rows_are_the_published_19():
    titles = [t for t in rows_of() if t.split()[0] in DEFAULT_CATEGORIES]
    assert len(titles) == 19
    assert titles[0] == "C1 Knowledge" and titles[-1] == "H6 Citation Score"


@pytest.mark.parametrize("task", TASKS)
def test_scorers_resolve(task):
    entry = TASKS[task]
    assert entry.rules or entry.judged
    if entry.rules:
        assert not inspect.iscoroutinefunction(scorer(entry.rules))
    if entry.judged:
        assert inspect.iscoroutinefunction(scorer(entry.judged))
        assert entry.modes
    assert bool(entry.judged) == ("judge" in TASK_CONFIGS[task])


def test_task_names_live_in_the_tables_only():
    import tokenize

    allowed = {"tasks.py", "taxonomy.py", "compute_metrics.py", "limits.py"}
    found = []
    for path in [*ROOT.glob("*.py"), *(ROOT / "evaluation").rglob("*.py")]:
        if path.name in allowed:
            continue
        with tokenize.open(path) as source:
            for token in tokenize.generate_tokens(source.readline):
                if token.type == tokenize.STRING and token.string.strip("\"'") in TASKS:
                    found.append(f"{path.relative_to(ROOT)}, line {token.start[0]}: {token.string}")
    assert not found


def test_environments_agree():
    import yaml

    wanted = [
        line
        for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert conda["name"] == "captrack"
    assert conda["dependencies"][-1]["pip"] == wanted
    assert all(re.fullmatch(r"[\w.-]+(\[[\w-]+\])?==[\w.]+", line) for line in wanted)


SELECTIONS = {
    "boolq.subset": {"boolq.subset"},
    "boolq_subset": {"boolq.subset"},
    "ruler.*": {"ruler.4k", "ruler.32k"},
    "H1": {"ifeval.subset", "followbench.subset"},
    "h1": {"ifeval.subset", "followbench.subset"},
    "C5a": {"mmlu_pro.rephrased", "gsm8k.rephrased"},
    "H3,C5a": {"bfcl.subset", "mnms.full", "mmlu_pro.rephrased", "gsm8k.rephrased"},
    "W3": {"mtbench.turn1", "oasst1.full"},
}


@pytest.mark.parametrize("words", SELECTIONS)
def test_selection(words):
    assert set(select_tasks([words])) == SELECTIONS[words]


def test_groups_cover_all():
    assert {t for g in GROUPS for t in select_tasks([g])} == {c.task for c in COLUMNS}


def test_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"Did you mean boolq\.subset"):
        select_tasks(["boolq.subst"])


def test_list_names_every_task_with_a_column():
    assert all(c.task in task_list() for c in COLUMNS)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--output-column", "--output_column"),
        ("--a-b=c-d", "--a_b=c-d"),
        ("a-b", "a-b"),
        ("--", "--"),
        ("-x", "-x"),
    ],
)
def test_hyphens_are_underscores_in_options(given, meant):
    assert underscored(given) == meant
