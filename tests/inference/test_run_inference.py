"""run_inference.py with a real engine: vLLM on the CPU, tiny models in float32, compared with
transformers.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import time
from array import array

import pytest

import run_inference
from evaluation.extraction.visible import visible_answer
from evaluation.inference import engine
from evaluation.inference.data import TaskAbsent, hub_rows, load
from evaluation.inference.limits import prompt_room
from evaluation.inference.manifest import missing_samples
from evaluation.inference.work import Rendered
from tests.inference.conftest import (
    ENGINE,
    WINDOW,
    Reference,
    arguments,
    manifest,
    read_task,
    start,
    write_task,
)
from tests.inference.tiny_model import CHATML

pytestmark = pytest.mark.inference
TASKS = ("boolq.subset", "hotpotqa.subset", "mtbench.turn1", "mtbench.turn2", "structflowbench.turn2")


@pytest.fixture(scope="module")
def tokens():
    """prompt ids → generated ids, of everything that the engine answers in this process."""
    seen: dict[tuple[int, ...], list[int]] = {}
    original = engine._outcome

    def note(output):
        seen[tuple(output.prompt_token_ids)] = list(output.outputs[0].token_ids)
        return original(output)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_outcome", note)
        yield seen


@pytest.fixture(scope="module")
def whole(models, data, tokens, tmp_path_factory):
    """An undisturbed run of all five tasks."""
    out = tmp_path_factory.mktemp("whole")
    assert run_inference.main(arguments(models["plain"], data, out)) == 0
    return out / "m"


def assert_equal(row, ids, tokens, reference):
    """The row's answer to the prompt `ids` is the one of transformers, token for token."""
    new = reference.answer(ids, min(24, WINDOW - len(ids)))
    assert tokens[tuple(ids)] == new, row["id"]
    assert row["prompt_tokens"] == len(ids)
    assert row["output_tokens"] == len(new)
    assert row["outputs"].rstrip("\ufffd") == reference.text(new)


def test_outputs_equal_transformers_token_for_token(whole, tokens, reference):
    compared = 0
    for task in ("boolq.subset", "hotpotqa.subset", "mtbench.turn1"):
        for row in read_task(whole, task):
            if not row["truncated_tokens"]:
                assert_equal(row, reference.ids(row["formatted_prompt"]), tokens, reference)
                compared += 1
    assert compared >= 18


def test_second_turns_hold_the_models_own_first_answer(whole, tokens, reference):
    first = {row["formatted_prompt"]: row for row in read_task(whole, "mtbench.turn1")}
    for task in ("mtbench.turn2", "structflowbench.turn2"):
        for row in read_task(whole, task):
            one, two = (turn if isinstance(turn, str) else turn["user prompt"] for turn in row["prompt"])
            own = reference.text(reference.answer(reference.ids(one)))
            assert row["turn1_response"].rstrip("\ufffd") == visible_answer(own)[0]
            if one in first:
                assert row["turn1_response"] == visible_answer(first[one]["outputs"])[0]
            assert_equal(row, reference.ids(one, row["turn1_response"], two), tokens, reference)
    # three of the four first turns of mtbench.turn2 were answered in mtbench.turn1 already
    assert manifest(whole)["runs"][0]["samples"] == 12 + 8 + 3 + (1 + 4) + (3 + 3)


def test_a_cut_prompt_keeps_head_and_tail_and_fits_others_stay_whole(whole, tokens, reference):
    room = prompt_room("hotpotqa.subset", WINDOW, 24)
    rows = read_task(whole, "hotpotqa.subset")
    cut = 0
    for row in rows:
        length = len(reference.ids(row["formatted_prompt"]))
        assert row["truncated_tokens"] == max(0, length - room)
        assert row["prompt_tokens"] == min(length, room)
        cut += row["truncated_tokens"] > 0
    assert 0 < cut < len(rows)
    assert manifest(whole)["tasks"]["hotpotqa.subset"]["truncated_prompts"] == cut
    assert any("lose their middle" in warning for warning in manifest(whole)["warnings"])
    # the longest prompt goes first, and run.json keeps the first one
    kept = manifest(whole)["first_prompt"]
    row = next(row for row in rows if row["id"] == kept["id"])
    uncut = reference.ids(row["formatted_prompt"])
    head = next(n for n in range(room) if kept["ids"][n] != uncut[n])
    assert kept["ids"] == uncut[:head] + uncut[len(uncut) - (room - head) :]
    assert "FIRST" in reference.tokenizer.decode(kept["ids"])
    assert reference.tokenizer.decode(kept["ids"]).endswith("LAST<|im_end|>\n<|im_start|>assistant\n")
    assert_equal(row, kept["ids"], tokens, reference)


