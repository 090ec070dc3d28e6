"""evenmatch look: what it prints about a file, and that the commands it prints work as printed."""

import csv
import json
import shlex
from pathlib import Path

import pytest

from cli.command_output import only_document
from evenmatch.tables.mapping import FileMapping
from tables.trial_file import write_trial


@pytest.fixture
def trial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_trial(tmp_path / "spiele.csv")


@pytest.fixture
def duels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "duels.csv").write_text("when,winner,loser\n13/01/2026,ann,bob\n14/01/2026,Ann ,bob\n")


def printed_command(out, name):
    return shlex.split(next(line for line in out.splitlines() if line.startswith(f"  evenmatch {name} ")))[1:]


def test_the_trial_file_is_explained_and_the_printed_command_rates_it(run, trial):
    told = run("look", "spiele.csv", "--zone", "Europe/Berlin")
    assert told.code == 0
    for said in (
        "CSV separated by semicolons, UTF-8, decimal comma, a row for each player of a match",
        "2,976 matches that can be read",
        "Not read: Map",
        "S00001, Monday 5 January 2026, 19:10, ",
        "played_at is '31.02.2026 19:10'",
        "result is 'vielleicht'",
        "line 8393, match 'S00700': 9 columns",
    ):
        assert said in told.out
    command = printed_command(told.out, "rate")
    assert command[-1] == "--skip-bad"
    rated = run(*command, "--json")
    assert rated.code == 0
    document = json.loads(rated.out)
    assert (document["matches"], document["skipped_matches"]) == (2976, 24)


def test_the_printed_command_imports_the_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENMATCH_DB", str(tmp_path / "league.db"))
    (tmp_path / "duels.csv").write_text(
        "Day;White;Black;Result\n13/01/2025;ann;bob;1-0\n14/01/2025;bob;cid;½-½\n", "utf-8"
    )
    assert run("ladder", "create", "NAME", "--system", "elo").code == 0
    command = printed_command(run("look", "duels.csv").out, "import")
    assert "2 matches added" in run(*command).out
    assert "0 matches added; 2 there already" in run(*command).out  # the ids are made of the time and the players


