"""Data frames of every maker give the same matches as the plain columns they hold."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch import from_frame
from evenmatch.errors import BadRowsError, InputError
from tables.tidy_rows import FRAMES, WHOLE, changed, put_together, row_dicts, table_values, taken_in

DAYS = {"2026-01-01T10:00:00Z": 1767261600, "2026-01-02T10:00:00Z": 1767348000, "2026-01-03T10:00:00Z": 1767434400}
GAPS = changed(WHOLE, {(0, "seconds"): None, (5, "score"): None, (7, "performance"): None, (8, "quit"): None})


def expected_rows(columns):
    return put_together([row | {"played_at": DAYS[row["played_at"]] * 1_000_000} for row in row_dicts(columns)])


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", *FRAMES])
@pytest.mark.parametrize("columns", [WHOLE, GAPS], ids=["whole", "with gaps"])
def test_every_form_gives_the_same_matches(columns, form, tmp_path):
    assert table_values(taken_in(columns, form, tmp_path)) == expected_rows(columns)


def test_a_pandas_frame_that_was_filtered_sorted_and_indexed_is_read_without_a_warning():
    frame = pd.DataFrame(WHOLE).sort_values("player", ascending=False)
    matches = from_frame(frame[frame["match_id"] != "m2"])
    assert matches.match_id.to_pylist() == ["m1", "m3"]


def test_pandas_categories_nullable_types_and_missing_values_are_read():
    frame = pd.DataFrame(GAPS).astype(
        {"match_id": "category", "player": "category", "team": "category", "place": "Int64", "seconds": "Float64"}
    )
    assert table_values(from_frame(frame)) == expected_rows(GAPS)


def test_a_pandas_place_with_gaps_is_a_float_and_still_whole():
    frame = pd.DataFrame(changed(WHOLE, {(1, "place"): None}))
    assert frame["place"].dtype == np.float64
    assert table_values(from_frame(frame)) == expected_rows(WHOLE)


def test_polars_text_categories_and_enums_are_read():
    frame = pl.DataFrame(GAPS).with_columns(
        pl.col("match_id").cast(pl.Categorical), pl.col("player").cast(pl.Enum(["ann", "bob", "cat", "dan"]))
    )
    assert table_values(from_frame(frame)) == expected_rows(GAPS)


def test_a_duckdb_query_is_read():
    relation = (
        duckdb.connect()
        .from_arrow(pa.table(GAPS))
        .query("season", "select *, 'one' as ladder from season where match_id <> 'm1' order by player, match_id")
    )
    matches = from_frame(relation)
    assert matches.match_id.to_pylist() == ["m2", "m3"]
    assert matches.ladders == ("one",)


@pytest.mark.parametrize("form", ["jsonl", "parquet", *FRAMES])
def test_whole_numbers_are_names(form, tmp_path):
    numbers = {"ann": 7, "bob": 10**15, "cat": -3, "dan": 0}
    columns = WHOLE | {
        "match_id": [int(name[1:]) for name in WHOLE["match_id"]],
        "player": [numbers[name] for name in WHOLE["player"]],
        "team": [{"a": 1, "b": 2}[name] for name in WHOLE["team"]],
        "ladder": [6] * 12,
    }
    matches = taken_in(columns, form, tmp_path)
    assert matches.match_id.to_pylist() == ["1", "2", "3"]
    assert matches.ladders == ("6",)
    assert table_values(matches)[0][4][0][0] == "1"
    assert {player[0] for team in table_values(matches)[0][4] for player in team[3]} == {
        "7",
        "1000000000000000",
        "-3",
        "0",
    }


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["true", "FALSE", "True", "f"], [True, False, True, False]),
        (["yes", "no", "Y", "n"], [True, False, True, False]),
        (["1", "0", "1.0", "0.0"], [True, False, True, False]),
        ([1, 0, None, 1], [True, False, False, True]),
        ([1.0, 0.0, None, 1.0], [True, False, False, True]),
        ([True, False, None, True], [True, False, False, True]),
        ([None, None, None, None], [False, False, False, False]),
    ],
)
def test_quit_may_be_words_or_numbers_and_empty_means_no(words, meant):
    assert from_frame(pa.table(WHOLE | {"quit": words * 3})).history.columns.quit.tolist() == meant * 3


# A column of another type, and what it stands for
TYPES = [
    ("seconds", pa.array([600, 599, 600, 60] * 3, pa.int16()), [600.0, 599.0, 600.0, 60.0] * 3),
    ("seconds", pa.array(["600", "599.5", "6e2", " 60"] * 3), [600.0, 599.5, 600.0, 60.0] * 3),
    ("seconds", pa.array(["600", None, "6e2", "60"] * 3, pa.string_view()), [600.0, None, 600.0, 60.0] * 3),
    ("score", pa.array([2**60, 1, 2, 3] * 3, pa.uint64()), [float(2**60), 1.0, 2.0, 3.0] * 3),
    ("score", pa.array([1.5, 1, 2, 3] * 3, pa.float32()), [1.5, 1.0, 2.0, 3.0] * 3),
    ("score", pa.array([None] * 12, pa.null()), [None] * 12),
    ("score", pa.array([float("nan"), 1.0, 2.0, None] * 3), [None, 1.0, 2.0, None] * 3),
]


@pytest.mark.parametrize(("name", "column", "meant"), TYPES)
def test_numbers_of_any_type_and_in_text_are_read(name, column, meant):
    values = getattr(from_frame(pa.table(WHOLE | {name: column})).history.columns, name)
    assert [None if np.isnan(value) else value for value in values.tolist()] == meant


def test_text_views_can_be_skipped_over_as_any_other_text():
    frame = pl.DataFrame(changed(WHOLE, {(5, "performance"): 3.0}))
    matches = from_frame(frame, skip_bad=True)
    assert matches.match_id.to_pylist() == ["m1", "m3"]


def test_a_frame_is_named_in_messages_and_its_rows_are_counted_from_1():
    with pytest.raises(BadRowsError, match=r"the data frame: 1 problem\n  row 12, match 'm3': performance"):
        from_frame(pa.table(changed(WHOLE, {(11, "performance"): 3.0})))


def test_bytes_are_no_names():
    with pytest.raises(InputError, match="column player contains binary; expected text or whole numbers"):
        from_frame(pa.table(WHOLE | {"player": [b"\xff"] * 12}))


def test_a_true_or_false_place_is_an_input_error():
    with pytest.raises(InputError, match="column place contains true and false"):
        from_frame(pa.table(WHOLE | {"place": [True] * 12}))


@given(st.lists(st.integers(0, 12), max_size=6).map(sorted), st.booleans())
def test_the_cuts_between_batches_do_not_matter(cuts, encoded):
    table = pa.table(WHOLE)
    parts = [table.slice(start, end - start) for start, end in zip([0, *cuts], [*cuts, 12], strict=True)]
    if encoded:  # each batch with a dictionary of its own
        parts = [part.set_column(3, "player", part["player"].combine_chunks().dictionary_encode()) for part in parts]
    assert table_values(from_frame(pa.concat_tables(parts))) == expected_rows(WHOLE)
