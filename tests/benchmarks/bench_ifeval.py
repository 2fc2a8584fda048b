"""How long IFEval takes: 1,000 answers of 300 words, all instruction kinds, strict, loose and corrected.

Run: python -m tests.benchmarks.bench_ifeval [ROWS]. Prints seconds in one process (cold: models are loaded in
it) and in two, and the ratio to a simple loop that only builds the eight loose variants of every answer and
counts their words.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from evaluation.rows import make_row
from evaluation.scorers.instructions import score
from evaluation.scorers.instructions.table import INSTRUCTIONS

STORY = """the old mill stands by a river and its wheel still turns every morning when water is high, so
people from town come to see how grain becomes flour; nobody knows who built it or why Anna's father left NASA
for it. Yet they ask, they listen and they go home with bread, honey and a story of storms that nobody wrote
down."""
WORDS = STORY.split()
KWARGS = {
    "keywords": ["mill", "bread"], "keyword": "river", "frequency": 3, "relation": "at least",
    "forbidden_words": ["castle", "dragon"], "letter": "q", "let_frequency": 9, "let_relation": "less than",
    "language": "en", "num_sentences": 20, "num_paragraphs": 4, "num_words": 300, "nth_paragraph": 2,
    "first_word": "the", "num_placeholders": 3, "postscript_marker": "P.S.", "num_bullets": 4,
    "num_highlights": 3, "section_spliter": "Section", "num_sections": 3, "prompt_to_repeat": "A mill",
    "end_phrase": "Anything else?", "capital_frequency": 5, "capital_relation": "at least",
}  # fmt: skip


def synthetic_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows with one to three instructions each and answers in paragraphs with bullets and emphasis."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        text = [draw.choice(WORDS) for _ in range(300)]
        for _ in range(12):
            text[draw.randrange(300)] = draw.choice(["\n\n", "\n* mill", "*river*", "[name]", "**Note:**"])
        ids = draw.sample(list(INSTRUCTIONS), draw.randint(1, 3))
        rows.append(
            {
                "id": str(number),
                "instruction_id_list": ids,
                "kwargs": [KWARGS] * len(ids),
                "outputs": " ".join(text),
            }
        )
    return rows


def score_columns(columns: dict[str, Any]) -> dict[str, Any]:
    return score(make_row("ifeval.subset", columns))


def baseline(columns: dict[str, Any]) -> int:
    lines = columns["outputs"].split("\n")
    parts = ["\n".join(part) for part in (lines, lines[1:], lines[:-1], lines[1:-1])]
    return sum(len(re.findall(r"\w+", text)) for part in parts for text in (part, part.replace("*", "")))


def main() -> None:
    rows = synthetic_rows(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)

    start = time.perf_counter()
    alone = [score_columns(row) for row in rows]
    one = time.perf_counter() - start

    start = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        shared = list(pool.map(score_columns, rows, chunksize=32))
    two = time.perf_counter() - start

    start = time.perf_counter()
    for row in rows:
        baseline(row)
    simple = time.perf_counter() - start

    print(f"{len(rows)} rows, {sum(len(row['outputs'].split()) for row in rows) / len(rows):.0f} words each")
    print(f"one process, cold    {one:6.2f} s   {one / simple:5.1f} times the simple loop")
    print(f"two, models loaded   {two:6.2f} s   {two / simple:5.1f} times the simple loop")
    print(f"simple loop          {simple:6.2f} s")
    print(f"identical results    {json.dumps(alone) == json.dumps(shared)}")


if __name__ == "__main__":
    main()
