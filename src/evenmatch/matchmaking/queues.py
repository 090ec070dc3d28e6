"""Several queues and the match offers from them, with the answers of the players."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenmatch.durations import SECOND
from evenmatch.errors import BadParameterError, InputError, UnknownNameError
from evenmatch.matchmaking.attributes import check_choices
from evenmatch.matchmaking.proposal import Proposal
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Ticket
from evenmatch.matchmaking.view import check_policy
from evenmatch.matchmaking.waiting import Waiting, why
from evenmatch.policy import Policy

LONGEST = 86_400  # largest allowed accept_within, in seconds


@dataclass(frozen=True)
class Offer:
    """A proposed match that waits for its players' answers. `deadline`: microseconds since the epoch."""

    id: int
    queue: str
    proposal: Proposal
    deadline: int


@dataclass(frozen=True)
class TickResult:
    """The result of a tick: new offers, lapsed offers, and the ids of expired tickets, ascending.

    A ticket that expires in one queue is removed from all.
    """

    offers: tuple[Offer, ...]
    lapsed: tuple[Offer, ...]
    expired: tuple[int, ...]


class Queues:
    """Queues by name, each with its policy, and the offers from them. It has no clock.

    A ticket may be in several queues, but a player in one ticket only; an offer removes the ticket from all queues. An
    offer becomes a match when all its players have accepted. If a player declines or does not answer before the
    deadline, that player's ticket is removed, and the other tickets return to their queues with their original time.

    accept_within  seconds to answer; BadParameterError unless above 0 and at most a day
    """

    def __init__(self, policies: Mapping[str, Policy], *, accept_within: float = 20.0) -> None:
        if not policies:
            raise InputError("no queue is given; expected at least one policy by queue name")
        for name, policy in policies.items():
            check_policy(policy, f"queue {name!r}")
        if not (isinstance(accept_within, int | float) and 0 < accept_within <= LONGEST):
            raise BadParameterError(
                f"accept_within={accept_within!r}: expected a number of seconds above 0 and at most {LONGEST}"
            )
        self.policies = dict(policies)
        self.queues = {name: Queue() for name in policies}
        self.accept_within = accept_within
        self._tickets: dict[int, dict[str, Ticket]] = {}  # by number and queue, waiting or offered
        self._ticket_of: dict[int, int] = {}  # by player
        self._offers: dict[int, Offer] = {}
        self._offered: dict[int, int] = {}  # offer by ticket
        self._yes: dict[int, set[int]] = {}  # players by offer
        self._next = 1

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The open offers, oldest first."""
        return tuple(self._offers.values())

    def join(self, tickets: Mapping[str, Ticket]) -> None:
        """Add a party to the named queues, with one ticket for each; they may differ only in percentiles and ratings.

        Raises, without any change, UnknownNameError for an unknown queue and InputError if the tickets are not of one
        party, if the ticket or one of its players is already waiting, or for an attribute or map that is not declared.
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
        """Check that the tickets may join and return their id and players; raises like `join`."""
        if not tickets:
            raise InputError("no queue is given; expected at least one")
        first = next(iter(tickets.values()))
        players = [member.player for member in first.members]
        for name in tickets:
            if name not in self.queues:
                raise UnknownNameError("queue", name, self.queues)
        if first.id in self._tickets:
            raise InputError(f"ticket {first.id} is already waiting; expected an unused ticket number")
        for player in players:
            if player in self._ticket_of:
                raise InputError(
                    f"player {player} is already waiting, in ticket {self._ticket_of[player]}; expected others"
                )
        for name, ticket in tickets.items():
            is_same = (ticket.id, ticket.queued) == (first.id, first.queued)
            if not is_same or [member.player for member in ticket.members] != players:
                raise InputError(f"ticket {first.id} differs between queues; expected the same id, time and party")
            if len(players) > self.policies[name].team_size:
                raise InputError(
                    f"ticket {first.id} is a party of {len(players)}; expected in queue {name!r}: at most "
                    f"{self.policies[name].team_size}"
                )
        choosing = {f"player {member.player}": member for member in first.members}
        check_choices(choosing, {name: self.policies[name] for name in tickets})
        return first.id, players

    def leave(self, ticket: int) -> None:
        """Remove a party from all queues; this declines an open offer. Raises InputError if it is not waiting."""
        if ticket not in self._tickets:
            raise InputError(f"ticket {ticket} is not waiting")
        if ticket in self._offered:
            self._cancel(self._offers[self._offered[ticket]], {ticket})
        else:
            self._take_out(ticket)
            self._forget(ticket)

    def tick(self, now: int) -> TickResult:
        """Cancel lapsed offers and create new ones; the queue with the longest-waiting ticket goes first."""
        lapsed = tuple(offer for offer in self.offers if offer.deadline <= now)
        for offer in lapsed:
            accepted = self._yes[offer.id]
            silent = {
                self._ticket_of[player] for team in offer.proposal.players for player in team if player not in accepted
            }
            self._cancel(offer, silent)
        offers: list[Offer] = []
        expired: set[int] = set()
        for name in sorted(self.queues, key=lambda queue: (self._oldest(queue), queue)):
            proposals = propose(self.queues[name], now, self.policies[name])
            expired |= set(proposals.expired.tolist())
            for proposal in proposals:
                offer = Offer(self._next, name, proposal, now + round(self.accept_within * SECOND))
                self._next += 1
                self._offers[offer.id], self._yes[offer.id] = offer, set()
                for ticket in proposal.tickets:
                    self._take_out(ticket)
                    self._offered[ticket] = offer.id
                offers.append(offer)
        removed = sorted(ticket for ticket in expired if ticket in self._tickets and ticket not in self._offered)
        for ticket in removed:
            self._take_out(ticket)
            self._forget(ticket)
        return TickResult(tuple(offers), lapsed, tuple(removed))

    def accept(self, player: int) -> Offer | None:
        """Record that a player accepts. Returns the offer if all players have accepted (the match begins), else None.

        Raises InputError if the player has no open offer. Repeated calls are harmless.
        """
        offer = self._offer_to(player)
        accepted = self._yes[offer.id]
        accepted.add(player)
        if len(accepted) < sum(map(len, offer.proposal.players)):
            return None
        for ticket in offer.proposal.tickets:
            self._forget(ticket)
        self._close(offer)
        return offer

    def decline(self, player: int) -> Offer:
        """Record that a player declines: removes their ticket, returns the others to the queues. Returns the offer.

        Raises InputError if the player has no open offer.
        """
        offer = self._offer_to(player)
        self._cancel(offer, {self._ticket_of[player]})
        return offer

    def why(self, ticket: int, now: int) -> dict[str, Waiting]:
        """Explain what a ticket waits for, by queue name. Raises InputError if it is not waiting."""
        if ticket not in self._tickets or ticket in self._offered:
            raise InputError(f"ticket {ticket} is not waiting")
        return {name: why(ticket, self.queues[name], now, self.policies[name]) for name in self._tickets[ticket]}

    def _offer_to(self, player: int) -> Offer:
        ticket = self._ticket_of.get(player)
        if ticket is None or ticket not in self._offered:
            raise InputError(f"player {player} has no open offer; expected a player with one")
        return self._offers[self._offered[ticket]]

    def _cancel(self, offer: Offer, removed: set[int]) -> None:
        """Cancel an offer: forget the tickets in `removed`, return the others to their queues with their age."""
        self._close(offer)
        for ticket in offer.proposal.tickets:
            if ticket in removed:
                self._forget(ticket)
                continue
            for name, entry in self._tickets[ticket].items():
                self.queues[name].join(entry, arriving=False)

    def _close(self, offer: Offer) -> None:
        del self._offers[offer.id], self._yes[offer.id]
        for ticket in offer.proposal.tickets:
            del self._offered[ticket]

    def _take_out(self, ticket: int) -> None:
        for name in self._tickets[ticket]:
            self.queues[name].leave(ticket)

    def _forget(self, ticket: int) -> None:
        entry = next(iter(self._tickets.pop(ticket).values()))
        for member in entry.members:
            del self._ticket_of[member.player]

    def _oldest(self, name: str) -> int:
        queue = self.queues[name]
        order = queue.order()
        return int(queue.tickets["queued"][order].min()) if len(order) else 2**62
