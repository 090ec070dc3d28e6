"""How long players of a level waited of late: what somebody who asks may expect."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import NamedTuple

from evenmatch.service.queueing.recently import Recent

NEAR = (5.0, 10.0, 20.0, 100.0)  # percentiles to each side: the closest in which enough have waited
ENOUGH = 8  # tickets
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
    tenths = quantiles(waits, n=10, method="inclusive")
    return Wait(max(low, 0.0), min(high, 100.0), len(waits), tenths[4], tenths[8])
