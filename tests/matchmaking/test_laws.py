"""The rules that no proposal breaks, in any queue and after any course of events; the twin is slow.matchmaking."""

import math
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evenmatch.errors import InputError
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Member, Met, Ticket, Tickets
from evenmatch.policy import Policy, presets
from matchmaking.sample_tickets import STEPS
from reference import matchmaking as slow

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
HASTY = ((0.0, 3.0), (10.0, 20.0), (40.0, 100.0))
AT_ONCE = {"party_wait": 0.0, "newcomer_wait": 0.0, "rematch_wait": 0.0}


def saturating(line_ups):
    """Odds that are no logistic curve."""
    first, second = line_ups.means().T
    return 0.5 + np.arctan((first - second) / 300) / math.pi


POLICIES = {
    "duels": Policy(team_size=1),
    "pairs": Policy(team_size=2, steps=HASTY, overdue_after=60.0),
    "pairs without caps": Policy(team_size=2, max_odds=None, even_spread=100.0, **AT_ONCE),
    "near": Policy(team_size=2, max_ping=60.0, steps=HASTY),
    "threes with roles": Policy(team_size=3, roles={"guard": 1, "healer": 1}, steps=HASTY, **AT_ONCE),
    "all roles": Policy(team_size=4, roles={"guard": 2, "healer": 1, "scout": 1}, max_odds=None),
    "close ratings": Policy(team_size=3, max_rating_spread=120.0, max_odds=0.52),
    "smaller teams": Policy(team_size=4, min_team_size=2, smaller_after=20.0, steps=HASTY, overdue_after=200.0),
    "free for all": Policy(team_size=1, teams=6, max_odds=None, steps=HASTY),
    "three teams": Policy(team_size=2, teams=3, max_odds=0.7, overdue_after=100.0),
    "four teams with roles": Policy(team_size=3, teams=4, roles={"scout": 1}, max_odds=None),
    "sixes": presets()["balanced"],
    "quick": replace(presets()["quick"], max_wait=500.0),
    "fair": replace(presets()["fair"], team_size=4, overdue_after=100.0),
    "tens": Policy(team_size=10, odds=saturating, steps=HASTY, max_wait=650.0),
}
fuzz = settings(deadline=None, suppress_health_check=list(HealthCheck))


def queue_of(tickets):
    queue = Queue()
    queue.join_all(Tickets.of(tickets))
    return queue


@pytest.mark.parametrize("name", POLICIES)
def test_no_proposal_breaks_a_rule(name):
    policy, made = POLICIES[name], 0

    @settings(fuzz, max_examples=15)
    @given(seed=st.integers(0, 2**32 - 1), count=st.integers(30, 120))
    def check(seed, count):
        nonlocal made
        tickets = slow.made_up(seed, count, START, largest=policy.team_size + 1 if seed % 4 else 2)
        found = propose(queue_of(tickets), START, policy)
        assert slow.broken(found, tickets, START, policy) == []
        made += len(found)

    check()
    assert made > 10  # the rules were looked at


@pytest.mark.parametrize("name", ["duels", "pairs", "sixes", "threes", "trios"])
def test_a_match_wider_than_even_consists_of_neighbours(name):
    policy, wide = replace({**POLICIES, **EXACT}[name], overdue_after=None, even_spread=1.0), 0

    @settings(fuzz, max_examples=40, derandomize=True)  # the rule must come up, so the examples are always the same
    @given(seed=st.integers(0, 2**32 - 1), count=st.integers(30, 120))
    def check(seed, count):
        nonlocal wide
        single = [one for one in slow.made_up(seed, count, START) if len(one.members) == 1]
        tickets = {one.id: _anywhere(one) for one in single}
        found = list(propose(queue_of(list(tickets.values())), START, policy))
        placed = {ticket for proposal in found for ticket in proposal.tickets}
        for proposal in found:
            match = [tickets[one] for one in proposal.tickets]
            assert slow.is_narrow_enough(match, START, policy, [*_without(tickets, placed), *match])
            wide += proposal.spread > 1

    check()
    assert wide > 3


def _anywhere(ticket):
    return replace(ticket, members=tuple(replace(member, ping={}) for member in ticket.members))


def _without(tickets, placed):
    return [ticket for number, ticket in tickets.items() if number not in placed]


# what no region, avoid list, role, cap or preference keeps apart: here no match is ever overlooked
EXACT = {
    "duels": Policy(team_size=1, max_odds=None, overdue_after=None, **AT_ONCE),
    "pairs": Policy(team_size=2, max_odds=None, overdue_after=None, **AT_ONCE),
    "threes": Policy(team_size=3, max_odds=None, overdue_after=None, even_spread=2.0, **AT_ONCE),
    "trios": Policy(team_size=1, teams=3, max_odds=None, overdue_after=None, even_spread=1.0, **AT_ONCE),
    "filters alone": Policy(team_size=2, max_odds=None, overdue_after=None, **AT_ONCE),
    "smaller": Policy(team_size=3, min_team_size=1, smaller_after=60.0, max_odds=None, overdue_after=None, **AT_ONCE),
}
places = st.one_of(st.integers(0, 12), st.floats(0, 12, allow_subnormal=False))
solos = st.tuples(
    places, st.sampled_from([0, 1, 2, 5, 10]), st.booleans(), st.sampled_from([0, 14, 15, 30, 60, 120, 240])
)


