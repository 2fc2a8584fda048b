"""Reading the chosen option's letter out of an answer, and the options out of whatever form a task's data
has.

Example: options_of(["A. basalt", "B. quartz"]) gives labels ("A", "B") and texts ("basalt", "quartz");
read_letter("So it is quartz. The answer is **(B)**.", those) gives "B"; "A or B" gives None.

A letter counts only as a standalone upper-case label of this item's options, at a place where an answer
stands: alone, behind a label or a cue ("the answer is", "I choose"), in a box, first before its punctuation,
or alone at the end. The article "A" and the pronoun "I" stand at none of them. All scans are linear.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from evaluation.extraction.answers import before_next_question, boxes, json_answer, labelled, strip_markup
from evaluation.extraction.courtesies import without_courtesies
from evaluation.extraction.literals import literal

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Options:
    """What an item offers. labels: upper-case letters; texts: one for each label, "" where it is not known.

    aliases: other names of labels, such as {"1": "A", "2": "B"} where options are numbered.
    """

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    aliases: dict[str, str] = field(default_factory=dict)

    def at_least(self, count: int) -> Options:
        """With the first `count` letters among the labels: for benchmarks that always offer these."""
        extra = tuple(letter for letter in LETTERS[:count] if letter not in self.labels)
        return replace(self, labels=self.labels + extra, texts=self.texts + ("",) * len(extra))

    def numbered(self, first: int) -> Options:
        """With numbers as aliases of the labels, the first label being number `first`."""
        return replace(self, aliases={str(first + index): label for index, label in enumerate(self.labels)})

    def text_of(self, label: str) -> str:
        return self.texts[self.labels.index(label)] if label in self.labels else ""


_ITEM = re.compile(r"\s{0,9}\(?([A-Z])(?:[.):]|\s-)(?:\s+|$)")


def options_of(choices: Any) -> Options:
    """The options in `choices`: a list or array of texts (with or without "A. "), a mapping of letters to
    texts, ARC's {"label": […], "text": […]}, any of these as JSON or Python text, or running text ("A: quartz
    B: basalt", one a line). Nothing readable gives no labels."""
    if isinstance(choices, str):
        parsed = literal(choices)
        return options_of(parsed) if isinstance(parsed, (list, tuple, dict)) else _from_text(choices)
    if hasattr(choices, "tolist"):
        return options_of(choices.tolist())
    if isinstance(choices, dict):
        return _from_mapping(choices)
    if isinstance(choices, (list, tuple)):
        return _from_items([_item_text(item) for item in choices][: len(LETTERS)])
    return Options((), ())


def _item_text(item: Any) -> str:
    if isinstance(item, dict):
        item = next((item[key] for key in ("text", "content", "option", "value") if key in item), "")
    return "" if item is None else str(item).strip()


def _from_mapping(choices: dict[Any, Any]) -> Options:
    labels, texts = choices.get("label"), choices.get("text", choices.get("choices"))
    if isinstance(texts, (list, tuple)):
        if isinstance(labels, (list, tuple)) and len(labels) == len(texts):
            named = {
                str(label).strip().upper(): _item_text(text)
                for label, text in zip(labels, texts, strict=True)
            }
            if all(label in LETTERS and len(label) == 1 for label in named):
                return Options(tuple(named), tuple(named.values()))
        return options_of(list(texts))
    named = {str(key).strip().upper(): _item_text(value) for key, value in choices.items()}
    named = {key: text for key, text in named.items() if len(key) == 1 and key in LETTERS and text}
    return Options(tuple(named), tuple(named.values()))


def _from_items(items: list[str]) -> Options:
    heads = [_ITEM.match(item) for item in items]
    if items and all(heads):
        labels = tuple(head[1] for head in heads if head)
        if len(set(labels)) == len(labels) and (len(labels) == 1 or labels[0] == "A"):
            texts = (item[head.end() :].strip() for item, head in zip(items, heads, strict=True) if head)
            return Options(labels, tuple(texts))
    return Options(tuple(LETTERS[: len(items)]), tuple(items))


def _from_text(text: str) -> Options:
    """Running text: labels at the starts of lines where there are two or more, else A, B, C … in their
    order."""
    lines = [line for line in text.split("\n") if line.strip()]
    starts = [line for line in lines if _ITEM.match(line)]
    if len(starts) >= 2:
        return _from_items(starts[: len(LETTERS)])
    spans: list[tuple[int, int]] = []
    position = 0
    for letter in LETTERS:
        match = re.compile(rf"(?:(?<=\s)|^)\(?{letter}[.):]\s").search(text, position)
        if match is None:
            break
        spans.append((match.start(), match.end()))
        position = match.end()
    if len(spans) < 2:
        return Options((), ())
    ends = [start for start, _ in spans[1:]] + [len(text)]
    texts = tuple(text[start:end].strip(" ,;\n") for (_, start), end in zip(spans, ends, strict=True))
    return Options(tuple(LETTERS[: len(spans)]), texts)


