"""The regions of a queue: pings by the queue's own numbers, and which region gives its number to a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.tickets import ANYWHERE, MOST_REGIONS, Masks, Tickets, Whole


def pings_of(tickets: Tickets, names: Sequence[str]) -> tuple[Floats, Masks]:
    """Pings by the regions of these names, and the region bits where each ticket can play."""
    count, known = len(tickets), len(names)
    if not known:
        return np.empty((count, 0)), np.full(count, ANYWHERE, np.uint64)
    pings, able = np.full((count, known), np.inf), np.zeros(count, np.uint64)
    for index, name in enumerate(tickets.region_names):
        if name not in names:  # none of these tickets can play there
            continue
        column = names.index(name)
        pings[:, column] = tickets.ping[:, index]
        able |= (tickets.ping[:, index] < np.inf).astype(np.uint64) << np.uint64(column)
    anywhere = np.isnan(tickets.ping).all(axis=1)
    pings[anywhere] = 0.0
    able[anywhere] = ANYWHERE
    return pings, able


def region_weights(named: Flags) -> Floats:
    """The weight of each region, float64 (R,): every ticket gives one, in equal parts to the regions that it names.

    named: bool (T, R)
    """
    return np.asarray((named / np.maximum(named.sum(axis=1, keepdims=True), 1)).sum(axis=0))


def replaceable(
    fresh: Sequence[str], lacking: int, known: Sequence[str], waiting: Masks, joining: Mapping[str, float]
) -> Whole:
    """The places of `lacking` known regions whose weight is below that of every fresh one, the least first.

    So a player who names many regions that no other ticket names takes no place from others.

    waiting  the region bits of each waiting ticket;  joining  the weight of each region among the joining tickets
    Raises InputError if there are not enough.
    """
    bits = np.arange(len(known), dtype=np.uint64)
    limited = waiting[waiting != ANYWHERE]
    weights = region_weights(limited[:, None] >> bits & np.uint64(1) == 1)
    weights += [joining.get(name, 0.0) for name in known]
    least = np.argsort(weights, kind="stable")[:lacking]
    if lacking > len(least) or weights[least[-1]] >= min(joining[name] for name in fresh):
        raise too_many("regions", fresh, MOST_REGIONS)
    return least


def too_many(what: str, names: Sequence[str], most: int) -> InputError:
    """The error that these regions or roles are too many for a queue."""
    return InputError(f"{what} {', '.join(names)} would be more than {most}; expected at most {most} in a queue")
