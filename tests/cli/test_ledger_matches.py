"""evenmatch import, record and export."""

import csv
import json

import pyarrow.parquet as pq
import pytest

from cli.command_output import held, rated, ratings
from evenmatch import read

NEW = """\
{"match_id":"n1","played_at":"2026-02-01T12:00:00Z","team":"home","player":"d","place":1}
{"match_id":"n1","played_at":"2026-02-01T12:00:00Z","team":"away","player":"zoë","place":2}
{"match_id":"n2","played_at":"2026-02-02T12:00:00Z","team":"home","player":"a","place":1}
{"match_id":"n2","played_at":"2026-02-02T12:00:00Z","team":"away","player":"zoë","place":1}
"""


def test_import_again_adds_nothing_and_says_so(run, league, season_file):
    ended = run("import", season_file, "--ladder", "duel")
    assert (ended.code, ended.out) == (0, "ladder duel: 0 matches added; 11 there already\n")
    assert held(run) == (11, 6)
    told = json.loads(run("import", season_file, "--json").out)
    assert (told["added"], told["there_already"], told["left_out"], told["rated"]) == (0, 11, 0, True)


def test_imported_ratings_are_those_of_rate_bit_for_bit(run, league, season_file):
    assert ratings(run) == rated(run, season_file, "--ladder", "duel")


def test_a_file_with_one_ladder_goes_in_whatever_it_is_called_there(run, league, season_file, tmp_path):
    run("ladder", "create", "team", "--system", "elo")
    run("ladder", "create", "mixed", "--system", "elo")
    assert run("import", season_file, "--ladder", "team").out == "ladder team: 1 match added\n"
    ended = run("import", season_file, "--ladder", "mixed")
    assert ended.code == 2
    assert "has the ladders duel, team, but not 'mixed'" in ended.err
    assert "--pool-ladders" in ended.err
    assert run("import", season_file, "--ladder", "mixed", "--pool-ladders").out == "ladder mixed: 12 matches added\n"
    assert ratings(run, "mixed") == rated(run, season_file, "--pool-ladders")
    only = tmp_path / "only.csv"
    only.write_text("match_id,played_at,ladder,team,player,place\nq,2026-04-01,else,1,x,1\nq,2026-04-01,else,2,y,2\n")
    assert run("import", only, "--ladder", "team").out == "ladder team: 1 match added\n"


def test_other_content_under_the_same_id_is_refused_before_anything_is_added(run, league, season_file, tmp_path):
    text = season_file.read_text().replace("d05,2026-01-05T12:00:00Z,duel,1,b,1", "d05,2026-01-05T12:00:00Z,duel,1,b,3")
    other = tmp_path / "other.csv"
    other.write_text(text + "d12,2026-01-12T12:00:00Z,duel,1,a,1,60\nd12,2026-01-12T12:00:00Z,duel,2,b,2,60\n")
    ended = run("import", other)
    assert (ended.code, ended.out) == (1, "")
    assert "match 'd05': is already on ladder 'duel', with other content" in ended.err
    assert held(run) == (11, 6)
    ended = run("import", other, "--skip-bad")
    assert ended.code == 0
    assert ended.out.startswith("ladder duel: 1 match added; 10 there already; 1 left out")


def test_every_match_that_import_leaves_out_is_named_with_its_reason(run, league, tmp_path):
    """One that is there with other content, one that the system cannot rate, and one with a bad row."""
    head = "match_id,played_at,team,player,place\n"
    good = "x1,2026-03-01,a,ann,1\nx1,2026-03-01,b,bob,2\n"
    (tmp_path / "first.csv").write_text(head + good)
    assert run("import", "first.csv").code == 0
    bad = "bad,2026-03-02,a,ann,0\nbad,2026-03-02,b,bob,2\n"
    (tmp_path / "second.csv").write_text(head + good.replace("bob", "eve") + good.replace("x1", "x2") + bad)
    ended = run("import", "second.csv", "--skip-bad")
    assert "1 match added" in ended.out
    assert ended.err.splitlines()[0] == "2 bad matches skipped (2 problems)"
    assert "match 'x1': is already on ladder 'duel', with other content" in ended.err
    assert "match 'bad': place is 0" in ended.err
    document = json.loads(run("import", "second.csv", "--skip-bad", "--json").out)
    assert document["bad_matches"] == ["bad", "x1"]
    assert (document["there_already"], document["left_out"], document["skipped_matches"]) == (1, 1, 1)


def test_unrated_matches_are_kept_and_change_no_rating(run, league, tmp_path):
    before = ratings(run)
    (tmp_path / "new.jsonl").write_text(NEW, encoding="utf-8")
    assert run("import", "new.jsonl", "--unrated").out == "ladder duel: 2 matches added, unrated\n"
    assert held(run)[0] == 13
    assert {player: rating for player, rating in ratings(run).items() if player != "zoë"} == before
    assert run("verify").code == 0


def test_ratings_to_start_from_are_where_newcomers_begin(run, league, tmp_path):
    (tmp_path / "start.csv").write_text("player,rating,note\nzoë,1700,x\nyan,1300.5,\n", encoding="utf-8")
    ended = run("import", "start.csv", "--ratings")
    assert (ended.code, ended.out) == (0, "ladder duel: 2 players start with a rating from this file\n")
    (tmp_path / "new.jsonl").write_text(NEW, encoding="utf-8")
    d = ratings(run)["d"]
    assert run("import", "new.jsonl").code == 0
    told = json.loads(run("player", "show", "zoë", "--json").out)["ladders"][0]["matches"]
    assert told[-1]["before"] == 1700
    assert told[-1]["after"] == pytest.approx(1700 - 32 / (1 + 10 ** ((d - 1700) / 400)), rel=1e-12)
    assert run("verify").code == 0