def test_rows_keep_their_columns_and_get_ours(whole, data):
    for before, after in zip(read_task(data, "boolq.subset"), read_task(whole, "boolq.subset"), strict=True):
        assert before.items() <= after.items()
    row = read_task(whole, "structflowbench.turn2")[0]
    assert "somebody else's" not in (row["outputs"], row["turn1_response"])
    assert set(read_task(whole, "boolq.subset")[0]) == {
        "id", "formatted_prompt", "gold", "meta", "outputs", "finish_reason",
        "prompt_tokens", "output_tokens", "truncated_tokens", "fingerprint",
    }  # fmt: skip


def test_run_json_says_what_made_the_responses(whole, data):
    record = manifest(whole)
    assert record["settings"]["temperature"] == 0
    assert record["settings"]["vllm"].endswith("+cpu")
    assert record["bos"] == {"id": 1, "added": False}
    assert record["runs"][0]["state"] == "complete"
    assert record["runs"][0]["versions"]["transformers"]
    assert record["runs"][0]["engine_arguments"]["generation_config"] == "vllm"
    assert record["tasks"]["boolq.subset"]["data_sha256"] == load(str(data), "", "boolq.subset").sha256
    rows = {task: load(str(data), "", task).rows for task in TASKS}
    assert missing_samples(whole, rows) == {}


def test_nothing_left_starts_no_engine_and_a_larger_limit_extends(models, data, whole, tmp_path, monkeypatch):
    base = arguments(models["plain"], data, tmp_path, "--tasks", *TASKS)
    assert run_inference.main([*base, "--limit", "2"]) == 0
    assert [len(read_task(tmp_path / "m", task)) for task in TASKS] == [2] * 5
    assert manifest(tmp_path / "m")["runs"][0]["samples"] == 2 * 5 + 2
    before = {path: path.read_bytes() for path in (tmp_path / "m").glob("*.jsonl")}
    monkeypatch.setattr("evaluation.inference.generate.Engine", None)  # starting one would fail
    assert run_inference.main([*base, "--limit", "2"]) == 0
    assert run_inference.main([*base, "--limit", "0"]) == 0
    assert before == {path: path.read_bytes() for path in (tmp_path / "m").glob("*.jsonl")}
    monkeypatch.undo()
    assert run_inference.main(base) == 0
    for task in TASKS:
        assert (tmp_path / "m" / f"{task}.jsonl").read_bytes() == (whole / f"{task}.jsonl").read_bytes()
    runs = manifest(tmp_path / "m")["runs"]
    assert sum(run["samples"] for run in runs) == manifest(whole)["runs"][0]["samples"]
    assert len(runs) == 2


