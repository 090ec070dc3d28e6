"""Names written by strangers in a database: nothing they hold moves the cursor, paints the screen or breaks a line."""

import csv
import json
import re
import shlex
import sqlite3
import unicodedata
from contextlib import closing

import pytest

from evenmatch.cli.shared.database_options import typed

NAMES = {
    "control": "\x1b[31mred\x1b[2J\x1b[H\x1b]0;owned\x07\rover\nline\tend\u202egnp.exe\u2028",
    "markup": "[bold red]mark[/bold red][/nothing]'\"; DROP TABLE player; --100%_\\",
    "long": "🦊é" * 100,
    "an option": "--yes",
}


def harmless(text):
    return all(letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cf", "Zl", "Zp") for letter in text)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_hostile_names_print_harmlessly_and_are_kept_as_they_are(name, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENMATCH_DB", "names.db")
    with open("m.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["match_id", "played_at", "team", "player", "place"])
        writer.writerow([name, "2026-01-01", name, name, 1])
        writer.writerow([name, "2026-01-01", "other", "other", 2])
    ladder = "".join(
        letter for letter in name if unicodedata.category(letter) not in ("Cc", "Zl", "Zp")
    )  # as it must be
    on = ["--ladder", ladder]
    lines = [
        ["ladder", "create", "--system", "elo", "--title", name, "--placement", 0, "--", ladder],
        ["import", "m.csv", *on],
        ["record", "m.csv", *on],
        ["ladder", "list"],
        ["ladder", "show", "--", ladder],
        ["standings", *on, "--as-of", "last"],
        ["standings", *on, "--as-of", "last", "--search", name],
        ["player", "show", "--", name],
        ["void", *on, "--reason", name, "--preview", "--", name],
        ["void", *on, "--reason", name, "--", name],
        ["reinstate", *on, "--match", name],
        ["ban", *on, "--reason", name, "--", name],
        ["reinstate", *on, "--", name],
        ["verify"],
        ["season", "open", *on, "--title", name],
        ["season", "show", "1", *on],
        ["season", "list", *on],
        ["export", *on, "--ratings", "r.jsonl", "--corrections", "c.jsonl", "--matches", "m2.csv"],
        ["player", "export", "--out", "p.json", "--", name],
        ["player", "rename", "--", "other", name + "!"],
    ]
    for line in lines:
        ended = run(*line)
        assert ended.code == 0, (line, ended)
        assert harmless(ended.out + ended.err), line
    for line in (["void", *on, "--", name + "?"], ["player", "show", "--", name + "?"], ["standings", "--ladder", "?"]):
        ended = run(*line)
        assert ended.code == 2
        assert harmless(ended.err)
    found = json.loads(run("standings", *on, "--as-of", "last", "--search", name, "--json").out)["standings"]
    assert [row["player"] for row in found] == ([name, name + "!"] if name != "nobody" else [])
    with open("m2.csv", newline="", encoding="utf-8") as file:
        assert {row["player"] for row in csv.DictReader(file)} == {name, "other"}
    told = run("player", "erase", "--yes", "--", name)
    assert (told.code, harmless(told.out + told.err)) == (0, True)


AWKWARD = ['Grand "Arena"', "--x", "  sp  ", "it's", "$HOME; true", "ünï"]


def hints(ended):
    """The commands that an output names, up to the end of their line."""
    return [
        shlex.split(found)
        for found in re.findall(
            r"(?:type: |next: |then: |now: |before: |it: |count: )(evenmatch .*)", ended.out + ended.err
        )
    ]


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("given", ["--db", "EVENMATCH_DB"])
def test_a_command_that_a_hint_names_works_as_it_is_typed(name, given, run, tmp_path, monkeypatch, season_file):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    db = ["--db", "a b/le'ague.db"] if given == "--db" else []
    if not db:
        monkeypatch.setenv("EVENMATCH_DB", "a b/le'ague.db")

    def follow(line, at=-1):
        """Run the command that this one names."""
        told = hints(run(*line, *db))[at]
        assert ("--db" in told, "a b/le'ague.db" in told) == (bool(db), bool(db)), told
        ended = run(*told[1:])
        assert ended.code in (0, 1), (told, ended)
        return told, ended

    make = hints(run("standings", *db))[0]
    assert make[1:4] == ["ladder", "create", "NAME"]
    made = run("ladder", "create", "--system", "elo", "--placement", 0, *db, "--", name)
    (next_,) = hints(made)
    assert next_[1:5] == ["import", "MATCHES", "--ladder", name]
    assert run("import", season_file, *next_[3:], "--pool-ladders").code == 0
    told, ended = follow(["standings", "--ladder", name])
    assert (told[1:4], ended.code) == (["standings", "--as-of", "last"], 0)
    told, _ = follow(["season", "open", "--reset", "none", "--ladder", name])
    assert told[1:4] == ["season", "show", "1"]
    with closing(sqlite3.connect("a b/le'ague.db")) as connection:
        connection.execute("UPDATE ladder SET due = 1")
        connection.commit()
    asked = hints(run("ladder", "show", *db, "--", name))[0]
    assert asked[1:4] == ["rebuild", "--ladder", name]
    told, ended = follow(["verify", "--ladder", name])
    assert told == asked
    assert "rated again" in ended.out
    told, ended = follow(["reinstate", "--ladder", name, "d01"])
    assert (told[1:4], ended.err) == (
        ["reinstate", "--match", "d01"],
        "error: match 'd01' is not void; only a match voided by its id can be reinstated\n",
    )


@pytest.mark.parametrize(
    ("db", "shown"),
    [
        ("postgresql://league:s3cret@db.example/league", "postgresql://league:***@db.example/league"),
        ("postgresql://league:s3:cret/x@db.example/league", "postgresql://league:***@db.example/league"),
        ("postgresql://:s3cret@db.example/league", "postgresql://:***@db.example/league"),
        ("postgresql://league@db.example:5432/league", "postgresql://league@db.example:5432/league"),
        (
            "postgresql://db.example/league?user=league&password=s3cret&sslpassword=s3&x=1",
            "postgresql://db.example/league?user=league&password=***&sslpassword=***&x=1",
        ),
    ],
)
def test_no_hint_shows_a_password(db, shown, monkeypatch):
    monkeypatch.delenv("EVENMATCH_DB", raising=False)
    assert shlex.split(typed(db, "verify")) == ["evenmatch", "verify", "--db", shown]
    monkeypatch.setenv("EVENMATCH_DB", db)
    assert typed(db, "verify") == "evenmatch verify"


def test_a_name_that_looks_like_an_option_is_kept_apart_from_the_options(monkeypatch):
    monkeypatch.delenv("EVENMATCH_DB", raising=False)
    assert typed("x.db", "ladder show", names=["--x"]) == "evenmatch ladder show --db x.db -- --x"
    assert typed("evenmatch.db", "ladder show", names=["a b"]) == "evenmatch ladder show 'a b'"
