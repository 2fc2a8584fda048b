"""Amazon Bedrock's converse API through boto3: AWS's standard resolution of credentials, AWS_REGION."""

from __future__ import annotations

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

REGION = "us-east-1"
CONNECTIONS = 64
_FINISH = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "filtered",
    "guardrail_intervened": "filtered",
}
# errors that say more than their status
_FATAL = {"AccessDeniedException", "ResourceNotFoundException", "ModelNotReadyException", "OptInRequired"}
_CREDENTIALS = {
    "UnrecognizedClientException",
    "InvalidSignatureException",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "MissingAuthenticationToken",
}


def connect(model: str, timeout: float = TIMEOUT) -> Connection:
    """Raises Failure where the region or the client can't be set up; credentials show at the first call."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    if not model:
        raise Failure("fatal", "no Bedrock model named: use MODEL@bedrock")
    # boto3 itself does not read AWS_REGION
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or REGION
    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        read_timeout=timeout,
        connect_timeout=min(timeout, 20),
        max_pool_connections=CONNECTIONS,
    )
    try:
        client = boto3.session.Session().client("bedrock-runtime", region_name=region, config=config)
    except BotoCoreError as error:
        raise Failure("fatal", f"Bedrock: {error}") from None

    def send(question: Question, max_tokens: int, temperature: bool) -> Reply:
        sampling = {"temperature": 0.0} if temperature else {}
        try:
            answer = client.converse(
                modelId=model,
                messages=[{"role": "user", "content": [{"text": question.prompt}]}],
                inferenceConfig={"maxTokens": max_tokens, **sampling},
            )
        except Exception as error:
            raise _classified(error) from None
        return _reply(answer, model)

    return with_temperature("bedrock", model, send)


def _classified(error: Exception) -> Exception:
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        detail = error.response.get("Error", {})
        code, message = str(detail.get("Code", "")), str(detail.get("Message", ""))
        meta = error.response.get("ResponseMetadata", {})
        status = meta.get("HTTPStatusCode")
        text = f"{code}: {message}"
        if "inference profile" in message or "on-demand throughput" in message:
            hint = "use the id of an inference profile, with a prefix such as us. or eu."
            return Failure("fatal", f"{text} ({hint})", status=status)
        if code in _CREDENTIALS:
            return Failure("no_credentials", f"{text} (check AWS credentials and region)", status=status)
        if code in _FATAL:
            return Failure(
                "fatal", f"{text} (check the model id and the account's access to it)", status=status
            )
        if code in ("ThrottlingException", "TooManyRequestsException", "ModelTimeoutException"):
            status = 429 if "Thrott" in code or "Many" in code else 408
        return failure(status, text, headers=meta.get("HTTPHeaders", {}))
    missing = (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.TokenRetrievalError,
        exceptions.ProfileNotFound,
    )
    if isinstance(error, missing):
        return Failure("no_credentials", f"{error} (AWS_ACCESS_KEY_ID, a profile, or a role)")
    if isinstance(error, exceptions.ParamValidationError):
        return Failure("rejected", str(error))
    if isinstance(error, (exceptions.HTTPClientError, exceptions.ConnectionError, OSError)):
        return failure(None, f"{type(error).__name__}: {error}")
    if isinstance(error, exceptions.BotoCoreError):
        return failure(None, f"{type(error).__name__}: {error}")
    return error


def _reply(answer: Any, model: str) -> Reply:
    message = (answer.get("output") or {}).get("message") if isinstance(answer, dict) else None
    if message is None or "stopReason" not in answer:
        raise no_answer("no message")
    blocks = message.get("content") or []
    text = "".join(block["text"] for block in blocks if block.get("text"))
    usage = answer.get("usage") or {}
    return Reply(
        text or None,
        _FINISH.get(answer["stopReason"], "stop"),
        usage.get("inputTokens", 0),
        usage.get("outputTokens", 0),
        model,
    )
