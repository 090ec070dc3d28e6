"""Record types of a queue and its view, as numpy structured types for the kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]

_PARTY = [
    ("low", "f8"),  # the members' lowest and highest percentile; with uncertainty, the ends of their bands
    ("high", "f8"),
    ("rating_low", "f8"),
    ("rating_high", "f8"),
    ("size", "i4"),
    ("newcomers", "i4"),  # members who are not placed
    ("rating_sum", "f8"),
    ("able", "u8"),  # bit r: all members can play in region r
    ("players", "u8"),  # 64-bit filters of members and of players to avoid: a fast test for possible conflicts
    ("names", "u8"),
    ("id", "i8"),
    ("chosen_lo", "f8"),  # the union of the members' chosen filters
    ("chosen_hi", "f8"),
    ("first", "i8"),  # index of the first member in the pool
    ("named_first", "i8"),
    ("named_count", "i4"),
    ("loose", "?"),
]
TICKET = np.dtype([("queued", "i8"), *_PARTY, ("alive", "?")], align=True)
WAITING = np.dtype(  # fields read in every step of the search come first, in one cache line
    [
        ("waited", "f8"),  # seconds
        (
            "spread",
            "f8",
        ),  # spread of percentiles up to which its match may pass over others, with that of the party
        *_PARTY,
        ("slot", "i8"),
        ("lo", "f8"),  # the present window, and the widest one
        ("hi", "f8"),
        ("last_lo", "f8"),
        ("last_hi", "f8"),
    ],
    align=True,
)
MEMBER = np.dtype(
    [
        ("player", "i8"),
        ("percentile", "f8"),
        ("rating", "f8"),
        ("within", "f8"),
        ("deviation", "f8"),
        ("roles", "u8"),
        ("loose", "?"),
        ("newcomer", "?"),
    ],
    align=True,
)
NAMED = np.dtype([("player", "i8"), ("met", "i8")])
SHARED = [name for name, _ in _PARTY]


class QueueView(NamedTuple):
    """N waiting tickets, ascending by lowest percentile, then time, then id, with the pools of the queue.

    t        WAITING (N,);  members  MEMBER (P,);  named  NAMED
    role     int64 (P,)  bit r: the member offers role r of the policy; of length 1 without roles
    apart_start  int64 (N+1,);  apart  int64: places of the tickets that each ticket must not meet now
    accepts  uint64 (N,)  the values of attributes and maps that each ticket accepts now; see attribute_fields
    """

    t: Any
    members: Any
    named: Any
    role: NDArray[np.int64]
    apart_start: NDArray[np.int64]
    apart: NDArray[np.int64]
    accepts: NDArray[np.uint64]


class KernelRules(NamedTuple):
    """The policy values that kernels read, for one team size.

    size    players in each team
    roles   whether teams need roles; their counts are passed separately as `room`
    """

    now: int
    teams: int
    size: int
    roles: bool
    rating_cap: float
    party_wait: float
    newcomer_wait: float
    rematch_wait: float
    rematch_fade: float
    spread_cost: float
