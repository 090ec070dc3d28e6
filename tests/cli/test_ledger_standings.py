"""evenmatch standings."""

import json
from datetime import UTC, datetime, timedelta

import pytest

# a > b > c > d > e by rating on "duel"; f, who beat a once, has one of two placement matches


def names(run, *options):
    return [row["player"] for row in json.loads(run("standings", *options, "--json").out)["standings"]]


def test_where_nobody_is_active_now_it_says_when_the_last_match_was(run, league):
    ended = run("standings")
    assert ended.code == 0
    assert ended.out.startswith("duel: 0 listed, 0 active of 6 players, 6 divisions, as of ")
    assert "the last match was on 2026-01-11 12:00 UTC" in ended.err
    assert "--as-of last" in ended.err


def test_as_of_the_last_match_everybody_stands_where_their_rating_says(run, league):
    ended = run("standings", "--as-of", "last")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "duel: 5 listed, 6 active of 6 players, 6 divisions, as of 2026-01-11 12:00 UTC"
    assert [line.split()[:2] for line in lines[2:7]] == [[str(at), name] for at, name in enumerate("abcde", 1)]
    told = json.loads(run("standings", "--as-of", "last", "--json").out)
    assert (told["listed"], told["active"], told["players"], told["as_of"]) == (5, 6, 6, "2026-01-11T12:00:00Z")
    # by hand: of six active, a is above all, e (with f between b and c) below all
    assert [row["percentile"] for row in told["standings"]] == [100, 81, 41, 21, 1]
    assert [row["division"] for row in told["standings"]] == ["Champion", "Platinum", "Silver", "Silver", "Bronze"]


def test_as_of_a_time_only_those_active_then_are_listed(run, league):
    # 30 days after d04 and d10, in which e and d played; a, b, c and f played before or after
    assert names(run, "--as-of", "2026-02-09T18:00:00Z") == ["a"]
    assert names(run, "--as-of", "2026-02-09T06:00:00Z") == ["a", "d", "e"]
    assert names(run, "--as-of", "2025-12-31") == []
    assert run("standings", "--as-of", "2025-12-31").err.startswith("nobody completed a match in the 30 days before")


def test_pages_and_sizes(run, league):
    assert names(run, "--as-of", "last", "--size", 2) == ["a", "b"]
    assert names(run, "--as-of", "last", "--size", 2, "--page", 3) == ["e"]
    assert "page 3 of 3" in run("standings", "--as-of", "last", "--size", 2, "--page", 3).out
    beyond = run("standings", "--as-of", "last", "--page", 9)
    assert beyond.code == 0
    assert "beyond the last one" in beyond.err


def test_around_search_and_friends(run, league):
    run("player", "rename", "e", "Anne")
    run("player", "rename", "b", "joanna")
    assert names(run, "--as-of", "last", "--around", "c", "--size", 3) == ["joanna", "c", "d"]
    assert names(run, "--as-of", "last", "--search", "ANN") == ["joanna", "Anne"]
    assert names(run, "--as-of", "last", "--friends", "d, f ,a") == ["a", "d", "f"]
    ended = run("standings", "--as-of", "last", "--friends", "d,f")
    assert "placement 1 of 2" in ended.out
    assert "not active" in run("standings", "--friends", "d").out


def test_friends_on_other_ladders_are_noted(run, league, season):
    run("ladder", "create", "team", "--system", "elo")
    run("import", season, "--ladder", "team")
    ended = run("standings", "--ladder", "duel", "--friends", "a,g", "--as-of", "last")
    assert ended.code == 0
    assert ended.err == "g has no rating on ladder duel\n"


def test_a_search_passes_over_players_of_other_ladders(run, league, season):
    run("ladder", "create", "team", "--system", "elo")
    run("import", season, "--ladder", "team")
    run("player", "rename", "e", "gg")
    assert names(run, "--ladder", "duel", "--as-of", "last", "--search", "g", "--size", 1) == ["gg"]


def test_the_distribution_counts_every_active_player_once(run, league):
    told = json.loads(run("standings", "--as-of", "last", "--distribution", "--json").out)
    assert sum(told["counts"]) == 6
    assert len(told["edges"]) == len(told["counts"]) + 1
    assert [one["name"] for one in told["divisions"]] == ["Bronze", "Silver", "Gold", "Platinum", "Diamond", "Champion"]
    ended = run("standings", "--as-of", "last", "--distribution")
    assert ended.out.startswith("duel: ratings of 6 active players")
    assert "█" in ended.out


def test_where_nobody_is_placed_all_who_are_active_are_shown(run, league):
    run("ladder", "change", "duel", "--placement", 9)
    ended = run("standings", "--as-of", "last")
    assert ended.err == "nobody completed 9 placement matches yet: all who are active are shown\n"
    assert [line.split()[1] for line in ended.out.splitlines()[2:8]] == ["a", "b", "f", "c", "d", "e"]
    assert "placement 5 of 9" in ended.out


@pytest.mark.parametrize("size", [1, 3])
def test_pages_together_are_everybody_once(size, run, league):
    pages = [names(run, "--as-of", "last", "--size", size, "--page", page) for page in range(1, 6)]
    assert [name for page in pages for name in page] == ["a", "b", "c", "d", "e"]


def test_a_match_recorded_now_makes_its_players_active_now(run, league, tmp_path):
    now = datetime.now(UTC) - timedelta(minutes=1)
    (tmp_path / "now.csv").write_text(
        f"match_id,played_at,team,player,place\nx,{now.isoformat()},1,e,1\nx,{now.isoformat()},2,d,2\n"
    )
    assert run("record", "now.csv").code == 0
    ended = run("standings")
    assert ended.err == ""
    assert [line.split()[1] for line in ended.out.splitlines()[2:4]] == ["e", "d"]  # 1457.35, 1452.75
