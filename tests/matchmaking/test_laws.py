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

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.queues import Queues
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
    """People join, leave, answer and fall silent while the clock goes on and back, in two queues."""

    policies: ClassVar[dict[str, Policy]] = {}
    seen: ClassVar[Counter[str]] = Counter()  # what became of tickets, in all courses

    def __init__(self):
        super().__init__()
        self.queues = Queues(self.policies, accept_within=20.0)
        self.now, self.next_ticket = START, 1
        self.waiting: dict[int, dict[str, Ticket]] = {}  # by ticket
        self.asked: dict[int, int] = {}  # offer by ticket
        self.told: dict[int, dict[str, Ticket]] = {}  # of those who are asked
        self.accepted: dict[int, set[int]] = {}  # by offer
        self.deadline: dict[int, int] = {}
        self.done: dict[int, str] = {}  # what became of a ticket

    @initialize(parties=st.lists(parties, min_size=6, max_size=10))
    def begin(self, parties):
        for party in parties:
            self._join(party, list(self.policies), 0, 0)

    @rule(
        parties=st.lists(parties, min_size=1, max_size=4),
        among=st.sampled_from([3, 3, 1, 2]),
        shift=st.sampled_from([0.0, 1.5]),
        late=st.sampled_from([0, 45, 300, -20]),
        first=st.integers(0, PEOPLE - 1),
    )
    def join(self, parties, among, shift, late, first):
        chosen = [name for at, name in enumerate(self.policies) if among >> at & 1]
        for party in parties:
            self._join(party, chosen, first, late, shift)

    def _join(self, party, chosen, first, late, shift=0.0):
        chosen = [name for name in chosen if len(party) <= self.policies[name].team_size]
        if not chosen:
            return
        busy = {m.player for t in (self.waiting | self.told).values() for m in next(iter(t.values())).members}
        free = [one for one in ((first + at) % PEOPLE for at in range(PEOPLE)) if one not in busy]
        if len(free) < len(party):
            return
        players = free[: len(party)]
        tickets = {}
        for at, name in enumerate(chosen):
            members = tuple(
                self._member(player, person, players, shift * at) for player, person in zip(players, party, strict=True)
            )
            try:
                tickets[name] = Ticket(id=self.next_ticket, queued=self.now - late * SECOND, members=members)
            except InputError:  # a party without a region in common
                return
        self.queues.join(tickets)
        self.waiting[self.next_ticket] = tickets
        self.next_ticket += 1

    def _member(self, player, person, party, shift):
        place, kind = person[0], dict(person[1])
        avoid = (player + kind.pop("avoid", 0)) % PEOPLE
        met = (player + kind.pop("met", 0)) % PEOPLE
        return Member(
            player=player,
            percentile=min(place + shift, 100.0),
            rating=1500 + 5 * place + shift,
            avoid=() if avoid in party else (avoid,),
            met=() if met in party else (Met(met, self.now - 60 * SECOND),),
            **kind,
        )

    @precondition(lambda self: self.waiting or self.told)
    @rule(data=st.data())
    def nobody_joins_twice(self, data):
        number, tickets = data.draw(st.sampled_from(sorted((self.waiting | self.told).items(), key=lambda one: one[0])))
        name, ticket = next(iter(tickets.items()))
        stranger = Member(player=1000, percentile=50, rating=1500)
        for double in (
            {name: replace(ticket, members=(stranger,))},
            {name: replace(ticket, id=self.next_ticket, members=(*ticket.members[:1], stranger))},
        ):
            with pytest.raises(InputError, match="is already waiting"):
                self.queues.join(double)
        with pytest.raises(UnknownNameError):
            self.queues.join({name: Ticket(id=number + 10**6, queued=0, members=(stranger,)), "no such queue": ticket})

    @precondition(lambda self: len(self.waiting) + len(self.told) > 5)
    @rule(data=st.data())
    def leave(self, data):
        ticket = data.draw(st.sampled_from(sorted(self.waiting | self.told)))
        self.queues.leave(ticket)
        if ticket in self.asked:
            self._off(self.asked[ticket], {ticket: "declined"})
        else:
            self._end(ticket, "left")

    @rule(seconds=st.sampled_from([1, 15, 60, 240, 1000, -1, -30]))
    def clock(self, seconds):
        self.now += seconds * SECOND

    @rule(seconds=st.sampled_from([0, 1, 3, 60]))
    def a_little_later(self, seconds):
        self.clock(seconds)
        self.tick()

    @precondition(lambda self: self.asked)
    @rule(seconds=st.sampled_from([19, 20, 21]))
    def nobody_says_more(self, seconds):
        self.clock(seconds)
        self.tick()

    @rule()
    def tick(self):
        late = [offer for offer, deadline in self.deadline.items() if deadline <= self.now]
        for offer in late:
            silent = {
                ticket: "lapsed"
                for ticket, own in self.asked.items()
                if own == offer and not self._players(ticket) <= self.accepted[offer]
            }
            self._off(offer, silent)
        ticked = self.queues.tick(self.now)
        assert [offer.id for offer in ticked.lapsed] == late
        for offer in ticked.offers:
            policy = self.policies[offer.queue]
            here = [tickets[offer.queue] for tickets in self.waiting.values() if offer.queue in tickets]
            assert slow.broken_by([offer.proposal], here, self.now, policy) == []
            assert offer.deadline == self.now + 20 * SECOND
            assert offer.id not in self.accepted
            self.accepted[offer.id], self.deadline[offer.id] = set(), offer.deadline
            for ticket in offer.proposal.tickets:  # who is asked waits no more, and is in no second offer
                self.asked[ticket], self.told[ticket] = offer.id, self.waiting.pop(ticket)
        due = sorted(
            number
            for number, tickets in self.waiting.items()
            if any(slow.is_given_up(told, self.now, self.policies[name]) for name, told in tickets.items())
        )
        assert list(ticked.expired) == due
        for ticket in due:
            self._end(ticket, "expired")

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def accept(self, data):
        self._accept(data.draw(st.sampled_from(self._who_is_asked())))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def everybody_accepts(self, data):
        offer = data.draw(st.sampled_from(sorted(self.accepted)))
        everybody = {one for ticket in self._of(offer) for one in self._players(ticket)}
        for player in sorted(everybody - self.accepted[offer]):
            self._accept(player)
        assert offer not in self.accepted

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def decline(self, data):
        player = data.draw(st.sampled_from(self._who_is_asked()))
        ticket = next(one for one in self.asked if player in self._players(one))
        offer = self.asked[ticket]
        assert self.queues.decline(player).id == offer
        self._off(offer, {ticket: "declined"})

    @rule(player=st.integers(0, PEOPLE))
    def who_is_not_asked_cannot_answer(self, player):
        if player not in self._who_is_asked():
            for answer in (self.queues.accept, self.queues.decline):
                with pytest.raises(InputError, match="has no open offer"):
                    answer(player)
        for ticket in {self.next_ticket, *self.done} - self.waiting.keys() - self.told.keys():
            with pytest.raises(InputError, match="is not waiting"):
                self.queues.leave(ticket)

    @invariant()
    def everybody_is_where_they_should_be(self):
        for name, queue in self.queues.queues.items():
            here = sorted(number for number, tickets in self.waiting.items() if name in tickets)
            assert queue.ids == here
            told = queue.tickets_of(here)
            assert told.queued.tolist() == [self.waiting[number][name].queued for number in here]
            assert told.player.tolist() == [m.player for number in here for m in self.waiting[number][name].members]
            assert queue.players == len(told.player)
        offers = {offer.id: set(offer.proposal.tickets) for offer in self.queues.offers}
        assert offers == {offer: set(self._of(offer)) for offer in self.accepted}
        places = [*self.waiting, *self.told, *self.done]
        assert sorted(places) == list(range(1, self.next_ticket))  # nobody is lost, and nobody is in two places

    def _accept(self, player):
        offer = next(self.asked[one] for one in self.asked if player in self._players(one))
        self.accepted[offer].add(player)
        everybody = {one for ticket in self._of(offer) for one in self._players(ticket)}
        begun = self.queues.accept(player)
        if self.accepted[offer] != everybody:
            assert begun is None
            return
        assert begun.id == offer
        for ticket in self._of(offer):
            del self.asked[ticket]
            self.waiting[ticket] = self.told.pop(ticket)
            self._end(ticket, "matched")
        del self.accepted[offer], self.deadline[offer]

    def _off(self, offer, gone):
        for ticket in self._of(offer):
            del self.asked[ticket]
            self.waiting[ticket] = self.told.pop(ticket)
        for ticket, why in gone.items():
            self._end(ticket, why)
        del self.accepted[offer], self.deadline[offer]

    def _end(self, ticket, why):
        del self.waiting[ticket]
        self.done[ticket] = why
        self.seen[why] += 1

    def _of(self, offer):
        return [ticket for ticket, own in self.asked.items() if own == offer]

    def _players(self, ticket):
        return {member.player for member in next(iter(self.told[ticket].values())).members}

    def _who_is_asked(self):
        return sorted(player for ticket in self.asked for player in self._players(ticket))


COURSES = {
    "pairs and duels": {"pairs": POLICIES["near"], "duels": Policy(team_size=1, max_wait=900.0, steps=HASTY)},
    "three teams and roles": {
        "three": Policy(team_size=1, teams=3, steps=HASTY, overdue_after=30.0, max_odds=None, **AT_ONCE),
        "roles": Policy(team_size=2, roles={"guard": 1, "healer": 1}, steps=HASTY, max_wait=300.0),
    },
    "free for all and smaller teams": {
        "all": Policy(team_size=1, teams=4, max_odds=None, steps=HASTY),
        "smaller": Policy(team_size=3, min_team_size=1, smaller_after=30.0, max_rating_spread=150.0, steps=HASTY),
    },
}


@pytest.mark.parametrize("name", COURSES)
def test_whatever_happens_nobody_is_lost_doubled_or_matched_against_a_rule(name):
    machine = type("Machine", (Course,), {"policies": COURSES[name], "seen": Counter()})
    case = machine.TestCase
    case.settings = settings(fuzz, max_examples=25, stateful_step_count=40)
    case().runTest()
    assert machine.seen["matched"] > 0 < machine.seen["declined"] + machine.seen["lapsed"], machine.seen
