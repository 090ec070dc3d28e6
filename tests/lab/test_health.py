"""The health of ladders whose numbers can be worked by hand: Elo with k = 32 moves 16 points between equals."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from evenmatch import from_matches, rules
from evenmatch.errors import InputError
from evenmatch.lab.ladder import charts
from evenmatch.lab.ladder.health import favourites, floor_of, health, health_findings, periods
from evenmatch.match import Match
from ledger.sample_matches import micros, team_match

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


def on(day, number, *teams):
    """A match at noon of a day, counted from a Monday."""
    one = team_match(number, *teams)
    return Match(one.id, MONDAY + timedelta(days=day, hours=12), one.teams, "duel")


def measured(*matches, system="elo", **parameters):
    return health(from_matches(matches), rules(system, **parameters))


@pytest.fixture(scope="module")
def fortnight():
    """Days 0 and 11; on the last ann, who leads cat by 32 points, draws with her, and bob quits."""
    return measured(
        on(0, 1, (1, "ann"), (2, "bob")),
        on(0, 2, (1, "ann"), (1, "dan")),
        on(11, 3, (1, "eve"), (2, "bob*")),
        on(11, 4, (1, "fay"), (2, "gus"), (3, "hal")),
    )


def test_each_day_is_measured_separately(fortnight):
    assert fortnight.unit == "day"
    assert fortnight.start[[0, 11]].tolist() == [micros(MONDAY), micros(MONDAY + timedelta(days=11))]
    assert fortnight.matches.tolist() == [2] + 10 * [0] + [2]
    assert fortnight.players.tolist() == [3] + 10 * [0] + [5]
    assert fortnight.drawn[[0, 11]].tolist() == [0.5, 0.0]
    assert fortnight.quit[[0, 11]].tolist() == [0.0, 0.5]
    assert np.isnan(fortnight.mean[1:11]).all()
    assert np.isnan(fortnight.drawn[5])


def test_daily_ratings_are_taken_after_the_last_match_of_the_day(fortnight):
    # ann wins 16, is expected 0.523 (1516 to 1500) and draws: she gives dan 32 × 0.023 = 0.7365
    given = 1 / (1 + 10 ** (-16 / 400))
    lost = 32 * (given - 0.5)
    first = [1516 - lost, 1484, 1500 + lost]
    assert fortnight.mean[0] == pytest.approx(sum(first) / 3)
    assert fortnight.median[0] == pytest.approx(1500 + lost)
    # eve meets bob at 1484, and the three newcomers move as Elo has teams of three: the middle one not at all
    assert fortnight.median[11] == 1500.0
    assert fortnight.created == pytest.approx(0.0)
    assert fortnight.at_floor is None


def test_favourites_are_foretold_and_scored(fortnight):
    given = 1 / (1 + 10 ** (-16 / 400))
    assert fortnight.favoured.tolist() == [1] + 10 * [0] + [1]  # three newcomers have no favourite
    assert fortnight.given[[0, 11]] == pytest.approx([given, given])
    assert fortnight.scored[[0, 11]].tolist() == [0.5, 1.0]
    (point,) = fortnight.points
    assert (point.predicted, point.observed, point.matches) == (pytest.approx(given), 0.75, 2)


def test_the_favourite_of_several_teams_scores_against_each():
    table = from_matches([team_match(1, (2, "a"), (1, "b"), (2, "c"), (3, "d")), team_match(2, (1, "a"), (2, "b"))])
    found = favourites(table.history, np.array([0.6, 0.5, 0.5, 0.4, 0.5, 0.5]))
    assert found.given.tolist()[0] == 0.6
    assert found.scored.tolist()[0] == pytest.approx(0.5)  # behind b, level with c, ahead of d
    assert np.isnan(found.given[1])


def test_a_guest_is_neither_counted_nor_makes_points():
    alone = measured(on(0, 1, (1, "ann"), (2, "bob~")))
    assert (alone.players.tolist(), alone.mean.tolist(), alone.created) == ([1], [1516.0], 16.0)


def test_ratings_that_rise_with_every_match_are_called_inflation():
    # trophies: the winner is given more than the loser pays, and nobody falls below 0
    won = [on(day, day, (1, "ann"), (2, "bob")) for day in range(12)]
    found = measured(*won, system="trophies")
    rise = found.mean[-1] - found.mean[0]
    assert found.created > 0
    assert found.inflation == pytest.approx(1000 * np.polyfit(np.arange(12.0), found.mean, 1)[0])
    assert found.inflation > 0 < rise
    assert found.at_floor.tolist() == 12 * [0.5]  # bob never left 0
    flat = measured(*won)
    assert flat.inflation == pytest.approx(0.0, abs=1e-9)
    assert measured(won[0]).inflation is None


FLOORS = [("battlepoints", 700.0), ("scorefactor", 100.0), ("trophies", 0.0), ("wager", 1.0), ("elo", None)]


@pytest.mark.parametrize(("system", "floor"), FLOORS)
def test_systems_with_a_floor_say_where_it_is(system, floor):
    assert floor_of(rules(system)) == floor


# from the first match to the last, the unit, how many periods; the first begins at midnight on Monday, January 5
SPANS = [
    (timedelta(hours=9), "hour", 10),
    (timedelta(hours=60), "6 hours", 11),
    (timedelta(days=9), "day", 10),
    (timedelta(days=63), "week", 10),
    (timedelta(days=900), "quarter", 10),
    (timedelta(days=3650), "year", 11),
]


@pytest.mark.parametrize(("span", "unit", "count"), SPANS)
def test_periods_are_as_long_as_ten_of_them_allow(span, unit, count):
    found, start, period = periods(np.array([micros(MONDAY), micros(MONDAY + span)]))
    assert (found, len(start), period.tolist()) == (unit, count, [0, count - 1])
    assert start[0] <= micros(MONDAY)
    if unit == "week":
        assert start[1] == micros(MONDAY + timedelta(days=7))
    if unit == "quarter":
        assert start[1] == micros(datetime(2026, 4, 1, tzinfo=UTC))


def test_matches_that_the_rules_cannot_rate_are_refused_in_words():
    three = [on(day, day, (1, "a"), (2, "b"), (3, "c")) for day in range(3)]
    with pytest.raises(InputError, match="wager cannot rate 3 of 3 matches"):
        measured(*three, system="wager")


def test_the_findings_say_what_the_figures_mean():
    told = health_findings(measured(*[on(day, day, (1, "ann"), (2, "bob")) for day in range(12)], system="trophies"))
    assert told[0].startswith("The mean rating rose")
    assert " in 12 days" in told[0]
    assert told[1].endswith("are created.")
    assert "50.0% of the players who played lately are at the floor. That is a lot: they have nothing to lose." in told
    assert told[-1] == "0.0% of the matches were drawn, and in 0.0% of them a player left early."


def test_the_findings_of_a_steady_ladder_are_calm(fortnight):
    told = health_findings(fortnight)
    assert told[0] == "The mean rating hardly moved in 12 days: 1,500 at first, 1,497 at last."  # bob brings 1484
    assert told[1] == "Winners gain what losers lose: matches neither create nor remove points."
    assert told[2] == "25.0% of the matches were drawn, and in 25.0% of them a player left early."
    assert len(told) == 3  # two favourites say nothing


def test_odds_that_are_too_timid_are_called_so():
    # ann wins each of sixty matches, and Elo with a small k gives her little more than half
    told = health_findings(measured(*[on(0, n, (1, "ann"), (2, "bob")) for n in range(60)], k=2))
    assert told[0] == "All matches are in one period: changes cannot be measured yet."
    assert told[-1].endswith("and scored 100.0%: the odds are too timid.")


def drawn(figure):
    return json.loads(figure.to_json())["data"]


def words(figure):
    return [one["text"] for one in json.loads(figure.to_json())["layout"]["annotations"]]


def test_the_figures_show_each_period(fortnight):
    mean, median = drawn(charts.levels(fortnight))
    assert (mean["name"], median["name"]) == ("mean", "median")
    assert mean["x"][0] == "2026-01-05T00:00"
    assert mean["y"][1:11] == 10 * [None]
    assert mean["customdata"] == fortnight.players.tolist()
    assert [line["y"][11] for line in drawn(charts.troubles(fortnight))] == [0.0, 0.5]
    assert [line["y"][11] for line in drawn(charts.odds(fortnight))] == [0.52301, 1.0]
    assert [line["y"][0] for line in drawn(charts.activity(fortnight))] == [2, 3]
    assert charts.at_floor(fortnight) is None
    assert len(charts.levels(fortnight).to_json()) < 10_000
    assert words(charts.reliability(fortnight)) == ["No odds have 10 matches yet."]
