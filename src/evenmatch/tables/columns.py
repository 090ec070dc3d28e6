"""Convert file columns to typed numpy arrays; each reader records the rows that it cannot read as faults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.durations import DAY, SECOND
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats, Times
from evenmatch.match import LARGEST_PLACE
from evenmatch.times import (
    END_TIME,
    EPOCH,
    FIRST_TIME,
    MISREAD_END,
    PLAIN_NUMBER,
    SECONDS,
    YEARS,
    TimeFormat,
    is_plausible,
    likeness,
    misread,
    zone_named,
)

UNREAD = int(np.iinfo(np.int64).min)  # marks a time that could not be read
_WORDS = dict.fromkeys(("true", "t", "yes", "y", "1", "1.0"), True)
_WORDS |= dict.fromkeys(("false", "f", "no", "n", "0", "0.0"), False)
_CHUNK = 65_536
_QUARTER = 900 * SECOND


Extent = Literal["row", "team", "match"]


class RowFault(NamedTuple):
    """A row (counted from 0) that cannot be read, and why.

    per  what the value belongs to; the same fault in other rows of the team or match is not reported again
    """

    row: int
    reason: str
    per: Extent = "row"


@dataclass
class Faults:
    """Rows that cannot be read."""

    found: list[RowFault] = field(default_factory=list)

    def note(self, rows: NDArray[np.integer], reason: Callable[[int], str], per: Extent = "row") -> None:
        """Add a fault for each of these rows."""
        self.found.extend(RowFault(row, reason(row), per) for row in rows.tolist())


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
    column: pa.ChunkedArray, what: str, faults: Faults, *, in_runs: bool = False, per: Extent = "row"
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
    faults.note(np.flatnonzero(codes < 0), lambda _: f"{what} is empty; expected any text", per)
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
    per: Extent = "row",
) -> Floats:
    """Finite numbers from `low` to `high`, NaN for an empty cell.

    nan_is_empty  False: a NaN is a fault; True: it means not recorded, as files write for a missing score
    accepted      the allowed values in words, for the message
    per           what a value belongs to, see RowFault
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
    faults.note(np.flatnonzero(unread | out), lambda row: f"{what} is {texts(row)}; expected {accepted}", per)
    values[missing | unread | out] = np.nan
    return values


def places(column: pa.ChunkedArray, faults: Faults) -> NDArray[np.int32]:
    """Finishing places, 0 for an empty cell."""
    if column.type == pa.int32() and len(column) and not column.null_count:
        found = pc.min_max(column).as_py()
        if found["min"] >= 1 and found["max"] <= LARGEST_PLACE:
            return np.array(column.to_numpy())
    accepted = "a whole number from 1 (the best) upwards"
    values = numbers(column, "place", 1, LARGEST_PLACE, faults, accepted=accepted, per="team")
    broken = (values % 1 != 0) & ~np.isnan(values)
    faults.note(np.flatnonzero(broken), lambda row: f"place is {values[row]:g}; expected {accepted}", "team")
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


def times(column: pa.ChunkedArray, faults: Faults, form: TimeFormat = SECONDS) -> Times:
    """Microseconds since the Unix epoch from timestamps, ISO 8601 text or numbers in a format; UNREAD for all else."""
    missing = _nulls(column)
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        micros = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False).cast(pa.int64())
        values = micros.fill_null(0).combine_chunks().to_numpy(zero_copy_only=False).copy()
        unread = np.zeros(len(values), bool)
        if getattr(kind, "tz", None) is None:
            values = to_utc(values, form.zone)
    elif form.pattern:
        values, unread = _from_pattern(column, form)
    elif _is_number(kind):
        values, unread = _from_numbers(column.cast(pa.float64(), safe=False).to_numpy(), form)
    else:
        values, unread = _from_text(column, form)
    unread |= missing
    early = (values > 0) & (values < MISREAD_END)
    implausible = np.flatnonzero(((values < FIRST_TIME) | (values >= END_TIME) | early) & ~unread)
    implausible = implausible[[not is_plausible(micros) for micros in values[implausible].tolist()]]
    texts = _shown(column)

    def misread_time(row: int) -> str:
        return f"played_at is {texts(row)}{misread(int(values[row]))}; expected {_accepted_times(form)}"

    def no_time(row: int) -> str:
        value = column[row].as_py()
        if value is None:
            return f"played_at is empty; expected {_accepted_times(form)}"
        like = likeness(float(value) if isinstance(value, Decimal) else value)
        option = f"; --time-format {like.time_format} reads it" if like.time_format else ""
        return f"played_at is {texts(row)}{like.clause}; expected {_accepted_times(form)}{option}"

    faults.note(np.flatnonzero(unread), no_time, "match")
    faults.note(implausible, misread_time, "match")
    values[unread] = UNREAD
    values[implausible] = UNREAD
    return values


