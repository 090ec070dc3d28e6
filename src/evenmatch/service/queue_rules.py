"""The configuration of a ladder's queues: matchmaking policy and queue rules."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import NamedTuple

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import queues
from evenmatch.ledger.tables.queues import StoredQueue
from evenmatch.ledger.text import check_text
from evenmatch.matchmaking import Policy

DAY = 86_400
LONGEST_NAME = 64  # characters; the name is part of match ids
_RANGES: dict[str, tuple[float, float]] = {
    "accept_within": (1, DAY),
    "heartbeat": (10, DAY),
    "tick": (0.05, 3600),
    "penalty": (0, 30 * DAY),
    "penalty_most": (0, 30 * DAY),
    "penalty_fades": (1, 365 * DAY),
    "longest_match": (1, 30 * DAY),
}


@dataclass(frozen=True, kw_only=True)
class QueueRules:
    """The rules of a queue besides its policy; all in seconds. Raises BadParameterError with the allowed range.

    accept_within  time to answer an offer
    heartbeat      time without a sign of life after which a ticket is dropped; None: never
    tick           time between two searches for matches
    penalty        waiting time after the first strike; each further strike doubles it
    penalty_most   longest waiting time after a strike
    penalty_fades  half-life of strikes
    longest_match  time after which an unreported match expires
    """

    accept_within: float = 20.0
    heartbeat: float | None = 30.0
    tick: float = 1.0
    penalty: float = 30.0
    penalty_most: float = 900.0
    penalty_fades: float = 3600.0
    longest_match: float = 7200.0

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is None and name == "heartbeat":
                continue
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not is_number or not low <= value <= high:
                other = ", or none" if name == "heartbeat" else ""
                raise BadParameterError(f"{name}={value!r}: expected a number from {low:g} to {high:,.10g}{other}")

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> QueueRules:
        """Read rules from a JSON document; missing ones get their defaults. Raises UnknownNameError."""
        known = [field.name for field in fields(cls)]
        for name in data:
            if name not in known:
                raise UnknownNameError("rule of a queue", name, known)
        return cls(**dict(data))  # type: ignore[arg-type] # __post_init__ checks every value

    def to_data(self) -> dict[str, object]:
        """All rules, ready for JSON."""
        return asdict(self)


class QueueSetup(NamedTuple):
    """A queue's configuration. `change`: the number of the change that last set it."""

    name: str
    change: int
    policy: Policy
    rules: QueueRules


def check_name(name: str) -> None:
    """Raise InputError or BadParameterError for an invalid queue name."""
    check_text("queue name", name, blank=False)
    if len(name) > LONGEST_NAME:
        raise BadParameterError(
            f"queue name {name[:20]!r}… has {len(name)} characters; at most {LONGEST_NAME} are allowed"
        )


def policy_of(data: Mapping[str, object], team_size: int | None) -> Policy:
    """Read a policy from a JSON document; the default of team_size is the ladder's."""
    if "team_size" not in data and team_size is not None:
        return Policy.from_data({**data, "team_size": team_size})
    return Policy.from_data(data)


def read(store: Store, ladder: int) -> dict[str, QueueSetup]:
    """The queues of a ladder by name, sorted by name."""
    return {queue.name: _setup(*queue) for queue in queues.read(store, ladder)}


@lru_cache(1024)  # read in every transaction, rarely changed
def _setup(name: str, change: int, policy: str, rules: str) -> QueueSetup:
    return QueueSetup(name, change, Policy.from_data(json.loads(policy)), QueueRules.from_data(json.loads(rules)))


def ticks(store: Store) -> dict[str, float]:
    """The shortest tick among each ladder's queues, by ladder name; only ladders with queues."""
    shortest: dict[str, float] = {}
    for ladder, rules in queues.read_all_rules(store):
        tick = QueueRules.from_data(json.loads(rules)).tick
        shortest[ladder] = min(shortest.get(ladder, tick), tick)
    return shortest


def rules_of(store: Store, ladder: int, queue: str) -> QueueRules:
    """The rules of a queue; the defaults if there is no such queue."""
    rules = queues.read_rules(store, ladder, queue)
    return QueueRules() if rules is None else QueueRules.from_data(json.loads(rules))


def put(store: Store, ladder: int, setup: QueueSetup) -> None:
    """Insert or replace a queue."""
    policy, rules = (
        json.dumps(data, ensure_ascii=False, sort_keys=True) for data in (setup.policy.to_data(), setup.rules.to_data())
    )
    queues.put(store, ladder, StoredQueue(setup.name, setup.change, policy, rules))


def find(known: Mapping[str, QueueSetup], name: str) -> QueueSetup:
    """The queue of this name. Raises UnknownNameError, which lists the known queues."""
    if name not in known:
        raise UnknownNameError("queue", name, known)
    return known[name]
