"""Two engines as one, and adapters on their base: vLLM on the CPU, tiny models in float32."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

import run_inference
from evaluation.comparison.model import SAME
from evaluation.comparison.sameness import same_answers
from evaluation.inference.adapter import RANKS
from tests.inference.conftest import ENGINE, ROOT, arguments, manifest, read_task, start, write_task
from tests.inference.tiny_model import make_adapter

pytestmark = pytest.mark.inference

two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core for each of two engines")
TASKS = ("ifeval.subset", "mtbench.turn2")


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Enough for a process to be killed in the middle of it; second turns need their first ones."""
    folder = tmp_path_factory.mktemp("work")
    asked = [
        {"id": f"i{n}", "formatted_prompt": f"Write {n} lines." + " again" * (n % 30)} for n in range(300)
    ]
    write_task(folder, "ifeval.subset", asked)
    pairs = [{"id": f"t{n}", "prompt": [f"Plan {n}.", f"Add {n} times."]} for n in range(30)]
    write_task(folder, "mtbench.turn2", pairs)
    return folder


def options(model, work, out, *more):
    few = json.dumps({**ENGINE, "max_num_seqs": 4})  # so that answers come one after another
    return arguments(model, work, out, "--max_tokens", "48", "--vllm_kwargs", few, *more)


@pytest.fixture(scope="module")
def one(models, work, tmp_path_factory):
    out = tmp_path_factory.mktemp("one")
    assert run_inference.main(options(models["plain"], work, out)) == 0
    return out / "m"


def answered(folder) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl*"))


@two_cores
def test_two_engines_give_the_rows_of_one(models, work, one, tmp_path):
    process = start(*options(models["plain"], work, tmp_path, "--data_parallel_size", "2"))
    _, error = process.communicate()
    assert process.returncode == 0, error
    for task in TASKS:
        file = f"{task}.jsonl"
        assert (tmp_path / "m" / file).read_bytes() == (one / file).read_bytes()
    record = manifest(tmp_path / "m")["runs"][0]
    assert (record["data_parallel_size"], record["samples"]) == (2, 300 + 30 + 30)
    # one engine finds nothing left to do there
    assert run_inference.main(options(models["plain"], work, tmp_path)) == 0
    assert len(manifest(tmp_path / "m")["runs"]) == 1


@two_cores
def test_an_engine_that_is_killed_costs_nothing(models, work, one, tmp_path):
    process = start(*options(models["plain"], work, tmp_path, "--data_parallel_size", "2"))
    while process.poll() is None and answered(tmp_path / "m") < 20:
        time.sleep(0.01)
    assert process.poll() is None, "it ended before an engine could be killed"
    engines = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(engines) == 2
    os.kill(int(engines[1]), signal.SIGKILL)
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert error.count("is started again: its process ended with SIGKILL") == 1
    assert manifest(tmp_path / "m")["runs"][0]["samples"] == 300 + 30 + 30
    for task in TASKS:
        file = f"{task}.jsonl"
        assert (tmp_path / "m" / file).read_bytes() == (one / file).read_bytes()


@two_cores
def test_an_engine_that_cannot_start_is_one_line(models, work, tmp_path):
    wrong = json.dumps({**ENGINE, "dtype": "float33"})
    asked = arguments(models["plain"], work, tmp_path, "--data_parallel_size", "2", "--vllm_kwargs", wrong)
    process = start(*asked)
    _, error = process.communicate()
    assert process.returncode == 1
    assert error.rstrip().split("\n")[-1].startswith("run_inference.py: vLLM does not start: ")


# --- adapters


def outputs(folder) -> dict[str, str]:
    return {row["id"]: row["outputs"] for row in read_task(folder, "boolq.subset")}


def run_boolq(model, data, out, *more):
    return run_inference.main(arguments(model, data, out, "--tasks", "boolq.subset", *more))


