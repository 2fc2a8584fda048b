"""run_inference.py --base_url against a small server on the loopback: what is sent, kept, cut and said, and
how each fault of the server ends. No vLLM, no transformers.
"""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_tokenizer import CHATML, FakeTokenizer
from judge_server import JudgeServer, Step
from support import ROOT

import run_captrack
import run_inference
from evaluation.extraction.visible import visible_answer
from evaluation.inference import address, served
from evaluation.inference.limits import prompt_room
from evaluation.judge.pool import START, Pool
from tests.test_judge_backends import FakeTime

WINDOW = 400
SYSTEM = "You are a helpful assistant."


class FakeModel:
    """What a served model answers: a token is a word, and each message costs three more.

    answers: how often each prompt was answered. A text with "scenario=…;" is left to the server.
    """

    def __init__(self, window: int | None = WINDOW, names: tuple[str, ...] = ("tiny",), owner: str = "vllm"):
        self.window, self.names, self.owner = window, names, owner
        self.system = "own"  # refused, dropped
        self.template_arguments = "used"  # refused, ignored
        self.most_output: int | None = None
        self.thought: str | None = None

    def __call__(self, path: str, body: dict[str, Any]) -> Step | dict[str, Any] | None:
        if path == "/v1/models":
            cards = [
                {
                    "id": name,
                    "object": "model",
                    "created": 1,
                    "owned_by": self.owner,
                    "root": f"/models/{name}",
                }
                | ({"max_model_len": self.window} if self.window else {})
                for name in self.names
            ]
            return {"object": "list", "data": cards}
        if path == "/version":
            return {"version": "0.32.0"}
        if path == "/v1/completions":
            return self._made(len(body["prompt"]), f"{len(body['prompt'])} ids", body, "text_completion")
        messages = body["messages"]
        if "scenario=" in messages[-1]["content"]:
            return None
        if body["model"] not in self.names:
            return Step(404, message=f"The model `{body['model']}` does not exist.")
        if messages[0]["role"] == "system":
            if self.system == "refused":
                return Step(400, message="System role not supported")
            messages = messages[1:] if self.system == "dropped" else messages
        tokens = sum(3 + len(message["content"].split()) for message in messages)
        if "chat_template_kwargs" in body:
            if self.template_arguments == "refused":
                return Step(400, message="chat_template_kwargs: Extra inputs are not permitted")
            tokens += self.template_arguments == "used"
        return self._made(tokens, f"answer to {messages[-1]['content'][:40]}", body, "chat.completion")

    def _made(self, tokens: int, text: str, body: dict[str, Any], kind: str) -> Step | dict[str, Any]:
        limit = body.get("max_tokens") or body["max_completion_tokens"]
        if self.most_output and limit > self.most_output:
            return Step(400, message=f"max_tokens is too large: {limit}")
        if self.window and tokens + limit > self.window:
            return Step(400, message=f"This model's maximum context length is {self.window} tokens.")
        message = {"role": "assistant", "content": text, "reasoning": self.thought}
        choice = {"index": 0, "finish_reason": "stop"}
        choice |= {"text": text} if kind == "text_completion" else {"message": message}
        used = {"prompt_tokens": tokens, "completion_tokens": 2, "total_tokens": tokens + 2}
        return {
            "id": "x",
            "object": kind,
            "created": 1,
            "model": "tiny-2026",
            "choices": [choice],
            "usage": used,
        }


@pytest.fixture
def model():
    return FakeModel()


