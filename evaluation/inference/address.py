"""Addresses of served models: http://HOST:PORT/v1#NAME. Light."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from evaluation.files import safe_name


def split(source: str) -> tuple[str, str | None] | None:
    """(URL, model) of "http://host:8000/v1#org/model", model None where none is named; None for what is no
    URL.
    """
    if not re.match(r"https?://", source):
        return None
    url, _, model = source.partition("#")
    return url, model or None


def name_of(source: str) -> str:
    """A readable folder name for such a source: the model's name, else host and port."""
    url, model = split(source) or (source, None)
    return safe_name((model or urlsplit(url).netloc.rpartition("@")[2]).strip("/").replace(":", "-"))


def shown(url: str) -> str:
    """The URL without a password."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
