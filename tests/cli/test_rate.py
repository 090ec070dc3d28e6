"""evenmatch rate: tables, files, skipping, moments, ladders."""

import json
import re
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from cli.command_output import files_in, only_document, read_csv
from evenmatch import rate, read, rules, write
from evenmatch.lab.sample import season as season_of_teams

SHOWN = ["ladder", "player", "rating", "matches", "last_played", "percentile", "placed", "division"]


def test_without_a_file_each_ladder_has_a_plain_table_on_standard_output(run, season_file):
    ended = run("rate", season_file, "--system", "wager", "--placement", "1")
    assert ended.code == 0
    assert ended.err == ""
    first, second = ended.out.strip().split("\n\n")
    assert first.splitlines()[0] == "duel: 11 matches, 6 players, 6 placed"
    assert second.splitlines()[0] == "team: 1 match, 4 players, 4 placed"
    assert first.splitlines()[1].split() == ["rank", "player", "rating", "matches", "percentile", "division"]
    # newcomers at 1.00: a win of an even match is worth a twentieth, a loss ends at the floor (systems.md section 1)
    assert [line.split() for line in second.splitlines()[2:]] == [
        ["1", "a", "1.05", "1", "100", "Champion"],  # 2 below, none above
        ["1", "b", "1.05", "1", "100", "Champion"],
        ["3", "c", "1.00", "1", "1", "Bronze"],
        ["3", "g", "1.00", "1", "1", "Bronze"],
    ]
    assert ended.out.isascii()


def test_the_table_holds_the_twenty_best_of_those_who_are_placed(run, tmp_path):
    write(season_of_teams(3, players=60, matches=120, team_size=4).matches, tmp_path / "x.csv")
    ratings = rate(read(tmp_path / "x.csv"), rules("battlepoints")).standings().to_pylist()
    placed = [row for row in ratings if row["placed"]]
    assert 20 < len(placed) < len(ratings)
    lines = run("rate", tmp_path / "x.csv", "-s", "battlepoints").out.strip().splitlines()
    assert lines[0] == f"6v6: 120 matches, {len(ratings)} players, {len(placed)} placed (the others are not shown)"
    assert [line.split()[1:3] for line in lines[2:]] == [[row["player"], f"{row['rating']:.2f}"] for row in placed[:20]]


def test_where_nobody_is_placed_the_table_says_so_and_shows_all(run, season_file):
    out = run("rate", season_file, "-s", "wager", "--ladder", "team").out
    assert "no player has completed 10 matches yet: all are shown" in out
    assert len(out.strip().splitlines()) == 6


@pytest.mark.parametrize("system", ["wager", "scorefactor", "prav", "battlepoints"])
def test_a_file_holds_every_player_with_the_promised_columns_in_the_promised_order(system, run, season_file, tmp_path):
    path = tmp_path / "ratings.csv"
    run("rate", season_file, "-s", system, "--ladder", "duel", "--out", path, "--placement", "4")
    rows = read_csv(path)
    state = rules(system).system.columns(rules(system).newcomers(1), rules(system).parameters)
    assert list(rows[0]) == SHOWN + list(state)
    assert [row["player"] for row in rows if row["placed"] == "true"] == [
        row["player"] for row in sorted(rows, key=lambda row: -float(row["rating"])) if row["placed"] == "true"
    ]
    assert {row["player"] for row in rows} == set("abcdef")
    assert rows[0]["last_played"].endswith("Z")


