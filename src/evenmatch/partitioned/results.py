"""Where results are written: a folder or an object store; each file whole or not at all, the manifest last."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from evenmatch.errors import UsageError
from evenmatch.tables.partitions import file_system, is_url
from evenmatch.whole_file import whole_file

MANIFEST = "manifest.json"


class Results:
    """The files of one result. Without a manifest a folder is no whole result."""

    def __init__(self, address: str) -> None:
        """Name the place; nothing is created yet."""
        self.address = address.rstrip("/")
        self.written: list[dict[str, object]] = []

    def check_new(self) -> None:
        """Raise UsageError if something is there already, or nothing can be written there."""
        if is_url(self.address):
            system, path = file_system(self.address)
            is_taken = _asked(self.address, lambda: system.exists(path) and bool(system.ls(path)))
        else:
            folder = Path(self.address)
            is_taken = folder.is_file() or (folder.is_dir() and any(folder.iterdir()))
        if is_taken:
            raise UsageError(f"{self.address}: is not empty; expected a new or empty folder for the results")

    @contextmanager
    def file(self, name: str) -> Iterator[IO[bytes]]:
        """A file or an object to write, which appears when the block ends without an error."""
        if is_url(self.address):
            system, path = file_system(f"{self.address}/{name}")
            with self._object(system, path) as target:
                yield target
        else:
            file = Path(self.address, name)
            _make_folder(file.parent)
            with whole_file(file) as draft, draft.open("wb") as target:
                yield target

    @contextmanager
    def _object(self, system: Any, path: str) -> Iterator[IO[bytes]]:  # noqa: ANN401 - fsspec has no types
        target = _asked(self.address, lambda: system.open(path, "wb"))
        try:
            yield target
        except BaseException:
            with suppress(Exception):  # the object must not appear; the first error counts
                target.discard()
            target.closed = True
            raise
        _asked(self.address, target.close)

    @contextmanager
    def table(self, name: str) -> Iterator[TableFile]:
        """A Parquet file to write table by table."""
        with self.file(name) as target:
            tables = TableFile(target)
            try:
                yield tables
                tables.close()
            except pa.ArrowException as error:
                raise UsageError(f"{self.address}/{name}: cannot be written: {error}") from error
            finally:
                tables.abandon()
        self.written.append({"name": name, "rows": tables.rows})

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        if is_url(self.address):
            system, path = file_system(f"{self.address}/{name}")
            with suppress(FileNotFoundError):
                _asked(self.address, lambda: system.rm(path))
        else:
            Path(self.address, name).unlink(missing_ok=True)

    def remove_written(self) -> None:
        """Remove the files of a run that failed, as far as that is possible."""
        for entry in self.written:
            with suppress(OSError, UsageError):
                self.remove(str(entry["name"]))

    def write_manifest(self, document: Mapping[str, object]) -> None:
        """Say that the result is whole."""
        with self.file(MANIFEST) as target:
            target.write(json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n")


class TableFile:
    """A Parquet file that grows by tables of one schema."""

    def __init__(self, target: IO[bytes]) -> None:
        """Begin; the schema is that of the first table."""
        self._target = target
        self._writer: Any = None
        self.rows = 0

    def write(self, table: pa.Table) -> None:
        """Add the rows of a table."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - most commands do not need Parquet

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._target, table.schema)
        self._writer.write_table(table)
        self.rows += len(table)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Let go of the file, which will be removed."""
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):
                self._writer.close()
            self._writer.is_open = False  # otherwise it is closed again when it is collected


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be created: {error.strerror}") from error


def _asked(address: str, ask: Any) -> Any:  # noqa: ANN401 - whatever fsspec answers
    try:
        return ask()
    except Exception as error:  # each store has errors of its own
        raise UsageError(f"{address}: the object store refused: {type(error).__name__}: {error}") from error
