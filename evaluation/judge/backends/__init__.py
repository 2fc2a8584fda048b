"""What answers a question: four providers through their own SDKs, and the offline judge.

A backend is a module with connect(model) -> Connection, found by name when it is first needed. Its `call`
makes one request, no more: the SDK's own retries are off, because they would hide a 429 from the limit that
must shrink. It
returns a Reply or raises a Failure whose `kind` says what to do:

    retry           may pass: 408, 409, 429, 5xx, timeouts, dropped connections, a 200 that is no answer
    filtered        a content filter stopped this question
    rejected        this question can't be answered (too long, malformed); others can
    no_credentials  no key, or one that is refused: ends judging
    fatal           unknown model, no permission, no quota: ends judging
"""

from __future__ import annotations

import email.utils
import importlib
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evaluation.judge.modes import Question

BACKENDS = ("openai", "azure_openai", "gemini", "bedrock", "builtin")
TIMEOUT = 120.0  # seconds for one reply

# environment variables whose values must never be shown
_SECRETS = (
    "OPENAI_API_KEY",
    "CAPTRACK_INFERENCE_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
)
_KEY_LIKE = re.compile(r"\b(?:sk-|AKIA|ASIA|ya29\.|Bearer )[\w.*-]{4,200}")


@dataclass(frozen=True)
class Reply:
    """One answer. finish: "stop", "length" (token limit), "filtered" or "refused". model: the id served."""

    text: str | None
    finish: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""


class Failure(Exception):
    """A request without an answer. retry_after: seconds the provider asked for, None where it did not."""

    def __init__(self, kind: str, message: str, retry_after: float | None = None, status: int | None = None):
        super().__init__(clean(message))
        self.kind = kind
        self.retry_after = retry_after
        self.status = status


@dataclass
class Connection:
    """call(question, max_tokens) -> Reply, safe in many threads.

    Adaptations: what had to be sent otherwise.
    """

    backend: str
    model: str
    call: Callable[[Question, int], Reply]
    adaptations: list[str] = field(default_factory=list)


UNSUPPORTED = re.compile(
    r"unsupported|not supported|does not support|unrecognized|only the default|deprecated", re.IGNORECASE
)


def refuses(failure: Failure, parameter: str) -> bool:
    """Whether a 400 says that the model does not take this parameter."""
    text = str(failure)
    return failure.kind == "rejected" and parameter in text and bool(UNSUPPORTED.search(text))


def with_temperature(backend: str, model: str, send: Callable[[Question, int, bool], Reply]) -> Connection:
    """A Connection whose `send` is told whether to name a temperature: no more once the model refused it."""
    made = Connection(backend, model, call=lambda question, max_tokens: call(question, max_tokens))

    def call(question: Question, max_tokens: int) -> Reply:
        named = not made.adaptations
        try:
            return send(question, max_tokens, named)
        except Failure as refusal:
            if not named or not refuses(refusal, "temperature"):
                raise
            made.adaptations[:] = ["no temperature: the model takes only its own"]
            return send(question, max_tokens, False)

    return made


def connect(model: str, backend: str) -> Connection:
    """Opens a backend. Raises Failure for a missing key or setting, ValueError for an unknown backend."""
    if backend not in BACKENDS:
        raise ValueError(f"no judge backend {backend!r}; known: {', '.join(BACKENDS)}")
    return importlib.import_module(f"evaluation.judge.backends.{backend}").connect(model)


def failure(
    status: int | None,
    message: str,
    *,
    code: str = "",
    headers: Mapping[str, str] | None = None,
) -> Failure:
    """The Failure for an HTTP status and a provider's error code."""
    low = f"{code} {message}".lower()
    wait = retry_after(headers or {})
    text = f"HTTP {status}: {message}" if status else message
    if "content_filter" in low or "responsibleaipolicy" in low:
        return Failure("filtered", text, status=status)
    if "insufficient_quota" in low or status == 402:
        return Failure("fatal", f"{text} (no quota left: check the account's billing)", status=status)
    if status == 401:
        return Failure("no_credentials", f"{text} (the key was refused: check it)", status=status)
    if status in (403, 404, 405):
        return Failure(
            "fatal", f"{text} (check the model's name and the account's access to it)", status=status
        )
    if status is None or status in (408, 409, 425, 429) or status >= 500 or status < 400:
        return Failure("retry", text, wait, status)
    return Failure("rejected", text, status=status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait from a reply's headers: Retry-After (seconds or a date), retry-after-ms."""
    low = {str(name).lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = low.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) / unit)
        except ValueError:
            pass
        try:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
        except (TypeError, ValueError):
            pass
    return None


def no_answer(what: str) -> Failure:
    """For a 200 whose body is no answer: a proxy's page, missing keys."""
    return Failure("retry", f"the server's reply is no answer ({what}): is the address that of an API?")


def clean(message: str) -> str:
    """One short line without keys."""
    for name in _SECRETS:
        value = os.environ.get(name)
        if value and len(value) > 3:
            message = message.replace(value, "***")
    return _KEY_LIKE.sub("***", " ".join(message[:2000].split()))[:300]