@pytest.mark.parametrize("name", EXACT)
def test_where_single_players_can_be_matched_some_are(name):
    policy, outcomes = EXACT[name], set()

    @settings(fuzz, max_examples=150)
    @given(st.lists(solos, min_size=policy.teams, max_size=9))
    @example([(5, 5, True, 240)] * 9)
    @example([(place, 0, False, 240) for place in range(9)])
    def check(drawn):
        tickets = [
            Ticket(
                id=at,
                queued=START - waited * SECOND,
                members=(Member(player=at, percentile=place, rating=1500.0, within=within, loose=loose),),
            )
            for at, (place, within, loose, waited) in enumerate(drawn)
        ]
        possible = slow.can_match_evenly(tickets, START, policy)
        assert bool(propose(queue_of(tickets), START, policy)) == possible
        outcomes.add(possible)

    check()
    assert outcomes == {False, True}


def test_the_twin_finds_what_is_wrong_with_a_match():
    policy = Policy(
        team_size=2, steps=STEPS, max_ping=100.0, max_rating_spread=300.0, roles={"healer": 1}, min_team_size=1
    )

    def ticket(number, *members, waited=0):
        told = [
            Member(**{"player": 10 * number + at, "percentile": 50.0, "rating": 1500.0} | one)
            for at, one in enumerate(members)
        ]
        return Ticket(id=number, queued=START - waited * SECOND, members=tuple(told))

    def faults(*teams):
        return " / ".join(slow.broken_by_teams(teams, START, policy))

    pair, single = ticket(1, {}, {}), ticket(2, {})
    assert faults([pair], [ticket(3, {"percentile": 52.0}, {})]) == ""
    assert "outside" in faults([pair], [ticket(3, {"percentile": 52.000001}, {})])
    apart = ticket(3, {"percentile": 10.0, "within": 0.0, "loose": False}, {"percentile": 90.0, "within": 0.0})
    assert faults([apart], [ticket(4, {}, {}, waited=240)]) == ""  # party-mates are exempt
    assert "outside 3" in faults([apart], [ticket(4, {"percentile": 9.0}, {}, waited=240)])
    assert "sizes" in faults([pair], [single])
    assert "smaller" in faults([single], [ticket(3, {}, waited=119)])
    assert "avoids" in faults([pair], [ticket(3, {"avoid": (11,)}, {})])
    assert "avoids" in faults([ticket(3, {"avoid": (20,)}), single], [pair])  # in one team, too
    assert "no region" in faults([pair], [ticket(3, {"ping": {"north": 101.0}}, {})])
    assert "no region" in faults([ticket(3, {"ping": {"north": 9.0}}, {})], [ticket(4, {"ping": {"west": 9.0}}, {})])
    assert "odds" in faults([pair], [ticket(3, {"rating": 1650.0}, {})])
    assert "ratings" in faults([pair], [ticket(3, {"rating": 1801.0}, {"rating": 1600.0})])
    assert "roles" in faults([pair], [ticket(3, {"roles": ("guard",)}, {"roles": ("scout",)})])
    assert "given up" in " ".join(slow.broken_by_teams([[pair], [single]], START, replace(policy, max_wait=0.0)))
    assert "2 times" in faults([pair], [pair])
    assert slow.broken(propose(queue_of([single]), START, replace(policy, max_wait=0.0)), [], START, policy)


PLACES = (50.0, 50.0, 51.5, 52.0, 48.0, 55.0, 30.0, 0.0, 100.0, 49.000001)
PEOPLE = 40
# kinds of people: the first likes everything, the others differ from it in a few ways
KINDS = (
    {},
    {"within": 5.0},
    {"within": 0.0},
    {"within": 60.0, "loose": False},
    {"within": 5.0, "loose": False},
    {"ping": {"north": 30.0}},
    {"ping": {"north": 50.0, "south": 20.0}, "max_ping": 45.0},
    {"ping": {"north": 90.0, "south": 55.0}},
    {"ping": {"north": 70.0}},
    {"roles": ("guard",)},
    {"roles": ("healer", "guard")},
    {"roles": ("scout",)},
    {"newcomer": True},
    {"avoid": 1},
    {"avoid": 7, "loose": False},
    {"met": 1},
)
persons = st.tuples(st.sampled_from(PLACES), st.sampled_from(KINDS))
parties = st.one_of(st.lists(persons, min_size=1, max_size=1), st.lists(persons, min_size=1, max_size=3))


