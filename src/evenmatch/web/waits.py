"""What the latest offers say of a queue: how long players of a level waited, and how even the matches were."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import NamedTuple

from evenmatch.service.queueing.recently import Recent

NEAR = (5.0, 10.0, 20.0, 100.0)  # percentiles to each side: the closest in which enough have waited
ENOUGH = 8  # tickets
MATCHES = 5  # offers
LEVELS = ((0, 20), (20, 40), (40, 60), (60, 80), (80, 100))


class Wait(NamedTuple):
    """What tickets of some percentiles waited: half of them `half` seconds or less, nine of ten `most`.

    low, high  the percentiles;  tickets  how many of them
    """

    low: float
    high: float
    tickets: int
    half: float
    most: float


class Share(NamedTuple):
    """What half of some numbers are at most, and what nine of ten are."""

    half: float
    most: float


class Evenness(NamedTuple):
    """How even the matches were that a queue offered.

    matches     how many
    spread      percentiles between the lowest and the highest player
    favourite   the foretold chance of the team more likely to win, 0.5..1; of three and more, against the weakest
    wait        seconds of each ticket
    """

    matches: int
    spread: Share
    favourite: Share
    wait: Share


def evenness(recent: Sequence[Recent]) -> dict[str, Evenness]:
    """How even the latest offers were, by queue; of those that offered enough."""
    found = {}
    for queue in sorted({one.queue for one in recent}):
        offers = [one for one in recent if one.queue == queue]
        waits = [wait for one in offers for wait in one.waits]
        if len(offers) >= MATCHES and len(waits) >= MATCHES:
            found[queue] = Evenness(
                matches=len(offers),
                spread=_share([one.spread for one in offers]),
                favourite=_share([max(one.odds, 1 - one.odds) for one in offers]),
                wait=_share(waits),
            )
    return found


def _share(values: Sequence[float]) -> Share:
    tenths = quantiles(values, n=10, method="inclusive")
    return Share(tenths[4], tenths[8])


def expected(recent: Sequence[Recent], percentile: float) -> Wait | None:
    """What tickets near this percentile waited until they were offered a match; None where too few were."""
    for near in NEAR:
        found = _of(recent, percentile - near, percentile + near)
        if found is not None:
            return found
    return None


def by_level(recent: Sequence[Recent]) -> list[Wait]:
    """The same for each fifth of the ladder, the lowest first; those where enough waited."""
    return [found for low, high in LEVELS if (found := _of(recent, low, high)) is not None]


def _of(recent: Sequence[Recent], low: float, high: float) -> Wait | None:
    waits = [
        wait
        for offer in recent
        for wait, at in zip(offer.waits, offer.percentiles, strict=True)
        if low <= at < high or (at == high == 100)
    ]
    if len(waits) < ENOUGH:
        return None
    return Wait(max(low, 0.0), min(high, 100.0), len(waits), *_share(waits))
