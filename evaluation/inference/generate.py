"""Both passes through one engine or several: first turns, then second turns with the model's own answers.

Each finished sample is on disk before the engine's next step, each finished task is a whole file at once.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from evaluation.inference.engine import Completion, Engine, EngineError, Sampling
from evaluation.inference.parallel import Engines, Place
from evaluation.inference.report import cut_warnings
from evaluation.inference.work import Rendered, Work, pending, render

log = logging.getLogger("captrack.inference")


def engine_arguments(setup: Any, size: int) -> dict[str, Any]:
    """The arguments of vllm.LLM. setup: run_inference.Setup; size: tensor parallel size."""
    checkpoint, options = setup.checkpoint, setup.options
    return {
        "model": checkpoint.model,
        "revision": checkpoint.revision,
        "tokenizer_revision": checkpoint.revision,
        "max_model_len": setup.window,
        "tensor_parallel_size": size,
        "seed": options.seed,
        # the model's own sampling defaults, among them a cap on the output, must not leak in
        "generation_config": "vllm",
        **(setup.adapter.arguments() if setup.adapter else {}),
        **options.vllm_kwargs,
    }


def generate(
    works: dict[str, Work],
    first: list[Rendered],
    setup: Any,
    record: dict[str, Any],
    where: list[Place],
    began: float,
) -> None:
    """Answers every pending sample. first: the rendered first pass. record: gets counts and seconds.

    where: one place for each engine. began: when the run began (time.perf_counter), for the seconds outside
    the engine.
    """
    if setup.server is not None:
        answer_all(setup.server, works, first, setup, record, began)
        return
    adapter = setup.adapter.path if setup.adapter else None
    if len(where) == 1:
        answer_all(Engine(record["engine_arguments"], adapter), works, first, setup, record, began)
        return
    engines = Engines(record["engine_arguments"], adapter, where)
    try:
        answer_all(engines, works, first, setup, record, began)
    finally:
        engines.close()


def answer_all(
    engine: Engine | Engines | Any,  # or a served.Engine
    works: dict[str, Work],
    first: list[Rendered],
    setup: Any,
    record: dict[str, Any],
    began: float,
) -> None:
    """Both passes; see generate."""
    options, window, chat = setup.options, setup.window, setup.chat
    if engine.window < window:
        raise EngineError(
            f"vLLM gives a window of {engine.window}, not {window}: set --max_model_len {engine.window}"
        )
    sampling = Sampling(options.temperature, options.top_p, options.top_k, options.seed)
    left = {task: len(work.pending()) for task, work in works.items()}
    total, last = sum(left.values()), time.perf_counter()
    for turn in (1, 2):
        batch = first if turn == 1 else render(pending(works, 2), works, chat, window, options.max_tokens)
        if turn == 2:
            for warning in cut_warnings(works, batch):
                log.warning("warning: %s", warning)
        items = {item.sample.name: item for item in batch}
        for name, outcome in engine.run((item.request() for item in batch), sampling):
            item, work = items.pop(name), works[name[0]]
            left[name[0]] -= 1
            if isinstance(outcome, Completion):
                print_ = work.prints[item.sample.key, item.sample.turn]
                work.store.append(item.sample, item.answer(outcome, print_))
                record["samples"] += 1
                record["output_tokens"] += outcome.output_tokens
            else:
                work.failed[item.sample.key, item.sample.turn] = outcome.message
                log.warning("%s, %s: no answer: %s", item.sample.task, item.sample.key, outcome.message)
            if left[name[0]] == 0 and not work.failed:
                save(work)
            if time.perf_counter() - last > 10:
                last = time.perf_counter()
                speed = record["output_tokens"] / max(engine.seconds - engine.start_seconds, 1e-9)
                log.info("%d of %d samples, %.0f tokens/s", record["samples"], total, speed)
    wall = time.perf_counter() - began
    generating = engine.seconds - engine.start_seconds
    record |= {
        "seconds": round(wall, 3),
        "engine_start_seconds": round(engine.start_seconds, 3),
        "engine_seconds": round(generating, 3),
        "outside_engine_seconds": round(wall - engine.seconds - record["import_seconds"], 3),
        "tokens_per_second": round(record["output_tokens"] / max(generating, 1e-9), 1),
    }


def save(work: Work) -> None:
    """The whole response file, where there is something that it does not hold yet."""
    if work.store.partial.exists() or not work.store.final.exists():
        work.store.finish(work.data.rows, work.prints)
