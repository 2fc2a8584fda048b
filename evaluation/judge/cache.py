"""Replies that were paid for, on disk: one SQLite file, shared by runs and by base and adapted models.

Example: key("openai", "gpt-4o-mini", {"temperature": 0, "max_tokens": 1024}, question) -> a hash; under it
stand the reply's text, the served model and the tokens. Replies are kept, not values: they are read anew
each time, so that a better reading needs no second payment. Only replies with a whole verdict are kept. A
write is committed before the verdict is handed on: after kill -9 only what was in flight is asked again.
Every method may run in any thread.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.judge.backends import Reply
from evaluation.judge.modes import Question

FILE = "judgements.sqlite"
_TABLE = """create table if not exists judgements (
    key text primary key, mode text, reply text not null, model text,
    prompt_tokens integer, completion_tokens integer, created real
) without rowid"""


def key(backend: str, model: str, parameters: Mapping[str, Any], question: Question) -> str:
    """What makes a question the same one: who answers, how it is asked, and the whole prompt."""
    what = [
        backend,
        model,
        dict(sorted(parameters.items())),
        question.mode,
        question.version,
        question.prompt,
    ]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


class Cache:
    """The file in a folder.

    A file that is no database is put aside; errors later on cost a payment, not the run.
    """

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        self.errors = 0
        self._lock = threading.Lock()
        try:
            self._db = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self.path.replace(self.path.with_suffix(f".broken-{int(time.time())}"))
            self._db = self._open()
        self._known = {row[0] for row in self._db.execute("select key from judgements")}

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            db.execute("pragma journal_mode=wal")
            db.execute("pragma synchronous=normal")
            db.execute(_TABLE)
        except sqlite3.Error:
            db.close()
            raise
        return db

    def may_hold(self, key: str) -> bool:
        """Whether the reply was there when the file was opened, or came since from this run. Never waits."""
        return key in self._known

    def get(self, key: str) -> Reply | None:
        """The kept reply, None where there is none."""
        try:
            with self._lock:
                row = self._db.execute(
                    "select reply, prompt_tokens, completion_tokens, model from judgements where key = ?",
                    (key,),
                ).fetchone()
        except sqlite3.Error:
            self.errors += 1
            return None
        return Reply(row[0], "stop", row[1], row[2], row[3]) if row else None

    def put(self, key: str, mode: str, reply: Reply) -> None:
        """Keeps a reply for good; it is on disk when this returns."""
        text = (reply.text or "").encode("utf-8", "replace").decode("utf-8")
        row = (key, mode, text, reply.model, reply.prompt_tokens, reply.completion_tokens, time.time())
        try:
            with self._lock:
                self._db.execute("insert or replace into judgements values (?, ?, ?, ?, ?, ?, ?)", row)
            self._known.add(key)
        except sqlite3.Error:
            self.errors += 1

    def close(self) -> None:
        with self._lock:
            self._db.close()
