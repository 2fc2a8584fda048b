"""A small server that speaks the wire protocols of the four judge backends, on the loopback only.

What it answers is told by the last user text: "scenario=NAME;" picks a line of SCENARIOS, whose last step
repeats; a text without a scenario is answered with "JUDGMENT: True" after `delay` seconds. `python -m
tests.judge_server DELAY [LOG]` runs it alone, prints its port and appends the hash of each question to LOG.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Step:
    """One answer: a status with an error, or 200 with content and a reason to stop.

    Or something that goes wrong.
    """

    status: int = 200
    content: str | None = "Reasons.\nJUDGMENT: True"
    finish: str = "stop"
    headers: dict[str, str] = field(default_factory=dict)
    code: str = ""
    message: str = "no"
    wrong: str = ""  # hang, drop, html, blocked


OK = Step()
SCENARIOS: dict[str, tuple[Step, ...]] = {
    "success": (OK,),
    "429_then_ok": (Step(429), Step(429), OK),
    "429_retry_after": (Step(429, headers={"Retry-After": "7"}), OK),
    "429_tomorrow": (Step(429, headers={"Retry-After": "86400"}),),
    "429_no_quota": (Step(429, code="insufficient_quota", message="You exceeded your current quota"),),
    "500_then_ok": (Step(500), OK),
    "503_then_ok": (Step(503), OK),
    "529_then_ok": (Step(529), OK),
    "500_for_ever": (Step(500),),
    "400_filter": (Step(400, code="content_filter", message="content_filter: the prompt was filtered"),),
    "400_too_long": (Step(400, code="context_length_exceeded", message="the prompt is too long"),),
    "400_unsupported": (Step(400, code="unsupported_parameter"), OK),
    "401": (Step(401, message="bad key sk-abcdef123456"),),
    "403": (Step(403),),
    "404": (Step(404, message="no such model"),),
    "empty": (Step(content=""),),
    "null": (Step(content=None),),
    "length": (Step(content="First I look at", finish="length"),),
    "safety": (Step(content=None, finish="filtered"),),
    "blocked": (Step(wrong="blocked"),),
    "hang_then_ok": (Step(wrong="hang"), OK),
    "drop_then_ok": (Step(wrong="drop"), OK),
    "html_then_ok": (Step(wrong="html"), OK),
    "html_for_ever": (Step(wrong="html"),),
    "declines": (Step(content="I'm sorry, but I can't assist with this content."),),
}
_FINISH = {
    "chat": {"stop": "stop", "length": "length", "filtered": "content_filter"},
    "gemini": {"stop": "STOP", "length": "MAX_TOKENS", "filtered": "SAFETY"},
    "bedrock": {"stop": "end_turn", "length": "max_tokens", "filtered": "content_filtered"},
}
_BEDROCK_ERRORS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}


class JudgeServer:
    """with JudgeServer() as server: server.url, server.requests (parsed bodies), server.count(text)."""

    def __init__(
        self,
        delay: float = 0.0,
        log: Path | None = None,
        refuses: frozenset[str] = frozenset(),
        answer: Callable[[str, dict[str, Any]], Step | dict[str, Any] | None] | None = None,
    ):
        self.delay = delay
        self.log = log
        self.refuses = refuses  # parameters that a chat model does not take
        self.answer = answer  # (path, body) → a step, a whole JSON body, or None for the usual answer
        self.failing = 0.0  # share of requests that end in a random failure
        self.random = random.Random(7)
        self.requests: list[dict[str, Any]] = []
        self.times: Counter[str] = Counter()
        self.in_flight = self.most_in_flight = 0
        self.port = 0
        self._ready = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> JudgeServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self.run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
        kind = "bedrock" if "/converse" in path else "gemini" if "generateContent" in path else "chat"
        text = _last_text(kind, body)
        self.requests.append({"path": path, "headers": headers, "body": body, "text": text})
        if self.log:
            with open(self.log, "a") as handle:
                handle.write(hashlib.sha256(text.encode()).hexdigest() + "\n")
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            step = (self.answer and self.answer(path, body)) or self._step(kind, body, text)
            self.times[text] += 1
            wrong = "" if isinstance(step, dict) else step.wrong
            if wrong == "hang":
                await asyncio.sleep(30)
            if wrong in ("drop", "hang"):
                return False
            if isinstance(step, dict):
                step, made = OK, json.dumps(step).encode()
                status, extra, payload = 200, {"Content-Type": "application/json"}, made
            else:
                status, extra, payload = _payload(kind, step)
        finally:
            self.in_flight -= 1
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(payload)}"]
        lines += [f"{name}: {value}" for name, value in {**extra, **step.headers}.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + payload)
        await writer.drain()
        return True

    def _step(self, kind: str, body: dict[str, Any], text: str) -> Step:
        sent = {**body, **body.get("inferenceConfig", {}), **body.get("generationConfig", {})}
        for name in self.refuses & sent.keys():
            return Step(400, code="unsupported_parameter", message=f"Unsupported parameter: '{name}'")
        if self.random.random() < self.failing:
            return self.random.choice(
                [Step(429), Step(500), Step(503), Step(wrong="drop"), Step(wrong="html")]
            )
        match = re.search(r"scenario=(\w+);", text)
        steps = SCENARIOS[match.group(1)] if match else (OK,)
        return steps[min(self.times[text], len(steps) - 1)]


def _last_text(kind: str, body: dict[str, Any]) -> str:
    if kind == "gemini":
        return body["contents"][-1]["parts"][-1]["text"]
    if "messages" not in body:
        return str(body.get("prompt", ""))
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def _payload(kind: str, step: Step) -> tuple[int, dict[str, str], bytes]:
    """(status, headers, body) in the words of a protocol."""
    json_type = {"Content-Type": "application/json"}
    if step.wrong == "html":
        return 200, {"Content-Type": "text/html"}, b"<html><body>Sign in</body></html>"
    if step.status != 200:
        error: dict[str, Any] = {
            "message": step.message,
            "code": step.code or None,
            "type": "x",
            "param": None,
        }
        if kind == "bedrock":
            extra = {"x-amzn-ErrorType": _BEDROCK_ERRORS.get(step.status, "InternalServerException")}
            return step.status, {**json_type, **extra}, json.dumps({"message": step.message}).encode()
        if kind == "gemini":
            error = {"code": step.status, "message": step.message, "status": step.code or "X"}
        return step.status, json_type, json.dumps({"error": error}).encode()
    finish = _FINISH[kind]["filtered" if step.wrong == "blocked" else step.finish]
    if kind == "chat":
        message = {"role": "assistant", "content": None if step.wrong == "blocked" else step.content}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
        made: dict[str, Any] = {"id": "x", "object": "chat.completion", "created": 1, "model": "served-1"}
        made |= {"choices": [choice], "usage": usage}
    elif kind == "gemini" and step.wrong == "blocked":
        made = {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "served-1"}
    elif kind == "gemini":
        parts = [] if step.content is None else [{"text": step.content}]
        made = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}]}
        made |= {
            "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5},
            "modelVersion": "served-1",
        }
    else:
        blocks = [] if step.content is None or step.wrong == "blocked" else [{"text": step.content}]
        made = {"output": {"message": {"role": "assistant", "content": blocks}}, "stopReason": finish}
        usage = {"inputTokens": 11, "outputTokens": 5, "totalTokens": 16}
        made |= {"usage": usage, "metrics": {"latencyMs": 1}}
    return 200, json_type, json.dumps(made).encode()


def main() -> None:
    server = JudgeServer(float(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)

    def announce() -> None:
        server._ready.wait()
        print(server.port, flush=True)

    threading.Thread(target=announce, daemon=True).start()
    asyncio.run(server.run())


if __name__ == "__main__":
    main()
