"""evenmatch standings."""

import json
from datetime import UTC, datetime, timedelta

import pytest

# a > b > c > d > e by rating on "duel"; f, who beat a once, has one of two placement matches


def listed_players(run, *options):
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


def test_as_of_a_later_time_those_are_listed_who_are_active_then_if_nobody_plays(run, league):
    # 30 days after d04 and d10, in which e and d played last; a and f played d11
    assert listed_players(run, "--as-of", "2026-02-10T06:00:00Z") == ["a"]
    assert listed_players(run, "--as-of", "2026-02-09T06:00:00Z") == ["a", "d", "e"]
    assert listed_players(run, "--as-of", "2026-01-11T12:00:00Z") == ["a", "b", "c", "d", "e"]
    assert run("standings", "--as-of", "2026-03-01").err.startswith("no player completed a match in the 30 days before")


def test_as_of_a_time_before_the_last_match_is_refused_for_who_was_active_then_is_not_kept(run, league):
    ended = run("standings", "--as-of", "2026-01-11T11:59:59Z")  # a and f had played before, and would be dropped
    assert (ended.code, ended.out) == (2, "")
    assert "as of 2026-01-11T11:59:59Z: the last match of ladder duel ended at 2026-01-11T12:00:00Z" in ended.err
    assert "expected that time, a later one, or last" in ended.err
    assert "evenmatch export --counted --matches FILE --ladder duel, then evenmatch rate FILE --system S" in ended.err


def test_pages_and_sizes(run, league):
    assert listed_players(run, "--as-of", "last", "--size", 2) == ["a", "b"]
    assert listed_players(run, "--as-of", "last", "--size", 2, "--page", 3) == ["e"]
    assert "page 3 of 3" in run("standings", "--as-of", "last", "--size", 2, "--page", 3).out
    beyond = run("standings", "--as-of", "last", "--page", 9, "--size", 2)
    assert (beyond.code, beyond.err) == (0, "page 9 is beyond the end: there are 3 pages of 2\n")
    assert run("standings", "--as-of", "last", "--page", 2).err == "page 2 is beyond the end: there is 1 page of 20\n"
    assert json.loads(run("standings", "--as-of", "last", "--page", 2, "--json").out)["standings"] == []


def test_around_search_and_friends(run, league):
    run("player", "rename", "e", "Anne")
    run("player", "rename", "b", "joanna")
    assert listed_players(run, "--as-of", "last", "--around", "c", "--size", 3) == ["joanna", "c", "d"]
    assert listed_players(run, "--as-of", "last", "--search", "ANN") == ["joanna", "Anne"]
    assert listed_players(run, "--as-of", "last", "--friends", "d, f ,a") == ["a", "d", "f"]
    ended = run("standings", "--as-of", "last", "--friends", "d,f")
    assert "placement 1 of 2" in ended.out
    assert "not active" in run("standings", "--friends", "d").out


LATER = ["--as-of", "2026-02-09T18:00:00Z"]  # a alone is listed; d and e are not active


def test_who_is_not_listed_is_told_why_and_shown_the_place_of_their_rating(run, league):
    for asked, why, shown in (
        (["--around", "f", "--as-of", "last"], "f is not listed (placement 1 of 2)", list("abcde")),
        (["--around", "d", *LATER], "d is not listed (not active)", ["a"]),
    ):
        assert listed_players(run, *asked) == shown
        ended = run("standings", *asked)
        assert ended.code == 0
        assert ended.err.startswith(f"{why}; showing the players closest to their rating of 1")


def test_where_nobody_is_placed_yet_around_shows_those_who_are_active(run, league):
    run("ladder", "change", "duel", "--placement", 9)  # a, b, f, c, d, e by rating
    asked = ["--as-of", "last", "--around", "f", "--size", 3]
    assert listed_players(run, *asked) == ["b", "f", "c"]
    assert (
        run("standings", *asked).err
        == "no player has completed 9 placement matches yet: all active players are shown\n"
    )


@pytest.mark.parametrize(
    "how", [[], ["--since", "2026-01-05"], ["--rule", "refund"]], ids=" ".join
)  # [] leaves no rating
def test_a_banned_player_is_shown_nowhere_and_that_is_said(how, run, league):
    run("ban", "d")
    run("reinstate", "d")
    run("player", "rename", "e", "Eve")
    run("ban", "e", *how)
    told = "e is banned from ladder duel\n"
    for asked in (["--around", "e"], ["--friends", "e"]):
        ended = run("standings", "--as-of", "last", *asked)
        assert (ended.code, ended.err, len(ended.out.splitlines())) == (0, told, 1)
        assert json.loads(run("standings", "--as-of", "last", *asked, "--json").out)["standings"] == []
    assert listed_players(run, "--as-of", "last", "--friends", "e,a,d") == ["a", "d"]
    assert listed_players(run, "--as-of", "last", "--search", "e") == []


