"""Statistics of a queue's latest offers: waits by level, and evenness of the matches."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import NamedTuple

from evenmatch.service.queues.recent_offers import RecentOffer

NEAR = (5.0, 10.0, 20.0, 100.0)  # percentiles to each side: the smallest range with enough tickets is used
ENOUGH = 8  # tickets needed for a statistic of waits
MATCHES = 5  # offers needed for a statistic of evenness
LEVELS = ((0, 20), (20, 40), (40, 60), (60, 80), (80, 100))


class Wait(NamedTuple):
    """The waits of tickets in a range of percentiles.

    low, high  the percentiles;  tickets  the number of tickets
    half, most  the median and the 90th percentile of the waits, seconds
    """

    low: float
    high: float
    tickets: int
    half: float
    most: float


class Share(NamedTuple):
    """The median and the 90th percentile of some numbers."""

    half: float
    most: float


class EvennessStatistics(NamedTuple):
    """The evenness of the matches that a queue offered.

    matches     the number of matches
    spread      percentiles between the lowest and the highest player
    favourite   predicted score of the favourite, 0..1; None: the ladder's system could not predict the matches
    wait        seconds of each ticket
    """

    matches: int
    spread: Share
    favourite: Share | None
    wait: Share


def evenness(recent: Sequence[RecentOffer]) -> dict[str, EvennessStatistics]:
    """Return the evenness of the latest offers by queue, for queues with at least MATCHES offers."""
    by_queue = {}
    for queue in sorted({offer.queue for offer in recent}):
        offers = [offer for offer in recent if offer.queue == queue]
        waits = [wait for offer in offers for wait in offer.waits]
        favourites = [max(offer.odds) for offer in offers if offer.odds is not None]
        if len(offers) >= MATCHES and len(waits) >= MATCHES:
            by_queue[queue] = EvennessStatistics(
                matches=len(offers),
                spread=_share([offer.spread for offer in offers]),
                favourite=_share(favourites) if len(favourites) >= MATCHES else None,
                wait=_share(waits),
            )
    return by_queue


def _share(values: Sequence[float]) -> Share:
    tenths = quantiles(values, n=10, method="inclusive")
    return Share(tenths[4], tenths[8])


def expected(recent: Sequence[RecentOffer], percentile: float) -> Wait | None:
    """Return the waits of tickets near this percentile until their offer; None if there are too few."""
    for near in NEAR:
        wait = _wait_between(recent, percentile - near, percentile + near)
        if wait is not None:
            return wait
    return None


def by_level(recent: Sequence[RecentOffer]) -> list[Wait]:
    """Return the waits in each fifth of the ladder, the lowest first; without fifths with too few tickets."""
    return [wait for low, high in LEVELS if (wait := _wait_between(recent, low, high)) is not None]


def _wait_between(recent: Sequence[RecentOffer], low: float, high: float) -> Wait | None:
    waits = [
        wait
        for offer in recent
        for wait, percentile in zip(offer.waits, offer.percentiles, strict=True)
        if low <= percentile < high or (percentile == high == 100)
    ]
    if len(waits) < ENOUGH:
        return None
    return Wait(max(low, 0.0), min(high, 100.0), len(waits), *_share(waits))