_WRAPPER = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathit|mbox)\s?\{([^{}]{0,500})\}")
# "Option1 : Ann", as models copy the names of columns
_JOINED = re.compile(r"\b(option|choice|answer|alternative)(\d{1,2})(?!\w)(?:\s(?=:))?", re.IGNORECASE)
_MATHS = re.compile(r"\\[()\[\]]|\$+")
_SURELY = (
    r"(?i:(?:\s|,)*(?:indeed|clearly|definitely|certainly|obviously|probably|likely|most|therefore|thus"
    r"|then|simply|really|"
    r"surely|actually|just|both|the|letter|option|choice|answer|number|alternative|statement"
    r"|[:-])(?=[\s:*(-]))*"
)
_VERB = r"(?:is|was|be|are|must be|would be|should be|will be|seems? to be|appears? to be|has to be)"
_STRONG_CUE = (
    rf"(?i:\b(?:answer|option|choice|alternative|statement|letter|response"
    rf"|one)\s(?:\w+\s){{0,3}}?{_VERB}\s?:?"
    r"|\b(?:i|we)(?:'d|'ll|\swould|\swill)?\s(?:pick|choose|select|say|think|guess|chose|go\swith|opt\sfor|answer)"
    r"|\bmy\s(?:\w+\s)?(?:answer|choice|pick)(?:\sis)?\s?:?)"
)
_WEAK_CUE = (
    r"(?i:\b(?:so|thus|hence|therefore|namely|but|it's|it\sis|it\smust\sbe|pick|choose|select|go\swith"
    r"|points?\sto|corresponds\sto"
    r"|leaves|i\.e\.)"
    r"(?:\s?,)?(?:\s(?:it\sis|it's|this\sis|we\shave))?)"
)
_END = (
    r"(?=\s{0,3}(?:[.,;:!?)\]}*。，、；]|$|\n|\"|'|(?:because|since|as|which|for|due)\b|is\s(?:correct|right"
    r"|true))|\s{1,3}[-–—(])"
)
_REJECTED = re.compile(
    r"\b(?:not|never|wrong|incorrect|false|eliminat\w*|rul(?:e|ed|ing) out|reject\w*|unlikely|or)\b|n't\b",
    re.I,
)


_MOST_PLACES = 100  # a looping model repeats its labels for ever


