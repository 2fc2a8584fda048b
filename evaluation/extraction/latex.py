r"""Finding the final answer of a mathematical solution in free text.

Example: "Step 2: so x = 3 or\n**Final Answer:** The answer is $\boxed{\frac{1}{2}}$. I hope it helps."
gives r"\frac{1}{2}". A reading is one text, never a choice among several that happens to fit the gold.
Every scan is linear.
"""

# ruff: noqa: E501, SIM905  (word lists and patterns)

from __future__ import annotations

import re

from evaluation.extraction.courtesies import without_heading

# an answer is a line, not an essay; what is longer is cut before any closer look
MAX_ANSWER = 2000
MAX_WORDS, MAX_VALUE = 20, 300

_BOX = re.compile(r"\\(?:boxed|fbox)\s*")
_MARKS = "*_`#"
# the word of the label in the languages of the task data
_WORDS = r"answer|antwort|r[ée]ponse|respuesta|resposta|risposta|odpowied[źz]|ответ|відповідь|cevap|答案|答え|回答|解答|उत्तर"
# strong: a label that stands for nothing but the final answer
_LABEL = re.compile(rf"(?:{_WORDS})(?!\w)[*_`]{{0,4}}[^\S\n]{{0,3}}(?:[:：=]|[-–—](?=\s))", re.IGNORECASE)
_FIELD = re.compile(r"[\"'](?:final_?)?answer[\"']\s{0,20}:\s{0,20}", re.IGNORECASE)
# weak: words of conclusion, used only where there is no label and no box
_PHRASES = (
    re.compile(
        r"\b(?:final|correct|desired|required|our)?\s?answer\b\s?(?:is|would be|will be|becomes|equals|comes to)\b",
        re.IGNORECASE,
    ),
    re.compile(r"\bfinal answer\b", re.IGNORECASE),
    re.compile(r"\b(?:therefore|thus|hence|consequently|in conclusion|so)\b(?=[\s,:])", re.IGNORECASE),
)
_REMARK = re.compile(
    r"\s*(?:i hope|hope (?:this|that|it)|let me know|feel free|please\b|if you\b|note\b|thank|would you|do you"
    r"|is there anything|good luck|happy to|this (?:completes|concludes)|glad|q\.?e\.?d)",
    re.IGNORECASE,
)
_STEP_HEAD = re.compile(r"[#*\s]{0,12}step\s{1,3}\d{1,4}[*\s]{0,4}[:.)]\s?", re.IGNORECASE)
_MATH_SPAN = re.compile(
    r"\$\$([^$]{1,2000})\$\$|\$([^$]{1,2000})\$|\\\((.{1,2000}?)\\\)|\\\[(.{1,2000}?)\\\]", re.S
)
_NUMBER = re.compile(
    r"(?<![\w.,])[-−+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:/\d+)?%?(?![\w])(?!\.\d)"
)
_CODE_SIGNS = re.compile(r"[\\_{}\[\]()]")
_COPULA = re.compile(
    r"\b(?:is|are|equals|equal to|becomes|be|gives|get|have|obtain|yields)\b[\s:]{1,3}|=\s?", re.IGNORECASE
)
_WORD = re.compile(r"\\?[A-Za-z]{3,}")
_NAMES = frozenset(
    "sin cos tan cot sec csc log exp sqrt arcsin arccos arctan sinh cosh tanh and mod gcd lcm max min".split()
)


def boxes(text: str) -> list[tuple[int, str]]:
    r"""(position, content) of each \boxed{…} that closes, in order. One pass over the braces."""
    starts = list(_BOX.finditer(text))
    if not starts:
        return []
    closing = _closing_braces(text)
    found = []
    for match in starts:
        at = match.end()
        if at < len(text) and text[at] == "{":
            if at in closing:
                found.append((match.start(), text[at + 1 : closing[at]].strip()))
        elif at < len(text) and text[at].isalnum() and match.group().endswith(" "):
            found.append((match.start(), text[at]))  # \boxed 5
    return found


