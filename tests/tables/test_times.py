"""Every way in which a time may be written, and the microseconds it stands for."""

import re
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
from tables.tidy_rows import WHOLE, iso, taken_in

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
    ("1970-01-20T15:30", 1697400_000000),
    ("1872-11-30", -3063744000_000000),
    ("1800-01-01T00:00:00Z", -5364662400_000000),
    ("2099-12-31T23:59:59.999999Z", 4102444799_999999),
    ("1795285800", 1795285800_000000),
    ("1795285800.25", 1795285800_250000),
    ("1.7952858e9", 1795285800_000000),
    ("100000000", 100000000_000000),
    ("4102444799.75", 4102444799_750000),
    ("20261121", 1795219200_000000),
    ("18721130", -3063744000_000000),
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
    ("whole numbers of 32 bits", pa.array([1795285800] * 2, pa.int32()), 1795285800_000000),
    ("a date of eight digits", pa.array([20261121] * 2, pa.int32()), 1795219200_000000),
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
    ("pandas in nanoseconds", lambda: pd.DataFrame(DUEL | {"played_at": np.array([MICROS * 1000 + 1] * 2, "M8[ns]")})),
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


# 2026-11-21T18:30:00Z in each format; the day of the spreadsheet is (date(2026, 11, 21) - date(1899, 12, 30)).days
OTHER_FORMATS = {
    "milliseconds": (1795285800_000, "epoch milliseconds"),
    "microseconds": (1795285800_000_000, "epoch microseconds"),
    "nanoseconds": (1795285800_000_000_000, "epoch nanoseconds"),
    "spreadsheet": (46347 + 18.5 / 24, "a spreadsheet date"),
}


@pytest.mark.parametrize("form", ["csv", "jsonl", "table"])
@pytest.mark.parametrize("kind", [int, float, str])
@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_a_number_in_another_format_is_an_error_that_names_the_option_that_reads_it(name, kind, form, tmp_path):
    number, meaning = OTHER_FORMATS[name]
    day = name == "spreadsheet" and kind is int
    moment, micros = ("2026-11-21T00:00:00Z", 1795219200_000000) if day else ("2026-11-21T18:30:00Z", 1795285800_000000)
    columns = WHOLE | {"played_at": [kind(number)] * 12}
    expected = rf"played_at is .*, which looks like {meaning} \({moment}\); expected .*; --time-format {name} reads it"
    with pytest.raises(BadRowsError, match=expected):
        taken_in(columns, form, tmp_path)
    assert set(taken_in(columns, form, tmp_path, time_format=name).history.columns.time.tolist()) == {micros}


def test_epoch_seconds_are_an_error_where_another_format_was_asked_for():
    with pytest.raises(BadRowsError, match=r"looks like epoch seconds .*; --time-format seconds reads it"):
        from_frame(pa.table(DUEL | {"played_at": [1795285800] * 2}), time_format="milliseconds")


@pytest.mark.parametrize("name", OTHER_FORMATS)
@pytest.mark.parametrize("text", ["2026-11-21T18:30:00Z", "20261121"])
def test_iso_text_and_dates_of_eight_digits_are_read_in_every_format(name, text):
    found = from_frame(pa.table(DUEL | {"played_at": [text] * 2}), time_format=name).history.columns.time.tolist()
    assert found == [dict(TEXTS)[text]]


# What `TEXT(A1, "0.00000")` and a cell of the format General show of 2026-11-21 18:30:00, and of one second later
@pytest.mark.parametrize(("day", "second"), [(46347.77083, 0), (46347.7708333333, 0), (46347.77084, 1)])
def test_a_spreadsheet_date_is_exact_to_the_second(day, second):
    found = from_frame(pa.table(DUEL | {"played_at": [day] * 2}), time_format="spreadsheet")
    assert found.history.columns.time.tolist() == [1795285800_000000 + second * 1_000_000]


