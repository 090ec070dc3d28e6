"""evenmatch systems, explain and odds."""

import json
import re

import pytest

from cli.command_output import only_document
from evenmatch import read, rules, systems
from evenmatch.rating import rate


def test_all_systems_are_listed(run):
    ended = run("systems")
    assert (ended.code, ended.err) == (0, "")
    for name in systems.names():
        assert re.search(rf"^{name} ", ended.out, re.MULTILINE)
    assert [one["name"] for one in only_document(run("systems", "--json").out)] == list(systems.names())


@pytest.mark.parametrize("name", systems.names())
def test_a_system_lists_its_parameters_presets_and_factors(name, run):
    ended, document = run("systems", name), only_document(run("systems", name, "--json").out)
    assert (ended.code, ended.err) == (0, "")
    for part in ("parameters", "presets", "factors"):
        for what in document[part]:
            assert re.search(rf"^{what}\b", ended.out, re.MULTILINE), what
    assert {key: value["default"] for key, value in document["parameters"].items()} == json.loads(
        json.dumps(rules(name).values())
    )


def test_a_match_is_explained_in_words(run, season_file):
    ended = run("explain", season_file, "--match", "t1", "--system", "wager")
    assert (ended.code, ended.err) == (0, "")
    assert "Match t1, ladder team, 2026-03-01T12:00:00Z, rated with wager" in ended.out
    assert re.search(r"a +1\.00 → 1\.05 +\+0\.05\s+Their team beat\b.* so their rating rose by 0\.05\.", ended.out)
    assert re.search(r"(?s)g +1\.00 → 1\.00 .*Their rating is already 1\.00, the lowest there is", ended.out)
    assert re.search(r"The same for the whole team: .*stake 0\.05\b", ended.out)


def test_a_match_is_explained_as_data_that_agree_with_the_journal(run, season_file):
    document = only_document(run("explain", season_file, "-m", "d11", "-s", "battlepoints", "--json").out)
    journal = rate(read(season_file), rules("battlepoints"), journal=True).journal_table().to_pylist()
    expected = [row for row in journal if row["match_id"] == "d11"]
    told = [player | {"expected": team["expected"]} for team in document["teams"] for player in team["players"]]
    assert [(p["player"], p["before"], p["after"], p["expected"]) for p in told] == [
        (row["player"], row["before"], row["after"], row["expected"]) for row in expected
    ]
    assert [team["place"] for team in document["teams"]] == [1, 2]
    assert document["played_at"] == "2026-01-11T12:00:00Z"
    assert all(player["seconds"] == 60.0 and player["quit"] is False for player in told)


def test_only_what_came_before_a_match_counts_in_its_story(run, season_file):
    document = only_document(run("explain", season_file, "-m", "d01", "-s", "battlepoints", "--json").out)
    assert [(p["before"], p["after"]) for team in document["teams"] for p in team["players"]] == [
        (1000.0, 1016.0), (1000.0, 984.0),
    ]  # fmt: skip


def test_pooled_ladders_are_explained_as_one(run, season_file):
    apart = only_document(run("explain", season_file, "-m", "t1", "-s", "battlepoints", "--json").out)
    pooled = only_document(
        run("explain", season_file, "-m", "t1", "-s", "battlepoints", "--pool-ladders", "--json").out
    )
    assert apart["teams"][0]["players"][0]["before"] == 1000.0
    assert pooled["teams"][0]["players"][0]["before"] != 1000.0


# Labels and places of three teams, and the sentence on the result
OUTCOMES = [
    ([("RED", 1), ("Blue", 2), ("grün", 3)], r"Team RED won: an even match\."),
    ([("RED", 1), ("Blue", 1), ("grün", 3)], r"Team RED and team Blue shared first place among 3 teams\."),
    ([("RED", 2), ("Blue", 2), ("grün", 2)], r"A draw between team RED and team Blue and team grün\."),
]


