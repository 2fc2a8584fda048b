"""The gate for people and for build servers: a table on the console, gate.md, gate.xml (JUnit).

    <testsuite name="SFT" tests="15" failures="1" errors="0" skipped="2">
      <testcase classname="captrack.SFT.CAN" name="C1 Knowledge" time="0">
        <failure type="REGRESSION" message="lost 16.0 %, more than the 5 % allowed (…)"/>

One testcase a gated row: REGRESSION is a failure, INCOMPLETE an error, INCONCLUSIVE skipped (a build server
shows it apart from both; whether it stops a pipeline is up to exit code 3). A case is named after its row
and nothing else, so that a server can follow it from build to build.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from evaluation.comparison.gate import (
    EXIT_CODES,
    INCOMPLETE,
    INCONCLUSIVE,
    PASS,
    REGRESSION,
    VERDICTS,
    Gate,
    PairGate,
    RowGate,
)
from evaluation.comparison.summary import WIDTH, _escape, _wrap
from evaluation.comparison.words import number, shorten
from evaluation.files import whole_file

FILES = ("gate.md", "gate.xml")
_TAGS = {REGRESSION: "failure", INCOMPLETE: "error", INCONCLUSIVE: "skipped"}
_MEANING = (
    "Interval: 95 %, from the samples that both models have. A row passes where its interval excludes a "
    "loss beyond the margin; it is a regression where a loss beyond the margin is proven (one-sided p, Holm "
    "over the gated rows, below 0.05); inconclusive where the samples are too few for either; incomplete "
    "where data are missing. Rows that are neither better nor worse when they change are not gated."
)


def write_gate(folder: Path, gate: Gate, stamps: Sequence[str]) -> list[Path]:
    """Writes gate.md and gate.xml; stamps: words that limit what the numbers may be used for."""
    texts = (markdown(gate, stamps), junit(gate))
    paths = [folder / name for name in FILES]
    for path, text in zip(paths, texts, strict=True):
        with whole_file(path) as handle:
            handle.write(text.encode("utf-8", "replace").decode())
    return paths


def remove_gate(folder: Path) -> None:
    """Takes away the verdict of an earlier comparison: no build server may read it as this one's."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def console(gate: Gate) -> str:
    """A table a pair, no line longer than 80 columns; reasons below it for the rows that did not pass."""
    lines: list[str] = []
    for pair in gate.pairs:
        lines += _console_pair(pair)
    if gate.not_gated:
        lines += _wrap(f"Not gated: {'; '.join(gate.not_gated)}", "  ")
    lines.append(f"Gate: {gate.verdict} (exit code {gate.exit_code})")
    return "\n".join(lines)


def _console_pair(pair: PairGate) -> list[str]:
    against = f" against {shorten(pair.base_name, 40)}" if pair.base_name else ""
    lines = [*_wrap(f"Gate: {shorten(pair.name, 40)}{against}", "  "), "-" * WIDTH]
    if pair.problem:
        return [*lines, *_wrap(f"{INCOMPLETE}, not compared: {pair.problem}", "  "), ""]
    lines.append(f"{'':27}{'change %':>9}{'95 % interval':>16}{'margin':>7}{'p':>8} verdict")
    for row in pair.rows:
        interval = _interval(row)
        p = "" if row.holm is None else "<.0001" if row.holm < 0.0001 else f"{row.holm:.4f}"
        numbers = f"{_change(row):>9}{shorten(interval, 16):>16}{row.margin:>7g}{p:>8}"
        lines.append(f"{shorten(_plain(row.title), 26):27}{numbers} {row.verdict}")
    for verdict in reversed(VERDICTS):
        for row in pair.rows:
            if row.verdict == verdict and verdict in (REGRESSION, INCOMPLETE):
                lines += _wrap(f"{verdict} {row.title}: {row.reason}", "  ")
    if undecided := [row.title for row in pair.rows if row.verdict == INCONCLUSIVE]:
        words = "too few samples to exclude or to prove a loss beyond the margin"
        lines += _wrap(f"{INCONCLUSIVE}, {words}: {'; '.join(undecided)}", "  ")
    passed = sum(row.verdict == PASS for row in pair.rows)
    return [*lines, f"{pair.verdict}: {passed} of {len(pair.rows)} rows pass", ""]


