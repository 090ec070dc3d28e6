"""Queues: what they are, who waits, and what operators decide."""

from __future__ import annotations

from evenmatch.client.call import Call, at, get, nothing, put
from evenmatch.client.operation import operation
from evenmatch.http.models.queues import PenaltyTold, QueuesTold, QueueTold, SetQueue, TicketOf


class Queues:
    """The queues of a ladder."""

    @operation
    def queues(self, ladder: str) -> Call[QueuesTold]:
        """The queues of a ladder, and who waits in each."""
        return get(QueuesTold, at("ladders", ladder, "queues"))

    @operation
    def queue(self, ladder: str, queue: str) -> Call[QueueTold]:
        """A queue, and who waits in it, by percentile and region."""
        return get(QueueTold, at("ladders", ladder, "queues", queue))

    @operation
    def set_queue(self, ladder: str, queue: str, setup: SetQueue) -> Call[QueueTold]:
        """Make a queue, or replace its policy and rules; who waits there goes on waiting.

        >>> client.set_queue("arena", "main", SetQueue(policy={"preset": "balanced", "team_size": 6}))
        """
        return put(QueueTold, at("ladders", ladder, "queues", queue), setup)

    @operation
    def remove_queue(self, ladder: str, queue: str, *, force: bool = False) -> Call[None]:
        """Remove a queue. Refused while somebody waits there, unless forced: then their tickets are gone."""
        return Call("DELETE", at("ladders", ladder, "queues", queue), nothing, {"force": force}, again=True)

    @operation
    def penalty(self, ladder: str, player: str) -> Call[PenaltyTold]:
        """What a player waits out for having declined, been silent or quit."""
        return get(PenaltyTold, at("ladders", ladder, "penalties", player))

    @operation
    def forgive(self, ladder: str, player: str) -> Call[None]:
        """Forget a player's strikes: they may queue at once."""
        return Call("DELETE", at("ladders", ladder, "penalties", player), nothing, again=True)

    @operation
    def ticket_of_player(self, ladder: str, player: str) -> Call[TicketOf]:
        """Where a player waits or plays: for a client that was started anew."""
        return get(TicketOf, at("ladders", ladder, "players", player, "ticket"))