def _closing_braces(text: str) -> dict[int, int]:
    """Opening brace -> its closing brace, for all that close."""
    stack: list[int] = []
    pairs: dict[int, int] = {}
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 2
            continue
        if char == "{":
            stack.append(position)
        elif char == "}" and stack:
            pairs[stack.pop()] = position
        position += 1
    return pairs


def last_box(text: str) -> str | None:
    r"""Content of the last \boxed{…} that closes, boxes inside it opened; None where there is none."""
    found = boxes(text)
    if not found:
        return None
    content = found[-1][1]
    for _ in range(3):
        inner = boxes(content)
        if not inner:
            break
        content = inner[-1][1]
    return content


def final_answer(text: str) -> str | None:
    """The answer that a visible response states; None where nothing can be read.

    The later of the last box and the last labelled answer; else the last phrase of conclusion; else the
    last line that is not a remark. The published order (label, box, phrase, line), with the last in place
    of the first.
    """
    text = without_heading(text).strip()
    if not text:
        return None
    strong = _labelled(text)
    found = boxes(text)
    if found:
        strong.append((found[-1][0], last_box(text) or ""))
    strong = [(position, value) for position, value in strong if value]
    if strong:
        return reduce_phrase(max(strong)[1])
    return _concluded(text)


def _labelled(text: str) -> list[tuple[int, str]]:
    """(position, value) of the last `Answer: …` and of the last "answer": … of a JSON object."""
    found = []
    labels = list(_LABEL.finditer(text))
    # the last label may be an empty echo of the format; the one before it then counts
    for match in labels[:-4:-1]:
        value = _line_after(text, match.end())
        if value:
            found.append((match.start(), value))
            break
    fields = list(_FIELD.finditer(text))
    for match in fields[:-4:-1]:
        value = _json_value(text, match.end())
        if value:
            found.append((match.start(), value))
            break
    return found


def _line_after(text: str, at: int) -> str:
    """The rest of the line, or the first line with something on it after an empty rest; display
    mathematics whole.
    """
    for line in text[at : at + 4 * MAX_ANSWER].split("\n")[:6]:
        value = strip_marks(line)
        if value in ("$$", "\\["):
            closing = "$$" if value == "$$" else "\\]"
            start = text.find(value, at) + 2
            end = text.find(closing, start)
            return text[start:end].strip() if end >= 0 else ""
        if value and not value.startswith("```"):
            return value[:MAX_ANSWER]
    return ""


def _json_value(text: str, at: int) -> str:
    r"""A JSON value read leniently: models write LaTeX into JSON with single and with doubled backslashes."""
    rest = text[at : at + MAX_ANSWER]
    if rest[:1] in ("'", '"'):
        quote = rest[0]
        end = 1
        while end < len(rest) and rest[end] != quote:
            end += 2 if rest[end] == "\\" and rest[end + 1 : end + 2] == quote else 1
        value = rest[1:end]
    else:
        line = rest.split("\n", 1)[0]
        value = line.rstrip().rstrip("},`").rstrip()
        if value in ("[", "{", "null", ""):
            return ""
    return strip_marks(value.replace("\\\\", "\\"))


def strip_marks(text: str) -> str:
    """Outer white space, Markdown marks, quote signs and a closing full stop, comma or semicolon taken away."""
    text = text.strip().lstrip(_MARKS + ">：: ")
    while text:
        mark = text[-1] in "*`" or (text[-1] == "_" and not text.endswith("\\_"))
        stop = text[-1] in ".,;:。，；" and not text.endswith(("\\,", "\\;", "\\:", "..."))
        if mark or stop:
            text = text[:-1]
        elif text[-1].isspace():
            text = text.rstrip()
            text = text.removesuffix("\\")
        else:
            break
    return text.replace("**", "").strip()


def _concluded(text: str) -> str | None:
    lines = _answer_lines(text)
    if not lines:
        return None
    tail = "\n".join(lines[-12:])[-4 * MAX_ANSWER :]
    for number, pattern in enumerate(_PHRASES):
        matches = list(pattern.finditer(tail))
        if matches:
            value = _line_after(tail, matches[-1].end())
            value = re.sub(r"^(?:is|are|that|:|,|=)\s+", "", value, flags=re.IGNORECASE)
            # "therefore" opens many lines; only the last statement concludes
            if value and (number < 2 or matches[-1].end() >= len(tail) - len(lines[-1])):
                return _unless_essay(reduce_phrase(value))
    last = _STEP_HEAD.sub("", lines[-1], count=1)
    return _unless_essay(reduce_phrase(strip_marks(last)))


