"""A model behind an OpenAI-compatible server, with the interface of engine.Engine: requests in, each answer
the moment it is finished.

    engine = Engine("http://127.0.0.1:8000/v1", "org/model")   # asks GET /v1/models: name, root, window
    for name, outcome in engine.run(requests, Sampling()): ...

Two ways of asking. A request with messages goes to /v1/chat/completions: the server renders it with its own
template, and only its replies tell how many tokens a prompt has, so a prompt is cut (in the middle of its
longest message, by characters) after the server has refused or counted it. A request with token ids alone
goes to /v1/completions as it stands: the same prompt, token for token, as vLLM gets offline. What a server
does not do is said, and kept in `notes`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from evaluation.inference.address import shown
from evaluation.inference.engine import Completion, EngineError, Failure, Name, Request, Sampling
from evaluation.inference.prompts import KEPT_OF_A_MESSAGE, Chat, Message
from evaluation.judge.backends import Failure as CallFailed
from evaluation.judge.backends.chat import Refused, sent
from evaluation.judge.pool import JudgingEnded, Pool

KEY = "CAPTRACK_INFERENCE_API_KEY"
CONCURRENCY = 256  # most requests at a time; how many really fly follows what the server bears (pool.py)
TIMEOUT = 1800.0  # seconds for one whole answer: 8,192 tokens at five a second
GRACE = 60.0  # seconds for what is in flight when the server turns out to be lost
SET_UP_ATTEMPTS = 3
TRIES = 32  # of one prompt that does not fit
ENOUGH = 0.95  # a shortened prompt takes at least this share of its room
ENDING = ("fatal", "no_credentials")  # kinds of failure that no other request would escape
LEAST = 16  # tokens: no answer is limited to less
# servers that take top_k, min_p and repetition_penalty, and fill them from the checkpoint's
# generation_config.json where a request does not name them
LIKE_VLLM = ("vllm", "sglang")
_TOO_LONG = re.compile(
    r"(maximum|model'?s) context|context[ _](length|window)|too (long|large)|max_model_len"
    r"|must be <=|at most \d+ (completion|output)? ?tokens|reduce the length",
    re.IGNORECASE,
)
log = logging.getLogger("captrack.inference")


@dataclass(frozen=True)
class Reply:
    """tokens that the server did not count are 0."""

    text: str
    finish: str
    prompt_tokens: int
    output_tokens: int


class TooLong:
    """In place of a Reply: prompt and answer together do not fit. Not a failure of the server."""


class Engine:
    """model: the served name, as asked for or as the only one there. root: what the server says it loaded.

    limit: the server's context length in tokens, None where it tells none; window: the one of this run.
    version: of vLLM. notes: what had to be asked otherwise. start_seconds is 0: somebody else started it.
    """

    def __init__(self, url: str, model: str | None):
        """EngineError where nobody answers, the key is refused, or the model cannot be told."""
        try:
            import httpx
            from openai import OpenAI
        except ImportError as error:
            raise EngineError(f"--base_url needs the package openai: {error}") from error
        self.url = url.rstrip("/")
        self._client = OpenAI(
            api_key=os.environ.get(KEY, "").strip() or "none",
            base_url=self.url,
            max_retries=0,  # the pool's business: it must see each 429
            timeout=httpx.Timeout(TIMEOUT, connect=min(TIMEOUT, 30.0)),
        )
        self.pool = Pool(CONCURRENCY)
        self.notes: list[str] = []
        self.served_as: set[str] = set()  # model ids in the replies
        self.seconds = self.start_seconds = 0.0
        self._lock = Lock()
        self._longest_answer = 10**9  # tokens that the server lets an answer have, as learnt so far
        self._renamed: dict[str, str | None] = {}  # parameter → the name it must have here, None: unknown
        self.model, self.root, self.limit, self.owner = self._find(model)
        self.window = self.limit or 0
        self.version = self._version()

    # ------------------------------------------------------------------------------------------- set-up

    def prepare(self, system: str, arguments: dict[str, Any]) -> Chat:
        """How the server's own template takes system prompt and arguments, found out by its count of tokens.

        EngineError where it refuses the arguments or a plain question.
        """
        user = {"role": "user", "content": "captrack-user-turn"}
        self.count([user])
        merged = bool(system) and not self._takes_system(system, user)
        chat = Chat(None, "", system, arguments, merged)
        plain = chat.messages([user["content"]])
        if not arguments:
            return chat
        try:
            counted = self._sync(plain, 1, {"chat_template_kwargs": arguments})
        except CallFailed as failure:
            raise EngineError(
                f"--chat_template_kwargs: {shown(self.url)} does not take them ({failure}): set them where"
                " the server is started, or render here with --tokenizer"
            ) from failure
        tokens = counted.prompt_tokens if isinstance(counted, Reply) else 0
        # what changes the prompt changes its length, as far as can be told from here
        return replace(chat, unused=tuple(arguments) if tokens and tokens == self.count(plain) else ())

    def check_rendered(self, chat: Chat) -> list[str]:
        """Warnings, for prompts that are rendered here. EngineError where the server takes no token ids."""
        turns = ["captrack-user-turn"]
        ids = chat.prompt(turns, self.window).ids.tolist()
        try:
            self._sync(ids, 1)
        except (CallFailed, EngineError) as error:
            raise EngineError(f"--tokenizer: /v1/completions does not take token ids here: {error}") from None
        counted = self._sync(chat.messages(turns), 1, {"chat_template_kwargs": chat.arguments})
        there = counted.prompt_tokens if isinstance(counted, Reply) else 0
        if there and there != len(ids):
            return [
                f"--tokenizer renders a short question to {len(ids)} tokens, the server to {there}: another"
                " tokenizer or template, or one that adds a date or a default system prompt"
            ]
        return []

    def count(self, messages: list[Message]) -> int | None:
        """Tokens of a prompt as the server renders it; None where it is too long or does not tell.
        EngineError where the server refuses it for another reason.
        """
        try:
            reply = self._sync(messages, 1)
        except CallFailed as failure:
            raise EngineError(f"{shown(self.url)}, a plain question: {failure}") from failure
        return (reply.prompt_tokens or None) if isinstance(reply, Reply) else None

    def record(self) -> dict[str, Any]:
        """What run.json keeps of the server."""
        return {
            "url": shown(self.url),
            "model": self.model,
            "root": self.root,
            "max_model_len": self.limit,
            "vllm": self.version,
            "served_as": sorted(self.served_as),
            "notes": list(self.notes),
            "calls": self.pool.counters.calls,
            "retries": self.pool.counters.retries,
            "failures": dict(self.pool.counters.failures),
        }

    def close(self) -> None:
        self.pool.close()
        self._client.close()

    def _find(self, model: str | None) -> tuple[str, str | None, int | None, str]:
        try:
            cards = list(self._in_pool(self._models))
        except CallFailed as failure:
            raise EngineError(f"{shown(self.url)}: {failure}") from failure
        names = [card.id for card in cards]
        if model is None:
            if len(names) != 1:
                there = ", ".join(names[:20]) or "no list of models (GET /v1/models)"
                raise EngineError(f"{shown(self.url)} serves {there}: choose one with --model")
            model = names[0]
        by_name = {card.id: card for card in cards}
        if model not in by_name:
            if cards:
                self._note(f"{model} is not in the server's list of models ({', '.join(names[:5])})")
            return model, None, None, ""
        card, limit = by_name[model], None
        while card is not None and limit is None:  # an adapter has its base's window
            limit = getattr(card, "max_model_len", None)
            card = by_name.pop(getattr(card, "parent", None) or "", None)
        card = next(card for card in cards if card.id == model)
        return model, getattr(card, "root", None), limit, str(getattr(card, "owned_by", "") or "").lower()

    def _models(self) -> list[Any]:
        try:
            return list(sent(lambda: self._client.models.list()).data or [])
        except CallFailed as failure:
            if failure.status in (404, 405, 501):
                return []
            raise
        except (AttributeError, TypeError):
            return []

    def _version(self) -> str | None:
        if self.owner != "vllm":
            return None
        parts = urlsplit(self.url)
        root = urlunsplit((parts.scheme, parts.netloc, parts.path.removesuffix("/v1"), "", ""))
        try:
            got = self._client.with_options(base_url=root, timeout=10).get("/version", cast_to=object)
            return str(got["version"])  # type: ignore[index]
        except Exception:  # a router need not hand it through
            return None

    def _takes_system(self, system: str, user: Message) -> bool:
        """False where the template refuses a system message, or leaves it out in silence: a longer one then
        costs no more tokens.
        """
        counts = []
        for text in (system, system + " and so on" * 20):
            try:
                reply = self._sync([{"role": "system", "content": text}, user], 1)
            except CallFailed as failure:
                if failure.kind != "rejected":
                    raise EngineError(f"{shown(self.url)}, a plain question: {failure}") from failure
                return False
            counts.append(reply.prompt_tokens if isinstance(reply, Reply) else 0)
        return counts[0] != counts[1] or not counts[0]

    def _sync(
        self, prompt: list[Message] | list[int], limit: int, extra: dict[str, Any] | None = None
    ) -> Reply | TooLong:
        return self._in_pool(lambda: self._send(prompt, limit, Sampling(), extra or {}))

    def _in_pool(self, job: Any) -> Any:
        """The job's result, before the run: a wrong address or key is to be told within seconds."""
        pool = Pool(1, attempts=SET_UP_ATTEMPTS)
        try:
            return asyncio.run(pool.run(job))
        except JudgingEnded as ended:
            raise self._lost(ended) from ended
        except CallFailed as failure:
            if failure.kind in ENDING:
                raise self._lost(failure) from failure
            raise
        finally:
            pool.close()

    def _lost(self, ended: Exception) -> EngineError:
        hint = f"; the key is taken from {KEY}" if "HTTP 401" in str(ended) else ""
        return EngineError(f"{shown(self.url)}: {ended}{hint}")

    # ------------------------------------------------------------------------------------------- the run

    def run(
        self, requests: Iterable[Request], sampling: Sampling
    ) -> Iterator[tuple[Name, Completion | Failure]]:
        """Answers in the order in which they are finished. EngineError where the server is lost; what is in
        flight then still arrives.
        """
        waiting = iter(requests)
        lost: EngineError | None = None
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            loop.set_exception_handler(_quiet_when_interrupted)
            running: set[asyncio.Task[tuple[Name, Completion | Failure]]] = set()
            until = math.inf
            while True:
                while lost is None and len(running) < CONCURRENCY and (request := next(waiting, None)):
                    running.add(loop.create_task(self._outcome(request, sampling)))
                if not running or time.monotonic() > until:
                    break
                began = time.perf_counter()
                done, running = runner.run(_first(running))
                self.seconds += time.perf_counter() - began
                for task in done:
                    try:
                        yield task.result()
                    except JudgingEnded as ended:
                        until = time.monotonic() + GRACE if lost is None else until
                        lost = lost or self._lost(ended)
        if lost:
            raise lost

    async def _outcome(self, request: Request, sampling: Sampling) -> tuple[Name, Completion | Failure]:
        try:
            if request.unrendered is None:
                reply = await self._ask(request.ids.tolist(), request.max_tokens, sampling)
                return request.name, _completion(reply) if isinstance(reply, Reply) else _TOO_LONG_HERE
            return request.name, await self._conversation(request, sampling)
        except CallFailed as failure:
            if failure.kind in ENDING:
                raise JudgingEnded(str(failure)) from failure
            return request.name, Failure(str(failure))

    async def _conversation(self, request: Request, sampling: Sampling) -> Completion | Failure:
        """Asks as it stands; where prompt and answer do not fit, with a shorter prompt (it may take
        request.unrendered.room tokens, as offline), then with what is left of the window for the answer.
        """
        assert request.unrendered is not None
        room, arguments = request.unrendered.room, request.unrendered.arguments
        extra = {"chat_template_kwargs": arguments} if arguments else {}
        whole, limit = list(request.unrendered.messages), min(request.max_tokens, self._longest_answer)

        async def count(messages: list[Message]) -> int | None:
            reply = await self._ask(messages, 1, sampling, extra)
            return reply.prompt_tokens if isinstance(reply, Reply) else None

        messages, reply = whole, await self._ask(whole, limit, sampling, extra)
        tokens = reply.prompt_tokens if isinstance(reply, Reply) else await count(whole)
        if tokens is None or tokens > room:
            messages, tokens = await fitted(whole, tokens, room, count)
            if tokens is None:
                return _TOO_LONG_HERE
            limit = min(limit, self.window - tokens)
            reply = await self._ask(messages, limit, sampling, extra)
        elif isinstance(reply, TooLong) and tokens and self.window - tokens < limit:
            limit = self.window - tokens
            reply = await self._ask(messages, limit, sampling, extra)
        while isinstance(reply, TooLong) and limit > LEAST:
            # not for the window, as far as it is known: the server allows no answer of this length
            limit = max(LEAST, limit // 2)
            reply = await self._ask(messages, limit, sampling, extra)
            if isinstance(reply, Reply):
                self._longest_answer = min(self._longest_answer, limit)
                self._note(f"the server refuses longer answers: at most {limit} tokens are asked for")
        if isinstance(reply, TooLong):
            return _TOO_LONG_HERE
        gone = _length(whole) - _length(messages)
        return replace(_completion(reply), cut=math.ceil(gone * tokens / _length(messages)) if gone else 0)

    async def _ask(
        self,
        prompt: list[Message] | list[int],
        limit: int,
        sampling: Sampling,
        extra: dict[str, Any] | None = None,
    ) -> Reply | TooLong:
        return await self.pool.run(lambda: self._send(prompt, limit, sampling, extra or {}))

    def _send(
        self, prompt: list[Message] | list[int], limit: int, sampling: Sampling, extra: dict[str, Any]
    ) -> Reply | TooLong:
        """One request (another one where a parameter was refused), in a thread of the pool."""
        rendered = bool(prompt) and isinstance(prompt[0], int)
        while True:
            body = self._parameters(limit, sampling, {} if rendered else extra)
            try:
                if rendered:
                    answer = sent(
                        lambda b=body: self._client.completions.create(model=self.model, prompt=prompt, **b)
                    )
                else:
                    answer = sent(
                        lambda b=body: self._client.chat.completions.create(
                            model=self.model, messages=prompt, **b
                        )
                    )
            except Refused as refused:
                if _TOO_LONG.search(str(refused.failure)):
                    return TooLong()
                if not self._learn(refused, body):
                    raise refused.failure from None
                continue
            except CallFailed as failure:
                if failure.kind == "rejected" and _TOO_LONG.search(str(failure)):
                    return TooLong()
                raise
            return self._reply(answer, rendered, limit)

    def _parameters(self, limit: int, sampling: Sampling, extra: dict[str, Any]) -> dict[str, Any]:
        """Everything that vLLM's offline call sets is named, so that no default of the server steps in."""
        wanted: dict[str, Any] = {
            "max_tokens": limit,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if sampling.temperature > 0:
            wanted["seed"] = sampling.seed
        beyond = dict(extra)
        if self.owner in LIKE_VLLM:
            beyond |= {"top_k": sampling.top_k or -1, "min_p": 0.0, "repetition_penalty": 1.0}
        elif sampling.top_k:
            beyond["top_k"] = sampling.top_k
        with self._lock:
            names = dict(self._renamed)
        body = {new: value for name, value in wanted.items() if (new := names.get(name, name))}
        beyond = {new: value for name, value in beyond.items() if (new := names.get(name, name))}
        return {**body, "extra_body": beyond} if beyond else body

    def _learn(self, refused: Refused, body: dict[str, Any]) -> bool:
        """Whether the refused parameter can be named otherwise or left out from now on."""
        known = [name for name in (*body, *body.get("extra_body", {})) if name != "extra_body"]
        text = str(refused.failure)
        name = (
            refused.parameter if refused.parameter in known else next((n for n in known if n in text), None)
        )
        if name in (None, "max_completion_tokens", "chat_template_kwargs"):
            return False
        with self._lock:
            first = name not in self._renamed
            self._renamed[name] = "max_completion_tokens" if name == "max_tokens" else None
        if first and name == "max_tokens":
            self._note("max_completion_tokens in place of max_tokens")
        elif first:
            self._note(f"the server takes no {name}: its own holds")
        return True

    def _reply(self, answer: Any, rendered: bool, limit: int) -> Reply:
        choices = getattr(answer, "choices", None)
        if not isinstance(choices, list) or not choices:
            raise CallFailed("retry", "the server's reply is no answer (no choices)")
        finish = choices[0].finish_reason or "stop"
        if finish == "content_filter":
            raise CallFailed("filtered", "a content filter of the server stopped the answer")
        if finish in ("abort", "error"):
            raise CallFailed("retry", f"the server ended the request ({finish})")
        text = choices[0].text if rendered else self._text(choices[0].message, finish)
        usage = getattr(answer, "usage", None)
        prompt_tokens = getattr(usage, "prompt_tokens", 0) or 0
        output_tokens = getattr(usage, "completion_tokens", 0) or 0
        if finish == "length" and 0 < output_tokens < limit and prompt_tokens + output_tokens < self.window:
            self._note(f"the server itself ends answers at {output_tokens} tokens")
        if served := getattr(answer, "model", None):
            with self._lock:
                self.served_as.add(served)
        return Reply(text or "", finish if finish == "length" else "stop", prompt_tokens, output_tokens)

    def _text(self, message: Any, finish: str) -> str:
        """The answer as it was generated, thoughts that the server has parted from it included."""
        content = message.content or getattr(message, "refusal", None) or ""
        thought = getattr(message, "reasoning", None) or getattr(message, "reasoning_content", None)
        if not thought:
            return content
        self._note("the server parts thoughts from answers: they are joined again, between <think> marks")
        if not content and finish == "length":
            return f"<think>\n{thought}"
        return f"<think>\n{thought}\n</think>\n\n{content}"

    def _note(self, text: str) -> None:
        with self._lock:
            if text in self.notes:
                return
            self.notes.append(text)
        log.warning("warning: %s", text)


_TOO_LONG_HERE = Failure("prompt and answer do not fit into the server's context window")


async def fitted(
    whole: list[Message],
    tokens: int | None,
    room: int,
    count: Callable[[list[Message]], Awaitable[int | None]],
) -> tuple[list[Message], int | None]:
    """The messages with so much less in the middle that they have at most `room` tokens, and hardly fewer;
    and their count. The count is None where that cannot be reached.

    tokens: of the whole, None where the server refuses even to count it. count: asks the server.
    """
    length, best, tries_left = _length(whole), None, TRIES
    while tries_left > 0:
        tries_left -= 1
        # uncounted: a quarter less each time; counted: characters and tokens are taken as proportional
        length = length * 3 // 4 if tokens is None else int(length * room * 0.99 / max(tokens, 1))
        messages = shortened(whole, _length(whole) - length)
        if messages is None:
            break
        tokens = await count(messages)
        if tokens is not None and tokens <= room:
            best = max(best or (0, messages), (tokens, messages), key=lambda pair: pair[0])
            if tokens >= room * ENOUGH or not tokens:
                break
            tries_left = min(tries_left, 3)
    return (best[1], best[0]) if best else (whole, None)


def shortened(messages: list[Message], drop: int) -> list[Message] | None:
    """The messages without `drop` characters of the longest turn's middle; None where too little is left."""
    turns = [n for n, message in enumerate(messages) if message["role"] != "system"]
    longest = max(turns, key=lambda n: len(messages[n]["content"]))
    text = messages[longest]["content"]
    kept = len(text) - max(1, drop)
    if kept < KEPT_OF_A_MESSAGE:
        return None
    head = (kept + 1) // 2
    cut = {**messages[longest], "content": text[:head] + text[len(text) - (kept - head) :]}
    return [*messages[:longest], cut, *messages[longest + 1 :]]


def _quiet_when_interrupted(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A signal ends whatever the loop is doing, and that task's exception is nobody's business then."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


async def _first(tasks: set[asyncio.Task[Any]]) -> tuple[set[asyncio.Task[Any]], set[asyncio.Task[Any]]]:
    return await asyncio.wait(tasks, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)


def _completion(reply: Reply) -> Completion:
    return Completion(reply.text, reply.finish, reply.prompt_tokens, reply.output_tokens)


def _length(messages: list[Message]) -> int:
    return sum(len(message["content"]) for message in messages)
