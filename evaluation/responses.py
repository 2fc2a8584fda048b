"""Finds and reads a response file; every format gives identical Python values.

    model_responses/MODEL_NAME/TASK_NAME.(jsonl|json|csv|parquet)    boolq.subset.jsonl and boolq_subset.jsonl

Text stays text (ids "007", answers "None", "NA", "1e5"), lists and objects are lists and dicts, only a true
null is missing. JSON Lines and Parquet are streamed, so a file may be larger than memory. Nothing is ever
taken from another task's file. Every fault is a LoadError whose one line names file, row and remedy, and
costs that task alone.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.extraction.literals import literal
from evaluation.rows import Row, is_missing, make_row, text_of

# extension -> format, in the order in which people look for them
FORMATS = {".jsonl": "jsonl", ".json": "json", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
# the columns of a CSV that may hold JSON; never the outputs, never the id
JSON_COLUMNS = frozenset(
    ("gold", "ctx", "choices", "meta", "schema", "tool_spec", "prompt", "kwargs", "instruction_id_list")
)


# where split_by_task keeps a row's place in the combined file
_ORIGINAL_ROW = "\0row"


class LoadError(ValueError):
    """A response file that cannot be used. The message names file, row and remedy in one line."""


@dataclass
class ResponseFile:
    """A task's rows, ready to be streamed once.

    path: the file (`shown` in messages, where it is only a part split off another). warnings: filled while
    reading (a torn last line, rows without an output). incomplete: a row was lost, so the result is only a
    part.
    """

    task: str
    path: Path
    format: str
    output_column: str = "outputs"
    gold_column: str = "gold"
    needs: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)
    incomplete: bool = False
    rows_read: int = 0
    bytes_read: int = 0
    shown: Path | None = None

    def __post_init__(self) -> None:
        self.shown = self.shown or self.path

    def rows(self) -> Iterator[Row]:
        """Yields every row in file order. Raises LoadError, at the latest when the file ends."""
        seen: set[str] = set()
        ids: dict[str, int] = {}
        without_output = 0
        for position, columns in enumerate(READERS[self.format](self)):
            number = columns.pop(_ORIGINAL_ROW, position)
            seen.update(columns)
            if self.output_column in columns:
                columns["outputs"] = columns[self.output_column]
            else:
                columns.pop("outputs", None)
                without_output += 1
            if self.gold_column != "gold":
                columns["gold"] = columns.get(self.gold_column)
            row = make_row(self.task, columns, number)
            if row.id is not None:
                if row.id in ids:
                    raise LoadError(
                        f"{self.shown}, row {number + 1}: id {row.id!r} was already used in row "
                        f"{ids[row.id] + 1}. Give every row an id of its own."
                    )
                ids[row.id] = number
            self.rows_read += 1
            yield row
        self._check_columns(seen, without_output)

    def _check_columns(self, seen: set[str], without_output: int) -> None:
        if not self.rows_read:
            raise LoadError(f"{self.shown}: has no rows. Generate the responses again or remove the file.")
        present = ", ".join(sorted(seen)[:12]) or "none"
        if without_output == self.rows_read:
            raise LoadError(
                f"{self.shown}: has no column {self.output_column!r} (columns: {present}). "
                "Name the responses' column with --output_column."
            )
        if without_output:
            self.incomplete = True
            self.warnings.append(
                f"{self.shown}: {without_output} of {self.rows_read} rows have no {self.output_column!r}; "
                "they stay unscored."
            )
        renamed = {"gold": self.gold_column}
        for name in self.needs:
            if renamed.get(name, name) not in seen:
                hint = " Name it with --gold_column." if name == "gold" else " Keep the task data's columns."
                raise LoadError(
                    f"{self.shown}: task {self.task} needs a column {renamed.get(name, name)!r} "
                    f"(columns: {present}).{hint}"
                )

    def sha256(self) -> str:
        """Of the file's bytes, for run.json."""
        digest = hashlib.sha256()
        with open(self.path, "rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()


# ------------------------------------------------------------------------------------------------ finding


def find_file(folder: Path, task: str, file_format: str | None = None) -> Path | None:
    """The response file of a task, under either spelling of its name; None where there is none.

    file_format restricts the formats looked at. Raises LoadError where two files claim to be the task's.
    """
    stems = (task, task.replace(".", "_"))
    found = [
        path
        for stem in stems
        for suffix, kind in FORMATS.items()
        if file_format in (None, kind) and (path := folder / f"{stem}{suffix}").is_file()
    ]
    if len(found) > 1:
        raise LoadError(
            f"{folder}: {' and '.join(p.name for p in found)} both hold task {task}. Remove one of them"
            + ("." if file_format else ", or choose with --file_format.")
        )
    return found[0] if found else None


def format_of(path: Path, file_format: str | None = None) -> str:
    """The format by --file_format or by the file's ending."""
    return file_format or FORMATS[path.suffix]


def find_combined_file(folder: Path, file_format: str | None = None) -> Path:
    """The one file that holds several tasks (--task_column): the only response file of the folder."""
    found = sorted(
        path
        for path in folder.glob("*")
        if FORMATS.get(path.suffix) in ((file_format,) if file_format else tuple(FORMATS.values()))
        and path.name != "run.json"
        and not path.name.startswith(".")
    )
    if len(found) != 1:
        names = ", ".join(p.name for p in found[:5]) or "none"
        raise LoadError(f"{folder}: --task_column needs exactly one response file there, found {names}.")
    return found[0]


def split_by_task(
    source: ResponseFile, task_column: str, tasks: tuple[str, ...], into: Path
) -> tuple[dict[str, Path], dict[str, int]]:
    """Writes the rows of a combined file to one JSON Lines file a task below `into`.

    Returns ({task: file}, {other value of the column: number of rows left out}). One pass, so a file that is
    larger than memory works. Both spellings of a task's name are accepted in the column.
    """
    names = {spelling: task for task in tasks for spelling in (task, task.replace(".", "_"))}
    handles: dict[str, Any] = {}
    others: dict[str, int] = {}
    seen_column = False
    try:
        for number, columns in enumerate(READERS[source.format](source)):
            seen_column = seen_column or task_column in columns
            value = text_of(columns.get(task_column)).strip()
            task = names.get(value)
            if task is None:
                others[value] = others.get(value, 0) + 1
                continue
            if task not in handles:
                path = into / f"{task}.jsonl"
                handles[task] = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed below)
            handles[task].write(json.dumps({**columns, _ORIGINAL_ROW: number}) + "\n")
    finally:
        for handle in handles.values():
            handle.close()
    if not seen_column:
        raise LoadError(
            f"{source.shown}: has no column {task_column!r}. Name the right one with --task_column."
        )
    return {task: Path(handle.name) for task, handle in handles.items()}, others


