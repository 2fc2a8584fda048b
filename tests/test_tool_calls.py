"""Tool calls: golden rows, every notation, and how calls and arguments are compared."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import GOLDEN, golden_rows

from evaluation.extraction.calls import Call, calls_in
from evaluation.rows import make_row
from evaluation.scoring import score_by_rules

FOLDER = "instructions_style_tools_turns_judge_comparison"
ROWS = [
    pytest.param(task, row, id=row["id"])
    for task in ("bfcl.subset", "mnms.full")
    for row in golden_rows(f"{FOLDER}/{task}.jsonl")
]
# rows whose stored values are older than the rules that decide them (tests/golden/ERRATA.md): selection,
# both, items
BY_THE_RULES = {
    "bf-006": (0, 0, 1),  # arguments only count where the tool is right
    "mn-005": (0, 0, 1),
    "mn-023": (2, 2, 2),  # calls in any order
    "mn-025": (1, 0, 2),
}


def score(task: str, **columns: Any) -> dict[str, Any]:
    return score_by_rules(make_row(task, columns))


@pytest.mark.parametrize(("task", "row"), ROWS)
def test_golden(task: str, row: dict[str, Any]) -> None:
    got = score(task, outputs=row["outputs"], gold=row["gold"])
    stored = row.get("right", row["reference"])
    selection, both, items = BY_THE_RULES.get(
        row["id"], (stored["selection_correct"], stored["integration_correct"], stored["num_items"])
    )
    assert got["selection_correct"] == selection
    assert got["argument_correct"] == got["integration_correct"] == both
    assert got["items"] == items
    assert (got["reason"] is None) == (both == items)


@pytest.mark.parametrize("task", ["bfcl.subset", "mnms.full"])
def test_golden_aggregates(task: str) -> None:
    expected = json.loads((GOLDEN / FOLDER / "expected.json").read_text(encoding="utf-8"))[task]["right"]
    rows = golden_rows(f"{FOLDER}/{task}.jsonl")
    scores = [score(task, outputs=row["outputs"], gold=row["gold"]) for row in rows]
    items = sum(got["items"] for got in scores)
    assert items == expected["total_items"]
    # the stored right values of these rows came before the rules in BY_THE_RULES
    shift = {"bfcl.subset": (0, 0), "mnms.full": (2, 2)}[task]
    selection = sum(got["selection_correct"] for got in scores)
    both = sum(got["integration_correct"] for got in scores)
    assert selection == pytest.approx(expected["selection_accuracy"] * items + shift[0])
    assert both == pytest.approx(expected["integration_accuracy"] * items + shift[1])


NOTATIONS = {
    # name: text; every one holds f.g(a=1, b="x, (y)")
    "bare": 'f.g(a=1, b="x, (y)")',
    "spaces": 'f.g( a = 1 ,b = "x, (y)" )',
    "single_quotes": "f.g(a=1, b='x, (y)')",
    "lines": 'f.g(\n    a=1,\n    b="x, (y)",\n)',
    "fence": '```python\nf.g(a=1, b="x, (y)")\n```',
    "fence_without_language": '```\nf.g(a=1, b="x, (y)")\n```',
    "code_marks": 'Use `f.g(a=1, b="x, (y)")`.',
    "list": '[f.g(a=1, b="x, (y)")]',
    "numbered": '1. f.g(a=1, b="x, (y)")',
    "bullet": '- f.g(a=1, b="x, (y)");',
    "verb": 'Call f.g(a=1, b="x, (y)") now.',
    "prose_with_brackets": 'I will (as asked) use f.g (see below):\nf.g(a=1, b="x, (y)")',
    "assignment": 'result = f.g(a=1, b="x, (y)")',
    "print": 'print(f.g(a=1, b="x, (y)"))',
    "colon": 'f.g(a: 1, b: "x, (y)")',
    "json": '{"name": "f.g", "arguments": {"a": 1, "b": "x, (y)"}}',
    "json_list": '[{"name": "f.g", "arguments": {"a": 1, "b": "x, (y)"}}]',
    "json_arguments_as_text": '{"name": "f.g", "arguments": "{\\"a\\": 1, \\"b\\": \\"x, (y)\\"}"}',
    "json_parameters": 'So: {"name": "f.g", "parameters": {"a": 1, "b": "x, (y)"}} Done.',
    "json_function": '{"type": "function", "function": {"name": "f.g", "arguments": {"a": 1, "b": "x, (y)"}}}',  # noqa: E501
    "json_tool_calls": '{"tool_calls": [{"id": "c1", "function": {"name": "f.g", "arguments": {"a": 1, "b": "x, (y)"}}}]}',  # noqa: E501
    "json_plan": '{"plan": [{"id": 0, "name": "f.g", "args": {"a": 1, "b": "x, (y)"}}]}',
    "json_fence": '```json\n{"name": "f.g", "arguments": {"a": 1, "b": "x, (y)"}}\n```',
    "tool_call_tag": '<tool_call>\n{"name": "f.g", "arguments": {"a": 1, "b": "x, (y)"}}\n</tool_call>',
    "mistral": '[TOOL_CALLS] [{"name": "f.g", "arguments": {"a": 1, "b": "x, (y)"}}]',
    "mistral_new": '[TOOL_CALLS]f.g[ARGS]{"a": 1, "b": "x, (y)"}',
    "python_tag": '<|python_tag|>f.g(a=1, b="x, (y)")',
    "llama_function": '<function=f.g>{"a": 1, "b": "x, (y)"}</function>',
    "react": 'Thought: I need it.\nAction: f.g\nAction Input: {"a": 1, "b": "x, (y)"}',
    "deepseek": '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f.g\n```json\n{"a": 1, "b": "x, (y)"}\n```',
}


@pytest.mark.parametrize("text", NOTATIONS.values(), ids=NOTATIONS)
def test_notations(text: str) -> None:
    assert calls_in(text, ["f.g"]) == [Call("f.g", {"a": 1, "b": "x, (y)"})]
    # and without knowing the tool
    assert calls_in(text) == [Call("f.g", {"a": 1, "b": "x, (y)"})]


TAGGED = {
    "parameter_tags": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nx\n</parameter>\n</function>\n</tool_call>",  # noqa: E501
    "invoke": '<invoke name="f"><parameter name="a">1</parameter><parameter name="b">x</parameter></invoke>',
    "arg_keys": "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",  # noqa: E501
}


@pytest.mark.parametrize("text", TAGGED.values(), ids=TAGGED)
@pytest.mark.parametrize(
    ("gold", "right"), [("f(a=1, b='x')", 1), ("f(a='1', b='x')", 1), ("f(a=2, b='x')", 0)]
)
def test_untyped_parameters_take_the_type_of_the_gold(text: str, gold: str, right: int) -> None:
    got = score("bfcl.subset", outputs=text, gold=[gold])
    assert (got["items"], got["selection_correct"], got["argument_correct"]) == (1, 1, right)


VALUES = {
    # name: (text, args, positional)
    "dict": ('f(a={"x": 1, "y": 2})', {"a": {"x": 1, "y": 2}}, ()),
    "dict_with_unquoted_keys": ("f(a={x: 1, city: New York})", {"a": {"x": 1, "city": "New York"}}, ()),
    "escaped_quote": (r'f(s="it\"s, ok")', {"s": 'it"s, ok'}, ()),
    "escaped_apostrophe": (r"f(s='it\'s')", {"s": "it's"}, ()),
    "apostrophe_not_escaped": ("f(s='it's late', n=1)", {"s": "it's late", "n": 1}, ()),
    "escapes": (r'f(s="a\nb\u00e9\\")', {"s": "a\nbé\\"}, ()),
    "raw": (r"f(s=r'a\d')", {"s": r"a\d"}, ()),
    "triple_quotes": ('f(s="""a "b" c""")', {"s": 'a "b" c'}, ()),
    "positional": ("f(1, 'x')", {}, (1, "x")),
    "mixed": ("f(1, b=2)", {"b": 2}, (1,)),
    "numbers": ("f(a=-1.5, b=1e3, c=1_000, d=.5)", {"a": -1.5, "b": 1000.0, "c": 1000, "d": 0.5}, ()),
    "constants": ("f(a=true, b=None, c=False, d=null)", {"a": True, "b": None, "c": False, "d": None}, ()),
    "lists_and_tuples": (
        "f(a=[1, [2]], b=(1, 2), c=(3), d=())",
        {"a": [1, [2]], "b": [1, 2], "c": 3, "d": []},
        (),
    ),
    "unquoted": (
        "f(a=New York, b=17.jpg, c=<node-0>.text)",
        {"a": "New York", "b": "17.jpg", "c": "<node-0>.text"},
        (),
    ),
    "unquoted_date": ("f(a=2031-05-04)", {"a": "2031-05-04"}, ()),
    "nested_call": ("f(a=g(1, b=2))", {"a": {"call": "g", "args": {"b": 2}, "positional": [1]}}, ()),
    "keyword_in_quotes": ('f("a"=1)', {"a": 1}, ()),
    "empty": ("f()", {}, ()),
    "call_in_a_text": ("f(s='use g(b=1)')", {"s": "use g(b=1)"}, ()),
    "code_is_not_run": ("f(a=__import__('os').getcwd())", None, None),
}


@pytest.mark.parametrize(("text", "args", "positional"), VALUES.values(), ids=VALUES)
def test_values(text: str, args: dict[str, Any] | None, positional: tuple[Any, ...] | None) -> None:
    found = [call for call in calls_in(text, ["f"]) if call.name == "f"]
    assert found == ([] if args is None else [Call("f", args, positional)])


SEVERAL = {
    # name: (text, names of the calls)
    "one_line": ("f(a=1), g(b=2)", ["f", "g"]),
    "list": ("[f(a=1), g(b=2)]", ["f", "g"]),
    "list_without_keywords": ("[f(1), g()]", ["f", "g"]),
    "semicolons": ("f(a=1); g(b=2);", ["f", "g"]),
    "lines": ("f(a=1)\ng(b=2)", ["f", "g"]),
    "json_lines": ('{"name": "f", "arguments": {}}\n{"name": "g", "arguments": {}}', ["f", "g"]),
    "tags": (
        '<tool_call>{"name": "f", "arguments": {}}</tool_call><tool_call>{"name": "g", "arguments": {}}</tool_call>',  # noqa: E501
        ["f", "g"],
    ),
    "function_tags": ("<function=f>{}</function><function=g>{}</function>", ["f", "g"]),
    "truncated_list": ('[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "argu', ["f"]),
    "same_twice": ("f(a=1)\nf(a=1)", ["f", "f"]),
    "text_in_an_argument": ('{"name": "f", "arguments": {"s": "g(b=1)"}}', ["f"]),
    "name_of_several_words": ("Use image captioning(image=17.jpg)", ["image captioning"]),
    "prose": ("It costs 5 (in total), see f (x) and the list [1, 2].", []),
    "mathematics": ("Then log(2) and sin(0.5) follow.", []),
    "mention": ("I would use find() here.", []),
    "definition": ("def f(a=1):\n    pass", []),
    "abstention": ("[]", []),
    "json_that_is_no_call": ('{"name": "Bob", "age": 5}', []),
    "name_only": ("turn_on", []),
    "unclosed": ("f(a=1", []),
}


@pytest.mark.parametrize(("text", "names"), SEVERAL.values(), ids=SEVERAL)
def test_several_calls_and_none(text: str, names: list[str]) -> None:
    assert [call.name for call in calls_in(text, ["image_captioning"])] == names


SPEC = [
    {
        "name": "area",
        "parameters": {
            "type": "dict",
            "properties": {
                "width": {"type": "integer"},
                "height": {"type": "integer"},
                "unit": {"type": "string", "default": "cm"},
            },
        },
    }
]
CASES = {
    # name: (gold, output, tool_spec, (items, selection, right), reason)
    "dotted_name": (["math.factorial(n=5)"], "math.factorial(n=5)", None, (1, 1, 1), None),
    "dotted_name_not_called": (["math.gcd(a=12)"], "I do not know", None, (1, 0, 0), "no_call"),
    "dotted_name_without_module": (["math.gcd(a=12)"], "gcd(a=12)", None, (1, 0, 0), "wrong_tool"),
    "prose_is_no_call": (["f(a=1)"], "line\n" * 20, None, (1, 0, 0), "no_call"),
    "thought_before": (["f(a=1)"], "I think.\n" * 9 + "f(a=1)", None, (1, 1, 1), None),
    "think_block": (["f(a=1)"], "<think>f(a=2)?</think>f(a=1)", None, (1, 1, 1), None),
    "allowed_values": ([{"find": {"city": ["New York", "NYC"]}}], "find(city='nyc')", None, (1, 1, 1), None),
    "not_allowed": (
        [{"find": {"city": ["New York", "NYC"]}}],
        "find(city='Rome')",
        None,
        (1, 1, 0),
        "incorrect_args",
    ),
    "allowed_left_out": ([{"find": {"n": [1], "unit": ["cm", ""]}}], "find(n=1)", None, (1, 1, 1), None),
    "allowed_list": ([{"mix": {"parts": [[1, 2], [2, 1]]}}], "mix(parts=[2, 1])", None, (1, 1, 1), None),
    "allowed_inside_objects": (
        [{"post": {"body": [{"k": ["a", "b"]}]}}],
        "post(body={'k': 'b'})",
        None,
        (1, 1, 1),
        None,
    ),
    "allowed_as_json_text": ('[{"find": {"city": ["NYC"]}}]', "find(city='NYC')", None, (1, 1, 1), None),
    "named_gold_with_a_list": (
        [{"name": "mix", "arguments": {"p": [1, 2]}}],
        "mix(p=[1, 2])",
        None,
        (1, 1, 1),
        None,
    ),
    "named_gold_with_choices": (
        [{"name": "mix", "arguments": {"p": ["x", "y"]}}],
        "mix(p='y')",
        None,
        (1, 1, 1),
        None,
    ),
    "gold_as_list_text": ("['f(a=1)', 'g()']", "g()\nf(a=1)", None, (2, 2, 2), None),
    "gold_as_call_list_text": ("[f(a=1), g()]", "g()\nf(a=1)", None, (2, 2, 2), None),
    "gold_in_lines_of_a_list": ("[f(a=1),\n g()]", "g()\nf(a=1)", None, (2, 2, 2), None),
    "best_pairing": (
        [{"f": {"a": [1, 2]}}, {"f": {"a": [1]}}],
        "f(a=1)\nf(a=2)",
        None,
        (2, 2, 2),
        None,
    ),
    "positional_by_the_specification": (["area(width=5, height=7)"], "area(5, 7)", SPEC, (1, 1, 1), None),
    "positional_in_the_wrong_order": (
        ["area(width=5, height=7)"],
        "area(7, 5)",
        SPEC,
        (1, 1, 0),
        "incorrect_args",
    ),
    "default_given": (
        ["area(width=5, height=7)"],
        "area(width=5, height=7, unit='cm')",
        SPEC,
        (1, 1, 1),
        None,
    ),
    "default_left_out": (["area(width=5, height=7, unit='cm')"], "area(5, 7)", SPEC, (1, 1, 1), None),
    "not_the_default": (["area(width=5, height=7)"], "area(5, 7, 'mm')", SPEC, (1, 1, 0), "extra_args"),
    "specification_as_text": (["area(width=5, height=7)"], "area(5, 7)", json.dumps(SPEC), (1, 1, 1), None),
    "specification_in_function": (
        ["area(width=5, height=7)"],
        "area(5, 7)",
        [{"type": "function", "function": SPEC[0]}],
        (1, 1, 1),
        None,
    ),
    "other_tool_of_the_specification": (["f(a=1)"], "area(5, 7)", SPEC, (1, 0, 0), "wrong_tool"),
    "true_is_not_one": (["f(a=True)"], "f(a=1)", None, (1, 1, 0), "incorrect_args"),
    "tuple_is_a_list": (["f(a=(1, 2))"], "f(a=[1,2])", None, (1, 1, 1), None),
    "missing_second_call": (["f(a=1)", "g(b=2)"], "f(a=1)", None, (2, 1, 1), "missing_call"),
    "unexpected_second_call": (["f(a=1)"], "f(a=1)\ng(b=2)", None, (2, 1, 1), "unexpected_call"),
    "extra_argument": (["f(a=1)"], "f(a=1, b=2)", None, (1, 1, 0), "extra_args"),
    "nothing_wanted_null_text": ("NONE", "none", None, (1, 1, 1), None),
    "nothing_wanted_empty_list": ([], "[]", None, (1, 1, 1), None),
    "nothing_wanted_unfinished_thought": ([], "<think>I could call", None, (1, 0, 0), "no_call"),
    "huge_number": (["f(a=1)"], "f(a=" + "9" * 5000 + ")", None, (1, 1, 0), "incorrect_args"),
    "infinite_number": (["f(a=1)"], "f(a=1e999)", None, (1, 1, 0), "incorrect_args"),
}


@pytest.mark.parametrize(("gold", "output", "spec", "counts", "reason"), CASES.values(), ids=CASES)
def test_cases(gold: Any, output: str, spec: Any, counts: tuple[int, int, int], reason: str | None) -> None:
    got = score("bfcl.subset", outputs=output, gold=gold, tool_spec=spec)
    assert (got["items"], got["selection_correct"], got["argument_correct"]) == counts
    assert got["reason"] == reason


def plan(**args: Any) -> list[dict[str, Any]]:
    return [{"id": 0, "name": "image generation", "args": args}]


PLANS = {
    # name: (gold argument, given argument as written, right)
    "punctuation": ("a blue boat, at sunset", "'A blue boat at sunset!'", 1),
    "some_words_left_out": ("a blue boat on a calm lake", "'a blue boat on a lake'", 1),
    "many_words_left_out": ("a blue boat on a calm lake", "'a boat'", 0),
    "word_exchanged": ("a blue boat on a calm lake", "'a red boat on a calm lake'", 0),
    "words_scrambled": ("a blue boat on a calm lake", "'calm lake a on boat blue a'", 0),
    "negation_added": ("the boat is on a calm lake", "'the boat is not on a calm lake'", 0),
    "short_text_is_exact": ("17.jpg", "'18.jpg'", 0),
    "number_for_text": ("10.75", "10.75", 1),
    "right_node": ("<node-0>.text", "'<node-0>.text'", 1),
    "wrong_node": ("<node-0>.text", "'<node-1>.text'", 0),
    "wrong_field": ("<node-0>.text", "'<node-0>.audio'", 0),
    "constant_for_a_node": ("<node-0>.text", "'parsnip'", 0),
}


@pytest.mark.parametrize(("wanted", "given", "right"), PLANS.values(), ids=PLANS)
def test_plans(wanted: str, given: str, right: int) -> None:
    got = score("mnms.full", outputs=f"image_generation(prompt={given})", gold=plan(prompt=wanted))
    assert (got["items"], got["selection_correct"], got["argument_correct"]) == (1, 1, right)


@pytest.mark.parametrize("task", ["bfcl.subset", "mnms.full"])
def test_no_gold_is_unscored(task: str) -> None:
    got = score(task, outputs="f(a=1)", gold=None)
    assert got["reason"] == "no_gold"
    assert got["items"] is None and got["selection_correct"] is None


UNITS = ["[", "{", "(", "7", " ", ";", "!", "\n", "f(", "f(a=", "f('", '{"a":', "[x", "f((", "f(a=[", "<function=a>", "<parameter=a>", "<invoke name='a'>", "\\", "a.", "f(a,", "f(1, ", "f()\n", "f(a=1) ", "Action: a\n", "f(a = ", "<tool_call>", "'", "f(a=1 "]  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("task", ["bfcl.subset", "mnms.full"])
@pytest.mark.parametrize("unit", UNITS)
def test_degenerate_text_is_linear(task: str, unit: str) -> None:
    text = unit * (100_000 // len(unit))
    gold = ["f(z=1)"] if task == "bfcl.subset" else [{"name": "f", "args": {"z": 1}}]
    # (the bracket at the end lets no call be ruled out early)
    for wrapped in (text, "f(a=" + text + "x", "<function=f><parameter=a>x</parameter>" + text + " ]x)"):
        got = score(task, outputs=wrapped, gold=gold)
        assert got["items"] >= 1 and got["integration_correct"] == 0
