"""The 25 instructions of IFEval in one table: parameters, published verdict, our verdict.

From a metric path to its rule: "tier1_pass_rates/startend:quotation" → INSTRUCTIONS["startend:quotation"].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evaluation.scorers.instructions import corrected, published
from evaluation.scorers.instructions import parameters as p

Check = Callable[[str, dict[str, Any]], bool]


@dataclass(frozen=True)
class Instruction:
    """published, corrected: (answer, parameters) → passed; may raise Unscored. parameters: name → reader."""

    published: Check
    corrected: Check
    parameters: dict[str, Callable[[Any], Any]] = field(default_factory=dict)


INSTRUCTIONS: dict[str, Instruction] = {
    "keywords:existence": Instruction(
        published.keyword_existence, corrected.keyword_existence, {"keywords": p.words}
    ),
    "keywords:frequency": Instruction(
        published.keyword_frequency,
        corrected.keyword_frequency,
        {"keyword": p.text, "frequency": p.whole_number, "relation": p.relation},
    ),
    "keywords:forbidden_words": Instruction(
        published.forbidden_words, corrected.forbidden_words, {"forbidden_words": p.words}
    ),
    "keywords:letter_frequency": Instruction(
        published.letter_frequency,
        corrected.letter_frequency,
        {"letter": p.letter, "let_frequency": p.whole_number, "let_relation": p.relation},
    ),
    "language:response_language": Instruction(
        published.response_language, corrected.response_language, {"language": p.language}
    ),
    "length_constraints:number_sentences": Instruction(
        published.number_sentences,
        corrected.number_sentences,
        {"num_sentences": p.whole_number, "relation": p.relation},
    ),
    "length_constraints:number_paragraphs": Instruction(
        published.number_paragraphs, corrected.number_paragraphs, {"num_paragraphs": p.whole_number}
    ),
    "length_constraints:number_words": Instruction(
        published.number_words, corrected.number_words, {"num_words": p.whole_number, "relation": p.relation}
    ),
    "length_constraints:nth_paragraph_first_word": Instruction(
        published.nth_paragraph_first_word,
        corrected.nth_paragraph_first_word,
        {"num_paragraphs": p.whole_number, "nth_paragraph": p.whole_number, "first_word": p.text},
    ),
    "detectable_content:number_placeholders": Instruction(
        published.number_placeholders, corrected.number_placeholders, {"num_placeholders": p.whole_number}
    ),
    "detectable_content:postscript": Instruction(
        published.postscript, corrected.postscript, {"postscript_marker": p.text}
    ),
    "detectable_format:number_bullet_lists": Instruction(
        published.number_bullet_lists, corrected.number_bullet_lists, {"num_bullets": p.whole_number}
    ),
    "detectable_format:constrained_response": Instruction(
        published.constrained_response, corrected.constrained_response
    ),
    "detectable_format:number_highlighted_sections": Instruction(
        published.number_highlighted_sections,
        corrected.number_highlighted_sections,
        {"num_highlights": p.whole_number},
    ),
    "detectable_format:multiple_sections": Instruction(
        published.multiple_sections,
        corrected.multiple_sections,
        {"section_spliter": p.text, "num_sections": p.whole_number},
    ),
    "detectable_format:json_format": Instruction(published.json_format, corrected.json_format),
    "detectable_format:title": Instruction(published.title, corrected.title),
    "combination:two_responses": Instruction(published.two_responses, published.two_responses),
    "combination:repeat_prompt": Instruction(
        published.repeat_prompt, corrected.repeat_prompt, {"prompt_to_repeat": p.text}
    ),
    "startend:end_checker": Instruction(published.end_checker, corrected.end_checker, {"end_phrase": p.text}),
    "startend:quotation": Instruction(published.quotation, corrected.quotation),
    "change_case:capital_word_frequency": Instruction(
        published.capital_word_frequency,
        published.capital_word_frequency,
        {"capital_frequency": p.whole_number, "capital_relation": p.relation},
    ),
    "change_case:english_capital": Instruction(published.english_capital, corrected.english_capital),
    "change_case:english_lowercase": Instruction(published.english_lowercase, corrected.english_lowercase),
    "punctuation:no_comma": Instruction(published.no_comma, corrected.no_comma),
}
