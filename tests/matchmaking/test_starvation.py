"""Nobody waits for ever: simulated arrivals, and somebody among them for whom hardly anybody is right."""

import math
from dataclasses import replace
from itertools import count
from statistics import NormalDist

import numpy as np
import pytest

from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Member, Ticket, Tickets
from evenmatch.policy import Policy, presets
from reference import matchmaking as slow

SECOND = 1_000_000
STEPS = ((0.0, 2.0), (10.0, 10.0), (20.0, 40.0), (40.0, 100.0))
TRIOS = Policy(team_size=3, steps=STEPS, overdue_after=60.0, max_odds=None)
NEVER = None
OUTLIER = 0


def rating_at(percentile):
    """Ratings as a ladder has them: 1500 in the middle, 400 more for one in twenty-three … and no end at the top."""
    return 1500 + 250 * NormalDist().inv_cdf(min(max(percentile, 0.01), 99.99) / 100)


def made_party(number, second, at, **told):
    """A party of members at these percentiles; players are numbered by their tickets."""
    members = tuple(
        Member(player=100 * number + i, percentile=place, rating=rating_at(place), **told) for i, place in enumerate(at)
    )
    return Ticket(id=number, queued=second * SECOND, members=members)


class Arrivals:
    """So many solo players a second, from the middle of the ladder, where a match is always found at once."""

    def __init__(self, seed, a_second, low=35.0, high=65.0, of=1, **told):
        """of  every so many-th of them, and only that, is also told `told`."""
        self.rng, self.a_second, self.low, self.high = np.random.default_rng(seed), a_second, low, high
        self.of, self.told, self.numbers = of, told, count(1)

    def __call__(self, second):
        return [self._one(next(self.numbers), second) for _ in range(self.rng.poisson(self.a_second))]

    def _one(self, number, second):
        told = self.told if number % self.of == 0 else {}
        return made_party(number, second, [float(self.rng.uniform(self.low, self.high))], **told)


