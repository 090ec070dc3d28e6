"""Automatic placement: expected moves by hand and by a slow twin, and who is placed by them."""

import numpy as np
import pytest

from evenmatch import rate, rules
from evenmatch.errors import BadParameterError
from evenmatch.lab.sample import season
from evenmatch.standings.placement import SAMPLE, UNKNOWN, RatingSample, expected_moves, follow
from evenmatch.standings.rules import WINDOW, StandingsRules
from reference.placement import SlowPlacement


def test_an_expected_move_is_half_of_the_percentiles_between_both_ends():
    """Ratings 0, 10, … 990 are a percentile each: from 985 it is 4 to 955 downwards, and none upwards."""
    sample = RatingSample.none().taken(50, np.arange(0.0, 1000.0, 10.0)[::-1])
    moves = sample.expected_moves(np.array([505.0, 505.0, 985.0, 2000.0]), np.array([30.0, 101.0, 30.0, 30.0]))
    assert moves.tolist() == [3.0, 10.0, 2.0, 0.0]


def test_a_small_sample_predicts_no_moves_and_a_large_one_is_evenly_spaced():
    assert (
        RatingSample.none().taken(40, np.arange(29.0)).expected_moves(np.ones(2), np.ones(2)).tolist() == [UNKNOWN] * 2
    )
    assert len(RatingSample.none().taken(40, np.arange(30.0)).rating) == 30
    ordered = np.random.default_rng(1).permutation(100_001).astype(float)
    assert RatingSample.none().taken(40, ordered).rating.tolist() == [1000.0 * at for at in range(SAMPLE)]


def test_samples_are_taken_when_the_season_has_grown_by_a_quarter():
    sample, taken = RatingSample.none(100), []
    while sample.position < 600:
        sample = sample.taken(sample.next_at, np.empty(0))
        taken.append(sample.position - 100)
    assert taken == [32, 64, 96, 128, 160, 200, 250, 312, 390, 487, 608]


def test_a_sample_is_kept_bit_for_bit():
    sample = RatingSample.none(7).taken(90, np.random.default_rng(2).normal(size=50))
    again = RatingSample.unpack(sample.pack())
    assert (again.since, again.position, again.rating.tolist()) == (7, 90, sample.rating.tolist())
    assert RatingSample.unpack(None).next_at == 32


def test_the_recent_change_is_a_mean_and_then_a_moving_one():
    """Changes 16, 8 have the mean 12; after eight of 8 in the mean, one of 24 counts an eighth: 8 + 16/8."""
    completed, recent, lowest = np.zeros(2, np.int64), np.zeros(2), np.full(2, UNKNOWN)
    sample = RatingSample.none().taken(32, np.arange(0.0, 1000.0, 10.0))
    rows = np.array([1, 1])
    follow(rows, np.full(2, 500.0), np.array([16.0, 8.0]), completed, recent, lowest, sample)
    assert (completed.tolist(), recent.tolist(), lowest.tolist()) == ([0, 2], [0.0, 12.0], [UNKNOWN, UNKNOWN])
    follow(np.zeros(8, np.int64), np.full(8, 505.0), np.full(8, 8.0), completed, recent, lowest, sample)
    assert (recent[0], lowest[0]) == (8.0, 1.0)  # 497 to 513: the ratings 500 and 510
    moves = follow(np.array([0]), np.array([505.0]), np.array([24.0]), completed, recent, lowest, sample)
    assert (recent[0], lowest[0], moves.tolist()) == (10.0, 1.0, [1.0])  # the lowest counts


def slow(matches, ratings):
    """The slow twin of a rated table, whose matches are at positions 1, 2, 3 …"""
    twin, moves = SlowPlacement(), []
    c, journal, names = matches.history.columns, ratings.journal, matches.player_names
    for match in range(len(matches)):
        slots = range(*matches.history.match_slots[match : match + 2].tolist())
        lines = [
            (names[c.player[slot]], journal.before[slot], journal.after[slot], bool(c.keep[slot]), bool(c.quit[slot]))
            for slot in slots
        ]
        twin.match(match + 1, lines)
        moves += [twin.players[name].move for name, _, _, kept, left in lines if kept and not left]
    return twin, moves


@pytest.mark.parametrize("system", ["wager", "elo", "glicko2", "prav"])
def test_expected_moves_match_a_slow_twin(system):
    matches = season(3, players=150, matches=500, team_size=3).matches
    ratings = rate(matches, rules(system), journal=True)
    twin, lowest = slow(matches, ratings)
    moves = expected_moves(matches.history, ratings.journal.before, ratings.journal.after)
    assert moves.lowest.tolist() == lowest
    assert len(set(lowest)) > 50
    last = dict(zip(matches.player_names, moves.last(matches.history).tolist(), strict=True))
    assert last == {name: one.move for name, one in twin.players.items()}
    done = [twin.players[name].completed for name in matches.player_names]
    counts = np.zeros(len(done), np.int64)
    np.maximum.at(counts, matches.history.columns.player[moves.slot], moves.completed)
    assert counts.tolist() == done


@pytest.mark.parametrize(
    ("rule", "completed", "move", "placed"),
    [
        ({"placement": 10}, 9, 0.5, False),
        ({"placement": 10}, 10, UNKNOWN, True),
        ({"placement": 0}, 0, UNKNOWN, True),
        ({"placement": "auto"}, WINDOW - 1, 0.5, False),
        ({"placement": "auto"}, WINDOW, 4.99, True),
        ({"placement": "auto"}, WINDOW, 5.0, False),
        ({"placement": "auto"}, 49, UNKNOWN, False),
        ({"placement": "auto"}, 50, UNKNOWN, True),
        ({"placement": "auto", "placement_bound": 12}, WINDOW, 11.5, True),
        ({"placement": "auto", "placement_most": 8}, WINDOW, UNKNOWN, True),
    ],
)
def test_placement_follows_the_rule(rule, completed, move, placed):
    assert StandingsRules(**rule).placed(np.array([completed]), np.array([move])).tolist() == [placed]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"placement": "soon"}, "placement='soon': expected a whole number from 0 to 2,147,483,647, or auto"),
        ({"placement": None}, "placement=None: expected a whole number"),
        ({"placement": 2.5}, "placement=2.5: expected a whole number"),
        ({"placement_bound": 0}, "placement_bound=0: expected a number from 0.5 to 50"),
        ({"placement_bound": float("nan")}, "placement_bound=nan: expected a number from 0.5 to 50"),
        ({"placement_most": 7}, "placement_most=7: expected a whole number from 8 to"),
    ],
)
def test_rules_that_cannot_be_are_refused(rule, message):
    with pytest.raises(BadParameterError, match=message):
        StandingsRules(**rule)
