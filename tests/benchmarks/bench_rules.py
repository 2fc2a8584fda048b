"""Scores 20,000 synthetic rows of the rule-only tasks: time, rows a second, the ratio to bare JSON loading.

    python tests/benchmarks/bench_rules.py [ROWS [WORKERS]]

Code and symbolic mathematics are left out: programs and formulas take what they take. Reading the files is
included. Example output: 20,000 rows, 1 workers of 2 cores: 7.74 s, 2,583 rows/s, 119.3 times bare JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evaluation.engine import TaskRun, WorkerPool, run_rules, sample_table
from evaluation.responses import ResponseFile
from evaluation.tasks import TASKS

WORDS = [
    *("river", "stone", "lamp", "north", "seven", "however", "market", "paper", "might", "winter", "basalt"),
    *("harbour", "cloud", "Bergen", "Oslo", "answer", "table", "likely", "second", "window", "village"),
]


def prose(random_: random.Random, sentences: int = 12) -> str:
    """About 130 words in sentences and paragraphs, as models write."""
    parts = []
    for number in range(sentences):
        words = random_.choices(WORDS, k=random_.randint(6, 16))
        words[random_.randrange(len(words))] = str(random_.randint(2, 9999))
        parts.append(" ".join(words).capitalize() + (".\n\n" if number % 4 == 3 else ". "))
    return "".join(parts)


PASSAGE = prose(random.Random(2), 60)
SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
TITLES = ["Ostrel Bay", "Ida Verhoeven", "Marrow Island", "Karst"]
FACTS = {"answer": "Bergen", "supporting_facts": {"title": TITLES[:2]}, "context_titles": TITLES}
IDS = ["punctuation:no_comma", "length_constraints:number_words", "detectable_format:number_bullet_lists"]
KWARGS = [{}, {"num_words": 50, "relation": "at least"}, {"num_bullets": 3}]
CHOICES = ["basalt", "quartz", "marble", "slate"]

_CHOICE = (lambda text, n: f"{text}Answer: {'ABCD'[n % 4]}", {"gold": "B", "choices": CHOICES})
_NUMBER = (lambda text, n: f"{text}\n#### {n % 50:,}", {"gold": "3*4=12\n#### 12"})
_NEEDLE = (lambda text, n: f"{text}The number is {4_000_000 + n}.", {"gold": "4000012"})
_CALLS = (
    lambda text, n: (
        f"{text}\n```json\n{json.dumps({'name': 'book', 'arguments': {'city': 'Oslo', 'n': n}})}\n```"
    ),
    {},
)
_SCHEMAS = (lambda text, n: f"{text}\n```json\n{json.dumps({'answer': n})}\n```", {"schema": SCHEMA})
_OPEN = (lambda text, n: f"{text}It is not Oslo, it is Bergen.", {"gold": ["Bergen", "Björgvin"]})
_STYLE = (lambda text, n: text, {})
_CITED = (lambda text, n: f"{text}It is Bergen [Ostrel Bay] [Ida Verhoeven].", {"gold": FACTS})
# task: (answer from prose and number, the row's further columns)
MAKERS: dict[str, tuple[Callable[[str, int], str], dict[str, Any]]] = {
    "mmlu_pro.subset": _CHOICE,
    "winogrande.subset": _CHOICE,
    "truthfulqa.full": _CHOICE,
    "gsm8k.subset": _NUMBER,
    "mgsm.subset": (_NUMBER[0], {"gold": 12, "lang": "de"}),
    "popqa.subset": _OPEN,
    "xtreme.subset": _OPEN,
    "hotpotqa.subset": (_OPEN[0], {"gold": "Bergen", "ctx": PASSAGE}),
    "boolq.subset": (lambda text, n: f"{text}Answer: Yes", {"gold": True, "ctx": PASSAGE[:1200]}),
    "gsm8k.schema": _SCHEMAS,
    "mmlu_pro.table_schema": _SCHEMAS,
    "hotpotqa.citation": _CITED,
    "qasper.citation": _CITED,
    "bfcl.subset": (_CALLS[0], {"gold": ["book(city='Oslo', n=12)"]}),
    "mnms.full": (_CALLS[0], {"gold": [{"id": 0, "name": "book", "args": {"city": "Oslo", "n": 12}}]}),
    "ruler.4k": _NEEDLE,
    "ruler.32k": _NEEDLE,
    "mtbench.turn1": _STYLE,
    "oasst1.full": _STYLE,
    "ifeval.subset": (_STYLE[0], {"instruction_id_list": IDS, "kwargs": KWARGS}),
}  # fmt: skip


def write_rows(folder: Path, task: str, rows: int) -> Path:
    """A response file of `rows` rows of a task, always the same ones."""
    random_ = random.Random(task)
    make, columns = MAKERS[task]
    path = folder / f"{task}.jsonl"
    with open(path, "w", encoding="utf-8") as handle:
        for number in range(rows):
            row = {
                "id": f"{number}",
                "prompt": f"Question {number}?",
                "outputs": make(prose(random_), number),
            }
            handle.write(json.dumps({**row, **columns}) + "\n")
    return path


def main(rows: int = 20_000, workers: int = 2) -> int:
    with tempfile.TemporaryDirectory() as folder:
        each = rows // len(MAKERS)
        files = {task: write_rows(Path(folder), task, each) for task in MAKERS}
        started = time.perf_counter()
        for path in files.values():
            with open(path, encoding="utf-8") as handle:
                for line in handle:
                    json.loads(line)
        bare = time.perf_counter() - started
        pool = WorkerPool(workers)
        seconds = {}
        started = time.perf_counter()
        for task, path in files.items():
            run = TaskRun(ResponseFile(task, path, "jsonl", needs=TASKS[task].needs))
            run_rules(run, pool)
            assert not run.problem and not run.errors, (run.problem, run.errors[:1])
            sample_table(task, [run])
            seconds[task] = run.seconds
        took = time.perf_counter() - started
        pool.close()
    for task, value in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"{task:<24} {each / value:>9,.0f} rows/s")
    done = each * len(MAKERS)
    rate = f"{done / took:,.0f} rows/s, {took / bare:.1f} times bare JSON ({bare:.2f} s)"
    print(f"{done:,} rows, {workers} workers of {os.cpu_count()} cores: {took:.2f} s, {rate}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
