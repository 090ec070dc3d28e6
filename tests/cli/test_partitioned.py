"""evenmatch rate and backtest on a folder of partitions: the same tables as of one file, and errors of the options."""

import json

import pyarrow.parquet as pq
import pytest

from evenmatch import rate, write
from partitioned_history import write_files, write_partitions
from random_matches import random_table


@pytest.fixture(scope="module")
def table():
    return random_table("elo", 3, 300)


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    return write_partitions(table, tmp_path_factory.mktemp("season") / "in", files=3, row_group=100)


def test_the_tables_are_those_of_one_file(run, table, folder, tmp_path):
    write(table, tmp_path / "season.parquet")
    whole = run("rate", tmp_path / "season.parquet", "--system", "elo")
    parts = run("rate", folder, "--system", "elo")
    assert (parts.code, parts.out) == (0, whole.out)
    assert run("rate", f"{folder}/*.parquet", "--system", "elo").out == whole.out


def test_ratings_and_journal_are_written_to_folders(run, table, folder, tmp_path):
    ended = run("rate", folder, "--system", "elo", "--out", tmp_path / "out", "--journal", tmp_path / "journal")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        f"{tmp_path / 'out'}: 1 file, {len(table.player):,} rows",
        f"{tmp_path / 'journal'}: 3 files, {len(table.history.columns.player):,} rows",
    ]
    whole = rate(table, "elo")
    assert pq.ParquetFile(tmp_path / "out" / "ratings.parquet").read().equals(whole.standings())
    manifest = json.loads((tmp_path / "journal" / "manifest.json").read_text())
    assert [entry["name"] for entry in manifest["files"]] == ["0.parquet", "1.parquet", "2.parquet"]
    again = run("rate", folder, "--system", "elo", "--out", tmp_path / "out")
    assert again.code == 2
    assert "is not empty; expected a new or empty folder" in again.err


def test_as_of_leaves_out_what_is_later(run, table, folder, tmp_path):
    write(table, tmp_path / "season.parquet")
    middle = str(table.history.columns.time[150] // 1_000_000)
    whole = run("rate", tmp_path / "season.parquet", "--system", "elo", "--as-of", middle)
    parts = run("rate", folder, "--system", "elo", "--as-of", middle)
    assert parts.out == whole.out
    assert "matches later than --as-of are left out" in parts.err


def test_one_ladder_of_several(run, table, tmp_path):
    for ladder in ("duel", "team"):
        rows = table.to_arrow().drop_columns(["ladder"])
        write_files(rows, table, tmp_path / "in" / f"ladder={ladder}", 2, 100, dictionaries=False)
    both = run("rate", tmp_path / "in", "--system", "elo").out
    assert both.count("300 matches") == 2
    one = run("rate", tmp_path / "in", "--system", "elo", "--ladder", "team")
    assert one.out == both[both.index("team: ") :]
    assert (
        "unknown ladder 'tame' (did you mean 'team'?)"
        in run("rate", tmp_path / "in", "-s", "elo", "--ladder", "tame").err
    )
    assert "cannot be rated as one" in run("rate", tmp_path / "in", "-s", "elo", "--pool-ladders").err


def test_json_has_the_best_of_each_ladder(run, table, folder):
    document = json.loads(run("rate", folder, "--system", "elo", "--json").out)
    assert (document["matches"], document["players"]) == (len(table), len(table.player))
    best = rate(table, "elo").standings().slice(0, 1).to_pylist()[0]
    assert document["ladders"][0]["top"][0]["player"] == best["player"]


def test_a_file_cannot_hold_the_results_of_a_folder(run, folder, tmp_path):
    ended = run("rate", folder, "--system", "elo", "--out", tmp_path / "ratings.csv")
    assert ended.code == 2
    assert "is a file; expected a folder or URL" in ended.err


def test_a_backtest_prints_the_scores_of_one_file(run, table, folder, tmp_path):
    write(table, tmp_path / "in.parquet")
    options = ("--systems", "elo,glicko", "--json")
    whole, parts = (json.loads(run("backtest", path, *options).out) for path in (tmp_path / "in.parquet", folder))
    for document in (whole, parts):
        for score in document["scores"]:
            del score["seconds"]
    assert parts.pop("source") == str(folder)
    del whole["source"]
    assert {**parts, "verdict": None} == {**whole, "verdict": None}


def test_a_backtest_of_a_folder_has_no_report_and_no_tuning(run, folder, tmp_path):
    assert "--tune needs all matches in memory" in run("backtest", folder, "--tune", "5").err
    assert "--report needs all matches" in run("backtest", folder, "--report", tmp_path / "fit.html").err
