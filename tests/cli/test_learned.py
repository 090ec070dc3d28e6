"""evenmatch learned: the numbers that a system has learned, of a file and of a ladder."""

import json

import pyarrow.parquet as pq

from evenmatch.tables import write
from sided_matches import sided_season


def test_the_command_prints_the_numbers_after_each_quarter(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(sided_season(), tmp_path / "m.csv")
    told = run("learned", "m.csv")
    assert told.code == 0
    assert "after 500" in told.out
    assert "one extra player, five against four" in told.out
    document = json.loads(run("learned", "m.csv", "--json").out)
    assert [moment["matches"] for moment in document] == [500, 1000, 1500, 2000]
    assert document[-1]["numbers"][0]["name"] == "side"
    assert run("learned", "m.csv", "--system", "elo").code == 1


def test_a_ladder_by_even_has_learned_and_one_by_elo_is_told_so(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(sided_season(400), tmp_path / "m.csv")
    assert run("ladder", "create", "arena", "--system", "even").code == 0
    assert run("import", "m.csv", "--ladder", "arena").code == 0
    told = run("learned", "--ladder", "arena", "--json")
    assert told.code == 0, told
    of_file = run("learned", "m.csv", "--json")
    numbers = json.loads(of_file.out)[-1]["numbers"]
    assert json.loads(told.out)[-1]["numbers"] == numbers
    assert run("export", "--ladder", "arena", "--learned", "numbers.parquet").code == 0
    assert pq.read_table("numbers.parquet").to_pylist() == numbers
    assert run("ladder", "create", "plain", "--system", "elo").code == 0
    assert run("import", "m.csv", "--ladder", "plain").code == 0
    assert "elo learns nothing about a ladder" in run("learned", "--ladder", "plain").err
    assert run("export", "--ladder", "plain", "--learned", "none.csv").code == 0
    assert (tmp_path / "none.csv").read_text() == "name,meaning,unit,value,low,high\n"
