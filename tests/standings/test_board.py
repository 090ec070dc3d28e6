"""The board of a ladder, against the definitions of systems.md section 1 counted out one by one."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenmatch.durations import DAY
from evenmatch.errors import BadParameterError, InputError
from evenmatch.ladders.settings import SHOWS
from evenmatch.standings.activity import NEVER
from evenmatch.standings.bands import band_of, division_progress
from evenmatch.standings.board import Board, DivisionThreshold, Standing, snapshot
from evenmatch.standings.distribution import Population, percentile_falls, percentiles, queue_percentiles
from evenmatch.standings.division import DIVISIONS, FIFTY, Division, kept_down_to, settle
from evenmatch.standings.rules import StandingsRules

NOW = 20_000 * DAY
THIRDS = (Division("low", 1), Division("mid", 34), Division("top", 67))


class One(NamedTuple):
    """A player: completed the last match so many microseconds ago (None: never)."""

    id: int
    rating: float
    completed: int = 10
    ago: int | None = 0
    division: int = -1
    hidden: bool = False
    move: float = 100.0


def board_of(players):
    ids, rating, completed, ago, division, hidden, move = zip(*players, strict=True) if players else ((),) * 7
    return Board(
        player=np.array(ids, np.int64),
        rating=np.array(rating, np.float64),
        matches=np.array(completed, np.int64) + 1,
        completed=np.array(completed, np.int64),
        last_completed=np.array([NEVER if one is None else NOW - one for one in ago], np.int64),
        expected_move=np.array(move, np.float64),
        division=np.array(division, np.int16),
        hidden=np.array(hidden, bool),
    )


def taken(players, **rules):
    return snapshot(board_of(players), StandingsRules(**rules), NOW)


def of_ratings(*ratings, **rules):
    """A snapshot of placed and active players 1, 2, 3 … with these ratings."""
    return taken([One(at, float(rating)) for at, rating in enumerate(ratings, 1)], **rules)


class Slow:
    """The twin: plain lists, and every number counted out."""

    def __init__(self, players, rules):
        self.players, self.rules = players, rules
        window = rules.active_days * DAY
        self.active = [one for one in players if not one.hidden and one.ago is not None and 0 <= one.ago <= window]
        listed = [one for one in self.active if one.completed >= rules.placement]
        self.listed = sorted(listed, key=self.place)

    @staticmethod
    def place(one):
        return -one.rating, one.id

    def below_equal_above(self, rating):
        ratings = [one.rating for one in self.active]
        return sum(r < rating for r in ratings), sum(r == rating for r in ratings), sum(r > rating for r in ratings)

    def percentile(self, rating):
        below, _, above = self.below_equal_above(rating)
        return 1 if below + above == 0 else min(100, 1 + math.floor(Fraction(100 * below, below + above)))

    def queue_percentile(self, rating):
        below, equal, _ = self.below_equal_above(rating)
        return 100 * (below + equal / 2) / len(self.active) if self.active else 50.0

    def rank_of(self, rating):
        return 1 + sum(one.rating > rating for one in self.listed)

    def plain(self, percentile):
        return max(at for at, division in enumerate(self.rules.divisions) if division.lowest <= percentile)

    def shown(self, one):
        """The percentile that a listed player is shown: less for each whole idle day after the grace days."""
        percentile = self.percentile(one.rating)
        if self.rules.inactivity != "percentile":
            return percentile
        days = math.floor(Fraction(one.ago - round(self.rules.grace_days * DAY), DAY))
        fall = math.floor(Fraction(str(self.rules.percentile_decay)) * max(days, 0))
        return (
            percentile
            if percentile <= self.rules.percentile_floor
            else max(percentile - fall, self.rules.percentile_floor)
        )

    def division(self, one):
        if one not in self.listed:
            return one.division
        percentile = self.shown(one)
        plain = self.plain(percentile)
        if one.division == -1 or one.division >= len(self.rules.divisions) or plain > one.division:
            return plain
        if percentile < self.rules.divisions[one.division].lowest - self.rules.division_margin:
            return plain
        return one.division

    def standing(self, one):
        listed = one in self.listed
        return Standing(
            one.id,
            self.rank_of(one.rating) if listed else None,
            one.rating,
            self.shown(one) if listed else None,
            self.rules.divisions[self.division(one)].name if listed else None,
            one.completed + 1,
            one.completed,
            one.completed >= self.rules.placement,
            one in self.active,
        )

    def page(self, number, size):
        return [self.standing(one) for at, one in enumerate(self.listed) if at // size == number - 1]

    def around(self, one, each_side):
        above = [other for other in self.listed if self.place(other) < self.place(one)]
        below = [other for other in self.listed if self.place(other) > self.place(one)]
        near = above[max(0, len(above) - each_side) :] + [one] * (one in self.listed) + below[:each_side]
        return [self.standing(other) for other in near]

    def among(self, ids):
        chosen = [one for one in self.players if one.id in ids]
        return [
            self.standing(one)
            for one in [one for one in self.listed if one in chosen]
            + sorted((one for one in chosen if one not in self.listed), key=self.place)
        ]

    def cuts(self):
        reached = {
            division: [one.rating for one in self.active if self.percentile(one.rating) >= division.lowest]
            for division in self.rules.divisions
        }
        return [DivisionThreshold(division, min(ratings, default=None)) for division, ratings in reached.items()]


RATINGS = st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6)  # the few make ties, zeros of both signs with them
AGO = st.sampled_from([None, -1, 0, DAY, 30 * DAY, 30 * DAY + 1, 90 * DAY])


@st.composite
def boards(draw):
    ids = draw(st.lists(st.integers(0, 60), unique=True, max_size=25).map(sorted))
    make = st.tuples(
        RATINGS | st.just(-0.0), st.integers(0, 4), AGO, st.integers(-1, 8), st.sampled_from([False] * 5 + [True])
    )
    return [One(player, *draw(make)) for player in ids]


RULES = st.builds(
    StandingsRules,
    placement=st.integers(0, 3),
    active_days=st.sampled_from([0, 0.5, 30, 365, 36_525]),
    divisions=st.sampled_from([DIVISIONS, FIFTY, THIRDS, (Division("all", 1),)]),
    division_margin=st.integers(0, 60),
    inactivity=st.sampled_from(["leave", "percentile", "percentile", "rating"]),
    grace_days=st.sampled_from([0, 0.75, 14, 29, 36_525]),
    percentile_decay=st.sampled_from([0, 0.3, 1, 2.5, 100]),
    percentile_floor=st.integers(1, 100),
)


def twins(players, rules):
    return snapshot(board_of(players), rules, NOW), Slow(players, rules)


# Worked by hand: five players without ties, at 100, 76, 51, 26 and 1; two days of grace, then 1.5 percentiles a
# day, not below 30; Gold from 46. Shown after so many idle days and microseconds: percentile and division of each.
FALLING = {"inactivity": "percentile", "grace_days": 2, "percentile_decay": 1.5, "percentile_floor": 30}
SHOWN = [
    (0, [(100, "Champion"), (76, "Platinum"), (51, "Gold"), (26, "Silver"), (1, "Bronze")]),
    (3 * DAY - 1, [(100, "Champion"), (76, "Platinum"), (51, "Gold"), (26, "Silver"), (1, "Bronze")]),
    (3 * DAY, [(99, "Champion"), (75, "Platinum"), (50, "Gold"), (26, "Silver"), (1, "Bronze")]),  # 1 day: 1.5
    (6 * DAY, [(94, "Diamond"), (70, "Gold"), (45, "Silver"), (26, "Silver"), (1, "Bronze")]),  # 4 days: 6
    (20 * DAY, [(73, "Platinum"), (49, "Gold"), (30, "Silver"), (26, "Silver"), (1, "Bronze")]),  # 18 days: 27
]


@pytest.mark.parametrize(("ago", "shown"), SHOWN)
def test_the_shown_percentile_of_idle_players_falls_and_their_ranks_stay(ago, shown):
    players = [One(number, 100.0 - number, ago=ago) for number in range(5)]
    found = taken(players, division_margin=0, **FALLING)
    assert [(one.percentile, one.division) for one in found.page(1, 9)] == shown
    assert [(one.player, one.rank) for one in found.page(1, 9)] == [(number, number + 1) for number in range(5)]
    assert found.percentile(99.0) == 76  # of the rating itself


@pytest.mark.parametrize(("rate", "days", "fall"), [(0.3, 30, 9), (0.29, 100, 29), (0.57, 100, 57), (0.57, 99, 56)])
def test_a_fall_is_the_decimal_product_of_rate_and_days_rounded_down(rate, days, fall):
    rules = StandingsRules(inactivity="percentile", grace_days=0, percentile_decay=rate)
    assert percentile_falls(np.array([NOW - days * DAY]), NOW, rules).tolist() == [fall]


@settings(deadline=None)
@given(boards(), RULES, st.lists(RATINGS, min_size=1, max_size=5))
def test_any_rating_has_the_place_that_counting_gives_it(players, rules, ratings):
    fast, slow = twins(players, rules)
    assert (len(fast), fast.population) == (len(slow.listed), len(slow.active))
    ratings += [one.rating for one in players]
    for rating in ratings:
        assert fast.percentile(rating) == slow.percentile(rating)
        assert fast.queue_percentile(rating) == slow.queue_percentile(rating)
    many = np.array(ratings)
    assert fast.against.percentiles(many).tolist() == [slow.percentile(rating) for rating in ratings]
    assert fast.against.queue_percentiles(many).tolist() == [slow.queue_percentile(rating) for rating in ratings]
    assert fast.cuts() == slow.cuts()


@settings(deadline=None)
@given(boards(), RULES)
def test_every_player_stands_where_counting_puts_them(players, rules):
    fast, slow = twins(players, rules)
    for one in players:
        assert fast.standing(one.id) == slow.standing(one)
    assert fast.standing(61) is None
    assert fast.divisions.tolist() == [slow.division(one) for one in players]
    assert fast.changed(fast.board).tolist() == [
        at for at, one in enumerate(players) if slow.division(one) != one.division
    ]
    assert fast.active.tolist() == [one in slow.active for one in players]
    assert fast.listed.tolist() == [one in slow.listed for one in players]


@settings(deadline=None)
@given(boards(), RULES, st.integers(1, 5), st.integers(0, 4), st.lists(st.integers(0, 60)))
def test_lists_hold_who_counting_puts_there(players, rules, size, each_side, ids):
    fast, slow = twins(players, rules)
    assert fast.pages(size) == math.ceil(len(slow.listed) / size)
    for number in range(1, fast.pages(size) + 3):
        assert fast.page(number, size) == slow.page(number, size)
    for one in players:
        assert fast.around(one.id, each_side) == slow.around(one, each_side)
    assert fast.among(ids) == slow.among(ids)
    assert fast.among([one.id for one in reversed(players)] * 2) == slow.among({one.id for one in players})


@settings(deadline=None)
@given(boards(), RULES)
def test_the_list_is_cut_once_for_each_division_whatever_is_shown(players, rules):
    fast, slow = twins(players, rules)
    names = [division.name for division in rules.divisions]
    for show in SHOWS:
        seen = fast.shown_as(show)
        bands = [names.index(band_of(seen, one)) for one in seen.page(1, 60)]
        assert bands == sorted(bands, reverse=True), show
    for one in players:
        expected = names[slow.plain(slow.percentile(one.rating))] if one in slow.listed else None
        assert band_of(fast, fast.standing(one.id)) == expected


@settings(deadline=None)
@given(boards(), RULES)
def test_a_kept_division_is_lost_just_below_the_percentile_that_is_named(players, rules):
    _, slow = twins(players, rules)
    names = [division.name for division in rules.divisions]
    for one in slow.listed:
        own, percentile = slow.division(one), slow.shown(one)
        until = kept_down_to(names[own], percentile, rules.divisions, rules.division_margin)
        assert (until is not None) == (own != slow.plain(percentile))
        if until is not None:
            recorded = np.array([own, own], np.int16)
            after = settle(recorded, np.array([until, until - 1]), rules.divisions, rules.division_margin)
            assert after[0] == own
            assert until == 1 or after[1] < own


@settings(deadline=None)
@given(boards(), RULES)
def test_a_snapshot_agrees_with_the_percentiles_of_whole_ladders(players, rules):
    fast = snapshot(board_of(players), rules, NOW)
    rating = fast.board.rating
    assert fast.against.percentiles(rating).tolist() == percentiles(rating, fast.active).tolist()
    assert fast.against.queue_percentiles(rating).tolist() == queue_percentiles(rating, fast.active).tolist()


# Worked by hand. Ten completed are needed, 30 days are the window. Active by rating: 9: 50, 4: 40, 7: 40, 6 (unplaced):
# 30, 2: 20. Below and above of 40: 2 and 1, so 1 + floor(200/3) = 67; of 20: 1; of 50: 100.
LADDER = [
    One(2, 20.0, 10, 0, 0),
    One(3, 60.0, 50, 31 * DAY, 5),  # inactive
    One(4, 40.0, 11, 30 * DAY, 5),  # Champion from 99, kept from 96: falls to 67's
    One(5, 90.0, 99, 0, 5, True),  # hidden
    One(6, 30.0, 9, 0, -1),  # unplaced
    One(7, 40.0, 12, 5, 3),  # Platinum from 71, kept from 68: 67 is below it
    One(9, 50.0, 10, 0, 2),
    One(11, 10.0, 0, None, -1),
]
STANDINGS = [
    (9, Standing(9, 1, 50.0, 100, "Champion", 11, 10, True, True)),
    (4, Standing(4, 2, 40.0, 67, "Gold", 12, 11, True, True)),
    (7, Standing(7, 2, 40.0, 67, "Gold", 13, 12, True, True)),
    (2, Standing(2, 4, 20.0, 1, "Bronze", 11, 10, True, True)),
    (6, Standing(6, None, 30.0, None, None, 10, 9, False, True)),
    (3, Standing(3, None, 60.0, None, None, 51, 50, True, False)),
    (5, Standing(5, None, 90.0, None, None, 100, 99, True, False)),
    (11, Standing(11, None, 10.0, None, None, 1, 0, False, False)),
    (8, None),
]


@pytest.mark.parametrize(("player", "expected"), STANDINGS)
def test_a_worked_ladder_shows_each_player_what_is_theirs(player, expected):
    assert taken(LADDER).standing(player) == expected


def test_cuts_are_the_lowest_ratings_that_reach_a_division():
    assert [(cut.division.name, cut.rating) for cut in of_ratings(10, 20, 30, 40, 50).cuts()] == [
        ("Bronze", 10), ("Silver", 20), ("Gold", 30), ("Platinum", 40), ("Diamond", 50), ("Champion", 50),
    ]  # fmt: skip
    assert [cut.rating for cut in of_ratings(7, 7, 7, divisions=THIRDS).cuts()] == [7, None, None]
    assert [cut.rating for cut in taken([], divisions=THIRDS).cuts()] == [None] * 3


# Hysteresis

# Recorded, percentile, margin, new; by THIRDS: low from 1, mid from 34, top from 67
SETTLED = [
    (-1, 34, 3, 1),
    (-1, 100, 3, 2),
    (0, 33, 3, 0),
    (0, 34, 3, 1),
    (0, 67, 3, 2),
    (1, 30, 3, 0),
    (2, 64, 3, 2),
    (2, 63, 3, 1),
    (2, 33, 3, 0),  # to the division of the percentile
    (1, 33, 0, 0),
    (2, 1, 66, 2),
    (2, 1, 65, 0),
]


@pytest.mark.parametrize(("recorded", "percentile", "margin", "expected"), SETTLED)
def test_a_division_is_reached_at_once_and_left_only_below_its_margin(recorded, percentile, margin, expected):
    found = settle(np.array([recorded], np.int16), np.array([percentile]), THIRDS, margin)
    assert found.dtype == np.int16
    assert found.tolist() == [expected]


def steps(recorded, percents, divisions, margin):
    """The divisions of one player while the percentile changes."""
    for percentile in percents:
        (recorded,) = settle(np.array([recorded], np.int16), np.array([percentile]), divisions, margin).tolist()
        yield recorded


@given(st.sampled_from([division.lowest for division in DIVISIONS[1:]]), st.integers(1, 4), st.data())
def test_a_percentile_that_swings_by_less_than_the_margin_around_a_bound_changes_the_division_once(bound, margin, data):
    near = st.integers(max(1, bound - margin), min(100, bound + margin))
    percents = data.draw(st.lists(near, min_size=2, max_size=20))
    found = list(steps(-1, percents, DIVISIONS, margin))
    assert sum(one != other for one, other in pairwise(found)) <= 1


def test_recorded_divisions_are_no_longer_changed():
    found = taken(LADDER)
    since = [one._replace(division=2) if one.id == 7 else one for one in LADDER]
    assert found.board.player[found.changed(board_of(since))].tolist() == [4, 9]
    with pytest.raises(InputError, match="other players"):
        found.changed(board_of(LADDER[1:]))


# Distributions: ratings, bins asked for, edges, counts
HISTOGRAMS = [
    ([], 40, [0, 1], [0]),
    ([1500], 40, [1500, 1501], [1]),
    ([0.25] * 3, 40, [0, 1], [3]),
    ([-0.5] * 3, 40, [-1, 0], [3]),
    ([1, 2, 3, 4, 4], 4, [1, 2, 3, 4, 5], [1, 1, 1, 2]),
    ([1, 2, 3, 4, 4], 3, [0, 2, 4, 6], [1, 2, 2]),
    ([1000, 1010, 1025, 1049], 2, [1000, 1025, 1050], [2, 2]),
    ([0.1, 0.2, 0.3, 0.35], 3, [0.1, 0.2, 0.3, 0.4], [1, 1, 2]),
    ([-30, -20, -10, -10, 0, 10], 5, [-30, -20, -10, 0, 10, 20], [1, 1, 2, 1, 1]),
    # The middle, 20..40, spans 20: what is above 60 or below 0 is far out, and in the bin that ends there
    ([10, 20, 30, 40, 1e9], 6, [10, 20, 30, 40, 50, 60, 1e9], [1, 1, 1, 1, 0, 1]),
    ([10, 20, 30, 40, 1e9], 5, [0, 20, 40, 60, 1e9], [1, 2, 1, 1]),
    # The middle is 10..30
    ([-1e300, 10, 20, 30, 40], 6, [-1e300, 0, 10, 20, 30, 40, 50], [1, 0, 1, 1, 1, 1]),
    ([1e15, 1e15], 30, [1e15, 1e15 + 1000], [2]),
]


@pytest.mark.parametrize(("ratings", "bins", "edges", "counts"), HISTOGRAMS)
def test_a_histogram_has_round_edges(ratings, bins, edges, counts):
    found = Population(np.array(ratings, float)).histogram(bins)
    assert found.edges.tolist() == edges
    assert found.counts.tolist() == counts


@given(st.lists(RATINGS | st.floats(allow_nan=False, allow_infinity=False), max_size=60), st.integers(2, 50))
@example([-1.7976931348623157e308, 1.7976931348623157e308], 7)
@example([0.0, 5e-324], 2)
@example([1e15, 1e15 + 0.125], 40)
def test_everybody_is_in_one_bin_of_not_too_many(ratings, bins):
    edges, counts = Population(np.sort(ratings).astype(float)).histogram(bins)
    assert np.isfinite(edges).all()
    assert (edges[1:] > edges[:-1]).all()
    assert 1 <= len(counts) <= bins
    below = [sum(rating < edge for rating in ratings) for edge in edges[:-1].tolist()]
    assert counts.tolist() == [upper - lower for lower, upper in pairwise([*below, len(ratings)])]
    assert below[0] == 0
    assert max(ratings, default=0) <= edges[-1]


@given(st.floats(1e-6, 1e6), st.floats(-1e3, 1e3), st.integers(2, 60))
def test_ratings_that_spread_evenly_fill_half_the_bins_or_more(span, start, bins):
    ratings = np.sort(start + span * np.arange(500) / 499)
    edges, counts = Population(ratings).histogram(bins)
    assert bins / 2 <= len(counts) <= bins
    width = np.diff(edges)
    assert width == pytest.approx(np.full(len(width), width[0]), rel=1e-6)
    lead = width[0] / 10 ** math.floor(math.log10(width[0] * 1.001))
    assert min(abs(lead - one) for one in (1, 2, 2.5, 5)) < 1e-5


def test_a_distribution_counts_the_active_alone():
    edges, counts = taken(LADDER).distribution(4)
    assert edges.tolist() == [20, 30, 40, 50, 60]
    assert counts.tolist() == [1, 1, 2, 1]


# What is refused

RULED_OUT = [
    ({"placement": -1}, "placement=-1: expected a whole number from 0"),
    ({"active_days": -0.5}, "active_days=-0.5"),
    ({"active_days": math.nan}, "active_days=nan"),
    ({"active_days": math.inf}, "active_days=inf: expected a number from 0 to 36,525"),
    ({"active_days": 36_525.5}, "active_days=36525.5: expected a number from 0 to 36,525"),
    ({"division_margin": -3}, "division_margin=-3"),
]


@pytest.mark.parametrize(("rules", "said"), RULED_OUT)
def test_rules_that_cannot_hold_are_refused(rules, said):
    with pytest.raises(BadParameterError, match=said):
        StandingsRules(**rules)
    with pytest.raises(InputError, match="begins at 2; expected 1"):
        StandingsRules(divisions=(Division("all", 2),))


BROKEN = [
    ([One(1, 5.0), One(1, 6.0)], "player 1 comes after 1; expected ascending ids"),
    ([One(4, 5.0), One(7, 6.0), One(5, 6.0)], "player 5 comes after 7"),
    ([One(4, 5.0), One(7, math.nan)], "rating of player 7 is nan; expected a finite number"),
    ([One(4, -math.inf)], "rating of player 4 is -inf"),
]


@pytest.mark.parametrize(("players", "said"), BROKEN)
def test_an_invalid_board_is_refused(players, said):
    with pytest.raises(InputError, match=said):
        board_of(players)


def test_pages_and_bins_that_cannot_be_are_refused():
    found = taken(LADDER)
    for call, said in [
        (lambda: found.page(0, 10), "number of a page is 0; expected 1 or more"),
        (lambda: found.page(1, 0), "size of a page is 0"),
        (lambda: found.pages(-1), "size of a page is -1"),
        (lambda: found.around(9, -1), "number on each side is -1; expected 0 or more"),
        (lambda: found.distribution(1), "bins is 1; expected 2 or more"),
    ]:
        with pytest.raises(BadParameterError, match=said):
            call()


def test_progress_is_the_part_of_the_way_between_two_thresholds_of_rating():
    now = of_ratings(100, 200, 300, 400, 500, 600, divisions=THIRDS)
    assert [(cut.division.name, cut.rating) for cut in now.cuts()] == [("low", 100), ("mid", 300), ("top", 500)]
    assert division_progress(now, 350.0, None) == ("mid", "top", 0.25, 150.0)
    assert division_progress(now, 300.0, 50) == ("mid", "top", 0.0, 200.0)
    assert division_progress(now, 50.0, None) == ("low", "mid", 0.0, 250.0)  # below everybody
    assert division_progress(now, 900.0, 100) == ("top", None, 1.0, None)


def test_progress_by_percentile_where_ratings_are_hidden():
    now = of_ratings(100, 200, 300, divisions=THIRDS)
    assert division_progress(now, None, 12) == ("low", "mid", 11 / 33, 22.0)
    assert division_progress(now, None, 67) == ("top", None, 1.0, None)
    assert division_progress(now, None, None) is None
    assert division_progress(taken([]), 1500.0, None) is None
