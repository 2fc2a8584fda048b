"""MATH and SuperGPQA: the final answer by rules, the steps by rules, the reasoning by a judge.

Example: outputs "Step 1: Let x be 2.\\nStep 2: Birds fly.\\nAnswer: 2", gold "2" gives correct True,
num_steps 2, step_validity 0.5; the judge adds logical_coherence and step_consistency (0..1), and
reasoning_score is the mean of the three. Where one of them is missing there is no reasoning_score.
Benchmarks: MATH (https://arxiv.org/abs/2103.03874), SuperGPQA (https://arxiv.org/abs/2502.14739).
"""

# ruff: noqa: E501  (patterns)

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

from evaluation.extraction.courtesies import without_courtesies
from evaluation.extraction.latex import boxes, final_answer, last_box, strip_marks
from evaluation.extraction.steps import steps, valid_mathematics, valid_options
from evaluation.judge import OK as JUDGED
from evaluation.judge import Judge
from evaluation.rows import OK, Row, is_missing, text_of
from evaluation.scorers.equivalence import compare
from evaluation.scorers.mathematics import gold_text, gold_value

LETTERS = "ABCDEFGHIJ"


def score_math(row: Row) -> dict[str, Any]:
    """Rule part of MATH: correct, extracted, num_steps, step_validity; pending where a judge can weigh
    steps.
    """
    gold = gold_value(row.gold)
    answer = final_answer(row.answer) if row.state == OK else None
    if gold is None:
        correct, reason = None, "no_gold"
    elif row.state != OK:
        correct, reason = False, row.state
    elif answer is None:
        correct, reason = False, "no_answer_found"
    else:
        verdict = compare(gold, answer)
        correct, reason = bool(verdict.equal), verdict.reason
    return _with_steps(row, correct, answer, reason, valid_mathematics)


def score_supergpqa(row: Row) -> dict[str, Any]:
    """Rule part of SuperGPQA: correct, extracted (a letter), num_steps, step_validity; pending as for
    MATH.
    """
    options = _options(row.get("choices"))
    gold = _gold_letter(row.gold, options)
    letter = _letter(without_courtesies(row.answer), options) if row.state == OK else None
    if gold is None:
        correct, reason = None, "no_gold"
    elif row.state != OK:
        correct, reason = False, row.state
    elif letter is None:
        correct, reason = False, "no_answer_found"
    else:
        correct, reason = letter == gold, None if letter == gold else "wrong_option"
    return _with_steps(row, correct, letter, reason, valid_options)


def _with_steps(
    row: Row, correct: bool | None, extracted: str | None, reason: str | None, valid: Callable[[str], bool]
) -> dict[str, Any]:
    score: dict[str, Any] = {
        "correct": correct,
        "extracted": extracted,
        "reason": reason,
        # a response that is not there has no count; an empty one has no steps
        "num_steps": None if is_missing(row.columns.get("outputs")) else 0,
        "step_validity": None,
        "logical_coherence": None,
        "step_consistency": None,
        "reasoning_score": None,
    }
    found = steps(row.answer) if row.state == OK else []
    if found:
        score["num_steps"] = len(found)
        score["step_validity"] = sum(map(valid, found)) / len(found)
        score["pending"] = "judge_reasoning"
    elif reason is None:
        score["reason"] = "no_steps"
    return score


async def judge_math(row: Row, judge: Judge) -> dict[str, Any]:
    """Coherence and consistency of a MATH solution, each 0..1, and the score of the three."""
    return await _judge(row, judge, "math_coherence", "math_consistency")


async def judge_supergpqa(row: Row, judge: Judge) -> dict[str, Any]:
    """The same for SuperGPQA, with the options in view."""
    return await _judge(row, judge, "supergpqa_coherence", "supergpqa_consistency")


async def _judge(row: Row, judge: Judge, coherence_mode: str, consistency_mode: str) -> dict[str, Any]:
    fields = {"question": text_of(row.get("prompt")), "output": row.answer}
    # in the published order; one after the other, the engine keeps many rows in flight
    consistency = await judge.ask(consistency_mode, **fields)
    coherence = await judge.ask(coherence_mode, **fields)
    values = [verdict.value if verdict.status == JUDGED else None for verdict in (coherence, consistency)]
    score: dict[str, Any] = {"logical_coherence": values[0], "step_consistency": values[1]}
    failed = next((v for v in (coherence, consistency) if v.status != JUDGED), None)
    if failed is not None:
        score["reasoning_score"] = None
        score["reason"] = f"judge_{failed.status}"
    else:
        score["reasoning_score"] = (row.rules["step_validity"] + values[0] + values[1]) / 3
    return score


# --- letters --------------------------------------------------------------------------------------

_LABELS = (
    r"(?:final |correct |best |right )?(?:answer|choice|option)"
    r"|antwort|r[ée]ponse|respuesta|resposta|risposta|odpowied[źz]|ответ|відповідь|cevap|答案|答え|回答|正解|उत्तर|jawaban"
)
_CUE = re.compile(
    rf"(?<![^\W_])(?:{_LABELS})(?!\w)[*_`]{{0,4}}\s{{0,3}}(?:[:：=]|[-–—](?=\s)|(?:is|would be|must be|ist|est|es|是|为)(?!\w))",
    re.IGNORECASE,
)
_FIELD = re.compile(r"[\"'](?:answer|choice|option)[\"']\s{0,9}:", re.IGNORECASE)
_WHOLE = re.compile(
    r"(?:(?:the )?(?:option|choice|answer|letter)\s)?[(\[{]?\s?([A-Ja-j])\s?[)\]}]?", re.IGNORECASE
)
_LEADING = re.compile(
    r"(?:(?:the )?(?:option|choice|answer|letter)\s)?[(\[]?([A-Ja-j])(?:[)\]]\s{0,3}\S|[.:]\s|\s[-–—]\s|,\s|\s?\()"
)
_STANDALONE = re.compile(r"(?<![\w'’.-])\(?([A-J])\)?(?![\w'’-])")
_WRAP = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mbox|textit|rm)\s?\{([^{}]{0,200})\}")
_SAID = re.compile(
    r"\b(?:option|choice)\s\(?([A-J])\)?\s(?:is|must be)\s(?:the\s)?(?:correct|right|best|answer|true)\b"
    r"|(?<![\w'’])\(?([B-HJ])\)?\sis\s(?:the\s)?(?:correct|right|best|true)\b"
)