def test_the_rejected_rows_are_whole_matches_that_can_be_corrected_and_read(run, trial):
    assert run("look", "spiele.csv", "--rejected", "rejected.csv", "--save", "league.json").code == 0
    with open("rejected.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=";"))
    assert rows[0][-2:] == ["line", "problem"]
    assert {row[0] for row in rows[1:]} == {f"S{number:05}" for number in range(100, 2401, 100)}
    assert sum(row[-1] != "" for row in rows[1:]) == 24
    corrected = [
        ";".join(row[:8]).replace("vielleicht", "S") for row in rows if row[0] in ("Spiel", "S00400", "S00300")
    ]
    with open("corrected.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(corrected).replace("vielleicht", "N"))
    again = json.loads(run("look", "corrected.csv", "--mapping", "league.json", "--json").out)
    assert [problem["matches"] for problem in again["problems"]][-1] == ["S00300"]


def test_a_saved_mapping_is_named_again(run, trial):
    assert run("look", "spiele.csv", "--save", "league.json", "--zone", "Europe/Berlin").code == 0
    assert FileMapping.load(Path("league.json")).zone == "Europe/Berlin"
    rated = run("rate", "spiele.csv", "--mapping", "league.json", "--system", "elo", "--skip-bad", "--json")
    assert json.loads(rated.out)["matches"] == 2976


def test_look_as_json(run, duels):
    document = only_document(run("look", "duels.csv", "--json").out)
    assert document["mapping"]["columns"] == {"played_at": "when", "winner": "winner", "loser": "loser"}
    assert document["similar_names"] == [["ann", "Ann"]]
    assert document["examples"][0] == "13/01/2026 ann - bob, Tuesday 13 January 2026, 00:00: ann beat bob"


def test_names_that_look_the_same_are_pointed_out(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["m1,2026-01-01,a,ann,1", "m1,2026-01-01,b,bob,2", "m2,2026-01-02,a,Ann ,1", "m2,2026-01-02,b,bo\u200bb,2"]
    (tmp_path / "x.csv").write_text("\n".join(["match_id,played_at,team,player,place", *rows]), encoding="utf-8")
    told = run("look", "x.csv").out
    assert "  'ann', 'Ann '\n" in told
    assert "  'bob', 'bo\\u200bb'\n" in told
    assert printed_command(told, "rate") == ["rate", "x.csv", "--system", "elo"]


def test_an_ambiguous_date_is_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("when,winner,loser\n05/01/2026,ann,bob\n")
    told = run("look", "x.csv")
    assert told.code == 0
    assert "To decide: '05/01/2026' may name the day first or the month first" in told.out
    assert "evenmatch rate" not in told.out
    refused = run("rate", "x.csv", "--columns", "played_at=when", "--system", "elo")
    assert refused.code == 2
    assert "--time-format '%d/%m/%Y' or --time-format '%m/%d/%Y'" in refused.err


def test_a_file_in_another_form_is_refused_with_the_command_that_explains_it(run, duels, trial):
    assert "evenmatch look duels.csv" in run("rate", "duels.csv", "--system", "elo").err
    refused = run("rate", "spiele.csv", "--system", "elo")
    assert refused.code == 1
    assert "evenmatch look spiele.csv" in refused.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--zone Mars", "unknown zone 'Mars'"),
        ("--zone europe/berlin2", "did you mean 'Europe/Berlin'?"),
        ("--time-format %H:%M", "time format '%H:%M': expected a pattern with year, month and day"),
        ("--time-format weeks", "unknown time format 'weeks'"),
        ("--columns nick=winner", "unknown column 'nick'"),
        ("--columns winner", "--columns winner: expected OURS=THEIRS"),
        ("--mapping none.json", "none.json: No such file"),
    ],
)
def test_a_wrong_option_is_named_with_what_was_expected(run, duels, options, said):
    refused = run("rate", "duels.csv", "--system", "elo", *options.split())
    assert refused.code == 2
    assert said in refused.err


def test_zone_and_pattern_apply_to_a_file_with_our_columns(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["m1,13.07.2026 20:40,a,ann,1", "m1,13.07.2026 20:40,b,bob,2"]
    (tmp_path / "x.csv").write_text("\n".join(["match_id,played_at,team,player,place", *rows]))
    told = run(
        "rate", "x.csv", "--system", "elo", "--time-format", "%d.%m.%Y %H:%M", "--zone", "Europe/Berlin", "--json"
    )
    assert {row["last_played"] for row in json.loads(told.out)["standings"]} == {"2026-07-13T18:40:00Z"}


SHORT = "match_id,played_at,team,player,place\nm1,2026-01-05,a,ann,1\nm1,2026-01-05,b\nm2,2026-01-06,a,ann,1\n"
SHORT += "m2,2026-01-06,b,bob,2\n"


def test_a_rejected_row_that_is_too_short_keeps_its_columns_aligned_and_is_readable_again(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.csv").write_text(SHORT)
    assert run("look", "short.csv", "--rejected", "rejected.csv").code == 0
    with open("rejected.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[:2] == [
        ["match_id", "played_at", "team", "player", "place", "line", "problem"],
        ["m1", "2026-01-05", "a", "ann", "1", "2", ""],
    ]
    assert rows[2][:6] == ["m1", "2026-01-05", "b", "", "", "3"]
    assert "3 columns" in rows[2][6]
    Path("rejected.csv").write_text(Path("rejected.csv").read_text().replace("b,,,3", "b,bob,2,3"))
    again = json.loads(run("look", "rejected.csv", "--json").out)
    assert (again["matches"], again["problems"]) == (1, [])


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_pipe_is_explained_and_the_printed_command_imports_it(form, run, piped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENMATCH_DB", str(tmp_path / "league.db"))
    games = [("13/01/2025", "ann", "bob"), ("14/01/2025", "bob", "cid")]
    lines = [json.dumps(dict(zip(("Day", "Winner", "Loser"), game, strict=True))) for game in games]
    text = "\n".join(lines if form == "jsonl" else ["Day;Winner;Loser", *map(";".join, games)]) + "\n"
    piped(text)
    told = run("look", "-", "--save", "league.json")
    assert told.code == 0
    assert told.out.startswith(f"standard input: {'JSON Lines' if form == 'jsonl' else 'CSV separated by semicolons'}")
    assert "evenmatch rate" not in told.out
    assert run("ladder", "create", "NAME", "--system", "elo").code == 0
    piped(text)
    assert "2 matches added" in run(*printed_command(told.out, "import")).out
    piped(text)
    assert "0 matches added; 2 there already" in run("import", "-", "--mapping", "league.json").out


def team_games(*sizes):
    """A file with a match of two teams for each pair of sizes."""
    rows = [
        f"m{match},2026-01-{match:02},{team},{team}{player},{place}"
        for match, pair in enumerate(sizes, 1)
        for (team, place), size in zip((("a", 1), ("b", 2)), pair, strict=True)
        for player in range(size)
    ]
    return "\n".join(["match_id,played_at,team,player,place", *rows, ""])


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([(6, 6), (6, 6), (5, 6)], ["1 match has teams of other sizes than 6 (5 against 6: 1)"]),
        ([(6, 6), (6, 6), (6, 6)], []),
        ([(6, 6), (5, 5), (4, 4)], []),  # no size is usual
    ],
)
def test_look_names_the_matches_with_teams_of_an_unusual_size(sizes, told, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "teams.csv").write_text(team_games(*sizes))
    assert json.loads(run("look", "teams.csv", "--json").out)["other_sizes"] == told
    assert [line for line in run("look", "teams.csv").out.splitlines() if "other sizes" in line] == [
        f"{text}: a row may be missing" for text in told
    ]
