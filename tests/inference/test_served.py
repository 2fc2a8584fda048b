"""run_inference.py --base_url against vLLM's own server on the loopback: the outputs of an offline run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

import run_inference
from evaluation.inference import served
from tests.inference.conftest import (
    ENVIRONMENT,
    ROOT,
    WINDOW,
    arguments,
    manifest,
    read_task,
    write_task,
)

pytestmark = pytest.mark.inference
TASKS = ("boolq.subset", "hotpotqa.subset", "mtbench.turn1", "mtbench.turn2", "structflowbench.turn2")
KEY = "key-of-the-tests"


@pytest.fixture(scope="module")
def server(models, tmp_path_factory):
    """vLLM serving the plain tiny model in a process group of its own; its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(models["plain"])]
    command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port), "--api-key", KEY]
    command += ["--dtype", "float32", "--enforce-eager", "--kv-cache-memory-bytes", str(64 * 2**20)]
    command += ["--generation-config", "vllm"]
    with open(log, "w") as out, pytest.MonkeyPatch.context() as patch:
        patch.setenv(served.KEY, KEY)
        patch.setenv("NO_PROXY", "127.0.0.1")
        process = subprocess.Popen(
            command, env={**os.environ, **ENVIRONMENT}, stdout=out, stderr=out, start_new_session=True
        )
        try:
            end = time.monotonic() + 300
            while not _ready(port):
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < end, log.read_text()[-3000:]
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _ready(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


def served_arguments(url, data, out, *more) -> list[str]:
    places = ["--base_url", url, "--dataset", str(data), "--output_dir", str(out), "--name", "m"]
    return [*places, "--max_tokens", "24", *more]


@pytest.fixture(scope="module")
def offline(models, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("offline")
    assert run_inference.main(arguments(models["plain"], data, out)) == 0
    return out / "m"


def same(ours: dict, theirs: dict) -> bool:
    return {**ours, "fingerprint": ""} == {**theirs, "fingerprint": ""}


def test_with_the_tokenizer_every_row_is_that_of_an_offline_run(server, offline, models, data, tmp_path):
    options = served_arguments(server, data, tmp_path, "--tokenizer", str(models["plain"]))
    assert run_inference.main(options) == 0
    for task in TASKS:
        pairs = zip(read_task(tmp_path / "m", task), read_task(offline, task), strict=True)
        assert all(same(ours, theirs) for ours, theirs in pairs), task
    assert manifest(tmp_path / "m")["first_prompt"] == manifest(offline)["first_prompt"]
    assert not any("another tokenizer" in text for text in manifest(tmp_path / "m")["warnings"])


def test_rendered_by_the_server_every_whole_prompt_has_the_answer_of_an_offline_run(
    server, offline, data, tmp_path
):
    assert run_inference.main(served_arguments(server, data, tmp_path)) == 0
    compared = cut = 0
    for task in TASKS:
        for ours, theirs in zip(read_task(tmp_path / "m", task), read_task(offline, task), strict=True):
            assert (ours["truncated_tokens"] > 0) == (theirs["truncated_tokens"] > 0)
            if theirs["truncated_tokens"]:
                cut += 1
                assert ours["prompt_tokens"] <= theirs["prompt_tokens"]
                assert ours["truncated_tokens"] == pytest.approx(theirs["truncated_tokens"], rel=0.3)
            else:
                compared += 1
                assert same(ours, theirs), (task, ours["id"])
    assert compared >= 20
    assert cut >= 2
    record = manifest(tmp_path / "m")
    assert record["settings"]["max_model_len"] == WINDOW
    assert record["runs"][0]["server"]["vllm"].startswith("0.32.0")
    assert record["runs"][0]["server"]["model"] == "tiny"
    assert record["runs"][0]["server"]["failures"] == {}


def test_template_arguments_reach_the_servers_template(server, models, data, tmp_path):
    kwargs = ["--chat_template_kwargs", '{"enable_thinking": false}', "--tasks", "boolq.subset"]
    assert run_inference.main(arguments(models["plain"], data, tmp_path / "offline", *kwargs)) == 0
    assert run_inference.main(served_arguments(server, data, tmp_path / "served", *kwargs)) == 0
    ours, theirs = (read_task(tmp_path / name / "m", "boolq.subset") for name in ("served", "offline"))
    assert all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    unused = ["--chat_template_kwargs", '{"no_such_switch": 1}', "--tasks", "boolq.subset", "--limit", "1"]
    assert run_inference.main(served_arguments(server, data, tmp_path / "unused", *unused)) == 0
    assert any("no_such_switch" in text for text in manifest(tmp_path / "unused" / "m")["warnings"])


def test_a_wrong_key_and_a_wrong_name_are_one_line(server, data, tmp_path, capsys, monkeypatch):
    assert run_inference.main(served_arguments(server, data, tmp_path, "--model", "nope")) == 1
    assert run_inference.main(served_arguments(server, data, tmp_path, "--max_model_len", "600")) == 1
    monkeypatch.setenv(served.KEY, "wrong")
    assert run_inference.main(served_arguments(server, data, tmp_path)) == 1
    error = capsys.readouterr().err
    assert "give --max_model_len" in error or "does not exist" in error
    assert "more than the server's window of 512" in error
    assert "the key is taken from CAPTRACK_INFERENCE_API_KEY" in error
    assert not (tmp_path / "m").exists()


def test_kill_9_loses_nothing(server, models, tmp_path):
    rows = [{"id": f"i{n}", "formatted_prompt": f"Write {n} lines."} for n in range(400)]
    write_task(tmp_path / "data", "ifeval.subset", rows)
    options = served_arguments(server, tmp_path / "data", tmp_path / "out", "--max_tokens", "48")
    partial = tmp_path / "out" / "m" / "ifeval.subset.jsonl.partial"
    kept = 0
    for moment in (20, 150, 300):
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "run_inference.py"), *options], stderr=subprocess.DEVNULL, cwd=ROOT
        )
        while process.poll() is None and not (partial.exists() and _lines(partial) >= moment):
            time.sleep(0.01)
        assert process.poll() is None, "it ended before it could be killed"
        process.kill()
        process.wait()
        assert _lines(partial) >= max(kept, moment)
        kept = _lines(partial)
    assert run_inference.main(options) == 0
    assert manifest(tmp_path / "out" / "m")["runs"][-1]["samples"] == 400 - kept
    offline = arguments(models["plain"], tmp_path / "data", tmp_path / "offline", "--max_tokens", "48")
    assert run_inference.main(offline) == 0
    ours, theirs = (read_task(tmp_path / name / "m", "ifeval.subset") for name in ("out", "offline"))
    assert all(same(a, b) for a, b in zip(ours, theirs, strict=True))


def _lines(path) -> int:
    return path.read_bytes().count(b"\n")
