"""Windows: where they begin and end at each moment, and the matches that they allow and forbid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.matchmaking import Member, Ticket
from evenmatch.matchmaking.view import view_of
from matchmaking.sample_tickets import NOW, SECOND, matched_tickets, party, plain_policy, queue_of, solo

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
