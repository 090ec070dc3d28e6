"""What a ticket is told about its waiting, and how good the estimate is."""

from statistics import NormalDist

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.matchmaking import Met, Policy, Queue, Tickets, propose, why
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


def test_steps_that_change_nothing_for_a_wide_filter_are_passed_over():
    one = explain_waiting(solo(1, 50, within=15.0))
    assert (one.window, one.widens_in, one.widens_to) == ((35, 65), 60, (30, 70))


def test_a_party_widens_where_one_member_does():
    """Hull of 40 +- 12 and 60 +- 12; the step of 20 is the first that reaches beyond."""
    one = explain_waiting(party(1, [40, 60], within=12.0, waited=20), policy=plain_policy(team_size=2))
    assert (one.window, one.widens_in, one.widens_to) == ((28, 72), 40, (20, 80))


def test_a_strict_ticket_is_told_that_it_never_widens():
    one = explain_waiting(solo(1, 50, waited=100, **FILTER))
    assert one.strict
    assert (one.window, one.widens_in, one.widens_to) == ((45, 55), None, None)
    assert "strict" in " ".join(one.sentences)


def test_an_uncertain_player_widens_from_where_they_are_and_not_from_the_band():
    one = explain_waiting(solo(1, 50, deviation=1.0), policy=plain_policy(uncertainty=1))
    assert (one.window, one.widens_to) == ((48, 52), (45, 55))


# Own party, policy, and how many more players a match needs
NEEDED = [
    ([50], {"team_size": 1}, 1),
    ([50], {"team_size": 6}, 11),
    ([50, 51, 52], {"team_size": 6}, 9),
    ([50, 51], {"team_size": 2, "teams": 3}, 4),
]


@pytest.mark.parametrize(("own", "options", "expected"), NEEDED)
def test_needed_are_all_players_of_a_match_but_the_party(own, options, expected):
    assert explain_waiting(party(1, own), policy=plain_policy(**options)).needed == expected


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


def test_who_cannot_be_matched_at_all_is_told_why():
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
    assert "3 more" in first
    assert "0 and 3.5" in first  # shown inside 0..100
    assert "1 of the waiting players" in first
    assert "in 15 s" in second
    assert "0 to 6.5" in second
    assert "about" in third


def test_where_nobody_came_near_there_is_no_estimate():
    """Rejoining is no arrival, so nobody arrived here at all."""
    queue = Queue()
    queue.join(solo(1, 50), arriving=False)
    one = why(1, queue, NOW, plain_policy())
    assert one.estimate is None
    assert "no estimate" in one.sentences[-1]


def test_a_ticket_that_does_not_wait_is_refused():
    with pytest.raises(InputError, match="ticket 7 is not waiting here"):
        why(7, queue_of(solo(1, 50)), NOW, plain_policy())


def test_asking_changes_nothing():
    queue = queue_of(solo(1, 50), solo(2, 51))
    before = [column.copy() for column in vars(queue.tickets_of(queue.ids)).values() if isinstance(column, np.ndarray)]
    asked = [why(1, queue, NOW, plain_policy()) for _ in range(2)]
    assert asked[0] == asked[1]
    after = [column for column in vars(queue.tickets_of(queue.ids)).values() if isinstance(column, np.ndarray)]
    assert all(
        np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in zip(before, after, strict=True)
    )


