"""What is on disk: finished samples appended as they come, then one whole file a task. kill -9 costs what was
in flight.

    MODEL/boolq.subset.jsonl.partial   one line a finished sample, while the task runs
    MODEL/boolq.subset.jsonl           the response file: task columns and outputs, once every sample is there

A line of the first: {"key": "7", "turn": 1, "fingerprint": "0f3c…", "outputs": "yes", "finish_reason":
"stop", "prompt_tokens": 31, "output_tokens": 2, "truncated_tokens": 0}.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import IO, Any

from evaluation.files import whole_file
from evaluation.inference.samples import SECOND_TURN, Sample, row_keys

log = logging.getLogger("captrack.inference")

Answer = dict[str, Any]
Name = tuple[str, int]  # key, turn
MEASURED = ("outputs", "finish_reason", "prompt_tokens", "output_tokens", "truncated_tokens")
COLUMNS = (*MEASURED, "fingerprint")  # what a response file has beyond the task's own columns


class StoreError(Exception):
    """One line for a person: a file that must not be touched or cannot be read."""


class TaskStore:
    """The answers of one task in one model's folder; a sample counts as there only under its fingerprint."""

    def __init__(self, folder: Path, task: str):
        self.task = task
        self.final = folder / f"{task}.jsonl"
        self.partial = folder / f"{task}.jsonl.partial"
        self.answers: dict[Name, Answer] = {}
        self._handle: IO[str] | None = None

    def load(self) -> TaskStore:
        """Reads both files. A torn last line is left out with a warning; StoreError for one torn in the
        middle.
        """
        for name, answer in final_answers(self.task, self.final).items():
            self.answers[name] = answer
        for record in read_partial(self.partial)[0]:
            self.answers[record["key"], record["turn"]] = record
        return self

    def get(self, sample: Sample, fingerprint: str) -> Answer | None:
        answer = self.answers.get((sample.key, sample.turn))
        return answer if answer is not None and answer.get("fingerprint") == fingerprint else None

    def append(self, sample: Sample, answer: Answer) -> None:
        """The sample is kept from here on, whatever happens to this process."""
        record = {"key": sample.key, "turn": sample.turn, **answer}
        if self._handle is None:
            self._handle = _open_to_append(self.partial)
        self._handle.write(json.dumps(record, allow_nan=False) + "\n")
        self._handle.flush()
        self.answers[sample.key, sample.turn] = record

    def finish(self, rows: list[dict[str, Any]], fingerprints: dict[Name, str]) -> int:
        """Writes the response file of all answered rows in the order of the task data, and drops the partial
        one.

        Returns the number of rows written. fingerprints: of the samples as they would be asked now.
        """
        self.close()
        keys = row_keys(self.task, rows)
        turn = main_turn(self.task)
        written = 0
        with whole_file(self.final) as handle:
            for key, row in zip(keys, rows, strict=True):
                answer = self.answers.get((key, turn))
                if answer is None or answer.get("fingerprint") != fingerprints[key, turn]:
                    continue
                handle.write(json_line(response_row(row, answer)) + "\n")
                written += 1
        self.partial.unlink(missing_ok=True)
        return written

    def close(self) -> None:
        if self._handle is not None:
            self._handle.flush()
            os.fsync(self._handle.fileno())
            self._handle.close()
            self._handle = None


def main_turn(task: str) -> int:
    """The turn whose answer is the task's output."""
    return 2 if task in SECOND_TURN else 1


def response_row(row: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """A row of the response file: the task's columns, then ours (which replace columns of the same name)."""
    ours = {name: answer.get(name) for name in COLUMNS}
    if "turn1_response" in answer:
        ours = {"turn1_response": answer["turn1_response"], **ours}
    return {name: value for name, value in row.items() if name not in ours} | ours


def final_answers(task: str, path: Path) -> dict[Name, Answer]:
    """The answers of a response file of ours; StoreError where its rows carry no fingerprint (somebody else's
    file).
    """
    if not path.exists():
        return {}
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            rows.append(_record(line, path, number))
    if not all("fingerprint" in row and "outputs" in row for row in rows):
        raise StoreError(
            f"{path} was not written by run_inference.py: it stays as it is; choose another --name"
        )
    turn = main_turn(task)
    kept = (*COLUMNS, "turn1_response") if turn == 2 else COLUMNS
    return {
        (key, turn): {name: row.get(name) for name in kept}
        for key, row in zip(row_keys(task, rows), rows, strict=True)
    }


def read_partial(path: Path) -> tuple[list[Answer], int]:
    """The finished samples of a partial file, and the length in bytes up to which it is whole."""
    if not path.exists():
        return [], 0
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    records = []
    for number, line in enumerate(data[:end].split(b"\n"), 1):
        if line.strip():
            records.append(_record(line.decode("utf-8"), path, number))
    if end < len(data):
        log.warning("%s: line %d is torn; that sample is generated again", path, data[:end].count(b"\n") + 1)
    return records, end


def json_line(value: Any) -> str:
    """One line of JSON, readable, but with every character escaped that some reader takes for a line's
    end.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for character in ("\u2028", "\u2029", "\u0085"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, allow_nan=False)
    return text


def _open_to_append(path: Path) -> IO[str]:
    """The file, cut back to its last whole line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    end = read_partial(path)[1] if path.exists() else 0
    handle = open(path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed by TaskStore.close)
    handle.truncate(end)
    return handle


def _record(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise StoreError(
            f"{path}, line {number}: damaged ({error}); remove that line or use --overwrite"
        ) from error
    if not isinstance(value, dict):
        raise StoreError(f"{path}, line {number}: expected an object; remove that line or use --overwrite")
    return value
