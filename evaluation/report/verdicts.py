"""The gate's verdicts as the page of a comparison prints them: worst first, each with its reason.

{"verdict": "REGRESSION", "means": "a loss beyond the margin is proven", "exit_code": 2,
 "pairs": [{"name": "SFT", "verdict": "REGRESSION", "problem": "", "passed": 9, "gated": 11,
            "groups": [{"verdict": "REGRESSION", "means": "…", "rows": [RowGate, …]}, …]}],
 "not_gated": ["W3a Verbosity"]}
"""

from __future__ import annotations

from typing import Any

from evaluation.comparison.gate import (
    INCOMPLETE,
    INCONCLUSIVE,
    PASS,
    REGRESSION,
    VERDICTS,
    Gate,
    PairGate,
    RowGate,
)

MEANS = {
    PASS: "a loss beyond the margin is excluded",
    INCONCLUSIVE: "too few samples to exclude or to prove a loss beyond the margin",
    INCOMPLETE: "data are missing, or what is missing could change the verdict",
    REGRESSION: "a loss beyond the margin is proven",
}


def gate_values(gate: Gate) -> dict[str, Any]:
    """What the top of the page says of a gate."""
    return {
        "verdict": gate.verdict,
        "means": MEANS[gate.verdict],
        "exit_code": gate.exit_code,
        "pairs": [_pair_values(pair) for pair in gate.pairs],
        "not_gated": list(gate.not_gated),
    }


def _pair_values(pair: PairGate) -> dict[str, Any]:
    groups = [
        {"verdict": verdict, "means": MEANS[verdict], "rows": [r for r in pair.rows if r.verdict == verdict]}
        for verdict in reversed(VERDICTS)
    ]
    return {
        "name": pair.name,
        "verdict": pair.verdict,
        "problem": pair.problem,
        "passed": sum(row.verdict == PASS for row in pair.rows),
        "gated": len(pair.rows),
        "groups": [group for group in groups if group["rows"]],
    }


def rows_of_gate(gate: Gate | None) -> dict[tuple[str, str], RowGate]:
    """(name of the pair, title of the row) → its verdict; empty without a gate."""
    return {(pair.name, row.title): row for pair in gate.pairs for row in pair.rows} if gate else {}
