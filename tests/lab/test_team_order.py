"""Files that list teams in order of finish: no system may profit from it."""

import dataclasses

import pytest

from elo_matches import duels
from evenmatch import backtest, from_matches, verdict
from evenmatch.lab.backtests.team_order import neutral, order_gives_away
from evenmatch.match import Appearance, Team

# the order of match number so and so: the winner listed first (1) or last (-1)
TELLING = {
    "winner first": lambda at: 1,
    "winner last": lambda at: -1,
    "nine in ten winner first": lambda at: -1 if at % 10 == 0 else 1,
}

# how near the log loss must be to that of the same matches listed by chance; trophies differ by who attacks
NEAR = {"elo": 0.001, "trueskill": 0.001, "trophies": 0.05}


def listed_by(matches, order):
    return from_matches(
        dataclasses.replace(match, teams=tuple(sorted(match.teams, key=lambda team: order(at) * team.place)))
        for at, match in enumerate(matches)
    )


def races(places):
    """The same order of finish again and again, of players drawn from twelve."""
    return from_matches(
        dataclasses.replace(
            match,
            teams=tuple(Team((Appearance(f"p{(7 * number + at) % 12}"),), place) for at, place in enumerate(places)),
        )
        for number, match in enumerate(duels(1, 300))
    )


@pytest.mark.parametrize("order", TELLING)
def test_an_order_that_gives_the_result_away_is_ignored_with_a_note(order):
    matches = listed_by(duels(3, 400, spread=200, players=10), TELLING[order])
    assert order_gives_away(matches.history) >= 0.9
    mixed, word = neutral(matches)
    assert "gives the result away" in word
    assert 0.4 < order_gives_away(mixed.history) < 0.6
    assert (
        mixed.to_arrow()
        .sort_by([("match_id", "ascending"), ("player", "ascending")])
        .equals(matches.to_arrow().sort_by([("match_id", "ascending"), ("player", "ascending")]))
    )


@pytest.mark.parametrize("order", TELLING)
@pytest.mark.parametrize("system", NEAR)
def test_no_system_predicts_better_for_an_order_of_finish(order, system):
    plain = duels(3, 600, spread=150, players=10)
    told = backtest(listed_by(plain, TELLING[order]), [system])
    (note,) = told.notes
    assert verdict(told)[-1] == f"Note: {note}."
    assert "gives the result away" in note
    known = {row["variant"]: row["log_loss"] for row in backtest(from_matches(plain), [system]).scores.to_pylist()}
    for row in told.scores.to_pylist():
        assert row["log_loss"] == pytest.approx(known[row["variant"]], abs=NEAR[system])


def test_of_many_teams_the_first_alone_counts():
    assert order_gives_away(races([1, 3, 2, 4]).history) == 1.0
    assert order_gives_away(races([4, 1, 2, 3]).history) == 1.0
    assert order_gives_away(races([2, 1, 4, 3]).history) == 0.0
    assert neutral(races([2, 1, 4, 3]))[1] == ""


def test_an_order_that_reveals_little_is_kept():
    matches = from_matches(duels(3, 400, home=60.0))
    same, word = neutral(matches)
    assert same is matches
    assert word == ""
