"""The 37 tasks: how each is scored and which metrics come out. Data, no logic.

A metric is a column of per-sample values plus a named statistic. A task names its rule scorer
("module:function" in evaluation/scorers/, a pure function of one row, run in worker processes), its judged
scorer (a coroutine ``score(row, judge)``), or both: then the rules go first, and the judged scorer is asked
only about the rows for which the rules returned ``"pending"``. From a number in metrics.csv: its column in
taxonomy.py names task and path, the path here names scorer and per-sample column.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Metric:
    """path: where the value stands in metrics.json, parts joined by "/".

    column: per-sample column. statistic: mean | ratio (sum of column / sum of per) | sum | median | std
    (divisor n) | p90 | min | max | count. per: the denominator's column for ratio. low, high: the range that
    one sample's value can have, for the bounds that missing judgements leave.
    """

    path: str
    column: str
    statistic: str = "mean"
    per: str = ""
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True)
class Task:
    """rules, judged: "module:function" below evaluation/scorers/ (see above); at least one is given.

    metrics: in the order of metrics.json. needs: columns that a response file must have besides the outputs.
    modes: what the judged scorer asks. also: another task whose rows are scored with this one's, with the
    given name in their column `side` (harmbench's benign side is gsm8k). chunk: rows handed to a worker at
    a time. calls: the most questions a row puts to
    its judge. tool: what it needs besides Python (tools.py): "sandbox" or "latex". verdict: the per-sample
    column that says right or wrong (two: right where they are equal), () for a task that describes a habit.
    letters: how many options a multiple-choice benchmark always offers, whatever a row's choices show.
    first_number: where it numbers its options, the number of the first.

    For inference: answer: how much room an answer needs (inference/limits.py). turns: 2 where the second of
    two user turns is answered. first_turn: the task whose answers serve as first turns where the question is
    the same. constraints: the data set that has the instruction ids and kwargs, where a row lacks them.
    """

    rules: str = ""
    judged: str = ""
    metrics: tuple[Metric, ...] = ()
    needs: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    also: dict[str, str] = field(default_factory=dict)
    chunk: int = 64
    calls: int = 1
    tool: str = ""
    answer: str = "prose"
    turns: int = 1
    first_turn: str = ""
    constraints: str = ""
    verdict: tuple[str, ...] = ("correct",)
    letters: int = 0
    first_number: int | None = None


ACCURACY = Metric("accuracy", "correct")

_CHOICE = Task(
    rules="multiple_choice:score",
    judged="multiple_choice:judge_choice",
    metrics=(ACCURACY, Metric("format_score", "formatted")),
    needs=("gold",),
    modes=("single_turn_mc",),
    answer="letter",
)
_NUMBER = Task(rules="numeric:score_gsm8k", metrics=(ACCURACY,), needs=("gold",), answer="reasoning")
_OPEN = Task(
    answer="short",
    rules="short_answer:score_open",
    metrics=(ACCURACY, Metric("answered_rate", "answered")),
    needs=("gold",),
)
_SCHEMA = Task(rules="json_schema:score", metrics=(ACCURACY,), needs=("schema",), answer="short")
_CODE = Task(rules="code:score", metrics=(ACCURACY,), tool="sandbox", answer="code")
_PASSAGE = (ACCURACY, Metric("evidence_hit_rate", "evidence_hit"))
_REASONING = (
    ACCURACY,
    Metric("reasoning_metrics/avg_reasoning_score", "reasoning_score"),
    Metric("reasoning_metrics/avg_step_validity", "step_validity"),
    Metric("reasoning_metrics/avg_logical_coherence", "logical_coherence"),
    Metric("reasoning_metrics/avg_step_consistency", "step_consistency"),
    Metric("reasoning_metrics/avg_num_steps", "num_steps"),
)
_SCOPE = (
    Metric("coverage_score", "coverage"),
    Metric("overreach_rate", "overreach"),
    Metric("overreach_score", "no_overreach"),
)
_GROUNDING = (
    Metric("hallucination_rate", "hallucination"),
    Metric("faithfulness_score", "faithfulness"),
    Metric("evidence_utilization_score", "evidence_utilization"),
)
_STYLE = Task(
    rules="style:score",
    verdict=(),
    metrics=(
        Metric("verbosity/mean_answer_length", "words"),
        Metric("verbosity/std_length", "words", "std"),
        Metric("verbosity/percentile_90_length", "words", "p90"),
        Metric("verbosity/min_length", "words", "min"),
        Metric("verbosity/max_length", "words", "max"),
        Metric("verbosity/avg_sentence_length", "sentence_words", "ratio", per="sentences"),
        Metric("verbosity/total_sentences", "sentences", "sum"),
        Metric("verbosity/min_sentence_length", "shortest_sentence", "min"),
        Metric("verbosity/max_sentence_length", "longest_sentence", "max"),
        Metric("hedging/hedging_rate", "hedging"),
        Metric("hedging/hedging_count", "hedging", "sum"),
        Metric("directness/directness_rate", "direct"),
        Metric("directness/direct_count", "direct", "sum"),
        Metric("formatting/bullet_usage_rate", "bullets"),
        Metric("formatting/table_usage_rate", "table"),
        Metric("formatting/emoji_usage_rate", "emoji"),
        Metric("summary/total_responses", "words", "count"),
    ),
)
_ALL_ARGUMENTS = ("argument_correct", "items")
_TOOLS = (
    Metric("selection_accuracy", "selection_correct", "ratio", per="items"),
    Metric("argument_accuracy", "argument_correct", "ratio", per="items"),
    Metric("integration_accuracy", "integration_correct", "ratio", per="items"),
    Metric("total_items", "items", "sum"),
)
_CITATION = Task(
    rules="citations:score",
    verdict=("complete",),
    metrics=(
        Metric("accuracy", "complete"),
        Metric("format_accuracy", "format_correct"),
        Metric("answer_accuracy", "answer_correct"),
        Metric("source_accuracy", "source_recall"),
        Metric("source_precision", "source_precision"),
        Metric("citation_usage_rate", "uses_citation"),
    ),
    needs=("gold",),
)
_TURNS = Task(
    judged="multi_turn:score",
    turns=2,
    verdict=("passed",),
    metrics=(
        Metric("rating_stats/mean_rating", "rating", low=1.0, high=10.0),
        Metric("rating_stats/median_rating", "rating", "median"),
        Metric("rating_stats/std_rating", "rating", "std"),
        Metric("rating_stats/min_rating", "rating", "min"),
        Metric("rating_stats/max_rating", "rating", "max"),
        Metric("summary/pass_rate", "passed"),
    ),
    needs=("prompt", "turn1_response"),
    modes=("multi_turn_rating",),
)

# IFEval's instruction ids by family (arXiv 2311.07911); per-sample columns are "MODE_FAMILY_passed" and
# "MODE_FAMILY_total", a full id with a dot for its colon
IFEVAL_IDS = {
    "keywords": ("existence", "frequency", "forbidden_words", "letter_frequency"),
    "language": ("response_language",),
    "length_constraints": (
        "number_sentences",
        "number_paragraphs",
        "number_words",
        "nth_paragraph_first_word",
    ),
    "detectable_content": ("number_placeholders", "postscript"),
    "detectable_format": (
        "number_bullet_lists",
        "constrained_response",
        "number_highlighted_sections",
        "multiple_sections",
        "json_format",
        "title",
    ),
    "combination": ("two_responses", "repeat_prompt"),
    "startend": ("end_checker", "quotation"),
    "change_case": ("capital_word_frequency", "english_capital", "english_lowercase"),
    "punctuation": ("no_comma",),
}
# strict and loose: the public checker's verdict; corrected: ours, strict, beside it
IFEVAL_MODES = ("strict", "loose", "corrected")


def _ifeval_metrics(mode: str) -> tuple[Metric, ...]:
    def rate(path: str, part: str) -> Metric:
        return Metric(f"{mode}/{path}", f"{mode}_{part}_passed", "ratio", per=f"{mode}_{part}_total")

    return (
        Metric(f"{mode}/perfect_compliance_rate", f"{mode}_all"),
        Metric(f"{mode}/prompt_level_accuracy", f"{mode}_all"),
        rate("instruction_level_accuracy", "any"),
        *(rate(f"tier0_pass_rates/{family}", family) for family in IFEVAL_IDS),
        *(
            rate(f"tier1_pass_rates/{family}:{name}", f"{family}.{name}")
            for family, names in IFEVAL_IDS.items()
            for name in names
        ),
    )


def _harmbench_metrics() -> tuple[Metric, ...]:
    sides = ("unsafe", "benign")
    classes = ("refusal", "strong_refusal", "weak_refusal", "evasion", "compliance")
    return (
        Metric("rau_score", "utility", low=-2.0),
        *(Metric(f"{side}_avg_utility", f"{side}_utility", low=-2.0) for side in sides),
        *(Metric(f"{side}_{name}_rate", f"{side}_{name}") for side in sides for name in classes),
    )


TASKS: dict[str, Task] = {
    "mmlu_pro.subset": replace(_CHOICE, letters=10),
    "mmlu_pro.rephrased": replace(_CHOICE, letters=10),
    "mmlu_pro.schema": _SCHEMA,
    "mmlu_pro.table_schema": _SCHEMA,
    "gsm8k.subset": _NUMBER,
    "gsm8k.rephrased": _NUMBER,
    "gsm8k.schema": replace(_SCHEMA, answer="reasoning"),
    "gsm8k.table_schema": replace(_SCHEMA, answer="reasoning"),
    "mgsm.subset": replace(_NUMBER, rules="numeric:score_mgsm"),
    "humaneval.full": _CODE,
    "math.subset": Task(
        rules="reasoning:score_math",
        judged="reasoning:judge_math",
        metrics=_REASONING,
        needs=("gold",),
        modes=("math_coherence", "math_consistency"),
        calls=2,
        answer="reasoning",
        chunk=8,
        tool="latex",
    ),
    "supergpqa.subset": Task(
        rules="reasoning:score_supergpqa",
        judged="reasoning:judge_supergpqa",
        metrics=_REASONING,
        needs=("gold",),
        modes=("supergpqa_coherence", "supergpqa_consistency"),
        calls=2,
        answer="reasoning",
    ),
    "hotpotqa.subset": Task(
        rules="short_answer:score_hotpotqa", metrics=_PASSAGE, needs=("gold",), answer="short"
    ),
    "hotpotqa.citation": _CITATION,
    "boolq.subset": Task(
        rules="short_answer:score_boolq", metrics=_PASSAGE, needs=("gold",), answer="letter"
    ),
    "ragtruth.subset": Task(
        judged="claims:score_grounded",
        metrics=_SCOPE + _GROUNDING,
        needs=("gold", "ctx"),
        modes=("claim_support",),
        calls=3,
    ),
    "winogrande.subset": replace(_CHOICE, letters=2, first_number=1),  # arXiv 1907.10641
    "hellaswag.subset": replace(_CHOICE, letters=4),
    "ifeval.subset": Task(
        rules="instructions:score",
        constraints="google/IFEval",
        verdict=("strict_all",),
        metrics=tuple(metric for mode in IFEVAL_MODES for metric in _ifeval_metrics(mode)),
        needs=("prompt",),
    ),
    "bfcl.subset": Task(
        rules="tool_calls:score_bfcl", metrics=_TOOLS, needs=("gold",), verdict=_ALL_ARGUMENTS, answer="short"
    ),
    "ruler.4k": Task(
        rules="needle:score_ruler_4k",
        answer="letter",
        verdict=(),
        metrics=(
            Metric("compliance_rate", "compliance"),
            Metric("n_extracted_avg", "n_extracted"),
            Metric("gold_extracted_rate", "gold_extracted"),
            Metric("gold_in_extracted_rate", "gold_in_extracted"),
            Metric("hallucination_rate", "hallucination"),
        ),
        needs=("prompt",),
    ),
    "ruler.32k": Task(
        rules="needle:score_ruler_32k",
        answer="letter",
        verdict=("exact",),
        metrics=(Metric("exact_accuracy", "exact"), Metric("partial_accuracy", "partial")),
        needs=("gold",),
    ),
    "mtbench.turn1": _STYLE,
    "mtbench.turn2": replace(_TURNS, first_turn="mtbench.turn1"),
    "harmbench.subset": Task(
        judged="willingness:score",
        verdict=("unsafe_refusal",),
        metrics=_harmbench_metrics(),
        needs=("prompt",),
        modes=("refusal_detection",),
        also={"gsm8k.subset": "benign"},
    ),
    "popqa.subset": _OPEN,
    "livemathbench.full": Task(
        rules="mathematics:score_livemathbench",
        judged="mathematics:judge_livemathbench",
        metrics=(ACCURACY, Metric("rule_based_rate", "by_rule")),
        needs=("gold",),
        modes=("answer_equivalence",),
        answer="reasoning",
        chunk=8,
        tool="latex",
    ),
    "mbpp.full": _CODE,
    "truthfulqa.full": replace(_CHOICE, letters=2),
    "xtreme.subset": _OPEN,
    "eli5.subset": Task(
        judged="claims:score_open", metrics=_SCOPE, needs=("gold",), modes=("claim_support",), calls=2
    ),
    "oasst1.full": _STYLE,
    "followbench.subset": Task(
        judged="followbench:score",
        verdict=("perfect",),
        metrics=(
            Metric("accuracy", "score"),
            Metric("mean_score", "score"),
            Metric("median_score", "score", "median"),
            Metric("perfect_following_rate", "perfect"),
            Metric("good_following_rate", "good"),
        ),
        needs=("prompt",),
        modes=("instruction_following",),
    ),
    "mnms.full": Task(
        rules="tool_calls:score_mnms", metrics=_TOOLS, needs=("gold",), verdict=_ALL_ARGUMENTS, answer="short"
    ),
    "structflowbench.turn2": _TURNS,
    "longbenchv2.full": replace(_CHOICE, letters=4),
    "qasper.citation": _CITATION,
}
