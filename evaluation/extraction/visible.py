"""The visible answer: what a person sees of a model's output once its thinking is taken away.

Done once, before every metric. Known forms of thinking: <think>…</think> (also without its opening tag, which
chat templates put into the prompt), <thinking>, <thought>, <reasoning>, [THINK]…[/THINK], harmony channels
(<|channel|>analysis … <|channel|>final<|message|>…) and their remains when special tokens were dropped
("analysis…assistantfinal…"). What nobody sees goes as well: zero-width characters and a byte order mark at
either end, and the end-of-turn tokens that some engines leave behind the text. Every scan is linear.
"""

from __future__ import annotations

import re

_TAGS = ("think", "thinking", "thought", "reasoning")
_NAMES = "|".join(_TAGS)
_OPEN = re.compile(rf"<(?:{_NAMES})>|\[THINK\]", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)
_CHANNEL_FINAL = re.compile(r"<\|channel\|>\s*final\b[^<]{0,200}<\|message\|>")
_CHANNEL_ANY = re.compile(r"<\|channel\|>\s*(?:analysis|commentary|thought)\b")
_HARMONY_END = re.compile(r"<\|(?:return|end|call|start)\|>")
# harmony with its special tokens dropped by the detokeniser
_BARE_FINAL = "assistantfinal"
_BARE_START = re.compile(r"\s*(?:assistant)?(?:analysis|commentary)(?=[A-Z0-9\s\"'(<*\[]|[a-z])")
# white space, and what has no width: soft hyphen, zero-width space and joiners, word joiner, byte order mark
_UNSEEN = "".join(map(chr, filter(lambda code: chr(code).isspace(), range(0x3001)))) + (
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
)
_END_OF_TURN = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<|return|>",
    "<|end_of_turn|>", "<end_of_turn>", "<eos>", "<｜end▁of▁sentence｜>", "</s>",
)  # fmt: skip


def visible_answer(text: str) -> tuple[str, str]:
    """Returns (answer, state): state is "ok", "empty" or "truncated" (a thought that never ends)."""
    answer, truncated = _strip_thinking(text)
    answer = trimmed(answer)
    if answer:
        return answer, "ok"
    return "", "truncated" if truncated else "empty"


def trimmed(text: str) -> str:
    """The text without white space and zero-width characters around it and end-of-turn tokens behind it."""
    text = text.strip(_UNSEEN)
    if not text.endswith(">"):
        return text  # every end-of-turn token ends so
    # HTML's struck-out text ends as LLaMA's turns do
    tokens = tuple(token for token in _END_OF_TURN if token != "</s>" or "<s>" not in text)
    end = len(text)
    while text.endswith(tokens, 0, end):
        end -= next(len(token) for token in tokens if text.endswith(token, 0, end))
        while end and text[end - 1] in _UNSEEN:
            end -= 1
    return text[:end]


def _strip_thinking(text: str) -> tuple[str, bool]:
    if "<" not in text and "[" not in text and not _BARE_START.match(text):
        return text, False  # nearly every answer: no mark of thinking at all
    finals = list(_CHANNEL_FINAL.finditer(text))
    if finals:
        rest = text[finals[-1].end() :]
        end = _HARMONY_END.search(rest)
        return _strip_tags(rest[: end.start()] if end else rest)
    if _CHANNEL_ANY.search(text):
        return "", True
    if _BARE_START.match(text):
        at = text.rfind(_BARE_FINAL)
        if at >= 0:
            return _strip_tags(text[at + len(_BARE_FINAL) :])
    return _strip_tags(text)


def _strip_tags(text: str) -> tuple[str, bool]:
    closes = list(_CLOSE.finditer(text))
    opens = list(_OPEN.finditer(text))
    if not closes and not opens:
        return text, False
    if not opens:
        # the opening tag stood in the prompt: all before the last close is thought
        return text[closes[-1].end() :], False
    kept: list[str] = []
    position = 0
    if closes and closes[0].start() < opens[0].start():
        position = closes[0].end()
    ends = iter(closes)
    for opening in opens:
        if opening.start() < position:
            continue
        kept.append(text[position : opening.start()])
        closing = next((close for close in ends if close.start() >= opening.end()), None)
        if closing is None:
            return "".join(kept), True
        position = closing.end()
    kept.append(text[position:])
    return "".join(kept), False
