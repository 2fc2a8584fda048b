"""Prompts: messages, rendered by the model's own chat template to token ids, and cut in the middle where they
do not fit.

Example: chat.render([{"role": "system", "content": "You are a helpful assistant."}, {"role": "user",
"content": "2 + 3?"}]) gives Prompt(text="<|im_start|>system\\nYou are …<|im_start|>assistant\\n",
ids=array("I", [2, 87, …]), cut=0).

The tokenizer is any object with transformers' interface: apply_chat_template and a call that returns
input_ids and offset_mapping.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, str]

# markup of chat formats; where a prompt already carries some, the text was made for one model family and is
# rendered twice
MARKUP = {
    "chatml": ("<|im_start|>",),
    "llama3": ("<|start_header_id|>", "<|begin_of_text|>", "<|eot_id|>"),
    "llama4": ("<|header_start|>",),
    "llama2/mistral": ("[INST]", "<<SYS>>"),
    "gemma": ("<start_of_turn>",),
    "zephyr/phi": ("<|user|>", "<|assistant|>", "<|system|>"),
    "harmony": ("<|start|>system", "<|start|>user", "<|channel|>"),
    "deepseek": ("<｜User｜>", "<｜Assistant｜>"),
    "cohere": ("<|START_OF_TURN_TOKEN|>",),
    "granite": ("<|start_of_role|>",),
}
CHARACTERS_OF_A_TOKEN = 4  # about, for estimates
KEPT_OF_A_MESSAGE = 32  # tokens: the least that the cut leaves of the message that it shortens


class PromptError(Exception):
    """The template cannot render what the protocol asks for; the text is one line for a person."""


@dataclass(frozen=True)
class Unrendered:
    """What a server renders with its own template. room: most tokens of the prompt. arguments: of the
    template.
    """

    messages: tuple[Message, ...]
    room: int
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Prompt:
    """ids: token ids, none where a server renders. cut: tokens taken out of the middle, 0 where the prompt is
    whole. text: as rendered, before any cut.
    """

    text: str
    ids: array[int]
    cut: int = 0
    unrendered: Unrendered | None = None

    @property
    def size(self) -> int:
        """Tokens; an estimate where a server renders."""
        return len(self.ids) if self.unrendered is None else len(self.text) // CHARACTERS_OF_A_TOKEN


@dataclass(frozen=True)
class Chat:
    """How messages become token ids for one model, found once before the first prompt (see `prepare`).

    merged: the template takes no system role, so the system prompt stands at the head of the first user turn.
    add_bos: the tokenizer puts BOS before a text but the template writes none, so it is added here.
    unused: names among `arguments` that the template never reads.
    A model behind a server that renders for itself has no tokenizer here, and no template.
    """

    tokenizer: Any
    template: str
    system: str
    arguments: dict[str, Any] = field(default_factory=dict)
    merged: bool = False
    add_bos: bool = False
    unused: tuple[str, ...] = ()

    def messages(self, turns: list[str]) -> list[Message]:
        """User and assistant turns alternating, the user's first, behind the system prompt."""
        roles = ("user", "assistant")
        out = [{"role": roles[n % 2], "content": turn} for n, turn in enumerate(turns)]
        if not self.system:
            return out
        if self.merged:
            first = {"role": "user", "content": f"{self.system}\n\n{turns[0]}"}
            return [first, *out[1:]]
        return [{"role": "system", "content": self.system}, *out]

    def text(self, turns: list[str]) -> str:
        return _apply(self.tokenizer, self.messages(turns), self.template, self.arguments)

    def prompt(self, turns: list[str], room: int) -> Prompt:
        """The prompt of one sample, at most `room` tokens long."""
        text = self.text(turns)
        return self._fitted(text, self.tokenizer(text, add_special_tokens=False)["input_ids"], turns, room)

    def prompts(self, conversations: list[list[str]], rooms: list[int], batch: int = 256) -> list[Prompt]:
        """Many prompts: tokenised in batches, which a fast tokenizer spreads over all cores."""
        if self.tokenizer is None:
            return [self._unrendered(*pair) for pair in zip(conversations, rooms, strict=True)]
        out: list[Prompt] = []
        for start in range(0, len(conversations), batch):
            part = conversations[start : start + batch]
            texts = [self.text(turns) for turns in part]
            encoded = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
            for text, ids, turns, room in zip(
                texts, encoded, part, rooms[start : start + batch], strict=True
            ):
                out.append(self._fitted(text, ids, turns, room))
        return out

    def _unrendered(self, turns: list[str], room: int) -> Prompt:
        messages = tuple(self.messages(turns))
        text = "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)
        return Prompt(text, array("I"), unrendered=Unrendered(messages, room, self.arguments))

    def _fitted(self, text: str, ids: list[int], turns: list[str], room: int) -> Prompt:
        ids = one_bos(list(ids), self.tokenizer.bos_token_id, self.add_bos)
        if len(ids) <= room:
            return Prompt(text, array("I", ids))
        head, tail = cut_place(len(ids), room, self._longest_turn(text, turns, len(ids)))
        kept = array("I", ids[:head] + ids[tail:])
        return Prompt(text, kept, cut=tail - head)

    def _longest_turn(self, text: str, turns: list[str], length: int) -> tuple[int, int]:
        """Where the longest turn stands among the prompt's ids; the whole prompt where that cannot be
        told.
        """
        turn = max(turns, key=len).strip()
        at = text.rfind(turn) if turn else -1
        if at < 0:
            return 0, length
        try:
            offsets = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            spans = offsets["offset_mapping"]
        except (NotImplementedError, KeyError, TypeError):
            return 0, length  # a slow tokenizer knows no offsets
        shift = length - len(spans)  # a BOS that was added or taken away
        inside = [n for n, (start, end) in enumerate(spans) if start >= at and end <= at + len(turn)]
        if not inside:
            return 0, length
        return inside[0] + shift, inside[-1] + 1 + shift


