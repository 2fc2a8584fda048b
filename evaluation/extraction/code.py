"""Finds the program in an answer: fences of both kinds, markers, prose around, several blocks, a bare body.

    "Here you go:\\n```python\\ndef twice(n):\\n    return n + n\\n```\\nIt doubles."
    -> ["def twice(n):\\n    return n + n"]

Only text is looked at, line by line, so a scan costs linear time. Whether a reading is Python, and whether it
defines the function, is decided in the sandbox, by the parser: therefore programs() returns several readings,
best first.
"""

from __future__ import annotations

import builtins
import re
import textwrap
from dataclasses import dataclass

_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})[ \t]*([\w+#.-]*)")
_LANGUAGES = frozenset(
    ("python", "py", "python3", "python2", "py3", "ipython", "sage", "code", "text", "plaintext")
)
_OTHER_LANGUAGES = frozenset(
    (
        "bash",
        "sh",
        "shell",
        "console",
        "json",
        "yaml",
        "java",
        "javascript",
        "js",
        "c",
        "cpp",
        "output",
        "text",
    )
)
_MARKERS = (
    ("[BEGIN]", "[DONE]"),
    ("[PYTHON]", "[/PYTHON]"),
    ("[CODE]", "[/CODE]"),
    ("<code>", "</code>"),
    ("<python>", "</python>"),
)
# a line at the left margin that belongs to a program, not to prose around it
_CODE_LINE = re.compile(
    r"(?:def|class|async def) +\w|from +[\w.]+ +import\b|@\w"
    r"|import +[\w.]+(?: as \w+)?(?: *, *[\w.]+)* *(?:#.*)?$"
    r"|[A-Za-z_][\w.]* *(?::[^=:\n]{1,80})?[-+*/|&%]?=(?!=)"
)
_OPENS_CODE = re.compile(r"(?:def|class|async def|from|import) +\w")
_STATEMENT = re.compile(r"\s*(?:(?:return|raise|yield|pass)\b|\w+\()")
_MAY_FOLLOW = re.compile(
    r"[#)\]}\"']|(?:if|elif|else|for|while|try|except|finally|with|return|assert|raise|pass|global|del|match)\b|[\w.]+\("
)
_DEFINITION = re.compile(r"[ \t]*(?:async +)?(?:def|class) +(\w+)")
_QUOTES = ('"""', "'''")
_MOST_READINGS = 12


@dataclass(frozen=True)
class Block:
    """A marked-off part of an answer. language: lower case, "" if none. complete: its end was marked as
    well."""

    text: str
    language: str
    complete: bool


def programs(answer: str, wanted: str = "", prompt: str = "") -> list[str]:
    """The readings of `answer` as a Python program, best first, at most twelve; [] where nothing looks like
    code.

    wanted: the function that the tests call, if known. prompt: where a bare body finds its signature.
    """
    answer = answer.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    blocks = [block for block in _blocks(answer) if block.text.strip()]
    python = [block for block in blocks if block.language not in _OTHER_LANGUAGES] or blocks
    # the last complete block that defines the function, then an unfinished one, then what has no name to go
    # by
    python = python[::-1]
    defining = [block for block in python if _defines(block.text, wanted)]
    ordered = [block.text for block in defining if block.complete]
    ordered += [block.text for block in defining if not block.complete]
    others = [block.text for block in python if not _defines(block.text, wanted)][:_MOST_READINGS]
    if not blocks:
        ordered += _unfenced(answer, wanted)
    elif not defining:
        # code outside the fences, examples inside
        outside = _cut(answer, wanted)
        ordered += [text for text in outside if _defines(text, wanted)]
    if not defining and wanted and prompt:
        for text in others or [answer]:
            ordered += _completed(text, wanted, prompt)
    ordered += sorted(others, key=lambda text: not _looks_like_code(text))
    readings = list(dict.fromkeys(text.strip("\n") for text in ordered if text.strip()))
    code = any(map(_looks_like_code, [answer, *(block.text for block in blocks)]))
    return readings[:_MOST_READINGS] if code else []


def prelude(prompt: str, wanted: str) -> str:
    """What a prompt gives before the function that it asks for: imports and helpers; "" where there is
    none.
    """
    signature = _signature(prompt, wanted)
    return "" if signature is None else signature[0]


def wanted_name(tests: str) -> str:
    """The name that the tests call first in an assertion, "" if none: `assert set(sq(2)) == …` wants sq.

    A built-in function only if there is no other: `assert sum(10, 15) == 6` wants sum.
    """
    asserts = re.findall(r"^[ \t]*assert\b([^\n]{0,400})", tests, re.MULTILINE)
    called = [name for line in asserts for name in re.findall(r"(?<![\w.])([A-Za-z_]\w*)\(", line)]
    called = [name for name in called if name not in _WORDS]
    return next((name for name in called if name not in _BUILTINS), next(iter(called), ""))


_WORDS = ("and", "or", "in", "is", "not", "if", "else", "lambda")
_BUILTINS = frozenset((*dir(builtins), "Counter", "OrderedDict", "deque", "candidate"))


# --- blocks -------------------------------------------------------------------------------------------------
def _blocks(answer: str) -> list[Block]:
    for opening, closing in _MARKERS:
        if opening in answer:
            parts = [part.partition(closing) for part in answer.split(opening)[1:]]
            return [
                Block(inner.text if inner else text, "", bool(end))
                for text, end, _ in parts
                for inner in (_fenced(text) or [None])
            ]
        if closing in answer and opening == "[BEGIN]":
            # the opening marker stood in the prompt
            text = answer.partition(closing)[0]
            return _fenced(text) or [Block(text, "", True)]
    return _fenced(answer)


def _fenced(answer: str) -> list[Block]:
    """Every fenced block; a fence may also begin behind prose on its line or close behind code."""
    found: list[Block] = []
    inside: list[str] | None = None
    mark = language = ""
    for line in answer.split("\n"):
        if inside is None:
            match = _FENCE.match(line) or _FENCE.search(line, max(line.find("```"), 0))
            if not match:
                continue
            mark, language = match.group(1), match.group(2).lower()
            rest = line[match.end() :]
            inside = []
            if rest.strip() or (language and language not in _LANGUAGES | _OTHER_LANGUAGES):
                # code on the fence's own line; what looks like a language may be its first word
                start = match.end() if language in _LANGUAGES else match.end(1)
                body, closed, _ = line[start:].partition(mark)
                inside.append(body.strip())
                if closed:
                    found.append(Block(body.strip(), "", True))
                    inside = None
                elif not _OPENS_CODE.match(body.strip()):
                    # a title or an unknown language
                    inside.clear()
            continue
        bare = line.strip()
        if bare.startswith(mark) and not bare.strip(mark[0]):
            found.append(Block(textwrap.dedent("\n".join(inside)), language, True))
            inside = None
        elif bare.endswith(mark) and mark not in bare[: -len(mark)]:
            inside.append(line.rstrip()[: -len(mark)])
            found.append(Block(textwrap.dedent("\n".join(inside)), language, True))
            inside = None
        else:
            inside.append(line)
    if inside is not None:
        found.append(Block(textwrap.dedent("\n".join(inside)), language, False))
    return found


# --- answers without a fence --------------------------------------------------------------------------------
def _unfenced(answer: str, wanted: str) -> list[str]:
    readings = [answer]
    text = answer.strip()
    for quotes in _QUOTES:
        if text.startswith(quotes) and text.endswith(quotes) and len(text) >= 6:
            readings.append(text[3:-3])
    return readings + _cut(answer, wanted)


def _cut(answer: str, wanted: str) -> list[str]:
    """From the first line of code on: up to where prose follows the function, and to the end."""
    lines = answer.split("\n")
    starts = [number for number, line in enumerate(lines) if _CODE_LINE.match(line)]
    if not starts:
        # the definition may stand behind words on its line ("<code>def …", "Answer: def …")
        for number, line in enumerate(lines):
            at = line.find(f"def {wanted}(") if wanted else -1
            if at > 0:
                lines = [line[at:], *lines[number + 1 :]]
                starts = [0]
                break
        else:
            return []
    begin = starts[0]
    defining = [number for number in starts if _defines(lines[number], wanted)]
    anchor = defining[-1] if defining else starts[-1]
    end = next((n for n in range(anchor + 1, len(lines)) if not _continues(lines[n])), len(lines))
    readings = ["\n".join(lines[begin:end]), "\n".join(lines[begin:])]
    if anchor != begin:
        readings.append("\n".join(lines[anchor:end]))
    return readings


def _continues(line: str) -> bool:
    return not line.strip() or line[0] in " \t" or bool(_CODE_LINE.match(line) or _MAY_FOLLOW.match(line))


def _defines(text: str, wanted: str) -> bool:
    if not wanted:
        return bool(_DEFINITION.search(text))
    name = re.escape(wanted)
    pattern = (
        rf"^[ \t]*(?:(?:async +)?def +{name}\b|class +{name}\b|{name} *(?::[^=\n]*)?=(?!=))|\bas +{name}\b"
    )
    return bool(re.search(pattern, text, re.MULTILINE))


def _looks_like_code(text: str) -> bool:
    lines = text.split("\n")
    return any(_CODE_LINE.match(line.strip()) or _STATEMENT.match(line) for line in lines)


# --- a bare body under the prompt's signature ---------------------------------------------------------------
def _signature(prompt: str, wanted: str) -> tuple[str, str] | None:
    """(what stands before the function, the function's own lines) of a prompt that holds its signature."""
    prompt = prompt.replace("\r\n", "\n")
    blocks = [block.text for block in _fenced(prompt) if _defines(block.text, wanted)]
    lines = (blocks[-1] if blocks else prompt).rstrip().split("\n")
    head = re.compile(rf"(?:async +)?def +{re.escape(wanted)}\b") if wanted else None
    at = [number for number, line in enumerate(lines) if head and head.match(line)]
    if not at:
        return None
    before = lines[: at[-1]]
    first = next((number for number, line in enumerate(before) if _CODE_LINE.match(line)), len(before))
    end = next((n for n in range(at[-1] + 1, len(lines)) if not _signature_goes_on(lines[n])), len(lines))
    return "\n".join(before[first:]), "\n".join(lines[at[-1] : end])


def _signature_goes_on(line: str) -> bool:
    return not line.strip() or line[0] in " \t" or line[0] in ")#"


def _completed(body: str, wanted: str, prompt: str) -> list[str]:
    """The prompt's function with `body` in it; the answer's outer white space is gone, so its first indent
    may be.
    """
    signature = _signature(prompt, wanted)
    if signature is None:
        return []
    before, head = signature
    indents = [line[: len(line) - len(line.lstrip())] for line in head.split("\n")[1:] if line.strip()]
    # the last line of the head closes the docstring or the signature
    indent = indents[-1] if indents and indents[-1] else "    "
    top = f"{before}\n\n{head}\n" if before else f"{head}\n"
    lines = body.split("\n")
    stop = next(
        (n for n, line in enumerate(lines) if n and line.strip() and line[0] not in " \t"), len(lines)
    )
    first_only = [indent + lines[0].lstrip(), *lines[1:]]
    readings = [top + "\n".join(first_only)]
    if not _DEFINITION.match(body):
        # a whole function of another name is no body, though it would fit into one
        readings.append(top + textwrap.indent(textwrap.dedent(body), indent))
    return [*readings, top + "\n".join(first_only[:stop])]