@pytest.mark.parametrize(("teams", "sentence"), OUTCOMES)
def test_the_result_is_told_with_the_names_of_the_teams_as_they_are(teams, sentence, run, tmp_path):
    path = tmp_path / "x.csv"
    rows = [f"m,2026-01-01,{team},p{at},{place}" for at, (team, place) in enumerate(teams)]
    path.write_text("\n".join(["match_id,played_at,team,player,place", *rows]))
    assert re.search(sentence, run("explain", path, "-m", "m", "-s", "battlepoints").out)


def test_odds_of_a_line_up_are_those_of_the_ratings(run, season_file):
    document = only_document(
        run("odds", season_file, "-s", "battlepoints", "--ladder", "duel", "--teams", "a vs b", "--json").out
    )
    rating = {
        row["player"]: row["rating"]
        for row in rate(read(season_file).on_ladder("duel"), rules("battlepoints")).standings().to_pylist()
    }
    favourite = 1 / (1 + 10 ** ((rating["b"] - rating["a"]) / 400))  # Elo's formula
    first, second = document["teams"]
    assert first["expected"] == pytest.approx(favourite, rel=1e-12)
    assert first["win"][1] + second["win"][0] + first["draw"][1] == pytest.approx(1)
    assert [player["rating"] for player in first["players"]] == [rating["a"]]
    assert not first["players"][0]["newcomer"]


def test_odds_of_a_newcomer_follow_what_is_known_before_the_first_match(run, tmp_path):
    rows = ["match_id,played_at,team,player,place,entry"]
    for number in range(40):  # the better seed wins
        for side, seed in ((1, number % 4), (2, number % 4 + 10)):
            rows.append(f"m{number},2026-01-{number % 28 + 1:02},{side},p{number}{side},{side},{seed}")
    path = tmp_path / "seeds.csv"
    path.write_text("\n".join(rows))
    line = ["odds", path, "-s", "even", "--teams", "new vs newer", "--json"]
    known, unknown = (
        only_document(run(*line, *more).out)["teams"][0]["expected"]
        for more in (["--entry", "new=1", "--entry", "newer=13"], [])
    )
    assert known > 0.6 > unknown
    assert "--entry new=gold: expected a number, for example new=1834" in run(*line, "--entry", "new=gold").err
    assert "unknown player 'ann'; known: new, newer" in run(*line, "--entry", "ann=3").err


def test_odds_in_words_add_up(run, season_file):
    ended = run("odds", season_file, "-s", "wager", "--ladder", "duel", "--teams", "a,b vs c,d")
    assert (ended.code, ended.err) == (0, "")
    rows = re.findall(r"(\d+\.\d)% +(\d+\.\d)% +(\d+\.\d)%", ended.out)
    assert len(rows) == 2
    assert all(sum(map(float, row)) == pytest.approx(100, abs=0.15) for row in rows)
    assert rows[0] == rows[1][::-1]


def test_odds_of_three_teams_have_a_column_for_each_rival(run, season_file):
    ended = run("odds", season_file, "-s", "battlepoints", "--ladder", "duel", "--teams", "a vs b vs c,d")
    assert ended.code == 0
    assert "ahead of team 3" in ended.out
    document = only_document(
        run("odds", season_file, "-s", "battlepoints", "--ladder", "duel", "--teams", "a vs b vs c,d", "--json").out
    )
    assert sum(team["expected"] for team in document["teams"]) == pytest.approx(1.5)


def test_an_unknown_player_is_a_newcomer_and_the_output_says_so(run, season_file):
    arguments = ["odds", season_file, "-s", "wager", "--ladder", "duel", "--teams", "a vs stranger"]
    ended = run(*arguments)
    assert ended.code == 0
    assert re.search(r"stranger.*newcomer", ended.out + ended.err)
    ended = run(*arguments, "--json")
    players = [player for team in only_document(ended.out)["teams"] for player in team["players"]]
    assert [(player["player"], player["newcomer"]) for player in players] == [("a", False), ("stranger", True)]
    assert players[1]["rating"] == 1.0


def test_a_player_of_another_ladder_is_a_newcomer_on_this_one(run, season_file):
    document = only_document(
        run("odds", season_file, "-s", "wager", "--ladder", "duel", "--teams", "a vs g", "--json").out
    )
    assert document["teams"][1]["players"][0]["newcomer"]


