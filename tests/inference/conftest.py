"""What the tests with a real engine share: tiny models, task data, and the script run in this process or in
its own.

They run with the interpreter of .venv-vllm (make test-inference), on the CPU, offline.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.inference.tiny_model import NO_SYSTEM, make_model

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",  # else vLLM in one process is ten times slower on a small machine
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}
ENGINE = {"dtype": "float32", "enforce_eager": True, "kv_cache_memory_bytes": 64 * 2**20}
WINDOW = 512


@pytest.fixture(scope="session", autouse=True)
def environment():
    """Set before anything imports vLLM."""
    os.environ.update(ENVIRONMENT)


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "plain": make_model(root / "plain", window=WINDOW),
        "other": make_model(root / "other", seed=1, window=WINDOW),
        "no_system": make_model(root / "no_system", template=NO_SYSTEM, add_bos=True, window=WINDOW),
        "no_template": make_model(root / "no_template", template=None, window=WINDOW),
    }


def write_task(folder: Path, task: str, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"{task}.jsonl").write_text(text, encoding="utf-8")


def read_task(folder: Path, task: str) -> list[dict[str, Any]]:
    text = (folder / f"{task}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """Five tasks: short prompts, prompts longer than the window, two-turn tasks with and without a shared
    first turn.
    """
    folder = tmp_path_factory.mktemp("data")
    words = ["river", "hill", "story", "question", "answer", "capital", "number", "step", "short", "long"]
    short = [
        {"id": f"b{n}", "formatted_prompt": f"What is {n} plus {n * 7}? {words[n % 10]}"} for n in range(12)
    ]
    write_task(folder, "boolq.subset", [{**row, "gold": "yes", "meta": {"n": 1}} for row in short])
    lengths = (5, 60, 100, 130, 140, 150, 400, 3000)
    long = [" ".join(words[(n + k) % 10] for k in range(n)) for n in lengths]
    write_task(
        folder,
        "hotpotqa.subset",
        [{"id": f"h{n}", "formatted_prompt": f"FIRST {text} LAST"} for n, text in enumerate(long)],
    )
    first = ["Name a river.", "Write a story.", "Sum 12 and 30."]
    write_task(
        folder,
        "mtbench.turn1",
        [{"id": f"m{n}-t1", "prompt": text, "formatted_prompt": text} for n, text in enumerate(first)],
    )
    pairs = [*((text, "And now shorter.") for text in first), ("Name a hill.", "Why that one?")]
    write_task(
        folder,
        "mtbench.turn2",
        [
            {"id": f"m{n}-t2", "prompt": list(pair), "formatted_prompt": pair[1]}
            for n, pair in enumerate(pairs)
        ],
    )
    write_task(
        folder,
        "structflowbench.turn2",
        [
            {
                "id": f"s{n}",
                "prompt": [{"user prompt": f"Plan {n}."}, {"user prompt": "Add times."}],
                "turn1_response": "somebody else's",
                "outputs": "somebody else's",
            }
            for n in range(3)
        ],
    )
    return folder


def arguments(model: Path, data: Path, out: Path, *more: str) -> list[str]:
    return [
        "--model", str(model), "--dataset", str(data), "--output_dir", str(out), "--name", "m",
        "--max_tokens", "24", "--vllm_kwargs", json.dumps(ENGINE), *more,
    ]  # fmt: skip


def start(*options: str, **kwargs: Any) -> subprocess.Popen:
    """run_inference.py in a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run_inference.py"), *options],
        env={**os.environ, **ENVIRONMENT},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


class Reference:
    """The same model in transformers: greedy decoding, one prompt at a time."""

    def __init__(self, folder: Path):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._torch = torch
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def ids(self, *turns: str, system: str | None = "You are a helpful assistant.") -> list[int]:
        messages = [{"role": "system", "content": system}] if system else []
        messages += [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(turns)]
        return self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )

    def answer(self, ids: list[int], limit: int = 24) -> list[int]:
        """The new token ids, the end token among them."""
        prompt = self._torch.tensor([ids])
        with self._torch.no_grad():
            out = self.model.generate(
                prompt, attention_mask=self._torch.ones_like(prompt), max_new_tokens=limit, do_sample=False
            )
        return out[0, len(ids) :].tolist()

    def text(self, new: list[int]) -> str:
        """Without the last character where its bytes are not complete: vLLM leaves that away, transformers
        marks it.
        """
        return self.tokenizer.decode(new, skip_special_tokens=True).rstrip("\ufffd")


@pytest.fixture(scope="session")
def reference(models) -> Reference:
    return Reference(models["plain"])
