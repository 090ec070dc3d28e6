"""Binary PostgreSQL arrays, packed with numpy because the driver packs them value by value, which is slow."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import psycopg

# The object ids of an array type and of its element type (pg_type.dat of PostgreSQL).
INT8, FLOAT8, TEXT, BYTEA = (1016, 20), (1022, 701), (1009, 25), (1001, 17)
_HEAD = struct.Struct(">iiIii")  # dimensions, whether there are NULLs, type, length, first index
_FIXED = {INT8: ">i8", FLOAT8: ">f8"}


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
    if isinstance(values, np.ndarray):
        return _pack_fixed(values, kind, values.dtype if kind == BYTEA else np.dtype(_FIXED[kind]))
    empty = None in values
    head = _HEAD.pack(1, int(empty), kind[1], len(values), 1)
    if kind in _FIXED and not empty:
        return _pack_fixed(values, kind, np.dtype(_FIXED[kind]))
    encode = _ENCODE[kind]
    encoded = [None if value is None else encode(value) for value in values]
    body = [_NULL if item is None else len(item).to_bytes(4, "big") + item for item in encoded]
    return _CLASSES[kind](b"".join([head, *body]))


def _pack_fixed(values: Sequence[object] | NDArray[Any], kind: tuple[int, int], of: np.dtype[Any]) -> Packed:
    """Pack values that all take the same number of bytes."""
    fixed = np.empty(len(values), [("size", ">i4"), ("value", of)])
    fixed["size"], fixed["value"] = of.itemsize, values
    return _CLASSES[kind](_HEAD.pack(1, 0, kind[1], len(values), 1) + fixed.tobytes())


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
