#!/usr/bin/env python3
"""Computes every metric of every task for one model: response files in, absolute_metrics/MODEL_NAME/ out.

    python compute_metrics.py --model_name demo-base
    python compute_metrics.py --model_name my-model --tasks H1 'gsm8k.*'
    python compute_metrics.py --model_name my-model --judge gpt-4o-mini@openai

Responses are model_responses/MODEL_NAME/TASK_NAME.(jsonl|json|csv|parquet). What comes out is described in
evaluation/results.py, how each task is scored in evaluation/tasks.py.
"""

from __future__ import annotations

import sys

from evaluation.cli import (
    DONE,
    ERROR,
    Parser,
    UsageError,
    fail,
    select_tasks,
    set_up_logging,
    start,
    task_list,
)

# What a person may set for a task: its judge, as "<model_name>@<backend>" (openai, azure_openai, gemini,
# bedrock, builtin). Only what is set here differs from the task's definition in evaluation/tasks.py, so an
# entry can be replaced: TASK_CONFIGS["ragtruth.subset"] = {"judge": "gemini-2.5-flash@gemini"}.
TASK_CONFIGS: dict[str, dict[str, str]] = {
    "mmlu_pro.subset": {"judge": "gpt-4o-mini@openai"},
    "mmlu_pro.rephrased": {"judge": "gpt-4o-mini@openai"},
    "mmlu_pro.schema": {},
    "mmlu_pro.table_schema": {},
    "gsm8k.subset": {},
    "gsm8k.rephrased": {},
    "gsm8k.schema": {},
    "gsm8k.table_schema": {},
    "mgsm.subset": {},
    "humaneval.full": {},
    "math.subset": {"judge": "gpt-4o-mini@openai"},
    "supergpqa.subset": {"judge": "gpt-4o-mini@openai"},
    "hotpotqa.subset": {},
    "hotpotqa.citation": {},
    "boolq.subset": {},
    "ragtruth.subset": {"judge": "gpt-4o-mini@openai"},
    "winogrande.subset": {"judge": "gpt-4o-mini@openai"},
    "hellaswag.subset": {"judge": "gpt-4o-mini@openai"},
    "ifeval.subset": {},
    "bfcl.subset": {},
    "ruler.4k": {},
    "ruler.32k": {},
    "mtbench.turn1": {},
    "mtbench.turn2": {"judge": "gpt-4o-mini@openai"},
    "harmbench.subset": {"judge": "gpt-4.1-mini@openai"},
    "popqa.subset": {},
    "livemathbench.full": {"judge": "gpt-4o-mini@openai"},
    "mbpp.full": {},
    "truthfulqa.full": {"judge": "gpt-4o-mini@openai"},
    "xtreme.subset": {},
    "eli5.subset": {"judge": "gpt-4o-mini@openai"},
    "oasst1.full": {},
    "followbench.subset": {"judge": "gpt-4o-mini@openai"},
    "mnms.full": {},
    "structflowbench.turn2": {"judge": "gpt-4o-mini@openai"},
    "longbenchv2.full": {"judge": "gpt-4o-mini@openai"},
    "qasper.citation": {},
}


def build_parser() -> Parser:
    parser = Parser(prog="compute_metrics.py", description=__doc__)
    add = parser.add_argument
    add("--model_name", help="the model's folder below --data_dir, and below --output_dir")
    add("--data_dir", default="model_responses", metavar="DIR", help="default: %(default)s")
    add("--output_dir", default="absolute_metrics", metavar="DIR", help="default: %(default)s")
    add(
        "--output_column",
        default="outputs",
        metavar="COL",
        help="the responses' column (default: %(default)s)",
    )
    add(
        "--gold_column",
        default="gold",
        metavar="COL",
        help="the reference answers' column (default: %(default)s)",
    )
    add(
        "--file_format", choices=("jsonl", "json", "csv", "parquet"), help="look at files of this format only"
    )
    add("--task_column", metavar="COL", help="one file holds several tasks; this column names them")
    add(
        "--tasks",
        nargs="+",
        metavar="NAME",
        help="names, wildcards, capabilities (H1), groups (WILL); 'list' shows them (default: all there)",
    )
    add(
        "--allow_unsafe_code", action="store_true", help="run model-written code even where no fence holds it"
    )
    add("--check", action="store_true", help="only check judge and sandbox for the tasks, score nothing")
    add("--report", action="store_true", help="also write report.html, a page of this model's samples")
    judge = parser.add_argument_group("judge")
    judge.add_argument("--judge", metavar="SPEC", help="one judge for all tasks, such as gpt-4o-mini@openai")
    judge.add_argument(
        "--estimate", action="store_true", help="count the calls and tokens to come; ask nothing"
    )
    judge.add_argument("--max_judge_calls", type=int, metavar="N", help="end judging after N requests")
    judge.add_argument("--judge_concurrency", type=int, default=64, metavar="N", help="default: %(default)s")
    judge.add_argument("--judge_cache", metavar="DIR", help="default: .judge_cache in --output_dir")
    judge.add_argument("--no_judge_cache", action="store_true", help="neither read nor keep verdicts")
    judge.add_argument(
        "--judge_repeat", type=int, metavar="N", help="ask a seeded sample N times more: agreement"
    )
    judge.add_argument(
        "--judge_labels", metavar="FILE", help="a person's verdicts to compare the judge's with"
    )
    add("--workers", type=int, metavar="N", help="processes that score by rules (default: one a core)")
    add(
        "--log_level",
        default="INFO",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        help="default: %(default)s",
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Runs the script; returns its exit code: 0 done, 1 nothing done or a usage error, 4 done in part."""
    options = build_parser().parse_args(arguments)
    try:
        if options.tasks == ["list"]:
            print(task_list())
            return DONE
        if not options.model_name and not options.check:
            raise UsageError("--model_name is missing: name the folder of responses to score.")
        for name in ("workers", "judge_concurrency", "max_judge_calls", "judge_repeat"):
            if getattr(options, name) is not None and getattr(options, name) < 1:
                raise UsageError(f"--{name}: at least 1 is needed.")
        tasks = select_tasks(options.tasks)
        set_up_logging(options.log_level)
        from evaluation.metrics import check, compute

        run = check if options.check else compute
        return run(options, tasks, TASK_CONFIGS)
    except UsageError as error:
        return fail("compute_metrics.py", str(error))
    except KeyboardInterrupt:
        print("\ncompute_metrics.py: interrupted. Run it again to go on.", file=sys.stderr)
        return ERROR


if __name__ == "__main__":
    start(main)
