"""Inputs that users of evaluation tools, or of the first published version, reported as scored wrongly.

One line a fault: its name, the task, the answer, the gold (or the columns), and what must come out.
"""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.rows import make_row
from evaluation.scoring import score_by_rules

GSM, MGSM, MMLU, POPQA, LIVE = (
    "gsm8k.subset",
    "mgsm.subset",
    "mmlu_pro.subset",
    "popqa.subset",
    "livemathbench.full",
)
MATH, SUPER, BOOLQ, HOTPOT, NEEDLE = (
    "math.subset",
    "supergpqa.subset",
    "boolq.subset",
    "hotpotqa.subset",
    "ruler.32k",
)
ABC = {"choices": ["iron", "zinc", "lead", "tin"]}

# name: (task, outputs, gold, correct)
VERDICTS: dict[str, tuple[str, Any, Any, Any]] = {
    # golds as loaders deliver them
    "hotpot gold false": (HOTPOT, "Answer: No", {"answer": False}, True),
    "hotpot gold true": (HOTPOT, "Answer: No", {"answer": True}, False),
    # numbers
    "comma number": (GSM, "Answer: 1,234", "#### 1234", True),
    "comma number in a box": (GSM, r"\boxed{9{,}500}", "#### 9500", True),
    "comma number in the gold": (GSM, "Answer: 2125", "#### 2,125", True),
    "numbers of one head": (GSM, "Answer: 1,999", "#### 1,234", False),
    "comma behind a number": (GSM, "The total is 72 clips, altogether.", "#### 72", True),
    "first marker before the last": (GSM, "Answer: 5 looks wrong.\nAnswer: 7", "#### 7", True),
    "hashes twice": (GSM, "#### 30\nno,\n#### 33", "#### 33", True),
    "bold number": (GSM, "Final: **73**", "#### 73", True),
    "two boxes": (GSM, r"\boxed{1} no, \boxed{2}", "#### 2", True),
    "dollars escaped": (GSM, r"\$20", "#### 20", True),
    "unit behind": (GSM, "10 cm", "#### 10", True),
    "text wrapper": (GSM, r"\boxed{\text{13}}", "#### 13", True),
    "thin space of LaTeX": (GSM, r"\boxed{1\,000}", "#### 1000", True),
    "step named behind": (GSM, "So 45 in all (see step 3)", "#### 45", True),
    "question named behind": (GSM, "He has 18.\nLet me know about question 2!", "#### 18", True),
    "fraction is no numerator": (GSM, "Answer: 6/12", "#### 6", False),
    "fraction": (GSM, "Answer: 3/4", "#### 0.75", True),
    "mixed number": (GSM, "Answer: 1 1/2", "#### 1.5", True),
    "mixed number, no-break space": (GSM, "Answer: 1\u00a01/2", "#### 1.5", True),
    "range": (GSM, "It takes 5-10", "#### 10", True),
    "leading point": (GSM, "Answer: .5", "#### 0.5", True),
    "typographic minus": (GSM, "Answer: −7", "#### -7", True),
    "exponent form": (GSM, "Answer: 1e3", "#### 1000", True),
    "way below a heading": (GSM, "Here is the answer:\n\n8 laps * 2 = 16 km.\nSo 120 ml.", "#### 120", True),
    "number below a label": (GSM, "Answer:\n120\n\nIt is 60 * 2 = 120, or 2 cups.", "#### 120", True),
    "clock time": (GSM, "Answer: 3:30", "#### 3", False),
    "exponent of a unit": (GSM, "Answer: 30 m^2", "#### 30", True),
    "number word": (GSM, "Answer: twelve", "#### 12", True),
    "output as a number": (GSM, 12, "#### 12", True),
    "gold as a number": (GSM, "Answer: 12", 12, True),
    "long equal integers": (GSM, "Answer: " + "7" * 400, "#### " + "7" * 400, True),
    "number before": (GSM, "Answer: $50 (she had 75 before)", "#### 50", True),
    "thought before": (GSM, "<think>Answer: 3</think> Answer: 9", "#### 9", True),
    "harmony's remains": (GSM, "analysisIs it 7?assistantfinal42", "#### 42", True),
    "half a thought": (GSM, "<think>so it may be 7 because", "#### 7", False),
    "Chinese numeral": (MGSM, "答案：四十二", 42, True),
    "full-width point": (MGSM, "答案：３．５", "3.5", True),
    # letters
    "indeed": (MMLU, "The answer is indeed C", "C", True),
    "a safe choice": (MMLU, "B, a safe choice", "B", True),
    "seems to be": (MMLU, "Answer seems to be A", "A", True),
    "bold letter": (MMLU, "Answer: **C**", "C", True),
    "letter in brackets": (MMLU, "The answer is (C).", "C", True),
    "comma behind a letter": (MMLU, "ANSWER: A,", "A", True),
    "gold with a blank": (MMLU, "B", " B", True),
    "wide letter": (MMLU, "Ｂ", "B", True),
    "letter in JSON": (MMLU, '{"answer": "B"}', "B", True),
    "clearly": (SUPER, "The answer is clearly B", "B", True),
    "certainly": (SUPER, "The answer is certainly A", "C", False),
    "a metal, namely": (SUPER, "The answer is a metal, namely D", "A", False),
    "several answer lines": (SUPER, "Answer: A\nWait.\nAnswer: C", "C", True),
    "gold in small letters": (SUPER, "Answer: C", "c", True),
    # names
    "word inside a word": (POPQA, "It is in Europe.", ["Ur"], False),
    "digits inside digits": (POPQA, "In 2012", ["12"], False),
    "denied name": (POPQA, "It is certainly not Oslo, it is Bergen", ["Oslo"], False),
    "named in the thought": (POPQA, "<think>Is it Rome? No.</think>Milan", ["Rome"], False),
    "gold that is a Python word": (POPQA, "None of them: max", "max", True),
    "gold that is a year": (POPQA, "It was 1987.", 1987, True),
    "gold with a null": (POPQA, "Lima", '["Lima", null]', True),
    "gold that would open a file": (POPQA, "x", "open('f','w').name", False),
    "abbreviation with dots": (POPQA, "the USA", ["U.S.A."], True),
    "decomposed accent": (POPQA, "Sa\u0303o Paulo", ["São Paulo"], True),
    "no empty gold is right": (POPQA, "Rome", "", None),
    "gold false": (BOOLQ, "Answer: No", False, True),
    "gold zero": (BOOLQ, "Answer: No", 0, True),
    "gold missing": (BOOLQ, "Answer: No", None, None),
    "yes in a no": (BOOLQ, "Answer: No, yes would only be right for cave fish.", "No", True),
    "no doubt": (BOOLQ, "There is no doubt, yes.", "Yes", True),
    "not yes": (BOOLQ, "I would not say yes", "Yes", False),
    "not really": (BOOLQ, "Not really.", "No", True),
    "no inside know": (HOTPOT, "I know both of them were painters", "no", False),
    "article as answer": (HOTPOT, "a", "Marrow Island", False),
    "answer inside the gold's word": (HOTPOT, "Paris", "Comparison", False),
    "not Lund": (HOTPOT, "It was not Lund, it was Grendale", "Lund", False),
    "date of another year": (HOTPOT, "14 March 1957", "14 March 1958", False),
    "name of another number": (HOTPOT, "Henry Marlow III", "Henry Marlow II", False),
    "label inside a word": (HOTPOT, "Unanswer: maybe\nAarle", "Aarle", True),
    "bare label": (HOTPOT, "It is Aarle.\nAnswer:", "Aarle", False),
    "folded accents": (HOTPOT, "Answer: Sao Tarve", {"answer": "São Tárve"}, True),
    # formulas
    "fractions of one denominator": (LIVE, "Answer: 3/2", "1/2", False),
    "root is no number": (LIVE, r"Answer: \sqrt{3}", "3", False),
    "decimal for a fraction": (LIVE, "Answer: 0.5", r"\frac{1}{2}", True),
    "nested box": (LIVE, r"\boxed{\frac{1}{2}}", "1/2", True),
    "interval for a point": (LIVE, "Answer: [a,b]", "(a,b)", False),
    "answer that is code": (MATH, "Answer: open('f','w').write('x')", "1", False),
    "tower of powers": (MATH, "Answer: 9^9^9^9", "3", False),
    "commas are no noise": (MATH, "Answer: 1, 2", "12", False),
    "blanks are no noise": (MATH, "Answer: 1 2", "12", False),
    "root simplified": (MATH, r"Answer: 2\sqrt{3}", r"\sqrt{12}", True),
    "name set equal": (MATH, "Answer: x=5", "5", True),
    "sentence behind a label": (MATH, r"Final Answer: The final answer is $\boxed{24}$.", "24", True),
}  # fmt: skip