def measured_waits(policy, arrivals, first, seconds):
    """How long each ticket waited, a tick a second: until its match, or until the end; and which of them are loose."""
    queue, joined, waited = Queue(), {}, {}
    for second in range(seconds):
        came = [*([first] if second == 0 else []), *arrivals(second)]
        for one in came:
            queue.join(one)
        joined |= {one.id: one for one in came}
        found = propose(queue, second * SECOND, policy)
        queue.leave_all(found.ticket)
        waited |= {one: second - joined[one].queued // SECOND for one in found.ticket.tolist()}
    waited |= {one: seconds - joined[one].queued // SECOND for one in queue.ids}
    return waited, [one for one, told in joined.items() if told.loose]


def longest_allowed(policy, a_second):
    """The longest that a loose ticket may wait, if so many players who could be in a match with it come in a second.

    Until it is overdue and the windows of others, too, are at their widest; until there are enough of them, for which
    twice the mean time is room for chance; and ten seconds.
    """
    return math.ceil(policy.open_to_all_after(math.inf) + 2 * policy.players / a_second + 10)


def mixed_arrivals(seed, a_second, strict=0.0):
    """Arrivals of whom a part is strict."""
    loose, others = Arrivals(seed, a_second - strict), Arrivals(seed + 1, strict, loose=False)
    return lambda second: [
        *loose(second),
        *(
            replace(one, id=one.id + 10**6, members=(replace(one.members[0], player=one.id + 10**9),))
            for one in others(second)
        ),
    ]


def northerners(seed, a_second):
    """Arrivals who play in the north; every tenth also in the south."""
    come = Arrivals(seed, a_second, of=10, ping={"north": 20.0, "south": 60.0})
    return lambda second: [
        one if one.members[0].ping else replace(one, members=(replace(one.members[0], ping={"north": 20.0}),))
        for one in come(second)
    ]


# who hardly fits anybody, who comes, and how many of those come in a second who could be in a match with them
SCENES = {
    "at the top": lambda: (made_party(OUTLIER, 0, [99.9]), mixed_arrivals(1, 3.0), 3.0),
    "at the top of an almost empty queue": lambda: (made_party(OUTLIER, 0, [99.9]), mixed_arrivals(2, 0.3), 0.3),
    "at the bottom, among many strict ones": lambda: (
        made_party(OUTLIER, 0, [0.1]),
        mixed_arrivals(4, 3.0, strict=2.0),
        1.0,
    ),
    "a party of three far apart": lambda: (made_party(OUTLIER, 0, [8.0, 50.0, 95.0]), mixed_arrivals(3, 3.0), 3.0),
    "avoids two of three": lambda: (
        made_party(OUTLIER, 0, [90.0], avoid=tuple(100 * one for one in range(1, 4000) if one % 3)),
        mixed_arrivals(7, 3.0),
        1.0,
    ),
    "avoids nine of ten": lambda: (
        made_party(OUTLIER, 0, [50.0], avoid=tuple(100 * one for one in range(1, 4000) if one % 10)),
        mixed_arrivals(7, 1.0),
        0.1,
    ),
    "plays where one in ten can": lambda: (
        made_party(OUTLIER, 0, [50.0], ping={"south": 20.0}),
        northerners(7, 1.0),
        0.1,
    ),
}


@pytest.mark.parametrize("scene", SCENES)
def test_who_hardly_fits_anybody_is_matched_within_the_bound_and_so_is_everybody_else(scene):
    first, arrivals, right = SCENES[scene]()
    bound = longest_allowed(TRIOS, right)
    waited, loose = measured_waits(TRIOS, arrivals, first, bound + 60)
    assert waited[OUTLIER] <= bound / 3  # these queues are busy: 16 times their mean wait comes first
    assert max(waited[one] for one in loose) <= bound


@pytest.mark.parametrize("scene", SCENES)
def test_without_care_for_the_overdue_they_would_wait_for_ever(scene):
    """So that the test above says something. Nor is it the preferred spread that keeps them waiting: any is allowed."""
    careless = replace(TRIOS, overdue_after=NEVER, even_spread=100.0)
    first, arrivals, right = SCENES[scene]()
    seconds = longest_allowed(TRIOS, right) + 60
    waited, _ = measured_waits(careless, arrivals, first, seconds)
    assert waited[OUTLIER] == seconds


def test_the_best_of_a_whole_ladder_is_matched_under_the_default_policy():
    """Six against six with its cap on odds: other strong players come now and then, and make a match even."""
    policy = presets()["balanced"]
    bound = longest_allowed(policy, 3.0)
    waited, _ = measured_waits(policy, Arrivals(2, 3.0, low=0.0, high=100.0), made_party(OUTLIER, 0, [99.95]), bound)
    assert waited[OUTLIER] < bound


def test_overdue_tickets_that_nobody_fits_do_not_keep_others_from_being_served():
    """However many they are: here 300 who avoid each other and everybody else."""
    everybody = range(302)
    hopeless = [
        made_party(one, 0, [50.0], avoid=tuple(100 * other for other in everybody if other != one))
        for one in range(300)
    ]
    queue = Queue()
    queue.join_all(Tickets.of([*hopeless, made_party(300, 1, [1.0]), made_party(301, 1, [99.0])]))
    found = propose(queue, 7200 * SECOND, Policy(team_size=1, max_odds=None))
    assert [set(proposal.tickets) for proposal in found] == [{300, 301}]


def test_an_overdue_ticket_is_matched_with_whomever_the_cap_on_odds_allows():
    """The nearest (2, also the one who has waited longest) is too weak for both of the others, who are equals."""
    tickets = [
        Ticket(id=number, queued=queued, members=(Member(player=number, percentile=at, rating=rating),))
        for number, queued, at, rating in ((1, 1, 90.0, 2000.0), (2, 0, 89.0, 1700.0), (3, SECOND, 50.0, 2000.0))
    ]
    queue = Queue()
    queue.join_all(Tickets.of(tickets))
    assert [set(proposal.tickets) for proposal in propose(queue, 7200 * SECOND, Policy(team_size=1))] == [{1, 3}]


@pytest.mark.parametrize("size", [1, 2])
def test_once_all_are_overdue_only_a_cap_forbids_a_match(size):
    """Few tickets anywhere on the ladder, all windows at their widest; the twin tries every match there could be."""
    policy, now, outcomes = Policy(team_size=size), 7200 * SECOND, set()
    for seed in range(120):
        rng = np.random.default_rng(seed)
        places = rng.uniform(0, 100, int(rng.integers(2 * size, 2 * size + 4))).tolist()
        tickets = [replace(made_party(one, 0, [at]), queued=int(rng.integers(SECOND))) for one, at in enumerate(places)]
        queue = Queue()
        queue.join_all(Tickets.of(tickets))
        possible = slow.can_match(tickets, now, policy)
        assert (len(propose(queue, now, policy)) > 0) == possible, f"seed {seed}"
        outcomes.add(possible)
    assert outcomes == {False, True}
