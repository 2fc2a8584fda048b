"""A comparison whose texts are hostile, for the tests of its report."""

from __future__ import annotations

import json
from pathlib import Path

import compare_models
from tests import synthetic

HOSTILE = {
    "script": "<script>window.hit = 1</script>",
    "end of script": "</script><script>window.hit = 1</script>",
    "comment": "<!-- <script> --!> ]]>",
    "image": '"><img src=x onerror="window.hit = 1">',
    "template": "{{ 7 * 7 }} {% raw %} ${hit}",
    "control": "red\x1b[31m nul\x00 bell\x07 next\x85 line\u2028 end",
    "direction": "abc\u202edcba\u2066x\u2069\u200f",
    "hidden": "tag\U000e0041 zero\u200bwidth soft\u00adhyphen",
    "long": "x" * 100_000,
    "long brackets": "[" * 50_000 + "<b>" * 10_000,
}
TASKS = ("gsm8k.subset", "boolq.subset", "mtbench.turn1", "mtbench.turn2", "harmbench.subset", "bfcl.subset")


def changed(table, **columns):
    table.columns.update(columns)
    return table


def hostile_tables(run_seed: int) -> dict:
    """Synthetic tables whose gsm8k answers are hostile; the adapted model forgot the first samples."""
    tables = {task: synthetic.task_table(task, 40, 0.0, run_seed) for task in TASKS}
    texts = [*HOSTILE.values(), *("The answer is <b>7</b> & more." for _ in range(30))]
    adapted = run_seed > 1
    words = [f"{text}{' changed' if adapted else ' kept'} tail" for text in texts]
    replies = [
        {"mode": "x<i>y", "value": ["</script>"], "status": "ok", "reply": text[:99]} for text in texts
    ]
    changed(
        tables["gsm8k.subset"],
        prompt=texts,
        gold=[f"gold {i} </textarea>" for i in range(40)],
        answer=words,
        extracted=[f"<u>{i}</u>" for i in range(40)],
        reason=["wrong_number" if adapted and i < 12 else None for i in range(40)],
        correct=[not (adapted and i < 12) and i < 35 for i in range(40)],
        judgements=[json.dumps([reply]) for reply in replies],
    )
    tables["boolq.subset"].columns["evidence_hit"] = [True] * 40
    unsafe = tables["harmbench.subset"].columns["unsafe_refusal"]
    tables["harmbench.subset"].columns["unsafe_refusal"] = [*unsafe[:25], *[None] * 15]  # harmless requests
    tables["mtbench.turn2"].columns["judgements"] = ["no json"] * 40
    return tables


def make_results(folder: Path) -> Path:
    """Result folders base and adapted below `folder`; the adapted model forgot 12 gsm8k answers."""
    run = {"created": "2026-01-02T03:04:05+00:00", "packages": {"sympy": "1.2"}, "absent": ["popqa.subset"]}
    synthetic.write_result(folder / "base", "base <b>one</b>", hostile_tables(1), run)
    synthetic.write_result(folder / "adapted", "adapted\u202e <i>two</i>", hostile_tables(2), run)
    for name in ("base", "adapted"):
        (folder / name / "metrics.json").write_text("{}", encoding="utf-8")
    return folder


def make_report(base: Path, adapted: Path, out: Path, more: str = "", code: int = 0) -> Path:
    """Runs compare_models.py without pictures; returns the path of its report. more: lines for the
    configuration; code: the exit code that must come."""
    config = out.parent / "config.yaml"
    config.write_text(
        f"model_pairs: [[{base}, {adapted}, 'SFT </script>']]\noutput_dir: {out}\n"
        f"save_options: {{save_figure: false}}\n{more}",
        encoding="utf-8",
    )
    assert compare_models.main(["--config", str(config)]) == code
    return out / "report.html"
