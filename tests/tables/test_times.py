"""Every way in which a time may be written, and the microseconds it stands for."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch import from_frame
from evenmatch.errors import BadRowsError
from tables.tidy_rows import FILES, FRAMES, WHOLE, iso, taken_in

DUEL = {"match_id": ["m", "m"], "team": ["a", "b"], "player": ["ann", "bob"], "place": [1, 2]}

# The text and microseconds since the epoch, worked out with `date -u -d TEXT +%s`
TEXTS = [
    ("2026-11-21", 1795219200_000000),
    ("2026-11-21T18:30", 1795285800_000000),
    ("2026-11-21T18:30:00", 1795285800_000000),
    ("2026-11-21 18:30:00", 1795285800_000000),
    ("2026-11-21T18:30:00Z", 1795285800_000000),
    ("2026-11-21 18:30:00Z", 1795285800_000000),
    ("2026-11-21T18:30:00+00:00", 1795285800_000000),
    ("2026-11-21T18:30:00+02:00", 1795278600_000000),
    ("2026-11-21T18:30:00+0200", 1795278600_000000),
    ("2026-11-21T18:30:00-05:30", 1795305600_000000),
    ("2026-11-21 18:30:00-05:30", 1795305600_000000),
    ("2026-11-21T00:30:00+02:00", 1795213800_000000),
    ("2026-11-21T18:30:00.5Z", 1795285800_500000),
    ("2026-11-21T18:30:00.123Z", 1795285800_123000),
    ("2026-11-21T18:30:00.123456", 1795285800_123456),
    ("2026-11-21T18:30:00.123456+02:00", 1795278600_123456),
    ("2026-11-21T18:30:00.123456789Z", 1795285800_123456),
    ("  2026-11-21T18:30:00Z ", 1795285800_000000),
    ("1969-12-31T23:59:59.25Z", -750000),
    ("1970-01-01", 0),
    ("0001-01-01T00:00:00Z", -62135596800_000000),
    ("9999-12-31T23:59:59Z", 253402300799_000000),
    ("9999-12-31T23:59:59.999999Z", 253402300799_999999),
    ("1795285800", 1795285800_000000),
    ("1795285800.25", 1795285800_250000),
    ("-1", -1_000000),
    ("-0.25", -250000),
    ("0", 0),
    ("1.7952858e9", 1795285800_000000),
]


def parsed_times(column):
    values = column if isinstance(column, pa.Array | pa.ChunkedArray) else [column, column]
    return from_frame(pa.table(DUEL | {"played_at": values})).history.columns.time.tolist()


@pytest.mark.parametrize(("text", "micros"), TEXTS, ids=[text for text, _ in TEXTS])
def test_a_time_in_text_is_read(text, micros):
    assert parsed_times(text) == [micros]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "pandas", "polars", "duckdb"])
def test_all_texts_may_stand_in_one_column(form, tmp_path):
    columns = {
        "match_id": [f"m{number}" for number in range(len(TEXTS)) for _ in "ab"],
        "played_at": [text for text, _ in TEXTS for _ in "ab"],
        "team": ["a", "b"] * len(TEXTS),
        "player": ["ann", "bob"] * len(TEXTS),
        "place": [1, 2] * len(TEXTS),
    }
    matches = taken_in(columns, form, tmp_path)
    found = dict(zip(matches.match_id.to_pylist(), matches.history.columns.time.tolist(), strict=True))
    assert found == {f"m{number}": micros for number, (_, micros) in enumerate(TEXTS)}


MOMENT = datetime(2026, 11, 21, 18, 30, 0, 123456, UTC)
MICROS = 1795285800_123456

# A column of times that is no text, and the microseconds that it stands for
COLUMNS = [
    ("seconds", pa.array([1795285800] * 2, pa.timestamp("s")), 1795285800_000000),
    ("milliseconds", pa.array([1795285800_123] * 2, pa.timestamp("ms")), 1795285800_123000),
    ("microseconds", pa.array([MICROS] * 2, pa.timestamp("us")), MICROS),
    ("nanoseconds", pa.array([MICROS * 1000 + 789] * 2, pa.timestamp("ns")), MICROS),
    ("nanoseconds UTC", pa.array([MICROS * 1000 + 789] * 2, pa.timestamp("ns", "UTC")), MICROS),
    ("Tokyo", pa.array([MICROS] * 2, pa.timestamp("us", "Asia/Tokyo")), MICROS),
    ("an offset", pa.array([MICROS] * 2, pa.timestamp("us", "+05:30")), MICROS),
    ("days", pa.array([date(2026, 11, 21)] * 2, pa.date32()), 1795219200_000000),
    ("days in milliseconds", pa.array([date(2026, 11, 21)] * 2, pa.date64()), 1795219200_000000),
    ("whole epoch seconds", pa.array([1795285800] * 2, pa.int64()), 1795285800_000000),
    ("small whole numbers", pa.array([86400] * 2, pa.int32()), 86400_000000),
    ("unsigned", pa.array([1795285800] * 2, pa.uint32()), 1795285800_000000),
    ("fractions of a second", pa.array([1795285800.123456] * 2, pa.float64()), MICROS),
    ("decimals", pa.array([Decimal("1795285800.123456")] * 2, pa.decimal128(20, 6)), MICROS),
    ("a dictionary of text", pa.array(["2026-11-21"] * 2).dictionary_encode(), 1795219200_000000),
]


@pytest.mark.parametrize(("column", "micros"), [case[1:] for case in COLUMNS], ids=[case[0] for case in COLUMNS])
def test_a_typed_time_is_read(column, micros):
    assert parsed_times(column) == [micros]


ZONED = MOMENT.astimezone(ZoneInfo("Asia/Tokyo"))
FRAMES_OF_TIMES = [
    ("pandas", lambda: pd.DataFrame(DUEL | {"played_at": [pd.Timestamp(MOMENT.replace(tzinfo=None))] * 2})),
    ("pandas in Tokyo", lambda: pd.DataFrame(DUEL | {"played_at": [pd.Timestamp(ZONED)] * 2})),
    (
        "pandas in nanoseconds",
        lambda: pd.DataFrame(DUEL | {"played_at": np.array([MICROS * 1000 + 1] * 2, "M8[ns]")}),
    ),
    ("polars", lambda: pl.DataFrame(DUEL | {"played_at": [MOMENT.replace(tzinfo=None)] * 2})),
    ("polars in Tokyo", lambda: pl.DataFrame(DUEL | {"played_at": [ZONED] * 2})),
    (
        "polars in nanoseconds",
        lambda: pl.DataFrame(DUEL | {"played_at": [MOMENT] * 2}).with_columns(
            pl.col("played_at").dt.cast_time_unit("ns")
        ),
    ),
    ("duckdb", lambda: duckdb_times("TIMESTAMP '2026-11-21 18:30:00.123456'")),
    ("duckdb zoned", lambda: duckdb_times("TIMESTAMPTZ '2026-11-22 03:30:00.123456+09'")),
    ("duckdb in nanoseconds", lambda: duckdb_times("TIMESTAMP_NS '2026-11-21 18:30:00.123456789'")),
]


def duckdb_times(literal):
    row = f"select 'm' as match_id, {literal} as played_at"
    return duckdb.connect().sql(f"{row}, 'a' as team, 'ann' as player, 1 as place union all {row}, 'b', 'bob', 2")


@pytest.mark.parametrize("make", [case[1] for case in FRAMES_OF_TIMES], ids=[case[0] for case in FRAMES_OF_TIMES])
def test_the_timestamps_of_a_data_frame_are_read_in_utc(make):
    assert from_frame(make()).history.columns.time.tolist() == [MICROS]


# What a clock that counts in another unit would give for 2026-11-21T18:30:00Z
OTHER_UNITS = [1795285800_000, 1795285800_000_000, 1795285800_000_000_000]


@pytest.mark.parametrize("form", [*FILES, *FRAMES])
@pytest.mark.parametrize("kind", [int, float, str])
@pytest.mark.parametrize("number", OTHER_UNITS, ids=["milliseconds", "microseconds", "nanoseconds"])
def test_another_unit_taken_for_seconds_is_a_clear_error(number, kind, form, tmp_path):
    with pytest.raises(BadRowsError, match=r"played_at is .* epoch seconds, in the years 1 to 9999"):
        taken_in(WHOLE | {"played_at": [kind(number)] * 12}, form, tmp_path)


def test_milliseconds_are_recognised_and_the_cure_is_named():
    with pytest.raises(BadRowsError, match="epoch milliseconds must be divided by 1000"):
        parsed_times(1795285800_000)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 9.3e12, -9.3e12])
def test_a_number_that_is_no_time_is_a_bad_row(number):
    with pytest.raises(BadRowsError, match="played_at is"):
        parsed_times(number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "yesterday",
        "2026-13-01",
        "2026-02-29",
        "2026-11-21T25:00",
        "21.11.2026",
        "11/21/2026",
        "nan",
        "inf",
        "1e999",
    ],
)
def test_a_text_that_is_no_time_is_a_bad_row(text):
    with pytest.raises(BadRowsError, match="played_at is"):
        parsed_times(text)


@pytest.mark.parametrize("column", [pa.array([1, 2], pa.time64("us")), pa.array([5, 5], pa.duration("s"))])
def test_a_time_of_day_or_a_span_is_no_moment(column):
    with pytest.raises(BadRowsError, match="played_at is"):
        parsed_times(column)


@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    st.sampled_from(["T", " "]),
)
def test_any_iso_text_of_the_standard_library_is_read_exactly(moment, zone, separator):
    zoned = moment.replace(tzinfo=zone)
    expected = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parsed_times(zoned.isoformat(separator)) == [expected]
    assert parsed_times(iso(expected)) == [expected]


@pytest.mark.parametrize(
    ("texts", "times"),
    [
        (["-0.25", "1.7952858e9", "1795285800.25"], [-250000, 1795285800_000000, 1795285800_250000]),
        (["-0.25", "20261121", "1795285800.25"], [-250000, 1795219200_000000, 1795285800_250000]),
        (["-0.25", "+7", "1795285800.25"], [-250000, 7_000000, 1795285800_250000]),
    ],
    ids=["seconds", "a date of eight digits among them", "a plus sign among them"],
)
def test_a_column_of_epoch_seconds_as_text_is_read_cell_by_cell_or_as_a_whole_alike(texts, times):
    rows = {
        "match_id": ["m", "m", "n", "n", "o", "o"],
        **{name: values * 3 for name, values in DUEL.items() if name != "match_id"},
        "played_at": [text for text in texts for _ in range(2)],
    }
    assert from_frame(pa.table(rows)).history.columns.time.tolist() == times
