"""Writing files so that what is on disk is whole: a temporary name in the same folder, flush, rename.

Light and pure Python: run_inference.py uses it too.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def whole_file(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file handle whose content appears under `path` complete or not at all (UTF-8, LF)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.partial")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(temporary, mode, **text) as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Valid JSON only: NaN and infinities raise ValueError, they must have become null before."""
    with whole_file(path) as handle:
        json.dump(value, handle, ensure_ascii=False, indent=2, allow_nan=False)
        handle.write("\n")


def safe_name(name: str) -> str:
    """A folder name for a model name: "/" becomes "__", a very long one is cut and ends in a hash of it
    all."""
    cleaned = re.sub(r"[^\w.+=@-]+", "_", unicodedata.normalize("NFC", name.strip().replace("/", "__")))
    cleaned = cleaned.lstrip(".") or "model"
    if len(cleaned.encode()) <= 120:
        return cleaned
    import hashlib

    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return cleaned.encode()[:100].decode(errors="ignore") + "-" + digest
