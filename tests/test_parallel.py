"""Several engines and unmerged adapters, without vLLM: who gets which sample, what happens to a dead engine's
work, what an adapter's configuration means.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from array import array
from collections import Counter
from pathlib import Path

import pytest
from support import ROOT

import run_inference
from evaluation.comparison.sameness import same_answers
from evaluation.inference.adapter import allowed_rank, is_adapter, locate, needed_rank, obstacles
from evaluation.inference.checkpoint import ModelError
from evaluation.inference.engine import Completion, EngineError, Failure, Request, Sampling
from evaluation.inference.parallel import Engines, Place, gpu_names, places
from evaluation.inference.preflight import parallel_checks

FAKE = (sys.executable, str(ROOT / "tests" / "fake_engine.py"))


def requests(count: int) -> list[Request]:
    return [Request(("boolq.subset", f"q{n}", 1), array("I", [n, 7]), 5) for n in range(count)]


def answer(arguments, count=40, engines=2, where=None, adapter=None):
    """Everything that the engines say to `count` samples, by key."""
    pool = Engines({"at_once": 4, **arguments}, adapter, where or [Place({})] * engines, FAKE)
    try:
        found = [(name[1], outcome) for name, outcome in pool.run(requests(count), Sampling(0.5))]
    finally:
        pool.close()
    assert Counter(key for key, _ in found).most_common(1)[0][1] == 1, "a sample was answered twice"
    return dict(found)


def engines_of(found) -> Counter[str]:
    return Counter(re.search(r"(\d+)\u2028$", outcome.text)[1] for outcome in found.values())


# --- sharing out


def test_every_sample_is_answered_once_and_as_by_one_engine():
    one, two = answer({}, engines=1), answer({}, engines=2)
    assert set(one) == set(two) == {f"q{n}" for n in range(40)}
    assert two["q3"].text.startswith("q3 [3, 7] 0.5 ")
    assert {key: o.text[:12] for key, o in one.items()} == {key: o.text[:12] for key, o in two.items()}
    assert set(engines_of(two)) == {"1", "2"}


def test_no_engine_takes_more_than_its_share_where_it_could_batch_everything():
    counts = engines_of(answer({"at_once": 256}, count=40))
    assert min(counts.values()) >= 10


def test_fewer_samples_than_engines():
    assert len(answer({}, count=1, engines=3)) == 1
    pool = Engines({"at_once": 4}, None, [Place({})] * 2, FAKE)
    assert list(pool.run([], Sampling())) == []
    # and a second pass through the same processes
    assert len(list(pool.run(requests(5), Sampling()))) == 5
    assert len(list(pool.run(requests(5), Sampling()))) == 5
    pool.close()


def test_a_refused_sample_stays_a_refusal():
    pool = Engines({"at_once": 4}, None, [Place({})] * 2, FAKE)
    asked = [*requests(3), Request(("t", "x", 1), array("I", [1]), 0)]
    found = dict(pool.run(asked, Sampling()))
    pool.close()
    assert found["t", "x", 1] == Failure("nothing to say")
    assert sum(isinstance(outcome, Completion) for outcome in found.values()) == 3


def test_each_engine_sees_its_own_gpus_and_cores_and_the_adapter(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    cores = sorted(os.sched_getaffinity(0))
    where = [
        Place({"CUDA_VISIBLE_DEVICES": "4"}, (cores[0],)),
        Place({"CUDA_VISIBLE_DEVICES": "5"}, (cores[-1],)),
    ]
    found = answer({}, where=where, adapter="/a/b")
    seen = {(o.text.split("(")[1].split(")")[0], o.text[-2]) for o in found.values()}
    assert seen == {(f"'4', [{cores[0]}], '/a/b'", "1"), (f"'5', [{cores[-1]}], '/a/b'", "2")}


@pytest.mark.parametrize(
    ("count", "each", "gpus", "expected"),
    [
        (2, 1, ["0", "1"], ["0", "1"]),
        (2, 2, ["0", "1", "2", "3"], ["0,1", "2,3"]),
        (2, 1, ["0", "1", "2"], ["0", "1"]),
        (2, 1, ["GPU-aa", "7"], ["GPU-aa", "7"]),
    ],
)
def test_gpus_are_dealt_out(count, each, gpus, expected):
    assert [p.environment["CUDA_VISIBLE_DEVICES"] for p in places(count, each, gpus, range(64))] == expected


@pytest.mark.parametrize(
    ("count", "each", "cores", "binding", "threads"),
    [
        (2, 1, (0, 1), ["0", "1"], "1"),
        (2, 1, (3, 4, 8, 9, 10), ["3,4", "8,9"], "2"),
        (2, 2, (0, 1, 2, 3), ["0|1", "2|3"], "1"),
    ],
)
def test_cores_are_dealt_out_where_there_is_no_gpu(count, each, cores, binding, threads):
    found = places(count, each, [], cores)
    assert [p.environment["VLLM_CPU_OMP_THREADS_BIND"] for p in found] == binding
    assert {p.environment["OMP_NUM_THREADS"] for p in found} == {threads}
    assert not set(found[0].cores) & set(found[1].cores)


@pytest.mark.parametrize(
    ("count", "visible", "expected"),
    [(2, None, ["0", "1"]), (2, "4, 6", ["4", "6"]), (1, "4,-1,6", ["4"]), (0, "", [])],
)
def test_names_of_gpus(count, visible, expected):
    assert gpu_names(count, visible) == expected


# --- dead engines


def test_a_killed_engine_is_started_again_and_its_work_taken_up(tmp_path, caplog):
    caplog.set_level(logging.INFO, "captrack.inference")
    found = answer({"dies_at": "q7", "once": str(tmp_path / "once")})
    assert all(isinstance(outcome, Completion) for outcome in found.values())
    assert len(found) == 40
    assert (tmp_path / "once").exists()
    assert sum("is started again: its process ended with SIGKILL" in line for line in caplog.messages) == 1
    assert sum(" process " in line and line.startswith("engine ") for line in caplog.messages) == 2 + 1 + 1


def test_a_killed_only_engine_is_started_again(tmp_path):
    assert len(answer({"dies_at": "q7", "once": str(tmp_path / "once")}, engines=1)) == 40


@pytest.mark.parametrize(("engines", "at_once"), [(1, 1), (1, 8), (2, 1), (2, 8)])
@pytest.mark.parametrize("key", ["q0", "q7", "q39"])
def test_a_sample_that_kills_every_engine_costs_itself_alone(engines, at_once, key):
    found = answer({"dies_at": key, "at_once": at_once}, engines=engines)
    assert len(found) == 40
    assert [k for k, outcome in found.items() if isinstance(outcome, Failure)] == [key]
    assert "3 engines died with it in hand" in found[key].message


def test_an_engine_that_cannot_be_started_again_is_given_up_and_the_other_goes_on(tmp_path, caplog):
    arguments = {"dies_at": "q7", "once": str(tmp_path / "once"), "folder": str(tmp_path)}
    found = answer({**arguments, "dies_starting": ["1", "2"]}, count=400)
    assert len(found) == 400
    assert all(isinstance(outcome, Completion) for outcome in found.values())


def test_where_no_engine_is_left_the_run_ends_with_the_reason(tmp_path):
    arguments = {"dies_at": "q7", "once": str(tmp_path / "once"), "folder": str(tmp_path)}
    with pytest.raises(EngineError, match="no engine is left: its process ended with SIGKILL"):
        answer({**arguments, "dies_starting": ["1"]}, engines=1)


def test_no_engine_starts():
    with pytest.raises(EngineError, match=r"^vLLM does not start: out of things$"):
        answer({"refuses": "vLLM does not start: out of things"})


def test_one_of_two_engines_does_not_start(caplog):
    found = answer({"refuses": {"2": "no GPU 5"}})
    assert len(found) == 40
    assert set(engines_of(found)) == {"1"}
    assert "engine 2 of 2 is started again: no GPU 5" in caplog.messages


def test_an_engine_ends_when_its_parent_is_killed(tmp_path):
    code = (
        "import sys, time; sys.path[:0] = sys.argv[1:3]\n"
        "from evaluation.inference.parallel import Engines, Place\n"
        "import test_parallel\n"
        "e = Engines({'at_once': 4}, None, [Place({})] * 2, test_parallel.FAKE)\n"
        "print(*(c.process.pid for c in e._children), flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(ROOT), str(ROOT / "tests")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    children = [int(word) for word in parent.stdout.readline().split()]
    assert len(children) == 2
    assert all(alive(child) for child in children)
    parent.kill()
    parent.communicate()
    limit = time.monotonic() + 60
    while any(alive(child) for child in children) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not any(alive(child) for child in children)


def alive(process: int) -> bool:
    """A process that has ended and that nobody has asked for its status counts as dead."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_closing_ends_what_is_still_at_work(monkeypatch):
    monkeypatch.setattr("evaluation.inference.parallel.PATIENCE", 0.5)
    pool = Engines({"at_once": 4}, None, [Place({})] * 2, FAKE)
    children = [child.process.pid for child in pool._children]
    next(pool.run(requests(200), Sampling()))
    os.kill(children[0], signal.SIGSTOP)  # it would not hear any request to end
    pool.close()
    assert not any(alive(child) for child in children)


