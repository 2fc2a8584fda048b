#!/usr/bin/env python3
"""Relative comparison and forgetting analysis: adapted models against their base, capability by capability.

    python compare_models.py --config configs/example_config.yaml
    python compare_models.py --base absolute_metrics/base \\
        --adapted absolute_metrics/sft --name SFT

Works on what compute_metrics.py left (result folders, or metrics CSV files); runs no model and computes no
metric. Exit codes: 0 done; 1 nothing could be compared, or a usage error; 4 some of several pairs could not
be compared. With a gate (--gate, or gate: in the file): 0 every gated row passes, 2 a regression is proven,
3 inconclusive, 4 incomplete.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import DONE, ERROR, Parser, fail, start

FROM_FILE = True  # --gate without a number; no text, for argparse would try to convert it


def _margin(text: str) -> float:
    from evaluation.comparison.gate_config import GateError, check_margin

    try:
        return check_margin(float(text), "--gate")
    except (ValueError, GateError):
        message = f"{text!r} is no margin, a number of percent from 0 to below 100 is needed"
        raise argparse.ArgumentTypeError(message) from None


def build_parser() -> Parser:
    p = Parser(prog="compare_models.py", description=__doc__)
    what = p.add_argument_group("what to compare (a file, or these options; options override the file)")
    what.add_argument("--config", type=Path, metavar="FILE", help="YAML configuration, see configs/")
    what.add_argument("--base", metavar="RESULT", help="result folder or metrics CSV of the base model")
    what.add_argument("--adapted", nargs="+", metavar="RESULT", help="the same of one or more adapted models")
    what.add_argument("--name", nargs="+", metavar="NAME", help="display name of each adapted model")
    what.add_argument(
        "--aa", nargs=2, metavar="RESULT", help="two runs of one model: prints the noise floor per row"
    )
    what.add_argument(
        "--create_config", nargs="?", const=Path("comparison_config.yaml"), type=Path, metavar="FILE",
        help="write an example configuration (default comparison_config.yaml) and stop",
    )  # fmt: skip
    how = p.add_argument_group("how")
    how.add_argument(
        "--categories", nargs="+", metavar="NAME", help="capabilities (C1 … H6) or groups (CAN WILL HOW)"
    )
    how.add_argument(
        "--no_aggregate", action="store_true", help="one row a metric in place of one a capability"
    )
    how.add_argument("--missing", choices=("zero", "exclude", "error"), help="what a missing entry counts as")
    how.add_argument(
        "--low_base", choices=("keep", "exclude"), help="bases too low for a percent in a row's mean"
    )
    how.add_argument(
        "--allow_mismatch", action="store_true", help="compare also what was made differently; stamped"
    )
    how.add_argument(
        "--gate", nargs="?", const=FROM_FILE, type=_margin, metavar="PERCENT",
        help="decide: may any row that can be better or worse have lost more than PERCENT of the base? "
        "Without a number the gate section of --config decides (it does so without --gate, too)",
    )  # fmt: skip
    out = p.add_argument_group("output")
    out.add_argument(
        "--output",
        "--output_dir",
        type=Path,
        metavar="DIR",
        help="where to write (captrack_relative_results)",
    )
    out.add_argument(
        "--color_cap", type=float, metavar="PERCENT", help="deviation at which a colour is full (15)"
    )
    out.add_argument("--figure_format", choices=("pdf", "png", "svg"), help="format of the pictures (pdf)")
    out.add_argument("--save_excel", action="store_true", help="write a workbook as well")
    return p


def main(arguments: list[str] | None = None) -> int:
    p = build_parser()
    args = p.parse_args(arguments)
    if args.create_config:
        return _create_config(args.create_config)
    if args.aa and (args.base or args.adapted or args.config):
        p.error("--aa takes two runs of one model and goes without --base, --adapted and --config")
    if bool(args.base) != bool(args.adapted):
        p.error("--base and --adapted belong together")
    if not (args.config or args.base or args.aa):
        p.error(
            "nothing to compare: give --config, or --base and --adapted, or --aa; --create_config writes an "
            "example"
        )
    if args.name and (not args.adapted or len(args.name) != len(args.adapted)):
        p.error("--name needs one name for each result of --adapted")

    if args.aa and args.gate is not None:
        p.error("--aa shows the noise of one model, there is nothing to decide: leave --gate out")

    from evaluation.comparison.config import ConfigError
    from evaluation.comparison.run import ComparisonError, run_comparison

    try:
        return run_comparison(configuration(args), noise_floor=bool(args.aa))
    except (ConfigError, ComparisonError) as error:
        return fail("compare_models.py", str(error))


def _create_config(path: Path) -> int:
    from evaluation.comparison.config import EXAMPLE
    from evaluation.files import whole_file

    if path.exists():
        print(f"{path}: exists already, nothing written. Name another file.", file=sys.stderr)
        return ERROR
    with whole_file(path) as handle:
        handle.write(EXAMPLE.read_text(encoding="utf-8"))
    print(f"Wrote {path}. Set base and adapted in it, then: python compare_models.py --config {path}")
    return DONE


def configuration(args: argparse.Namespace):
    """The Config of parsed options, options before the file. Raises ConfigError."""
    from dataclasses import replace

    from evaluation.comparison.config import Config, ConfigError, PairConfig, check_categories, load_config
    from evaluation.comparison.gate_config import with_margin

    config = load_config(args.config) if args.config else Config()
    output_dir = args.output or config.output_dir
    if args.base:
        names = args.name or [""] * len(args.adapted)
        pairs = tuple(
            PairConfig((Path(args.base),), (Path(a),), name)
            for a, name in zip(args.adapted, names, strict=True)
        )
        config = replace(config, model_pairs=pairs)
    if args.aa:
        config = replace(config, model_pairs=(PairConfig((Path(args.aa[0]),), (Path(args.aa[1]),), "A/A"),))
        if not args.output:  # a noise floor must not lie over a comparison of two models
            runs = [Path(run).resolve().name.removesuffix(".csv") for run in args.aa]
            output_dir = config.output_dir / "_".join(["aa", *runs])
    if args.color_cap is not None and not args.color_cap > 0:
        raise ConfigError(f"--color_cap: must be above 0, not {args.color_cap:g}.")
    if args.gate is FROM_FILE and config.gate is None:
        raise ConfigError(
            "--gate: there is no gate section in a --config file to decide by. Add one, or give the loss in "
            "percent that is allowed, such as --gate 5."
        )
    gate = config.gate if args.gate is None or args.gate is FROM_FILE else with_margin(config.gate, args.gate)
    plot, save = config.plot, config.save
    if args.color_cap is not None:
        plot = replace(plot, color_cap=args.color_cap)
    if args.figure_format:
        save = replace(save, figure_format=args.figure_format)
    if args.save_excel:
        save = replace(save, save_excel=True)
    return replace(
        config,
        gate=gate,
        plot=plot,
        save=save,
        output_dir=output_dir,
        categories=check_categories(args.categories) if args.categories else config.categories,
        aggregate=config.aggregate and not args.no_aggregate,
        missing=args.missing or config.missing,
        low_base=args.low_base or config.low_base,
        allow_mismatch=config.allow_mismatch or args.allow_mismatch,
    )


if __name__ == "__main__":
    start(main)
