"""Chat completions as OpenAI and Azure answer them; the two differ only in their client.

Reasoning models refuse max_tokens and temperature, each with its own 400. The request is then sent without,
once, and so it stays for all later ones: their token limit becomes max_completion_tokens and four times as
large, because it pays for the hidden reasoning as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Lock
from typing import Any

from evaluation.judge.backends import UNSUPPORTED, Connection, Failure, Reply, failure, no_answer
from evaluation.judge.modes import Question

REASONING_FACTOR = 4


class Shape:
    """Which parameters a model takes: learnt from its refusals, shared by all threads."""

    def __init__(self, note: Callable[[str], None]):
        self._lock = Lock()
        self._note = note
        self.limit = "max_tokens"
        self.temperature = True

    def parameters(self, max_tokens: int) -> dict[str, Any]:
        with self._lock:
            factor = 1 if self.limit == "max_tokens" else REASONING_FACTOR
            sent: dict[str, Any] = {self.limit: max_tokens * factor}
            return {**sent, "temperature": 0.0} if self.temperature else sent

    def learn(self, sent: dict[str, Any], parameter: str) -> bool:
        """Whether the refused parameter can be left out from now on."""
        with self._lock:
            if parameter == "max_tokens" and "max_tokens" in sent:
                if self.limit == "max_tokens":
                    self.limit = "max_completion_tokens"
                    self._note(
                        f"max_completion_tokens instead of max_tokens, {REASONING_FACTOR} times as many"
                    )
                return True
            if parameter == "temperature" and "temperature" in sent:
                if self.temperature:
                    self.temperature = False
                    self._note("no temperature: the model takes only its own")
                return True
            return False


def connection(backend: str, client: Any, model: str) -> Connection:
    """A Connection over an openai client; `model` is the model's or the deployment's name."""
    made = Connection(backend, model, call=lambda question, max_tokens: call(question, max_tokens))
    shape = Shape(made.adaptations.append)

    def call(question: Question, max_tokens: int) -> Reply:
        for _ in range(3):
            sent = shape.parameters(max_tokens)
            try:
                return _once(client, model, question.prompt, sent)
            except Refused as refused:
                if not shape.learn(sent, refused.parameter):
                    raise refused.failure from None
        raise Failure("rejected", "the model refuses each form of the request", status=400)

    return made


class Refused(Exception):
    """A parameter that the server does not take; `parameter` is its name, "" where that is not told."""

    def __init__(self, parameter: str, made: Failure):
        self.parameter = parameter
        self.failure = made


def _once(client: Any, model: str, prompt: str, parameters: dict[str, Any]) -> Reply:
    messages = [{"role": "user", "content": prompt}]
    return _reply(sent(lambda: client.chat.completions.create(model=model, messages=messages, **parameters)))


def sent(request: Callable[[], Any]) -> Any:
    """What an openai client's call returns; its exceptions become a Failure, or Refused."""
    import openai

    try:
        return request()
    except openai.APIStatusError as error:
        raise _classified(error) from None
    except openai.APIConnectionError as error:  # timeouts are a kind of it
        raise failure(None, f"{type(error).__name__}: {error}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, openai.APIResponseValidationError):
        raise no_answer("not JSON") from None
    except openai.OpenAIError as error:
        raise Failure("no_credentials", str(error)) from None


def _classified(error: Any) -> Exception:
    body = error.body if isinstance(error.body, dict) else {}
    code = str(body.get("code") or getattr(error, "code", "") or "")
    message = str(body.get("message") or error.message)
    made = failure(error.status_code, message, code=code, headers=error.response.headers)
    parameter = str(body.get("param") or "") or next(
        (name for name in ("max_tokens", "temperature") if name in message), ""
    )
    if error.status_code == 400 and (UNSUPPORTED.search(f"{code} {message}")):
        return Refused(parameter, made)
    return made


def _reply(answer: Any) -> Reply:
    choices = getattr(answer, "choices", None)
    if not choices:
        raise no_answer("no choices")
    first = choices[0]
    usage = getattr(answer, "usage", None)
    finish = {"length": "length", "content_filter": "filtered"}.get(first.finish_reason, "stop")
    if getattr(first.message, "refusal", None) and not first.message.content:
        finish = "refused"
    return Reply(
        first.message.content if finish != "refused" else first.message.refusal,
        finish,
        getattr(usage, "prompt_tokens", 0) or 0,
        getattr(usage, "completion_tokens", 0) or 0,
        getattr(answer, "model", None) or "",
    )
