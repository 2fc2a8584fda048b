"""Where each metric stands: groups, capabilities, metric columns, row titles. Data, no logic.

The tree is that of Thede et al. 2026 (arXiv 2603.06610): CAN, WILL and HOW; below them capabilities, some
with a deep-dive (``_DD``) or a part (``W1a``); below them the 121 published result columns by their
published names, so that a published result CSV lines up with ours. A capability may hold several heatmap
rows (``W1`` has two), and a column without a row title is shown on its own only.

This is one of the three tables that hold names (the others: tasks.py, TASK_CONFIGS in compute_metrics.py).
A row may be added or moved here and nowhere else; tests/test_tables.py resolves every name.
"""

from __future__ import annotations

from dataclasses import dataclass

GROUPS = {
    "CAN": "Latent Competence",
    "WILL": "Default Behavioral Preference",
    "HOW": "Protocol Compliance",
}

# key -> (group, name), in the order of the tree
CAPABILITIES = {
    "C1": ("CAN", "Parametric Knowledge & Skills"),
    "C2": ("CAN", "Reasoning & Problem Solving"),
    "C2_DD": ("CAN", "Reasoning & Problem Solving"),
    "C3": ("CAN", "Contextual Comprehension (ICL)"),
    "C4": ("CAN", "Epistemic Faithfulness & Grounding"),
    "C5a": ("CAN", "Robustness of Competence"),
    "C5b": ("CAN", "Robustness of Competence"),
    "C5c": ("CAN", "Robustness of Competence"),
    "W1": ("WILL", "Willingness to Answer"),
    "W1a": ("WILL", "Willingness to Answer"),
    "W1b": ("WILL", "Willingness to Answer"),
    "W1_DD": ("WILL", "Willingness to Answer"),
    "W2": ("WILL", "Helpfulness & Informational Scope"),
    "W2a": ("WILL", "Helpfulness & Informational Scope"),
    "W2b": ("WILL", "Helpfulness & Informational Scope"),
    "W3a": ("WILL", "Style & Level of Elaboration"),
    "W3a_DD": ("WILL", "Style & Level of Elaboration"),
    "W3b": ("WILL", "Style & Level of Elaboration"),
    "W3b_DD": ("WILL", "Style & Level of Elaboration"),
    "H1": ("HOW", "Instruction Following & Constraint Satisfaction"),
    "H1_DD": ("HOW", "Instruction Following & Constraint Satisfaction"),
    "H2": ("HOW", "Output-Format Fidelity"),
    "H3": ("HOW", "Tool/Function Use & Integration"),
    "H3_DD": ("HOW", "Tool/Function Use & Integration"),
    "H4": ("HOW", "Multi-turn State & Commitment Keeping"),
    "H4_DD": ("HOW", "Multi-turn State & Commitment Keeping"),
    "H5": ("HOW", "Context-Window Operations"),
    "H5_DD": ("HOW", "Context-Window Operations"),
    "H6": ("HOW", "Citation/Attribution Mechanics"),
    "H6_DD": ("HOW", "Citation/Attribution Mechanics"),
}