def test_rows_are_sorted_and_ratings_are_not_rounded(run, season_file, tmp_path):
    path = tmp_path / "ratings.csv"
    assert run("rate", season_file, "-s", "battlepoints", "--out", path).code == 0
    rows = read_csv(path)
    assert [(row["ladder"], -float(row["rating"]), row["player"]) for row in rows] == sorted(
        (row["ladder"], -float(row["rating"]), row["player"]) for row in rows
    )
    exact = rate(read(season_file), rules("battlepoints")).standings().to_pylist()
    assert [float(row["rating"]) for row in rows] == [row["rating"] for row in exact]
    assert any(len(row["rating"]) > 12 for row in rows)
    assert rows[0]["last_played"] == "2026-01-11T12:00:00Z"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_every_form_of_file_holds_the_same(suffix, run, season_file, tmp_path):
    path, journal = tmp_path / f"r.{suffix}", tmp_path / f"j.{suffix}"
    ended = run("rate", season_file, "-s", "battlepoints", "-o", path, "--journal", journal, "--placement", "4")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"{path}: 10 rows\n{journal}: 26 rows\n"
    ratings = rate(read(season_file), rules("battlepoints"), journal=True)
    expected, changes = ratings.standings(placement=4).to_pylist(), ratings.journal_table().to_pylist()
    if suffix == "parquet":
        assert pq.read_table(path).to_pylist() == expected
        assert pq.read_table(journal).to_pylist() == changes
        return
    for row in expected:
        row["last_played"] = row["last_played"].strftime("%Y-%m-%dT%H:%M:%SZ")
    for row in changes:
        row["played_at"] = row["played_at"].strftime("%Y-%m-%dT%H:%M:%SZ")
    if suffix == "jsonl":
        assert [json.loads(line) for line in path.read_text().splitlines()] == expected
        assert [json.loads(line) for line in journal.read_text().splitlines()] == changes
        return
    assert [row["percentile"] for row in read_csv(path)] == [
        "" if row["percentile"] is None else str(row["percentile"]) for row in expected
    ]
    for written, table in ((read_csv(path), expected), (read_csv(journal), changes)):
        assert [
            [float(row[name]) for row in written] for name in written[0] if name in ("rating", "before", "after")
        ] == [[row[name] for row in table] for name in table[0] if name in ("rating", "before", "after")]


@pytest.mark.parametrize("system", ["wager", "scorefactor", "prav", "battlepoints"])
def test_a_journal_has_a_row_per_player_and_match_and_a_column_per_factor(system, run, season_file, tmp_path):
    path = tmp_path / "journal.csv"
    ended = run("rate", season_file, "-s", system, "--ladder", "duel", "--journal", path)
    assert ended.code == 0
    assert ended.out.startswith("duel: 11 matches")
    assert str(path) in ended.err
    rows = read_csv(path)
    factors = list(only_document(run("systems", system, "--json").out)["factors"])
    always = ["match_id", "played_at", "ladder", "player", "team", "before", "after", "expected"]
    assert list(rows[0]) == [*always, *factors]
    assert len(rows) == 22
    assert [row["match_id"] for row in rows] == [f"d{at:02}" for at in range(1, 12) for _ in "12"]
    latest = {}
    for row in rows:
        assert latest.get(row["player"], row["before"]) == row["before"]
        latest[row["player"]] = row["after"]


def test_json_is_one_document_and_nothing_else(run, season_file):
    ended = run("rate", season_file, "-s", "battlepoints", "--json")
    assert (ended.code, ended.err) == (0, "")
    document = only_document(ended.out)
    assert document["system"] == "battlepoints"
    assert (document["matches"], document["players"], document["skipped_matches"]) == (12, 10, 0)
    assert [list(row) for row in document["standings"]] == [SHOWN] * 10
    assert document["standings"][0]["last_played"] == "2026-01-11T12:00:00Z"
    assert document["standings"][0]["percentile"] is None


def test_json_stays_one_document_with_skipped_matches_unknown_columns_and_files(run, spoilt, tmp_path):
    lines = spoilt.read_text().splitlines()
    spoilt.write_text("\n".join([lines[0] + ",map", *(line + ",dust" for line in lines[1:])]))
    paths = tmp_path / "r.csv", tmp_path / "j.csv"
    ended = run("rate", spoilt, "-s", "wager", "--skip-bad", "--json", "--out", paths[0], "--journal", paths[1])
    assert ended.code == 0
    document = only_document(ended.out)
    assert document["skipped_matches"] == 2
    assert document["bad_matches"] == ["d03", "t1"]
    examples = [example for problem in document["problems"] for example in problem["examples"]]
    assert [example.split(":")[0] for example in examples] == ["line 9, match 'd03'", "line 24, match 't1'"]
    assert document["matches"] == 10
    assert "warning: " in ended.err
    assert "unknown column 'map' not read" in ended.err
    assert re.search(r"\b2 bad matches skipped", ended.err)
    assert all(path.exists() for path in paths)


