"""Tickets of players who joined a queue, stored without the queue service."""

import numpy as np

from evenmatch.queues import queue_sql
from evenmatch.queues.queue_sql import Party, TicketRow

SECOND = 1_000_000


def member(player, percentile, *, loose):
    return {
        **{"name": f"p{player}", "id": player, "rating": 1500.0 + 10 * percentile, "percentile": percentile},
        **{"newcomer": False, "within": 2.0, "loose": loose, "roles": [], "ping": {}, "max_ping": None, "avoid": []},
        **{"regions": [], "attributes": {}, "vetoes": [], "avoid_unknown": []},
    }


def store_joins(service, ladder, times, queue="ranked", first=1):
    """Store the tickets of single players who joined at these times; every fourth is strict."""
    rng = np.random.default_rng(first)
    rows = [
        TicketRow(
            *(first + index, first + index, queue_sql.WAITING, int(queued), int(queued)),
            Party(None, (queue,), (member(first + index, float(rng.uniform(0, 100)), loose=index % 4 > 0),)),
        )
        for index, queued in enumerate(times)
    ]
    with service.database.write() as store:
        queue_sql.insert_tickets(store, store.head(ladder).ladder, rows)


def evenly(start, seconds, count):
    return start + (np.arange(count) * seconds * SECOND / count).astype(np.int64)
