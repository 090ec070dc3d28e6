"""A backtest of partitions gives the numbers of one file with the same matches."""

import pytest

from evenmatch import from_frame, rules
from evenmatch.errors import InputError, UsageError
from evenmatch.lab.backtests.backtest import backtest
from evenmatch.lab.backtests.streamed import backtest_partitions
from evenmatch.partitioned.stream import Selection
from evenmatch.tables.partitions import find_partitions
from partitioned_history import write_partitions
from random_matches import random_table

BY = ["elo", "wager", "even", rules("elo", k=20)]


def equal(streamed, whole):
    for name in ("segments", "reliability", "against_best", "against_best_default"):
        assert getattr(streamed, name).equals(getattr(whole, name)), name
    assert streamed.scores.drop_columns(["seconds"]).equals(whole.scores.drop_columns(["seconds"]))
    assert (streamed.left_out, streamed.warm_up, streamed.notes) == (whole.left_out, whole.warm_up, whole.notes)
    assert len(streamed.matches) == len(whole.matches)


@pytest.mark.parametrize(("system", "piece"), [("elo", 100_000), ("wager", 90)])
def test_the_numbers_match_those_of_one_file(tmp_path, system, piece):
    table = random_table(system, 5, 600)
    write_partitions(table, tmp_path / "in", files=3, row_group=200)
    streamed = backtest_partitions(
        find_partitions(str(tmp_path / "in")), BY, name="in", selection=Selection(piece=piece)
    )
    equal(streamed, backtest(table, BY))


def test_a_telling_order_of_teams_is_made_neutral_in_the_same_way(tmp_path):
    rows = random_table("wager", 6, 400).to_arrow()
    table = from_frame(rows.sort_by([("played_at", "ascending"), ("match_id", "ascending"), ("place", "ascending")]))
    write_partitions(table, tmp_path / "in", files=2, row_group=100)
    streamed = backtest_partitions(find_partitions(str(tmp_path / "in")), BY, name="in", selection=Selection(piece=64))
    assert any("neutral order" in note for note in streamed.notes)
    equal(streamed, backtest(table, BY))


def test_with_little_memory_the_files_are_read_more_often(tmp_path, monkeypatch):
    table = random_table("elo", 7, 300)
    write_partitions(table, tmp_path / "in", files=2)
    monkeypatch.setattr("evenmatch.lab.backtests.streamed.MEMORY", 1)
    streamed = backtest_partitions(find_partitions(str(tmp_path / "in")), BY, name="in")
    assert "were read" in streamed.notes[-1]
    assert streamed.scores.drop_columns(["seconds"]).equals(backtest(table, BY).scores.drop_columns(["seconds"]))


def test_ladders_in_folders_of_their_own_are_judged_one_by_one(tmp_path):
    table = random_table("elo", 8, 250)
    for ladder in ("a", "b"):
        write_partitions(table, tmp_path / "in" / f"ladder={ladder}")
    with pytest.raises(UsageError, match="choose one by --ladder"):
        backtest_partitions(find_partitions(str(tmp_path / "in")), BY, name="in")


@pytest.mark.parametrize("seed", [9, 10])
def test_files_that_change_after_they_were_counted_are_an_error(tmp_path, seed):
    write_partitions(random_table("elo", 9, 300), tmp_path / "in")
    write_partitions(random_table("elo", seed, 310 if seed == 9 else 290), tmp_path / "other")

    def exchange(what, share):
        if share == 1.0 and (tmp_path / "other" / "0.parquet").exists():
            (tmp_path / "other" / "0.parquet").replace(tmp_path / "in" / "0.parquet")

    partitions = find_partitions(str(tmp_path / "in"))
    with pytest.raises(InputError, match="in: the matches are not those that were counted before"):
        backtest_partitions(partitions, ["elo"], name="in", progress=exchange)