@pytest.mark.parametrize("fault", VERDICTS)
def test_verdict(fault):
    task, outputs, gold, correct = VERDICTS[fault]
    columns = {"outputs": outputs, "gold": gold, "ctx": "Fish live in caves and rivers of the far north."}
    if task in (MMLU, SUPER):
        columns |= ABC
    if task == MGSM:
        columns["lang"] = "zh"
    assert score_by_rules(make_row(task, columns))["correct"] is correct


# name: (outputs, gold, exact, partial)
NEEDLES = {
    "list from Parquet": ("4820193", ["4820193"], True, True),
    "separators": ("It is 4,820,193.", "4820193", True, True),
    "blank inside": ("482 0193", "4820193", True, True),
    "dots": ("5.508.214", "5508214", True, True),
    "short gold": ("It is 48213", "48213", True, True),
    "word needle": ("The word is heron.", "heron", True, True),
    "gold inside a longer number": ("94820193", "4820193", False, False),
    "corrected": ("It is 9031772. Sorry, I meant 1111111.", "9031772", False, False),
    "turned round": ("7654321", "1234567", False, False),
    "gold as float": ("9031772", 9031772.0, True, True),
}  # fmt: skip


@pytest.mark.parametrize("fault", NEEDLES)
def test_needle(fault):
    outputs, gold, exact, partial = NEEDLES[fault]
    score = score_by_rules(make_row(NEEDLE, {"outputs": outputs, "gold": gold}))
    assert (score["exact"], score["partial"]) == (exact, partial)