def test_names_with_commas_and_spaces_can_be_asked_for(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('match_id,played_at,team,player,place\nm,2026-01-01,1,"a, b",1\nm,2026-01-01,2,c d,2\n')
    document = only_document(run("odds", path, "-s", "wager", "--teams", '"a, b", e vs c d', "--json").out)
    players = [[player["player"] for player in team["players"]] for team in document["teams"]]
    assert players == [["a, b", "e"], ["c d"]]
    assert [player["newcomer"] for team in document["teams"] for player in team["players"]] == [False, True, False]


def test_odds_as_of_a_moment_know_nothing_later(run, season_file):
    arguments = ["odds", season_file, "-s", "wager", "--ladder", "duel", "--teams", "a vs b", "--json"]
    now, then = (
        only_document(run(*arguments).out),
        only_document(run(*arguments, "--as-of", "2026-01-01T12:00:00Z").out),
    )
    assert then["teams"][0]["players"][0]["rating"] == 1.05
    assert now["teams"][0]["players"][0]["rating"] != 1.05


STAKES = ["-s", "wager", "--ladder", "duel", "--teams", "a vs b", "--stakes", "--assume", "seconds=60"]
AS_ASSUMED = {  # place and seconds of a and of b, and who quit; 60 seconds as in the rest of the season
    "win": ("1,60,", "2,60,"),
    "draw": ("1,60,", "1,60,"),
    "loss": ("2,60,", "1,60,"),
    "quit": ("2,30,true", "1,60,"),
}


@pytest.mark.parametrize("outcome", AS_ASSUMED)
def test_stakes_are_what_the_next_match_then_changes(run, season_file, outcome):
    told = only_document(run("odds", season_file, *STAKES, "--json").out)
    own = told["stakes"][0]
    assert (own["player"], own["team"], own["before"]) == ("a", 0, told["teams"][0]["players"][0]["rating"])
    head, *rows = season_file.read_text().splitlines()
    further = [
        f"next,2026-01-12T12:00:00Z,duel,{player},{player},{rest}"
        for player, rest in zip("ab", AS_ASSUMED[outcome], strict=True)
    ]
    season_file.write_text("\n".join([f"{head},quit", *(f"{row}," for row in rows), *further]))
    after = only_document(run("odds", season_file, *STAKES, "--json").out)["teams"][0]["players"][0]["rating"]
    assert own["after"][outcome] == after
    assert own["change"][outcome] == pytest.approx(after - own["before"])


def test_stakes_in_words_name_what_they_assume(run, season_file):
    ended = run("odds", season_file, *STAKES, "--assume", "quit_after=0.1")
    assert (ended.code, ended.err) == (0, "")
    line = r"a +1 +\d\.\d\d +\+0\.\d\d +[+-]0\.\d\d +-0\.\d\d +-0\.\d\d"
    assert re.search(line, ended.out), ended.out
    assert "All players play the whole match, 60 seconds." in ended.out
    assert "leaves after 10% of the match" in ended.out
    assert "Stakes" not in run("odds", season_file, "-s", "wager", "--ladder", "duel", "--teams", "a vs b").out


@pytest.mark.parametrize("extra", [[], ["--json"]])
@pytest.mark.parametrize(
    "arguments", [["explain", "--match", "d05"], ["odds", "--teams", "a vs b", "--ladder", "duel"], ["rate"]]
)
def test_every_command_that_skips_bad_matches_tells_how_many(arguments, extra, run, spoilt):
    command, *options = arguments
    ended = run(command, spoilt, "-s", "wager", *options)
    assert (ended.code, ended.out) == (1, "")
    assert re.search(r"line 9, match 'd03': place is '?0'?;", ended.err)
    ended = run(command, spoilt, "-s", "wager", "--skip-bad", *options, *extra)
    assert ended.code == 0
    assert re.search(r"\b[12] bad match(es)? skipped", ended.err)
    if extra:
        only_document(ended.out)
