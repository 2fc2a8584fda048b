"""Multiple choice: MMLU-Pro, WinoGrande, HellaSwag, TruthfulQA (MC1), LongBench v2. Rules first, a judge for
the rest.

Example: outputs "Both fit, but **B** is older.\\nAnswer: B", gold 1, choices ["basalt", "quartz"] gives
{"correct": True, "formatted": False, "extracted": "B"}; outputs "I would pick the second" gives {"pending":
"unreadable", …}.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from evaluation.extraction.letters import LETTERS, Options, label_of_text, options_of, read_letter
from evaluation.extraction.visible import trimmed
from evaluation.judge import OK as JUDGED
from evaluation.judge import Judge
from evaluation.rows import OK, Row, is_missing, text_of
from evaluation.tasks import TASKS

_MOST_LETTERS = 10  # where a row has no choices


def score(row: Row) -> dict[str, Any]:
    """The rule part: correct, formatted, extracted (the letter), reason.

    formatted: the whole output is one character that names an offered option (the published definition of
    format_score). What rules cannot read is left to judge_choice as {"pending": "unreadable"}; an answer of
    one character is never asked about, nor is an empty one, which is wrong. reason: no_gold, empty,
    truncated, wrong_choice or not_an_option.
    """
    options = _options(row)
    character = unicodedata.normalize("NFKC", trimmed(text_of(row.get("outputs"))))
    named = _numbered(row, options)
    formatted = len(character) == 1 and character.upper() in (*named.labels, *named.aliases)
    result: dict[str, Any] = {"correct": None, "formatted": formatted, "extracted": None, "reason": None}
    letter = read_letter(row.answer, named) if row.state == OK else None
    gold = gold_letter(row, options)
    if gold is None:
        return {**result, "extracted": letter, "reason": "no_gold"}
    if row.state != OK:
        return {**result, "correct": False, "reason": row.state}
    if letter is not None:
        right = letter == gold
        return {**result, "correct": right, "extracted": letter, "reason": None if right else "wrong_choice"}
    if len(row.answer) == 1:
        return {**result, "correct": False, "reason": "not_an_option"}
    return {**result, "pending": "unreadable"}


async def judge_choice(row: Row, judge: Judge) -> dict[str, Any]:
    """correct and reason for an answer that rules could not read; correct is None where the judge gave no
    verdict."""
    options = _options(row)
    gold = gold_letter(row, options) or ""
    verdict = await judge.ask(
        "single_turn_mc", response=row.answer, choices=_listed(row, options), gold=_item(gold, options)
    )
    if verdict.status != JUDGED or not isinstance(verdict.value, bool):
        return {"correct": None, "reason": f"judge_{verdict.status}"}
    return {"correct": verdict.value, "reason": None if verdict.value else "wrong_choice"}


def _options(row: Row) -> Options:
    options = options_of(row.get("choices"))
    return options.at_least(TASKS[row.task].letters if options.labels else _MOST_LETTERS)


def _numbered(row: Row, options: Options) -> Options:
    """With numbers as names of options where the benchmark or the row's gold numbers them."""
    first = TASKS[row.task].first_number
    if first is None and re.fullmatch(r"\d{1,2}", text_of(_bare(row.gold)).strip()):
        first = 0
    return options if first is None else options.numbered(first)


def gold_letter(row: Row, options: Options) -> str | None:
    """The gold's label. The gold may be a letter ("b", " B", "(B)", "B. text"), an index or number, or an
    option's text."""
    gold = _bare(row.gold)
    if is_missing(gold) or isinstance(gold, (bool, list, dict)):
        return None
    text = unicodedata.normalize("NFKC", text_of(gold)).strip()
    if isinstance(gold, str):
        letter = re.fullmatch(r"\(?([A-Za-z])\)?[.:]?", text)
        if letter and letter[1].upper() in options.labels:
            return letter[1].upper()
        by_text = label_of_text(text, options)
        if by_text:
            return by_text
        letter = re.match(r"\(?([A-Z])[).:]\s", text)
        if letter and letter[1] in options.labels:
            return letter[1]
    if re.fullmatch(r"\d{1,2}", text):
        index = int(text) - (TASKS[row.task].first_number or 0)
        labels = options.labels or tuple(LETTERS)
        # 0 where numbers start at 1 can only be an index
        return labels[max(index, 0)] if index < len(labels) else None
    return None


def _bare(gold: Any) -> Any:
    """The gold out of a list of one, or out of an object that names it."""
    if isinstance(gold, list) and len(gold) == 1:
        gold = gold[0]
    if isinstance(gold, dict):
        gold = next((gold[key] for key in ("answer", "label", "text") if not is_missing(gold.get(key))), None)
    return gold


def _item(letter: str, options: Options) -> str:
    text = options.text_of(letter)
    return f"{letter}. {text}" if text else letter


def _listed(row: Row, options: Options) -> str:
    """The options as the judge sees them: the row's own text, or one a line."""
    choices = row.get("choices")
    if isinstance(choices, str):
        return choices
    return "\n".join(_item(label, options) for label in options.labels if options.text_of(label))