def test_other_settings_are_refused_with_the_differences(models, data, whole, tmp_path, capsys):
    shutil.copytree(whole, tmp_path / "m")
    cases = {
        "max_tokens: 24 there, 12 now": ["--max_tokens", "12"],
        "temperature: 0.0 there, 0.5 now": ["--temperature", "0.5"],
        "system_prompt": ["--system_prompt", ""],
        "max_model_len: 512 there, 256 now": ["--max_model_len", "256"],
        "weights": ["--model", str(models["other"])],
        "chat_template_kwargs": ["--chat_template_kwargs", '{"enable_thinking": false}'],
    }
    before = {path: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    for message, options in cases.items():
        capsys.readouterr()
        assert run_inference.main(arguments(models["plain"], data, tmp_path, *options)) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert before == {path: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    (tmp_path / "m" / "notes.txt").write_text("mine")
    options = ["--model", str(models["other"]), "--tasks", "boolq.subset", "--overwrite"]
    assert run_inference.main(arguments(models["plain"], data, tmp_path, *options)) == 0
    names = {path.name for path in (tmp_path / "m").iterdir()}
    assert names == {"boolq.subset.jsonl", "run.json", "notes.txt"}
    old, new = read_task(whole, "boolq.subset"), read_task(tmp_path / "m", "boolq.subset")
    assert [row["outputs"] for row in old] != [row["outputs"] for row in new]


def test_a_failed_check_overwrites_nothing(models, data, whole, tmp_path, capsys):
    shutil.copytree(whole, tmp_path / "m")
    before = {path: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    wrong = json.dumps({**ENGINE, "no_such_argument": 1})
    options = arguments(models["plain"], data, tmp_path, "--overwrite", "--vllm_kwargs", wrong)
    assert run_inference.main(options) == 1
    assert "vLLM 0.32.0+cpu does not know no_such_argument" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in (tmp_path / "m").iterdir()}


def test_check_alone_writes_nothing_and_sums_up(models, data, tmp_path, capsys):
    assert (
        run_inference.main(arguments(models["plain"], data, tmp_path / "out", "--check", "--limit", "4")) == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "out").exists()
    assert report["native_window"] == report["max_model_len"] == WINDOW
    assert report["tasks"]["boolq.subset"]["left"] == 4
    assert report["samples_left"] == 4 + 4 + 3 + 5 + 6
    assert report["output_tokens_at_most"] == 24 * report["samples_left"]


def test_a_template_without_system_role_and_with_bos(models, data, tokens, tmp_path):
    options = arguments(models["no_system"], data, tmp_path, "--tasks", "boolq.subset", "--limit", "4")
    assert run_inference.main(options) == 0
    record = manifest(tmp_path / "m")
    assert record["system_role"].startswith("merged")
    assert record["first_prompt"]["ids"].count(1) == 1
    assert record["first_prompt"]["ids"][0] == 1
    reference = Reference(models["no_system"])
    for row in read_task(tmp_path / "m", "boolq.subset"):
        merged = "You are a helpful assistant.\n\n" + row["formatted_prompt"]
        assert_equal(row, reference.ids(merged, system=None), tokens, reference)


def test_a_model_without_template_needs_one(models, data, tmp_path, capsys):
    options = arguments(models["no_template"], data, tmp_path, "--tasks", "boolq.subset", "--limit", "3")
    assert run_inference.main(options) == 1
    assert "--chat_template FILE" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
    (tmp_path / "chatml.jinja").write_text(CHATML)
    assert run_inference.main([*options, "--chat_template", str(tmp_path / "chatml.jinja")]) == 0
    assert len(read_task(tmp_path / "m", "boolq.subset")) == 3


def test_template_arguments_reach_the_prompt_and_unused_ones_are_named(models, data, tmp_path):
    kwargs = '{"enable_thinking": false, "no_such_switch": 1}'
    options = ["--tasks", "boolq.subset", "--limit", "2", "--chat_template_kwargs", kwargs]
    assert run_inference.main(arguments(models["plain"], data, tmp_path, *options)) == 0
    record = manifest(tmp_path / "m")
    assert record["first_prompt"]["text"].endswith("<think>\n\n</think>\n\n")
    assert any("no_such_switch" in warning for warning in record["warnings"])


def test_sampling_is_reproducible_and_is_not_greedy(models, data, whole, tmp_path):
    outputs = []
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        options = ["--tasks", "boolq.subset", "--temperature", "1", "--seed", seed]
        assert run_inference.main(arguments(models["plain"], data, tmp_path / name, *options)) == 0
        outputs.append([row["outputs"] for row in read_task(tmp_path / name / "m", "boolq.subset")])
    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]
    assert outputs[0] != [row["outputs"] for row in read_task(whole, "boolq.subset")]
    assert manifest(tmp_path / "a" / "m")["settings"]["seed"] == 3


def test_a_request_that_the_engine_refuses_costs_that_row_alone(models, data, tmp_path, monkeypatch):
    original = Rendered.request

    def request(self):
        asked = original(self)
        if self.sample.key != "b2":
            return asked
        return engine.Request(asked.name, array("I", [10**6]), asked.max_tokens)  # no such token

    options = arguments(models["plain"], data, tmp_path, "--tasks", "boolq.subset", "--limit", "4")
    with monkeypatch.context() as patch:
        patch.setattr(Rendered, "request", request)
        assert run_inference.main(options) == 4
    assert [row["id"] for row in read_task(tmp_path / "m", "boolq.subset")] == ["b0", "b1", "b3"]
    assert manifest(tmp_path / "m")["tasks"]["boolq.subset"]["failed"] == ["b2"]
    assert run_inference.main(options) == 0  # tried again, and only that one
    assert [row["id"] for row in read_task(tmp_path / "m", "boolq.subset")] == ["b0", "b1", "b2", "b3"]
    assert [run["samples"] for run in manifest(tmp_path / "m")["runs"]] == [3, 1]
    assert manifest(tmp_path / "m")["tasks"]["boolq.subset"]["failed"] == []


def test_the_data_set_package_reads_one_configuration_a_task(tmp_path):
    write_task(tmp_path / "set", "boolq", [{"id": "1", "formatted_prompt": "x", "choices": ["a"]}])
    files = "  data_files:\n  - split: train\n    path: boolq.jsonl\n"
    card = f"---\nconfigs:\n- config_name: boolq.subset\n{files}---\n"
    (tmp_path / "set" / "README.md").write_text(card)
    rows = hub_rows(str(tmp_path / "set"), "boolq.subset", None)
    assert rows == [{"id": "1", "formatted_prompt": "x", "choices": ["a"]}]
    with pytest.raises(TaskAbsent):
        hub_rows(str(tmp_path / "set"), "gsm8k.subset", None)


# --- interruptions


def answered(folder) -> set[tuple[str, str, int]]:
    """Every sample on disk, as (task, key, turn), in partial and in whole files; in none of them twice."""
    found = set()
    for path in sorted(folder.glob("[!.]*.jsonl*")):
        task, whole = path.name.split(".jsonl")[0], path.suffix == ".jsonl"
        try:
            lines = path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:  # it has just become a whole file
            return answered(folder)
        rows = [json.loads(line) for line in lines]
        turn = 2 if task == "mtbench.turn2" else 1
        names = [(task, row["id"], turn) if whole else (task, row["key"], row["turn"]) for row in rows]
        assert len(names) == len(set(names))
        found |= set(names)
    return found


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Enough work that a run can be killed ten times in its middle."""
    folder = tmp_path_factory.mktemp("many")
    write_task(
        folder,
        "ifeval.subset",
        [{"id": f"i{n}", "formatted_prompt": f"Write {n} lines."} for n in range(600)],
    )
    pairs = [(f"Plan {n}.", f"Add {n} times.") for n in range(60)]
    write_task(
        folder, "mtbench.turn2", [{"id": f"t{n}", "prompt": list(pair)} for n, pair in enumerate(pairs)]
    )
    return folder


def kill_options(models, many, out):
    # few at a time, so that answers come one after another
    few = json.dumps({**ENGINE, "max_num_seqs": 4})
    return arguments(models["plain"], many, out, "--max_tokens", "48", "--vllm_kwargs", few)


def test_kill_9_at_ten_moments_loses_only_what_was_in_flight(models, many, tmp_path):
    options = kill_options(models, many, tmp_path / "killed")
    folder = tmp_path / "killed" / "m"
    chosen = random.Random(7)
    # eight moments in the first pass, two in the second one
    moments = sorted([*chosen.sample(range(5, 640), 8), *chosen.sample(range(665, 690), 2)])
    total = 600 + 60 + 60
    before: set[tuple[str, str, int]] = set()
    asked = []
    for moment in moments:
        process = start(*options)
        while process.poll() is None and len(answered(folder)) < moment:
            time.sleep(0.02)
        assert process.poll() is None, "it ended before it could be killed"
        process.kill()
        _, error = process.communicate()
        # a run asks for what is not on disk and for nothing else: only what was in flight is made again
        asked.append(int(re.search(r"(\d+) samples left", error)[1]))
        assert asked[-1] == total - len(before)
        now = answered(folder)
        assert before <= now  # and nothing that was there is gone
        before = now
    process = start(*options)
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert manifest(folder)["runs"][-1]["samples"] == total - len(before)
    assert len(set(asked)) == 10
    undisturbed = kill_options(models, many, tmp_path / "undisturbed")
    assert run_inference.main(undisturbed) == 0
    for task in ("ifeval.subset", "mtbench.turn2"):
        file = f"{task}.jsonl"
        assert (folder / file).read_bytes() == (tmp_path / "undisturbed" / "m" / file).read_bytes()
    assert not list(folder.glob("*.partial"))  # nor what a kill left of a file that was being written


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_is_finished_and_says_so(models, many, tmp_path, sent):
    process = start(*kill_options(models, many, tmp_path))
    folder = tmp_path / "m"
    while process.poll() is None and len(answered(folder)) < 20:
        time.sleep(0.02)
    process.send_signal(sent)
    _, error = process.communicate()
    assert process.returncode == 1
    assert "finished samples are kept" in error
    assert len(answered(folder)) >= 20
    assert manifest(folder)["runs"][0]["state"] == "stopped: KeyboardInterrupt"


def test_two_runs_never_write_to_one_folder(models, many, tmp_path):
    process = start(*kill_options(models, many, tmp_path))
    while process.poll() is None and len(answered(tmp_path / "m")) < 3:
        time.sleep(0.02)
    second = start(*kill_options(models, many, tmp_path))
    _, error = second.communicate()
    process.kill()
    process.communicate()
    assert second.returncode == 1
    assert "another run is writing" in error
