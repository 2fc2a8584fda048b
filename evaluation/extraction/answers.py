r"""Where in a text the answer stands: labelled lines, boxes, conclusions; and text without its Markdown.

Example: for "Let me see.\n**Answer:** $\boxed{\frac{1}{2}}$ of it." last_labelled gives
"$\boxed{\frac{1}{2}}$ of it." and last_boxed gives r"\frac{1}{2}". What the found text means (number, letter,
formula, name) is for the caller.

All functions take the visible answer (thinking already gone), are pure, never raise, and are linear in its
length.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

# Words for "answer" in the languages of MGSM (https://arxiv.org/abs/2210.03057), of XQuAD/XTREME, and some
# neighbours
_ANSWER_WORDS = (
    "answer", "antwort", "lösung", "respuesta", "réponse", "risposta", "resposta", "antwoord", "odpowiedź",
    "odpověď",
    "svar", "vastaus", "cevap", "câu trả lời", "đáp án", "jawaban", "jawapan", "jibu", "ответ", "відповідь",
    "απάντηση",
    "答案", "答え", "答", "回答", "정답", "답", "উত্তর", "उत्तर", "జవాబు", "సమాధానం", "பதில்", "คำตอบ", "الجواب",
    "الإجابة", "الاجابة", "תשובה",
)  # fmt: skip
_COPULAS = (
    r"is|are|was|would\s{1,3}be|should\s{1,3}be|must\s{1,3}be|ist|lautet|es|est|è|é|ni|är|это|равен|равно"
    r"|είναι|是|为|為|は|คือ|হল|হলো|है|هو|هي"
)
# the letter before a label must not belong to the same word; scripts without blanks have no such border
_START = r"(?<![A-Za-z0-9À-ɏЀ-ӿ])"
_LABEL = re.compile(
    rf"""{_START}(?P<word>{"|".join(re.escape(word) for word in _ANSWER_WORDS)})
    (?:\s{{1,3}}\((?:final|letter)\))?
    (?:\s{{0,3}}(?P<copula>{_COPULAS})(?![A-Za-zÀ-ɏЀ-ӿ]))?
    \s{{0,3}}(?P<colon>[:：=]|[-–—](?=\s))?""",
    re.VERBOSE | re.IGNORECASE,
)
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s{0,3}(?:(?P<bare>[^\s{}\\])|(?P<open>\{))|\\.|[{}]", re.DOTALL)
_FENCE = re.compile(r"^[ \t]{0,3}(?:`{3,}|~{3,})[^\n`]{0,40}$\n?", re.MULTILINE)
_ANSWER_TAG = re.compile(r"<(/)?(?:final_?)?answer>", re.IGNORECASE)
_LINE_MARK = re.compile(
    r"^[ \t]{0,8}(?:#{1,6}[ \t]{1,3}(?=\S)|>[ \t]?|[*+•▪●-][ \t]{1,3}(?=\S))", re.MULTILINE
)
# runs of stars and underscores: opening (something follows), closing (something precedes); "3 * 4" and "x_1"
# are neither
_STARS = re.compile(r"(?<![A-Za-z0-9)\]}\\*])\*+(?=[^\s*])|(?<=[^\s*\\])\*+(?![A-Za-z0-9(\[{\\*])")
_WIDE_STARS = re.compile(r"(?<!\*)\*\*(?!\*)")
_UNDERLINES = re.compile(r"(?<![\w\\}_])_{1,3}(?=[^\s_])|(?<=[^\s_\\])_{1,3}(?![\w{\\_])")
_CODE = re.compile(r"(?<!`)`{1,2}(?!`)|~~")
_CONTENT = re.compile(r"\S[^\n]{0,1999}")
_LONGEST_BOX = 4000  # nested boxes by the thousand must not cost quadratic memory
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[)\"'*_]{0,3}[ \t]+(?=[^\sa-z])|(?<=[^A-Z\d][.!?])[ \t]+(?=[a-z])|(?<=[。！？।])|\n+"
)


@dataclass(frozen=True)
class Labelled:
    """A label ("Answer:", "the final answer is") in text without Markdown.

    start, end: where the label stands in `text`. colon: True for "Answer:", which states the answer; False
    for "the answer is", which may be running prose.
    """

    text: str
    start: int
    end: int
    colon: bool

    @property
    def value(self) -> str:
        """The rest of the label's line, or the next line (at most 2,000 characters); else ""."""
        content = _CONTENT.search(self.text, self.end)
        return content.group().strip() if content else ""

    @property
    def below(self) -> bool:
        """Whether the value stands on a later line than the label."""
        content = _CONTENT.search(self.text, self.end)
        return content is not None and self.text.find("\n", self.end, content.start()) >= 0


