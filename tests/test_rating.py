"""Rating a table: what refuses, what is skipped, what comes out, and that one match is told as the journal has it."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from evenmatch import Appearance, Match, Team, explain, from_matches, rate, rules, systems
from evenmatch.errors import BadRowsError, InputError, RatingRangeError, UnknownNameError
from evenmatch.lab.sample import season

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def season_table():
    return from_matches(season(2, players=30, matches=200, team_size=2).matches)


def made_match(match_id, *sides, day=0, ladder="default"):
    teams = tuple(Team.of(*side, place=place) for place, side in enumerate(sides, 1))
    return Match(match_id, START + timedelta(days=day), teams, ladder)


def test_what_a_system_cannot_rate_is_said_match_by_match_before_anything_is_rated():
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


# System, parameters, the players of a 2v1, what the refusal says
LACKING = [
    ("scorefactor", {}, [{}, {"score": 1.0}, {"score": 2.0}], "score is empty for 1 of 3 players"),
    (
        "scorefactor",
        {},
        [{"score": 1, "seconds": 5}, {"score": 1}, {"score": 2}],
        "seconds is empty for 2 of 3 players",
    ),
    ("wager", {}, [{"seconds": 5.0}, {}, {}], "seconds is empty for 2 of 3 players"),
    ("prav", {"outcome": "share"}, [{}, {}, {}], "team_score is empty or negative"),
]


@pytest.mark.parametrize(("system", "parameters", "players", "reason"), LACKING)
def test_what_a_system_needs_and_a_match_lacks_names_the_column(system, parameters, players, reason):
    a, b, c = (Appearance(name, **fields) for name, fields in zip("abc", players, strict=True))
    table = from_matches([Match("m", START, (Team((a, b), place=1), Team((c,), place=2)))])
    with pytest.raises(BadRowsError, match=reason):
        rate(table, rules(system, **parameters))


@pytest.mark.parametrize("name", ["wager", "prav", "battlepoints"])
def test_one_match_is_explained_as_the_journal_of_the_whole_history_has_it(name, season_table):
    by = rules(name)
    whole = rate(season_table, by, journal=True)
    for number in (0, 57, len(season_table) - 1):
        told = explain(season_table, by, season_table.match_id[number].as_py())
        assert told.changes(0) == whole.changes(number)
        assert told.matches.match_id.to_pylist() == [season_table.match_id[number].as_py()]
        assert told.matches.team.to_pylist() == ["0", "1"]
    with pytest.raises(UnknownNameError, match="unknown match 'nosuch'"):
        explain(season_table, by, "nosuch")


@pytest.mark.parametrize("name", ["wager", "prav", "battlepoints"])
def test_the_journal_table_has_a_row_per_player_and_match_and_a_column_per_factor(name, season_table):
    ratings = rate(season_table, rules(name), journal=True)
    journal = ratings.journal_table()
    fixed = ["match_id", "ladder", "player", "team", "before", "after", "expected"]
    assert journal.column_names == fixed + [factor.name for factor in systems.find(name).factors]
    assert journal.num_rows == 4 * len(season_table)
    assert set(journal.slice(0, 4)["team"].to_pylist()) == {"0", "1"}
    last = {row["player"]: row["after"] for row in journal.to_pylist()}
    assert last == {row["player"]: row["rating"] for row in ratings.standings().to_pylist()}


def test_ratings_without_a_journal_say_so(season_table):
    with pytest.raises(InputError, match="journal=True"):
        rate(season_table, rules("wager")).journal_table()


def test_standings_are_sorted_by_ladder_then_rating_downwards_then_player():
    matches = [
        made_match("1", "a", "b", ladder="z"),
        made_match("2", "d", "c", ladder="y", day=1),
        made_match("3", "a", "c", ladder="y", day=2),
    ]
    rows = rate(from_matches(matches), rules("battlepoints")).standings(placement=1).to_pylist()
    assert [row["ladder"] + row["player"] for row in rows] == ["yd", "ya", "yc", "za", "zb"]
    assert [row["matches"] for row in rows] == [1, 1, 2, 1, 1]
    assert rows[0]["last_played"] == START + timedelta(days=1)


def test_a_percentile_is_shown_to_those_who_are_placed_and_active_and_counts_the_active():
    week = [made_match(f"w{day}", "a", "b", day=day) for day in range(3)]
    later = [
        made_match("late", "c", "d", day=40),
        Match("q", START + timedelta(days=41), (Team((Appearance("e", quit=True),), place=2), Team.of("c", place=1))),
    ]
    standings = rate(from_matches(week + later), rules("battlepoints")).standings(placement=2, active_days=30)
    rows = {row["player"]: row for row in standings.to_pylist()}
    assert [name for name in "abcde" if rows[name]["placed"]] == ["a", "b", "c"]
    # a and b are idle; c and d are active, of whom d is not placed; e quit the only match
    assert [rows[name]["percentile"] for name in "abcde"] == [None, None, 100, None, None]
    assert rows["c"]["division"] == "Champion"
    assert rows["a"]["division"] is None
    then = rate(from_matches(week), rules("battlepoints")).standings(placement=2).to_pylist()
    assert [(row["player"], row["percentile"]) for row in then] == [("a", 100), ("b", 1)]


def test_a_rating_out_of_range_names_player_and_match(season_table):
    runaway = (
        Team((Appearance("ann", seconds=1e-6),), place=1),
        Team((Appearance("eve", seconds=1e6),), place=2),
    )
    matches = [made_match("fine", ["ann"], ["eve"]), Match("far", START, runaway)]
    with pytest.raises(RatingRangeError, match="'ann' leaves the range of wager in match 'far'; nothing was rated"):
        rate(from_matches(matches), rules("wager", start=1e9, stake=0.5))


def test_a_ladder_is_rated_by_itself_unless_ladders_are_pooled():
    matches = [made_match("1", "a", "b", ladder="x"), made_match("2", "a", "b", ladder="y", day=1)]
    table = from_matches(matches)
    apart = rate(table, rules("battlepoints")).standings()
    assert apart["rating"].to_pylist() == [1016.0, 984.0, 1016.0, 984.0]
    pooled = rate(table.pooled(), rules("battlepoints")).standings()
    assert pooled["player"].to_pylist() == ["a", "b"]
    assert pooled["rating"][0].as_py() > 1016
    assert set(pooled["ladder"].to_pylist()) == {"default"}


def test_standings_carry_the_systems_own_columns(season_table):
    prav = rate(season_table, rules("prav")).standings()
    assert prav.column_names[8:] == ["mean", "volatility", "games", "provisional"]
    assert prav["rating"].to_pylist() == pytest.approx([1500 + 200 * mean for mean in prav["mean"].to_pylist()])
    assert prav.schema.field("provisional").type == pa.bool_()
