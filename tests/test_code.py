# ruff: noqa: E501 (tables of answers, one line each)
"""humaneval.full and mbpp.full: the program is found in the answer, and the row's tests decide."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support import golden_rows

from evaluation import sandbox
from evaluation.extraction import code
from evaluation.rows import make_row
from evaluation.scorers import code as scorer
from evaluation.scoring import score_row

FENCED = pytest.mark.skipif(not sandbox.probe().fence, reason=f"no sandbox here: {sandbox.probe()}")
FAMILIES = ("humaneval", "mbpp")
GOLDEN = [row for name in FAMILIES for row in golden_rows(f"knowledge_reasoning_format/{name}.jsonl")]
# what the reference calls the end of a row, and what we may call it
REASONS = {
    None: (None,),
    "assertion": ("wrong_answer",),
    "syntax": ("syntax_error", "broken_tests"),
    "runtime": ("exception", "memory", "no_entry_point", "empty", "forbidden"),
    "entry_point_missing": ("no_entry_point", "empty"),
    "timeout": ("timeout",),
    # the reference could not read the row; the verdict is right for another reason
    "processing": ("wrong_answer",),
}


def scored(columns: dict[str, Any], task: str = "humaneval.full") -> dict[str, Any]:
    return asyncio.run(score_row(task, columns))


@FENCED
@pytest.mark.parametrize("row", [row for row in GOLDEN if not row.get("batch")], ids=lambda row: row["id"])
def test_golden(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    # the published limit is ten seconds; the rows that reach it never end
    monkeypatch.setattr(scorer, "LIMITS", sandbox.Limits(cpu_seconds=2))
    monkeypatch.chdir(tmp_path)
    found = scored(row["inputs"], row["task"])
    expected = {**row["reference"], **row.get("right", {})}
    assert found["correct"] is expected["correct"], found
    assert list(tmp_path.iterdir()) == []
    if "right" not in row:
        assert found["reason"] in REASONS[row["reference"]["reason"]]
    if found["correct"] is not True:
        assert found["reason"]


@FENCED
@pytest.mark.parametrize("row", [row for row in GOLDEN if row.get("batch")], ids=lambda row: row["id"])
def test_golden_batch(row: dict[str, Any]) -> None:
    verdicts = [scored(columns, row["task"])["correct"] for columns in row["inputs"]]
    assert sum(verdicts) / len(verdicts) == pytest.approx(row["right"]["accuracy"])


# --- reading the program -----------------------------------------------------------------------------------------
DEF = "def twice(n):\n    return n + n"
OTHER = "def twice(n):\n    return 0"
PROMPT = 'from typing import List\n\n\ndef twice(n: int) -> int:\n    """Doubles.\n    >>> twice(2)\n    4\n    """\n'
ANSWERS = {
    "bare": DEF,
    "fence": f"```python\n{DEF}\n```",
    "fence_without_language": f"```\n{DEF}\n```",
    "fence_language_in_capitals": f"```Python\n{DEF}\n```",
    "fence_with_attributes": f"```python title=a.py\n{DEF}\n```",
    "fence_unknown_language": f"```pycon3\n{DEF}\n```",
    "fence_tilde": f"~~~python\n{DEF}\n~~~",
    "fence_four_marks": f"````python\n{DEF}\n````",
    "fence_never_closed": f"Sure:\n```python\n{DEF}",
    "fence_closed_on_the_last_line": f"```python\n{DEF}```",
    "fence_opened_on_the_first_line": f"```{DEF}\n```",
    "fence_on_one_line": "```python def twice(n): return n + n```",
    "fence_behind_words": f"Here: ```python\n{DEF}\n```",
    "fence_in_a_list": "1. Do:\n   ```python\n   def twice(n):\n       return n + n\n   ```\n2. Done",
    "fence_with_prose_around": f"Sure!\n\n```python\n{DEF}\n```\n\nIt doubles `n`.",
    "fence_holds_a_fence_in_a_docstring": '```python\ndef twice(n):\n    """Use ```twice```."""\n    return n + n\n```',
    "fences_example_last": f"```python\n{DEF}\n```\nUse:\n```python\nprint(twice(2))\n```",
    "fences_shell_first": f"```bash\npip install x\n```\n```python\n{DEF}\n```",
    "fences_last_definition_counts": f"```python\n{OTHER}\n```\nBetter:\n```python\n{DEF}\n```",
    "fences_last_is_cut_off": f"```python\n{DEF}\n```\nOr:\n```python\ndef twice(n):\n    if n",
    "fences_example_inside_code_outside": f"{DEF}\n\nExample:\n```\n>>> twice(2)\n4\n```",
    "markers": f"[BEGIN]\n{DEF}\n[DONE]",
    "markers_begin_in_the_prompt": f"{DEF}\n[DONE]\nMore text",
    "markers_around_a_fence": f"[BEGIN]\n```python\n{DEF}\n```\n[DONE]",
    "markers_python": f"[PYTHON]\n{DEF}\n[/PYTHON]",
    "markers_code": f"<code>{DEF}</code>",
    "prose_before": f"Sure, this works:\n\n{DEF}",
    "prose_after": f"{DEF}\n\nThis doubles its argument, as was asked.",
    "prose_both_sides": f"Of course!\n\n{DEF}\n\nHope this helps (a lot).",
    "prose_starts_like_an_import": f"import is not needed here\n\n{DEF}",
    "helper_after": "def twice(n):\n    return _h(n)\n\ndef _h(n):\n    return n + n",
    "helper_before": f"import math\n\nX = 1\n\n{DEF}",
    "decorated": f"from functools import lru_cache\n\n@lru_cache\n{DEF}",
    "lambda": "twice = lambda n: n + n",
    "imported": "from operator import mul\nfrom functools import partial as _p\ntwice = _p(mul, 2)",
    "defined_conditionally": "try:\n    import nothing_here\nexcept ImportError:\n    def twice(n):\n        return n + n",
    "quoted": f'"""\n{DEF}\n"""',
    "quoted_once_more": f"'''{DEF}'''",
    "carriage_returns": DEF.replace("\n", "\r\n"),
    "thinking": f"<think>```python\n{OTHER}\n```</think>\n{DEF}",
    "body": "    return n + n",
    "body_in_a_fence": "```python\n    return n + n\n```",
    "body_of_several_lines": "    total = n\n    for _ in range(1):\n        total += n\n    return total",
    "body_at_the_margin": "total = n\nfor _ in range(1):\n    total += n\nreturn total",
    "body_begins_with_a_function": "    def add(a, b):\n        return a + b\n\n    return add(n, n)",
    "body_goes_on_into_other_code": "    return n + n\n\n\nif __name__ == '__main__':\n    main(",
    "body_goes_on_into_prose": "    return n + n\n\nThis adds n to itself.",
    "uses_the_prompts_import": "def twice(n: List) -> int:\n    return n + n",
    "the_prompt_again": PROMPT + "    return n + n",
}
CTX = ["def check(candidate):\n    assert candidate(3) == 6\n    assert candidate(0) == 0\n", "twice"]


@FENCED
@pytest.mark.parametrize("name", ANSWERS)
def test_the_program_is_found(name: str) -> None:
    found = scored({"outputs": ANSWERS[name], "ctx": CTX, "prompt": PROMPT})
    assert found["correct"] is True, found
    assert "n" in found["extracted"] and found["reason"] is None


@FENCED
@pytest.mark.parametrize(
    "name", ["fence", "prose_both_sides", "fences_last_definition_counts", "markers", "quoted"]
)
def test_the_wrapping_does_not_make_a_wrong_program_right(name: str) -> None:
    answer = ANSWERS[name].replace("n + n", "n - n")
    assert scored({"outputs": answer, "ctx": CTX, "prompt": PROMPT})["reason"] == "wrong_answer"


NOT_CODE = {
    "a_refusal": "I am sorry, but I cannot help with that.",
    "a_question": "What should the function be called? Please tell me more.",
    "an_empty_fence": "```python\n```",
}


@FENCED
@pytest.mark.parametrize("name", NOT_CODE)
def test_no_code_is_found(name: str) -> None:
    found = scored({"outputs": NOT_CODE[name], "ctx": CTX, "prompt": PROMPT})
    assert (found["correct"], found["reason"], found["extracted"]) == (False, "no_code_found", None)


WANTED = {
    "assert sq(2) == 4": "sq",
    "assert set(sq([2])) == {4}": "sq",
    "assert abs(avg(0.1, 0.2) - 0.15) < 1e-9": "avg",
    "import math\nassert math.isclose(root(9), 3)": "root",
    "assert not is_odd(2)": "is_odd",
    "assert (top)(2) == 2": "",
    "assert sum(10, 15) == 6": "sum",
    "x = make(2)": "",
}


@pytest.mark.parametrize("tests", WANTED)
def test_the_name_that_the_tests_want(tests: str) -> None:
    assert code.wanted_name(tests) == WANTED[tests]


def test_what_a_prompt_gives_before_its_function() -> None:
    prompt = (
        "Complete this:\n```python\nimport math\n\ndef poly(x):\n    return x\n\ndef root(x):\n    ...\n```"
    )
    assert code.prelude(prompt, "root") == "import math\n\ndef poly(x):\n    return x\n"
    assert code.prelude("Write a function that finds a root.", "root") == ""
    assert code.prelude("", "root") == ""


HEAVY = ["[", "{", "(", "1", " ", ";", "!", "\n", "`", "```", "```\n", "~~~\n", "def ", "def f(", "a=", "a.", "import a,", "a:", '"""', "[BEGIN]", "[DONE]", "as ", "assert f(", "\t", "@", "```\nx\n```\n", "```\ndef twice(n): 0\n```\n", "def twice(n): 0\n", "[BEGIN]x[DONE]"]  # fmt: skip


