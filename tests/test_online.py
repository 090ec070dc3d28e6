"""Rating one match at a time: the same bits as rating a history, receipts with reasons, and nothing half-done."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from evenmatch import Appearance, Match, Rater, Team, from_matches, rate, rules, systems
from evenmatch.errors import BadRowsError, InputError, RatingRangeError
from evenmatch.lab.sample import season

START = datetime(2026, 1, 1, tzinfo=UTC)


def duel(number, winner, loser, **fields):
    teams = (Team.of(winner, place=1), Team.of(loser, place=2))
    return Match(str(number), START + timedelta(hours=number), teams, **fields)


@pytest.fixture(scope="module")
def season_matches():
    """A season whose players have scores too, two teams of three, with quitters and guests that are not rated."""
    matches = season(5, players=40, matches=300, team_size=3).matches.to_matches("6v6")
    rng = np.random.default_rng(1)

    def scored(appearance):
        return replace(appearance, score=float(rng.integers(-2, 20)), keep=bool(rng.random() > 0.02))

    return [
        replace(match, teams=tuple(replace(team, players=tuple(map(scored, team.players))) for team in match.teams))
        for match in matches
    ]


@pytest.mark.parametrize("name", systems.names())
def test_matches_one_by_one_give_the_bits_of_the_whole_history(name, season_matches):
    by = rules(name)
    rater = Rater(by, "6v6")
    receipts = [rater.rate(match) for match in season_matches]
    ratings = rate(from_matches(season_matches), by, journal=True)
    for player, row in zip(ratings.matches.player_names, ratings.state, strict=True):
        assert rater.rating(player) == row["rating"]
    for number, receipt in enumerate(receipts):
        assert receipt.match_id == season_matches[number].id
        assert repr([list(team) for team in receipt.teams]) == repr(ratings.changes(number))  # nan equals nan in text


def test_a_receipt_names_before_after_expected_result_and_factors():
    receipt = Rater(rules("wager")).rate(duel(1, "ann", "bob"))
    ann, bob = receipt.teams[0][0], receipt.teams[1][0]
    assert (ann.player, ann.team, ann.before, ann.after, ann.expected, ann.result) == ("ann", 0, 1.0, 1.05, 0.5, 1.0)
    assert (bob.before, bob.after, bob.result) == (1.0, 1.0, 0.0)
    assert ann.factors == {"stake": 0.05, "rank_modifier": 1.0, "quitter_modifier": 1.0, "rule": "win", "floor": False}
    assert bob.factors["rule"] == "loss"
    assert bob.factors["floor"] is True


def test_a_match_the_system_cannot_rate_changes_nothing():
    rater = Rater(rules("wager"))
    rater.rate(duel(1, "ann", "bob"))
    three = Match("m", START, tuple(Team.of(name, place=1) for name in ("ann", "bob", "cat")))
    with pytest.raises(BadRowsError, match="3 teams; wager rates matches of exactly 2"):
        rater.rate(three)
    timed = (Team((Appearance("ann", seconds=60),), place=1), Team.of("bob", place=2))
    with pytest.raises(BadRowsError, match="seconds is empty for 1 of 2 players"):
        rater.rate(Match("m", START, timed))
    assert rater.rating("ann") == 1.05
    assert "cat" not in rater
    assert len(rater) == 2


def test_a_rating_out_of_range_is_an_error_and_changes_nothing():
    rater = Rater(rules("wager", start=1e9, stake=0.5))
    runaway = (
        Team((Appearance("ann", seconds=1e-6), Appearance("bob", seconds=0)), place=1),
        Team((Appearance("eve", seconds=1e6), Appearance("joe", seconds=1e6)), place=2),
    )
    with pytest.raises(RatingRangeError, match="rating of 'ann' leaves the range of wager in match 'm'"):
        rater.rate(Match("m", START, runaway))
    assert len(rater) == 0


def test_a_rating_out_of_range_changes_nothing_that_was_learned_of_the_ladder(season_matches, monkeypatch):
    rater, other = Rater("even", "6v6"), Rater("even", "6v6")
    for match in season_matches[:20]:
        rater.rate(match)
        other.rate(match)

    def out_of_range(*_):
        raise RatingRangeError("out of range")

    with monkeypatch.context() as patched:
        patched.setattr("evenmatch.online.check_range", out_of_range)
        with pytest.raises(RatingRangeError):
            rater.rate(season_matches[20])
    assert rater.learned == other.learned
    assert repr(rater.rate(season_matches[21])) == repr(other.rate(season_matches[21]))  # nan equals nan in text
    assert rater.learned == other.learned


def test_odds_of_newcomers_are_even_and_of_three_teams_sum_up():
    rater = Rater(rules("prav"))
    assert rater.odds([["x"], ["y"]]).win == ((0.0, 0.5), (0.5, 0.0))
    for number in range(12):
        rater.rate(duel(number, "ann", "bob"))
    odds = rater.odds([["ann"], ["bob"], ["x"]])
    assert sum(odds.expected) == pytest.approx(1.5)
    assert odds.win[0][1] > odds.win[0][2] > 0.5
    assert rater.rating("x") == 1500
    assert "x" not in rater  # asking is not playing


def test_a_line_up_that_the_system_cannot_rate_is_an_error():
    with pytest.raises(InputError, match="expected 2 teams"):
        Rater(rules("wager")).odds([["ann"], ["bob"], ["cat"]])


def test_a_match_of_another_ladder_is_refused():
    rater = Rater(rules("wager"), "duels")
    with pytest.raises(InputError, match="ladder 'default'; expected a match of 'duels'"):
        rater.rate(duel(1, "ann", "bob"))


@pytest.mark.parametrize("name", systems.names())
def test_a_rater_goes_on_from_recorded_matches(name, season_matches):
    by = rules(name)
    whole, half = Rater(by, "6v6"), Rater.after(rate(from_matches(season_matches[:150]), by), "6v6")
    for match in season_matches:
        whole.rate(match)
    for match in season_matches[150:]:
        half.rate(match)
    people = {slot.player for match in season_matches for team in match.teams for slot in team.players}
    assert {player: half.rating(player) for player in people} == {player: whole.rating(player) for player in people}
