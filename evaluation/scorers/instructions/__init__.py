"""Instruction following (IFEval): does an answer obey the checkable instructions of its prompt?

A row with instruction_id_list ["punctuation:no_comma"] and the answer "Bread, salt." gives strict_all False,
strict_punctuation_passed 0, strict_punctuation_total 1 … Three verdicts stand side by side: "strict" and
"loose" are the public checker's (https://arxiv.org/abs/2311.07911), "corrected" is ours, on the answer as it
is (README.md here says where they differ). Loose passes where any of eight variants of the answer passes.

An instruction that cannot be judged (unknown id, missing or odd parameters) has no verdict and leaves the
totals; the others count. Its prompt failed if another instruction failed, and otherwise has no verdict as a
whole.
"""

from __future__ import annotations

import json
from typing import Any

from evaluation.rows import OK, Row, text_of
from evaluation.scorers.instructions import parameters
from evaluation.scorers.instructions.constraints import constraints_of
from evaluation.scorers.instructions.parameters import Unscored
from evaluation.scorers.instructions.table import INSTRUCTIONS, Check
from evaluation.tasks import IFEVAL_IDS, IFEVAL_MODES

_NO_VALUES: dict[str, Any] = {
    **{
        column: None
        for mode in IFEVAL_MODES
        for column in (
            f"{mode}_all",
            f"{mode}_list",
            *(
                f"{mode}_{part}_{count}"
                for part in (
                    "any",
                    *IFEVAL_IDS,
                    *(f"{f}.{name}" for f, ids in IFEVAL_IDS.items() for name in ids),
                )
                for count in ("passed", "total")
            ),
        )
    },
    "instruction_ids": None,
    "extracted": None,
    "reason": None,
}


def score(row: Row) -> dict[str, Any]:
    """Per mode (strict, loose, corrected): MODE_all (True, False, None), MODE_list (JSON text, one true,
    false or null an instruction), MODE_PART_passed and MODE_PART_total (counts; None where the prompt has no
    such scored instruction) for PART "any", a family, or FAMILY.NAME. instruction_ids: JSON text.

    reason: the first unscored instruction's code, else "empty" or "truncated" (fails every instruction), else
    "instruction_failed", else None. Never raises because of data.
    """
    found = constraints_of(row)
    if found.ids is None:
        return {**_NO_VALUES, "reason": found.reason or "no_constraints"}
    verdicts, unscored = _verdicts(row, found.ids, found.kwargs, found.reason)
    values = {**_NO_VALUES, "instruction_ids": json.dumps(found.ids, ensure_ascii=False)}
    for mode in IFEVAL_MODES:
        _fill(values, mode, found.ids, verdicts[mode])
    if unscored:
        values["reason"] = unscored
    elif row.state != OK:
        values["reason"] = row.state
    elif values["strict_all"] is False:
        values["reason"] = "instruction_failed"
    return values


def _verdicts(
    row: Row, ids: list[str], kwargs: list[dict[str, Any]], why_none: str | None
) -> tuple[dict[str, list[bool | None]], str | None]:
    """Per mode one verdict an instruction, and the code of the first that has none in some mode."""
    verdicts: dict[str, list[bool | None]] = {mode: [] for mode in IFEVAL_MODES}
    unscored = None
    answer = _as_written(row)
    variants = loose_variants(answer)
    for name, given in zip(ids, kwargs, strict=True):
        try:
            instruction = INSTRUCTIONS.get(name)
            if instruction is None:
                raise Unscored("unknown_instruction")
            kw = parameters.read(given, instruction.parameters)
        except Unscored as error:
            code = why_none if why_none and error.code == "missing_kwargs" else error.code
            unscored = unscored or code
            for mode in IFEVAL_MODES:
                verdicts[mode].append(None)
            continue
        try:
            strict = _passes(instruction.published, answer, kw)
            # the first variant is the answer itself
            loose = strict or any(_passes(instruction.published, text, kw) for text in variants[1:])
        except Unscored as error:
            unscored = unscored or error.code
            strict = loose = None
        try:
            ours = _passes(instruction.corrected, row.answer, kw)
        except Unscored as error:
            unscored = unscored or error.code
            ours = None
        for mode, verdict in zip(IFEVAL_MODES, (strict, loose, ours), strict=True):
            verdicts[mode].append(verdict)
    return verdicts, unscored


# a blank answer fails everything; still the check runs on a stand-in, so that bad parameters are found out
def _passes(check: Check, text: str, kw: dict[str, Any]) -> bool:
    if not text.strip():
        check("-", kw)
        return False
    return check(text, kw)


def _as_written(row: Row) -> str:
    """The answer with its outer white space, as the public checker sees it, where no thinking was cut off."""
    written = text_of(row.get("outputs"))
    return written if written.strip() == row.answer else row.answer


def loose_variants(answer: str) -> list[str]:
    """The answer; then what differs from it and is not blank among: without its first line, last line, both,
    and each of the four without asterisks.
    """
    lines = answer.split("\n")
    cuts = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    texts = [answer, answer.replace("*", ""), *cuts, *(cut.replace("*", "") for cut in cuts)]
    return [answer, *(text for text in dict.fromkeys(texts) if text != answer and text.strip())]


def _fill(values: dict[str, Any], mode: str, ids: list[str], verdicts: list[bool | None]) -> None:
    values[f"{mode}_list"] = json.dumps(verdicts)
    values[f"{mode}_all"] = False if False in verdicts else None if None in verdicts else True
    for name, verdict in zip(ids, verdicts, strict=True):
        if verdict is None:
            continue
        family = name.partition(":")[0]
        for part in ("any", family, name.replace(":", ".", 1)):
            passed, total = f"{mode}_{part}_passed", f"{mode}_{part}_total"
            values[passed] = (values[passed] or 0) + verdict
            values[total] = (values[total] or 0) + 1
