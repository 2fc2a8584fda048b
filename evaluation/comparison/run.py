"""A whole comparison: read the results, compare each pair, write tables, then words, then pictures, and say
it.

Tables come before pictures: an error in drawing loses no number. Everything that is written is whole or
absent.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.comparison.analysis import Rules, compare_pair, drop_empty_rows, make_comparison
from evaluation.comparison.compatibility import between_runs, differences, refusal
from evaluation.comparison.config import FORMATS, Config, ConfigError, PairConfig, in_order_of_steps
from evaluation.comparison.deviations import EXCLUDE, MissingError, different_names, plan_rows
from evaluation.comparison.model import Comparison, PairResult
from evaluation.results import ModelResult, ResultError, read_result

if TYPE_CHECKING:
    from evaluation.comparison.gate import Gate


SUMMARY, REPORT, FLIPS = "summary.md", "report.html", "flips.parquet"
PICTURES = ("relative_differences_heatmap", "forest_plot", "series")


RESULTS = Path("absolute_metrics")  # where compute_metrics.py writes by default


class ComparisonError(ValueError):
    """Nothing could be compared; the message lists every reason."""


def compare(config: Config) -> tuple[Comparison, list[tuple[PairResult, ModelResult, ModelResult]]]:
    """The comparison that a configuration asks for, and the first run of both models of every pair.

    A pair that cannot be read or was made differently is listed in `failed`; the others are compared.
    Raises ComparisonError where no pair is left.
    """
    if not config.model_pairs:
        raise ComparisonError("model_pairs: is empty, there is nothing to compare.")
    loaded: dict[Path, ModelResult | str] = {}
    entries, failed = [], []
    for number, entry in enumerate(in_order_of_steps(config.model_pairs), 1):
        try:
            base, adapted = ([_read(path, loaded) for path in paths] for paths in (entry.base, entry.adapted))
            entries.append((entry, base, adapted))
        except ResultError as error:
            failed.append((entry.name or f"pair {number}", str(error)))
    names = different_names([entry.name or adapted[0].name or "adapted" for entry, _, adapted in entries])
    results = list({id(r): r for _, base, adapted in entries for r in (*base, *adapted)}.values())
    plans = plan_rows(config.categories, config.aggregate, config.aggregation)
    dropped: tuple[str, ...] = ()
    if config.missing == EXCLUDE:
        kept = drop_empty_rows(plans, results)
        dropped = tuple(p.title for p in plans if p not in kept)
        plans = kept
    rules = Rules(config.missing, config.low_base)
    pairs = []
    for name, (entry, base, adapted) in zip(names, entries, strict=True):
        try:
            result = _compare_entry(name, entry, base, adapted, config, plans, rules)
            pairs.append((result, base[0], adapted[0]))
        except (ResultError, MissingError) as error:
            failed.append((name, str(error)))
    if not pairs or not plans:
        reasons = [f"{reason}" if name in reason else f"{name}: {reason}" for name, reason in failed]
        raise ComparisonError("\n".join(dict.fromkeys(reasons)) or "no row is left to show")
    if not config.aggregate:
        # a single column has no spread over metrics
        pairs = [(_without_spread(result), base, adapted) for result, base, adapted in pairs]
    comparison = make_comparison(
        [result for result, *_ in pairs], plans, rules, config.aggregate, results, dropped, failed
    )
    return comparison, pairs


def _read(path: Path, loaded: dict[Path, ModelResult | str]) -> ModelResult:
    if path not in loaded:
        try:
            loaded[path] = read_result(path)
        except (ResultError, OSError, ValueError) as error:
            loaded[path] = str(error) if str(path) in str(error) else f"{path}: {error}"
    found = loaded[path]
    if isinstance(found, str) and not path.is_absolute() and not path.exists():
        beside = RESULTS / path
        if beside.exists():
            raise ResultError(f"{path}: no such result folder or metrics CSV. Did you mean {beside}?")
    if isinstance(found, str):
        raise ResultError(found)
    return found


def _compare_entry(name, entry: PairConfig, base, adapted, config: Config, plans, rules) -> PairResult:
    found = [*differences(base[0], adapted[0]), *between_runs(base), *between_runs(adapted)]
    if found and not config.allow_mismatch:
        raise ResultError(refusal(name, found))
    return compare_pair(name, base, adapted, plans, rules, tuple(found), entry.step)


def _without_spread(pair: PairResult) -> PairResult:
    return replace(pair, rows={t: replace(r, std=None) for t, r in pair.rows.items()})


def run_comparison(config: Config, noise_floor: bool = False) -> int:
    """Compares, writes and prints; returns the exit code: the gate's where there is one, else 0, or 4 where
    something could not be compared, paired or drawn."""
    for warning in config.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    margins = check_gate(config)
    _forget_old_gate(config)
    comparison, pairs = compare(config)
    errors = [u.reason for pair in comparison.pairs for u in pair.unpaired if u.is_error]
    nothing = any(pair.nothing_paired or pair.nothing_in_common for pair in comparison.pairs)
    for reason in (*(reason for _, reason in comparison.failed), *dict.fromkeys(errors)):
        print(reason, file=sys.stderr)
    gate = decide(comparison, config, margins)
    try:
        written, undrawn = write_outputs(comparison, pairs, config, gate)
    except OSError as error:
        raise ComparisonError(f"{config.output_dir}: cannot be written ({error}).") from None
    for message in undrawn:
        print(message, file=sys.stderr)
    from evaluation.comparison.summary import console
    from evaluation.comparison.summary import noise_floor as floor

    print(floor(comparison) if noise_floor else console(comparison))
    print("\nWritten:")
    for path in written:
        print(f"  {path}")
    if gate is None:
        return 4 if comparison.failed or errors or undrawn or nothing else 0
    from evaluation.comparison.gate import REGRESSION
    from evaluation.comparison.gate_output import console as gate_table

    print(f"\n{gate_table(gate)}")
    # a proven loss outweighs a part that is missing
    return 4 if undrawn and gate.verdict != REGRESSION else gate.exit_code


def check_gate(config: Config) -> dict[str, float]:
    """Row title → margin of the gated rows, nothing without a gate. Raises ConfigError before anything is
    read."""
    if config.gate is None:
        return {}
    from evaluation.comparison.gate_config import GateError, gated_rows

    try:
        return gated_rows(config.gate, plan_rows(config.categories, config.aggregate, config.aggregation))
    except GateError as error:
        raise ConfigError(str(error)) from None


def _forget_old_gate(config: Config) -> None:
    from evaluation.comparison.gate_output import remove_gate

    try:
        remove_gate(config.output_dir)
    except OSError as error:
        raise ComparisonError(f"{config.output_dir}: cannot be written ({error}).") from None


def decide(comparison: Comparison, config: Config, margins: dict[str, float]) -> Gate | None:
    """The gate's verdict; None where the configuration has no gate."""
    if config.gate is None:
        return None
    from evaluation.comparison.gate import run_gate

    return run_gate(comparison, margins, config.gate.incomplete)


