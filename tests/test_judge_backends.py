"""Each backend through its real SDK against a local server.

What is sent, retried, waited for, and said in the end.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator

import pytest
from judge_server import JudgeServer

from evaluation.judge.backends import Connection, Failure, azure_openai, bedrock, connect, gemini, openai
from evaluation.judge.modes import question
from evaluation.judge.pool import ATTEMPTS, Pool
from evaluation.judge.service import JudgeFatal, JudgeOptions, JudgeService

# an SDK whose connection was cut may leave its socket to the garbage collector, in whatever test comes next
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BACKENDS = ("openai", "azure_openai", "gemini", "bedrock")
PATHS = {
    "openai": "/v1/chat/completions",
    "azure_openai": "/openai/deployments/m/chat/completions?api-version=2024-02-15-preview",
    "gemini": "/v1beta1/projects/p/locations/us-central1/publishers/google/models/m:generateContent",
    "bedrock": "/model/m/converse",
}
_numbers = itertools.count()


class FakeTime:
    """A clock that moves only when somebody sleeps; keeps the waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
def environment(server, monkeypatch):
    for name in (
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "GEMINI_MODEL",
        "HTTP_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "NO_PROXY": "127.0.0.1",
        "OPENAI_API_KEY": "sk-very-secret-key",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "AZURE_OPENAI_API_KEY": "azure-very-secret",
        "AZURE_OPENAI_ENDPOINT": server.url,
        "AZURE_OPENAI_DEPLOYMENT": "m",
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_VERTEX_BASE_URL": server.url,
        "AWS_ACCESS_KEY_ID": "AKIAVERYSECRET",
        "AWS_SECRET_ACCESS_KEY": "aws-very-secret",
        "AWS_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url,
    }.items():
        monkeypatch.setenv(name, value)
    return server


def open_backend(backend: str, timeout: float = 20.0) -> Connection:
    if backend == "gemini":
        from google.oauth2.credentials import Credentials

        return gemini.connect("m", timeout, Credentials(token="x"))
    module = {"openai": openai, "azure_openai": azure_openai, "bedrock": bedrock}[backend]
    return module.connect("m", timeout)


def play(backend: str, scenario: str, server: JudgeServer, timeout: float = 20.0, **pool):
    """(verdict, waits, requests, service) for one question."""
    time = FakeTime()
    spec = f"m@{backend}"
    service = JudgeService(
        {"t": spec},
        pool=Pool(8, clock=time.clock, sleep=time.sleep, rng=random.Random(1), **pool),
        connections={spec: open_backend(backend, timeout)},
    )
    before = len(server.requests)
    text = f"scenario={scenario}; {backend} {next(_numbers)}"

    async def run():
        async with service:
            return await service.for_task("t").ask("answer_equivalence", question="", answer="2", gold=text)

    verdict = asyncio.run(run())
    return verdict, time.waits, server.requests[before:], service


ONCE, TWICE = [(0.5, 1.5)], [(0.5, 1.5), (1.0, 3.0)]
ALWAYS = [(min(60, 2**k) * 0.5, min(60, 2**k) * 1.5) for k in range(ATTEMPTS - 1)]
# scenario: status, ranges of the waits (one request more than waits), whether judging has ended
CONTRACT = {
    "success": ("ok", [], False),
    "429_then_ok": ("ok", TWICE, False),
    "429_retry_after": ("ok", [(7, 7)], False),
    "429_tomorrow": ("failed", [], True),
    "429_no_quota": ("failed", [], True),
    "500_then_ok": ("ok", ONCE, False),
    "503_then_ok": ("ok", ONCE, False),
    "529_then_ok": ("ok", ONCE, False),
    "500_for_ever": ("failed", ALWAYS, False),
    "400_filter": ("filtered", [], False),
    "400_too_long": ("failed", [], False),
    "401": ("no_credentials", [], True),
    "403": ("failed", [], True),
    "404": ("failed", [], True),
    "empty": ("unreadable", [], False),
    "null": ("unreadable", [], False),
    "length": ("truncated", [], False),
    "safety": ("filtered", [], False),
    "blocked": ("filtered", [], False),
    "hang_then_ok": ("ok", ONCE, False),
    "drop_then_ok": ("ok", ONCE, False),
    "html_then_ok": ("ok", ONCE, False),
    "html_for_ever": ("failed", ALWAYS, False),
    "declines": ("refused", [], False),
}
# these two have no code of their own for an account without quota: a throttle may pass
EXCEPT = {(name, "429_no_quota"): ("failed", ALWAYS, False) for name in ("gemini", "bedrock")}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("scenario", CONTRACT)
def test_contract(backend, scenario, environment):
    status, waits, ended = EXCEPT.get((backend, scenario), CONTRACT[scenario])
    timeout = 0.5 if scenario.startswith("hang") else 20.0
    verdict, waited, requests, service = play(backend, scenario, environment, timeout)
    assert verdict.status == status, verdict.reply
    assert (verdict.value is not None) == (status == "ok")
    assert bool(service.ended) == ended
    backoffs = [seconds for seconds in waited if seconds > 0]
    if scenario == "429_retry_after":
        assert backoffs[0] == 7
    else:
        assert len(backoffs) == len(waits)
        assert all(low <= seconds <= high for seconds, (low, high) in zip(backoffs, waits, strict=True))
    assert len(requests) == len(waits) + 1
    assert "secret" not in verdict.reply.lower()
    assert "sk-" not in verdict.reply


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_sent_and_counted(backend, environment):
    verdict, _, requests, service = play(backend, "success", environment)
    (request,) = requests
    assert request["path"] == PATHS[backend]
    body = request["body"]
    limits = {
        "gemini": lambda: (
            body["generationConfig"]["maxOutputTokens"],
            body["generationConfig"]["temperature"],
        ),
        "bedrock": lambda: (body["inferenceConfig"]["maxTokens"], body["inferenceConfig"]["temperature"]),
    }.get(backend, lambda: (body["max_tokens"], body["temperature"]))()
    assert limits == (1024, 0)
    assert (verdict.prompt_tokens, verdict.completion_tokens) == (11, 5)
    assert verdict.model == ("m" if backend == "bedrock" else "served-1")
    assert service.summary()["tasks"]["t"]["served_models"] == {verdict.model: 1}
    if backend == "bedrock":
        assert "/eu-west-1/bedrock/" in request["headers"]["authorization"]