# --- before the start

CONFIG = {"num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28}
RAY = {"distributed_executor_backend": "ray"}


@pytest.mark.parametrize(
    ("size", "engines", "gpus", "kwargs", "message"),
    [
        pytest.param(4, 1, 8, {}, None, id="28 heads over 4"),
        pytest.param(8, 1, 8, {}, "28 heads (4 KV) do not divide", id="28 heads over 8"),
        pytest.param(7, 1, 8, {}, "do not divide", id="the KV heads break over 7"),
        pytest.param(4, 1, 2, {}, "4 GPUs are asked for", id="too few GPUs"),
        pytest.param(4, 2, 8, {}, None, id="two engines of four"),
        pytest.param(
            4, 2, 7, {}, "8 GPUs are asked for on this machine (2 engines x 4 x 1", id="one too few"
        ),
        pytest.param(2, 1, 4, {"pipeline_parallel_size": 2}, None, id="tensor and pipeline"),
        pytest.param(2, 2, 4, {"pipeline_parallel_size": 2}, "8 GPUs are asked for", id="all three"),
        pytest.param(1, 1, 64, {"pipeline_parallel_size": 29}, "the model has 28 layers", id="layers"),
        pytest.param(1, 1, 8, {"pipeline_parallel_size": "2"}, "whole number", id="a number as text"),
        pytest.param(4, 1, 4, {"nnodes": 2}, "starts no workers on other machines", id="nnodes"),
        pytest.param(1, 2, 8, RAY, "GPUs of one machine", id="data parallel and Ray"),
        pytest.param(1, 1, 8, RAY, "pip install ray", id="Ray is not there"),
        pytest.param(4, 1, 2, {"distributed_executor_backend": "mp"}, "4 GPUs", id="mp is one machine"),
    ],
)
def test_a_division_that_cannot_work_is_told_before_the_start(
    monkeypatch, size, engines, gpus, kwargs, message
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = [item.text for item in parallel_checks(CONFIG, size, engines, gpus, "0.32.0", kwargs)]
    if message is None:
        assert found == []
    else:
        assert any(message in text for text in found), found


def test_ray_may_have_more_gpus_than_this_machine(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    kwargs = {**RAY, "pipeline_parallel_size": 4}
    assert parallel_checks(CONFIG, 4, 1, 8, "0.32.0", kwargs) == []


def test_the_cpu_build_divides_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert parallel_checks(CONFIG, 1, 2, 0, "0.32.0+cpu", {}) == []
    assert "3 cores are asked for" in parallel_checks(CONFIG, 1, 3, 0, "0.32.0+cpu", {})[0].text
    pipeline = {"pipeline_parallel_size": 2}
    assert "cannot do it" in parallel_checks(CONFIG, 1, 1, 0, "0.32.0+cpu", pipeline)[0].text
    assert "cannot do it" in parallel_checks(CONFIG, 1, 1, 0, "0.32.0+cpu", RAY)[0].text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--data_parallel_size 0", "--data_parallel_size"),
        ("--data_parallel_size two", "--data_parallel_size"),
        ('--vllm_kwargs {"data_parallel_size":2}', "set by --data_parallel_size"),
        ('--vllm_kwargs {"enable_lora":true}', "a LoRA adapter's folder as --model"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        run_inference.main(["--model", "m", *arguments.split(" ")])
    text = capsys.readouterr().err
    assert (caught.value.code, message in text, text.count("\n")) == (1, True, 1)


# --- adapters

LORA = {"peft_type": "LORA", "base_model_name_or_path": "base", "r": 16, "lora_alpha": 32}


def make_adapter(folder, config=LORA, weights="adapter_model.safetensors"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    if weights:
        (folder / weights).write_bytes(b"weights")
    return folder


def make_base(folder):
    folder.mkdir(parents=True)
    for name, text in (("config.json", "{}"), ("model.safetensors", "w"), ("tokenizer.json", "{}")):
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("config", "rank", "allowed"),
    [
        ({"r": 1}, 1, 1),
        ({"r": 4}, 4, 8),
        ({"r": 16}, 16, 16),
        ({"r": 17}, 17, 32),
        ({"r": 256}, 256, 256),  # vLLM's default refuses above 16
        ({"r": 8, "rank_pattern": {"q_proj": 24, "v_proj": 4}}, 24, 32),
        ({"r": 8, "rank_pattern": {}}, 8, 8),
        ({"r": 8, "rank_pattern": None}, 8, 8),
        ({"r": 300}, 300, 320),
        ({"r": 512}, 512, 512),
    ],
)
def test_the_rank_that_an_adapter_needs(config, rank, allowed):
    assert needed_rank(config) == rank
    assert allowed_rank(rank) == allowed


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, None),
        ({"use_rslora": True, "alpha_pattern": {"q_proj": 8}, "bias": "none"}, None),
        ({"init_lora_weights": "gaussian", "modules_to_save": [], "layer_replication": None}, None),
        ({"peft_type": "IA3"}, "IA3, not LORA"),
        ({"use_dora": True}, "use_dora"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"trainable_token_indices": [5, 6]}, "trainable_token_indices"),
        ({"bias": "all"}, "bias: all"),
        ({"init_lora_weights": "pissa_niter_4"}, "changes the base model"),
        ({"r": 513}, "rank 513, at most 512"),
        ({"rank_pattern": {"q_proj": 600}}, "rank 600"),
        ({"r": 0}, "no whole number above 0"),
        ({"r": "16"}, "no whole number above 0"),
        ({"r": None}, "no whole number above 0"),
    ],
)
def test_what_stands_against_loading_an_adapter(more, reason):
    found = obstacles({**LORA, **more})
    assert found == [] if reason is None else any(reason in text for text in found)


