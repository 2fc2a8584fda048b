#!/usr/bin/env python3
"""End to end: inference, metrics and comparison of a base model with adapted ones.

    python run_captrack.py --base demo-base --adapted demo-adapted
    python run_captrack.py --base org/model --adapted ./sft ./dpo \\
        --inference_python ~/vllm/bin/python --limit 20
    python run_captrack.py --base http://127.0.0.1:8000/v1 \\
        --adapted http://127.0.0.1:8001/v1#my-model

Calls run_inference.py, compute_metrics.py and compare_models.py as processes. Their options may be given
here as well; what none of the three but run_inference.py knows goes there.
"""

from __future__ import annotations

import sys

from evaluation.cli import ERROR, Parser, UsageError, fail, select_tasks, set_up_logging, start

STAGES = ("inference", "metrics", "compare")


def build_parser() -> Parser:
    parser = Parser(prog="run_captrack.py", description=__doc__)
    add = parser.add_argument
    add(
        "--base",
        required=True,
        metavar="MODEL",
        help="hub id, checkpoint folder, folder of responses, or URL#NAME",
    )
    add("--adapted", required=True, nargs="+", metavar="MODEL", help="one or more, as --base")
    add("--inference_python", metavar="PYTHON", help="the python of the vLLM environment")
    add("--base_name", metavar="NAME", help="folder and display name (default: made from --base)")
    add("--adapted_names", nargs="+", metavar="NAME", help="one for each --adapted")
    add("--responses_dir", default="model_responses", metavar="DIR", help="default: %(default)s")
    add("--metrics_dir", default="absolute_metrics", metavar="DIR", help="default: %(default)s")
    add("--output_dir", default="captrack_relative_results", metavar="DIR", help="default: %(default)s")
    add("--tasks", nargs="+", metavar="NAME", help="names, wildcards, capabilities or groups (default: all)")
    add("--config", metavar="YAML", help="a comparison file to take plot, save and gate settings from")
    add("--stages", default=",".join(STAGES), help="a part of the run (default: %(default)s)")
    add(
        "--log_level",
        default="INFO",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        help="default: %(default)s",
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Runs the script; returns the worst exit code of its steps."""
    options, others = build_parser().parse_known_args(arguments)
    try:
        stages = tuple(options.stages.split(","))
        if unknown := [stage for stage in stages if stage not in STAGES]:
            raise UsageError(f"--stages: {unknown[0]!r} is none of {', '.join(STAGES)}.")
        select_tasks(options.tasks)
        set_up_logging(options.log_level)
        from evaluation.pipeline import run

        return run(options, others, stages)
    except UsageError as error:
        return fail("run_captrack.py", str(error))
    except KeyboardInterrupt:
        print("\nrun_captrack.py: interrupted. Run it again to go on where it stopped.", file=sys.stderr)
        return ERROR


if __name__ == "__main__":
    start(main)