@pytest.fixture
def server(model, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HTTP_PROXY", raising=False)
    monkeypatch.setenv(served.KEY, "secret-of-inference")
    moved = FakeTime()
    monkeypatch.setattr(served, "Pool", functools.partial(Pool, clock=moved.clock, sleep=moved.sleep))
    with JudgeServer(answer=model) as running:
        yield running


def write(folder: Path, task: str, prompts: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    rows = [{"id": f"r{n}", "formatted_prompt": text, "gold": "yes"} for n, text in enumerate(prompts)]
    (folder / f"{task}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run(server: JudgeServer, tmp_path: Path, *options: str) -> int:
    places = ["--dataset", str(tmp_path / "data"), "--output_dir", str(tmp_path / "out"), "--name", "m"]
    return run_inference.main(["--base_url", f"{server.url}/v1", "--max_tokens", "64", *places, *options])


def command_of(server: JudgeServer, tmp_path: Path) -> list[str]:
    """The same in a process of its own."""
    command = [sys.executable, "run_inference.py", "--base_url", f"{server.url}/v1", "--name", "m"]
    command += ["--dataset", str(tmp_path / "data"), "--output_dir", str(tmp_path / "out")]
    return [*command, "--max_tokens", "64"]


def rows_of(tmp_path: Path, task: str = "boolq.subset") -> dict[str, dict[str, Any]]:
    lines = (tmp_path / "out" / "m" / f"{task}.jsonl").read_text(encoding="utf-8").split("\n")
    return {row["id"]: row for row in (json.loads(line) for line in lines if line)}


def record(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "out" / "m" / "run.json").read_text(encoding="utf-8"))


def asked(server: JudgeServer) -> list[dict[str, Any]]:
    """The bodies of real questions, in order."""
    return [
        r["body"] for r in server.requests if "messages" in r["body"] and "captrack-user" not in r["text"]
    ]


def test_messages_go_out_and_rows_come_back(server, model, tmp_path):
    write(tmp_path / "data", "boolq.subset", ["Is it wet?", "Is it dry?"])
    assert run(server, tmp_path) == 0
    assert rows_of(tmp_path)["r0"] | {"fingerprint": ""} == {
        "id": "r0",
        "formatted_prompt": "Is it wet?",
        "gold": "yes",
        "outputs": "answer to Is it wet?",
        "finish_reason": "stop",
        "prompt_tokens": 3 + 5 + 3 + 3,
        "output_tokens": 2,
        "truncated_tokens": 0,
        "fingerprint": "",
    }
    body = asked(server)[0]
    assert body["messages"][0] == {"role": "system", "content": SYSTEM}
    sampling = {name: body[name] for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")}
    assert sampling == {"temperature": 0, "top_p": 1, "top_k": -1, "min_p": 0, "repetition_penalty": 1}
    assert "seed" not in body
    assert {r["headers"]["authorization"] for r in server.requests} == {"Bearer secret-of-inference"}
    kept = record(tmp_path)
    assert kept["model"] == {"given": "tiny", "served_at": f"{server.url}/v1"}
    assert kept["settings"]["weights"] == "served:tiny (/models/tiny)"
    assert kept["settings"]["max_model_len"] == WINDOW
    assert kept["runs"][0]["server"]["served_as"] == ["tiny-2026"]
    assert kept["runs"][0]["server"]["vllm"] == kept["settings"]["vllm"] == "0.32.0"
    assert kept["rendered"].startswith("by the server")
    assert "secret-of-inference" not in json.dumps(kept)


def test_what_is_there_is_not_asked_again(server, tmp_path):
    write(tmp_path / "data", "boolq.subset", [f"Question {n}?" for n in range(9)])
    assert run(server, tmp_path, "--limit", "4") == 0
    assert run(server, tmp_path, "--limit", "4") == 0
    assert len(asked(server)) == 4
    assert run(server, tmp_path) == 0
    assert len(asked(server)) == 9
    assert len(rows_of(tmp_path)) == 9


# name of the fault → (exit code, outputs of the row or None, finish reason)
FAULTS = {
    "429_then_ok": (0, "Reasons.\nJUDGMENT: True", "stop"),
    "429_retry_after": (0, "Reasons.\nJUDGMENT: True", "stop"),
    "500_then_ok": (0, "Reasons.\nJUDGMENT: True", "stop"),
    "503_then_ok": (0, "Reasons.\nJUDGMENT: True", "stop"),
    "hang_then_ok": (0, "Reasons.\nJUDGMENT: True", "stop"),
    "drop_then_ok": (0, "Reasons.\nJUDGMENT: True", "stop"),
    "html_then_ok": (0, "Reasons.\nJUDGMENT: True", "stop"),
    "null": (0, "", "stop"),
    "empty": (0, "", "stop"),
    "length": (0, "First I look at", "length"),
    "500_for_ever": (4, None, None),
    "400_filter": (4, None, None),
    "safety": (4, None, None),
    "400_too_long": (4, None, None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_server_costs_one_row_at_most(server, tmp_path, monkeypatch, fault):
    if fault.startswith("hang"):
        monkeypatch.setattr(served, "TIMEOUT", 1.0)
    code, outputs, finish = FAULTS[fault]
    write(tmp_path / "data", "boolq.subset", [*(f"Question {n}?" for n in range(6)), f"scenario={fault};"])
    assert run(server, tmp_path) == code
    rows = rows_of(tmp_path)
    assert [rows[f"r{n}"]["outputs"] for n in range(6)] == [f"answer to Question {n}?" for n in range(6)]
    if outputs is None:
        assert "r6" not in rows
        assert record(tmp_path)["tasks"]["boolq.subset"]["failed"] == ["r6"]
    else:
        assert (rows["r6"]["outputs"], rows["r6"]["finish_reason"]) == (outputs, finish)
    if fault.startswith("429"):
        assert record(tmp_path)["runs"][0]["server"]["failures"]["429"] >= 1


FATAL = {
    "401": "the key is taken from CAPTRACK_INFERENCE_API_KEY",
    "403": "HTTP 403",
    "404": "no such model",
    "429_no_quota": "quota",
    "429_tomorrow": "run again then",
}


@pytest.mark.parametrize("fault", FATAL)
def test_a_lost_server_ends_the_run_and_the_same_command_goes_on(server, tmp_path, capsys, fault):
    prompts = [f"Question {n}?" for n in range(60)]
    # the longest prompt goes first, and others are in flight with it
    write(tmp_path / "data", "boolq.subset", [*prompts, f"scenario={fault}; {'and ' * 40}"])
    server.delay = 0.3
    assert run(server, tmp_path) == 1
    error = capsys.readouterr().err
    assert FATAL[fault] in error.split("\n")[-2]
    assert "sk-abcdef" not in error
    state = record(tmp_path)
    assert state["runs"][0]["state"] == "stopped: EngineError"
    kept = state["runs"][0]["samples"]
    before = len(asked(server))
    # everything that was answered is on disk, what was in flight too; the rest is asked for, and nothing else
    assert kept == len({body["messages"][1]["content"] for body in asked(server)}) - 1 >= 1
    server.delay = 0.0
    assert run(server, tmp_path, "--limit", "60") == 0
    assert len(asked(server)) - before == 60 - kept
    assert len(rows_of(tmp_path)) == 60


def test_nobody_answers(tmp_path, server, capsys):
    write(tmp_path / "data", "boolq.subset", ["x"])
    with JudgeServer() as gone:
        pass
    assert run(gone, tmp_path) == 1
    assert f"127.0.0.1:{gone.port}" in capsys.readouterr().err.split("\n")[-2]
    assert not (tmp_path / "out").exists()


def test_a_prompt_that_does_not_fit_loses_its_middle_and_a_long_answer_gets_what_is_left(server, tmp_path):
    long = " ".join(["FIRST", *(f"w{n}" for n in range(1500)), "LAST"])
    fits = " ".join(["FIRST", *(f"v{n}" for n in range(280)), "LAST"])
    write(tmp_path / "data", "boolq.subset", [long, fits, "short"])
    assert run(server, tmp_path, "--max_tokens", "4096") == 0
    rows = rows_of(tmp_path)
    room = prompt_room("boolq.subset", WINDOW, None)
    assert room * served.ENOUGH <= rows["r0"]["prompt_tokens"] <= room
    lost = 1502 + 11 - rows["r0"]["prompt_tokens"]
    assert abs(rows["r0"]["truncated_tokens"] - lost) < 0.15 * lost
    final = [b for b in asked(server) if "FIRST w0" in b["messages"][1]["content"]][-1]
    assert final["messages"][0]["content"] == SYSTEM
    assert final["messages"][1]["content"].startswith("FIRST w0 w1 ")
    assert final["messages"][1]["content"].endswith(" w1499 LAST")
    assert rows["r1"]["truncated_tokens"] == 0
    final = [b for b in asked(server) if "FIRST v0" in b["messages"][1]["content"]][-1]
    assert final["max_tokens"] == WINDOW - rows["r1"]["prompt_tokens"]
    assert record(tmp_path)["tasks"]["boolq.subset"]["truncated_prompts"] == 1


def test_a_window_smaller_than_the_servers_cuts_the_same_prompts(server, model, tmp_path):
    model.window = 4000
    write(tmp_path / "data", "boolq.subset", [" ".join(f"w{n}" for n in range(300)), "short"])
    assert run(server, tmp_path, "--max_model_len", "200", "--max_tokens", "50") == 0
    rows = rows_of(tmp_path)
    assert rows["r0"]["prompt_tokens"] <= prompt_room("boolq.subset", 200, 50)
    assert rows["r0"]["truncated_tokens"] > 90
    assert rows["r1"]["truncated_tokens"] == 0


def test_second_turns_hold_the_models_own_first_answer(server, tmp_path):
    (tmp_path / "data").mkdir()
    row = {"id": "t0", "prompt": ["Name a stew.", "A vegan one."]}
    (tmp_path / "data" / "mtbench.turn2.jsonl").write_text(json.dumps(row) + "\n")
    assert run(server, tmp_path) == 0
    assert rows_of(tmp_path, "mtbench.turn2")["t0"]["turn1_response"] == "answer to Name a stew."
    assert [m["content"] for m in asked(server)[-1]["messages"]] == [
        SYSTEM,
        "Name a stew.",
        "answer to Name a stew.",
        "A vegan one.",
    ]


@pytest.mark.parametrize("system", ["own", "refused", "dropped"])
def test_the_system_prompt_always_arrives(server, model, tmp_path, system):
    model.system = system
    write(tmp_path / "data", "boolq.subset", ["wet?"])
    assert run(server, tmp_path) == 0
    roles = [message["role"] for message in asked(server)[-1]["messages"]]
    assert roles == (["system", "user"] if system == "own" else ["user"])
    assert SYSTEM in json.dumps(asked(server)[-1])
    assert record(tmp_path)["system_role"].startswith("own" if system == "own" else "merged")
    assert any("no system role" in text for text in record(tmp_path)["warnings"]) == (system != "own")


@pytest.mark.parametrize(("arguments", "code"), [("used", 0), ("ignored", 0), ("refused", 1)])
def test_template_arguments_reach_the_server_or_it_is_said(server, model, tmp_path, capsys, arguments, code):
    model.template_arguments = arguments
    write(tmp_path / "data", "boolq.subset", ["wet?"])
    assert run(server, tmp_path, "--chat_template_kwargs", '{"enable_thinking": false}') == code
    if code:
        assert "does not take them" in capsys.readouterr().err
        return
    assert asked(server)[-1]["chat_template_kwargs"] == {"enable_thinking": False}
    said = any("changes nothing" in text for text in record(tmp_path)["warnings"])
    assert said == (arguments == "ignored")


def test_parameters_that_a_vendor_refuses_are_left_out_and_noted(server, model, tmp_path):
    model.owner = "vendor"
    server.refuses = frozenset({"max_tokens", "temperature"})
    write(tmp_path / "data", "boolq.subset", ["wet?"])
    original, model_answer = server._step, server.answer
    server.answer = lambda path, body: (
        original("chat", body, "") if server.refuses & body.keys() else model_answer(path, body)
    )
    assert run(server, tmp_path, "--max_tokens", "30") == 0
    body = asked(server)[-1]
    assert body["max_completion_tokens"] == 30
    assert not {"temperature", "max_tokens", "top_k", "repetition_penalty"} & body.keys()
    notes = record(tmp_path)["runs"][0]["server"]["notes"]
    assert "the server takes no temperature: its own holds" in notes


def test_a_server_with_a_cap_on_answers_is_asked_for_less(server, model, tmp_path):
    model.window, model.most_output = 9000, 1500
    write(tmp_path / "data", "boolq.subset", ["wet?"])
    assert run(server, tmp_path, "--max_tokens", "4096") == 0
    assert asked(server)[-1]["max_tokens"] == 1024
    assert any("refuses longer answers" in note for note in record(tmp_path)["runs"][0]["server"]["notes"])


def test_parted_thoughts_are_joined_and_never_graded(server, model, tmp_path):
    model.thought = "It rains, so yes."
    write(tmp_path / "data", "boolq.subset", ["wet?"])
    assert run(server, tmp_path) == 0
    outputs = rows_of(tmp_path)["r0"]["outputs"]
    assert outputs.startswith("<think>\nIt rains, so yes.\n</think>")
    assert visible_answer(outputs)[0] == "answer to wet?"


REFUSED = {
    "choose one with --model": ({"names": ("a", "b")}, []),
    "give --max_model_len": ({"window": None}, []),
    "--max_model_len 500 is more than the server's window of 400": ({}, ["--max_model_len", "500"]),
    "The model `nope` does not exist": ({}, ["--model", "nope", "--max_model_len", "400"]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused_before_anything_is_written(server, model, tmp_path, capsys, words):
    changes, options = REFUSED[words]
    vars(model).update(changes)
    write(tmp_path / "data", "boolq.subset", ["wet?"])
    assert run(server, tmp_path, *options) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--base_url 127.0.0.1:8000", "not an address"),
        ("--base_url http://h/v1 --vllm_kwargs {}", None),
        ('--base_url http://h/v1 --vllm_kwargs {"dtype":"auto"}', "settings of its own"),
        ("--base_url http://h/v1 --tensor_parallel_size 2", "settings of its own"),
        (f"--base_url http://h/v1 --chat_template {ROOT}/Makefile", "--tokenizer renders here"),
        ("--model m --tokenizer t", "only with --base_url"),
    ],
)
def test_options_that_do_not_go_together(arguments, message, capsys):
    if message is None:
        assert run_inference.parse_arguments(arguments.split()).base_url
        return
    with pytest.raises(SystemExit) as caught:
        run_inference.parse_arguments(arguments.split())
    assert caught.value.code == 1
    assert message in capsys.readouterr().err


def test_with_a_tokenizer_the_prompts_of_an_offline_run_go_out_as_token_ids(
    server, model, tmp_path, monkeypatch
):
    tokenizer = FakeTokenizer(CHATML)
    monkeypatch.setattr(run_inference, "load_tokenizer", lambda *_: (tokenizer, 0.0))
    model.window = 300
    write(tmp_path / "data", "boolq.subset", ["Is it wet?", "FIRST" + "x" * 900 + "LAST"])
    assert run(server, tmp_path, "--max_tokens", "4096", "--tokenizer", "some/model") == 0
    sent = [r["body"] for r in server.requests if r["path"] == "/v1/completions"]
    texts = [tokenizer.text(body["prompt"]) for body in sent]
    whole = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nIs it wet?<|im_end|>\n"
    assert whole + "<|im_start|>assistant\n" in texts
    cut = next(text for text in texts if "FIRST" in text)
    assert cut.endswith("LAST<|im_end|>\n<|im_start|>assistant\n")
    assert len(cut) == prompt_room("boolq.subset", 300, None)
    assert rows_of(tmp_path)["r1"]["truncated_tokens"] > 0
    assert record(tmp_path)["rendered"].endswith("sent as token ids")
    assert any("another tokenizer" in text for text in record(tmp_path)["warnings"])


def test_many_at_a_time_as_far_as_the_server_bears(server, tmp_path):
    server.delay = 0.05
    write(tmp_path / "data", "boolq.subset", [f"Question {n}?" for n in range(200)])
    assert run(server, tmp_path) == 0
    assert server.most_in_flight > START


def test_a_storm_of_faults_loses_nothing(server, model, tmp_path):
    model_answer = server.answer

    def storm(path, body):
        if "messages" in body and server.random.random() < 0.3:
            return [Step(429), Step(500), Step(wrong="drop"), Step(wrong="html")][server.random.randrange(4)]
        return model_answer(path, body)

    server.answer = storm
    write(tmp_path / "data", "boolq.subset", [f"Question {n}?" for n in range(80)])
    codes = [run(server, tmp_path) for _ in range(3)]
    assert codes[-1] == 0
    assert {row["outputs"] for row in rows_of(tmp_path).values()} == {
        f"answer to Question {n}?" for n in range(80)
    }


def test_kill_9_costs_only_what_was_in_flight(server, tmp_path):
    server.delay = 0.1
    write(tmp_path / "data", "boolq.subset", [f"Question {n}?" for n in range(120)])
    process = subprocess.Popen(command_of(server, tmp_path), cwd=ROOT, stderr=subprocess.DEVNULL)
    partial = tmp_path / "out" / "m" / "boolq.subset.jsonl.partial"
    while process.poll() is None and not (partial.exists() and partial.read_bytes().count(b"\n") > 20):
        time.sleep(0.01)
    server.delay = 30  # what is asked from now on is in flight when the process dies
    assert process.poll() is None, "it ended before it could be killed"
    process.kill()
    process.wait()
    server.delay = 0.1
    whole = partial.read_text(encoding="utf-8").rpartition("\n")[0]  # a kill may tear the last line
    kept = [json.loads(line)["outputs"] for line in whole.split("\n")]
    assert run(server, tmp_path) == 0
    questions = Counter(body["messages"][-1]["content"] for body in asked(server))
    assert len(questions) == 120
    assert {questions[output.removeprefix("answer to ")] for output in kept} == {1}
    assert [row["outputs"] for row in rows_of(tmp_path).values()] == [
        f"answer to Question {n}?" for n in range(120)
    ]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_is_finished_and_says_so(server, tmp_path, sent):
    server.delay = 0.1
    write(tmp_path / "data", "boolq.subset", [f"Question {n}?" for n in range(400)])
    process = subprocess.Popen(command_of(server, tmp_path), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    partial = tmp_path / "out" / "m" / "boolq.subset.jsonl.partial"
    while process.poll() is None and not (partial.exists() and partial.read_bytes().count(b"\n") > 20):
        time.sleep(0.01)
    server.delay = 30  # what is asked from now on is in flight when the signal comes
    process.send_signal(sent)
    _, error = process.communicate()
    assert process.returncode == 1
    assert "finished samples are kept" in error
    assert "Traceback" not in error
    assert record(tmp_path)["runs"][0]["state"] == "stopped: KeyboardInterrupt"
    assert partial.read_bytes().count(b"\n") > 20


# --- run_captrack.py


def test_an_address_is_a_model_like_any_other(server, model, tmp_path, capfd):
    model.names = ("base", "org/tuned")
    write(tmp_path / "data", "popqa.subset", ["Who?", "Where?"])
    (tmp_path / "r").mkdir()
    places = {"--responses_dir": "r", "--metrics_dir": "m", "--output_dir": "c"}
    words = [word for key, name in places.items() for word in (key, str(tmp_path / name))]
    models = ["--base", f"{server.url}/v1#base", "--adapted", f"{server.url}/v1#org/tuned"]
    words += [
        "--dataset",
        str(tmp_path / "data"),
        "--max_tokens",
        "64",
        "--tasks",
        "popqa.subset",
        "--workers",
        "1",
    ]
    assert run_captrack.main([*models, *words]) == 0, capfd.readouterr()
    assert (tmp_path / "c" / "base_vs_org__tuned" / "relative_differences_heatmap.pdf").exists()
    bodies = asked(server)
    assert {body["model"] for body in bodies} == {"base", "org/tuned"}
    assert len(bodies) == 4
    # a folder is as good as the address that made it, for more of the same
    write(tmp_path / "data", "boolq.subset", ["Wet?"])
    words[words.index("popqa.subset")] = "boolq.subset"
    assert run_captrack.main(["--base", "base", "--adapted", "org__tuned", *words]) == 0
    assert [body["model"] for body in asked(server)[4:]] == ["base", "org/tuned"]


def test_addresses_have_readable_names_and_options_of_the_other_kind_stay_away():
    assert address.name_of("http://127.0.0.1:8000/v1") == "127.0.0.1-8000"
    assert address.name_of("https://me:pw@api.example.org/v1") == "api.example.org"
    assert address.name_of("http://h:1/v1#org/m") == "org__m"
    assert address.name_of("http://h:1/v1#/data/models/m") == "data__models__m"
    assert address.split("org/model") is None
    from evaluation.models import Model, inference_options_of, model_options

    base = Model("base", "org/m", "a", Path("a"), "absent")
    tuned = Model("adapted", "http://h:1/v1#m", "b", Path("b"), "absent")
    words = ["--vllm_kwargs", '{"a": 1}', "--limit", "3", "--tokenizer=t"]
    assert inference_options_of(base, [base, tuned], words) == ["--vllm_kwargs", '{"a": 1}', "--limit", "3"]
    assert inference_options_of(tuned, [base, tuned], words) == ["--limit", "3", "--tokenizer=t"]
    assert inference_options_of(tuned, [tuned], words) == words
    assert model_options(tuned) == ["--base_url", "http://h:1/v1", "--model", "m"]


def test_nothing_heavy_comes_with_the_server_side():
    code = (
        "import sys, evaluation.inference.served\n"
        "heavy = {'vllm', 'torch', 'transformers', 'openai', 'httpx', 'google.genai', 'boto3', 'numpy'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
