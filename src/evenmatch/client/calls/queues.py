"""Queues: policy, rules, waiting players, penalties."""

from __future__ import annotations

from datetime import datetime

from evenmatch.client.call import Call, delete, get, new_key, nothing, path_of, put
from evenmatch.client.operation import operation
from evenmatch.http.models.queues import (
    ExperimentOut,
    FilterChange,
    FilterOut,
    PenaltyOut,
    QueueAuditOut,
    QueueOut,
    QueuesPage,
    SetQueue,
    StartExperiment,
    TicketOf,
)


class QueueCalls:
    """The queues of a ladder, and queue penalties."""

    @operation
    def queues(self, ladder: str) -> Call[QueuesPage]:
        """The queues of a ladder, and the players waiting in each."""
        return get(QueuesPage, path_of("ladders", ladder, "queues"))

    @operation
    def queue(self, ladder: str, queue: str) -> Call[QueueOut]:
        """A queue, and its waiting players by percentile and region."""
        return get(QueueOut, path_of("ladders", ladder, "queues", queue))

    @operation
    def queue_audit(
        self, ladder: str, queue: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Call[QueueAuditOut]:
        """Predictions of the matches that a queue formed in a period, compared with the reported results."""
        period = {"since": since, "until": until}
        return get(QueueAuditOut, path_of("ladders", ladder, "queues", queue, "audit"), period)

    @operation
    def set_queue(self, ladder: str, queue: str, setup: SetQueue) -> Call[QueueOut]:
        """Create a queue or replace its policy and rules; waiting players keep their place.

        >>> client.set_queue("arena", "main", SetQueue(policy={"preset": "balanced", "team_size": 6}))
        """
        return put(QueueOut, path_of("ladders", ladder, "queues", queue), setup)

    @operation
    def start_experiment(self, ladder: str, queue: str, experiment: StartExperiment) -> Call[ExperimentOut]:
        """Let a second policy share a queue with its own. Refused while another experiment runs.

        >>> client.start_experiment("arena", "main", StartExperiment(policy={"preset": "quick"}, share=0.5, seed=7))
        """
        return put(ExperimentOut, _experiment_path(ladder, queue), experiment)

    @operation
    def stop_experiment(self, ladder: str, queue: str) -> Call[ExperimentOut]:
        """Stop a queue's experiment: its own policy decides alone. The audit still compares its matches."""
        return delete(ExperimentOut, _experiment_path(ladder, queue))

    @operation
    def remove_queue(self, ladder: str, queue: str, *, force: bool = False) -> Call[None]:
        """Remove a queue. Refused while players wait in it, unless `force` is true, which ends their tickets."""
        return Call(
            "DELETE", path_of("ladders", ladder, "queues", queue), nothing, {"force": force}, idempotency_key=new_key()
        )

    @operation
    def penalty(self, ladder: str, player: str) -> Call[PenaltyOut]:
        """A player's queue penalty for declined or missed offers and quit matches."""
        return get(PenaltyOut, path_of("ladders", ladder, "penalties", player))

    @operation
    def forgive(self, ladder: str, player: str) -> Call[None]:
        """Remove a player's penalty, so that they may queue at once."""
        return Call("DELETE", path_of("ladders", ladder, "penalties", player), nothing, idempotency_key=new_key())

    @operation
    def get_filter(self, ladder: str, player: str) -> Call[FilterOut]:
        """The filter that a player keeps on a ladder, used where a join names no value."""
        return get(FilterOut, path_of("ladders", ladder, "players", player, "filter"))

    @operation
    def set_filter(self, ladder: str, player: str, chosen: FilterChange) -> Call[FilterOut]:
        """Keep a player's filter; if they wait, it applies at once, and they keep their place.

        >>> client.set_filter("arena", "ann", FilterChange(within=5, loose=False, regions=["eu"]))
        """
        return put(FilterOut, path_of("ladders", ladder, "players", player, "filter"), chosen)

    @operation
    def forget_filter(self, ladder: str, player: str) -> Call[None]:
        """Forget a player's filter."""
        return Call(
            "DELETE", path_of("ladders", ladder, "players", player, "filter"), nothing, idempotency_key=new_key()
        )

    @operation
    def ticket_of_player(self, ladder: str, player: str) -> Call[TicketOf]:
        """The ticket or match of a player, for a game client that was restarted."""
        return get(TicketOf, path_of("ladders", ladder, "players", player, "ticket"))


def _experiment_path(ladder: str, queue: str) -> str:
    return path_of("ladders", ladder, "queues", queue, "experiment")
