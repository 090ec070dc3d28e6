"""The latest offers of a ladder's queues: how even the matches were, and how long their tickets had waited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import offers, tickets


class RecentOffer(NamedTuple):
    """An offer at the time it was made.

    state        open, made (the match began) or off (cancelled)
    odds         predicted score of each team; None: the ladder's system cannot predict such a match
    spread       percentiles between the lowest and the highest player
    players      number of offered players; of a backfill, only the new ones
    waits        waiting time in seconds of each ticket that is still stored, in the order of the teams
    map          None: the queue has none
    percentiles  mean percentile of the players of each of these tickets, at the time of joining
    """

    offer: int
    queue: str
    state: str
    made_at: int
    odds: tuple[float, ...] | None
    spread: float
    region: str | None
    players: int
    waits: tuple[float, ...]
    percentiles: tuple[float, ...]
    map: str | None = None


def recent(store: Store, ladder: int, limit: int) -> list[RecentOffer]:
    """A ladder's latest offers, newest first, at most `limit`."""
    latest = offers.read_latest(store, ladder, limit)
    numbers = sorted({slot["ticket"] for offer in latest for slot in offer.chairs})
    stored = tickets.read(store, ladder, numbers)
    return [_recent(offer, stored) for offer in latest]


def _recent(offer: offers.OfferRow, stored: dict[int, tickets.TicketRow]) -> RecentOffer:
    numbers = dict.fromkeys(slot["ticket"] for slot in offer.chairs)
    own = [stored[number] for number in numbers if number in stored]
    return RecentOffer(
        offer=offer.offer,
        queue=offer.queue,
        state=offer.state,
        made_at=offer.made_at,
        odds=None if offer.body["odds"] is None else tuple(offer.body["odds"]),
        spread=offer.body["spread"],
        region=offer.body["region"],
        map=offer.body.get("map"),
        players=len(offer.chairs),
        waits=tuple(max(offer.made_at - ticket.queued_at, 0) / SECOND for ticket in own),
        percentiles=tuple(float(np.mean([member["percentile"] for member in ticket.party.members])) for ticket in own),
    )
