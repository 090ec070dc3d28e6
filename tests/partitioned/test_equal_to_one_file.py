"""Partitions rate as one file with the same matches does: ratings, expected scores and journal, bit for bit."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenmatch import from_frame, rate, rules
from evenmatch.partitioned import chunk, rate_partitions
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
@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 1000),
    files=st.integers(1, 4),
    row_group=st.sampled_from([1, 3, 7, 50, 1000]),
    piece=st.sampled_from([1, 5, 64, 100_000]),
    dictionaries=st.booleans(),
    ladders=st.integers(1, 3),
    plain=st.booleans(),
)
def test_chunks_of_any_size_rate_as_one_file(system, seed, files, row_group, piece, dictionaries, ladders, plain):
    table, by = ladders_of(system, seed, 60, ladders), rules(system)
    whole = rate(table, by, journal=True)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        if not plain:
            patch.setattr(chunk, "plain_table", lambda *_: None)
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
@settings(max_examples=2, deadline=None)
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


def test_a_usual_history_takes_the_fast_way(tmp_path, monkeypatch):
    monkeypatch.setattr(chunk, "assemble", None)  # a call would fail
    for system in ("even", "wager"):
        write_partitions(random_table(system, 1, 60), tmp_path / system, 2, 50, dictionaries=True)
        assert rate_partitions(find_partitions(str(tmp_path / system)), rules("elo")).matches == 60


def test_an_object_store_gives_and_takes_the_same(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    table, by = ladders_of("elo", 4, 60), rules("elo")
    write_partitions(table, tmp_path / "in", 2, 50)
    fsspec.filesystem("memory").put(str(tmp_path / "in"), "/season", recursive=True)
    rate_partitions(find_partitions("memory://season"), by, out="memory://out", journal="memory://journal")
    fsspec.filesystem("memory").get("/out", str(tmp_path / "out"), recursive=True)
    fsspec.filesystem("memory").get("/journal", str(tmp_path / "journal"), recursive=True)
    whole = rate(table, by, journal=True)
    assert pq.ParquetFile(tmp_path / "out" / "ratings.parquet").read().equals(whole.standings())
    assert read_rows(tmp_path / "journal").equals(whole.journal_table())
    assert (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(("system", "ladders"), [("elo", 3), ("even", 3), ("even", 1)])
def test_all_ladders_as_one(tmp_path, system, ladders):
    table, by = ladders_of(system, 5, 60, ladders), rules(system)
    write_partitions(table, tmp_path / "in", 3, 50)
    out = str(tmp_path / "out")
    rate_partitions(find_partitions(str(tmp_path / "in")), by, out=out, selection=Selection(pool=True, piece=40))
    assert pq.ParquetFile(tmp_path / "out" / "ratings.parquet").read().equals(rate(table.pooled(), by).standings())


def test_one_ladder_of_files_that_hold_several(tmp_path):
    table, by = ladders_of("even", 6, 60), rules("even")
    write_partitions(table, tmp_path / "in", 3, 50)
    out = str(tmp_path / "out")
    rate_partitions(find_partitions(str(tmp_path / "in")), by, out=out, selection=Selection("mode 1", piece=40))
    alone = rate(table.on_ladder("mode 1"), by).standings()
    assert pq.ParquetFile(tmp_path / "out" / "ratings.parquet").read().equals(alone)