@pytest.fixture(scope="module")
def base_outputs(models, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("base")
    assert run_boolq(models["plain"], data, out) == 0
    return outputs(out / "m")


MODULES = ("model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.v_proj")


@pytest.mark.parametrize(("rank", "pattern"), [(4, {}), (24, {}), (4, {"v_proj": 20})])
def test_an_adapter_is_loaded_on_its_base_and_differs_from_it(
    models, data, base_outputs, tmp_path, rank, pattern
):
    folder = make_adapter(tmp_path / "lora", models["plain"], MODULES, rank, pattern)
    assert run_boolq(folder, data, tmp_path / "out") == 0
    equal, compared = same_answers(base_outputs, outputs(tmp_path / "out" / "m"))
    assert compared == 12
    assert equal < SAME * compared
    made = manifest(tmp_path / "out" / "m")
    assert made["adapter"]["rank"] == max(rank, *pattern.values(), 0)
    assert made["model"]["path"] == str(models["plain"])


def test_the_outputs_of_an_adapter_are_those_of_the_merged_model(models, data, tmp_path):
    folder = make_adapter(tmp_path / "lora", models["plain"], MODULES, 4, {"v_proj": 8})
    merged = merge(models["plain"], folder, tmp_path / "merged")
    assert run_boolq(folder, data, tmp_path / "out") == 0
    assert run_boolq(merged, data, tmp_path / "merged_out") == 0
    assert outputs(tmp_path / "out" / "m") == outputs(tmp_path / "merged_out" / "m")


def merge(base: Path, folder: Path, out: Path) -> Path:
    """The adapter added to the weights of its base, with torch alone: alpha/r · B A for each module."""
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(base, out)
    config = json.loads((folder / "adapter_config.json").read_text())
    weights, thin = load_file(out / "model.safetensors"), load_file(folder / "adapter_model.safetensors")
    for name in [name for name in thin if name.endswith(".lora_A.weight")]:
        module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        a, b = thin[name].double(), thin[name.replace("lora_A", "lora_B")].double()
        added = config["lora_alpha"] / a.shape[0] * (b @ a)
        weights[f"{module}.weight"] = (weights[f"{module}.weight"].double() + added).to(torch.float32)
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    return out


def test_an_adapter_on_two_engines(models, data, tmp_path):
    folder = make_adapter(tmp_path / "lora", models["plain"], MODULES)
    assert run_boolq(folder, data, tmp_path / "one") == 0
    assert run_boolq(folder, data, tmp_path / "two", "--data_parallel_size", "2") == 0
    assert outputs(tmp_path / "one" / "m") == outputs(tmp_path / "two" / "m")


def test_modules_under_another_prefix_do_nothing_and_that_is_noticed(models, data, base_outputs, tmp_path):
    """vLLM loads such an adapter without a word: it looks at the last part of a name only."""
    folder = make_adapter(tmp_path / "lora", models["plain"], ("transformer.h.0.self_attn.q_proj",))
    assert run_boolq(folder, data, tmp_path / "out") == 0
    equal, compared = same_answers(base_outputs, outputs(tmp_path / "out" / "m"))
    assert (equal, compared) == (12, 12)
    assert equal >= SAME * compared  # what the comparison warns of


def test_modules_that_the_base_does_not_have_are_one_line(models, data, tmp_path, capsys):
    folder = make_adapter(tmp_path / "lora", models["plain"], ("model.layers.0.self_attn.query",))
    assert run_boolq(folder, data, tmp_path / "out") == 1
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert last.startswith("run_inference.py: vLLM does not start: ")
    assert "model.layers.0.self_attn.query" in last


def test_another_adapter_in_the_same_folder_is_another_model(models, data, tmp_path, capsys):
    folder = make_adapter(tmp_path / "lora", models["plain"], MODULES)
    assert run_boolq(folder, data, tmp_path / "out") == 0
    make_adapter(folder, models["plain"], MODULES, rank=8)
    assert run_boolq(folder, data, tmp_path / "out") == 1
    assert "responses of other settings (weights" in capsys.readouterr().err


def test_the_base_model_may_be_elsewhere(models, data, base_outputs, tmp_path, capsys):
    folder = make_adapter(tmp_path / "lora", "/gone/base", MODULES)
    assert run_boolq(folder, data, tmp_path / "out") == 1
    assert "--base_model names another place" in capsys.readouterr().err
    assert run_boolq(folder, data, tmp_path / "out", "--base_model", str(models["plain"])) == 0
    assert outputs(tmp_path / "out" / "m") != base_outputs


# --- names that vLLM gives to things


def test_the_documented_arguments_are_vllms_own():
    import dataclasses

    from vllm.engine.arg_utils import EngineArgs
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    text = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8").replace("\\\n", "")
    known = {field.name for field in dataclasses.fields(EngineArgs)}
    objects = [json.loads(found) for found in re.findall(r"--vllm_kwargs '(\{[^…]*?\})'", text)]
    assert len(objects) >= 3
    assert {name for one in objects for name in one} <= known
    assert {"enable_lora", "max_loras", "max_lora_rank", "tensor_parallel_size"} <= known
    options = make_arg_parser(FlexibleArgumentParser())._option_string_actions
    commands = [line for line in text.split("\n") if line.strip().startswith("vllm serve")]
    assert len(commands) == 2
    for command in commands:
        assert set(re.findall(r"--[a-z-]+", command.split("#")[0])) <= set(options)


def test_the_ranks_are_vllms_own():
    from typing import get_args

    from vllm.config.lora import MaxLoRARanks

    assert get_args(MaxLoRARanks) == RANKS
