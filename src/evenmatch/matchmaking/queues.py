"""Several queues and the matches offered from them: who waits, who is asked, who said yes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenmatch.errors import BadParameterError, InputError, UnknownNameError
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.proposal import Proposal
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.ticket import Ticket
from evenmatch.matchmaking.view import check_policy
from evenmatch.matchmaking.waiting import Waiting, why

SECOND = 1_000_000
LONGEST = 86_400  # seconds that players may be given to answer


@dataclass(frozen=True)
class Offer:
    """A proposed match whose players are asked. `deadline` in microseconds since the epoch."""

    id: int
    queue: str
    proposal: Proposal
    deadline: int


@dataclass(frozen=True)
class Ticked:
    """What a tick did: new offers; offers that lapsed; tickets that were given up, ascending.

    A ticket that one of its queues gives up is given up in all.
    """

    offers: tuple[Offer, ...]
    lapsed: tuple[Offer, ...]
    expired: tuple[int, ...]


class Queues:
    """Queues by name, each with its policy, and the offers made from them. It has no clock.

    A ticket may stand in several queues, and a player in one ticket only: the first match takes it out of all. An offer
    becomes a match when all its players have accepted; when one declines, or says nothing until the deadline, their
    ticket is gone, and all others wait again as if they had never left, with their age.

    accept_within  seconds that players have to answer; BadParameterError for 0 or less, or more than a day
    """

    def __init__(self, policies: Mapping[str, Policy], *, accept_within: float = 20.0) -> None:
        if not policies:
            raise InputError("no queue; accepted is one policy at the least, by the name of its queue")
        for name, policy in policies.items():
            check_policy(policy, f"queue {name!r}")
        if not (isinstance(accept_within, int | float) and 0 < accept_within <= LONGEST):
            raise BadParameterError(
                f"accept_within={accept_within!r}: accepted is a number of seconds above 0 and at most {LONGEST}"
            )
        self.policies = dict(policies)
        self.queues = {name: Queue() for name in policies}
        self.accept_within = accept_within
        self._tickets: dict[int, dict[str, Ticket]] = {}  # by number and queue, waiting or offered
        self._ticket_of: dict[int, int] = {}  # by player
        self._offers: dict[int, Offer] = {}
        self._asked: dict[int, int] = {}  # offer by ticket
        self._yes: dict[int, set[int]] = {}  # players by offer
        self._next = 1

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The offers that wait for an answer, the first made first."""
        return tuple(self._offers.values())

    def join(self, tickets: Mapping[str, Ticket]) -> None:
        """Let a party wait in the named queues; one ticket each, the same but for percentiles and ratings.

        Raises UnknownNameError for a name without a queue, InputError where the tickets are not of one party, or the
        ticket or one of its players waits already. Then nothing has changed.
        """
        number, players = self._check_party(tickets)
        joined: list[str] = []
        try:
            for name, ticket in tickets.items():
                self.queues[name].join(ticket)
                joined.append(name)
        except InputError:
            for name in joined:
                self.queues[name].leave(number)
            raise
        self._tickets[number] = dict(tickets)
        self._ticket_of.update(dict.fromkeys(players, number))

    def _check_party(self, tickets: Mapping[str, Ticket]) -> tuple[int, list[int]]:
        """The number of these tickets and their players, who may join; raises as `join` does."""
        if not tickets:
            raise InputError("no queue is named; accepted is one at the least")
        first = next(iter(tickets.values()))
        players = [member.player for member in first.members]
        for name in tickets:
            if name not in self.queues:
                raise UnknownNameError("queue", name, self.queues)
        if first.id in self._tickets:
            raise InputError(f"ticket {first.id} waits already; accepted is a number that no waiting ticket has")
        for player in players:
            if player in self._ticket_of:
                raise InputError(
                    f"player {player} waits already, in ticket {self._ticket_of[player]}; accepted are those who do not"
                )
        for name, ticket in tickets.items():
            same = (ticket.id, ticket.queued) == (first.id, first.queued)
            if not same or [member.player for member in ticket.members] != players:
                raise InputError(f"ticket {first.id} differs between queues; accepted is one number, time and party")
            if len(players) > self.policies[name].team_size:
                raise InputError(
                    f"ticket {first.id} is a party of {len(players)}; accepted in queue {name!r} are at most "
                    f"{self.policies[name].team_size}"
                )
        return first.id, players

    def leave(self, ticket: int) -> None:
        """Take a party out of all queues, which declines an offer. Raises InputError where it does not wait."""
        if ticket not in self._tickets:
            raise InputError(f"ticket {ticket} does not wait; accepted is one that does")
        if ticket in self._asked:
            self._break(self._offers[self._asked[ticket]], {ticket})
        else:
            self._take_out(ticket)
            self._forget(ticket)

    def tick(self, now: int) -> Ticked:
        """Let offers lapse, and make new ones; the queue whose oldest ticket waits longest goes first."""
        lapsed = tuple(offer for offer in self.offers if offer.deadline <= now)
        for offer in lapsed:
            said = self._yes[offer.id]
            silent = {
                self._ticket_of[player] for team in offer.proposal.players for player in team if player not in said
            }
            self._break(offer, silent)
        offers: list[Offer] = []
        expired: set[int] = set()
        for name in sorted(self.queues, key=lambda one: (self._oldest(one), one)):
            found = propose(self.queues[name], now, self.policies[name])
            expired |= set(found.expired.tolist())
            for proposal in found:
                offer = Offer(self._next, name, proposal, now + round(self.accept_within * SECOND))
                self._next += 1
                self._offers[offer.id], self._yes[offer.id] = offer, set()
                for ticket in proposal.tickets:
                    self._take_out(ticket)
                    self._asked[ticket] = offer.id
                offers.append(offer)
        gone = sorted(ticket for ticket in expired if ticket in self._tickets and ticket not in self._asked)
        for ticket in gone:
            self._take_out(ticket)
            self._forget(ticket)
        return Ticked(tuple(offers), lapsed, tuple(gone))

    def accept(self, player: int) -> Offer | None:
        """Note that a player accepts; the offer, if everybody has: then its match begins, and its tickets are done.

        Raises InputError where this player is not asked. Saying it twice is harmless.
        """
        offer = self._offer_to(player)
        said = self._yes[offer.id]
        said.add(player)
        if len(said) < sum(map(len, offer.proposal.players)):
            return None
        for ticket in offer.proposal.tickets:
            self._forget(ticket)
        self._close(offer)
        return offer

    def decline(self, player: int) -> Offer:
        """Note that a player declines: their ticket is gone, the others wait again. The offer, which is off.

        Raises InputError where this player is not asked.
        """
        offer = self._offer_to(player)
        self._break(offer, {self._ticket_of[player]})
        return offer

    def why(self, ticket: int, now: int) -> dict[str, Waiting]:
        """What a ticket waits for, by the names of its queues. Raises InputError where it does not wait."""
        if ticket not in self._tickets or ticket in self._asked:
            raise InputError(f"ticket {ticket} does not wait; accepted is one that does")
        return {name: why(ticket, self.queues[name], now, self.policies[name]) for name in self._tickets[ticket]}

    def _offer_to(self, player: int) -> Offer:
        ticket = self._ticket_of.get(player)
        if ticket is None or ticket not in self._asked:
            raise InputError(f"player {player} is not asked about a match; accepted is one who is")
        return self._offers[self._asked[ticket]]

    def _break(self, offer: Offer, gone: set[int]) -> None:
        """Take back an offer: tickets in `gone` are done, the others wait again with their age."""
        self._close(offer)
        for ticket in offer.proposal.tickets:
            if ticket in gone:
                self._forget(ticket)
                continue
            for name, told in self._tickets[ticket].items():
                self.queues[name].join(told, arriving=False)

    def _close(self, offer: Offer) -> None:
        del self._offers[offer.id], self._yes[offer.id]
        for ticket in offer.proposal.tickets:
            del self._asked[ticket]

    def _take_out(self, ticket: int) -> None:
        for name in self._tickets[ticket]:
            self.queues[name].leave(ticket)

    def _forget(self, ticket: int) -> None:
        told = next(iter(self._tickets.pop(ticket).values()))
        for member in told.members:
            del self._ticket_of[member.player]

    def _oldest(self, name: str) -> int:
        queue = self.queues[name]
        order = queue.order()
        return int(queue.tickets["queued"][order].min()) if len(order) else 2**62
