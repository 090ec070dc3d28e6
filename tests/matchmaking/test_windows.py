"""Windows: where they begin and end at each moment, and the matches that they allow and forbid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.matchmaking import Member, Ticket
from evenmatch.matchmaking.view import view_of
from matchmaking.sample_tickets import NOW, SECOND, matched_tickets, party, plain_policy, proposed, queue_of, solo

JUST = 1e-6  # a microsecond, in seconds
LOOSE, STRICT = True, False


def waiting_ticket(members, waited):
    return Ticket(
        id=1,
        queued=NOW - round(waited * SECOND),
        members=tuple(
            Member(player=at, percentile=p, rating=1500.0, within=within, loose=loose)
            for at, (p, within, loose) in enumerate(members)
        ),
    )


def window(ticket, policy=None):
    view, _ = view_of(queue_of(ticket), NOW, plain_policy(team_size=6) if policy is None else policy)
    return float(view.t["lo"][0]), float(view.t["hi"][0])


# Members (percentile, within, loose or strict), seconds waited, the window
WINDOWS = [
    ([(50, 2, LOOSE)], 0, (48, 52)),
    ([(50, 2, LOOSE)], 15, (45, 55)),
    ([(50, 2, LOOSE)], 30, (40, 60)),
    ([(50, 2, LOOSE)], 60, (30, 70)),
    ([(50, 2, LOOSE)], 240, (-50, 150)),
    ([(50, 2, LOOSE)], -100, (48, 52)),  # the clock stands before the ticket began to wait
    ([(3, 2, LOOSE)], 15, (-2, 8)),  # beyond the ends: nothing is moved inside
    ([(50, 7, LOOSE)], 15, (43, 57)),  # chosen wider than the step
    ([(50, 2, STRICT)], 1e8, (48, 52)),
    ([(50, 0, STRICT)], 1e8, (50, 50)),
    ([(40, 3, LOOSE), (60, 10, LOOSE)], 0, (37, 70)),
    ([(40, 3, LOOSE), (60, 10, LOOSE)], 60, (20, 80)),
    ([(40, 1, LOOSE), (42, 10, LOOSE)], 15, (32, 52)),
    ([(40, 12, LOOSE), (42, 1, LOOSE)], 0, (28, 52)),  # and the lower who reaches highest
    ([(40, 1, LOOSE), (60, 2, STRICT)], 1e8, (39, 62)),  # strict if one member is
    ([(40, 1, STRICT), (60, 2, LOOSE), (70, 2, LOOSE)], 1e8, (39, 72)),
]


@pytest.mark.parametrize(("members", "waited", "expected"), WINDOWS)
def test_a_window_is_the_hull_of_its_members_filters_at_that_moment(members, waited, expected):
    assert window(waiting_ticket(members, waited)) == expected


def hull(members, waited, steps):
    """The definition, in plain words."""
    step = next(width for after, width in reversed(steps) if waited >= after)
    strict = any(not loose for _, _, loose in members)
    widths = [within if strict else max(within, step) for _, within, _ in members]
    low = min(p - w for (p, _, _), w in zip(members, widths, strict=True))
    high = max(p + w for (p, _, _), w in zip(members, widths, strict=True))
    return low, high


MEMBERS = st.tuples(st.floats(0, 100), st.floats(0, 100), st.booleans())


@given(st.lists(MEMBERS, min_size=1, max_size=6), st.integers(0, 400))
def test_a_window_is_what_the_definition_says_for_any_party(members, waited):
    policy = plain_policy(team_size=6)
    assert window(waiting_ticket(members, waited), policy) == hull(members, waited, policy.steps)


def test_steps_of_the_policy_are_used_as_they_stand():
    policy = plain_policy(steps=((0, 1), (7, 1), (9.5, 33)))
    seen = [window(solo(1, 50, within=0.5, waited=waited), policy) for waited in (0, 7, 9.5 - JUST, 9.5)]
    assert seen == [(49, 51), (49, 51), (49, 51), (17, 83)]


STRICT_2 = {"within": 2.0, "loose": False}

# The second player's percentile, the first's filter (strict, at 50) and the second's: whether they meet
EDGES = [
    (52, 2, 2, True),  # exactly on both edges
    (52 + 1e-9, 2, 2, False),
    (52 + 1e-9, 2.1, 2, False),
    (52 + 1e-9, 2, 2.1, False),
    (48, 2, 2, True),
    (48 - 1e-9, 2, 2, False),
    (52, 2, 1, False),  # only one of them wants it
    (52, 1, 2, False),
    (50, 0, 0, True),
    (50 + 1e-9, 0, 100, False),
]


@pytest.mark.parametrize(("other", "within", "others_within", "expected"), EDGES)
def test_bounds_are_inside_and_both_must_want_it(other, within, others_within, expected):
    pair = [solo(1, 50, within=float(within), loose=False), solo(2, other, within=float(others_within), loose=False)]
    assert matched_tickets(pair, plain_policy()) == ([[1, 2]] if expected else [])


# Percentiles from 50 of a second loose player, seconds waited by both: whether they meet
STEPS = [
    (2, 0, True),
    (2.000001, 15 - JUST, False),
    (5, 15, True),
    (5.000001, 15, False),
    (40, 120 - JUST, False),
    (40, 120, True),
    (50, 240, True),
    (2, -5, True),  # the clock went back: as if they had just come
    (2.000001, -5, False),
]


@pytest.mark.parametrize(("away", "waited", "expected"), STEPS)
def test_loose_players_meet_from_the_moment_of_the_step_on(away, waited, expected):
    pair = [solo(1, 50, waited=waited), solo(2, 50 + away, waited=waited)]
    assert matched_tickets(pair, plain_policy()) == ([[1, 2]] if expected else [])


def test_the_younger_of_two_loose_players_decides_when_they_meet():
    pair = [solo(1, 50, waited=0), solo(2, 55, waited=300)]
    assert matched_tickets(pair, plain_policy(), NOW + 15 * SECOND - 1) == []
    assert matched_tickets(pair, plain_policy(), NOW + 15 * SECOND) == [[1, 2]]


def test_a_strict_player_never_meets_anybody_beyond_however_long_they_wait():
    pair = [solo(1, 50, waited=1e6, **STRICT_2), solo(2, 52.001, waited=1e6)]
    assert matched_tickets(pair, plain_policy()) == []
    assert matched_tickets([pair[0], solo(2, 52, waited=1e6)], plain_policy()) == [[1, 2]]


def test_a_party_of_far_apart_members_goes_with_another_like_it():
    """Party-mates are exempt from each other's filters; each hull is 0..100, though nobody reaches beyond."""
    apart = {"within": 0.0, "loose": False}
    assert matched_tickets([party(1, [0, 100], **apart), party(2, [100, 0], **apart)], plain_policy(team_size=2)) == [
        [1, 2]
    ]
    assert (
        matched_tickets([party(1, [0, 100], **apart), party(2, [0.1, 100], **apart)], plain_policy(team_size=2)) == []
    )