def test_bad_rows_are_all_listed_on_standard_error_and_nothing_is_written(run, spoilt, tmp_path):
    before = files_in(tmp_path)
    for extra in ([], ["--json"]):
        ended = run(
            "rate", spoilt, "-s", "battlepoints", "--out", tmp_path / "r.csv", "--journal", tmp_path / "j.csv", *extra
        )
        assert ended.code == 1
        assert (json.loads(ended.out)["bad_matches"] if extra else ended.out) == (["d03"] if extra else "")
        assert "1 problem; nothing was rated" in ended.err
        assert re.search(r"line 9, match 'd03': place is '?0'?;", ended.err)
        assert "--skip-bad" in ended.err
        assert files_in(tmp_path) == before


def test_more_than_ten_bad_rows_are_all_listed(run, season_file):
    season_file.write_text(season_file.read_text().replace(",1,60", ",0,60"))
    ended = run("rate", season_file, "-s", "battlepoints")
    assert ended.code == 1
    assert len(re.findall(r"line \d+, match '\w+': place is '?0'?;", ended.err)) == 12  # one for each winner


def test_what_the_system_cannot_rate_is_an_error_of_the_file_and_nothing_is_written(run, season_file, tmp_path):
    season_file.write_text(season_file.read_text().replace("blue,g,2,60", "blue,g,2,"))
    before = files_in(tmp_path)
    ended = run("rate", season_file, "-s", "wager", "--out", tmp_path / "r.parquet")
    assert ended.code == 1
    assert "line 24, match 't1': seconds is empty for 1 of 4 players" in ended.err
    assert files_in(tmp_path) == before


def test_skipping_leaves_out_whole_matches_and_tells_how_many(run, spoilt, tmp_path):
    ended = run("rate", spoilt, "-s", "wager", "--skip-bad", "--out", tmp_path / "r.csv")
    assert ended.code == 0
    assert re.search(r"\b2 bad matches skipped", ended.err)
    rows = {(row["ladder"], row["player"]): row for row in read_csv(tmp_path / "r.csv")}
    assert rows["duel", "d"]["matches"] == "3"  # d03 is gone for both
    assert rows["duel", "a"]["matches"] == "4"
    assert not any(ladder == "team" for ladder, _ in rows)


def test_skipping_everything_is_an_error(run, season_file):
    season_file.write_text(season_file.read_text().replace(",60", ",nan"))
    ended = run("rate", season_file, "-s", "battlepoints", "--skip-bad")
    assert (ended.code, ended.out) == (1, "")


def test_only_one_ladder_is_rated_where_one_is_named(run, season_file):
    document = only_document(run("rate", season_file, "-s", "wager", "--ladder", "team", "--json").out)
    assert {row["ladder"] for row in document["standings"]} == {"team"}
    assert (document["matches"], document["players"]) == (1, 4)


def test_each_ladder_is_rated_by_itself_unless_they_are_pooled(run, season_file):
    apart = only_document(run("rate", season_file, "-s", "battlepoints", "--json").out)["standings"]
    pooled = only_document(run("rate", season_file, "-s", "battlepoints", "--pool-ladders", "--json").out)["standings"]
    assert [row["matches"] for row in apart if row["player"] == "a"] == [5, 1]
    (ann,) = (row for row in pooled if row["player"] == "a")
    assert ann["matches"] == 6
    assert {row["player"] for row in pooled} == set("abcdefg")
    assert len({row["ladder"] for row in pooled}) == 1
    (alone,) = (row for row in apart if row["player"] == "a" and row["ladder"] == "team")
    assert alone["rating"] == 1016.0  # a newcomer's even win with K = 32, whatever happened on the other ladder
    assert ann["rating"] != alone["rating"]


