"""Partitioned Parquet: find and open the files of a history in a folder, under a pattern or in an object store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from evenmatch.errors import InputError, UsageError, needing

NO_NAME = "__HIVE_DEFAULT_PARTITION__"  # written by other programs for an empty ladder
_LADDER_FOLDER = "ladder="
_NARROW = 3.0  # a column whose values average fewer uncompressed bytes is read as a dictionary


@dataclass(frozen=True)
class Partition:
    """One Parquet file of a partitioned history.

    address  a path, or the URL of an object
    ladder   the ladder of all its matches, from the folder `ladder=NAME`; empty: its rows say it
    size     in bytes
    """

    address: str
    ladder: str
    size: int

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return self.address.rpartition("/")[2]


def is_partitioned(address: str) -> bool:
    """Whether the address names a folder, a pattern or an object store, and not one file on this machine."""
    return is_url(address) or Path(address).is_dir() or (_is_pattern(address) and not Path(address).exists())


def is_url(address: str) -> bool:
    """Whether the address is a URL such as s3://bucket/season, which fsspec opens."""
    return re.match(r"[a-z][a-z0-9+.-]*://", address) is not None


def file_system(address: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it. Raises MissingExtraError or UsageError."""
    with needing("cluster", "reading and writing object stores"):
        import fsspec  # noqa: PLC0415 - an extra
    try:
        system, path = fsspec.core.url_to_fs(address)
    except ImportError as error:  # the library of this protocol
        raise UsageError(f"{address}: {error}") from error
    except ValueError as error:
        raise UsageError(f"{address}: {error}; expected for example s3://bucket/season") from error
    return system, path


def find_partitions(address: str) -> list[Partition]:
    """The Parquet files of a folder, a pattern or an object store, by ladder, then by name, numbers by their value.

    Names that begin with a dot or an underscore are left out. Raises UsageError if nothing is there or it cannot be
    listed, InputError for other files, or for files both inside and outside of `ladder=NAME` folders.
    """
    try:
        files = _objects(address) if is_url(address) else _files(address)
    except (OSError, PermissionError) as error:
        raise UsageError(f"{address}: cannot be listed: {error}") from error
    visible = {path: size for path, size in files.items() if not path.rpartition("/")[2].startswith((".", "_"))}
    if not visible:
        raise UsageError(f"{address}: there are no files; expected Parquet files")
    foreign = sorted(path for path in visible if not path.lower().endswith(".parquet"))
    if foreign:
        listed = ", ".join(foreign[:5]) + (", …" if len(foreign) > 5 else "")
        raise InputError(f"{address}: contains other files than Parquet: {listed}; expected names ending in .parquet")
    partitions = [Partition(path, _ladder_of(path), size) for path, size in visible.items()]
    without = sorted(partition.address for partition in partitions if not partition.ladder)
    if without and len(without) < len(partitions):
        raise InputError(
            f"{address}: {without[0]} is not in a folder ladder=NAME while others are; expected all or none"
        )
    return sorted(partitions, key=lambda partition: (partition.ladder, _in_order(partition.address)))


@contextmanager
def opened(partition: Partition) -> Iterator[Any]:
    """Open a partition as a pyarrow ParquetFile; text columns with few distinct values are read as dictionaries.

    Raises UsageError if it is missing, InputError if it is torn or not Parquet. Read errors inside the block also
    become InputErrors.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - most commands do not need Parquet

    remote = is_url(partition.address)
    try:
        if remote:
            system, path = file_system(partition.address)
            source = system.open(path, "rb")
        else:
            source = Path(partition.address).open("rb")  # noqa: SIM115 - closed below
    except FileNotFoundError as error:
        raise UsageError(f"{partition.address}: is missing; the history is incomplete without it") from error
    except OSError as error:
        raise UsageError(f"{partition.address}: cannot be opened: {error.strerror or error}") from error
    with source, reading(partition.address):
        metadata = pq.read_metadata(source)
        narrow = [name for name in ("ladder", "team", "player") if _width(metadata, name) < _NARROW]
        whole = source if remote else pa.OSFile(partition.address)
        yield pq.ParquetFile(whole, metadata=metadata, read_dictionary=narrow, pre_buffer=remote)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn errors about a torn file, or one that is not Parquet, into an InputError."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{name}: not readable as Parquet, torn or damaged: {reason}") from error


def _width(metadata: Any, name: str) -> float:  # noqa: ANN401 - pyarrow names no types
    """The mean size of a value of this column in the first row group, in bytes, before compression."""
    if not metadata.num_row_groups:
        return _NARROW
    group = metadata.row_group(0)
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == name and column.physical_type == "BYTE_ARRAY":
            return float(column.total_uncompressed_size / max(1, column.num_values))
    return _NARROW


def _files(address: str) -> dict[str, int]:
    if Path(address).is_dir():
        paths = [path for path in Path(address).rglob("*") if not _is_hidden(path.relative_to(address))]
    elif _is_pattern(address) and not Path(address).exists():
        paths = [Path(path) for path in glob(address, recursive=True)]
    else:
        paths = [Path(address)]
    return {path.as_posix(): path.stat().st_size for path in paths if path.is_file()}


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _objects(address: str) -> dict[str, int]:
    system, path = file_system(address)
    try:
        listed = (system.glob if _is_pattern(path) else system.find)(path, detail=True)
    except FileNotFoundError:
        return {}
    except Exception as error:  # each store has errors of its own
        raise UsageError(f"{address}: cannot be listed: {type(error).__name__}: {error}") from error
    return {
        system.unstrip_protocol(name): int(entry["size"] or 0)
        for name, entry in listed.items()
        if entry["type"] == "file"
    }


def _is_pattern(address: str) -> bool:
    return any(mark in address for mark in "*?[")


def _ladder_of(path: str) -> str:
    folders = path.split("/")[:-1]
    named = [unquote(folder.removeprefix(_LADDER_FOLDER)) for folder in folders if folder.startswith(_LADDER_FOLDER)]
    if not named:
        return ""
    return "default" if named[-1] in ("", NO_NAME) else named[-1]


def _in_order(path: str) -> list[tuple[int, int | str]]:
    """Return a sort key that compares numbers in names by value: 2026-9 comes before 2026-10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"([0-9]+)", path) if part]
