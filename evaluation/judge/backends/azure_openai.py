"""Azure OpenAI: AZURE_OPENAI_API_KEY, _ENDPOINT, _DEPLOYMENT, _API_VERSION. The deployment answers."""

from __future__ import annotations

import os

from evaluation.judge.backends import TIMEOUT, Connection, Failure
from evaluation.judge.backends.chat import connection

API_VERSION = "2024-02-15-preview"


def connect(model: str, timeout: float = TIMEOUT) -> Connection:
    """Raises Failure where a variable is missing or `model` is not the deployment's name."""
    from openai import AzureOpenAI

    names = ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_DEPLOYMENT")
    values = {name: os.environ.get(name, "").strip() for name in names}
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise Failure("no_credentials", f"{', '.join(missing)} not set; Azure needs all three")
    deployment = values["AZURE_OPENAI_DEPLOYMENT"]
    if model and model != deployment:
        raise Failure(
            "fatal",
            f"the judge is set to {model}@azure_openai, but AZURE_OPENAI_DEPLOYMENT is {deployment}: it "
            f"would answer in its place. Use {deployment}@azure_openai, or set the variable to {model}",
        )
    client = AzureOpenAI(
        api_key=values["AZURE_OPENAI_API_KEY"],
        azure_endpoint=values["AZURE_OPENAI_ENDPOINT"],
        azure_deployment=deployment,
        api_version=os.environ.get("AZURE_OPENAI_API_VERSION", "").strip() or API_VERSION,
        max_retries=0,
        timeout=timeout,
    )
    return connection("azure_openai", client, deployment)
