"""Loading: four formats, identical values; each fault its own clear line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from evaluation.extraction.visible import visible_answer
from evaluation.responses import LoadError, ResponseFile, find_file, format_of, split_by_task

# what loaders change in silence: ids, digits, words for nothing, separators, long fields
ROWS = [
    {"id": "007", "outputs": "12", "gold": "1e5", "ctx": ["a", "b"], "meta": {"level": "1", "n": 3}},
    {"id": "8", "outputs": "None", "gold": "NA", "ctx": [], "meta": {"level": "x\ny", "n": 0}},
    {
        "id": "9",
        "outputs": "null\u2028after\u0085",
        "gold": 'a,"b"',
        "ctx": ["é", "你"],
        "meta": {"level": "", "n": -1},
    },
    {
        "id": "1.50",
        "outputs": "🤔 " + "x" * 200_000,
        "gold": "true",
        "ctx": ["NaN"],
        "meta": {"level": "🥳", "n": 7},
    },
    {"id": "nan", "outputs": "", "gold": "12", "ctx": ["[1]"], "meta": {"level": "None", "n": 12}},
]


def write(path: Path, rows: list[dict]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text(
            "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8", newline=""
        )
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif path.suffix == ".csv":
        with open(path, "w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, list(rows[0]))
            writer.writeheader()
            for row in rows:
                writer.writerow(
                    {k: json.dumps(v) if isinstance(v, (list, dict)) else v for k, v in row.items()}
                )
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def load(path: Path, task: str = "popqa.subset", **settings) -> list[dict]:
    return [row.columns for row in ResponseFile(task, path, format_of(path), **settings).rows()]


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
def test_four_formats_load_to_identical_values(tmp_path, ending):
    assert load(write(tmp_path / f"popqa.subset.{ending}", ROWS)) == ROWS


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_only_a_true_null_is_missing(tmp_path, ending):
    rows = [{"id": "1", "outputs": None, "gold": "a"}, {"id": "2", "outputs": "None", "gold": None}]
    assert load(write(tmp_path / f"t.{ending}", rows)) == rows


def test_parquet_nested_values_are_plain(tmp_path):
    import datetime
    import decimal

    row = {
        "id": 1,
        "outputs": b"bytes",
        "when": datetime.datetime(2026, 1, 2),
        "price": decimal.Decimal("1.20"),
        "gold": [{"a": [b"x", None]}],
    }
    (loaded,) = load(write(tmp_path / "t.parquet", [row]))
    assert loaded == {
        "id": 1,
        "outputs": "bytes",
        "when": "2026-01-02T00:00:00",
        "price": "1.20",
        "gold": [{"a": ["x", None]}],
    }
    json.dumps(loaded)


def test_csv_decodes_json_only_where_it_may_stand(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        'id,outputs,gold,choices,prompt\n[1],"[""a""]","{""a"": 1}",[1; 2],[INST] hi\n', encoding="utf-8"
    )
    assert load(path) == [
        {"id": "[1]", "outputs": '["a"]', "gold": {"a": 1}, "choices": "[1; 2]", "prompt": "[INST] hi"}
    ]


def test_columns_of_other_names(tmp_path):
    path = write(tmp_path / "t.jsonl", [{"id": "1", "reply": "x", "target": "y", "outputs": "other"}])
    (row,) = load(path, output_column="reply", gold_column="target", needs=("gold",))
    assert (row["outputs"], row["gold"]) == ("x", "y")


BAD = {
    # name: (file name, bytes, words that the message must hold)
    "bad line in the middle": (
        "t.jsonl",
        b'{"id":1,"outputs":"a"}\n{"id":2,\n{"id":3,"outputs":"c"}\n',
        "line 2",
    ),
    "bad last line with its line end": ("t.jsonl", b'{"id":1,"outputs":"a"}\n{"id":2,\n', "line 2"),
    "a list on a line": ("t.jsonl", b"[1, 2]\n", "an object"),
    "duplicate id": ("t.jsonl", b'{"id":1,"outputs":"a"}\n{"id":"1","outputs":"b"}\n', "id '1'"),
    "zero rows": ("t.jsonl", b"\n\n", "has no rows"),
    "empty json list": ("t.json", b"[]", "has no rows"),
    "missing output column": ("t.jsonl", b'{"id":1,"reply":"a"}\n', "--output_column"),
    "missing gold column": ("t.jsonl", b'{"id":1,"outputs":"a"}\n', "--gold_column"),
    "ragged csv row": ("t.csv", b"id,outputs\n1,a\n2,b,c\n", "row 2 (line 3)"),
    "csv with a torn quote": ("t.csv", b'id,outputs\n1,"abc\n', "not CSV"),
    "csv with a column twice": ("t.csv", b"id,outputs,outputs\n1,a,b\n", "twice"),
    "csv not utf-8": ("t.csv", b"id,outputs\n1,\xff\xfe\n", "UTF-8"),
    "csv without rows": ("t.csv", b"id,outputs\n", "has no rows"),
    "empty csv": ("t.csv", b"", "has no rows"),
    "json object": ("t.json", b'{\n "a": 1}', "list of rows"),
    "json number": ("t.json", b"5", "list of rows"),
    "json torn": ("t.json", b'[{"id": 1', "not JSON"),
    "no parquet": ("t.parquet", b"PAR1 or so", "not Parquet"),
    "jsonl not utf-8": ("t.jsonl", b'{"outputs": "\xff"}\n{}\n', "line 1"),
    "nested too deep": ("t.jsonl", b'{"outputs": ' + b"[" * 100_000 + b"\n{}\n", "line 1"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_file_is_one_clear_line(tmp_path, fault):
    name, content, words = BAD[fault]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(LoadError) as caught:
        load(path, needs=("gold",))
    message = str(caught.value)
    assert words in message and str(path) in message and "\n" not in message
    assert len(message) < 400


def test_torn_last_line_costs_its_row_and_is_told(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"id":1,"outputs":"a"}\n\n{"id":2,"out')
    file = ResponseFile("popqa.subset", path, "jsonl")
    assert [row.id for row in file.rows()] == ["1"]
    assert file.incomplete and "line 3: torn" in file.warnings[0]


def test_row_without_output_is_told(tmp_path):
    path = write(tmp_path / "t.jsonl", [{"id": 1, "outputs": "a"}, {"id": 2}])
    file = ResponseFile("popqa.subset", path, "jsonl")
    assert ["outputs" in row.columns for row in file.rows()] == [True, False]
    assert file.incomplete and "1 of 2 rows" in file.warnings[0]


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id":1,"outputs":"a"}\r\n{"id":2,"outputs":"b"}\r\n')
    assert [row["outputs"] for row in load(path)] == ["a", "b"]


def test_pandas_index_column_is_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",id,outputs\n0,a,x\n", encoding="utf-8")
    assert load(path) == [{"id": "a", "outputs": "x"}]


def test_json_lines_under_a_json_name(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"id": 1, "outputs": "a"}\n{"id": 2, "outputs": "b"}\n', encoding="utf-8")
    assert len(load(path)) == 2


@pytest.mark.parametrize(
    "name", ["boolq.subset.jsonl", "boolq_subset.jsonl", "boolq.subset.csv", "boolq_subset.pq"]
)
def test_both_spellings_are_found(tmp_path, name):
    (tmp_path / name).touch()
    assert find_file(tmp_path, "boolq.subset") == tmp_path / name


@pytest.mark.parametrize("name", ["boolq.jsonl", "gsm8k.jsonl", "boolq.schema.jsonl", "boolq.subset.txt"])
def test_never_another_tasks_file(tmp_path, name):
    (tmp_path / name).touch()
    assert find_file(tmp_path, "boolq.subset") is None


def test_two_files_for_a_task_are_not_guessed_between(tmp_path):
    for name in ("boolq.subset.jsonl", "boolq_subset.csv"):
        (tmp_path / name).touch()
    with pytest.raises(LoadError, match="both hold task"):
        find_file(tmp_path, "boolq.subset")
    assert find_file(tmp_path, "boolq.subset", "csv") == tmp_path / "boolq_subset.csv"


def test_one_file_for_several_tasks(tmp_path):
    rows = [
        {"id": "1", "task": "popqa.subset", "outputs": "a"},
        {"id": "1", "task": "boolq_subset", "outputs": "b"},
        {"id": "2", "task": "popqa.subset", "outputs": "c"},
        {"id": "3", "task": "other", "outputs": "d"},
    ]
    path = write(tmp_path / "all.csv", rows)
    source = ResponseFile("", path, "csv")
    parts, others = split_by_task(source, "task", ("popqa.subset", "boolq.subset"), tmp_path)
    assert others == {"other": 1}
    read = {t: list(ResponseFile(t, p, "jsonl", shown=path).rows()) for t, p in parts.items()}
    assert {t: [(r.id, r.number, r.answer) for r in rows] for t, rows in read.items()} == {
        "popqa.subset": [("1", 0, "a"), ("2", 2, "c")],
        "boolq.subset": [("1", 1, "b")],
    }
    with pytest.raises(LoadError, match="--task_column"):
        split_by_task(source, "family", ("popqa.subset",), tmp_path)


WILD = {
    # files as other tools write them, as far as they can be read or what is said of them
    "inspect_2025-05-12T20-28-13-04-00_popularity.json": "list of rows",
    "lm_eval_results_with_samples.json": "--output_column",
    "samples_leaderboard_ifeval_qwen3-8b.jsonl": "--output_column",
    "samples_leaderboard_mmlu_pro_qwen3-8b.jsonl": "--output_column",
    "winogrande_chatgpt_results.csv": "--output_column",
    "parquet_testing_list_columns.parquet": "--output_column",
}


@pytest.mark.parametrize("name", WILD)
def test_files_of_other_tools_are_told_apart(realdata, name):
    with pytest.raises(LoadError, match=WILD[name]):
        load(realdata / "wild" / name)


VISIBLE = {
    # output: (visible answer, state)
    "plain": ("plain", "ok"),
    "<think>a</think>b": ("b", "ok"),
    "<think>a</think>\n\n<think>c</think> b ": ("b", "ok"),
    "a thought </think> b": ("b", "ok"),
    "<thought>a</thought>b": ("b", "ok"),
    "<Thinking>a</Thinking>b": ("b", "ok"),
    "[THINK]a[/THINK]b": ("b", "ok"),
    "<think>so it may be 7 because": ("", "truncated"),
    "Answer first <think>never ends": ("Answer first", "ok"),
    "<think></think>": ("", "empty"),
    " \n": ("", "empty"),
    "<think>Answer: 3</think> Answer: 9": ("Answer: 9", "ok"),
    "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>42<|return|>": (
        "42",
        "ok",
    ),
    "<|channel|>analysis<|message|>half a thought": ("", "truncated"),
    "<|channel|>final<|message|>42": ("42", "ok"),
    "analysisWe need 42.assistantfinal42": ("42", "ok"),
    "analysis of the data: 42": ("analysis of the data: 42", "ok"),
    "I think <b>bold</b> is fine": ("I think <b>bold</b> is fine", "ok"),
    "use the <think> tag, say people": ("use the", "ok"),
    "<think>a <think> nested </think> b": ("b", "ok"),
    "\ufeffB\u200b": ("B", "ok"),
    "\u200b<think>a</think>\u200b\nb\u00a0": ("b", "ok"),
    "\u200b\ufeff": ("", "empty"),
    "B<|im_end|>": ("B", "ok"),
    "B</s>\n</s> ": ("B", "ok"),
    "B<|eot_id|><|end_of_text|>": ("B", "ok"),
    "<|im_end|>": ("", "empty"),
    "is <s>old</s>": ("is <s>old</s>", "ok"),
    "the token <|im_end|> ends a turn": ("the token <|im_end|> ends a turn", "ok"),
}


@pytest.mark.parametrize("output", VISIBLE)
def test_visible_answer(output):
    assert visible_answer(output) == VISIBLE[output]


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "<think>",
            "</think>",
            "<think></think>",
            "[THINK]",
            "<|channel|>final",
            "<",
            "analysis",
            "\n",
            " ",
        ),
        *("</s>", "<|im_end|>\u200b", "\u200b"),
    ],
)
def test_visible_answer_is_linear(unit):
    visible_answer(unit * (100_000 // len(unit)))


CELLS = {
    # a gold's cell in a CSV: its value
    '["a", null]': ["a", None],
    "['a', None]": ["a", None],
    "{'answer': True}": {"answer": True},
    "['Rome' 'Roma']": ["Rome", "Roma"],
    "['Rome'\n \"it's\"]": ["Rome", "it's"],
    "[('a', 1)]": [["a", 1]],
    "{1, 2}": "{1, 2}",
    "[{1, 2}]": "[{1, 2}]",
    "[0, 1)": "[0, 1)",
    "[Music] plays": "[Music] plays",
    "12": "12",
}


@pytest.mark.parametrize("cell", CELLS)
def test_csv_cells_as_other_tools_write_them(tmp_path, cell):
    path = tmp_path / "popqa.subset.csv"
    with open(path, "w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows([["id", "outputs", "gold"], ["['1']", "['Rome' 'Roma']", cell]])
    (row,) = ResponseFile("popqa.subset", path, "csv").rows()
    assert (row.gold, row.id, row.answer) == (CELLS[cell], "['1']", "['Rome' 'Roma']")
