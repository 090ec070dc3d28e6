"""What a ticket is told about its waiting, and how good the estimate is."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from evenmatch.matchmaking import Met, Policy, Queue, Tickets, propose, why
from evenmatch.matchmaking.waiting import remember, rounded_wait
from evenmatch.policy import INFINITE
from matchmaking.sample_tickets import NOW, SECOND, party, plain_policy, queue_of, solo

FILTER = {"within": 5.0, "loose": False}


def explain_waiting(ticket, *others, policy=None, now=NOW):
    return why(ticket.id, queue_of(ticket, *others), now, plain_policy() if policy is None else policy)


# Seconds waited by a loose player at 50; window, when it widens, and to what
LOOSE = [
    (0, (48, 52), 15, (45, 55)),
    (14, (48, 52), 1, (45, 55)),
    (15, (45, 55), 15, (40, 60)),
    (100, (30, 70), 20, (10, 90)),
    (120, (10, 90), 120, (-50, 150)),
    (240, (-50, 150), None, None),
    (-10, (48, 52), 15, (45, 55)),  # the clock went back: it has waited nothing
]


@pytest.mark.parametrize(("waited", "window", "widens_in", "widens_to"), LOOSE)
def test_a_loose_ticket_is_told_when_its_window_widens(waited, window, widens_in, widens_to):
    one = explain_waiting(solo(1, 50, waited=waited))
    assert (one.waited, one.window, one.widens_in, one.widens_to) == (max(waited, 0), window, widens_in, widens_to)
    assert not one.strict


def test_a_party_widens_where_one_member_does():
    """Hull of 40 +- 12 and 60 +- 12; the step of 20 is the first that reaches beyond."""
    one = explain_waiting(party(1, [40, 60], within=12.0, waited=20), policy=plain_policy(team_size=2))
    assert (one.window, one.widens_in, one.widens_to) == ((28, 72), 40, (20, 80))


def test_a_strict_ticket_is_told_that_it_never_widens():
    one = explain_waiting(solo(1, 50, waited=100, **FILTER))
    assert one.strict
    assert (one.window, one.widens_in, one.widens_to) == ((45, 55), None, None)
    assert "strict" in " ".join(one.sentences)


def test_within_counts_players_who_could_be_in_a_match_with_it_now():
    """By hand, for a strict player at 50 +- 5."""
    others = [
        solo(2, 55, **FILTER),  # on both edges
        solo(3, 55.001, **FILTER),  # outside
        solo(4, 47),  # loose, but reaches 2 so far
        solo(5, 47, waited=15),  # reaches 5
        party(6, [46, 54], **FILTER),  # two players; 41..59
        party(7, [46, 56], **FILTER),  # one of them outside
        solo(8, 50, avoid=(1,), **FILTER),
        solo(9, 50, met=(Met(1, NOW),), **FILTER),  # not for ever
        solo(10, 50, rating=1601.0, **FILTER),  # beyond the spread
        solo(11, 50, ping={"us": 20.0}, **FILTER),  # elsewhere
        solo(12, 50, ping={"eu": 90.0, "us": 20.0}, **FILTER),
        party(13, [50, 50, 50], **FILTER),  # larger than a team: in no match at all
    ]
    policy = plain_policy(team_size=2, max_rating_spread=100)
    one = explain_waiting(solo(1, 50, ping={"eu": 20.0}, **FILTER), *others, policy=policy)
    assert one.within == 1 + 1 + 2 + 1 + 1
    avoiding = explain_waiting(solo(1, 50, ping={"eu": 20.0}, avoid=(2, 600), **FILTER), *others, policy=policy)
    assert avoiding.within == 1 + 1 + 1


def test_a_player_who_cannot_be_matched_is_told_why():
    large = explain_waiting(party(1, [50, 50, 50]), policy=plain_policy(team_size=2))
    assert large.sentences == ["a party of 3 is larger than a team of 2"]
    assert (large.within, large.estimate, large.widens_in) == (0, None, None)
    late = explain_waiting(solo(1, 50, waited=61), policy=plain_policy(max_wait=60))
    assert "61 s" in late.sentences[0]
    assert "longest wait in this queue is 60 s" in late.sentences[0]
    far = explain_waiting(solo(1, 50, ping={"eu": 90.0, "us": 120.0}), policy=plain_policy(max_ping=80))
    assert "region" in far.sentences[0]
    assert (
        explain_waiting(solo(1, 50, ping={"eu": 90.0, "us": 80.0}), policy=plain_policy(max_ping=80)).hindrances == ()
    )
    assert explain_waiting(solo(1, 50, waited=59.9), policy=plain_policy(max_wait=60)).hindrances == ()


def test_sentences_name_what_is_waited_for():
    first, second, third = explain_waiting(solo(1, 1.5), solo(2, 1.0), policy=plain_policy(team_size=2)).sentences
    assert first == "searching near your level for 3 more players, 1 found so far"
    assert second == "in 15 s the search widens"
    assert "about" in third


def test_a_player_who_waits_alone_reads_that_nobody_else_is_waiting():
    alone = explain_waiting(solo(1, 1.5), policy=plain_policy(team_size=2)).sentences
    assert alone[1] == "nobody else is waiting in this queue"
    distant = explain_waiting(solo(1, 1.5), solo(2, 99.0), policy=plain_policy(team_size=2)).sentences
    assert distant[0].endswith("0 found so far")
    assert alone[1] not in distant


def test_where_nobody_came_near_there_is_no_estimate():
    """Rejoining is no arrival, so nobody arrived here at all."""
    queue = Queue()
    queue.join(solo(1, 50), arriving=False)
    one = why(1, queue, NOW, plain_policy())
    assert one.estimate is None
    assert "no estimate" in one.sentences[-1]


# The rival's rating, waits of the two, options of the policy, and seconds until the policy lets them meet (None: never)
RIVALS = {
    "at once": ({}, 0, 0, {}, 0.5),
    "odds beyond the cap": ({"rating": 1700.0}, 0, 0, {}, None),
    "ratings beyond the cap": ({"rating": 1601.0}, 0, 0, {"max_rating_spread": 100.0, "max_odds": None}, None),
    "a newcomer": ({"newcomer": True}, 3, 5, {"newcomer_wait": 20.0}, 15),
    "outside the filter": ({"percentile": 57.0}, 4, 0, {}, 60),
    "avoided": ({"avoid": (1,)}, 9, 9, {}, None),
}


@pytest.mark.parametrize("case", RIVALS)
def test_a_duel_is_not_promised_before_the_policy_allows_it(case):
    """Two wait, and others arrive as 20 did at their level: in 4.5 of 20 percentiles at first, then in 10.

    The median of the wait for one arrival is ln 2 of its mean, and so much of a time that is known is told at first,
    until waits that ended say more; "at once" is half a second, the middle of the time to the next tick.
    """
    changes, own_waited, waited, options, seconds = RIVALS[case]
    policy = Policy(team_size=1, overdue_after=None, **{"newcomer_wait": 0.0, **options})
    queue = Queue()
    for ticket in range(20, 40):
        queue.join(solo(ticket, 50, waited=20 * (40 - ticket)))
    queue.leave_all(queue.ids)
    at = changes.pop("percentile", 50.0)
    queue.join(solo(1, 50, waited=own_waited), arriving=False)
    queue.join(solo(2, at, waited=waited, **changes), arriving=False)
    changes["percentile"] = at
    estimate = why(1, queue, NOW, policy).estimate
    level = float(queue.arrivals_a_second(NOW).sum())
    waited_for = min(max(after - own_waited, 0) + 20 / (width * level) for after, width in policy.steps)
    expected = math.log(2) * min(waited_for, INFINITE if seconds is None else seconds)
    assert estimate == pytest.approx(seconds if case == "at once" else expected)
    assert (estimate <= 1) == (propose(queue, NOW, policy).ticket.size == 2)


def test_an_estimate_shrinks_as_the_ticket_waits_as_more_arrive_and_as_seats_fill():
    def estimate(arrivals, waited=0, waiting=0):
        queue = Queue()
        for ticket in range(arrivals):
            queue.join(solo(ticket, 40 + 20 * (ticket + 0.5) / arrivals, waited=60 - 60 * ticket / arrivals))
        queue.leave_all(queue.ids)
        queue.join(solo(9999, 50, waited=waited), arriving=False)
        for ticket in range(waiting):
            queue.join(solo(1000 + ticket, 51), arriving=False)
        told = why(9999, queue, NOW, Policy())
        assert told.estimate < told.upper
        return told.estimate

    assert estimate(40) > estimate(80) > estimate(160)
    assert estimate(8, waited=110) < estimate(8, waited=80) < estimate(8)
    assert estimate(80, waiting=10) < estimate(80, waiting=5) < estimate(80)
    assert estimate(80) == pytest.approx(11 * estimate(80, waiting=10))


# Seconds, and what players read
ROUNDED = [(0.2, "1 s"), (20, "20 s"), (23, "25 s"), (136, "140 s"), (299, "5 min"), (1000, "17 min")]


@pytest.mark.parametrize(("seconds", "words"), ROUNDED)
def test_waits_are_told_rounded(seconds, words):
    assert rounded_wait(seconds) == words


def test_half_wait_less_than_told_and_nine_of_ten_less_than_the_upper_figure():
    """A simulated evening of 6v6 with a quarter strict: ten minutes after a start, two players a second."""
    policy, queue, draw = Policy(), Queue(), np.random.default_rng(5)
    told, waits = {}, []
    for tick in range(1, 900):
        now = NOW + tick * SECOND
        ids = np.arange(draw.poisson(2)) + 10 * tick
        points = draw.uniform(0, 100, len(ids))
        strict = draw.uniform(size=len(ids)) < 0.25
        rating = 1500 + 300 * np.array([NormalDist().inv_cdf(point / 100) for point in points])
        within = np.where(strict, 5.0, 2.0)
        queued, start = np.full(len(ids), now - SECOND // 2), np.arange(len(ids) + 1)
        queue.join_all(Tickets.plain(ids, queued, start, ids, points, rating, within, ~strict))
        if tick < 600:
            told |= {one: (now, wait) for one, wait in remember(queue, ids.tolist(), now, policy).items()}
        found = propose(queue, now, policy)
        queue.leave_all(found.ticket)
        queue.waits.end(found.ticket.tolist(), now, is_matched=True)
        waits += [(now - told[one][0], *told.pop(one)[1]) for one in found.ticket.tolist() if one in told]
    waits += [(np.inf, *wait) for _, wait in told.values()]  # still waiting after five minutes
    waited, estimate, upper = np.array(waits).T
    assert len(waits) > 800
    assert 0.4 < np.mean(waited / SECOND < estimate) < 0.6
    assert 0.85 < np.mean(waited / SECOND < upper) < 0.95