# ------------------------------------------------------------------------------------------------ reading


def _read_jsonl(file: ResponseFile) -> Iterator[dict[str, Any]]:
    """Splits on LF only: U+2028 and its like are text. Blank lines are passed over."""
    with open(file.path, "rb") as handle:
        for number, line in enumerate(handle, 1):
            file.bytes_read += len(line)
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            try:
                columns = json.loads(line)
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n") and number > 1:
                    file.incomplete = True
                    file.warnings.append(
                        f"{file.shown}, line {number}: torn (the file ends inside a row); that row is lost. "
                        "Generate it again."
                    )
                    return
                raise LoadError(
                    f"{file.shown}, line {number}: not JSON ({_brief(error)}). Mend that line."
                ) from None
            if not isinstance(columns, dict):
                raise LoadError(
                    f"{file.shown}, line {number}: a JSON {type(columns).__name__}; a row is an object."
                )
            yield columns


def _read_json(file: ResponseFile) -> Iterator[dict[str, Any]]:
    """A list of objects; JSON Lines under a .json name are accepted as what they are."""
    with open(file.path, "rb") as handle:
        head = handle.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"{"):
        first_line = head.split(b"\n", 1)[0]
        if _is_object(first_line) or len(first_line) >= 4000:
            yield from _read_jsonl(file)
            return
        raise LoadError(f"{file.shown}: one JSON object; a list of rows or JSON Lines is needed.")
    try:
        rows = json.loads(file.path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{file.shown}: not JSON ({_brief(error)}). Write the file again.") from None
    if not isinstance(rows, list):
        raise LoadError(f"{file.shown}: a JSON {type(rows).__name__}; a list of rows is needed.")
    file.bytes_read = file.path.stat().st_size
    for number, columns in enumerate(rows, 1):
        if not isinstance(columns, dict):
            raise LoadError(
                f"{file.shown}, row {number}: a JSON {type(columns).__name__}, an object is needed."
            )
        yield columns


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _read_csv(file: ResponseFile) -> Iterator[dict[str, Any]]:
    """Every cell is text as written; an empty one is the empty text. JSON only in the columns that may hold
    it."""
    csv.field_size_limit(sys.maxsize)
    decoded = JSON_COLUMNS | {file.gold_column}
    with open(file.path, encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle, strict=True)
        try:
            header = next(reader, [])
            if "\0" in "".join(header):
                raise LoadError(f"{file.shown}: binary data, not CSV. Check the file's format.")
            if len(set(header)) < len(header):
                twice = next(name for name in header if header.count(name) > 1)
                raise LoadError(
                    f"{file.shown}: column {twice!r} stands twice in the header. Rename one of them."
                )
            for number, cells in enumerate(reader, 1):
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise LoadError(
                        f"{file.shown}, row {number} (line {reader.line_num}): {len(cells)} cells, but the "
                        f"header has {len(header)}. A quote or comma is not escaped; export the CSV again."
                    )
                yield {
                    name: _decoded(cell) if name in decoded else cell
                    for name, cell in zip(header, cells, strict=True)
                    if name  # the unnamed index column that pandas writes
                }
        except csv.Error as error:
            raise LoadError(
                f"{file.shown}, line {reader.line_num}: not CSV ({error}). Export it again."
            ) from None
        except UnicodeDecodeError as error:
            raise LoadError(f"{file.shown}: not UTF-8 ({_brief(error)}). Save it as UTF-8.") from None
    file.bytes_read = file.path.stat().st_size


def _decoded(cell: str) -> Any:
    if not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        value = literal(cell)  # what pandas writes for lists, objects and arrays: Python's own text
    if not isinstance(value, (list, dict)):
        return cell
    try:
        return json.loads(json.dumps(value))  # tuples become lists; sets and bytes leave the cell a text
    except (TypeError, ValueError, RecursionError):
        return cell


def _read_parquet(file: ResponseFile) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file.path, pre_buffer=False) as source:
            total = max(1, source.metadata.num_rows)
            size = file.path.stat().st_size
            odd = {f.name for f in source.schema_arrow if not _is_plain(f.type)}
            done = 0
            for batch in source.iter_batches(batch_size=64):
                done += batch.num_rows
                file.bytes_read = size * done // total
                for columns in batch.to_pylist():
                    for name in odd:
                        columns[name] = _plain(columns[name])
                    yield columns
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise LoadError(f"{file.shown}: not Parquet ({_brief(error)}). Write the file again.") from None


def _is_plain(kind: Any) -> bool:
    import pyarrow.types as t

    return t.is_string(kind) or t.is_large_string(kind) or t.is_integer(kind) or t.is_boolean(kind)


def _plain(value: Any) -> Any:
    """JSON's values only: bytes become text, times ISO text, decimals text, maps and tuples dicts and
    lists."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return None if is_missing(value) else value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _brief(error: Exception) -> str:
    return str(error).split("\n")[0][:120]


READERS: dict[str, Callable[[ResponseFile], Iterator[dict[str, Any]]]] = {
    "jsonl": _read_jsonl,
    "json": _read_json,
    "csv": _read_csv,
    "parquet": _read_parquet,
}
