"""Task data, samples, the store and run.json: everything about files that needs neither vLLM nor network."""

from __future__ import annotations

import json
import logging

import pytest

from evaluation.inference import data as data_room
from evaluation.inference.data import (
    DataError,
    TaskAbsent,
    hub_rows,
    join_ifeval,
    load,
    plain,
    resolve_revision,
)
from evaluation.inference.limits import output_limit
from evaluation.inference.manifest import (
    ABSENT,
    FOREIGN,
    OURS,
    differences,
    folder_state,
    missing_by_count,
    missing_samples,
    own_files,
    settings_sha256,
    write_manifest,
)
from evaluation.inference.samples import Sample, fingerprint, first_answer, row_keys, samples_of, turn1_keys
from evaluation.inference.store import StoreError, TaskStore, json_line, read_partial
from evaluation.inference.work import conversation, pending, plan

ROWS = [{"id": f"{n:03d}", "formatted_prompt": f"question {n}", "gold": str(n)} for n in range(6)]
TURNS = [
    {"id": "m1", "prompt": ["Name a stew.", "A vegan one."], "formatted_prompt": "A vegan one."},
    {"id": "m2", "prompt": [{"user prompt": "Plan a hike."}, {"user prompt": "Add times."}]},
    {"id": "m3", "prompt": '["Say A.", "Say B."]', "formatted_prompt": "Please: Say B."},
]


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


# --- data


@pytest.mark.parametrize("name", ["boolq.subset.jsonl", "boolq_subset.jsonl", "boolq.subset.json"])
def test_local_files_by_both_spellings(tmp_path, name):
    if name.endswith(".json"):
        (tmp_path / name).write_text(json.dumps(ROWS), encoding="utf-8")
    else:
        write_lines(tmp_path / name, ROWS)
    assert load(str(tmp_path), "main", "boolq.subset").rows == ROWS


@pytest.mark.parametrize("name", ["boolq.subset.parquet", "data/boolq.subset/data.parquet"])
def test_parquet_gives_the_same_rows_and_hash_as_jsonl(tmp_path, name):
    import pyarrow
    import pyarrow.parquet

    rows = [{**row, "choices": ["a", "b"], "meta": {"n": 1}} for row in ROWS]
    path = tmp_path / "parquet" / name
    path.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    write_lines(tmp_path / "lines" / "boolq.subset.jsonl", rows)
    first = load(str(tmp_path / "parquet"), "main", "boolq.subset")
    second = load(str(tmp_path / "lines"), "main", "boolq.subset")
    assert first == second
    assert type(first.rows[0]["choices"]) is list


def test_never_another_tasks_file(tmp_path):
    write_lines(tmp_path / "gsm8k.jsonl", ROWS)
    write_lines(tmp_path / "gsm8k.subset.jsonl", ROWS)
    with pytest.raises(TaskAbsent):
        load(str(tmp_path), "main", "gsm8k.schema")


