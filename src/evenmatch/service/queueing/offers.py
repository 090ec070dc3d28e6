"""Offers: matches that could begin, and whose players are asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store

OPEN, MADE, OFF = "open", "made", "off"


class Chair(TypedDict):
    """A player who is asked, the ticket in which they wait, and what they would play; None: a free choice."""

    player: str
    id: int
    ticket: int
    role: str | None


class OfferBody(TypedDict):
    """What is kept of an offer as JSON.

    match   the running match whose open seats are offered; None: a new match
    odds    the chance of the first team;  spread: percentiles between the lowest and the highest
    waited  seconds, the longest of its tickets;  costs: by name, as matchmaking.Proposal has them
    """

    teams: list[list[Chair]]
    match: str | None
    region: str | None
    ping: float
    odds: float
    spread: float
    waited: float
    costs: dict[str, float]


@dataclass(slots=True)
class OfferRow:
    """An offer as the database has it. state: open, made or off; said: the ids of who accepted."""

    offer: int
    change: int
    queue: str
    state: str
    made_at: int
    deadline: int
    match_id: str | None
    body: OfferBody
    said: set[int] = field(default_factory=set)

    @property
    def chairs(self) -> list[Chair]:
        """Everybody who is asked, team by team."""
        return [chair for team in self.body["teams"] for chair in team]

    @property
    def tickets(self) -> list[int]:
        """The numbers of its tickets, ascending."""
        return sorted({chair["ticket"] for chair in self.chairs})


_COLUMNS = ("offer", "change", "queue", "state", "made_at", "deadline", "match_id", "body", "said")
_OFFER = f"SELECT {', '.join(_COLUMNS)} FROM offer WHERE ladder = ?"


def read(store: Store, ladder: int, offers: Sequence[int]) -> dict[int, OfferRow]:
    """Those of these offers that there are, by number."""
    rows = store.rows.among(store.connection, f"{_OFFER} AND offer IN ({{}})", (ladder,), offers)
    return {row[0]: _offer(row) for row in rows}


def changed(store: Store, ladder: int, after: int) -> list[OfferRow]:
    """Every offer that changed after a change, in order."""
    return [_offer(row) for row in store.all(f"{_OFFER} AND change > ? ORDER BY change, offer", ladder, after)]


def lately(store: Store, ladder: int, since: int) -> list[OfferRow]:
    """The open offers, and those that became matches since a time. It reads all rows: for the first look."""
    sql = f"{_OFFER} AND (state = ? OR (state = ? AND made_at >= ?)) ORDER BY change, offer"
    return [_offer(row) for row in store.all(sql, ladder, OPEN, MADE, since)]


def latest(store: Store, ladder: int, limit: int) -> list[OfferRow]:
    """The offers that were made last, whatever became of them, the latest first."""
    return [_offer(row) for row in store.all(f"{_OFFER} ORDER BY offer DESC LIMIT ?", ladder, limit)]


def insert(store: Store, ladder: int, offers: Iterable[OfferRow]) -> None:
    """Add new offers."""
    rows = [
        (
            *(ladder, one.offer, one.change, one.queue, one.state, one.made_at, one.deadline, one.match_id),
            json.dumps(one.body, ensure_ascii=False, sort_keys=True),
            json.dumps(sorted(one.said)),
        )
        for one in offers
    ]
    store.rows.insert(store.connection, live_schema.offer, ("ladder", *_COLUMNS), rows)


def update(store: Store, ladder: int, one: OfferRow) -> None:
    """Write what may change of an offer."""
    store.run(
        "UPDATE offer SET change = ?, state = ?, match_id = ?, said = ? WHERE ladder = ? AND offer = ?",
        *(one.change, one.state, one.match_id, json.dumps(sorted(one.said)), ladder, one.offer),
    )


def _offer(row: Row) -> OfferRow:
    offer, change, queue, state, made_at, deadline, match_id, body, said = row
    return OfferRow(
        offer, change, queue, state, made_at, deadline, match_id, body=json.loads(body), said=set(json.loads(said))
    )
