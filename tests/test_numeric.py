"""GSM8K and MGSM: golden rows, one line per fault, and wrappings that must not change a verdict."""

from __future__ import annotations

from fractions import Fraction

import pytest
from support import golden_rows

from evaluation.extraction.numbers import answer_number, gold_number
from evaluation.rows import make_row
from evaluation.scorers.numeric import language_of
from evaluation.scoring import score_by_rules

ROWS = [row for name in ("gsm8k", "mgsm") for row in golden_rows(f"knowledge_reasoning_format/{name}.jsonl")]


@pytest.mark.parametrize("golden", ROWS, ids=lambda golden: golden["id"])
def test_golden_row(golden):
    expected = {**golden["reference"], **golden.get("right", {})}["correct"]
    score = score_by_rules(make_row(golden["task"], golden["inputs"]))
    assert score["correct"] is expected, score


# text, language, value or None: one line per fault that people reported of number readers
READINGS = {
    "comma thousands": ("Answer: 1,234", "en", "1234"),
    "comma in braces": (r"\boxed{9{,}500}", "en", "9500"),
    "thin space of LaTeX": (r"Answer: $12\,500$", "en", "12500"),
    "hash line with comma": ("so\n#### 2,125", "en", "2125"),
    "trailing comma": ("The total is 72 clips, altogether.", "en", "72"),
    "first label": ("Answer: 5 looks wrong.\nAnswer: 7", "en", "7"),
    "bold": ("Final: **73**", "en", "73"),
    "two boxes": (r"\boxed{1} no, \boxed{2}", "en", "2"),
    "text wrapper": (r"Answer: $\text{13}$", "en", "13"),
    "escaped dollar": (r"Answer: \$20", "en", "20"),
    "units": ("Answer: 10 cm", "en", "10"),
    "unit with an exponent": ("The area is 30 m^2", "en", "30"),
    "unit with a raised digit": ("The area is 30 m²", "en", "30"),
    "LaTeX unit": (r"Answer: $30\text{ m}^2$", "en", "30"),
    "vulgar fraction": ("Answer: 1½", "en", "3/2"),
    "LaTeX mixed number": (r"Answer: $1\frac{1}{2}$", "en", "3/2"),
    "short LaTeX fraction": (r"\boxed{\frac12}", "en", "1/2"),
    "division by zero": ("Answer: 3/0", "en", None),
    "label heads a solution": ("Answer:\nShe has 3 hens.\nThey lay 5 eggs each, 3 * 5 = 15.", "en", "15"),
    "label, then sentences": ("Answer: She has 3 hens. They lay 15 eggs in all.", "en", "15"),
    "calculation behind a label": ("Answer: 3 boxes * 4 eggs = 12 eggs", "en", "12"),
    "reason behind the number": ("The answer is 18 because 20 - 2 = 18 and 2 are eaten.", "en", "18"),
    "calculation without a result": ("Answer: 3 * 4", "en", None),
    "calculator notes": ("He runs 9*60=<<9*60=540>>540 m", "en", "540"),
    "offer at the end": ("She pays 45 in all.\n\nLet me know if you need help with question 3.", "en", "45"),
    "question at the end": ("She pays 45 in all. Would you like 2 more examples?", "en", "45"),
    "reference in brackets": ("So 45 in all (see step 3)", "en", "45"),
    "calculation in brackets": ("She has 18 (20 - 2) eggs.", "en", "18"),
    "bold in a sentence": ("She makes **$18** a day at the market of 9 am.", "en", "18"),
    "step heading": ("### Step 1:\n3+4=7\n### Step 2:\n7*2=14", "en", "14"),
    "numbered heading of level 4": ("#### 1. Add\n3 + 4 = 7 apples", "en", "7"),
    "own next question": ("Answer: 7\n\nQuestion: And how many eggs?\nAnswer: 12", "en", "7"),
    "clock": ("He comes at 3:30", "en", None),
    "date": ("Answer: 12/05/2024", "en", None),
    "date in words": ("Answer: May 5, 2023", "en", None),
    "number in a word": ("The room x2 holds 7, says B12", "en", "7"),
    "million": ("Answer: $2 million", "en", "2000000"),
    "power of ten": (r"Answer: $1.5 \times 10^{3}$", "en", "1500"),
    "tower of powers": ("Answer: 9^9^9^9", "en", Fraction(9**9)),
    "exponent of a billion": ("Answer: 1e999999", "en", None),
    "dollar before minus": ("Answer: -$5", "en", "-5"),
    "minus behind dollar": ("Answer: $-5", "en", "-5"),
    "bullet": ("- 5 boxes", "en", "5"),
    "words": ("Answer: one hundred and twenty-five", "en", "125"),
    "none is not zero": ("We add 5 and 0.\nAnswer: none", "en", None),
    "German point and comma": ("Antwort: 1.234,5", "de", "2469/2"),
    "English style in German": ("Antwort: 12.5", "de", "25/2"),
    "French no-break space": ("Réponse : 1\u202f234", "fr", "1234"),
    "Russian": ("Ответ: 1 234,5", "ru", "2469/2"),
    "kilometre is no thousand": ("答案：8千米", "zh", "8"),
    "myriads and thousands": ("答案：3万5千", "zh", "35000"),
    "year in characters": ("答案：二〇二四", "zh", "2024"),
    "Thai digits": ("คำตอบคือ ๑๒", "th", "12"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "language", "value"), READINGS.values(), ids=READINGS)