# Filters of a party at 40 and 60 (strict), and percentiles and filters of two solos: whether the four make a match
TWO_AGAINST_TWO = [
    (1, (39, 25), (61, 25), True),  # on both ends of the hull; 39 + 25 >= 61 and 61 - 25 <= 39
    (1, (39 - 1e-9, 25), (61, 25), False),
    (1, (39, 25), (61 + 1e-9, 25), False),
    (1, (39, 22), (61, 22), True),  # the solos just reach each other
    (1, (39, 22), (61, 22 - 1e-9), False),
    (1, (39, 21), (61, 25), False),  # reaches the party, 40 and 60, but not the other solo
    (0, (50, 10), (50, 10), True),  # just reach both members of the party
    (0, (50, 10), (50, 9.9), False),
    (0, (40, 20), (60, 20), True),
    (0, (45, 14.9), (60, 20), False),  # does not hold the member at 60
]


@pytest.mark.parametrize(("within", "one", "other", "expected"), TWO_AGAINST_TWO)
def test_every_window_holds_every_player_of_every_other_ticket(within, one, other, expected):
    tickets = [
        party(1, [40, 60], within=float(within), loose=False),
        solo(2, one[0], within=float(one[1]), loose=False),
        solo(3, other[0], within=float(other[1]), loose=False),
    ]
    assert matched_tickets(tickets, plain_policy(team_size=2)) == ([[1, 2, 3]] if expected else [])


