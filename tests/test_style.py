"""Style: golden rows, the sentence rule, and one line for every fault that the definitions had."""

from __future__ import annotations

import pytest
from support import GOLDEN, golden_rows

from evaluation.extraction.sentences import sentences
from evaluation.rows import make_row
from evaluation.scorers.style import COLUMNS, score

FOLDER = "instructions_style_tools_turns_judge_comparison"
# golden field -> our column
FIELDS = {
    "token_count": "words",
    "sentence_count": "sentences",
    "has_hedging": "hedging",
    "is_direct": "direct",
    "has_bullets": "bullets",
    "has_table": "table",
    "has_emoji": "emoji",
}
ROWS = [
    pytest.param(task, row, id=row["id"])
    for task in ("mtbench.turn1", "oasst1.full")
    for row in golden_rows(f"{FOLDER}/{task}.jsonl")
]


def style(text: str, task: str = "mtbench.turn1") -> dict:
    return score(make_row(task, {"outputs": text}))


@pytest.mark.parametrize(("task", "row"), ROWS)
def test_golden(task: str, row: dict) -> None:
    got = score(make_row(task, row))
    reference = row["reference"]
    if reference is None or "error" in reference:
        assert got == {**dict.fromkeys(COLUMNS), "extracted": None, "reason": "empty"}
        return
    right = row.get("right", {})
    for field, column in FIELDS.items():
        assert got[column] == right.get(field, reference[field]), field
    if "sentence_count" not in right:
        assert got["sentence_words"] / got["sentences"] == pytest.approx(reference["avg_sentence_length"])


@pytest.mark.parametrize("task", ["mtbench.turn1", "oasst1.full"])
def test_golden_aggregates(task: str) -> None:
    import json

    expected = json.loads((GOLDEN / FOLDER / "expected.json").read_text(encoding="utf-8"))[task]["right"]
    rows = [score(make_row(task, row)) for row in golden_rows(f"{FOLDER}/{task}.jsonl")]
    scored = [row for row in rows if row["words"] is not None]
    assert sum(row["sentences"] for row in scored) == expected.pop("total_sentences")
    columns = {
        "hedging_rate": "hedging",
        "directness_rate": "direct",
        "bullet_usage_rate": "bullets",
        "table_usage_rate": "table",
        "emoji_usage_rate": "emoji",
    }
    for name, value in expected.items():
        assert sum(row[columns[name]] for row in scored) / len(scored) == pytest.approx(value), name


SPLITS = {
    "egg_is_not_eg": ("We ate an egg. It was good.", 2),
    "ice_is_not_ie": ("I like ice. It is cold.", 2),
    "company_at_the_end": ("He works at Acme Co. He likes it.", 2),
    "company_inside": ("He works at Acme Inc. with Ann.", 1),
    "company_name_goes_on": ("He works at Acme Inc. Holdings now.", 1),
    "titles": ("Dr. Sand met Prof. Low and Mrs. Ann vs. Mr. Pike.", 1),
    "eg_ie": ("They study e.g. Moss and i.e. Peat.", 1),
    "etc_before_a_capital": ("Apples, pears, etc. Bananas too.", 2),
    "etc_inside": ("Apples, pears, etc. are fruit.", 1),
    "decimal": ("About 3.5 miles are left. Walk!", 2),
    "list_numbers": ("1. Mix the clay.\n2. Shape the bowl.\n3. Fire it.", 3),
    "list_numbers_without_stops": ("Steps:\n1. Mix\n2. Shape", 1),
    "list_numbers_on_one_line": ("1. Mix the clay. 2. Shape the bowl. 3. Fire it.", 3),
    "initial": ("A. Morel painted the hall. He signed it.", 2),
    "initials_inside": ("It was John F. Morel who came.", 1),
    "plan_b_is_no_initial": ("We chose plan B. He left.", 2),
    "dotted_letters": ("The U.S. Government met at 5 p.m. sharp.", 1),
    "dotted_letters_at_the_end": ("We met at 5 p.m. The rest left.", 2),
    "small_letters": ("he paused. then he left. nobody asked.", 3),
    "closing_quote": ('"Come in." she said. "Sit down!" He sat.', 3),
    "typographic_quote": ("“Come in.” He came.", 2),
    "ellipsis_goes_on": ("Well... maybe not.", 1),
    "ellipsis_ends": ("Well... Maybe not.", 2),
    "question_and_answer": ("Is it heavy? Yes! It is.", 3),
    "number_sign": ("See no. 5 of the list.", 1),
    "the_answer_no": ("No. It is not.", 2),
    "year_at_the_end": ("It was built in 1790. The mill stands.", 2),
    "chinese": ("桥在河上。河很宽！", 2),
    "line_break_is_no_end": ("- wren\n- crane\n- heron", 1),
    "blank": ("  \n ", 0),
}


