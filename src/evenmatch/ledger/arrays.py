"""Binary PostgreSQL arrays and rows for COPY, packed by column because the driver packs value by value, which is slow.

The formats are those of PostgreSQL's documentation of COPY, section "Binary Format", and of `array_recv`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import psycopg

# The object ids of an array type and of its element type (pg_type.dat of PostgreSQL).
INT8, FLOAT8, TEXT, BYTEA = (1016, 20), (1022, 701), (1009, 25), (1001, 17)
_HEAD = struct.Struct(">iiIii")  # dimensions, whether there are NULLs, type, length, first index
_FIXED = {INT8: ">i8", FLOAT8: ">f8"}
_COPY_BEGIN = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"


class Int8s(bytes):
    """A packed bigint[]."""


class Float8s(bytes):
    """A packed double precision[]."""


class PackedTexts(bytes):
    """A packed text[]."""


class PackedByteas(bytes):
    """A packed bytea[]."""


Packed = Int8s | Float8s | PackedTexts | PackedByteas


def pack(values: Sequence[object] | NDArray[Any], kind: tuple[int, int]) -> Packed:
    """Pack an array of one or more values of this type; None is NULL.

    values  a numpy array of numbers, or of bytes of one length (dtype V), is packed at once
    """
    fields = _fields(values, kind)
    if isinstance(fields, np.ndarray):
        return _CLASSES[kind](_HEAD.pack(1, 0, kind[1], len(fields), 1) + fields.tobytes())
    return _CLASSES[kind](b"".join([_HEAD.pack(1, int(_NULL in fields), kind[1], len(fields), 1), *fields]))


def copy_data(
    same: Sequence[object],
    columns: Sequence[Sequence[object] | NDArray[Any]],
    kinds: Sequence[tuple[int, int]],
    at_once: int,
) -> Iterator[bytes]:
    """Pack rows as COPY reads them in binary format, `at_once` of them at a time.

    same     the values of the first columns, equal in every row
    columns  the values of the other columns, as `pack` takes them
    kinds    the types of all columns
    """
    yield _COPY_BEGIN
    fixed = chain.from_iterable(_as_list(_fields([value], kind)) for value, kind in zip(same, kinds, strict=False))
    head = len(kinds).to_bytes(2, "big") + b"".join(fixed)
    for first in range(0, len(columns[0]), at_once):
        parts = [values[first : first + at_once] for values in columns]
        fields = [_as_list(_fields(part, kind)) for part, kind in zip(parts, kinds[len(same) :], strict=True)]
        yield b"".join(chain.from_iterable(zip(repeat(head), *fields, strict=False)))
    yield _COPY_END


def _fields(values: Sequence[object] | NDArray[Any], kind: tuple[int, int]) -> list[bytes] | NDArray[np.void]:
    """Each value behind its length; as one numpy array if all have the same length."""
    if isinstance(values, np.ndarray):
        return _fixed_fields(values, values.dtype if kind == BYTEA else np.dtype(_FIXED[kind]))
    if kind in _FIXED and None not in values:
        return _fixed_fields(values, np.dtype(_FIXED[kind]))
    encode = _ENCODE[kind]
    encoded = [None if value is None else encode(value) for value in values]
    return [_NULL if item is None else len(item).to_bytes(4, "big") + item for item in encoded]


def _as_list(fields: list[bytes] | NDArray[np.void]) -> list[bytes]:
    if isinstance(fields, list):
        return fields
    listed: list[bytes] = fields.view(f"V{fields.dtype.itemsize}").tolist()
    return listed


def _fixed_fields(values: Sequence[object] | NDArray[Any], of: np.dtype[Any]) -> NDArray[np.void]:
    fields = np.empty(len(values), [("size", ">i4"), ("value", of)])
    fields["size"], fields["value"] = of.itemsize, values
    return fields


_NULL = b"\xff\xff\xff\xff"
_ENCODE: dict[tuple[int, int], Callable[[Any], bytes]] = {
    INT8: struct.Struct(">q").pack,
    FLOAT8: struct.Struct(">d").pack,
    TEXT: str.encode,
    BYTEA: bytes,
}
_CLASSES: dict[tuple[int, int], type[Packed]] = {INT8: Int8s, FLOAT8: Float8s, TEXT: PackedTexts, BYTEA: PackedByteas}


def teach(connection: psycopg.Connection[Any], _: object) -> None:
    """Register dumpers for packed arrays on a psycopg connection."""
    from psycopg.abc import Buffer  # noqa: PLC0415 - the driver is an extra
    from psycopg.adapt import Dumper  # noqa: PLC0415
    from psycopg.pq import Format  # noqa: PLC0415

    class PackedDumper(Dumper):
        """Dumper that sends the packed bytes unchanged."""

        format = Format.BINARY

        def dump(self, obj: bytes) -> Buffer:
            return obj

    for kind, packed in _CLASSES.items():
        dumper = type(f"{packed.__name__}Dumper", (PackedDumper,), {"oid": kind[0]})
        connection.adapters.register_dumper(packed, dumper)
