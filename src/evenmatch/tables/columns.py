"""Convert file columns to typed numpy arrays; each reader records the rows that it cannot read as faults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats, Times
from evenmatch.match import LARGEST_PLACE

FIRST_TIME = int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
LAST_TIME = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()) * 1_000_000 + 999_999
UNREAD = np.iinfo(np.int64).min  # marks a time that could not be read
_PLAIN_NUMBER = r"^\s*[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?\s*$"
_WORDS = dict.fromkeys(("true", "t", "yes", "y", "1", "1.0"), True)
_WORDS |= dict.fromkeys(("false", "f", "no", "n", "0", "0.0"), False)
_BASIC_DATE = r"^\s*[0-9]{8}\s*$"  # 20261121 is a date, not epoch seconds
_CHUNK = 65_536


@dataclass
class Faults:
    """Rows that cannot be read: pairs of row (counted from 0) and reason."""

    found: list[tuple[int, str]] = field(default_factory=list)

    def note(self, rows: NDArray[np.integer], reason: Callable[[int], str]) -> None:
        """Add a fault for each of these rows."""
        self.found.extend((row, reason(row)) for row in rows.tolist())


def plain(rows: pa.Table) -> pa.Table:
    """Convert all text columns to one Arrow type (large_string) that every Arrow function supports."""
    for index, name in enumerate(rows.column_names):
        kind = rows.schema.field(index).type
        if pa.types.is_dictionary(kind):
            text = pa.types.is_string_view(kind.value_type)  # Arrow cannot cast a dictionary of these
            chunks = rows[index].chunks
            values = [(chunk.dictionary.cast(pa.string()) if text else chunk.dictionary) for chunk in chunks]
            taken = [value.take(chunk.indices) for value, chunk in zip(values, chunks, strict=True)]
            kind = pa.string() if text else kind.value_type
            rows = rows.set_column(index, name, pa.chunked_array(taken, kind))
        if pa.types.is_string(kind) or pa.types.is_string_view(kind):
            rows = rows.set_column(index, name, rows.column(index).cast(pa.large_string()))
    return rows


def names(
    column: pa.ChunkedArray, what: str, faults: Faults, *, in_runs: bool = False
) -> tuple[NDArray[np.int32], pa.Array]:
    """Codes (-1 if missing) in order of first appearance, and the distinct texts that they refer to.

    in_runs  equal texts are mostly adjacent, so only the first of each run is looked up
    """
    try:
        text = column.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"column {what} contains {column.type}; expected text or whole numbers") from error
    if in_runs and len(text) > 1 and text.null_count == 0:
        starts = pc.not_equal(text.slice(1), text.slice(0, len(text) - 1)).to_numpy().astype(bool)
        run = np.concatenate(([0], np.cumsum(starts, dtype=np.int32)))
        heads = text.filter(pa.array(np.concatenate(([True], starts))))
        codes, distinct = names(heads, what, Faults())
        codes = codes[run]
        faults.note(np.flatnonzero(codes < 0), lambda _: f"{what} is empty; expected any text")
        return codes, distinct
    encoded = text.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # an empty column stays chunked
        encoded = pa.array([], pa.large_string()).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    empty = pc.equal(encoded.dictionary, "").to_numpy(zero_copy_only=False).astype(bool)
    if empty.any():
        codes = np.where((codes >= 0) & empty[codes], np.int32(-1), codes)
    faults.note(np.flatnonzero(codes < 0), lambda _: f"{what} is empty; expected any text")
    return codes, encoded.dictionary


def numbers(
    column: pa.ChunkedArray,
    what: str,
    low: float,
    high: float,
    faults: Faults,
    *,
    nan_is_empty: bool = True,
    accepted: str | None = None,
) -> Floats:
    """Finite numbers from `low` to `high`, NaN for an empty cell.

    nan_is_empty  False: a NaN is a fault; True: it means not recorded, as files write for a missing score
    accepted      the allowed values in words, for the message
    """
    accepted = accepted or _accepted(low, high)
    if pa.types.is_boolean(column.type):
        raise InputError(f"column {what} contains true and false; expected {accepted}")
    values, unread = _cast(column, what)
    missing = _nulls(column)
    if nan_is_empty:
        missing |= np.isnan(values) & ~unread
    out = ~missing & ~unread & ~((values >= low) & (values <= high) & np.isfinite(values))
    texts = _shown(column)
    faults.note(np.flatnonzero(unread | out), lambda row: f"{what} is {texts(row)}; expected {accepted}")
    values[missing | unread | out] = np.nan
    return values


def places(column: pa.ChunkedArray, faults: Faults) -> NDArray[np.int32]:
    """Finishing places, 0 for an empty cell."""
    accepted = "a whole number from 1 (the best) upwards"
    values = numbers(column, "place", 1, LARGEST_PLACE, faults, accepted=accepted)
    broken = (values % 1 != 0) & ~np.isnan(values)
    faults.note(np.flatnonzero(broken), lambda row: f"place is {values[row]:g}; expected {accepted}")
    return np.where(np.isnan(values) | broken, 0, values).astype(np.int32)


def flags(column: pa.ChunkedArray, what: str, default: bool, faults: Faults) -> Flags:
    """Booleans; `default` for an empty cell."""
    if not pa.types.is_boolean(column.type):
        words = [None if word is None else str(word).strip().lower() for word in column.to_pylist()]
        meant = [None if word is None else _WORDS.get(word) for word in words]
        wrong = np.array([word is not None and flag is None for word, flag in zip(words, meant, strict=True)], bool)
        texts = _shown(column)
        faults.note(np.flatnonzero(wrong), lambda row: f"{what} is {texts(row)}; expected true or false")
        column = pa.chunked_array([pa.array(meant, pa.bool_())])
    return column.fill_null(default).combine_chunks().to_numpy(zero_copy_only=False).astype(bool)


def times(column: pa.ChunkedArray, faults: Faults) -> Times:
    """Microseconds since the Unix epoch from timestamps, ISO 8601 text or epoch seconds; UNREAD for anything else."""
    texts = _shown(column)
    accepted = "a timestamp, ISO 8601 text such as 2026-11-21T18:30:00Z, or epoch seconds, in the years 1 to 9999"
    missing = _nulls(column)
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        micros = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False).cast(pa.int64())
        values = micros.fill_null(0).combine_chunks().to_numpy(zero_copy_only=False).copy()
        unread = np.zeros(len(values), bool)
    elif _is_number(kind):
        values, unread = _from_seconds(column.cast(pa.float64(), safe=False).to_numpy())
    else:
        values, unread = _from_text(column)
    bad = unread | missing | (values < FIRST_TIME) | (values > LAST_TIME)
    rows = np.flatnonzero(bad)
    faults.note(
        rows,
        lambda row: (
            f"played_at is {'empty' if missing[row] else texts(row)}; expected {accepted}"
            + ("" if unread[row] or missing[row] else " (epoch milliseconds must be divided by 1000)")
        ),
    )
    values[rows] = UNREAD
    return values


def _accepted(low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return "a finite number, or an empty cell if not recorded"
    if high == math.inf:
        return f"a finite number from {low:g}, or an empty cell if not recorded"
    return f"a number from {low:g} to {high:g}, or an empty cell if not recorded"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _nulls(column: pa.ChunkedArray) -> Flags:
    if column.null_count == 0:
        return np.zeros(len(column), bool)
    return column.is_null().combine_chunks().to_numpy(zero_copy_only=False).astype(bool)


def _shown(column: pa.ChunkedArray) -> Callable[[int], str]:
    def text(row: int) -> str:
        value = column[row].as_py()
        if isinstance(value, str) and not re.match(_PLAIN_NUMBER, value):
            return repr(value)
        return str(value)

    return text


def _cast(column: pa.ChunkedArray, what: str) -> tuple[Floats, Flags]:
    """The column as numbers and a mask of unreadable rows; unreadable and null cells are NaN."""
    try:
        safe = not pa.types.is_integer(column.type)  # a float represents every whole number in the allowed ranges
        return np.array(column.cast(pa.float64(), safe=safe).to_numpy(), np.float64), np.zeros(len(column), bool)
    except pa.ArrowInvalid:
        return _one_by_one(column, np.nan, _number)
    except pa.ArrowNotImplementedError as error:
        raise InputError(f"column {what} contains {column.type}; expected numbers") from error


def _number(text: str) -> float:
    if "_" in text:  # Python accepts 1_000
        raise ValueError(text)
    return float(text)


def _one_by_one(
    column: pa.ChunkedArray | pa.Array, empty: float, parse: Callable[[str], float]
) -> tuple[NDArray[Any], Flags]:
    """Parse cell by cell: the numbers (`empty` for nulls) and a mask of unreadable rows."""
    values, unread = np.full(len(column), empty), np.zeros(len(column), bool)
    for row, value in enumerate(column.to_pylist()):
        if value is not None:
            try:
                values[row] = parse(value)
            except (ValueError, OverflowError):
                unread[row] = True
    return values, unread


def _from_seconds(seconds: Floats) -> tuple[Times, Flags]:
    unread = ~np.isfinite(seconds)
    near = np.clip(np.where(unread, 0, seconds), -1e12, 1e12)  # values beyond are far outside the calendar
    whole = np.floor(near)
    micros = np.rint((near - whole) * 1e6)
    return whole.astype(np.int64) * 1_000_000 + micros.astype(np.int64), unread


def _from_text(column: pa.ChunkedArray) -> tuple[Times, Flags]:
    values, unread = np.zeros(len(column), np.int64), np.zeros(len(column), bool)
    if not pa.types.is_large_string(column.type):  # for instance a time of day, a duration, a list
        return values, ~unread
    text = pc.utf8_trim_whitespace(column)
    start = 0
    for chunk in text.chunks:
        for begin in range(0, len(chunk), _CHUNK):
            piece = chunk.slice(begin, _CHUNK)
            target = slice(start, start + len(piece))
            values[target], unread[target] = _piece_from_text(piece)
            start += len(piece)
    return values, unread


def _piece_from_text(piece: pa.Array) -> tuple[Times, Flags]:
    """Use Arrow's parsers if the whole piece has one format, otherwise the standard library cell by cell."""
    for form in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            moments = piece.cast(form).cast(pa.int64()).fill_null(0)
        except pa.ArrowInvalid:
            continue
        return moments.to_numpy(zero_copy_only=False), np.zeros(len(piece), bool)
    present = piece.drop_null()
    if (
        pc.all(pc.match_substring_regex(present, _PLAIN_NUMBER)).as_py()
        and not pc.any(pc.match_substring_regex(present, _BASIC_DATE)).as_py()
    ):
        with suppress(pa.ArrowInvalid):  # a sign that Arrow cannot read
            return _from_seconds(piece.fill_null("0").cast(pa.float64()).to_numpy(zero_copy_only=False))
    return _one_by_one(piece, 0, parse_time)


def parse_time(text: str) -> int:
    """Microseconds since the Unix epoch from ISO 8601 text or epoch seconds; ValueError for anything else."""
    if re.match(_PLAIN_NUMBER, text) and not re.match(_BASIC_DATE, text):  # no range check: that is left to the caller
        values, unread = _from_seconds(np.array([float(text)]))
        if unread[0]:
            raise ValueError(text)
        return int(values[0])
    moment = datetime.fromisoformat(text.strip())
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * 1_000_000 + moment.microsecond


def datetime_text(micros: int) -> str:
    """Format a time (microseconds since the epoch) as ISO 8601 text ending in Z."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.replace(tzinfo=None).isoformat() + "Z"