def test_reading(text, language, value):
    found = answer_number(text, language)
    assert (found.value if found else None) == (None if value is None else Fraction(value))


def test_both_meanings_of_a_percentage_and_of_a_german_comma():
    assert answer_number("Answer: 50%").equals(Fraction(1, 2)) and answer_number("Answer: 50%").equals(
        Fraction(50)
    )
    assert answer_number("Antwort: 1,234", "de").equals(Fraction(1234))
    assert not answer_number("Answer: 1,234").equals(Fraction("1.234"))


GOLDS = {
    "solution": ("2*3=<<2*3=6>>6\n#### 1,006", "1006"),
    "plain": ("7", "7"),
    "decimal": ("3.5", "7/2"),
    "none": ("", None),
}


@pytest.mark.parametrize(("text", "value"), GOLDS.values(), ids=GOLDS)
def test_gold(text, value):
    assert gold_number(text) == (None if value is None else Fraction(value))


LANGUAGES = {
    "column": ({"lang": "de"}, "de"),
    "name": ({"language": "German"}, "de"),
    "meta": ({"meta": {"language": "fr"}}, "fr"),
    "locale": ({"meta": {"lang": "zh-CN"}}, "zh"),
    "id": ({"id": "mgsm_sw_12"}, "sw"),
    "none": ({"id": "12"}, None),
}


@pytest.mark.parametrize(("columns", "language"), LANGUAGES.values(), ids=LANGUAGES)
def test_language(columns, language):
    assert language_of(make_row("mgsm.subset", columns)) == language


WRAPPINGS = {
    "label": "Answer: {}",
    "bold label": "**Answer:** {}",
    "bold all": "**Answer: {}**",
    "bold": "Answer: **{}**",
    "boxed": "Thus $\\boxed{{{}}}$",
    "boxed behind a label": "Answer: $\\boxed{{{}}}$.",
    "fenced": "Answer:\n```\n{}\n```",
    "code": "Answer: `{}`",
    "inline LaTeX": r"Answer: \({}\)",
    "displayed LaTeX": "Answer: $${}$$",
    "currency": "Answer: ${}",
    "trailing stop": "Answer: {}.",
    "trailing comma": "Answer: {}, all told",
    "leading prose": "We take 3 and 4 first.\nThe answer is {}.",
    "echoed format": "I answer as 'Answer: 99'.\nAnswer: {}",
    "two answers": "Answer: 98\nOn reflection:\nAnswer: {}",
    "thinking": "<think>Answer: 97</think>Answer: {}",
    "harmony": "analysisAnswer: 96 perhaps.assistantfinalAnswer: {}",
    "remark": "The answer is {}.\n\nLet me know about question 2!",
    "heading": "### Answer\n\nAnswer: {}",
    "hash line": "so\n#### {}",
    "bare": "{}",
    "sentence": "In the end she has {} of them.",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
@pytest.mark.parametrize("value", ["18", "1,234", "2.5", "-7", "1/2"])
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_wrapping_keeps_the_verdict(wrapping, value, right):
    gold = {"18": 18, "1,234": 1234, "2.5": 2.5, "-7": -7, "1/2": 0.5}[value] if right else 41
    columns = {"outputs": wrapping.format(value), "gold": gold}
    assert score_by_rules(make_row("gsm8k.subset", columns))["correct"] is right


def test_a_truncated_thought_is_wrong():
    score = score_by_rules(make_row("gsm8k.subset", {"outputs": "<think>Answer: 4", "gold": "#### 4"}))
    assert score == {"correct": False, "extracted": None, "reason": "truncated"}


@pytest.mark.parametrize(
    "piece", ["[", "{", "(", "7", " ", ";", "!", "\n", "7 ", "1,", "*", "\\boxed{", "Answer: ", "一", "$7/"]
)
def test_long_repetition_is_read_or_refused(piece):
    text = piece * (100_000 // len(piece))
    answer_number(text)
    answer_number(f"Answer: 4 {text}", "de")
