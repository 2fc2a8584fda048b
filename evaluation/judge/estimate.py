"""What judging would cost: a judge that counts instead of asking.

    service = EstimateService(specs, JudgeOptions(cache_dir=…))
    … score the rows with service.for_task(task) as with a real one; no verdict has a value …
    estimate_lines(service.estimates(), read_prices(Path("configs/judge_prices.yaml")))

Counted is what would be sent now: after the rules, each question once, without what the cache holds. Tokens
are guessed from the length of the texts (about four characters each, one for each character of scripts that
write no blanks) and from the usual length of a mode's reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.judge import FAILED, Verdict
from evaluation.judge.cache import Cache, key
from evaluation.judge.modes import MODES, Question, question
from evaluation.judge.service import (
    DEFAULTS,
    TEMPERATURE,
    JudgeFatal,
    JudgeOptions,
    override_specs,
    parse_spec,
)
from evaluation.tasks import TASKS

_WIDE = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CHARACTERS = 4  # of a token, in scripts with blanks


@dataclass
class Estimate:
    """One task's questions to one judge.

    Calls: to be sent; repeated, cached: need none. Tokens of the calls only.
    """

    task: str
    judge: str
    calls: int = 0
    repeated: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class EstimateService:
    """Stands in for JudgeService: the same specs and options, the same for_task."""

    def __init__(self, specs: Mapping[str, str], options: JudgeOptions = DEFAULTS):
        """Raises JudgeFatal where a setting names no backend."""
        self.specs = override_specs(specs, options)
        self._estimates = {task: Estimate(task, spec) for task, spec in self.specs.items()}
        self._seen: set[str] = set()
        self._cache = None
        if options.cache_dir is not None and options.cache_dir.exists():
            self._cache = Cache(options.cache_dir)

    def __enter__(self) -> EstimateService:
        return self

    def __exit__(self, *_: object) -> None:
        if self._cache is not None:
            self._cache.close()

    def for_task(self, task: str) -> CountingJudge:
        """The judge that a task's scorer receives. Raises KeyError for a task without a judge."""
        return CountingJudge(self, task, self.specs[task])

    def estimates(self) -> list[Estimate]:
        """A line for each task that would ask anything, also where all of it is in the cache."""
        return [e for e in self._estimates.values() if e.calls or e.repeated or e.cached]

    def count(self, task: str, spec: str, asked: Question) -> None:
        """Counts one question."""
        model, backend = parse_spec(spec)
        mark = key(backend, model, {"temperature": TEMPERATURE, "max_tokens": asked.max_tokens}, asked)
        estimate = self._estimates[task]
        if mark in self._seen:
            estimate.repeated += 1
            return
        self._seen.add(mark)
        if self._cache is not None and backend != "builtin" and self._cache.may_hold(mark):
            estimate.cached += 1
            return
        estimate.calls += 1
        estimate.prompt_tokens += tokens(asked.prompt)
        mode = MODES[asked.mode]
        estimate.completion_tokens += mode.reply_tokens + 10 * asked.count


class CountingJudge:
    """ask() that counts; its verdicts have no value."""

    def __init__(self, service: EstimateService, task: str, spec: str):
        self._service = service
        self.task = task
        self.spec = spec

    async def ask(self, mode: str, **fields: Any) -> Verdict:
        self._service.count(self.task, self.spec, question(mode, fields))
        return Verdict(None, FAILED)


# for a forecast without responses: an answer and the question's own text; a judge's usual reply
_ANSWER_TOKENS, _REPLY_TOKENS = 800, 200


def forecast(
    rows: Mapping[str, tuple[int, int]], specs: Mapping[str, str], options: JudgeOptions = DEFAULTS
) -> list[Estimate]:
    """What judging can cost at most, before there are responses: every judged row asks all it can.

    rows: task -> (rows, tokens of their prompts together). specs: task -> judge.
    """
    found = []
    for task, spec in override_specs(specs, options).items():
        sources = [rows[name] for name in (task, *TASKS[task].also) if name in rows]
        if task not in rows:
            continue
        calls = TASKS[task].calls * sum(number for number, _ in sources)
        prompts = TASKS[task].calls * sum(tokens_of for _, tokens_of in sources)
        found.append(
            Estimate(
                task,
                spec,
                calls,
                prompt_tokens=prompts + calls * _ANSWER_TOKENS,
                completion_tokens=calls * _REPLY_TOKENS,
            )
        )
    return found


def tokens(text: str) -> int:
    """A guess at a text's number of tokens."""
    wide = len(_WIDE.findall(text))
    return wide + (len(text) - wide) // _CHARACTERS + 1


def read_prices(path: Path) -> dict[str, tuple[float, float]]:
    """MODEL or MODEL@BACKEND -> dollars per million tokens (input, output).

    {} without a file. Raises JudgeFatal.
    """
    import yaml

    if not path.exists():
        return {}
    try:
        table = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        return {str(name): (float(price["input"]), float(price["output"])) for name, price in table.items()}
    except (yaml.YAMLError, TypeError, KeyError, ValueError, AttributeError) as error:
        raise JudgeFatal(f"{path}: {error}; a line reads  MODEL: {{input: 0.15, output: 0.60}}") from None


def cost(estimate: Estimate, prices: Mapping[str, tuple[float, float]]) -> float | None:
    """Dollars, None where the model's price is unknown."""
    price = prices.get(estimate.judge) or prices.get(parse_spec(estimate.judge)[0])
    if price is None:
        return None
    return (estimate.prompt_tokens * price[0] + estimate.completion_tokens * price[1]) / 1e6


def estimate_lines(estimates: Sequence[Estimate], prices: Mapping[str, tuple[float, float]]) -> list[str]:
    """A table for the console, with a total; a total with an unknown price in it says "at least"."""
    rows = [("task", "judge", "calls", "cached", "repeated", "tokens in", "tokens out", "cost")]
    costs = [cost(e, prices) for e in estimates]
    for e, dollars in zip(estimates, costs, strict=True):
        shown = "unknown" if dollars is None else f"${dollars:.2f}"
        counts = (e.calls, e.cached, e.repeated, e.prompt_tokens, e.completion_tokens)
        rows.append((e.task, e.judge, *(f"{n:,}" for n in counts), shown))
    known = sum(dollars for dollars in costs if dollars is not None)
    totals = [
        sum(getattr(e, name) for e in estimates)
        for name in ("calls", "cached", "repeated", "prompt_tokens", "completion_tokens")
    ]
    least = "at least " if None in costs else ""
    rows.append(("total", "", *(f"{n:,}" for n in totals), f"{least}${known:.2f}"))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