def _options(choices: Any) -> dict[str, str]:
    """Letter -> text, from a list, an object, or text such as "A: iron B: zinc"; empty without options."""
    if isinstance(choices, str) and choices.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            choices = json.loads(choices)
    if isinstance(choices, dict):
        inner = choices.get("text")
        if isinstance(inner, list):
            choices = inner
        else:
            return {
                str(k).strip().upper(): text_of(v)
                for k, v in choices.items()
                if str(k).strip().upper() in LETTERS
            }
    if isinstance(choices, (list, tuple)):
        return {
            letter: re.sub(rf"^\(?{letter}[).:]\s+", "", text_of(value).strip())
            for letter, value in zip(LETTERS, choices, strict=False)
        }
    text = text_of(choices)
    found: list[tuple[str, int, int]] = []
    for match in re.finditer(r"(?:^|(?<=\s))\(?([A-J])[).:]\s", text):
        if len(found) < len(LETTERS) and match.group(1) == LETTERS[len(found)]:
            found.append((match.group(1), match.start(), match.end()))
    ends = [*(start for _, start, _ in found[1:]), len(text)][: len(found)]
    return {letter: text[at:end].strip() for (letter, _, at), end in zip(found, ends, strict=True)}


def _gold_letter(gold: Any, options: dict[str, str]) -> str | None:
    if isinstance(gold, (int, float)) and not isinstance(gold, bool) and not is_missing(gold):
        return LETTERS[int(gold)] if 0 <= gold < len(LETTERS) and gold == int(gold) else None
    text = gold_text(gold)
    if text is None:
        return None
    whole = _WHOLE.fullmatch(strip_marks(text))
    if whole:
        return whole.group(1).upper()
    named = _by_text(text, options)
    if named:
        return named
    if len(text) <= 2 and text.isdigit() and int(text) < max(len(options), 1):
        return LETTERS[int(text)]
    leading = _LEADING.match(text)
    return leading.group(1).upper() if leading else None


def _by_text(value: str, options: dict[str, str]) -> str | None:
    wanted = " ".join(value.casefold().split()).strip(" .")
    hits = [
        letter for letter, text in options.items() if " ".join(text.casefold().split()).strip(" .") == wanted
    ]
    return hits[0] if wanted and len(hits) == 1 else None


def _letter(text: str, options: dict[str, str]) -> str | None:
    """The option that an answer states: the later of the last box and the last labelled letter, else a
    bare letter.
    """
    whole = _letter_of(text, options, prose=False)
    if whole:
        return whole
    stated: list[tuple[int, str]] = []
    if boxes(text):
        letter = _letter_of(last_box(text) or "", options)
        if letter:
            stated.append((boxes(text)[-1][0], letter))
    for pattern in (_CUE, _FIELD):
        for match in list(pattern.finditer(text))[:-6:-1]:
            letter = _letter_of(_value(text, match.end()), options)
            if letter:
                stated.append((match.start(), letter))
                break
    for match in list(_SAID.finditer(text))[-1:]:
        stated.append((match.start(), match.group(1) or match.group(2)))
    if stated:
        return max(stated)[1]
    lines = [line for line in text[-4000:].split("\n") if line.strip()]
    return _letter_of(lines[-1], options, prose=False) if lines else None


def _value(text: str, at: int) -> str:
    """The rest of the sentence behind a label, or the first line with something on it."""
    for line in text[at : at + 2000].split("\n")[:5]:
        value = strip_marks(line.strip().strip("\"'"))
        if value:
            return re.split(r"(?<=[.!?])\s(?=[A-Z][a-z])", value, maxsplit=1)[0]
    return ""


def _letter_of(value: str, options: dict[str, str], prose: bool = True) -> str | None:
    """The letter that a short text names. prose: also a letter that stands by itself in a sentence."""
    value = strip_marks(_WRAP.sub(r"\1", value[:2000])).strip("$\"' ")
    value = strip_marks(value)
    box = last_box(value)
    if box:
        value = strip_marks(_WRAP.sub(r"\1", box))
    whole = _WHOLE.fullmatch(value)
    if whole:
        return whole.group(1).upper()
    named = _by_text(value, options)
    if named:
        return named
    leading = _LEADING.match(value)
    if leading and (prose or _by_text(value[leading.end() - 1 :], options)):
        return leading.group(1).upper()
    if not prose:
        return None
    found = []
    for match in _STANDALONE.finditer(value):
        letter, rest = match.group(1), value[match.end() :]
        bracketed = match.group().startswith("(")
        if (
            letter in "AI"
            and not bracketed
            and re.match(r"\s[a-z]", rest)
            and not re.match(r"\s(?:is|and|or|because|since)\b", rest)
        ):
            continue  # the article, the pronoun
        found.append(letter)
    return found[0] if found and len(set(found)) == 1 else None
