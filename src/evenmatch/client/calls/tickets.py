"""Players wait for a match: join, look, answer, leave."""

from __future__ import annotations

import time

from evenmatch.client.call import Call, at, delete, get, nothing, post
from evenmatch.client.operation import Patient, conversation, operation
from evenmatch.client.talk import Talk, ask
from evenmatch.http.models.queues import Done, JoinQueue, Say, TicketTold

LONG = 20.0  # seconds of one long poll: well within a queue's heartbeat
OVER = frozenset({"matched", "gone"})


class Tickets:
    """What a game's backend does for its players, or a player's client with a token of theirs."""

    @operation
    def join_queue(self, ladder: str, party: JoinQueue) -> Call[Done]:
        """A party wants a match, in one queue or several; the first match takes it out of all.

        Sent again after a failure only with a `request_id`, by which the service knows it.

        >>> party = JoinQueue(queues=["main"], members=[Seeker(player="ann", within=5)], request_id="ann-17")
        >>> client.join_queue("arena", party).ticket
        12
        """
        return post(Done, at("ladders", ladder, "tickets"), party, again=party.request_id is not None)

    @operation
    def ticket(self, ladder: str, ticket: int, *, after: int | None = None, wait: float = 0.0) -> Call[TicketTold]:
        """A ticket, and what it waits for; with `after` and `wait` (seconds) once it has changed.

        Asking is a sign of life.

        >>> seen = client.ticket("arena", 12)
        >>> seen = client.ticket("arena", 12, after=seen.change, wait=20)
        """
        query = {"after": after, "wait": wait}
        return get(TicketTold, at("ladders", ladder, "tickets", ticket), query, wait=wait)

    @operation
    def accept_offer(self, ladder: str, ticket: int, say: Say) -> Call[Done]:
        """A player of the ticket, or all of them, accept the match that is offered. Saying it twice is harmless.

        >>> client.accept_offer("arena", 12, Say(player="ann"))
        """
        return post(Done, at("ladders", ladder, "tickets", ticket, "accept"), say, again=True)

    @operation
    def decline_offer(self, ladder: str, ticket: int, say: Say) -> Call[Done]:
        """A player declines: the ticket is gone, the others wait again with their age."""
        return post(Done, at("ladders", ladder, "tickets", ticket, "decline"), say)

    @operation
    def leave_queue(self, ladder: str, ticket: int) -> Call[Done]:
        """The party waits no longer. While a match is offered, that is to decline it."""
        return delete(Done, at("ladders", ladder, "tickets", ticket))

    @operation
    def heartbeat(self, ladder: str, ticket: int) -> Call[None]:
        """The party is still there. Who asks for the ticket now and then need not say so."""
        return Call("POST", at("ladders", ladder, "tickets", ticket, "heartbeat"), nothing, again=True)

    @conversation
    def wait_for_match(
        self: Patient, ladder: str, ticket: int, *, accept: bool = False, timeout: float | None = None
    ) -> Talk[TicketTold]:
        """A ticket once it is matched or gone, by long polls, which are a sign of life; its `state` says which.

        accept   accept each offer for the whole party; otherwise its players do so themselves
        timeout  seconds after which the ticket is told as it is; None: never

        >>> told = client.wait_for_match("arena", 12, accept=True)
        >>> told.match.match_id if told.match else told.ended
        'q-main-7'
        """
        end = None if timeout is None else time.monotonic() + timeout
        seen = yield from ask(_look(ladder, ticket), self.patience)
        while seen.state not in OVER:
            left = LONG if end is None else min(LONG, end - time.monotonic())
            if left <= 0:
                break
            if accept and seen.offer is not None and not all(seen.offer.own.values()):
                yield from ask(_accept(ladder, ticket, seen.offer.offer), self.patience)
            seen = yield from ask(_look(ladder, ticket, seen.change, left), self.patience)
        return seen


def _look(ladder: str, ticket: int, after: int | None = None, wait: float = 0.0) -> Call[TicketTold]:
    return get(TicketTold, at("ladders", ladder, "tickets", ticket), {"after": after, "wait": wait}, wait=wait)


def _accept(ladder: str, ticket: int, offer: int) -> Call[Done]:
    return post(Done, at("ladders", ladder, "tickets", ticket, "accept"), Say(offer=offer), again=True)