def simulated(seconds=1800, rate=5.0, seed=3, policy=Policy()):  # noqa: B008 - never changed
    """Percentile, strictness, estimate at joining and realised wait of those who joined 5 to 25 minutes in."""
    draw = np.random.default_rng(seed)
    count = draw.poisson(rate * seconds)
    at, percentile = np.sort(draw.uniform(0, seconds, count)), draw.uniform(0, 100, count)
    notifier = NormalDist(1500, 300)
    rating = np.array([notifier.inv_cdf(min(max(p / 100, 1e-6), 1 - 1e-6)) for p in percentile])
    strict = draw.uniform(size=count) < 0.25
    queued = NOW + (at * SECOND).astype(np.int64)
    queue = Queue()
    estimate, wait = np.full(count, np.nan), np.full(count, np.nan)
    come = 0
    for tick in range(1, seconds + 1):
        stop = int(np.searchsorted(at, tick))
        ids = np.arange(come, stop)
        some = slice(come, stop)
        queue.join_all(
            Tickets.solo(
                *(ids, queued[some], ids, percentile[some], rating[some]),
                *(np.where(strict[some], 5.0, 2.0), ~strict[some]),
            )
        )
        for one in ids[ids % 3 == 0].tolist() if 300 < tick < 1500 else ():
            estimate[one] = why(one, queue, int(queued[one]), policy).estimate
        found = propose(queue, NOW + tick * SECOND, policy)
        queue.leave_all(found.ticket)
        wait[found.ticket] = tick - at[found.ticket]
        come = stop
    asked = ~np.isnan(estimate)
    return percentile[asked], strict[asked], estimate[asked], wait[asked]


def test_the_estimate_at_joining_is_the_wait_on_average_at_every_level():
    """Five arrivals a second, a quarter strict within 5: within a fifth of the mean wait, all of them and by thirds."""
    percentile, strict, estimate, wait = simulated()
    assert len(wait) > 1500
    assert np.isfinite(estimate).all()
    assert np.isfinite(wait).all()  # all were matched within five minutes
    groups = [percentile >= 0, percentile < 100 / 3, abs(percentile - 50) <= 50 / 3, percentile > 200 / 3, ~strict]
    for group in groups:
        assert estimate[group].mean() == pytest.approx(wait[group].mean(), rel=0.2)
    assert estimate[strict].mean() == pytest.approx(wait[strict].mean(), rel=0.35)
    assert estimate[strict].mean() < estimate[~strict].mean()
    assert wait[strict].mean() < wait[~strict].mean()


# The rival's rating, waits of the two, options of the policy, and seconds until the policy lets them meet (None: never)
RIVALS = {
    "at once": ({}, 0, 0, {}, 0),
    "odds beyond the cap": ({"rating": 1700.0}, 0, 0, {}, None),
    "ratings beyond the cap": ({"rating": 1601.0}, 0, 0, {"max_rating_spread": 100.0, "max_odds": None}, None),
    "a newcomer": ({"newcomer": True}, 3, 5, {"newcomer_wait": 20.0}, 15),
    "outside the filter": ({"percentile": 57.0}, 4, 0, {}, 116),
    "avoided": ({"avoid": (1,)}, 9, 9, {}, None),
}


@pytest.mark.parametrize("case", RIVALS)
def test_a_duel_is_not_promised_before_the_policy_allows_it(case):
    """Two wait, and one player in 30 seconds arrives within the 4.5 percentiles that are allowed at first."""
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
    arrival = 1 / (float(queue.arrivals_a_second(NOW)[48:53].sum()) or np.nan)
    assert estimate == pytest.approx(arrival if seconds is None else min(seconds, arrival), rel=0.15)
    assert (estimate == 0) == (propose(queue, NOW, policy).ticket.size == 2)


def test_an_estimate_shrinks_as_the_ticket_waits_and_as_more_arrive():
    def estimate(arrivals, waited):
        queue = Queue()
        for ticket in range(arrivals):
            queue.join(solo(ticket, 40 + 20 * (ticket + 0.5) / arrivals, waited=60 - 60 * ticket / arrivals))
        queue.leave_all(queue.ids)
        queue.join(solo(9999, 50, waited=waited))
        return why(9999, queue, NOW, Policy()).estimate

    assert estimate(40, 0) > estimate(80, 0) > estimate(160, 0)
    assert estimate(80, 20) < estimate(80, 10) < estimate(80, 0)


@pytest.mark.parametrize("rate", [0.2, 5.0])
def test_estimates_of_duels_are_the_wait_on_average(rate):
    """With odds capped at 0.6, one party in four strict: within a fifth of the mean wait."""
    _, _, estimate, wait = simulated(3600, rate, policy=Policy(team_size=1))
    assert estimate.mean() == pytest.approx(wait.mean(), rel=0.2)