@pytest.mark.parametrize("unit", HEAVY, ids=repr)
def test_long_answers_are_read_in_linear_time(unit: str) -> None:
    """A scan worse than linear would not return within the run; the readings never outgrow the answer."""
    text = unit * (100_000 // len(unit))
    for answer in (text, "def twice(n):\n" + text, "```python\n" + text):
        readings = code.programs(answer, "twice", PROMPT)
        assert len(readings) <= 12
        assert all(len(reading) <= 2 * len(answer) + len(PROMPT) + 10 for reading in readings)
    assert isinstance(code.prelude(text, "twice"), str)
    assert isinstance(code.wanted_name(text), str)


# --- the row's tests ---------------------------------------------------------------------------------------------
CHECK = "def check(candidate):\n    assert candidate(3) == 6\n"
SOURCES = {
    "ctx_list": ({"ctx": [CHECK, "twice"]}, (CHECK, "twice")),
    "ctx_tuple": ({"ctx": (CHECK, "twice")}, (CHECK, "twice")),
    "ctx_json": ({"ctx": '["assert twice(3) == 6", "twice"]'}, ("assert twice(3) == 6", "twice")),
    "ctx_python_text": ({"ctx": "['assert twice(3) == 6', 'twice']"}, ("assert twice(3) == 6", "twice")),
    "ctx_list_of_lines": ({"ctx": [["assert a(1)", "assert a(2)"], ""]}, ("assert a(1)\nassert a(2)", "")),
    "ctx_bare_assertions": ({"ctx": ["assert a(1)", "assert a(2)"]}, ("assert a(1)\nassert a(2)", "")),
    "ctx_three_assertions": (
        {"ctx": ["x = 1", "assert a(2)", "assert a(3)"]},
        ("x = 1\nassert a(2)\nassert a(3)", ""),
    ),
    "ctx_no_entry_point": ({"ctx": ["assert a(1)", None]}, ("assert a(1)", "")),
    "ctx_empty_gold_has_them": (
        {"ctx": [], "gold": {"test": CHECK, "entry_point": "twice"}},
        (CHECK, "twice"),
    ),
    "ctx_prose_gold_has_them": (
        {"ctx": "Doubles.", "gold": {"test": CHECK, "entry_point": "twice"}},
        (CHECK, "twice"),
    ),
    "gold_json": ({"gold": '{"test": "assert a(1)", "entry_point": "a"}'}, ("assert a(1)", "a")),
    "gold_python_text": ({"gold": "{'test': 'assert a(1)', 'entry_point': None}"}, ("assert a(1)", "")),
    "gold_test_list": ({"gold": {"test_list": ["assert a(1)"]}}, ("assert a(1)", "")),
    "gold_solution_only": ({"gold": "def twice(n): return n + n"}, ("", "")),
    "gold_broken_text": ({"gold": "[" * 5000}, ("", "")),
    "nothing": ({}, ("", "")),
}


@pytest.mark.parametrize("name", SOURCES)
def test_tests_are_read_from(name: str) -> None:
    columns, expected = SOURCES[name]
    assert scorer.tests_of(make_row("humaneval.full", {"outputs": DEF, **columns})) == expected


STATES = {
    "empty": ({"outputs": "", "ctx": CTX}, False, "empty"),
    "unfinished_thought": ({"outputs": "<think>def twice", "ctx": CTX}, False, "truncated"),
    "no_tests": ({"outputs": DEF, "ctx": None}, None, "no_tests"),
    "no_tests_and_empty": ({"outputs": "", "ctx": [[], ""]}, None, "no_tests"),
    "null": ({"outputs": None, "ctx": CTX}, False, "empty"),
}


@pytest.mark.parametrize("name", STATES)
def test_rows_that_need_no_run(name: str) -> None:
    columns, correct, reason = STATES[name]
    found = scored(columns)
    assert (found["correct"], found["reason"]) == (correct, reason)


def test_without_a_sandbox_rows_are_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "probe", lambda: sandbox.Level("none"))
    monkeypatch.delenv(sandbox.UNSAFE_VARIABLE, raising=False)
    found = scored({"outputs": DEF, "ctx": CTX})
    assert (found["correct"], found["reason"]) == (None, "no_sandbox")


@FENCED
def test_what_is_shown_is_cut() -> None:
    found = scored({"outputs": DEF + "\n#" + "x" * 10_000, "ctx": CTX})
    assert found["correct"] is True and len(found["extracted"]) == 4000
