"""Names written by strangers: nothing they hold moves the cursor, paints the screen or breaks a line."""

import csv
import json
import unicodedata

import pytest

NAMES = {
    "an escape": "\x1b[31mred\x1b[0m",
    "a cleared screen": "\x1b[2J\x1b[H",
    "a title": "\x1b]0;owned\x07",
    "a line end": "line\nend",
    "a return": "over\rwritten",
    "a tab": "tab\tbed",
    "a backspace": "back\b\b\bspace",
    "one of eight bits": "\x9b31mred",
    "right to left": "\u202egnp.exe",
    "no width": "zero\u200bwidth",
    "a line separator": "line\u2028separator",
    "markup": "[bold red]mark[/bold red]",
    "a bad tag": "[/nothing]",
    "a formula": "=cmd|' /C calc'!A0",
    "very long": "x" * 5_000,
    "emoji": "🦊🎮",
    "wide": "プレイヤー",
    "combining": "z̸̢͉a",
}


def hostile(path, name):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["match_id", "played_at", "ladder", "team", "player", "place", name])
        writer.writerow([name, "2026-01-01", name, name, name, 1, ""])
        writer.writerow([name, "2026-01-01", name, "other", "other", 2, ""])
    return path


def harmless(text):
    return all(letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cf", "Zl", "Zp") for letter in text)


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def hostile_name(request):
    return request.param


def test_a_table_is_harmless_and_has_a_line_per_player(hostile_name, run, tmp_path):
    ended = run("rate", hostile(tmp_path / "x.csv", hostile_name), "-s", "wager")
    assert ended.code == 0
    assert harmless(ended.out)
    assert harmless(ended.err)
    assert len(ended.out.strip().splitlines()) == 4
    if harmless(hostile_name) and "\n" not in hostile_name:
        assert hostile_name in ended.out.splitlines()[2]


def test_a_story_is_harmless(hostile_name, run, tmp_path):
    ended = run("explain", hostile(tmp_path / "x.csv", hostile_name), "-s", "wager", "-m", hostile_name)
    assert ended.code == 0
    assert harmless(ended.out)
    assert "+0.05" in ended.out


def test_odds_are_harmless(hostile_name, run, tmp_path):
    path = hostile(tmp_path / "x.csv", hostile_name)
    quoted = '"' + hostile_name.replace('"', '""') + '"'
    ended = run("odds", path, "-s", "wager", "--teams", f"{quoted} vs newcomer")
    assert ended.code == 0
    assert harmless(ended.out)
    assert harmless(ended.err)
    assert "1.05" in ended.out


def test_errors_are_harmless(hostile_name, run, tmp_path):
    path = hostile(tmp_path / "x.csv", hostile_name)
    for arguments in (["--ladder", "nope"], []):
        ended = run("rate", path, "-s", "scorefactor" if arguments else "prav", *arguments)
        assert harmless(ended.err)
    path.write_text(path.read_text(encoding="utf-8").replace(",1,", ",0,"), encoding="utf-8")
    ended = run("rate", path, "-s", "wager")
    assert ended.code == 1
    assert harmless(ended.err)


def test_json_and_files_hold_the_name_as_it_is(hostile_name, run, tmp_path):
    path = hostile(tmp_path / "x.csv", hostile_name)
    ended = run("rate", path, "-s", "wager", "--json", "--out", tmp_path / "r.csv")
    (first, _) = json.loads(ended.out)["standings"]
    assert (first["ladder"], first["player"]) == (hostile_name, hostile_name)
    with (tmp_path / "r.csv").open(newline="", encoding="utf-8") as file:
        assert next(csv.DictReader(file))["player"] == hostile_name