def test_a_search_without_a_hit_and_a_player_of_another_ladder_are_told_apart(run, league, season_file):
    run("ladder", "create", "team", "--system", "elo")
    run("import", season_file, "--ladder", "team")
    on = ["--ladder", "duel", "--as-of", "last"]
    assert run("standings", *on, "--around", "g").err == "g has no rating on ladder duel\n"
    assert (
        run("standings", *on, "--search", "zz").err
        == "no player in the standings of ladder duel has a name that contains 'zz'\n"
    )


def test_pages_of_those_who_are_not_placed_have_an_end_too(run, league):
    run("ladder", "change", "duel", "--placement", 9)
    ended = run("standings", "--as-of", "last", "--size", 4, "--page", 3)
    assert ended.err.endswith("page 3 is beyond the end: there are 2 pages of 4\n")


def test_letters_that_are_two_cells_wide_stand_in_line(run, league):
    run("player", "rename", "a", "プレイヤー")  # 10 cells
    run("player", "rename", "b", "🦊🎮")  # 4
    run("player", "rename", "c", "z\u0338\u0322a")  # 2
    lines = run("standings", "--as-of", "last").out.splitlines()[1:7]
    told = ["player    ", "プレイヤー", "🦊🎮      ", "z\u0338\u0322a        ", "d         ", "e         "]
    assert [line[6 : 6 + len(name)] for line, name in zip(lines, told, strict=True)] == told
    assert [line[6 + len(name) :][:2] for line, name in zip(lines, told, strict=True)] == ["  "] * 6


def test_friends_on_other_ladders_are_noted(run, league, season_file):
    run("ladder", "create", "team", "--system", "elo")
    run("import", season_file, "--ladder", "team")
    ended = run("standings", "--ladder", "duel", "--friends", "a,g", "--as-of", "last")
    assert ended.code == 0
    assert ended.err == "g has no rating on ladder duel\n"


def test_the_distribution_counts_every_active_player_once(run, league):
    told = json.loads(run("standings", "--as-of", "last", "--distribution", "--json").out)
    assert sum(told["counts"]) == 6
    assert len(told["edges"]) == len(told["counts"]) + 1
    assert [one["name"] for one in told["divisions"]] == ["Bronze", "Silver", "Gold", "Platinum", "Diamond", "Champion"]
    ended = run("standings", "--as-of", "last", "--distribution")
    assert ended.out.startswith("duel: ratings of 6 active players")
    assert "█" in ended.out


def test_a_bin_that_reaches_farther_than_the_others_says_so_and_edges_have_the_same_decimals(
    run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    start = [("low", 2), *((f"p{at:03}", 1500 + at / 10) for at in range(198)), ("high", 4000)]
    (tmp_path / "start.csv").write_text("player,rating\n" + "".join(f"{name},{rating}\n" for name, rating in start))
    rows = "".join(f"{at},2026-01-01,{name},{name},1\n" for at, (name, _) in enumerate(start))
    rows += "".join(f"{at},2026-01-01,x,x{at},1\n" for at in range(200))  # who are all drawn with
    (tmp_path / "m.csv").write_text("match_id,played_at,team,player,place\n" + rows)
    run("ladder", "create", "one", "--system", "elo", "--param", "k=0.0001", "--placement", "0")
    run("import", "start.csv", "--ratings")
    assert run("import", "m.csv").code == 0
    told = json.loads(run("standings", "--as-of", "last", "--distribution", "--json").out)
    lines = [line.split() for line in run("standings", "--as-of", "last", "--distribution").out.splitlines()[2:]]
    bins = lines[: lines.index([])]
    assert len(bins) == len(told["counts"])
    assert bins[0][0] == "≥"
    assert bins[-1][0] == "<"
    assert float(bins[0][1]) == told["edges"][-2]
    assert float(bins[-1][1]) == told["edges"][1]
    edges = [edge for row in bins[1:-1] for edge in row[:2]]
    assert len({len(edge.partition(".")[2]) for edge in [*edges, bins[0][1], bins[-1][1]]}) == 1
    assert sum(int(row[2]) for row in bins) == 400


def test_bins_of_one_width_have_both_ends(run, league):
    lines = run("standings", "--as-of", "last", "--distribution").out
    assert "≥" not in lines
    assert "<" not in lines


def test_where_nobody_is_placed_all_who_are_active_are_shown(run, league):
    run("ladder", "change", "duel", "--placement", 9)
    ended = run("standings", "--as-of", "last")
    assert ended.err == "no player has completed 9 placement matches yet: all active players are shown\n"
    assert [line.split()[1] for line in ended.out.splitlines()[2:8]] == ["a", "b", "f", "c", "d", "e"]
    assert "placement 5 of 9" in ended.out


def test_a_match_recorded_now_makes_its_players_active_now(run, league, tmp_path):
    now = datetime.now(UTC) - timedelta(minutes=1)
    (tmp_path / "now.csv").write_text(
        f"match_id,played_at,team,player,place\nx,{now.isoformat()},1,e,1\nx,{now.isoformat()},2,d,2\n"
    )
    assert run("record", "now.csv").code == 0
    ended = run("standings")
    assert ended.err == ""
    assert [line.split()[1] for line in ended.out.splitlines()[2:4]] == ["e", "d"]  # 1457.35, 1452.75