def test_ratings_exported_from_one_ladder_start_another(run, league):
    before = ratings(run)
    run("ladder", "create", "next", "--system", "elo")
    assert run("import", "ratings.csv", "--ratings", "--ladder", "next").code == 0
    assert ratings(run, "next") == before


def test_bad_rows_of_ratings_are_all_named(run, league, tmp_path):
    (tmp_path / "start.csv").write_text("player,rating\nzoë,1700\nyan,many\n,3\nzoë,1\nxu,inf\nwu,\n", encoding="utf-8")
    ended = run("import", "start.csv", "--ratings")
    assert (ended.code, ended.out) == (1, "")
    for line in (3, 4, 5, 6, 7):
        assert f"line {line}: " in ended.err
    ended = run("import", "start.csv", "--ratings", "--skip-bad")
    assert ended.out == "ladder duel: 1 player starts with a rating from this file; 5 bad rows left out\n"
    (tmp_path / "none.csv").write_text("name,elo\nzoë,1700\n", encoding="utf-8")
    assert "has the columns name, elo; expected player and rating" in run("import", "none.csv", "--ratings").err


def test_record_takes_matches_from_a_pipe_and_prints_receipts(run, league, piped):
    d = ratings(run)["d"]
    piped(NEW)
    ended = run("record", "-", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["refused"]) == (0, [])
    first, second = told["receipts"]
    assert [line["player"] for team in first["teams"] for line in team] == ["d", "zoë"]
    winner = first["teams"][0][0]
    gain = 32 * (1 - 1 / (1 + 10 ** ((1500 - d) / 400)))
    assert (winner["before"], winner["after"]) == (d, pytest.approx(d + gain, rel=1e-12))
    assert winner["expected"] == pytest.approx(1 / (1 + 10 ** ((1500 - d) / 400)))
    assert winner["factors"]["k"] == 32
    assert {"percentile", "division"} <= set(winner)
    assert second["teams"][0][0]["result"] == 0.5
    piped(NEW)
    again = json.loads(run("record", "-", "--json").out)
    assert [one.pop("there_already") for one in again["receipts"]] == [True, True]
    assert [one.pop("there_already") for one in told["receipts"]] == [False, False]
    assert again == told


def test_record_prints_a_line_per_player(run, league, piped):
    piped(NEW)
    lines = run("record", "-").out.splitlines()
    assert lines[0] == "duel: 2 matches recorded"
    assert lines[2].split()[:2] == ["n1", "d"]
    assert len(lines) == 7


def test_record_refuses_one_match_and_keeps_the_others(run, league, piped):
    piped(
        NEW.replace('"n2"', '"d01"')
        + '{"match_id":"bad","played_at":"soon","team":"1","player":"q","place":1}\nno json\n'
        + '{"match_id":"n9","played_at":"2026-02-03","team":"1","player":"a","place":1}\n'
        + '{"match_id":"n9","played_at":"2026-02-03","team":"2","player":"b","place":2}\n'
    )
    ended = run("record", "-")
    assert ended.code == 1
    assert ended.out.startswith("duel: 2 matches recorded")
    refused = [line for line in ended.err.splitlines() if line.startswith("refused: ")]
    assert len(refused) == 3
    assert "line 5, match 'bad'" in ended.err
    assert "match 'd01' is already on ladder 'duel', with other content" in ended.err
    assert held(run) == (13, 7)
    assert run("verify").code == 0


def test_record_unrated_gives_receipts_without_lines(run, league, piped):
    before = ratings(run)
    piped(NEW)
    ended = run("record", "-", "--unrated")
    assert "(not rated)" in ended.out
    assert ratings(run) == before


def test_exported_matches_make_the_same_ratings(run, league, season_file, tmp_path):
    for suffix in ("csv", "parquet", "jsonl"):
        ended = run("export", "--matches", f"all.{suffix}", "--json")
        assert json.loads(ended.out)["files"] == [{"file": f"all.{suffix}", "rows": 22}]
        assert rated(run, f"all.{suffix}") == rated(run, season_file, "--ladder", "duel")
        assert read(f"all.{suffix}").history.columns.seconds.tolist() == [60] * 22
    assert "performance" not in (tmp_path / "all.csv").read_text().splitlines()[0]


def test_the_journal_chains_from_each_match_to_the_next(run, league):
    assert run("export", "--journal", "j.parquet", "--corrections", "c.csv").code == 0
    rows = pq.read_table("j.parquet").to_pylist()
    assert len(rows) == 22
    present = {}
    for row in rows:
        assert row["before"] == present.get(row["player"], 1500)
        present[row["player"]] = row["after"]
    assert present == ratings(run)
    with open("c.csv", newline="") as file:
        assert [row["kind"] for row in csv.DictReader(file)] == ["rules-changed"]


def test_of_several_files_all_are_written_or_none(run, league, monkeypatch):
    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evenmatch.tables.files._append_csv", broken)
    names = {path.name for path in league.parent.iterdir()}
    ended = run("export", "--matches", "m.parquet", "--ratings", "r.csv")
    assert ended.code == 2
    assert "No space left on device" in ended.err
    assert {path.name for path in league.parent.iterdir()} - {"league.db-wal", "league.db-shm"} == names
