"""The records that a queue and its view are made of: numpy structures, as kernels read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]

_PARTY = [
    ("low", "f8"),  # the members' lowest and highest percentile; in a view of bands, where the bands end
    ("high", "f8"),
    ("rating_low", "f8"),
    ("rating_high", "f8"),
    ("size", "i4"),
    ("newcomers", "i4"),  # members who are not placed
    ("rating_sum", "f8"),
    ("able", "u8"),  # bit r: all members can play in region r
    ("players", "u8"),  # one bit of 64 for each member, and for each player named: what may be a conflict
    ("names", "u8"),
    ("id", "i8"),
    ("chosen_lo", "f8"),  # the hull of the filters as the members chose them
    ("chosen_hi", "f8"),
    ("first", "i8"),  # member in the pool
    ("named_first", "i8"),
    ("named_count", "i4"),
    ("loose", "?"),
]
TICKET = np.dtype([("queued", "i8"), *_PARTY, ("alive", "?")], align=True)
WAITING = np.dtype(  # what every step of the search reads comes first, in one line of the cache
    [
        ("waited", "f8"),  # seconds
        ("spread", "f8"),  # percentiles that a match may have for its sake, those of the party itself included
        *_PARTY,
        ("slot", "i8"),
        ("lo", "f8"),  # the window now, and at its widest
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


class View(NamedTuple):
    """N waiting tickets, ascending by where their players begin, then by time, then by id; with the queue's pools.

    t        WAITING (N,);  members  MEMBER (P,);  named  NAMED
    role     int64 (P,)  bit r: the member offers role r of the policy; of length 1 where it has none
    apart_start  int64 (N+1,);  apart  int64: the places of the tickets that each is not to meet now
    """

    t: Any
    members: Any
    named: Any
    role: NDArray[np.int64]
    apart_start: NDArray[np.int64]
    apart: NDArray[np.int64]


class Rules(NamedTuple):
    """What kernels read of a policy, for one kind of match.

    size    players in each team
    roles   whether teams need roles; how many is told beside it, as `room`
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