# A value that is no time, and what the message says that it looks like
LOOKS = [
    (2026, "the year 2026"),
    (202611211830, "the time 2026-11-21T18:30:00 without separators"),
    (20261121183000, "the time 2026-11-21T18:30:00 without separators"),
    ("05/01/2026", "2026-01-05 with the day first, or 2026-05-01 with the month first"),
    ("05.01.2026 18:30", "2026-01-05 with the day first, or 2026-05-01 with the month first"),
    ("21.11.2026", "the date 2026-11-21"),
    ("11/21/2026", "the date 2026-11-21"),
    ("05-05-2026", "the date 2026-05-05"),
    ("2026/11/21 18:30", "the date 2026-11-21"),
    ("2026-1-5", "the date 2026-01-05"),
    ("21/11/26", "a date whose year has two digits"),
    ("26-11-21", "a date whose year has two digits"),
    ("0026-11-21", "a year of two digits"),
    ("1970-01-21T18:41:25.800Z", "a time read in the wrong unit (2026-11-21 is 1,000 times as long after 1970)"),
    ("1970-01-01T12:52:27.843750Z", "a spreadsheet date read as seconds (2026-11-21T20:15:00Z)"),
    ("1970-01-01T00:00:07Z", "a clock that was not set"),
    (pa.array([1795285800] * 2, pa.timestamp("ms")), "a time read in the wrong unit (2026-11-21 is 1,000 times"),
    (pa.array([1795285800000] * 2, pa.timestamp("ns")), "a time read in the wrong unit (2026-11-21 is 1,000,000 times"),
    (pa.array([1795285800] * 2, pa.timestamp("ns")), "a time read in the wrong unit (2026-11-21 is 1,000,000,000 "),
]


@pytest.mark.parametrize(("value", "likeness"), LOOKS, ids=[str(likeness) for _, likeness in LOOKS])
def test_the_message_says_what_the_value_looks_like(value, likeness):
    with pytest.raises(BadRowsError, match=re.escape(f", which looks like {likeness}")) as caught:
        parsed_times(value)
    assert "; expected a timestamp or ISO 8601 text such as 2026-11-21T18:30:00Z, in the years" in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, -0.25, 86400, 99_999_999.9, 4102444800, 20261399, "1799-12-31", "2100-01-01"])
def test_a_time_out_of_range_is_a_bad_row(value):
    with pytest.raises(
        BadRowsError, match=r"played_at is .*; expected .* in the years 1800 to 2099, or epoch seconds "
    ):
        parsed_times(value)


TEXTS_OF_NO_TIME = (
    *("", " ", "yesterday", "2026-13-01", "2026-02-29", "2026-11-21T25:00"),
    *("21.11.2026", "11/21/2026", "nan", "inf", "1e999"),
)
NUMBERS_OF_NO_TIME = (float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 9.3e12, -9.3e12)
SPANS = (pa.array([1, 2], pa.time64("us")), pa.array([5, 5], pa.duration("s")))  # a time of day is no moment either


@pytest.mark.parametrize("value", [*TEXTS_OF_NO_TIME, *NUMBERS_OF_NO_TIME, *SPANS])
def test_a_value_that_is_no_time_is_a_bad_row(value):
    with pytest.raises(BadRowsError, match="played_at is"):
        parsed_times(value)


@given(
    st.datetimes(datetime(1800, 1, 3), datetime(1969, 12, 29))
    | st.datetimes(datetime(1970, 3, 3), datetime(2099, 12, 29)),
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
        (["1e8", "1.7952858e9", "1795285800.25"], [100000000_000000, 1795285800_000000, 1795285800_250000]),
        (["1e8", "20261121", "1795285800.25"], [100000000_000000, 1795219200_000000, 1795285800_250000]),
        (["1e8", "+1795285800", "1795285800.25"], [100000000_000000, 1795285800_000000, 1795285800_250000]),
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