def test_an_adapter_is_found_on_its_base(tmp_path, monkeypatch):
    base = make_base(tmp_path / "base")
    folder = make_adapter(tmp_path / "adapter", {**LORA, "base_model_name_or_path": str(base), "r": 20})
    checkpoint, adapter = locate(str(folder))
    assert (checkpoint.model, adapter.path, adapter.rank) == (str(base), str(folder), 20)
    assert adapter.arguments() == {"enable_lora": True, "max_loras": 1, "max_lora_rank": 32}
    # a path that is relative to where the run is started, and one that is relative to the adapter
    monkeypatch.chdir(tmp_path)
    assert locate(str(make_adapter(folder)))[0].model == str(base)
    beside = make_adapter(tmp_path / "deep" / "adapter", {**LORA, "base_model_name_or_path": "../../base"})
    assert locate(str(beside))[0].model == str(base)
    # and one that is gone
    gone = make_adapter(folder, {**LORA, "base_model_name_or_path": "/mnt/gone/base"})
    with pytest.raises(
        ModelError, match=r"/mnt/gone/base: no such model folder.*--base_model names"
    ) as caught:
        locate(str(gone))
    assert "\n" not in str(caught.value)
    assert locate(str(gone), None, str(base))[0].model == str(base)


def test_an_adapters_own_tokenizer_goes_with_it(tmp_path):
    folder = make_adapter(
        tmp_path / "a", {**LORA, "base_model_name_or_path": str(make_base(tmp_path / "base"))}
    )
    (folder / "tokenizer_config.json").write_text("{}")
    arguments = locate(str(folder))[1].arguments()
    assert (arguments["tokenizer"], arguments["tokenizer_revision"]) == (str(folder), None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda f: (f / "adapter_config.json").write_text("{"), "not JSON", id="damaged"),
        pytest.param(lambda f: (f / "adapter_config.json").write_text("[]"), "no JSON object", id="a list"),
        pytest.param(
            lambda f: (f / "adapter_model.safetensors").unlink(), "no adapter weights", id="weights"
        ),
        pytest.param(lambda f: make_adapter(f, {"r": 8}), "names no base model", id="no base"),
        pytest.param(lambda f: make_adapter(f, {**LORA, "use_dora": True}), "merge it", id="DoRA"),
    ],
)
def test_an_adapter_that_cannot_be_used_is_one_line(tmp_path, change, message):
    folder = make_adapter(tmp_path / "a")
    change(folder)
    with pytest.raises(ModelError, match=message) as caught:
        locate(str(folder))
    assert "\n" not in str(caught.value)