def test_two_files_of_one_task_are_an_error(tmp_path):
    write_lines(tmp_path / "boolq.subset.jsonl", ROWS)
    write_lines(tmp_path / "boolq_subset.jsonl", ROWS)
    with pytest.raises(DataError, match="more than one file"):
        load(str(tmp_path), "main", "boolq.subset")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": 1}\n{"id": 2, "out', "line 2"),
        ("[1, 2]\n", "list of objects"),
        ("\ufffe", "line 1"),
    ],
)
def test_a_damaged_data_file_is_one_line_with_its_name(tmp_path, content, message):
    (tmp_path / "boolq.subset.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        load(str(tmp_path), "main", "boolq.subset")
    assert "boolq.subset.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_are_plain_and_ids_stay_as_written(tmp_path):
    text = '{"id": "007", "gold": "12", "meta": NaN, "formatted_prompt": "a\u2028b\u0085c"}\n'
    (tmp_path / "boolq.subset.jsonl").write_text(text, encoding="utf-8")
    row = load(str(tmp_path), "main", "boolq.subset").rows[0]
    assert row == {"id": "007", "gold": "12", "meta": None, "formatted_prompt": "a\u2028b\u0085c"}
    assert plain({1: (1.5, b"x", float("inf"))}) == {"1": [1.5, "x", None]}


def test_the_hash_sees_every_value(tmp_path):
    write_lines(tmp_path / "boolq.subset.jsonl", ROWS)
    before = load(str(tmp_path), "main", "boolq.subset").sha256
    write_lines(tmp_path / "boolq.subset.jsonl", [*ROWS[:-1], {**ROWS[-1], "gold": "9"}])
    assert load(str(tmp_path), "main", "boolq.subset").sha256 != before


def test_what_was_downloaded_serves_offline(tmp_path, monkeypatch):
    asked = []

    def fake(dataset, task, revision):
        asked.append((dataset, task, revision))
        return ROWS

    monkeypatch.setattr(data_room, "hub_rows", fake)
    commit = "a" * 40
    first = load("org/data", commit, "boolq.subset", tmp_path)
    assert load("org/data", commit, "boolq.subset", tmp_path) == first
    assert asked == [("org/data", "boolq.subset", commit)]
    (tmp_path / "data" / "org__data" / "main").mkdir()
    (tmp_path / "data" / "org__data" / "main" / "commit.txt").write_text(commit)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert resolve_revision("org/data", "main", tmp_path) == commit
    assert resolve_revision("org/data", commit, tmp_path) == commit
    assert resolve_revision(str(tmp_path), "main", tmp_path) == "local"
    with pytest.raises(DataError, match="download_only"):
        resolve_revision("org/data", "v2", tmp_path)


def test_without_the_package_a_download_is_one_line(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(DataError, match="not installed"):
        hub_rows("org/data", "boolq.subset", None)


IFEVAL = [
    {"prompt": "Write  a poem.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
    {"prompt": "Write a long poem.", "instruction_id_list": ["a:b"], "kwargs": [{"n": 1}]},
]


@pytest.mark.parametrize(
    ("row", "ids"),
    [
        ({"prompt": "Write a poem.\n"}, ["punctuation:no_comma"]),
        ({"prompt": "x", "formatted_prompt": "Instruction: Write a long poem.\nResponse:"}, ["a:b"]),
        ({"prompt": "Write a poem.", "instruction_id_list": ["own"], "kwargs": [{}]}, ["own"]),
        ({"prompt": "Write another text."}, None),
    ],
)
def test_ifeval_rows_get_their_constraints(row, ids):
    rows, lacking = join_ifeval([row], IFEVAL)
    assert rows[0].get("instruction_id_list") == ids
    assert lacking == (ids is None)


def test_ifeval_is_joined_at_download(tmp_path, monkeypatch):
    def fake(dataset, task, revision):
        return IFEVAL if dataset == "google/IFEval" else [{"id": "1", "prompt": "Write a poem."}]

    monkeypatch.setattr(data_room, "hub_rows", fake)
    row = load("org/data", "b" * 40, "ifeval.subset", tmp_path).rows[0]
    assert row["kwargs"] == [{}]


# --- samples


def test_a_row_without_an_id_is_named_by_its_prompt_and_repeats_are_listed():
    keys = row_keys("t", [{"formatted_prompt": "a"}, {"formatted_prompt": "b"}, {"id": 7}])
    assert keys[2] == "7"
    assert len(set(keys)) == 3
    with pytest.raises(DataError, match="more than once"):
        row_keys("t", [{"formatted_prompt": "a"}, {"formatted_prompt": "a"}])
    with pytest.raises(DataError, match="007"):
        row_keys("t", [{"id": "007"}, {"id": "008"}, {"id": "007"}])


@pytest.mark.parametrize(
    ("task", "row", "column"),
    [
        ("boolq.subset", {"id": "1", "prompt": "x"}, "formatted_prompt"),
        ("boolq.subset", {"id": "1", "formatted_prompt": "  "}, "formatted_prompt"),
        ("mtbench.turn2", {"id": "1", "prompt": "only one"}, "prompt"),
        ("mtbench.turn2", {"id": "1", "prompt": ["only one"]}, "prompt"),
        ("structflowbench.turn2", {"id": "1", "prompt": "[broken"}, "prompt"),
    ],
)
def test_a_missing_column_names_task_row_and_column(task, row, column):
    with pytest.raises(DataError, match=rf"{task}, row 1: the column {column}"):
        samples_of(task, [row])


def test_second_turns_ask_their_own_first_turn():
    samples = samples_of("mtbench.turn2", TURNS)
    assert [(s.key, s.turn) for s in samples] == [
        ("m1", 1), ("m1", 2), ("m2", 1), ("m2", 2), ("m3", 1), ("m3", 2),
    ]  # fmt: skip
    assert samples[1].users == ("Name a stew.", "A vegan one.")
    assert samples[1].first == ("mtbench.turn2", "m1", 1)
    assert samples[3].users == ("Plan a hike.", "Add times.")
    assert samples[5].users == ("Say A.", "Please: Say B.")


def test_the_first_turn_is_reused_only_where_the_prompt_is_the_same():
    donor = [
        {"id": "d1", "formatted_prompt": "Name a stew."},
        {"id": "d2", "formatted_prompt": "Plan a hike. "},
    ]
    samples = samples_of("mtbench.turn2", TURNS, turn1_keys("mtbench.turn1", donor))
    assert samples[0].first == ("mtbench.turn1", "d1", 1)
    assert [(s.key, s.turn) for s in samples].count(("m1", 1)) == 0
    assert [(s.key, s.turn) for s in samples].count(("m2", 1)) == 1


def test_the_first_answer_in_context_is_the_visible_one():
    assert first_answer("<think>hm</think>\nGoulash.") == "Goulash."
    assert first_answer("<think>hm") == ""


def test_the_fingerprint_sees_settings_prompt_and_limit():
    sample = Sample("t", "1", 1, ("a",), 0)
    prints = {
        fingerprint("s", sample, 10),
        fingerprint("z", sample, 10),
        fingerprint("s", sample, 11),
        fingerprint("s", Sample("t", "1", 1, ("b",), 0), 10),
        fingerprint("s", Sample("t", "1", 2, ("a",), 0), 10),
    }
    assert len(prints) == 5


# --- store


def answer(text, print_, **more):
    return {
        "outputs": text,
        "finish_reason": "stop",
        "prompt_tokens": 3,
        "output_tokens": 2,
        "truncated_tokens": 0,
        "fingerprint": print_,
        **more,
    }


def prints_of(task, rows, settings="s"):
    return {
        (s.key, s.turn): fingerprint(settings, s, output_limit(task, None)) for s in samples_of(task, rows)
    }


def fill(folder, task, rows, count=None, settings="s"):
    prints = prints_of(task, rows, settings)
    store = TaskStore(folder, task).load()
    for sample in samples_of(task, rows)[:count]:
        more = {"turn1_response": "first"} if sample.turn == 2 else {}
        store.append(sample, answer(f"answer {sample.key}", prints[sample.key, sample.turn], **more))
    return store, prints


def test_a_sample_is_on_disk_once_it_is_appended(tmp_path):
    store, _ = fill(tmp_path, "boolq.subset", ROWS, 3)
    again = TaskStore(tmp_path, "boolq.subset").load()  # while the first one is still open
    store.close()
    assert [key for key, _ in again.answers] == ["000", "001", "002"]


@pytest.mark.parametrize(
    "torn", ['{"key": "003", "turn": 1, "outp', '{"key": "003"}', "\x00\x00\x00", "é"[:1]]
)
def test_a_torn_last_line_costs_that_sample_alone(tmp_path, torn, caplog):
    store, prints = fill(tmp_path, "boolq.subset", ROWS, 3)
    store.close()
    with open(store.partial, "a", encoding="utf-8") as handle:
        handle.write(torn)
    with caplog.at_level(logging.WARNING):
        again = TaskStore(tmp_path, "boolq.subset").load()
    assert len(again.answers) == 3
    assert "line 4" in caplog.text
    for sample in samples_of("boolq.subset", ROWS)[3:]:
        again.append(sample, answer("late", prints[sample.key, 1]))
    assert again.finish(ROWS, prints) == 6
    assert len(read_partial(store.partial)[0]) == 0


def test_a_line_torn_in_the_middle_is_an_error_with_its_number(tmp_path):
    store, _ = fill(tmp_path, "boolq.subset", ROWS, 3)
    store.close()
    lines = store.partial.read_text().split("\n")
    store.partial.write_text("\n".join([lines[0], lines[1][:20], *lines[2:]]))
    with pytest.raises(StoreError, match="line 2"):
        TaskStore(tmp_path, "boolq.subset").load()


def test_the_whole_file_has_the_tasks_columns_then_ours_in_the_order_of_the_data(tmp_path):
    rows = [{**row, "outputs": "somebody else's", "é": "你\u2028"} for row in ROWS]
    store, prints = fill(tmp_path, "boolq.subset", rows)
    assert store.finish(rows, prints) == 6
    assert not store.partial.exists()
    written = [json.loads(line) for line in store.final.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row["id"] for row in written] == [row["id"] for row in rows]
    assert written[0]["outputs"] == "answer 000"
    assert written[0]["é"] == "你\u2028"
    assert list(written[0]) == [
        "id", "formatted_prompt", "gold", "é", "outputs", "finish_reason", "prompt_tokens", "output_tokens",
        "truncated_tokens", "fingerprint",
    ]  # fmt: skip
    assert "你" in store.final.read_text(encoding="utf-8")


def test_lines_hold_no_character_that_a_reader_could_take_for_their_end():
    for text in ("a\u2028b", "a\u2029b", "a\u0085b", "a\nb", "a\rb", "\ud800"):
        line = json_line({"o": text})
        assert len(line.splitlines()) == 1
        assert json.loads(line.encode("utf-8")) == {"o": text}


def test_a_response_file_of_somebody_else_is_never_taken_for_ours(tmp_path):
    write_lines(tmp_path / "boolq.subset.jsonl", [{**row, "outputs": "x"} for row in ROWS])
    with pytest.raises(StoreError, match="was not written by run_inference"):
        TaskStore(tmp_path, "boolq.subset").load()


def test_other_fingerprints_do_not_count(tmp_path):
    store, _ = fill(tmp_path, "boolq.subset", ROWS)
    sample = samples_of("boolq.subset", ROWS)[0]
    assert store.get(sample, "other") is None
    assert store.finish(ROWS, prints_of("boolq.subset", ROWS, "other settings")) == 0


# --- work


def works_of(folder, tasks, limit=None, settings="s"):
    data = {task: data_room.TaskData(task, rows, "hash") for task, rows in tasks.items()}
    return plan(data, folder, settings, limit, None)


def test_resume_is_by_sample_and_a_larger_limit_extends(tmp_path):
    store, prints = fill(tmp_path, "boolq.subset", ROWS, 3)
    store.finish(ROWS, prints)
    assert [s.key for s in pending(works_of(tmp_path, {"boolq.subset": ROWS}, 2), 1)] == []
    assert [s.key for s in pending(works_of(tmp_path, {"boolq.subset": ROWS}, 5), 1)] == ["003", "004"]
    assert len(pending(works_of(tmp_path, {"boolq.subset": ROWS}), 1)) == 3
    assert pending(works_of(tmp_path, {"boolq.subset": ROWS}, 0), 1) == []


def test_a_smaller_limit_keeps_the_rows_that_are_there(tmp_path):
    store, prints = fill(tmp_path, "boolq.subset", ROWS)
    store.finish(ROWS, prints)
    work = works_of(tmp_path, {"boolq.subset": ROWS}, 2)["boolq.subset"]
    assert work.store.finish(work.data.rows, work.prints) == 6


def test_an_answered_second_turn_asks_no_first_turn_again(tmp_path):
    store, prints = fill(tmp_path, "structflowbench.turn2", TURNS, 4)
    store.finish(TURNS, prints)
    works = works_of(tmp_path, {"structflowbench.turn2": TURNS})
    assert [(s.key, s.turn) for s in works["structflowbench.turn2"].pending()] == [("m3", 1), ("m3", 2)]


def test_the_second_turn_holds_the_donors_visible_answer(tmp_path):
    donor = [{"id": "d1", "formatted_prompt": "Name a stew."}]
    works = works_of(tmp_path, {"mtbench.turn1": donor, "mtbench.turn2": TURNS[:1]})
    second = pending(works, 2)[0]
    assert conversation(second, works) is None
    first = pending(works, 1)[0]
    assert first.task == "mtbench.turn1"
    work = works["mtbench.turn1"]
    work.store.append(first, answer("<think>x</think>Goulash.", work.prints["d1", 1]))
    work.store.close()
    assert conversation(second, works) == ["Name a stew.", "Goulash.", "A vegan one."]


# --- run.json


def test_whose_folder_it_is(tmp_path):
    assert folder_state(tmp_path / "none") == ABSENT
    (tmp_path / "empty").mkdir()
    assert folder_state(tmp_path / "empty") == ABSENT
    write_lines(tmp_path / "theirs" / "boolq.subset.jsonl", ROWS)
    assert folder_state(tmp_path / "theirs") == FOREIGN
    (tmp_path / "theirs" / "run.json").write_text('{"written_by": "somebody"}')
    assert folder_state(tmp_path / "theirs") == FOREIGN
    write_manifest(tmp_path / "ours", {"tasks": {}})
    assert folder_state(tmp_path / "ours") == OURS


def test_overwriting_takes_only_our_own_files(tmp_path):
    for name in ("boolq.subset.jsonl", "boolq.subset.jsonl.partial", "notes.txt", "gsm8k.subset.jsonl"):
        (tmp_path / name).write_text("")
    write_manifest(tmp_path, {"tasks": {"boolq.subset": {}}})
    names = {path.name for path in own_files(tmp_path, {"tasks": {"boolq.subset": {}}})}
    assert names == {"boolq.subset.jsonl", "boolq.subset.jsonl.partial", "run.json"}


def test_whether_every_response_is_there(tmp_path):
    settings = {"weights": "w", "max_tokens": None}
    rows = {"boolq.subset": ROWS, "structflowbench.turn2": TURNS}
    assert missing_samples(tmp_path / "none", rows, 1) == {
        "boolq.subset": ["000"], "structflowbench.turn2": ["m1"],
    }  # fmt: skip
    for task, task_rows in rows.items():
        store, prints = fill(tmp_path, task, task_rows, 4, settings_sha256(settings))
        store.finish(task_rows, prints)
    entries = {
        "boolq.subset": {"available": 6, "answered": 4},
        "structflowbench.turn2": {"available": 3, "answered": 2},
    }
    write_manifest(
        tmp_path, {"settings": settings, "settings_sha256": settings_sha256(settings), "tasks": entries}
    )
    assert missing_samples(tmp_path, rows, 2) == {}
    assert missing_samples(tmp_path, rows) == {
        "boolq.subset": ["004", "005"], "structflowbench.turn2": ["m3"],
    }  # fmt: skip
    changed = [{**ROWS[0], "formatted_prompt": "another question"}, *ROWS[1:]]
    assert missing_samples(tmp_path, {"boolq.subset": changed}, 2) == {"boolq.subset": ["000"]}
    assert missing_by_count(tmp_path, list(rows), 2) == {}
    assert missing_by_count(tmp_path, [*rows, "gsm8k.subset"]) == {
        "boolq.subset": 2, "structflowbench.turn2": 1, "gsm8k.subset": -1,
    }  # fmt: skip


def test_differences_name_both_values():
    assert differences({"temperature": 0.0, "top_p": 1}, {"temperature": 0.7, "top_p": 1}) == [
        "temperature: 0.0 there, 0.7 now"
    ]
