"""Health of simulated seasons: records whose ratings are made up to have a known answer, and Microsoft's table."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from evenmatch import rules
from evenmatch.lab.backtests.workers import Threads
from evenmatch.lab.fairness.audit import Contestant
from evenmatch.lab.fairness.health import (
    MICROSOFT,
    TABLE_MATCHES,
    Approach,
    approach_of,
    matches_before,
    measure_season,
    newcomer_table,
    table_settings,
)
from evenmatch.lab.seasons.season import simulate_season


@cache
def still_season(system="elo", **parameters):
    """A season of the table, in which skill does not change."""
    return simulate_season(replace(table_settings("team", 1), players=100, matches=1600), rules(system, **parameters))


def with_ratings(record, rating):
    """The same season with other shown ratings: a function of (skill, matches until the snapshot)."""
    snapshots = tuple(
        replaced._replace(rating=rating(replaced.skill, replaced.played.sum() / 8))
        for replaced in (snapshot._replace() for snapshot in record.snapshots)
    )
    skill = record.state.skill[record.history.columns.player]
    return replace(record, snapshots=snapshots, after=rating(skill, 0.0))


def test_ratings_that_are_true_skill_find_newcomers_at_once():
    health = measure_season(with_ratings(still_season(), lambda skill, _: 100.0 * skill))
    assert (health.approach.found, health.approach.near) == (1, 1)
    assert health.correlation[-1][1] == pytest.approx(1.0)


def test_ratings_that_are_the_opposite_of_skill_never_find_them():
    health = measure_season(with_ratings(still_season(), lambda skill, _: -skill))
    assert (health.approach.found, health.approach.near) == (None, None)
    assert health.correlation[-1][1] == pytest.approx(-1.0)


def test_newcomers_are_found_at_the_first_match_within_five_percentiles_that_lasts_on_average():
    shortfall = np.array([30.0, 4.0, 20.0, 8.0, 4.5, 5.5, 3.0, 4.0])
    found = Approach(np.full(8, 50), np.full(8, 9.0), shortfall)
    assert found.found == 5
    assert found.near is None
    assert found._replace(shortfall=-shortfall).found == 5


def test_newcomers_are_followed_while_two_thirds_of_them_play_on():
    record = still_season()
    approach = approach_of([record])
    assert (np.diff(approach.players) <= 0).all()
    assert approach.players[-1] >= approach.players[0] * 2 / 3
    twice = approach_of([record, record])
    assert (twice.players == 2 * approach.players).all()
    assert twice.distance == pytest.approx(approach.distance)


def test_elo_knows_more_of_newcomers_with_every_match():
    approach = approach_of([still_season()])
    assert approach.distance[-1] < 0.7 * approach.distance[0]
    assert approach.shortfall[0] == pytest.approx(approach.distance[0], rel=0.2)  # they begin in the middle


def test_inflation_is_measured_in_points_per_thousand_matches():
    health = measure_season(with_ratings(still_season(), lambda skill, matches: 100.0 * skill + 0.02 * matches))
    assert (health.mean_rise, health.median_rise) == (pytest.approx(20.0), pytest.approx(20.0))


def test_only_systems_with_a_floor_have_players_at_it():
    assert measure_season(still_season()).at_floor is None
    at_floor = measure_season(still_season("wager")).at_floor
    assert 0.0 < at_floor < 0.5


def test_what_newcomers_change_for_others_is_told_apart_from_other_matches():
    record = still_season()
    new = matches_before(record) < 10
    match = record.history.slot_match
    with_newcomer = np.bincount(match, new)[match] > 0
    made_up = replace(record, before=np.zeros(len(match)), after=np.where(with_newcomer, 3.0, 1.0))
    health = measure_season(made_up)
    assert health.newcomers == pytest.approx(2000.0 / health.spread)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_slope_is_the_share_of_the_log_odds_that_is_true(power):
    record = still_season()
    odds = record.truth / (1.0 - record.truth)
    made_up = replace(record, expected=1.0 / (1.0 + odds**-power))
    assert measure_season(made_up).slope == pytest.approx(1.0 / power, rel=0.02)


def test_the_matches_of_each_player_are_counted_from_0():
    record = still_season()
    before = matches_before(record)
    for player in (0, 17):
        assert before[record.history.columns.player == player].tolist() == list(range(record.state.played[player]))


def test_the_table_has_the_games_that_each_system_can_rate(monkeypatch):
    for game in MICROSOFT:
        monkeypatch.setitem(TABLE_MATCHES, game, 40)
    told, both = [], [Contestant("elo"), Contestant("wager")]
    table = newcomer_table(both, Threads(1), (1,), progress=lambda *at: told.append(at))
    assert [sorted(table[contestant]) for contestant in both] == [sorted(MICROSOFT), ["duel", "squad", "team"]]
    assert told == [(done, 7) for done in range(1, 8)]


@pytest.mark.slow
def test_the_games_of_microsoft_s_table_have_its_order():
    trueskill = Contestant("trueskill")
    table = newcomer_table([trueskill], Threads(1), seeds=(1,))
    least = {game: approach.found or len(approach.shortfall) for game, approach in table[trueskill].items()}
    assert sorted(least, key=least.get) == sorted(MICROSOFT, key=MICROSOFT.get)
    assert [game for game, approach in table[trueskill].items() if approach.found is None] == ["squad"]
