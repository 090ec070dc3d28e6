"""Partitions rate as one file with the same matches does: ratings, expected scores and journal, bit for bit."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenmatch import from_frame, rate, rules
from evenmatch.partitioned import rate_partitions
from evenmatch.partitioned.stream import Selection
from evenmatch.tables.partitions import find_partitions
from partitioned_history import read_rows, write_partitions
from random_matches import random_table

SYSTEMS = ["even", "elo", "wager", "glicko2", "prav", "trueskill", "scorefactor"]


def ladders_of(system, seed, matches=150, ladders=3):
    """A table of several ladders that meet every rule of a system, in one order of time."""
    parts = []
    for number in range(ladders):
        rows = random_table(system, seed + number, matches).to_arrow()
        ids = pa.array([f"{number}-{name}" for name in rows["match_id"].to_pylist()])
        rows = rows.set_column(rows.column_names.index("match_id"), "match_id", ids)
        parts.append(rows.append_column("mode", pa.array([f"mode {number}"] * len(rows))))
    rows = pa.concat_tables(parts, promote_options="default")
    if "ladder" in rows.column_names:
        rows = rows.drop_columns(["ladder"])
    rows = rows.rename_columns(["ladder" if name == "mode" else name for name in rows.column_names])
    return from_frame(rows)


@pytest.mark.parametrize("system", SYSTEMS)
@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1000),
    files=st.integers(1, 4),
    row_group=st.sampled_from([1, 3, 7, 50, 1000]),
    piece=st.sampled_from([1, 5, 64, 100_000]),
    dictionaries=st.booleans(),
    ladders=st.integers(1, 3),
)
def test_chunks_of_any_size_rate_as_one_file(system, seed, files, row_group, piece, dictionaries, ladders):
    table, by = ladders_of(system, seed, 60, ladders), rules(system)
    whole = rate(table, by, journal=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_partitions(table, folder / "in", files, row_group, dictionaries=dictionaries)
        rated = rate_partitions(
            find_partitions(str(folder / "in")),
            by,
            out=str(folder / "out"),
            journal=str(folder / "journal"),
            selection=Selection(piece=piece),
        )
        assert pq.read_table(folder / "out" / "ratings.parquet").equals(whole.standings())
        assert read_rows(folder / "journal").equals(whole.journal_table())
    assert (rated.matches, rated.players) == (len(table), len(table.player))


@pytest.mark.parametrize("system", SYSTEMS)
@settings(max_examples=3, deadline=None)
@given(
    seed=st.integers(0, 1000),
    files=st.integers(1, 3),
    row_group=st.sampled_from([2, 1000]),
    piece=st.sampled_from([9, 100_000]),
)
def test_ladders_in_folders_of_their_own_rate_as_each_alone(system, seed, files, row_group, piece):
    table, by = ladders_of(system, seed, 60), rules(system)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_partitions(table, folder / "in", files, row_group, by_ladder=True)
        rate_partitions(
            find_partitions(str(folder / "in")),
            by,
            out=str(folder / "out"),
            journal=str(folder / "journal"),
            selection=Selection(piece=piece),
        )
        for ladder in table.ladders:
            alone = rate(table.on_ladder(ladder), by, journal=True)
            own = f"ladder={ladder}"
            assert pq.ParquetFile(folder / "out" / own / "ratings.parquet").read().equals(alone.standings())
            assert read_rows(folder / "journal" / own).equals(alone.journal_table())