def prepare(
    tokenizer: Any, system: str, template: str | None = None, arguments: dict[str, Any] | None = None
) -> Chat:
    """Finds out how the model's template behaves. PromptError where there is no template or it loses the
    user's text.
    """
    template = template or chat_template_of(tokenizer)
    if not template:
        raise PromptError(
            "the tokenizer has no chat template (a base model?): give one with --chat_template FILE"
        )
    arguments = arguments or {}
    unused = tuple(key for key in arguments if not re.search(rf"\b{re.escape(key)}\b", template))
    chat = Chat(tokenizer, template, system, arguments, unused=unused)
    probe = "captrack-user-turn"
    if system and not _takes_system(chat, probe):
        chat = Chat(tokenizer, template, system, arguments, merged=True, unused=unused)
    try:
        rendered = chat.text([probe])
        with_answer = chat.text([probe, "captrack-first-answer", "captrack-second-turn"])
    except Exception as error:
        raise PromptError(f"the chat template fails: {one_line(error)}") from error
    for part, where in (
        (probe, rendered),
        (system.strip(), rendered),
        ("captrack-first-answer", with_answer),
    ):
        if part not in where:
            raise PromptError(f"the chat template drops {part[:40]!r} from the prompt: it cannot be used")
    ids = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    bos = tokenizer.bos_token_id
    add_bos = bos is not None and list(ids[:1]) != [bos] and _adds_bos(tokenizer, bos)
    return Chat(tokenizer, template, system, arguments, chat.merged, add_bos, unused)


def chat_template_of(tokenizer: Any) -> str | None:
    """The template that the tokenizer would use for a plain chat, as text."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, dict):  # several named ones
        return template.get("default")
    return template or None


def one_bos(ids: list[int], bos: int | None, add: bool) -> list[int]:
    """Exactly one BOS in front where the model wants one: repeated ones are taken away, a lacking one is
    added.

    A model that wants none (no BOS token, or one that neither template nor tokenizer writes) gets none.
    """
    if bos is None:
        return ids
    leading = 0
    while leading < len(ids) and ids[leading] == bos:
        leading += 1
    if leading > 1:
        return ids[leading - 1 :]
    return [bos, *ids] if add and leading == 0 else ids


def cut_place(length: int, room: int, span: tuple[int, int]) -> tuple[int, int]:
    """(head, tail): ids[:head] + ids[tail:] has `room` ids, and what is taken lies in the middle of `span`.

    Where the span is too short to give that much, the cut goes through the middle of the whole prompt.
    """
    over = length - room
    start, end = span
    if end - start - over < KEPT_OF_A_MESSAGE:
        start, end = 0, length
    head = start + (end - start - over + 1) // 2
    return head, head + over


def foreign_markup(text: str, template: str = "") -> tuple[str, ...]:
    """Names of chat formats whose markup stands in a prompt; the model's own format is named "own (…)"."""
    found = []
    for name, marks in MARKUP.items():
        if any(mark in text for mark in marks):
            found.append(f"own ({name})" if any(mark in template for mark in marks) else name)
    return tuple(found)


def one_line(error: BaseException) -> str:
    """An exception as one line, at most 300 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


def _apply(tokenizer: Any, messages: list[Message], template: str, arguments: dict[str, Any]) -> str:
    return tokenizer.apply_chat_template(
        messages, chat_template=template, tokenize=False, add_generation_prompt=True, **arguments
    )


def _takes_system(chat: Chat, probe: str) -> bool:
    """False where the template refuses a system message, or leaves it out in silence."""
    try:
        return chat.system.strip() in chat.text([probe])
    except Exception:  # whatever a template raises: jinja2's own errors are not importable without jinja2
        return False


def _adds_bos(tokenizer: Any, bos: int) -> bool:
    return list(tokenizer("a")["input_ids"][:1]) == [bos]