# what a comparison shows unless categories_to_plot says otherwise
DEFAULT_CATEGORIES = (
    "C1", "C2", "C3", "C4", "C5a", "C5b", "C5c",
    "W1", "W2", "W3a", "W3b",
    "H1", "H2", "H3", "H4", "H5", "H6",
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column of metrics.csv.

    name: published column name. capability: key of CAPABILITIES. task, path: where the value comes from (a
    metric of tasks.py, the path's parts joined by "/"). row: title of the heatmap row it enters, "" for none.
    unit: share | words | steps | sentences | rating 1-10. direction: +1 more is better, -1 less is better,
    0 neither (a habit, not a merit).
    """

    name: str
    capability: str
    task: str
    path: str
    row: str
    unit: str
    direction: int

    @property
    def group(self) -> str:
        return CAPABILITIES[self.capability][0]


# fmt: off
# ruff: noqa: E501  (one line an entry)
# (column name, capability, task, metric path, row title, unit, direction)
_COLUMNS = (
    ("C1 Accuracy (MMLU-Pro)", "C1", "mmlu_pro.subset", "accuracy", "C1 Knowledge", "share", 1),
    ("C1 Accuracy (PopQA)", "C1", "popqa.subset", "accuracy", "C1 Knowledge", "share", 1),
    ("C1 Accuracy (GSM8K)", "C1", "gsm8k.subset", "accuracy", "C1 Knowledge", "share", 1),
    ("C1 Accuracy (livemathbench)", "C1", "livemathbench.full", "accuracy", "C1 Knowledge", "share", 1),
    ("C1 Accuracy (HumanEval)", "C1", "humaneval.full", "accuracy", "C1 Knowledge", "share", 1),
    ("C1 Accuracy (mbpp)", "C1", "mbpp.full", "accuracy", "C1 Knowledge", "share", 1),
    ("C2 Accuracy (MATH)", "C2", "math.subset", "accuracy", "C2 Reasoning", "share", 1),
    ("C2 Reasoning (MATH)", "C2", "math.subset", "reasoning_metrics/avg_reasoning_score", "C2 Reasoning", "share", 1),
    ("C2 Accuracy (SuperGPQA)", "C2", "supergpqa.subset", "accuracy", "C2 Reasoning", "share", 1),
    ("C2 Reasoning (SuperGPQA)", "C2", "supergpqa.subset", "reasoning_metrics/avg_reasoning_score", "C2 Reasoning", "share", 1),
    ("C2_DD Accuracy (MATH)", "C2_DD", "math.subset", "accuracy", "C2_DD Reasoning Task Acc.", "share", 1),
    ("C2_DD Reasoning (MATH)", "C2_DD", "math.subset", "reasoning_metrics/avg_reasoning_score", "C2_DD Reasoning Score", "share", 1),
    ("C2_DD Step Validity (MATH)", "C2_DD", "math.subset", "reasoning_metrics/avg_step_validity", "C2_DD Step Validity", "share", 1),
    ("C2_DD Logical Coherence (MATH)", "C2_DD", "math.subset", "reasoning_metrics/avg_logical_coherence", "C2_DD Logical Coherence", "share", 1),
    ("C2_DD Step Consistency (MATH)", "C2_DD", "math.subset", "reasoning_metrics/avg_step_consistency", "C2_DD Step Consistency", "share", 1),
    ("C2_DD N Steps (MATH)", "C2_DD", "math.subset", "reasoning_metrics/avg_num_steps", "C2_DD No. Reasoning Steps", "steps", 0),
    ("C2_DD Accuracy (SuperGPQA)", "C2_DD", "supergpqa.subset", "accuracy", "C2_DD Reasoning Task Acc.", "share", 1),
    ("C2_DD Reasoning (SuperGPQA)", "C2_DD", "supergpqa.subset", "reasoning_metrics/avg_reasoning_score", "C2_DD Reasoning Score", "share", 1),
    ("C2_DD Step Validity (SuperGPQA)", "C2_DD", "supergpqa.subset", "reasoning_metrics/avg_step_validity", "C2_DD Step Validity", "share", 1),
    ("C2_DD Logical Coherence (SuperGPQA)", "C2_DD", "supergpqa.subset", "reasoning_metrics/avg_logical_coherence", "C2_DD Logical Coherence", "share", 1),
    ("C2_DD Step Consistency (SuperGPQA)", "C2_DD", "supergpqa.subset", "reasoning_metrics/avg_step_consistency", "C2_DD Step Consistency", "share", 1),
    ("C2_DD N Steps (SuperGPQA)", "C2_DD", "supergpqa.subset", "reasoning_metrics/avg_num_steps", "C2_DD No. Reasoning Steps", "steps", 0),
    ("C3 Accuracy (HotpotQA)", "C3", "hotpotqa.subset", "accuracy", "C3 ICL Score", "share", 1),
    ("C3 Evidence Hit (HotpotQA)", "C3", "hotpotqa.subset", "evidence_hit_rate", "C3 ICL Score", "share", 1),
    ("C3 Accuracy (BoolQ)", "C3", "boolq.subset", "accuracy", "C3 ICL Score", "share", 1),
    ("C3 Evidence Hit (BoolQ)", "C3", "boolq.subset", "evidence_hit_rate", "C3 ICL Score", "share", 1),
    ("C4 Faithfulness (RAGTruth)", "C4", "ragtruth.subset", "faithfulness_score", "C4 Faithfulness", "share", 1),
    ("C4 Accuracy (TruthfulQA)", "C4", "truthfulqa.full", "accuracy", "C4 Faithfulness", "share", 1),
    ("C5a Rephrased (MMLU-Pro)", "C5a", "mmlu_pro.rephrased", "accuracy", "C5a Prompt Robust.", "share", 1),
    ("C5a Rephrased (GSM8K)", "C5a", "gsm8k.rephrased", "accuracy", "C5a Prompt Robust.", "share", 1),
    ("C5b Domain Shift (WinoGrande)", "C5b", "winogrande.subset", "accuracy", "C5b Domain Robust.", "share", 1),
    ("C5b Domain Shift (HellaSwag)", "C5b", "hellaswag.subset", "accuracy", "C5b Domain Robust.", "share", 1),
    ("C5c Multilingual (MGSM)", "C5c", "mgsm.subset", "accuracy", "C5c Multilingual", "share", 1),
    ("C5c Multilingual (XTREME)", "C5c", "xtreme.subset", "accuracy", "C5c Multilingual", "share", 1),
    ("W1 Unsafe Refusal", "W1", "harmbench.subset", "unsafe_refusal_rate", "W1 Unsafe Refusal", "share", 1),
    ("W1 Compliance Rate", "W1", "ruler.4k", "compliance_rate", "W1 Underspec. Comp.", "share", 0),
    ("W1a Unsafe Refusal", "W1a", "harmbench.subset", "unsafe_refusal_rate", "", "share", 1),
    ("W1b Compliance Rate", "W1b", "ruler.4k", "compliance_rate", "", "share", 0),
    ("W1_DD Benign Compliance", "W1_DD", "harmbench.subset", "benign_compliance_rate", "", "share", 0),
    ("W1_DD Unsafe Refusal", "W1_DD", "harmbench.subset", "unsafe_refusal_rate", "", "share", 1),
    ("W1_DD Unsafe Strong Refusal", "W1_DD", "harmbench.subset", "unsafe_strong_refusal_rate", "", "share", 0),
    ("W1_DD Unsafe Weak Refusal", "W1_DD", "harmbench.subset", "unsafe_weak_refusal_rate", "", "share", 0),
    ("W1_DD Unsafe Evasion", "W1_DD", "harmbench.subset", "unsafe_evasion_rate", "", "share", 0),
    ("W2 Coverage (RAGTruth)", "W2", "ragtruth.subset", "coverage_score", "W2 Coverage", "share", 1),
    ("W2 Coverage (ELI5)", "W2", "eli5.subset", "coverage_score", "W2 Coverage", "share", 1),
    ("W2 Overreach (RAGTruth)", "W2", "ragtruth.subset", "overreach_score", "W2 Overreach", "share", 1),
    ("W2 Overreach (ELI5)", "W2", "eli5.subset", "overreach_score", "W2 Overreach", "share", 1),
    ("W2a Coverage (RAGTruth)", "W2a", "ragtruth.subset", "coverage_score", "", "share", 1),
    ("W2a Coverage (ELI5)", "W2a", "eli5.subset", "coverage_score", "", "share", 1),
    ("W2b Overreach (RAGTruth)", "W2b", "ragtruth.subset", "overreach_rate", "", "share", -1),
    ("W2b Overreach (ELI5)", "W2b", "eli5.subset", "overreach_rate", "", "share", -1),
    ("W3a Verbosity (MTBenchT1)", "W3a", "mtbench.turn1", "verbosity/mean_answer_length", "W3a Verbosity", "words", 0),
    ("W3a Verbosity (OASST1)", "W3a", "oasst1.full", "verbosity/mean_answer_length", "W3a Verbosity", "words", 0),
    ("W3a_DD Verbosity (MTBenchT1)", "W3a_DD", "mtbench.turn1", "verbosity/mean_answer_length", "W3a_DD Avg. Response Length", "words", 0),
    ("W3a_DD Verbosity (std response len)", "W3a_DD", "mtbench.turn1", "verbosity/std_length", "W3a_DD Std. Response Length", "words", 0),
    ("W3a_DD Verbosity (avg sentence len)", "W3a_DD", "mtbench.turn1", "verbosity/avg_sentence_length", "W3a_DD Avg. Sentence Length", "words", 0),
    ("W3a_DD Verbosity (total_sentences)", "W3a_DD", "mtbench.turn1", "verbosity/total_sentences", "W3a_DD Avg. No. Sentences", "sentences", 0),
    ("W3a_DD Hedging", "W3a_DD", "mtbench.turn1", "hedging/hedging_rate", "W3a_DD Hedging", "share", 0),
    ("W3a_DD Directness", "W3a_DD", "mtbench.turn1", "directness/directness_rate", "W3a_DD Directness", "share", 0),
    ("W3a_DD Verbosity (OASST1)", "W3a_DD", "oasst1.full", "verbosity/mean_answer_length", "W3a_DD Avg. Response Length", "words", 0),
    ("W3a_DD Verbosity (std response len) (OASST1)", "W3a_DD", "oasst1.full", "verbosity/std_length", "W3a_DD Std. Response Length", "words", 0),
    ("W3a_DD Verbosity (avg sentence len) (OASST1)", "W3a_DD", "oasst1.full", "verbosity/avg_sentence_length", "W3a_DD Avg. Sentence Length", "words", 0),
    ("W3a_DD Verbosity (total_sentences) (OASST1)", "W3a_DD", "oasst1.full", "verbosity/total_sentences", "W3a_DD Avg. No. Sentences", "sentences", 0),
    ("W3a_DD Hedging (OASST1)", "W3a_DD", "oasst1.full", "hedging/hedging_rate", "W3a_DD Hedging", "share", 0),
    ("W3a_DD Directness (OASST1)", "W3a_DD", "oasst1.full", "directness/directness_rate", "W3a_DD Directness", "share", 0),
    ("W3b Formatting (Bullet Usage)", "W3b", "mtbench.turn1", "formatting/bullet_usage_rate", "W3b Formatting Use", "share", 0),
    ("W3b Formatting (Table Usage)", "W3b", "mtbench.turn1", "formatting/table_usage_rate", "W3b Formatting Use", "share", 0),
    ("W3b Formatting (Emoji Usage)", "W3b", "mtbench.turn1", "formatting/emoji_usage_rate", "W3b Formatting Use", "share", 0),
    ("W3b Formatting (Bullet Usage) (OASST1)", "W3b", "oasst1.full", "formatting/bullet_usage_rate", "W3b Formatting Use", "share", 0),
    ("W3b Formatting (Table Usage) (OASST1)", "W3b", "oasst1.full", "formatting/table_usage_rate", "W3b Formatting Use", "share", 0),
    ("W3b Formatting (Emoji Usage) (OASST1)", "W3b", "oasst1.full", "formatting/emoji_usage_rate", "W3b Formatting Use", "share", 0),
    ("W3b_DD Formatting (Bullet Usage)", "W3b_DD", "mtbench.turn1", "formatting/bullet_usage_rate", "W3b_DD Bullet Use", "share", 0),
    ("W3b_DD Formatting (Table Usage)", "W3b_DD", "mtbench.turn1", "formatting/table_usage_rate", "W3b_DD Table Use", "share", 0),
    ("W3b_DD Formatting (Emoji Usage)", "W3b_DD", "mtbench.turn1", "formatting/emoji_usage_rate", "W3b_DD Emoji Use", "share", 0),
    ("W3b_DD Formatting (Bullet Usage) (OASST1)", "W3b_DD", "oasst1.full", "formatting/bullet_usage_rate", "W3b_DD Bullet Use", "share", 0),
    ("W3b_DD Formatting (Table Usage) (OASST1)", "W3b_DD", "oasst1.full", "formatting/table_usage_rate", "W3b_DD Table Use", "share", 0),
    ("W3b_DD Formatting (Emoji Usage) (OASST1)", "W3b_DD", "oasst1.full", "formatting/emoji_usage_rate", "W3b_DD Emoji Use", "share", 0),
    ("H1 Pass Rate (IFEval)", "H1", "ifeval.subset", "strict/perfect_compliance_rate", "H1 Instructions", "share", 1),
    ("H1 Accuracy (FollowBench)", "H1", "followbench.subset", "accuracy", "H1 Instructions", "share", 1),
    ("H1_DD Pass Rate (strict)", "H1_DD", "ifeval.subset", "strict/perfect_compliance_rate", "", "share", 1),
    ("H1_DD Pass Rate (punctuation)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/punctuation", "", "share", 1),
    ("H1_DD Pass Rate (detectable_format)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/detectable_format", "", "share", 1),
    ("H1_DD Pass Rate (length_constraints)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/length_constraints", "", "share", 1),
    ("H1_DD Pass Rate (detectable_content)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/detectable_content", "", "share", 1),
    ("H1_DD Pass Rate (combination)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/combination", "", "share", 1),
    ("H1_DD Pass Rate (change_case)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/change_case", "", "share", 1),
    ("H1_DD Pass Rate (startend)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/startend", "", "share", 1),
    ("H1_DD Pass Rate (keywords)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/keywords", "", "share", 1),
    ("H1_DD Pass Rate (language)", "H1_DD", "ifeval.subset", "strict/tier0_pass_rates/language", "", "share", 1),
    ("H1_DD Followbench Score", "H1_DD", "followbench.subset", "accuracy", "", "share", 1),
    ("H2 Format (MMLU-Pro)", "H2", "mmlu_pro.schema", "accuracy", "H2 Format Fidelity", "share", 1),
    ("H2 Format (GSM8K)", "H2", "gsm8k.schema", "accuracy", "H2 Format Fidelity", "share", 1),
    ("H2 Format Table (MMLU-Pro)", "H2", "mmlu_pro.table_schema", "accuracy", "H2 Format Fidelity", "share", 1),
    ("H2 Format Table (GSM8K)", "H2", "gsm8k.table_schema", "accuracy", "H2 Format Fidelity", "share", 1),
    ("H3 Selection (BFCL)", "H3", "bfcl.subset", "selection_accuracy", "H3 Tool Use", "share", 1),
    ("H3 Arguments (BFCL)", "H3", "bfcl.subset", "argument_accuracy", "H3 Tool Use", "share", 1),
    ("H3 Selection (MNMS)", "H3", "mnms.full", "selection_accuracy", "H3 Tool Use", "share", 1),
    ("H3 Arguments (MNMS)", "H3", "mnms.full", "argument_accuracy", "H3 Tool Use", "share", 1),
    ("H3_DD Selection (BFCL)", "H3_DD", "bfcl.subset", "selection_accuracy", "", "share", 1),
    ("H3_DD Arguments (BFCL)", "H3_DD", "bfcl.subset", "argument_accuracy", "", "share", 1),
    ("H3_DD Selection (MNMS)", "H3_DD", "mnms.full", "selection_accuracy", "", "share", 1),
    ("H3_DD Arguments (MNMS)", "H3_DD", "mnms.full", "argument_accuracy", "", "share", 1),
    ("H4 Turn 2 Rating (MT-Bench)", "H4", "mtbench.turn2", "rating_stats/mean_rating", "H4 Multi-turn", "rating 1-10", 1),
    ("H4 Turn 2 Rating (StructFlowBench)", "H4", "structflowbench.turn2", "rating_stats/mean_rating", "H4 Multi-turn", "rating 1-10", 1),
    ("H4_DD Turn 2 Rating (mean)", "H4_DD", "mtbench.turn2", "rating_stats/mean_rating", "", "rating 1-10", 1),
    ("H4_DD Turn 2 Rating (std)", "H4_DD", "mtbench.turn2", "rating_stats/std_rating", "", "rating 1-10", 0),
    ("H4_DD Turn 2 Rating (median)", "H4_DD", "mtbench.turn2", "rating_stats/median_rating", "", "rating 1-10", 1),
    ("H5 Accuracy (RULER 32k)", "H5", "ruler.32k", "exact_accuracy", "H5 Long-Context", "share", 1),
    ("H5 Accuracy (LonvbenchV2)", "H5", "longbenchv2.full", "accuracy", "H5 Long-Context", "share", 1),
    ("H5_DD Exact Acc. (RULER 32k)", "H5_DD", "ruler.32k", "exact_accuracy", "", "share", 1),
    ("H5_DD Partial Acc. (RULER 32k)", "H5_DD", "ruler.32k", "partial_accuracy", "", "share", 1),
    ("H6 Format Accuracy (HotpotQA)", "H6", "hotpotqa.citation", "format_accuracy", "H6 Citation Score", "share", 1),
    ("H6 Source Accuracy (HotpotQA)", "H6", "hotpotqa.citation", "source_accuracy", "H6 Citation Score", "share", 1),
    ("H6 Format Accuracy (QASPER)", "H6", "qasper.citation", "format_accuracy", "H6 Citation Score", "share", 1),
    ("H6 Source Accuracy (QASPER)", "H6", "qasper.citation", "source_accuracy", "H6 Citation Score", "share", 1),
    ("H6_DD Format Accuracy (HotpotQA)", "H6_DD", "hotpotqa.citation", "format_accuracy", "H6_DD Citation Score", "share", 1),
    ("H6_DD Source Accuracy (HotpotQA)", "H6_DD", "hotpotqa.citation", "source_accuracy", "H6_DD Citation Source Acc.", "share", 1),
    ("H6_DD Citation Usage (HotpotQA)", "H6_DD", "hotpotqa.citation", "citation_usage_rate", "H6_DD Citation Usage", "share", 1),
    ("H6_DD Format Accuracy (QASPER)", "H6_DD", "qasper.citation", "format_accuracy", "H6_DD Citation Score", "share", 1),
    ("H6_DD Source Accuracy (QASPER)", "H6_DD", "qasper.citation", "source_accuracy", "H6_DD Citation Source Acc.", "share", 1),
    ("H6_DD Citation Usage (QASPER)", "H6_DD", "qasper.citation", "citation_usage_rate", "H6_DD Citation Usage", "share", 1),
)
# fmt: on

COLUMNS: tuple[Column, ...] = tuple(Column(*fields) for fields in _COLUMNS)
COLUMN_BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}


def rows_of(aggregation: dict[str, list[str]] | None = None) -> dict[str, tuple[str, ...]]:
    """Row title -> the names of its columns, in the order of the tree; `aggregation` replaces the
    taxonomy's."""
    if aggregation is not None:
        return {title: tuple(columns) for title, columns in aggregation.items()}
    rows: dict[str, list[str]] = {}
    for column in COLUMNS:
        if column.row:
            rows.setdefault(column.row, []).append(column.name)
    return {title: tuple(names) for title, names in rows.items()}
