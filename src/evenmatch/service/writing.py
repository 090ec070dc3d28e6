"""Tables that come in parts into one file: CSV, Parquet or JSON Lines by its suffix, whole or not at all."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from evenmatch.errors import UsageError
from evenmatch.tables.files import form_of, texts

ROWS = 65_536  # written at a time


class Writer(Protocol):
    """Takes the parts of a table in turn."""

    def write(self, part: pa.Table) -> None:
        """Add these rows, which have the columns of all others."""
        ...

    def close(self) -> None:
        """Write what ends the file."""
        ...


class Drafts:
    """Files while they are written; all of them take their names when the block ends, none where it raises."""

    def __init__(self) -> None:
        self._made: list[tuple[Path, Path]] = []

    def __enter__(self) -> Drafts:
        return self

    def add(self, path: Path) -> Path:
        """A new empty file beside this path. Raises UsageError where there cannot be one."""
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
        os.close(handle)
        self._made.append((Path(name), path))
        return Path(name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                mask = os.umask(0)
                os.umask(mask)
                for draft, path in self._made:
                    draft.chmod(0o666 & ~mask)
                    draft.replace(path)
        finally:
            for draft, _ in self._made:
                draft.unlink(missing_ok=True)


def write_parts(parts: Iterable[pa.Table], path: Path, draft: Path) -> int:
    """Write the parts into the draft of `path`; how many rows. Columns that hold nothing in any part are left out.

    Parts may lack columns that others have. They wait in a file, since the first may lack what the last one has.
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent) as waiting:
            schemas, rows = _collect(parts, waiting)
            whole = pa.unify_schemas(schemas) if schemas else pa.schema([])
            with draft.open("wb") as file, _writer(path, whole, file) as writer:
                for part in _waiting(waiting, schemas):
                    writer.write(_complete(part, whole))
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    return rows


def _collect(parts: Iterable[pa.Table], file: io.BufferedIOBase) -> tuple[list[pa.Schema], int]:
    """Put every part into a file, one stream of its own each; their schemas in order, and the rows of all."""
    schemas, rows = [], 0
    for part in parts:
        with pa.ipc.new_stream(file, part.schema) as stream:
            stream.write_table(part)
        schemas.append(part.schema)
        rows += part.num_rows
    file.seek(0)
    return schemas, rows


def _waiting(file: io.BufferedIOBase, schemas: list[pa.Schema]) -> Iterator[pa.Table]:
    for _ in schemas:
        with pa.ipc.open_stream(file) as stream:
            yield stream.read_all()


def _complete(part: pa.Table, whole: pa.Schema) -> pa.Table:
    """The part with every column of the whole, in its order."""
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
    """Text with a header; quotes only in parts that need them."""

    def __init__(self, schema: pa.Schema, file: io.BufferedIOBase) -> None:
        self._file = file
        file.write((",".join(schema.names) + "\n").encode())

    def write(self, part: pa.Table) -> None:
        """Add these rows."""
        plain = texts(part)
        options = {"include_header": False, "batch_size": ROWS}
        for quoting in ("none", "needed"):
            held = io.BytesIO()
            try:
                pa_csv.write_csv(plain, held, pa_csv.WriteOptions(quoting_style=quoting, **options))
            except pa.ArrowInvalid:  # a cell holds a comma, a quote or a line end
                if quoting == "needed":
                    raise
                continue
            self._file.write(held.getbuffer())
            return

    def close(self) -> None:
        """Nothing ends a CSV file."""


class ParquetWriter:
    """A row group per part."""

    def __init__(self, schema: pa.Schema, file: io.BufferedIOBase) -> None:
        self._writer = pq.ParquetWriter(file, schema)

    def write(self, part: pa.Table) -> None:
        """Add these rows."""
        self._writer.write_table(part)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


class JsonWriter:
    """An object a line."""

    def __init__(self, schema: pa.Schema, file: io.BufferedIOBase) -> None:
        self._file = file

    def write(self, part: pa.Table) -> None:
        """Add these rows."""
        for batch in texts(part).to_batches(max_chunksize=ROWS):
            lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in batch.to_pylist()]
            self._file.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Nothing ends a JSON Lines file."""