@pytest.mark.parametrize(("text", "count"), SPLITS.values(), ids=SPLITS)
def test_sentences(text: str, count: int) -> None:
    found = sentences(text)
    assert len(found) == count, found
    # nothing but white space is lost
    assert "".join(" ".join(found).split()) == "".join(text.split())


CASES = {
    # name: (answer, column, value)
    "may_the_month": ("We sail in May.", "hedging", False),
    "may_with_a_day": ("May 5 is the date.", "hedging", False),
    "may_the_verb": ("It may rain.", "hedging", True),
    "may_opens_a_sentence": ("May I suggest tea?", "hedging", True),
    "typographic_apostrophe": ("I’m not sure that it holds.", "hedging", True),
    "whole_words_only": ("The mighty shoulder.", "hedging", False),
    "think_text_is_no_answer": ("<think>maybe so</think>It is so.", "hedging", False),
    "question_is_not_direct": ("Is it true that cats are mammals? Hm.", "direct", False),
    "yes": ("Yes. It is.", "direct", True),
    "paris": ("Paris.", "direct", True),
    "decimal_does_not_end_it": ("3.14 is pi here", "direct", True),
    "any_two_letters_are_not_concrete": ("there is some way of doing this", "direct", False),
    "a_name_is_concrete": ("The river there is the Orla.", "direct", True),
    "list_number_is_no_number": ("1. Mix the clay well.", "direct", False),
    "initial_is_no_list": ("A. Lincoln was tall.", "bullets", False),
    "i_am_no_list": ("I. am", "bullets", False),
    "lettered_list": ("A. ash\nB. oak", "bullets", True),
    "divider_is_no_list": ("* * *", "bullets", False),
    "plus": ("+ item", "bullets", True),
    "en_dash": ("– item", "bullets", True),
    "numbered_bracket": ("1) item", "bullets", True),
    "bold_is_no_list": ("**Note** this", "bullets", False),
    "code_comment_is_no_list": ("```c\n/*\n * text\n */\n```", "bullets", False),
    "logical_or_is_no_table": ("if (a || b) run();\nif (c || d) stop();", "table", False),
    "absolute_values_are_no_table": ("|x| = |-x|\n|x| + |y|", "table", False),
    "two_columns_without_outer_bars": ("a | b\n---|---\n1 | 2", "table", True),
    "framed_without_rule": ("| a | b |\n| 1 | 2 |", "table", True),
    "one_line_is_no_table": ("| a | b |", "table", False),
    "chinese_is_no_emoji": ("你好", "emoji", False),
    "kana_is_no_emoji": ("こんにちは", "emoji", False),
    "hangul_is_no_emoji": ("한국어", "emoji", False),
    "boxes_are_no_emoji": ("┌─┐", "emoji", False),
    "ligature_is_no_emoji": ("ﬁne", "emoji", False),
    "enclosed_letter_is_no_emoji": ("Ⓜ", "emoji", False),
    "thinking_face": ("🤔", "emoji", True),
    "unicorn": ("🦄", "emoji", True),
    "watch": ("⌚", "emoji", True),
    "flag": ("🇳🇴", "emoji", True),
    "keycap": ("1️⃣", "emoji", True),
    "words_of_an_apostrophe": ("don't", "words", 2),
    "words_of_a_comma_number": ("1,000", "words", 2),
    "shortest": ("Yes. It is so here.", "shortest_sentence", 1),
    "longest": ("Yes. It is so here.", "longest_sentence", 4),
}


@pytest.mark.parametrize(("text", "column", "value"), CASES.values(), ids=CASES)
def test_cases(text: str, column: str, value: object) -> None:
    assert style(text)[column] == value


@pytest.mark.parametrize("text", ["", "  \n", "<think>never ends"])
def test_no_answer_has_no_style(text: str) -> None:
    got = style(text)
    assert got["reason"] == "empty"
    assert all(got[column] is None for column in COLUMNS)


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "{",
        "(",
        "7",
        " ",
        ";",
        "!",
        "\n",
        ".",
        "| ",
        "- ",
        ". ",
        '."',
        "a. ",
        "* ",
        "May ",
        "a.b",
        "?\n",
        "x",
    ],
)
def test_degenerate_text_is_linear(unit: str) -> None:
    text = (unit * (100_000 // len(unit))) + "z"
    got = style(text)
    assert got["words"] >= 1
