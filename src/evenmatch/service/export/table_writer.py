"""Write tables that arrive in parts to CSV, Parquet or JSON Lines files (by suffix), atomically."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from evenmatch.errors import UsageError
from evenmatch.tables.files import form_of, texts
from evenmatch.whole_file import whole_file

ROWS = 65_536  # rows that are written at a time


class Writer(Protocol):
    """The interface of the writers of each format: takes the parts of a table in order."""

    def write(self, part: pa.Table) -> None:
        """Append rows; all parts have the same columns."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


class TemporaryFiles:
    """Temporary files that are renamed to their final paths when the block ends; deleted if it raises."""

    def __init__(self) -> None:
        self._files = ExitStack()

    def __enter__(self) -> TemporaryFiles:
        return self

    def add(self, path: Path) -> Path:
        """Create an empty temporary file in the folder of this path. Raises UsageError if that fails."""
        return self._files.enter_context(whole_file(path))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._files.__exit__(kind, error, at)


def write_parts(parts: Iterable[pa.Table], path: Path, draft: Path) -> int:
    """Write the parts to the draft of `path`. Return the number of rows.

    Parts may have different columns. The header needs the union of all of them, so the parts are first collected in a
    temporary file.
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent) as collected:
            schemas, rows = _collect(parts, collected)
            whole = pa.unify_schemas(schemas) if schemas else pa.schema([])
            with draft.open("wb") as file, _writer(path, whole, file) as writer:
                for part in _collected(collected, schemas):
                    writer.write(_complete(part, whole))
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    return rows


def _collect(parts: Iterable[pa.Table], file: io.BufferedIOBase) -> tuple[list[pa.Schema], int]:
    """Write every part to the file as its own Arrow stream. Return their schemas in order, and the number of rows."""
    schemas, rows = [], 0
    for part in parts:
        with pa.ipc.new_stream(file, part.schema) as stream:
            stream.write_table(part)
        schemas.append(part.schema)
        rows += part.num_rows
    file.seek(0)
    return schemas, rows


def _collected(file: io.BufferedIOBase, schemas: list[pa.Schema]) -> Iterator[pa.Table]:
    for _ in schemas:
        with pa.ipc.open_stream(file) as stream:
            yield stream.read_all()


def _complete(part: pa.Table, whole: pa.Schema) -> pa.Table:
    """The part with all columns of the schema `whole`, in its order; missing ones are null."""
    columns = [
        part[field.name].cast(field.type) if field.name in part.column_names else pa.nulls(part.num_rows, field.type)
        for field in whole
    ]
    return pa.table(columns, schema=whole)


@contextmanager
def _writer(path: Path, schema: pa.Schema, file: io.BufferedIOBase) -> Iterator[Writer]:
    kinds: dict[str, Callable[[pa.Schema, io.BufferedIOBase], Writer]] = {
        "csv": CsvWriter,
        "parquet": ParquetWriter,
        "jsonl": JsonWriter,
    }
    writer = kinds[form_of(path)](schema, file)
    yield writer
    writer.close()


class CsvWriter:
    """Writes CSV with a header; only parts that need quotes are quoted."""

    def __init__(self, schema: pa.Schema, file: io.BufferedIOBase) -> None:
        self._file = file
        file.write((",".join(schema.names) + "\n").encode())

    def write(self, part: pa.Table) -> None:
        """Append rows."""
        plain = texts(part)
        options = {"include_header": False, "batch_size": ROWS}
        for quoting in ("none", "needed"):
            buffer = io.BytesIO()
            try:
                pa_csv.write_csv(plain, buffer, pa_csv.WriteOptions(quoting_style=quoting, **options))
            except pa.ArrowInvalid:  # a cell contains a comma, a quote or a line end
                if quoting == "needed":
                    raise
                continue
            self._file.write(buffer.getbuffer())
            return

    def close(self) -> None:
        """Do nothing: a CSV file has no footer."""


class ParquetWriter:
    """Writes Parquet, one row group or more per part."""

    def __init__(self, schema: pa.Schema, file: io.BufferedIOBase) -> None:
        self._writer = pq.ParquetWriter(file, schema)

    def write(self, part: pa.Table) -> None:
        """Append rows."""
        self._writer.write_table(part)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


class JsonWriter:
    """Writes JSON Lines, one object per line."""

    def __init__(self, schema: pa.Schema, file: io.BufferedIOBase) -> None:
        self._file = file

    def write(self, part: pa.Table) -> None:
        """Append rows."""
        for batch in texts(part).to_batches(max_chunksize=ROWS):
            lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in batch.to_pylist()]
            self._file.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Do nothing: a JSON Lines file has no footer."""