def _plain(text: str) -> str:
    """Nothing that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def _change(row: RowGate) -> str:
    return "n/a" if row.deviation is None else number(row.deviation)


def _interval(row: RowGate) -> str:
    """As the heatmap shows it: not turned round where less is better."""
    if row.low is None:
        return ""
    low, high = (-row.high, -row.low) if row.direction < 0 else (row.low, row.high)
    # one decimal always: −29.6 and −30.4 differ by a verdict where the margin is 30
    return f"[{number(low)}, {'∞' if math.isinf(high) else number(high)}]"


def markdown(gate: Gate, stamps: Sequence[str] = ()) -> str:
    """gate.md: the verdict, then a table a pair with every reason."""
    lines = [f"# CapTrack gate: {gate.verdict}", "", f"Exit code {gate.exit_code}.", ""]
    for stamp in stamps:
        lines += [f"> **{_escape(stamp)}**", ""]
    for pair in gate.pairs:
        against = f" against {_escape(pair.base_name)}" if pair.base_name else ""
        lines += [f"## {_escape(pair.name)}{against}: {pair.verdict}", ""]
        if pair.problem:
            lines += [f"Not compared: {_escape(pair.problem)}", ""]
            continue
        lines += [
            "| Row | Change | 95 % interval | Margin | p (Holm) | Verdict | Reason |",
            "|---|---:|:---:|---:|---:|---|---|",
        ]
        for row in pair.rows:
            change = _change(row) + ("" if row.deviation is None else " %")
            p = "" if row.holm is None else "< 0.0001" if row.holm < 0.0001 else f"{row.holm:.4f}"
            cells = (row.title, change, _interval(row), f"{row.margin:g} %", p, row.verdict, row.reason)
            lines.append("| " + " | ".join(_escape(cell) for cell in cells) + " |")
        lines.append("")
    if gate.not_gated:
        lines += [f"Not gated: {_escape('; '.join(gate.not_gated))}.", ""]
    codes = ", ".join(f"{code} {verdict}" for verdict, code in EXIT_CODES.items())
    return "\n".join([*lines, _MEANING, "", f"Exit codes: {codes}, 1 error.", ""])


def junit(gate: Gate) -> str:
    """gate.xml. No times and no dates: equal results give equal files."""
    from xml.etree import ElementTree as xml

    cases = [row.verdict for pair in gate.pairs for row in pair.rows]
    cases += [INCOMPLETE for pair in gate.pairs if pair.problem]
    root = xml.Element("testsuites", {"name": "captrack gate", **_counts(cases)})
    for pair in gate.pairs:
        verdicts = [INCOMPLETE] if pair.problem else [row.verdict for row in pair.rows]
        name = xml_text(pair.name)
        suite = xml.SubElement(root, "testsuite", {"name": name, **_counts(verdicts)})
        # a dot would open a level of its own
        package = f"captrack.{name.replace('.', '_')}"
        if pair.problem:
            case = xml.SubElement(
                suite, "testcase", {"classname": package, "name": "comparison", "time": "0"}
            )
            xml.SubElement(case, "error", {"type": INCOMPLETE, "message": xml_text(pair.problem)})
        for row in pair.rows:
            group = f"{package}.{row.group}" if row.group else package
            names = {"classname": group, "name": xml_text(row.title), "time": "0"}
            case = xml.SubElement(suite, "testcase", names)
            if row.verdict in _TAGS:
                about = {"type": row.verdict, "message": xml_text(f"{row.verdict}: {row.reason}")}
                xml.SubElement(case, _TAGS[row.verdict], about)
            out = xml.SubElement(case, "system-out")
            numbers = f"change {_change(row)} %, 95 % interval {_interval(row) or 'none'}"
            out.text = xml_text(f"{row.verdict}: {row.reason}\n{numbers}, margin {row.margin:g} %")
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _counts(verdicts: Sequence[str]) -> dict[str, str]:
    counted = (("failures", REGRESSION), ("errors", INCOMPLETE), ("skipped", INCONCLUSIVE))
    return {"tests": str(len(verdicts)), **{key: str(verdicts.count(v)) for key, v in counted}}


def xml_text(text: str) -> str:
    """What XML 1.0 cannot hold (control characters, lone surrogates, U+FFFE) becomes U+FFFD."""
    return "".join(c if _allowed(ord(c)) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _allowed(code: int) -> bool:
    return code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code >= 0x10000