def _accepted_times(form: TimeFormat) -> str:
    if form.pattern:
        return form.accepted
    return f"a timestamp or ISO 8601 text such as 2026-11-21T18:30:00Z, in {YEARS}, or {form.accepted}"


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
        if isinstance(value, str) and not re.match(PLAIN_NUMBER, value):
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


def _from_numbers(numbers: Floats, form: TimeFormat) -> tuple[Times, Flags]:
    """Read numbers as times in a format, or as eight-digit dates, and mask the numbers that are neither."""
    unread = ~((numbers >= form.low) & (numbers < form.high))
    count = np.where(unread, form.zero, numbers) - form.zero
    whole = np.floor(count)
    micros = np.rint(whole * form.unit).astype(np.int64) + np.rint((count - whole) * form.unit).astype(np.int64)
    if form.unit == DAY:  # spreadsheets round days to five decimals or more
        micros = to_utc((micros + SECOND // 2) // SECOND * SECOND, form.zone)
    dates = np.flatnonzero(unread & (numbers >= 1800_01_01) & (numbers < 2100_01_01))
    distinct, index = np.unique(numbers[dates], return_inverse=True)
    days = np.array([_day(number) for number in distinct.tolist()], np.int64)
    micros[dates], unread[dates] = to_utc(days, form.zone)[index], days[index] == UNREAD
    return micros, unread


def _day(number: float) -> int:
    """Return the time of an eight-digit date such as 20261121; UNREAD for other numbers."""
    try:
        return (date.fromisoformat(f"{number:.15g}") - EPOCH.date()).days * DAY
    except ValueError:
        return UNREAD


def _from_text(column: pa.ChunkedArray, form: TimeFormat) -> tuple[Times, Flags]:
    values, unread = np.zeros(len(column), np.int64), np.zeros(len(column), bool)
    if not pa.types.is_large_string(column.type):  # for instance a time of day, a duration, a list
        return values, ~unread
    text = pc.utf8_trim_whitespace(column)
    start = 0
    for chunk in text.chunks:
        for begin in range(0, len(chunk), _CHUNK):
            piece = chunk.slice(begin, _CHUNK)
            target = slice(start, start + len(piece))
            values[target], unread[target] = _piece_from_text(piece, form)
            start += len(piece)
    return values, unread


def _piece_from_text(piece: pa.Array, form: TimeFormat) -> tuple[Times, Flags]:
    """Use Arrow's parsers if the whole piece has one format, otherwise the standard library cell by cell."""
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            moments = piece.cast(kind).cast(pa.int64()).fill_null(0)
        except pa.ArrowInvalid:
            continue
        micros = moments.to_numpy(zero_copy_only=False)
        return micros if kind.tz else to_utc(micros, form.zone), np.zeros(len(piece), bool)
    if pc.all(pc.match_substring_regex(piece.drop_null(), PLAIN_NUMBER)).as_py():
        with suppress(pa.ArrowInvalid):  # a sign that Arrow cannot read
            return _from_numbers(piece.fill_null("0").cast(pa.float64()).to_numpy(zero_copy_only=False), form)
    return _one_by_one(piece, 0, partial(parse_time, form=form))


def parse_time(text: str, form: TimeFormat = SECONDS) -> int:
    """Microseconds since the Unix epoch from ISO 8601 text or a number in a format; ValueError for anything else."""
    if re.match(PLAIN_NUMBER, text):
        values, unread = _from_numbers(np.array([float(text)]), form)
        if unread[0]:
            raise ValueError(text)
        return int(values[0])
    moment = datetime.fromisoformat(text.strip())
    return _micros(moment, form)


def _micros(moment: datetime, form: TimeFormat) -> int:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=zone_named(form.zone))
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * SECOND + moment.microsecond


def _from_pattern(column: pa.ChunkedArray, form: TimeFormat) -> tuple[Times, Flags]:
    """Read each distinct text with the strptime pattern; Arrow's strptime turns 31 February into 3 March."""
    try:
        text = pc.utf8_trim_whitespace(column.cast(pa.large_string())).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.zeros(len(column), np.int64), np.ones(len(column), bool)
    distinct = text.dictionary_encode()

    def parse(one: str) -> int:
        return _micros(datetime.strptime(one, form.pattern), form)

    values, unread = _one_by_one(distinct.dictionary, 0, parse)
    codes = distinct.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(values, 0)[codes].astype(np.int64), np.append(unread, False)[codes]


def to_utc(local: Times, zone: str) -> Times:
    """Microseconds of a local clock in UTC; of a repeated hour, the first. Zones change at quarters of an hour."""
    if zone == "UTC":
        return local
    info = zone_named(zone)
    quarters, index = np.unique(np.clip(local, FIRST_TIME, END_TIME) // _QUARTER, return_inverse=True)
    clocks = [EPOCH + timedelta(microseconds=quarter * _QUARTER) for quarter in quarters.tolist()]
    offsets = [clock.replace(tzinfo=info).utcoffset() or timedelta() for clock in clocks]
    return local - np.array([offset // timedelta(microseconds=1) for offset in offsets], np.int64)[index]
