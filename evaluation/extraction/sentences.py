"""Splits running text into sentences, by rule and in linear time.

Example: sentences('Dr. Sand left at 3.5 p.m. sharp. "Stay!" He did.') gives
['Dr. Sand left at 3.5 p.m. sharp.', '"Stay!"', 'He did.'].
Line breaks do not end a sentence; who wants lines as units splits them first.
"""

from __future__ import annotations

import re

_STOP = re.compile(r"[.!?…]+|[。！？]+")
_CLOSERS = "\"'”’»)]*_`"
_LIST_MARK = re.compile(r"[(*_#>\s-]*(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})$")
_LAST_WORD = re.compile(r"(?:[^\W_]\.)+[^\W_]$|[^\W\d_]+$")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]$")
_MAX_LOOK_BACK = 24


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# a dot after these never ends a sentence
_TITLES = _words("dr mr mrs ms prof st mt messrs rev gen sgt capt lt col gov sen rep hon vs cf viz e.g i.e")
# after these it does before a common opening word, "Acme Co. He …" (and never before a small letter)
_ENDINGS = _words("inc ltd co corp jr sr etc al dept est approx ca")
# only before a number: "No. 5", but not the answer "No. It …"
_BEFORE_NUMBER = _words("no nos fig figs eq vol p pp ch sec art")
_OPENERS = _words(
    "a an the this that these those he she it they we you i his her its their our my there here in on at for "
    "from with to by as if when while after before since but and or so then however what who why how where "
    "yes no not one some many most all each every"
)


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, white space collapsed; [] for a blank text.

    A sentence ends at a run of . ! ? (closing quotes and brackets belong to it) before white space or the
    end, and at a full stop of Chinese or Japanese. It does not end after an abbreviation, an initial, a list
    number, inside a number, nor behind a closing quote or an ellipsis that a small letter follows. Time:
    linear.
    """
    pieces: list[str] = []
    start = _skip_space(text, 0)
    for stop in _STOP.finditer(text):
        if stop.start() < start:
            continue
        end = stop.end()
        while end < len(text) and text[end] in _CLOSERS:
            end += 1
        if end < len(text) and not text[end].isspace() and stop.group()[0] not in "。！？":
            continue
        following = _skip_space(text, end)
        if following < len(text) and not _ends(text, start, stop, end, following):
            continue
        pieces.append(" ".join(text[start:end].split()))
        start = following
    rest = " ".join(text[start:].split())
    return [piece for piece in (*pieces, rest) if piece]


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _ends(text: str, start: int, stop: re.Match[str], end: int, following: int) -> bool:
    """Whether the stop, which white space and the character at `following` follow, ends the sentence."""
    after = text[following]
    small = after.islower()
    if stop.group() != ".":
        # "Stay!" she said – and – Well... maybe
        return not (small and (end > stop.end() or stop.group()[0] in ".…"))
    if small and end > stop.end():
        return False
    before = text[max(start, stop.start() - _MAX_LOOK_BACK) : stop.start()]
    if _is_list_mark(before, at_start=stop.start() - start < _MAX_LOOK_BACK):
        return False
    found = _LAST_WORD.search(before)
    if not found:
        return True
    word = found.group().lower()
    next_word = re.match(r"\w*", text[following : following + 20]).group().lower()  # type: ignore[union-attr]
    if word in _TITLES:
        return False
    if word in _BEFORE_NUMBER:
        return not after.isdigit()
    if word == "etc":
        return not small
    if word in _ENDINGS or _DOTTED.fullmatch(word):
        return not small and next_word in _OPENERS
    if len(word) == 1 and found.group().isupper():
        # an initial follows a name or begins the sentence: "A. Morel", "John F. Morel"; but "plan B. He left"
        previous = before[: found.start()].split()
        return bool(previous) and not previous[-1][0].isupper()
    return True


def _is_list_mark(before: str, at_start: bool) -> bool:
    """True for what stands before the dot of "2. Shape the bowl" at the start of a line or of a sentence."""
    line_break = before.rfind("\n")
    if line_break >= 0:
        before = before[line_break + 1 :]
    elif not at_start:
        return False
    return bool(_LIST_MARK.fullmatch(before))