@pytest.mark.parametrize("backend", ["openai", "azure_openai"])
@pytest.mark.parametrize("refused", [{"temperature"}, {"max_tokens"}, {"temperature", "max_tokens"}])
def test_a_reasoning_model_is_adapted_to_once(backend, refused, environment, monkeypatch):
    with JudgeServer(refuses=frozenset(refused)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        made = open_backend(backend)
        for _ in range(2):
            assert made.call(
                question("answer_equivalence", {"question": "", "answer": "", "gold": "1"}), 100
            ).text
        assert len(server.requests) == len(refused) + 2
        assert len(made.adaptations) == len(refused)
        last = server.requests[-1]["body"]
        assert ("temperature" in last) == ("temperature" not in refused)
        assert last.get("max_completion_tokens") == (400 if "max_tokens" in refused else None)


@pytest.mark.parametrize("backend", ["gemini", "bedrock"])
def test_a_model_without_a_temperature_is_adapted_to_once(backend, environment, monkeypatch):
    with JudgeServer(refuses=frozenset({"temperature"})) as server:
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", server.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        made = open_backend(backend)
        for _ in range(2):
            assert made.call(
                question("answer_equivalence", {"question": "", "answer": "", "gold": "1"}), 100
            ).text
        assert len(server.requests) == 3
        assert made.adaptations == ["no temperature: the model takes only its own"]


MISSING = [
    ("openai", "OPENAI_API_KEY", "OPENAI_API_KEY"),
    ("azure_openai", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_ENDPOINT"),
    ("gemini", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT"),
]


@pytest.mark.parametrize(("backend", "variable", "named"), MISSING)
def test_a_missing_setting_is_named(backend, variable, named, environment, monkeypatch):
    monkeypatch.delenv(variable)
    service = JudgeService({"t": f"m@{backend}"})

    async def run():
        async with service:
            verdict = await service.for_task("t").ask("answer_equivalence", question="", answer="2", gold="3")
            with pytest.raises(JudgeFatal, match=named):
                await service.check()
            return verdict

    assert asyncio.run(run()).status == "no_credentials"


def test_no_aws_credentials(environment, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    verdict, _, requests, service = play("bedrock", "success", environment)
    assert (verdict.status, requests, bool(service.ended)) == ("no_credentials", [], True)


def test_no_google_credentials(environment, monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(Failure) as raised:
        made = gemini.connect("m", 5)
        made.call(question("answer_equivalence", {"question": "", "answer": "", "gold": "1"}), 100)
    assert raised.value.kind == "no_credentials"


def test_another_name_than_the_deployment_is_refused(environment):
    with pytest.raises(Failure, match="AZURE_OPENAI_DEPLOYMENT is m"):
        connect("gpt-4o-mini", "azure_openai")


def test_a_bedrock_id_that_needs_a_profile(environment):
    from botocore.exceptions import ClientError

    message = "Invocation of model ID x with on-demand throughput isn't supported"
    error = ClientError({"Error": {"Code": "ValidationException", "Message": message}}, "Converse")
    made = bedrock._classified(error)
    assert (made.kind, "us." in str(made)) == ("fatal", True)


@pytest.mark.parametrize("spec", ["gpt-4o-mini", "x@gpt", "@openai", ""])
def test_a_setting_without_a_backend(spec):
    with pytest.raises(JudgeFatal, match="backends"):
        JudgeService({"t": spec}, JudgeOptions())
