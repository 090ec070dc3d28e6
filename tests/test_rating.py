"""Rating a table: what refuses, what is skipped, what comes out, and that one match is told as the journal has it."""

from datetime import UTC, datetime, timedelta

import pytest

from evenmatch import Appearance, Match, Team, explain, from_matches, rate, rules
from evenmatch.errors import BadRowsError, RatingRangeError, UnknownNameError
from evenmatch.lab.sample import season

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def season_table():
    return season(2, players=30, matches=200, team_size=2).matches


def made_match(match_id, *sides, day=0, ladder="default"):
    teams = tuple(Team.of(*side, place=place) for place, side in enumerate(sides, 1))
    return Match(match_id, START + timedelta(days=day), teams, ladder)


def test_matches_that_a_system_cannot_rate_are_listed_before_anything_is_rated():
    table = from_matches(
        [made_match("a", "xy", "z"), made_match("b", "x", "y", "z"), made_match("c", "x", "y", "z", "w")]
    )
    with pytest.raises(BadRowsError) as error:
        rate(table, rules("wager"))
    assert [(problem.match_id, problem.reason) for problem in error.value.problems] == [
        ("b", "3 teams; wager rates matches of exactly 2"),
        ("c", "4 teams; wager rates matches of exactly 2"),
    ]
    kept = rate(table, rules("wager"), skip_bad=True)
    assert kept.matches.match_id.to_pylist() == ["a"]
    assert kept.matches.skipped_matches == 2
    with pytest.raises(BadRowsError):  # nothing would be left
        rate(table.take(slice(1, 3)), rules("wager"), skip_bad=True)


@pytest.mark.parametrize("name", ["wager", "prav", "battlepoints"])
def test_the_explanation_of_a_match_agrees_with_the_journal(name, season_table):
    by = rules(name)
    whole = rate(season_table, by, journal=True)
    for number in (0, 57, len(season_table) - 1):
        told = explain(season_table, by, season_table.match_id[number].as_py())
        assert told.changes(0) == whole.changes(number)
        assert told.matches.match_id.to_pylist() == [season_table.match_id[number].as_py()]
        assert told.matches.team.to_pylist() == ["0", "1"]
    with pytest.raises(UnknownNameError, match="unknown match 'nosuch'"):
        explain(season_table, by, "nosuch")


def test_a_journal_that_was_not_asked_for_is_made_when_it_is_wanted(season_table):
    asked = rate(season_table, rules("wager"), journal=True)
    assert rate(season_table, rules("wager")).journal_table().equals(asked.journal_table())


def test_a_rating_out_of_range_names_player_and_match(season_table):
    runaway = (Team((Appearance("ann", seconds=1e-6),), place=1), Team((Appearance("eve", seconds=1e6),), place=2))
    matches = [made_match("fine", ["ann"], ["eve"]), Match("far", START, runaway)]
    with pytest.raises(RatingRangeError, match="'ann' leaves the range of wager in match 'far'; nothing was rated"):
        rate(from_matches(matches), rules("wager", start=1e9, stake=0.5))


def test_ladders_are_rated_separately_unless_pooled():
    matches = [made_match("1", "a", "b", ladder="x"), made_match("2", "a", "b", ladder="y", day=1)]
    table = from_matches(matches)
    apart = rate(table, rules("battlepoints")).standings()
    assert apart["rating"].to_pylist() == [1016.0, 984.0, 1016.0, 984.0]
    pooled = rate(table.pooled(), rules("battlepoints")).standings()
    assert pooled["player"].to_pylist() == ["a", "b"]
    assert pooled["rating"][0].as_py() > 1016
    assert set(pooled["ladder"].to_pylist()) == {"default"}