def _unless_essay(value: str) -> str | None:
    """A response that breaks off leaves prose where its answer should be: that is no answer."""
    return value if value and len(value.split()) <= MAX_WORDS and len(value) <= MAX_VALUE else None


def _answer_lines(text: str) -> list[str]:
    """Lines with text, without the remarks that close an answer. Display mathematics over several lines is
    one line.
    """
    joined = re.sub(
        r"\\\[\s{0,9}\n|\n\s{0,9}\\\]|\n\s{0,9}(?=\$\$\s{0,9}(?:\n|$))", " ", text[-8 * MAX_ANSWER :]
    )
    lines = [line.strip() for line in joined.split("\n")]
    lines = [line for line in lines if line and not line.startswith("```")]
    while len(lines) > 1 and _REMARK.match(lines[-1]):
        lines.pop()
    if lines:
        sentences = re.split(r"(?<=[.!?])\s(?=[A-Z])", lines[-1])
        while len(sentences) > 1 and _REMARK.match(sentences[-1]):
            sentences.pop()
        lines[-1] = " ".join(sentences)
    return lines


def reduce_phrase(value: str) -> str:
    """The value inside a phrase: its box, its formula, what stands after "is", its only number; else the
    phrase itself.
    """
    value = strip_marks(value[:MAX_ANSWER])
    box = last_box(value)
    if box:
        return strip_marks(box)
    value = (
        re.sub(r"^(?:the )?(?:final )?answer (?:is|:)\s{0,3}:?", "", value, flags=re.IGNORECASE).strip()
        or value
    )
    whole = _one_span(value)
    if whole:
        return strip_marks(whole)
    if not _has_prose(value):
        return value
    spans = [next(group for group in match.groups() if group) for match in _MATH_SPAN.finditer(value)]
    outside = _MATH_SPAN.sub(" ", value)
    if spans:
        if len(spans) > 1 and not _WORD.search(re.sub(r"\b(?:and|or)\b", "", outside)):
            return value
        if re.match(r"\s*(?:[\d\\$(])", value) and len(spans) == 1 and not re.match(r"\s*\$\s?\d", value):
            return value  # a formula and its unit
        if not re.match(r"\s*\$", value) or _has_prose(outside):
            tail = _after_copula(value)
            if tail and _MATH_SPAN.search(tail) and not _has_prose(_MATH_SPAN.sub(" ", tail)):
                return tail
            return spans[-1].strip()
        return value
    if re.match(r"[-−+(\\]?\$?\d", value):
        return value  # a number and its unit
    tail = _after_copula(value)
    if tail and (not _has_prose(tail) or re.match(r"[-−+(\\]?\$?\d[\d.,/]*\s[A-Za-z]+$", tail)):
        return tail
    # of a sentence; what looks like code or LaTeX is left as it is
    numbers = _NUMBER.findall(value)
    if len(numbers) == 1 and not _CODE_SIGNS.search(value):
        return numbers[0]
    return value


def _one_span(value: str) -> str:
    """The content of a formula that is the whole text, "" where it is not one formula."""
    match = _MATH_SPAN.fullmatch(value)
    return next(group for group in match.groups() if group) if match else ""


def _after_copula(value: str) -> str:
    matches = list(_COPULA.finditer(value))
    return strip_marks(value[matches[-1].end() :]) if matches else ""


def _has_prose(value: str) -> bool:
    """Whether words stand in it that are neither commands, nor names of functions, nor inside \\text{…}."""
    bare = re.sub(r"\\(?:text|mathrm|mbox|textbf|operatorname)\s?\{[^{}]{0,300}\}", " ", value)
    return any(w[0] != "\\" and w.lower() not in _NAMES for w in _WORD.findall(bare))