# name: (outputs, gold, integration_correct, items)
CALLS = {
    "dotted name": ("math.factorial(n=5)", ["math.factorial(n=5)"], 1, 1),
    "list of calls": ("[f(a=1), g(b=2)]", ["f(a=1)", "g(b=2)"], 2, 2),
    "call in a fence": ("```python\nf(a=1)\n```", ["f(a=1)"], 1, 1),
    "call as JSON": ('{"name":"f","arguments":{"a":1}}', ["f(a=1)"], 1, 1),
    "call over lines": ("f(\n  a=1,\n  b=2\n)", ["f(a=1, b=2)"], 1, 1),
    "call behind a tag": ('<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>', ["f(a=1)"], 1, 1),
    "object as argument": ('f(a={"x":1,"y":2})', ["f(a={'x':1,'y':2})"], 1, 1),
    "escaped quote": (r'f(s="it\"s, ok")', ["""f(s='it"s, ok')"""], 1, 1),
    "without names": ("f(1,2)", ["f(1,2)"], 1, 1),
    "one of the allowed values": ('f(c="NYC")', [{"f": {"c": ["New York", "NYC"]}}], 1, 1),
    "polite before it": ("Sure! f(a=1)", ["f(a=1)"], 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("fault", CALLS)
def test_calls(fault):
    outputs, gold, right, items = CALLS[fault]
    score = score_by_rules(make_row("bfcl.subset", {"outputs": outputs, "gold": gold}))
    assert (score["integration_correct"], score["items"]) == (right, items)


A = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
# name: (outputs, schema, correct)
SCHEMAS = {
    "nulls of other rows": ('{"a": 1}', {**A, "enum": None, "items": None}, True),
    "integer of 5,000 digits": ('{"a": ' + "9" * 5000 + "}", A, True),
    "brackets without end": ("[" * 100_000, A, False),
    "dangling reference": ('{"a": 1}', {"$ref": "#/nowhere"}, None),
    "reference to a network": ('{"a": 1}', {"$ref": "http://host.invalid/x.json"}, None),
    "slow pattern": (f'"{"a" * 32}!"', {"type": "string", "pattern": "^(a+)+$"}, False),
    "inner object of another": ('See {"p": {"q": {"a": 1}}}', {**A, "additionalProperties": False}, False),
    "draft before the final": ('{"a": "x"} no: {"a": 2}', A, True),
    "thought holds the object": ('<think>{"a": 1}</think> I give up.', A, False),
    "brace in a text": ('Here: {"a": 1, "b": "}"} ok', A, True),
    "schema as printed": ('{"a": 1}', str(A), True),
    "not a number": ('{"a": NaN}', {"type": "object"}, False),
    "output that is an object": ({"a": 1}, A, True),
    "no schema": ('{"a": 1}', None, None),
}  # fmt: skip


@pytest.mark.parametrize("fault", SCHEMAS)
def test_schema(fault):
    outputs, schema, correct = SCHEMAS[fault]
    assert (
        score_by_rules(make_row("gsm8k.schema", {"outputs": outputs, "schema": schema}))["correct"] is correct
    )


FACTS = {
    "answer": "Aarle",
    "supporting_facts": {"title": ["Salt Road", "Otto Salk"]},
    "context_titles": ["Salt Road", "Otto Salk", "Avon"],
}
# name: (outputs, source_recall, uses_citation)
CITATIONS = {
    "several brackets": ("Aarle [Avon, Salt Road]. Then [Otto Salk].", 1.0, True),
    "mixed marks": ("Aarle [Salt Road; Otto Salk, Avon]", 1.0, True),
    "blank bracket": ("Aarle [ ]", 0.0, False),
    "dots": ("Aarle [...]", 0.0, False),
    "letter": ("Aarle [o]", 0.0, True),
    "year in parentheses": ("Aarle (1921)", 0.0, False),
    "Markdown link": ("Aarle [here](http://x.invalid)", 0.0, False),
    "bracket that never closes": ("x = [" + "a;" * 50_000, 0.0, False),
    "wide brackets": ("Aarle 【Salt Road】［Otto Salk］", 1.0, True),
}  # fmt: skip


@pytest.mark.parametrize("fault", CITATIONS)
def test_citation(fault):
    outputs, recall, uses = CITATIONS[fault]
    score = score_by_rules(make_row("hotpotqa.citation", {"outputs": outputs, "gold": FACTS}))
    assert (score["source_recall"], score["uses_citation"]) == (recall, uses)


ASKED = {
    "prompt": "The locker of Wren holds 4820193, that of Pike 7719405. Which number is it?",
    "gold": "4820193",
}
# name: (outputs, compliance, reason)
ANSWERS = {
    "asks back": ("Which locker do you mean, that of Wren or that of Pike?", False, "asked_back"),
    "names the ambiguity": ("It is ambiguous: two lockers are mentioned.", False, "ambiguity_named"),
    "curly apostrophe": ("I can’t tell which locker is meant.", False, "refused"),
    "no-break spaces": ("I\u00a0cannot\u00a0tell which locker is meant.", False, "refused"),
    "short answer": ("7", True, None),
    "refusing words elsewhere": ("The guard shouted that I can't enter, yet it is 4820193.", True, None),
    "unfortunately, but answers": ("Unfortunately late: the number is 7719405", True, None),
    "polite question behind it": ("It is 4820193. Anything else?", True, None),
    "empty": ("", None, "empty"),
}  # fmt: skip


@pytest.mark.parametrize("fault", ANSWERS)
def test_underspecified_needle(fault):
    outputs, compliance, reason = ANSWERS[fault]
    score = score_by_rules(make_row("ruler.4k", {"outputs": outputs, **ASKED}))
    assert (score["compliance"], score["reason"]) == (compliance, reason)
