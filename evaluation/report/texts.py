"""Text from models and files on its way into a page: untrusted, of any length, with any character.

"a\\x1b[0m\\u202eb" becomes "a⟨U+001B⟩[0m⟨U+202E⟩b": whoever reads a page sees every character that could
hide or reorder others.
"""

from __future__ import annotations

import json
from typing import Any

# C0 and C1 controls but for line feed and tab; soft hyphen; marks and controls of direction; zero width; line
# separators; fillers; annotation controls; selectors and tags that carry hidden bytes; non-characters
_HIDDEN = (
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200B),
    (0x200E, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xD800, 0xDFFF),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF9, 0xFFFB),
    (0xFFFE, 0xFFFF),
    (0xE0000, 0xE01EF),
)
_TABLE = {code: f"⟨U+{code:04X}⟩" for first, last in _HIDDEN for code in range(first, last + 1)}


def visible(text: object) -> str:
    """The text with control, direction and invisible characters made visible; line ends become \\n.

    Joiners (U+200C, U+200D) and emoji selectors stay: Persian, Indic scripts and emoji are built with them.
    """
    return str(text).replace("\r\n", "\n").translate(_TABLE)


def cut(text: str, limit: int) -> str:
    """The text, or its head and tail with the number of characters left out between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out here …]\n{text[-half:]}"


_TURN_KEYS = ("user prompt", "user_prompt", "content", "prompt", "text")


def turns(text: str | None) -> str | None:
    """A prompt of several turns, kept as a JSON list of texts or of objects with a "user prompt", with a line
    above each; others as they are."""
    if text is None or not text.startswith(('["', "[{")):
        return text
    try:
        parts = [_turn(part) for part in json.loads(text)]
    except (ValueError, RecursionError):  # it was cut, or only looks like a list
        return text
    if not all(isinstance(part, str) for part in parts):
        return text
    return "\n\n".join(f"— turn {number} —\n{part}" for number, part in enumerate(parts, 1))


def _turn(part: Any) -> Any:
    return next((part[key] for key in _TURN_KEYS if key in part), None) if isinstance(part, dict) else part


def readable(text: str | None) -> str | None:
    """A JSON object for people: a key a line, texts of several lines as they were written; others as they
    are.

    '{"test": "def check(f):\\n    assert f(1) == 2\\n", "entry_point": "f"}' becomes

        test:
        def check(f):
            assert f(1) == 2

        entry_point: f
    """
    if text is None or not text.startswith("{"):
        return text
    try:
        found = json.loads(text)
        return "\n".join(_entry(key, value) for key, value in found.items())
    except (ValueError, RecursionError):  # it was cut, or only looks like an object
        return text


def _entry(key: str, value: Any) -> str:
    if not isinstance(value, str):
        many = isinstance(value, (dict, list)) and len(json.dumps(value)) > 80
        value = json.dumps(value, ensure_ascii=False, indent=2 if many else None)
    value = value.replace("\r\n", "\n").rstrip("\n")  # what counts lines counts from the first
    return f"{key}:\n{value}\n" if "\n" in value else f"{key}: {value}"


def shown(text: object | None, limit: int) -> str | None:
    """`text` as a page holds it: cut, then made visible; None stays None."""
    return None if text is None else visible(cut(str(text), limit))


def json_for_page(value: Any) -> str:
    """JSON that may stand inside <script type="application/json">: no "<", ">" or "&" in it at all."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