class Course(RuleBasedStateMachine):
    """Parties join, leave and are matched in one queue while the clock moves forwards and backwards."""

    policy = Policy()
    outcomes: ClassVar[Counter[str]] = Counter()  # over all courses

    def __init__(self):
        super().__init__()
        self.queue = Queue()
        self.now, self.next_ticket = START, 1
        self.waiting: dict[int, Ticket] = {}
        self.ended: dict[int, str] = {}

    @initialize(parties=st.lists(parties, min_size=6, max_size=10))
    def begin(self, parties):
        for party in parties:
            self._join(party, 0, 0)

    @rule(
        parties=st.lists(parties, min_size=1, max_size=4),
        late=st.sampled_from([0, 45, 300, -20]),
        first=st.integers(0, PEOPLE - 1),
    )
    def join(self, parties, late, first):
        for party in parties:
            self._join(party, first, late)

    def _join(self, party, first, late):
        busy = {member.player for ticket in self.waiting.values() for member in ticket.members}
        free = [one for one in ((first + at) % PEOPLE for at in range(PEOPLE)) if one not in busy]
        if len(party) > self.policy.team_size or len(free) < len(party):
            return
        players = free[: len(party)]
        members = tuple(self._member(player, kind, players) for player, kind in zip(players, party, strict=True))
        try:
            ticket = Ticket(id=self.next_ticket, queued=self.now - late * SECOND, members=members)
        except InputError:  # a party without a common region
            return
        self.queue.join(ticket)
        self.waiting[self.next_ticket] = ticket
        self.next_ticket += 1

    def _member(self, player, person, party):
        place, kind = person[0], dict(person[1])
        avoid = (player + kind.pop("avoid", 0)) % PEOPLE
        met = (player + kind.pop("met", 0)) % PEOPLE
        return Member(
            player=player,
            percentile=place,
            rating=1500 + 5 * place,
            avoid=() if avoid in party else (avoid,),
            met=() if met in party else (Met(met, self.now - 60 * SECOND),),
            **kind,
        )

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def join_twice(self, data):
        number = data.draw(st.sampled_from(sorted(self.waiting)))
        ticket, stranger = self.waiting[number], Member(player=1000, percentile=50, rating=1500)
        for double in (
            replace(ticket, members=(stranger,)),
            replace(ticket, id=self.next_ticket, members=(*ticket.members[:1], stranger)),
        ):
            with pytest.raises(InputError, match="is already waiting"):
                self.queue.join(double)

    @precondition(lambda self: len(self.waiting) > 5)
    @rule(data=st.data())
    def leave(self, data):
        ticket = data.draw(st.sampled_from(sorted(self.waiting)))
        self.queue.leave(ticket)
        self._end(ticket, "left")
        with pytest.raises(InputError, match="is not waiting"):
            self.queue.leave(ticket)

    @rule(seconds=st.sampled_from([0, 1, 15, 60, 240, 1000, -1, -30]))
    def tick(self, seconds):
        self.now += seconds * SECOND
        tickets = list(self.waiting.values())
        proposals = propose(self.queue, self.now, self.policy)
        assert slow.broken(proposals, tickets, self.now, self.policy) == []
        expired = [ticket.id for ticket in tickets if slow.is_given_up(ticket, self.now, self.policy)]
        assert proposals.expired.tolist() == sorted(expired)
        for ticket in expired:
            self.queue.leave(ticket)
            self._end(ticket, "expired")
        for proposal in proposals:
            self.queue.leave_all(proposal.tickets)
            for ticket in proposal.tickets:
                self._end(ticket, "matched")

    @invariant()
    def every_ticket_is_in_one_place(self):
        here = sorted(self.waiting)
        assert self.queue.ids == here
        columns = self.queue.tickets_of(here)
        assert columns.queued.tolist() == [self.waiting[number].queued for number in here]
        assert columns.player.tolist() == [member.player for number in here for member in self.waiting[number].members]
        assert self.queue.players == len(columns.player)
        assert sorted([*self.waiting, *self.ended]) == list(range(1, self.next_ticket))

    def _end(self, ticket, outcome):
        del self.waiting[ticket]
        self.ended[ticket] = outcome
        self.outcomes[outcome] += 1


COURSES = {
    "near": POLICIES["near"],
    "duels": Policy(team_size=1, max_wait=900.0, steps=HASTY),
    "three teams": Policy(team_size=1, teams=3, steps=HASTY, overdue_after=30.0, max_odds=None, **AT_ONCE),
    "roles": Policy(team_size=2, roles={"guard": 1, "healer": 1}, steps=HASTY, max_wait=300.0),
    "free for all": Policy(team_size=1, teams=4, max_odds=None, steps=HASTY),
    "smaller teams": Policy(team_size=3, min_team_size=1, smaller_after=30.0, max_rating_spread=150.0, steps=HASTY),
}


@pytest.mark.parametrize("name", COURSES)
def test_no_course_of_events_loses_or_doubles_a_ticket_or_breaks_a_rule(name):
    machine = type("Machine", (Course,), {"policy": COURSES[name], "outcomes": Counter()})
    case = machine.TestCase
    case.settings = settings(fuzz, max_examples=12, stateful_step_count=40)
    case().runTest()
    assert machine.outcomes["matched"] > 0, machine.outcomes
