"""README.md and docs/ say what tables and parsers say: tasks, capabilities, columns, options; links work."""

from __future__ import annotations

import argparse
import re
import shlex

import pytest
from support import ROOT

import compare_models
import compute_metrics
import run_captrack
import run_inference
from evaluation.tasks import TASKS
from evaluation.taxonomy import CAPABILITIES, COLUMNS

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
PAGES = {"README.md": README, **DOCS}
PICTURES = (".png", ".svg")


def _options(parser: argparse.ArgumentParser) -> set[str]:
    return {option for option in parser._option_string_actions if option.startswith("--")}


OPTIONS = {
    "compute_metrics.py": _options(compute_metrics.build_parser()),
    "compare_models.py": _options(compare_models.build_parser()),
    "run_inference.py": _options(run_inference.build_parser()),
    "run_captrack.py": _options(run_captrack.build_parser()),
}
EVERY_OPTION = set().union(*OPTIONS.values())
# it hands on what the others know
OPTIONS["run_captrack.py"] = EVERY_OPTION


def commands(text: str) -> list[list[str]]:
    """The words of every `python SCRIPT …` line in an indented block, continued lines joined, remarks cut."""
    joined = re.sub(r"\\\n\s+", "", text)
    lines = re.findall(r"^ {4}(python \w+\.py.*)$", joined, re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines]


def cells(text: str, key: str) -> list[str]:
    """The cells of the table line that begins with a key."""
    lines = [line for line in text.split("\n") if line.startswith(f"| {key} |")]
    assert len(lines) == 1, f"{len(lines)} table lines begin with {key}"
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", lines[0])[1:-1]]


@pytest.mark.parametrize("key", CAPABILITIES)
def test_taxonomy_line_of_a_capability_is_that_of_the_tables(key: str) -> None:
    _, name, what = cells(README, key)
    assert name == CAPABILITIES[key][1]
    shown = set()
    for part in what.split("; "):
        tasks, metrics = part.split(": ")
        shown |= {(task, metric) for task in tasks.split(", ") for metric in metrics.split(", ")}
    assert shown == {(c.task, c.path.split("/")[-1]) for c in COLUMNS if c.capability == key}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_documented(task: str) -> None:
    _, scorers, metrics, columns, differs = cells(DOCS["metrics.md"], task)
    for name in filter(None, (TASKS[task].rules, TASKS[task].judged)):
        module, function = name.split(":")
        assert re.search(rf"`{module}(?:/__init__)?\.py:{function}`", scorers)
    assert differs
    as_other = re.fullmatch(r"as (\S+)", metrics)
    if as_other:
        assert columns == metrics
        assert TASKS[as_other[1]].metrics == TASKS[task].metrics
    elif task not in ("ifeval.subset", "harmbench.subset"):  # these two name their columns by a pattern
        assert metrics == ", ".join(f"`{m.path}`" for m in TASKS[task].metrics)
        assert set(re.findall(r"`(\w+)`", columns)) == {
            name for m in TASKS[task].metrics for name in (m.column, m.per) if name
        }


@pytest.mark.parametrize("task", TASKS)
def test_needs_of_a_task_stand_in_the_table_of_response_files(task: str) -> None:
    lines = [line for line in DOCS["response_files.md"].split("\n") if line.startswith("|")]
    table = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    needs = [needs for tasks, needs, *_ in table if task in [t.strip() for t in tasks.split(",")]]
    assert len(needs) == 1
    assert tuple(n.strip() for n in needs[0].split(",") if n.strip() != "–") == TASKS[task].needs


@pytest.mark.parametrize(
    "words", [pytest.param(c, id=" ".join(c)) for text in PAGES.values() for c in commands(text)]
)
def test_options_of_a_command_exist(words: list[str]) -> None:
    script, *arguments = words
    given = {word.split("=")[0] for word in arguments if word.startswith("--")}
    assert given <= OPTIONS[script]


def test_every_script_has_a_command() -> None:
    assert {words[0] for words in commands(README)} == set(OPTIONS)


@pytest.mark.parametrize("page", PAGES)
def test_options_in_the_text_exist(page: str) -> None:
    ours = set(re.findall(r"`(--[a-z_]+)", PAGES[page])) - {"--nnodes"}  # vllm serve's
    assert ours <= EVERY_OPTION


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    folder = ROOT if page == "README.md" else ROOT / "docs"
    links = re.findall(r"\]\(([^)#]+)\)", PAGES[page])
    gone = [link for link in links if "://" not in link and not (folder / link).exists()]
    assert [link for link in gone if not link.endswith(PICTURES)] == []


def test_default_judges_are_those_of_the_table() -> None:
    judges = {config["judge"] for config in compute_metrics.TASK_CONFIGS.values() if config}
    assert judges
    assert all(judge in README for judge in judges)