def strip_markup(text: str) -> str:
    """Text without Markdown: emphasis, code, fences, headings and bullets; LaTeX and wording stay.

    "**Answer:** `5`" becomes "Answer: 5"; "3 * 4", "2**3", "x_1" and "\\frac{1}{2}" stay as they are.
    "<answer>5</answer>" becomes a line "Answer: 5".
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _ANSWER_TAG.sub(lambda match: "" if match[1] else "\nAnswer: ", text)
    text = _FENCE.sub("", text)
    text = _LINE_MARK.sub("", text)
    text = _CODE.sub("", text)
    text = _STARS.sub("", text)
    text = _WIDE_STARS.sub(lambda match: "**" if _is_power(text, match) else "", text)
    return _UNDERLINES.sub("", text)


def _is_power(text: str, match: re.Match[str]) -> bool:
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return bool(re.match(r"[a-z0-9)]", before)) and bool(re.match(r"[a-z0-9(]", after))


def labelled(plain: str) -> list[Labelled]:
    """Every labelled answer ("Answer: …", "The final answer is …", also in other languages), in the order of
    the text.

    plain: text without Markdown (strip_markup), so that positions stay those of the caller's text.
    """
    return [
        Labelled(plain, match.start(), match.end(), bool(match["colon"]))
        for match in _LABEL.finditer(plain)
        if match["copula"] or match["colon"]
    ]


def last_labelled(text: str) -> str | None:
    """The value of the last labelled answer: "" where nothing follows the label, None where no label
    stands."""
    found = labelled(strip_markup(text))
    return found[-1].value if found else None


def boxes(text: str) -> list[tuple[int, str]]:
    """(start, content) of every closed LaTeX box of at most 4,000 characters, by start; braces inside are
    matched."""
    found: list[tuple[int, str]] = []
    open_braces: list[
        tuple[int, int] | None
    ] = []  # (start of the box, start of its content), None for a plain brace
    for match in _BOX.finditer(text):
        token = match.group()
        if match["bare"]:
            found.append((match.start(), match["bare"]))
        elif match["open"]:
            open_braces.append((match.start(), match.end()))
        elif token == "{":
            open_braces.append(None)
        elif token == "}" and open_braces:
            box = open_braces.pop()
            if box is not None and match.start() - box[1] <= _LONGEST_BOX:
                found.append((box[0], text[box[1] : match.start()].strip()))
    return sorted(found)


def last_boxed(text: str) -> str | None:
    r"""The content of the last closed \boxed{…} (braces matched, also \fbox, also "\boxed 5"); None without
    one."""
    found = boxes(text)
    return found[-1][1] if found else None


def sentences(text: str) -> list[str]:
    """The text's sentences: cut at line breaks and after . ! ? and their CJK forms, not inside 3.5 or "U.S.
    dollar"."""
    return [part for part in (piece.strip() for piece in _SENTENCE_END.split(text)) if part]


def last_line(text: str) -> str:
    """The last line with text in it, without Markdown; "" for an empty text."""
    return strip_markup(text).strip().rpartition("\n")[2].strip()


_NEXT_QUESTION = re.compile(r"\n\s{0,9}(?:Question|Q|Problem|Input|User|Human)\s?\d{0,3}\s?:")


def before_next_question(text: str) -> str:
    """The text up to where the model asks itself a further question ("\\nQuestion: …"), as base models do;
    else all."""
    match = _NEXT_QUESTION.search(text)
    return text[: match.start()] if match else text


def json_answer(text: str, keys: tuple[str, ...] = ("answer", "final_answer", "choice", "option")) -> Any:
    """The value under one of `keys` where the whole text is one JSON object (a fence around it is fine); else
    None."""
    text = _FENCE.sub("", text).strip()
    if not (text.startswith("{") and text.endswith("}")) or len(text) > 100_000:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    folded = {str(key).strip().casefold().replace(" ", "_"): item for key, item in value.items()}
    return next((folded[key] for key in keys if key in folded), None)