def write_outputs(
    comparison: Comparison,
    pairs: list[tuple[PairResult, ModelResult, ModelResult]],
    config: Config,
    gate: Gate | None,
) -> tuple[list[Path], list[str]]:
    """Writes what the configuration asks for in place of an earlier comparison's files; returns the paths,
    the heatmap first, and what could not be drawn."""
    from evaluation.comparison import summary, tables

    folder = config.output_dir
    remove_earlier(folder)
    written: list[Path] = []
    if config.save.save_csv:
        written += tables.write_csvs(folder, comparison)
    if config.save.save_excel:
        path = folder / tables.WORKBOOK
        tables.write_excel(path, comparison, _remarks(comparison))
        written.append(path)
    if comparison.has_samples:
        from evaluation.comparison.flips import write_flips

        path = folder / FLIPS
        write_flips(path, pairs)
        written.append(path)
    path = folder / SUMMARY
    summary.write_summary(path, comparison)
    written.append(path)
    from evaluation.report.comparison import write_report

    written.append(write_report(folder / REPORT, comparison, pairs, config.plot, gate))
    undrawn: list[str] = []
    if config.save.save_figure:
        drawn, undrawn = _draw(comparison, config)
        written = [*drawn, *written]
    if gate is not None:
        from evaluation.comparison.gate_output import write_gate
        from evaluation.comparison.words import stamps

        written += write_gate(folder, gate, stamps(comparison))
    return written, undrawn


def remove_earlier(folder: Path) -> None:
    """Takes away what an earlier comparison left, by the names that we write: none of its pictures may stand
    beside these tables. Everything else in the folder stays."""
    from evaluation.comparison.tables import file_names

    pictures = [f"{stem}.{ending}" for stem in PICTURES for ending in FORMATS]
    for name in (*file_names(), FLIPS, SUMMARY, REPORT, *pictures):
        (folder / name).unlink(missing_ok=True)


def _remarks(comparison: Comparison) -> list[str]:
    from evaluation.comparison.summary import notes_of
    from evaluation.comparison.words import footer

    return [*footer(comparison), *(f"{p.name}: {note}" for p in comparison.pairs for note in notes_of(p))]


def _draw(comparison: Comparison, config: Config) -> tuple[list[Path], list[str]]:
    from evaluation.comparison.heatmap import draw_heatmap, save_figure
    from evaluation.comparison.plots import draw_forest, draw_series

    written, undrawn = [], []
    drawers = (
        lambda: draw_heatmap(comparison, config.plot),
        lambda: draw_forest(comparison, config.plot.color_cap),
        lambda: draw_series(comparison),
    )
    for stem, draw in zip(PICTURES, drawers, strict=True):
        path = config.output_dir / f"{stem}.{config.save.figure_format}"
        try:
            figure = draw()
            if figure is not None:
                save_figure(figure, path)
                written.append(path)
        except (
            Exception
        ) as error:  # a picture that fails must not hide the numbers, which are written already
            undrawn.append(f"{path}: not drawn ({type(error).__name__}: {error})")
    return written, undrawn