def test_a_merged_model_with_the_adapters_files_beside_it_is_no_adapter(tmp_path):
    base = make_base(tmp_path / "merged")
    make_adapter(base)
    assert not is_adapter(base)
    assert locate(str(base))[1] is None
    (base / "model.safetensors").unlink()  # config.json alone does not make a model
    assert is_adapter(base)


def test_the_fingerprint_sees_a_change_of_base_and_of_adapter(tmp_path):
    base = make_base(tmp_path / "base")
    folder = make_adapter(tmp_path / "a", {**LORA, "base_model_name_or_path": str(base)})

    def prints():
        checkpoint, adapter = locate(str(folder))
        return checkpoint.weights, adapter.weights

    first = prints()
    assert prints() == first
    (folder / "adapter_model.safetensors").write_bytes(b"other")
    second = prints()
    assert second[0] == first[0]
    assert second[1] != first[1]
    (base / "model.safetensors").write_bytes(b"other")
    assert prints()[0] != first[0]


# --- an adapter without effect


@pytest.mark.parametrize(
    ("base", "adapted", "expected"),
    [
        ({"a": "yes", "b": "no"}, {"a": "yes", "b": "no"}, (2, 2)),
        ({"a": "yes", "b": "no"}, {"a": "yes", "b": "No"}, (1, 2)),
        ({"a": "yes"}, {"b": "yes"}, (0, 0)),
        ({"a": "", "b": "x"}, {"a": "", "b": "x"}, (1, 1)),  # two unfinished thoughts are not compared
        ({"a": "", "b": None}, {"a": "x", "b": None}, (0, 1)),
        ({}, {}, (0, 0)),
    ],
)
def test_answers_are_compared_by_key(base, adapted, expected):
    assert same_answers(base, adapted) == expected
