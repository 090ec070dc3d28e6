"""Simulated seasons: the same settings give the same season, and players are the same people in every one of a seed."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import evenmatch
from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.history import Columns
from evenmatch.lab.seasons.games import GAMES, Play, find_game
from evenmatch.lab.seasons.leaving import Annoyance
from evenmatch.lab.seasons.season import Season, SeasonRecord, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings

SHORT = SeasonSettings(players=120, matches=400, weeks=3)


def season(system: str = "elo", **changes: object) -> SeasonRecord:
    return simulate_season(replace(SHORT, **changes), evenmatch.rules(system))


def same(a: Columns, b: Columns) -> bool:
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("game", GAMES)
def test_the_same_seed_gives_the_same_season_and_another_seed_another(game: str):
    first, again, other = season(game=game), season(game=game), season(game=game, seed=2)
    assert same(first.history.columns, again.history.columns)
    assert_array_equal(first.after, again.after)
    assert not same(first.history.columns, other.history.columns)


def test_players_have_the_same_skill_and_eagerness_whatever_the_rating_system():
    elo, wager = season("elo", learning=0.0), season("wager", learning=0.0)
    assert_array_equal(elo.snapshots[0].skill[:120], wager.snapshots[0].skill[:120])
    assert_array_equal(elo.eager[:120], wager.eager[:120])
    assert not same(elo.history.columns, wager.history.columns)


@pytest.mark.parametrize("game", GAMES)
def test_nobody_plays_twice_at_a_time_and_teams_are_full(game: str):
    record = season(game=game)
    c, shape = record.history.columns, find_game(game)
    assert len(record.history) > 100
    for time in np.unique(c.time):
        players = c.player[(c.time[record.history.slot_match] == time)]
        assert len(np.unique(record.person[players])) == len(players)
    assert set(np.diff(c.slot_start).tolist()) == {shape.team_size}
    assert set(np.diff(c.team_start).tolist()) == {shape.teams}


@pytest.mark.parametrize("game", GAMES)
def test_the_stronger_player_wins_more_often_and_ratings_follow_skill(game: str):
    record = season(game=game, matches=1500, learning=0.0, drift=0.0)
    c = record.history.columns
    skill = record.snapshots[0].skill[c.player]
    strength = np.bincount(record.history.slot_team, skill) / np.bincount(record.history.slot_team)
    first = c.place == 1
    assert strength[first].mean() > strength[~first].mean() + 0.1
    played = record.state.played[:120] > 0
    ranks = [np.argsort(np.argsort(values[:120][played])) for values in (record.state.rating, record.state.skill)]
    assert np.corrcoef(*ranks)[0, 1] > 0.6


def test_true_chances_are_right():
    record = season(game="duel", players=600, matches=12_000, learning=0.0, drift=0.0, policy="quick")
    first = record.history.columns.team_start[:-1]
    chance, place = record.truth[first], record.history.columns.place
    score = np.where(place[first] == place[first + 1], 0.5, place[first] == 1)
    for low in np.arange(0.1, 0.9, 0.2):
        near = (chance >= low) & (chance < low + 0.2)
        error = (score[near] - chance[near]).mean()
        assert abs(error) < 3.5 * 0.5 / near.sum() ** 0.5 + 0.01


def test_a_team_that_left_loses_and_the_match_ends_then():
    game = replace(GAMES["duel"], steepness=5.0)
    skill = np.array([2.0, -2.0, 2.0, -2.0])
    play = Play(game, np.arange(4), np.repeat([0, 1], 2), np.arange(4), skill, skill, skill, np.zeros((4, 8)))
    play.advance(0)
    play.leave(np.array([True, False, False, False]))
    for stage in range(1, 8):
        play.advance(stage)
    columns = play.columns(0, np.random.default_rng(1), np.arange(4))
    assert columns.place.tolist() == [2, 1, 1, 2]
    assert columns.quit.tolist() == [True, False, False, False]
    assert columns.seconds[0] <= columns.duration[0] < columns.duration[1]


def test_who_switches_to_the_leading_team_is_listed_there_for_the_time_they_were_there():
    game = replace(GAMES["team"], team_size=2, steepness=5.0)
    skill = np.array([2.0, 2.0, -2.0, -2.0])
    play = Play(game, np.arange(4), np.zeros(4, np.int64), np.repeat([0, 1], 2), skill, skill, skill, np.zeros((4, 8)))
    for stage in range(6):
        play.advance(stage)
    play.switch(np.array([False, False, True, True]))  # the last of a team stays
    play.switch(np.array([False, False, False, True]))
    for stage in range(6, 8):
        play.advance(stage)
    columns = play.columns(0, np.random.default_rng(1), np.arange(4))
    assert columns.slot_start.tolist() == [0, 3, 4]
    assert columns.player.tolist() == [0, 1, 3, 2]
    assert columns.seconds[2] == pytest.approx(columns.duration[0] / 4, abs=1)
    assert not columns.quit.any()


def test_annoyed_players_leave_for_good():
    calm, annoyed = season(weeks=6, matches=1200, leaving=0.0), season(weeks=6, matches=1200, leaving=3.0)
    assert (calm.gone_at == -1).all()
    gone = np.flatnonzero(annoyed.gone_at >= 0)
    assert len(gone) > 20
    c = annoyed.history.columns
    rounds = np.searchsorted(np.unique(c.time), c.time[annoyed.history.slot_match])
    for player in gone[:20]:
        mine = rounds[c.player == player]
        assert not len(mine) or mine.max() <= annoyed.gone_at[player]


def test_losses_hopeless_matches_and_waiting_annoy():
    def chance(losses: int = 0, truth: float = 0.5, waited: float = 0.0, *, lost: bool = False, in_vain: bool = False):
        given = np.array([losses]), np.array([truth]), np.array([waited]), np.array([lost]), np.array([in_vain])
        return float(Annoyance().chances(*given)[0])

    assert chance() == pytest.approx(0.002)
    assert chance(3, lost=True) == pytest.approx(0.002 * 1.26**3)
    assert chance(9, lost=True) == chance(3, lost=True)
    assert chance(1, 0.0, lost=True) == pytest.approx(0.002 * 1.26 * 3)
    assert chance(1, 0.9, lost=True) == chance(1, 0.5, lost=True)
    assert chance(waited=150.0) == pytest.approx(0.002 * 1.25)
    assert chance(in_vain=True) == pytest.approx(0.004)


def test_a_setting_out_of_range_is_named():
    with pytest.raises(BadParameterError, match="players=3: expected a whole number from 20"):
        SeasonSettings(players=3)
    with pytest.raises(UnknownNameError, match="chess"):
        season(game="chess")


def test_spare_accounts_can_be_opened_and_retired():
    running = Season(SHORT, evenmatch.rules("elo"))
    account = running.open_account(5)
    assert account == 120
    assert running.person[account] == 5
    running.retire(np.array([account]))
    assert not running.active[account]
    while running.open_account(6) >= 0:
        pass
    assert (running.person >= 0).all()
