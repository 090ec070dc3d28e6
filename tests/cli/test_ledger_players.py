"""evenmatch player: show, rename, merge, export, erase."""

import json
import sys

import pytest

from evenmatch.players.players import NAMED_TWICE


def player_json(run, name, *options):
    return json.loads(run("player", "show", name, *options, "--json").out)


def test_show_tells_the_standing_and_the_latest_matches_with_their_changes(run, league):
    told = player_json(run, "a")
    (on,) = told["ladders"]
    assert (told["player"], told["names"], on["ladder"]) == ("a", ["a"], "duel")
    assert (on["standing"]["matches"], on["standing"]["placed"]) == (5, True)
    assert [row["match_id"] for row in on["matches"]] == ["d11", "d04", "d03", "d02", "d01"]
    first = on["matches"][-1]
    assert (first["before"], first["after"], first["place"], first["played_at"]) == (
        1500,
        1516,
        1,
        "2026-01-01T12:00:00Z",
    )
    assert on["matches"][0]["after"] == on["standing"]["rating"]
    assert [row["match_id"] for row in player_json(run, "a", "--matches", 2)["ladders"][0]["matches"]] == ["d11", "d04"]
    lines = run("player", "show", "a", "--matches", 1).out.splitlines()
    assert lines[0] == "a"
    assert lines[2].startswith("duel: 1541.01 after 5 matches, not active")
    assert lines[4].split() == ["2026-01-11", "12:00", "d11", "2", "1559.73", "1541.01", "-18.72"]


def test_show_tells_every_ladder_or_one(run, league, season_file):
    run("ladder", "create", "team", "--system", "wager")
    run("import", season_file, "--ladder", "team")
    assert [on["ladder"] for on in player_json(run, "a")["ladders"]] == ["duel", "team"]
    (on,) = player_json(run, "a", "--ladder", "team")["ladders"]
    assert on["standing"]["rating"] == pytest.approx(1.05)  # wager: a newcomer's win against newcomers
    assert player_json(run, "g", "--ladder", "duel")["ladders"][0]["standing"] is None
    assert "duel: no rating" in run("player", "show", "g", "--ladder", "duel").out


def test_a_renamed_player_is_reached_by_both_names(run, league, season_file):
    ended = run("player", "rename", "a", "Ann the Great")
    assert (ended.code, ended.out) == (
        0,
        "player a is now named Ann the Great; matches reported for a still count for them\n",
    )
    assert player_json(run, "a") == player_json(run, "Ann the Great")
    assert player_json(run, "a")["names"] == ["Ann the Great", "a"]
    assert "Ann the Great (also known as a)" in run("player", "show", "a").out
    assert run("import", season_file, "--ladder", "duel").out == "ladder duel: 0 matches added; 11 there already\n"


def test_two_who_never_met_become_one(run, league):
    ended = run("player", "merge", "f", "--into", "b", "--yes")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "f and b are now one player, b; rated again: duel")
    assert "two of the player's names is recorded but not rated" in ended.out
    (on,) = player_json(run, "f")["ladders"]
    assert [row["match_id"] for row in on["matches"]] == ["d11", "d07", "d06", "d05", "d01"]
    assert on["standing"]["matches"] == 5
    assert run("verify").code == 0


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("y\n", 0)])
def test_who_is_asked_may_say_no(answer, code, run, league, monkeypatch):
    monkeypatch.setattr("evenmatch.cli.shared.database_options.sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: answer == "y\n")
    ended = run("player", "erase", "a")
    assert ended.code == code
    assert "a: 1 name will be deleted on 1 ladder (duel)" in ended.err
    assert run("player", "show", "a").code == (2 if code == 0 else 0)


def test_export_holds_all_that_is_known(run, league):
    run("player", "rename", "f", "fay")
    run("player", "merge", "fay", "--into", "b", "--yes")
    run("season", "open")
    run("ban", "b", "--rule", "refund", "--reason", "aimbot")
    ended = run("player", "export", "b", "--out", "b.json")
    assert (ended.code, ended.out) == (0, "b.json: the data about b\n")
    with open("b.json", encoding="utf-8") as file:
        told = json.load(file)
    assert (told["player"], told["names"]) == ("b", ["b", "f", "fay"])
    (on,) = told["ladders"]
    assert len(on["matches"]) == 5
    assert [one["season"] for one in on["seasons"]] == [1]
    assert on["banned"] is True
    assert [(one["kind"], one["reason"]) for one in on["corrections"]][-1] == ("player-banned", "aimbot")


def test_erase_leaves_no_trace_of_the_name_and_nobody_elses_rating_moves(run, league):
    run("player", "rename", "a", "quixotic")
    run("export", "--ratings", "before.jsonl")
    ended = run("player", "erase", "quixotic", "--yes")
    assert ended.code == 0
    pseudonym = ended.out.removeprefix("erased; their matches now belong to ").removesuffix("\n")
    run("export", "--ratings", "after.jsonl", "--matches", "matches.jsonl")
    before, after = (
        {row["player"]: row["rating"] for row in map(json.loads, (league.parent / name).read_text().splitlines())}
        for name in ("before.jsonl", "after.jsonl")
    )
    assert after == {pseudonym if name == "quixotic" else name: rating for name, rating in before.items()}
    assert run("player", "show", "quixotic").code == 2
    assert "quixotic" not in (league.parent / "matches.jsonl").read_text()
    told = json.loads(run("standings", "--as-of", "last", "--json").out)
    assert [row["player"] for row in told["standings"]] == ["b", "c", "d", "e"]
    assert run("verify").code == 0


def test_a_name_that_a_player_has_already_is_said_and_nothing_is_recorded(run, league):
    run("player", "rename", "a", "Ann")
    before = league.read_bytes()
    for old in ("a", "Ann"):
        ended = run("player", "rename", old, "Ann")
        assert (ended.code, ended.out) == (0, f"player {old} is already named Ann; nothing changed\n")
    assert json.loads(run("ladder", "show", "duel", "--json").out)["events"] == 13
    assert league.read_bytes() == before


def test_every_command_on_players_prints_one_document_with_json(run, league):
    assert json.loads(run("player", "rename", "a", "Ann", "--json").out) == {
        "player": "Ann",
        "named": "a",
        "renamed": True,
    }
    assert json.loads(run("player", "rename", "a", "Ann", "--json").out)["renamed"] is False
    assert json.loads(run("player", "merge", "f", "--into", "b", "--yes", "--json").out) == {
        "player": "b",
        "merged": "f",
        "ladders": ["duel"],
        "note": NAMED_TWICE,
    }
    told = json.loads(run("player", "export", "a", "--out", "a.json", "--json").out)
    assert told == {"player": "Ann", "file": "a.json", "bytes": (league.parent / "a.json").stat().st_size}
    told = json.loads(run("player", "erase", "a", "--yes", "--json").out)
    assert (told["pseudonym"][:7], told["ladders"]) == ("erased-", ["duel"])


def test_nobody_is_asked_in_a_script(run, league, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    for line in (["player", "erase", "a"], ["player", "merge", "a", "--into", "f"]):
        assert "give --yes" in run(*line).err
    assert len(player_json(run, "a")["ladders"]) == 1