def test_windows_in_a_chain_make_no_match():
    """Each reaches the next, but the first does not reach the last."""
    chain = [solo(at, 50 + at, within=2.5, loose=False) for at in range(4)]
    assert matched_tickets(chain, plain_policy(team_size=2)) == []
    fifth = solo(4, 52.5, **STRICT_2)  # does not reach the first
    assert matched_tickets([*chain, fifth], plain_policy(team_size=2)) == [[1, 2, 3, 4]]


# Members (percentile, within, loose, deviation), waited, uncertainty: where the party's bands begin and end
BANDS = [
    ([(50, 2, LOOSE, 0.5)], 0, 2, (49, 51)),
    ([(50, 2, LOOSE, 0.5)], 0, 0, (50, 50)),
    ([(50, 2, LOOSE, 5)], 0, 1, (48, 52)),  # no wider than the own filter
    ([(50, 2, LOOSE, 5)], 15 - JUST, 2, (48, 52)),
    ([(50, 2, LOOSE, 5)], 15, 2, (45, 55)),
    ([(50, 2, LOOSE, 5)], 60, 2, (40, 60)),
    ([(50, 1, STRICT, 5)], 1e6, 1, (49, 51)),
    ([(40, 3, LOOSE, 1), (60, 10, LOOSE, 4)], 0, 1, (39, 64)),
    ([(40, 3, LOOSE, 9), (41, 10, LOOSE, 4)], 0, 1, (37, 45)),  # each no wider than their own
    ([(40, 3, LOOSE, 9), (41, 1, STRICT, 4)], 1e6, 1, (37, 43)),
    ([(40, 3, LOOSE, 1), (41, 9, LOOSE, 8)], 0, 1, (33, 49)),  # the upper member's band begins lowest
]


@pytest.mark.parametrize(("members", "waited", "uncertainty", "expected"), BANDS)
def test_a_band_is_so_many_deviations_and_no_wider_than_the_own_filter(members, waited, uncertainty, expected):
    ticket = Ticket(
        id=1,
        queued=NOW - round(waited * SECOND),
        members=tuple(
            Member(player=at, percentile=p, rating=1500.0, within=within, loose=loose, deviation=deviation)
            for at, (p, within, loose, deviation) in enumerate(members)
        ),
    )
    policy = plain_policy(team_size=6, uncertainty=uncertainty)
    view, _ = view_of(queue_of(ticket), NOW, policy)
    assert (float(view.t["low"][0]), float(view.t["high"][0])) == expected
    assert window(ticket, policy) == window(ticket, plain_policy(team_size=6))  # the window is that of the points


def test_an_uncertain_player_must_be_wholly_inside_the_windows_of_others():
    pair = [solo(1, 50, deviation=1.0), solo(2, 51.5, **STRICT_2)]  # 49..51 against 49.5..53.5
    assert matched_tickets(pair, plain_policy()) == [[1, 2]]
    assert matched_tickets(pair, plain_policy(uncertainty=1)) == []
    assert matched_tickets(pair, plain_policy(uncertainty=0.5)) == [[1, 2]]  # 49.5 is on the edge
    assert matched_tickets(pair, plain_policy(uncertainty=0.5 + 1e-9)) == []
    assert proposed(pair, plain_policy(uncertainty=0.5)).spread.tolist() == [1.5]  # of the points


def test_a_view_holds_its_tickets_by_where_their_bands_begin():
    tickets = [solo(at, p, deviation=d) for at, (p, d) in enumerate([(50, 0), (51, 2), (49.5, 0), (51, 1.5)])]
    view, _ = view_of(queue_of(*tickets), NOW, plain_policy(uncertainty=1))
    assert view.t["id"].tolist() == [1, 2, 3, 0]  # 49, 49.5, 49.5, 50: of equals the smaller number
    assert np.all(np.diff(view.t["low"]) >= 0)
