"""Gemini on Vertex AI through google.genai: application default credentials, GOOGLE_CLOUD_PROJECT and
_LOCATION.

GEMINI_MODEL names the model where the judge's setting does not ("@gemini").
"""

from __future__ import annotations

import json
import os
from typing import Any

from evaluation.judge.backends import (
    TIMEOUT,
    Connection,
    Failure,
    Reply,
    failure,
    no_answer,
    with_temperature,
)
from evaluation.judge.modes import Question

LOCATION = "us-central1"
_LENGTH = {"MAX_TOKENS"}
_FILTERED = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"}


def connect(model: str, timeout: float = TIMEOUT, credentials: Any = None) -> Connection:
    """Raises Failure where project or credentials are missing."""
    from google import genai
    from google.genai import types

    project = os.environ.get("GOOGLE_CLOUD_PROJECT", "").strip()
    model = model or os.environ.get("GEMINI_MODEL", "").strip()
    if not project:
        raise Failure("no_credentials", "GOOGLE_CLOUD_PROJECT is not set")
    if not model:
        raise Failure("fatal", "no Gemini model named: use MODEL@gemini or set GEMINI_MODEL")
    options: dict[str, Any] = {"timeout": int(timeout * 1000)}
    if os.environ.get("GOOGLE_VERTEX_BASE_URL"):
        options["base_url"] = os.environ["GOOGLE_VERTEX_BASE_URL"]
    try:
        # project and location explicitly: with another address the SDK drops those of the environment
        client = genai.Client(
            vertexai=True,
            project=project,
            location=os.environ.get("GOOGLE_CLOUD_LOCATION", "").strip() or LOCATION,
            credentials=credentials,
            http_options=types.HttpOptions(**options),
        )
    except Exception as error:
        raise _classified(error) from None

    def send(question: Question, max_tokens: int, temperature: bool) -> Reply:
        sampling = {"temperature": 0.0} if temperature else {}
        config = types.GenerateContentConfig(max_output_tokens=max_tokens, **sampling)
        try:
            answer = client.models.generate_content(model=model, contents=question.prompt, config=config)
        except Exception as error:
            raise _classified(error) from None
        return _reply(answer)

    return with_temperature("gemini", model, send)


def _classified(error: Exception) -> Exception:
    """google-genai lets the errors of its transport through, httpx in 2.x and httpx2 in 3.x.

    Told by module name.
    """
    from google.auth import exceptions as auth
    from google.genai import errors

    if isinstance(error, errors.APIError):
        headers = getattr(error.response, "headers", None) or {}
        return failure(error.code, str(error.message or error.status or error), headers=dict(headers))
    if isinstance(error, (auth.TransportError,)):
        return failure(None, f"{type(error).__name__}: {error}")
    if isinstance(error, auth.GoogleAuthError):
        return Failure(
            "no_credentials",
            f"{error} (gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS)",
        )
    if isinstance(error, (json.JSONDecodeError, errors.UnknownApiResponseError)):
        return no_answer("not JSON")
    module = type(error).__module__.partition(".")[0]
    if module in ("httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "aiohttp") or isinstance(
        error, OSError
    ):
        return failure(None, f"{type(error).__name__}: {error}")
    return error


def _reply(answer: Any) -> Reply:
    usage = answer.usage_metadata
    counts = (
        getattr(usage, "prompt_token_count", 0) or 0,
        (getattr(usage, "candidates_token_count", 0) or 0) + (getattr(usage, "thoughts_token_count", 0) or 0),
        answer.model_version or "",
    )
    blocked = answer.prompt_feedback is not None and answer.prompt_feedback.block_reason is not None
    if blocked:
        return Reply(None, "filtered", *counts)
    if not answer.candidates:
        raise no_answer("no candidates")
    first = answer.candidates[0]
    reason = getattr(first.finish_reason, "name", None) or str(first.finish_reason or "")
    finish = "length" if reason in _LENGTH else "filtered" if reason in _FILTERED else "stop"
    parts = (first.content.parts if first.content else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return Reply(text or None, finish, *counts)
