"""Tickets of waiting parties: join a queue, read the ticket, answer offers, leave."""

from __future__ import annotations

import time

from evenmatch.client.call import Call, delete, get, nothing, path_of, post
from evenmatch.client.operation import Patient, conversation, operation
from evenmatch.client.talk import Talk, ask
from evenmatch.http.models.queues import JoinRequest, OfferAnswer, TicketChange, TicketOut

LONG = 20.0  # seconds of one long poll: shorter than the default heartbeat limit of a queue, 30 s
OVER = frozenset({"matched", "gone"})


class TicketCalls:
    """Calls of a game backend for its players, or of a game client with a player's token."""

    @operation
    def join_queue(self, ladder: str, party: JoinRequest) -> Call[TicketChange]:
        """Put a party into one or several queues; its first match removes it from all of them.

        >>> party = JoinRequest(queues=["main"], members=[PartyMember(player="ann", within=5)], request_id="ann-17")
        >>> client.join_queue("arena", party).ticket
        12
        """
        return post(TicketChange, path_of("ladders", ladder, "tickets"), party, again=party.request_id is not None)

    @operation
    def ticket(self, ladder: str, ticket: int, *, after: int | None = None, wait: float = 0.0) -> Call[TicketOut]:
        """A ticket with its queues and offer; `after` and `wait` (seconds): wait until its `change` exceeds `after`.

        Each request counts as a heartbeat.

        >>> ticket = client.ticket("arena", 12)
        >>> ticket = client.ticket("arena", 12, after=ticket.change, wait=20)
        """
        query = {"after": after, "wait": wait}
        return get(TicketOut, path_of("ladders", ladder, "tickets", ticket), query, wait=wait)

    @operation
    def accept_offer(self, ladder: str, ticket: int, say: OfferAnswer) -> Call[TicketChange]:
        """Accept the offered match for one player of the ticket or for all. Repeating it changes nothing.

        >>> client.accept_offer("arena", 12, OfferAnswer(player="ann"))
        """
        return post(TicketChange, path_of("ladders", ladder, "tickets", ticket, "accept"), say, again=True)

    @operation
    def decline_offer(self, ladder: str, ticket: int, say: OfferAnswer) -> Call[TicketChange]:
        """Decline the offered match: this ticket ends; the others wait again and keep their waiting time."""
        return post(TicketChange, path_of("ladders", ladder, "tickets", ticket, "decline"), say)

    @operation
    def leave_queue(self, ladder: str, ticket: int) -> Call[TicketChange]:
        """Remove the party from its queues. If a match is offered, this declines it."""
        return delete(TicketChange, path_of("ladders", ladder, "tickets", ticket))

    @operation
    def heartbeat(self, ladder: str, ticket: int) -> Call[None]:
        """Report that the party is still waiting. Reading the ticket has the same effect."""
        return Call("POST", path_of("ladders", ladder, "tickets", ticket, "heartbeat"), nothing)

    @conversation
    def wait_for_match(
        self: Patient, ladder: str, ticket: int, *, accept: bool = False, timeout: float | None = None
    ) -> Talk[TicketOut]:
        """Wait by long polls, which count as heartbeats, until the ticket is matched or gone, and return it.

        Of a playlist, the ticket that gets the match is returned, whose `ladder` may be another one.

        accept   accept each offer for the whole party; otherwise its players must accept
        timeout  seconds after which the ticket is returned in whatever state it has; None: no limit

        >>> ticket = client.wait_for_match("arena", 12, accept=True)
        >>> ticket.match.match_id if ticket.match else ticket.ended
        'q-main-7'
        """
        end = None if timeout is None else time.monotonic() + timeout
        current = yield from _followed(self, ladder, ticket)
        while current.state not in OVER:
            wait = LONG if end is None else min(LONG, end - time.monotonic())
            if wait <= 0:
                break
            if accept and current.offer is not None and not all(current.offer.own.values()):
                yield from ask(_acceptance(current.ladder, current.ticket, current.offer.offer), self.patience)
            current = yield from _followed(self, current.ladder, current.ticket, current.change, wait)
        return current


def _followed(
    caller: Patient, ladder: str, ticket: int, after: int | None = None, wait: float = 0.0
) -> Talk[TicketOut]:
    """The ticket, or the one of its playlist that the service says to follow instead."""
    current = yield from ask(_ticket(ladder, ticket, after, wait), caller.patience)
    while current.follow is not None:
        current = yield from ask(_ticket(current.follow.ladder, current.follow.ticket), caller.patience)
    return current


def _ticket(ladder: str, ticket: int, after: int | None = None, wait: float = 0.0) -> Call[TicketOut]:
    return get(TicketOut, path_of("ladders", ladder, "tickets", ticket), {"after": after, "wait": wait}, wait=wait)


def _acceptance(ladder: str, ticket: int, offer: int) -> Call[TicketChange]:
    return post(
        TicketChange, path_of("ladders", ladder, "tickets", ticket, "accept"), OfferAnswer(offer=offer), again=True
    )
