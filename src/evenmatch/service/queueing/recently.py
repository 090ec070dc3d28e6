"""The matches that a ladder's queues offered of late: how even they were, and how long their tickets had waited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenmatch.ledger.store import Store
from evenmatch.service.queueing import offers, tickets

SECOND = 1_000_000


class Recent(NamedTuple):
    """An offer as it was made.

    state        open, made (the match began) or off
    odds         the chance of the first team; of the strongest against the weakest where there are more than two
    spread       percentiles between the lowest and the highest player
    players      how many were asked; of a running match with open seats, those who would come in
    waits        seconds, of each of its tickets that is still kept, in the order of the teams
    percentiles  the mean of each of these tickets' players, as they were on joining
    """

    offer: int
    queue: str
    state: str
    made_at: int
    odds: float
    spread: float
    region: str | None
    players: int
    waits: tuple[float, ...]
    percentiles: tuple[float, ...]


def recent(store: Store, ladder: int, limit: int) -> list[Recent]:
    """A ladder's offers, the latest first, at most so many."""
    found = offers.latest(store, ladder, limit)
    numbers = sorted({chair["ticket"] for one in found for chair in one.chairs})
    kept = tickets.read(store, ladder, numbers)
    return [_recent(one, kept) for one in found]


def _recent(one: offers.OfferRow, kept: dict[int, tickets.TicketRow]) -> Recent:
    of = [kept[number] for number in dict.fromkeys(chair["ticket"] for chair in one.chairs) if number in kept]
    return Recent(
        offer=one.offer,
        queue=one.queue,
        state=one.state,
        made_at=one.made_at,
        odds=one.body["odds"],
        spread=one.body["spread"],
        region=one.body["region"],
        players=len(one.chairs),
        waits=tuple(max(one.made_at - ticket.queued_at, 0) / SECOND for ticket in of),
        percentiles=tuple(float(np.mean([member["percentile"] for member in ticket.party.members])) for ticket in of),
    )
