"""Names written by strangers in a database: nothing they hold moves the cursor, paints the screen or breaks a line."""

import csv
import json
import unicodedata

import pytest

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
    on = ["--ladder", name]
    lines = [
        ["ladder", "create", "--system", "elo", "--title", name, "--placement", 0, "--", name],
        ["import", "m.csv", *on],
        ["record", "m.csv", *on],
        ["ladder", "list"],
        ["ladder", "show", "--", name],
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
