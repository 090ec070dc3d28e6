"""The queues of a ladder: the policy by which each makes matches, and the rules around it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import NamedTuple

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text
from evenmatch.matchmaking import Policy

DAY = 86_400
LONGEST_NAME = 64  # letters: it stands in the ids of matches
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
    """What holds around a queue's policy; all in seconds. Raises BadParameterError, which says what is accepted.

    accept_within  to answer an offer
    heartbeat      without a sign of life until a ticket is dropped; None: never
    tick           between two searches for matches
    penalty        that the first strike makes a player wait; each further one doubles it
    penalty_most   that no strike makes longer
    penalty_fades  in which half of a player's strikes is forgotten
    longest_match  until a match that nobody reported is over
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
            good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not good or not low <= value <= high:
                other = ", or none" if name == "heartbeat" else ""
                raise BadParameterError(f"{name}={value!r}: accepted is a number from {low:g} to {high:,.10g}{other}")

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> QueueRules:
        """The rules that a document says, the others as they are by default. Raises UnknownNameError."""
        known = [one.name for one in fields(cls)]
        for name in data:
            if name not in known:
                raise UnknownNameError("rule of a queue", name, known)
        return cls(**dict(data))  # type: ignore[arg-type] # __post_init__ looks at every value

    def to_data(self) -> dict[str, object]:
        """All of them, ready for JSON."""
        return asdict(self)


class QueueSetup(NamedTuple):
    """A queue. `change`: of the ladder's changes the one that made it so."""

    name: str
    change: int
    policy: Policy
    rules: QueueRules


def check_name(name: str) -> None:
    """Raise InputError or BadParameterError for what cannot name a queue."""
    check_text("queue name", name, blank=False)
    if len(name) > LONGEST_NAME:
        raise BadParameterError(f"queue name {name[:20]!r}… has {len(name)} letters; accepted are {LONGEST_NAME}")


def policy_of(data: Mapping[str, object], team_size: int | None) -> Policy:
    """The policy that a document says, with teams of the ladder's size where it names none."""
    if "team_size" not in data and team_size is not None:
        return Policy.from_data({**data, "team_size": team_size})
    return Policy.from_data(data)


def read(store: Store, ladder: int) -> dict[str, QueueSetup]:
    """The queues of a ladder by name, in order of their names."""
    sql = "SELECT queue, change, policy, rules FROM queue WHERE ladder = ? ORDER BY queue"
    return {row[0]: _setup(*row) for row in store.all(sql, ladder)}


@lru_cache(1024)  # every transaction reads them, and they hardly ever change
def _setup(name: str, change: int, policy: str, rules: str) -> QueueSetup:
    return QueueSetup(name, change, Policy.from_data(json.loads(policy)), QueueRules.from_data(json.loads(rules)))


def changes(store: Store, ladder: int) -> dict[str, int]:
    """By which change each queue of a ladder became as it is."""
    return dict(store.all("SELECT queue, change FROM queue WHERE ladder = ?", ladder))


def ticks(store: Store) -> dict[str, float]:
    """The ladders that have queues, by name, with the shortest tick of theirs."""
    sql = "SELECT l.name, q.rules FROM queue q JOIN ladder l ON l.ladder = q.ladder ORDER BY l.name"
    found: dict[str, float] = {}
    for ladder, rules in store.all(sql):
        tick = QueueRules.from_data(json.loads(rules)).tick
        found[ladder] = min(found.get(ladder, tick), tick)
    return found


def rules_of(store: Store, ladder: int, queue: str | None) -> QueueRules:
    """The rules of a queue; the defaults where there is none of that name."""
    sql = "SELECT rules FROM queue WHERE ladder = ? AND queue = ?"
    found = [] if queue is None else store.all(sql, ladder, queue)
    return QueueRules.from_data(json.loads(found[0][0])) if found else QueueRules()


def put(store: Store, ladder: int, setup: QueueSetup) -> None:
    """Make a queue, or replace it."""
    written = [
        json.dumps(one, ensure_ascii=False, sort_keys=True) for one in (setup.policy.to_data(), setup.rules.to_data())
    ]
    columns = ("ladder", "queue", "change", "policy", "rules")
    store.rows.upsert(store.connection, live_schema.queue, columns, [(ladder, setup.name, setup.change, *written)])


def find(known: Mapping[str, QueueSetup], name: str) -> QueueSetup:
    """The queue of that name. Raises UnknownNameError, which names those there are."""
    if name not in known:
        raise UnknownNameError("queue", name, known)
    return known[name]
