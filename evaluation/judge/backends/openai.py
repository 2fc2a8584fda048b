"""OpenAI and servers that speak its protocol (vllm serve, …): OPENAI_API_KEY, OPENAI_BASE_URL."""

from __future__ import annotations

import os

from evaluation.judge.backends import TIMEOUT, Connection, Failure
from evaluation.judge.backends.chat import connection


def connect(model: str, timeout: float = TIMEOUT) -> Connection:
    """Raises Failure where the key is missing."""
    from openai import OpenAI

    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key:
        raise Failure(
            "no_credentials",
            "OPENAI_API_KEY is not set; export it (any text for a local server), or name another judge: "
            "--judge MODEL@BACKEND",
        )
    client = OpenAI(
        api_key=key,
        base_url=os.environ.get("OPENAI_BASE_URL", "").strip() or None,
        max_retries=0,
        timeout=timeout,
    )
    return connection("openai", client, model)