MOMENTS = ["2026-01-05T12:00:00Z", "2026-01-05 13:00+01:00", "2026-01-05T23:59:59", "1767614400", "1767614400.5"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_as_of_a_moment_later_matches_are_left_out(moment, run, season_file):
    ended = run("rate", season_file, "-s", "battlepoints", "--as-of", moment, "--json")
    document = only_document(ended.out)
    assert document["matches"] == 5
    assert {row["ladder"] for row in document["standings"]} == {"duel"}
    assert "7 matches later than --as-of are left out" in ended.err


def test_as_of_a_later_moment_nobody_is_active(run, season_file):
    shown = only_document(run("rate", season_file, "-s", "wager", "--placement", "0", "--json").out)["standings"]
    assert all(row["percentile"] is not None for row in shown)
    arguments = ["rate", season_file, "-s", "wager", "--placement", "0", "--as-of", "2026-12-31", "--json"]
    later = only_document(run(*arguments).out)["standings"]
    assert all(row["percentile"] is None and row["division"] is None and row["placed"] for row in later)
    year = only_document(run(*arguments, "--active-days", "365").out)["standings"]
    assert all(row["percentile"] is not None for row in year)


# Days in the window, and who completed a match in so many days before noon of 11 January
WINDOWS = [("0", "af"), ("0.5", "af"), ("1", "adef"), ("2", "acdef"), ("4", "abcdef"), ("99999", "abcdef")]


@pytest.mark.parametrize(("days", "active"), WINDOWS)
def test_the_active_window_is_in_days(days, active, run, season_file):
    ended = run(
        "rate", season_file, "-s", "wager", "--ladder", "duel", "--placement", "0", "--active-days", days, "--json"
    )
    assert ended.code == 0
    found = {row["player"] for row in only_document(ended.out)["standings"] if row["percentile"] is not None}
    assert found == set(active)


@pytest.mark.parametrize("days", ["1e9", "1e300", "inf"])
def test_a_window_longer_than_all_time_takes_everybody_in_or_is_refused(days, run, season_file):
    ended = run(
        "rate", season_file, "-s", "wager", "--ladder", "team", "--placement", "0", "--active-days", days, "--json"
    )
    if ended.code == 2:
        assert "active-days" in ended.err
    else:
        assert ended.code == 0
        assert all(row["percentile"] is not None for row in only_document(ended.out)["standings"])


@pytest.mark.parametrize(("placement", "placed"), [(0, "abcdef"), (1, "abcdef"), (2, "abcde"), (5, "a"), (6, "")])
def test_placement_matches_are_counted(placement, placed, run, season_file):
    ended = run("rate", season_file, "-s", "wager", "--ladder", "duel", "--placement", placement, "--json")
    assert {row["player"] for row in only_document(ended.out)["standings"] if row["placed"]} == set(placed)


def test_five_players_have_the_percentiles_of_the_rule(run, season_file):
    arguments = ["--ladder", "duel", "--as-of", "2026-01-10T12:00:00Z", "--placement", "4", "--json"]
    standings = only_document(run("rate", season_file, "-s", "battlepoints", *arguments).out)["standings"]
    assert [(row["player"], row["percentile"]) for row in standings] == [
        ("a", 100), ("b", 76), ("c", 51), ("d", 26), ("e", 1),
    ]  # fmt: skip
    assert [row["division"] for row in standings] == ["Champion", "Platinum", "Gold", "Silver", "Bronze"]


def test_divisions_are_read_from_a_file(run, season_file, tmp_path):
    table = tmp_path / "divisions.csv"
    table.write_bytes('\ufeffname,lowest\r\nWood,1\r\n"Iron, old",26\r\nÉlite,100\r\n'.encode())
    arguments = [
        "--ladder",
        "duel",
        "--as-of",
        "2026-01-10T12:00:00Z",
        "--placement",
        "4",
        "--json",
        "--divisions",
        table,
    ]
    standings = only_document(run("rate", season_file, "-s", "battlepoints", *arguments).out)["standings"]
    assert [row["division"] for row in standings] == ["Élite", "Iron, old", "Iron, old", "Iron, old", "Wood"]


# What is in the file of divisions, and what is said of it
WRONG_DIVISIONS = [
    (b"", "expected name and lowest"),
    (b"name,from\nWood,1\n", "expected name and lowest"),
    (b"name,lowest\n", "expected 1"),
    (b"name,lowest\nWood,2\n", "begins at 2; expected 1"),
    (b"name,lowest\nWood,one\n", "line 2: lowest is 'one'; expected a whole percentile"),
    (b"name,lowest\nWood,1\nIron,50.5\n", "line 3: lowest is '50.5'"),
    (b"name,lowest\nWood,1\nIron\n", "line 3"),
    (b"name,lowest\nWood,1\nIron,50\nGold,50\n", "expected ascending percentiles"),
    (b"name,lowest\nWood,1\nIron,101\n", "expected at most 100"),
    (b"name,lowest\nWood,1\n,50\n", "empty or used twice"),
    (b"name,lowest\nWood,1\nWood,50\n", "empty or used twice"),
    (b"\xff\xfe\x00", "not a text file"),
    (b"name,lowest\n" + b"x" * 200_000 + b",2\n", "expected 1"),
]


@pytest.mark.parametrize(("contents", "said"), WRONG_DIVISIONS, ids=[said for _, said in WRONG_DIVISIONS])
def test_a_wrong_table_of_divisions_is_an_error_of_a_file_and_nothing_is_written(
    contents, said, run, season_file, tmp_path
):
    table = tmp_path / "divisions.csv"
    table.write_bytes(contents)
    ended = run("rate", season_file, "-s", "wager", "--divisions", table, "--out", tmp_path / "r.csv")
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err
    assert str(table) in ended.err
    assert not (tmp_path / "r.csv").exists()


def test_a_preset_and_parameters_reach_the_ratings(run, season_file):
    arguments = ["rate", season_file, "-s", "wager", "--ladder", "team", "--json"]
    document = only_document(run(*arguments, "--param", "start=10", "--param", " stake = 0.1").out)
    assert (document["parameters"]["start"], document["parameters"]["stake"]) == (10.0, 0.1)
    assert [row["rating"] for row in document["standings"]] == [11.0, 11.0, 9.0, 9.0]
    limited = only_document(run(*arguments, "--preset", "limited").out)
    assert (limited["preset"], limited["parameters"]["modifier_limit"]) == ("limited", 4.0)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_any_form_of_file_is_rated_alike(form, run, season_file, tmp_path):
    write(read(season_file), tmp_path / f"again.{form}")
    first = run("rate", season_file, "-s", "prav", "--json")
    again = run("rate", tmp_path / f"again.{form}", "-s", "prav", "--json")
    assert only_document(again.out) == only_document(first.out)


@pytest.mark.parametrize("option", ["--out", "--journal"])
def test_a_file_that_cannot_be_written_is_found_before_anything_is_read(option, run, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for name, said in (
        ("r.txt", "suffix '.txt'"),
        ("no/r.csv", "cannot be written"),
        ("folder.csv", "cannot be written"),
    ):
        ended = run("rate", tmp_path / "not-there.csv", "-s", "wager", option, tmp_path / name)
        assert ended.code == 2
        assert said in ended.err
        assert "not-there" not in ended.err
    assert files_in(tmp_path) == ["folder.csv"]


def test_ratings_and_journal_in_the_same_file_are_a_wrong_value(run, season_file, tmp_path):
    ended = run("rate", season_file, "-s", "wager", "--out", tmp_path / "x.csv", "--journal", tmp_path / "x.csv")
    assert ended.code == 2
    assert not (tmp_path / "x.csv").exists()


def test_a_rating_out_of_range_is_an_error_and_nothing_is_written(run, tmp_path):
    rows = "m,2026-01-01,a,ann,1,1\nm,2026-01-01,b,bob,2,1000000\n"  # half of 1e9 at stake, times 1000000
    (tmp_path / "x.csv").write_text("match_id,played_at,team,player,place,seconds\n" + rows)
    arguments = ["rate", tmp_path / "x.csv", "-s", "wager", "--param", "start=1000000000", "--param", "stake=0.5"]
    ended = run(*arguments, "--out", tmp_path / "r.csv")
    assert (ended.code, ended.out) == (1, "")
    assert "leaves the range of wager" in ended.err
    assert files_in(tmp_path) == ["x.csv"]


def test_rating_a_file_imports_no_matchmaker_no_database_and_no_other_command(season_file):
    program = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from evenmatch.cli import main; main()"
    words = [sys.executable, "-c", program, "rate", str(season_file), "--system", "elo"]
    imported = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    own = [name for name in imported if name.partition(".")[0] == "evenmatch"]
    assert "evenmatch.cli.rate" in own
    assert len(own) <= 100
    assert {"evenmatch.matchmaking", "evenmatch.cli.queue", "sqlalchemy"}.isdisjoint(imported)
