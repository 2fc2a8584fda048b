"""Values written as text: lists and objects that a file carries as JSON or Python text, and the texts of a
gold.

Example: gold_texts("{'text': ['Kiruna', 'Giron']}", ("text", "answer")) gives ["Kiruna", "Giron"];
gold_texts("1984", …) gives ["1984"]. Text is parsed as a literal and never evaluated.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from typing import Any

from evaluation.rows import is_missing, text_of

_SIDE_BY_SIDE = re.compile(r"""['"]\s+['"]""")


def literal(text: str) -> Any:
    """The list, object, tuple or quoted text that a text writes; None for plain text (also 1984, None,
    True)."""
    text = text.strip()
    if not text.startswith(("[", "{", "(", '"', "'")) or len(text) > 100_000:
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = parse(text)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        if isinstance(value, list) and parse is ast.literal_eval:
            value = _array(text) or value
        return value if isinstance(value, (list, dict, tuple, set, str)) else None
    return None


def _array(text: str) -> list[str] | None:
    """The items of a printed NumPy array of texts, ['Rome' 'Roma'], which Python would read as one text."""
    if not _SIDE_BY_SIDE.search(text):
        return None
    try:
        tokens = [
            token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()
        ]
    except (tokenize.TokenError, SyntaxError):
        return None
    inner = tokens[1:-1]
    if len(inner) < 2 or any(token.type != tokenize.STRING for token in inner):
        return None
    return [ast.literal_eval(token.string) for token in inner]


_MOST_NESTED = 50  # a gold nested deeper says nothing that could be compared


def gold_texts(gold: Any, keys: tuple[str, ...], depth: int = 0) -> list[str]:
    """The accepted texts of a gold: a text, a number, a list, an object (under the first of `keys` that it
    has), or any of these written as JSON or Python text. [] where there is none. Text is parsed as a literal,
    never evaluated. depth: how deep in the gold `gold` stands."""
    if is_missing(gold) or depth > _MOST_NESTED:
        return []
    if isinstance(gold, str):
        parsed = literal(gold)
        if parsed is None:
            return [gold.strip()] if gold.strip() else []
        return [parsed] if isinstance(parsed, str) else gold_texts(parsed, keys, depth + 1)
    if isinstance(gold, dict):
        key = next((key for key in keys if not is_missing(gold.get(key))), None)
        return gold_texts(gold[key], keys, depth + 1) if key else []
    if hasattr(gold, "tolist"):
        gold = gold.tolist()
    if isinstance(gold, (list, tuple, set)):
        return [
            text
            for item in gold
            for text in ([item.strip()] if isinstance(item, str) else gold_texts(item, keys, depth + 1))
            if text
        ]
    return [text_of(gold)]