@lru_cache(maxsize=256)
def _patterns(names: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    one = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    label = rf"[(\[{{\"'*]{{0,2}}(?P<label>{one})[)\]}}\"'*]{{0,2}}"
    return {
        "alone": re.compile(
            rf"(?:option\s|choice\s)?[(\[{{\"'<]*\s?(?P<label>{one})\s?[)\]}}\"'>]*[\s.,;:!。]*",
            re.IGNORECASE,
        ),
        "head": re.compile(rf"{_SURELY}\s{{0,3}}{label}(?!\w){_END}"),
        "cue": re.compile(
            rf"(?:{_STRONG_CUE}{_SURELY}\s{{0,3}}{label}(?!\w){_END})"
            rf"|(?:{_WEAK_CUE}{_SURELY}\s{{0,3}}{label.replace('label', 'weak')}(?!\w)(?=\s?(?:[.;!]|$|\n)))"
            rf"|(?<!\w){label.replace('label', 'subject')}\s{{1,3}}(?i:(?:is|must\sbe)\s(?:clearly\s)?"
            rf"(?:the\s)?(?:only\s)?(?:correct|best|answer)\b)"
        ),
        "start": re.compile(
            rf"{label}(?:\s?[.):](?!\w)|\s{{0,9}}(?:\n|$)|,\s|\s[-–—]\s|\s(?:because|since)\s)"
        ),
        "end": re.compile(rf"(?:^|[.!?:;\n]\s{{0,3}}){label}[.!]?$"),
        "mention": re.compile(
            rf"(?i:\b(?:option|choice|answer|alternative))\s\(?(?P<label>{one})\)?(?!\w)(?! \w+ ?=)"
        ),
        "next": re.compile(
            rf"\s?(?:,|/|&|or|and|,\s?(?:or|and))\s?\(?(?:{one})\)?(?=\s?(?:[,./&;!)]|$|\n|(?:or|and)\b))"
        ),
        "item": re.compile(rf"^\s{{0,9}}\(?(?P<label>{one})[.):]\s", re.MULTILINE),
    }  # fmt: skip


def read_letter(answer: str, options: Options) -> str | None:
    """The label of the option that `answer` chooses; None where rules cannot tell (no choice, two, prose).

    answer: the visible answer. options: of options_of. A result is always one of options.labels. Where
    several choices stand in the text the last one counts; an option's own text in place of its letter counts
    where it is the whole answer, the whole value of "Answer: …" or the whole content of a box.
    """
    names = options.labels + tuple(options.aliases)
    if not names or not answer.strip():
        return None
    answer = without_courtesies(answer)
    text = _plain(answer)
    head = before_next_question(text)
    if re.search(r"\w", head):
        text = head
    return _read(text, options, json_answer(answer))


def _plain(answer: str) -> str:
    text = unicodedata.normalize("NFKC", strip_markup(answer))
    text = _JOINED.sub(r"\1 \2", text)
    # a prompt that ends in "Answer" is continued with ": B"
    return _MATHS.sub("", _WRAPPER.sub(r"\1", text)).strip().lstrip(": \n")


def _read(text: str, options: Options, stated: Any = None) -> str | None:
    if isinstance(stated, (str, int)) and not isinstance(stated, bool):
        text = _plain(str(stated))
    patterns = _patterns(options.labels + tuple(options.aliases))
    whole = _whole(text, options, patterns)
    if whole:
        return whole
    # label values and boxes give their text, cues their letter; the last readable one counts
    places: list[tuple[int, str, str]] = [(start, content, "") for start, content in boxes(text)]
    places += [(mark.start, mark.value, "") for mark in labelled(text)]
    places += [
        (match.start(), "", match["label"] or match["weak"] or match["subject"])
        for match in patterns["cue"].finditer(text)
        if not patterns["next"].match(text, match.end())
    ]
    for _, value, name in sorted(places, reverse=True)[:_MOST_PLACES]:
        letter = _named(name, options) if name else _value(value, options, patterns)
        if letter:
            return letter
    return _by_place(text, options, patterns)


def _named(name: str, options: Options) -> str:
    return options.aliases.get(name, name)


def _whole(text: str, options: Options, patterns: dict[str, re.Pattern[str]]) -> str | None:
    """The choice where the whole text is a label or an option's text, or both."""
    text = text.strip()
    if len(text) <= 24 and (match := patterns["alone"].fullmatch(text)):
        return _named(match["label"].upper(), options)
    return label_of_text(text, options)


def label_of_text(text: str, options: Options) -> str | None:
    """The label of the one option whose text is `text`, case, outer punctuation and white space aside; else
    None."""
    if len(text) > 100 + max(map(len, options.texts), default=0):
        return None
    key = _key(text)
    labels = [
        label
        for label, option in zip(options.labels, options.texts, strict=True)
        if key and _key(option) == key
    ]
    return labels[0] if len(labels) == 1 else None


def _key(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" .,;:!\"'`$*")


def _value(value: str, options: Options, patterns: dict[str, re.Pattern[str]]) -> str | None:
    """The choice in the value of a label."""
    whole = _whole(value, options, patterns)
    if whole:
        return whole
    match = patterns["head"].match(value)
    if match is None or patterns["next"].match(value, match.end()):
        return None
    letter = _named(match["label"], options)
    return None if _contradicts(value[match.end() :], letter, options) else letter


def _contradicts(rest: str, letter: str, options: Options) -> bool:
    """Whether another option's text follows the letter."""
    other = label_of_text(rest.partition("\n")[0].lstrip(").: -"), options)
    return other is not None and other != letter


def _by_place(text: str, options: Options, patterns: dict[str, re.Pattern[str]]) -> str | None:
    """The choice by where a letter stands: alone at the end, first of all, or named as "option C"
    throughout."""
    end = patterns["end"].search(text, max(0, len(text) - 24))
    if end and not (end.start() == 0 and len(text) > 24):
        return _named(end["label"], options)
    brief = patterns["head"].match(text) if len(text) <= 60 and "\n" not in text else None
    if brief and not patterns["next"].match(text, brief.end()) and not text[brief.end() :].strip(" .!*"):
        return _named(brief["label"], options)
    start = patterns["start"].match(text)
    if start and not patterns["next"].match(text, start.end("label")):
        letter = _named(start["label"], options)
        listed = {_named(name, options) for name in patterns["item"].findall(text)}
        if listed <= {letter} and not _contradicts(text[start.end() :], letter, options):
            return letter
    mentions = {_named(match["label"], options) for match in _first(patterns["mention"].finditer(text), 50)}
    if len(mentions) == 1 and not _REJECTED.search(text):
        return mentions.pop()
    return None


def _first(matches: Iterable[re.Match[str]], count: int) -> list[re.Match[str]]:
    return [match for match, _ in zip(matches, range(count), strict=False)]
