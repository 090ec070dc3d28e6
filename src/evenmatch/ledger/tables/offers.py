"""Rows of table `offer`: proposed matches whose players are asked to accept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables.formed_matches import TrialMoment

OPEN, MADE, OFF = "open", "made", "off"
AT_ONCE = 1000  # offers read at a time by `read_recent`


class OfferSlot(TypedDict):
    """A player of an offer. ticket: the ticket they wait in; role: the role they would play, None: any."""

    player: str
    id: int
    ticket: int
    role: str | None


class OfferBody(TypedDict):
    """The part of an offer that is stored as JSON.

    match   the live match whose open slots are offered; None: a new match
    odds    predicted score of each team, see LadderOdds; None: the ladder's system cannot predict such a match
    spread  percentiles between the lowest and the highest player
    waited  longest waiting time of its tickets in seconds;  costs  by name, as in matchmaking.Proposal
    waits   waiting time of each ticket in seconds;  percentile  the mean of its players
    estimates  further wait of each ticket as estimated when it joined: half, and nine of ten, wait less; None: unknown
    policy  number of the change that set the queue's policy
    attributes, map  with which it is played, as in matchmaking.Proposal; missing: none;  maps  that all players accept
    trial   the moment of the queue's experiment; missing if none runs
    The last eight are missing from offers of older versions; waits, estimates, percentile, policy and trial also from
    those of open slots of a live match.
    """

    teams: list[list[OfferSlot]]
    match: str | None
    region: str | None
    ping: float
    odds: list[float] | None
    spread: float
    waited: float
    costs: dict[str, float]
    waits: NotRequired[list[float]]
    estimates: NotRequired[Sequence[Sequence[float] | None]]
    percentile: NotRequired[float]
    policy: NotRequired[int]
    attributes: NotRequired[dict[str, str]]
    maps: NotRequired[list[str]]
    map: NotRequired[str]
    trial: NotRequired[TrialMoment]


@dataclass(slots=True)
class OfferRow:
    """A stored offer. state: open, made (the match began) or off (cancelled); said: ids of players who accepted."""

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
    def chairs(self) -> list[OfferSlot]:
        """The slots of all players, team by team."""
        return [slot for team in self.body["teams"] for slot in team]

    @property
    def tickets(self) -> list[int]:
        """The numbers of its tickets, ascending."""
        return sorted({slot["ticket"] for slot in self.chairs})


_COLUMNS = ("offer", "change", "queue", "state", "made_at", "deadline", "match_id", "body", "said")
_OFFER = f"SELECT {', '.join(_COLUMNS)} FROM offer WHERE ladder = ?"


def read(store: Store, ladder: int, offers: Sequence[int]) -> dict[int, OfferRow]:
    """The existing offers among these numbers, by number."""
    rows = store.among(f"{_OFFER} AND offer IN ({{}})", (ladder,), offers)
    return {row[0]: _offer(row) for row in rows}


def read_changed(store: Store, ladder: int, after: int) -> list[OfferRow]:
    """Every offer with a later change number, in order of changes."""
    return [_offer(row) for row in store.all(f"{_OFFER} AND change > ? ORDER BY change, offer", ladder, after)]


def read_recent(store: Store, ladder: int, since: int) -> Iterator[OfferRow]:
    """Open offers, and offers made since a time that became matches, in order of changes, never many in memory."""
    sql = (
        f"{_OFFER} AND (state = ? OR (state = ? AND made_at >= ?)) "
        "AND change >= ? AND (change > ? OR offer > ?) ORDER BY change, offer LIMIT ?"
    )
    offer, change = -1, -1
    while rows := store.all(sql, ladder, OPEN, MADE, since, change, change, offer, AT_ONCE):
        yield from map(_offer, rows)
        offer, change = rows[-1][:2]


def read_latest(store: Store, ladder: int, limit: int) -> list[OfferRow]:
    """The latest offers in any state, newest first."""
    return [_offer(row) for row in store.all(f"{_OFFER} ORDER BY offer DESC LIMIT ?", ladder, limit)]


def read_maps(store: Store, ladder: int, queue: str, limit: int) -> list[str]:
    """The maps of the latest offers of a queue in any state, at most `limit`, the latest last."""
    sql = "SELECT body FROM offer WHERE ladder = ? AND queue = ? ORDER BY offer DESC LIMIT ?"
    bodies = [json.loads(row[0]) for row in store.all(sql, ladder, queue, limit)]
    return [body["map"] for body in reversed(bodies) if "map" in body and body["match"] is None]


def insert(store: Store, ladder: int, offers: Iterable[OfferRow]) -> None:
    """Insert new offers."""
    rows = [
        (
            *(ladder, offer.offer, offer.change, offer.queue, offer.state),
            *(offer.made_at, offer.deadline, offer.match_id),
            json.dumps(offer.body, ensure_ascii=False, sort_keys=True),
            json.dumps(sorted(offer.said)),
        )
        for offer in offers
    ]
    store.insert(live_schema.offer, ("ladder", *_COLUMNS), rows)


def update(store: Store, ladder: int, offers: Iterable[OfferRow]) -> None:
    """Write the mutable columns of offers."""
    rows = [
        (ladder, offer.offer, offer.change, offer.state, offer.match_id, json.dumps(sorted(offer.said)))
        for offer in offers
    ]
    store.update(live_schema.offer, ("ladder", "offer"), ("change", "state", "match_id", "said"), rows)


def delete_older_than(store: Store, ladder: int, before: int, most: int = 2000) -> None:
    """Delete finished offers that were made before a time, the oldest first, at most `most`."""
    sql = "SELECT offer FROM offer WHERE ladder = ? AND state IN (?, ?) AND made_at < ? ORDER BY offer LIMIT ?"
    old = [row[0] for row in store.all(sql, ladder, MADE, OFF, before, most)]
    store.run_among("DELETE FROM offer WHERE ladder = ? AND offer IN ({})", (ladder,), old)


def _offer(row: Row) -> OfferRow:
    offer, change, queue, state, made_at, deadline, match_id, body, said = row
    return OfferRow(
        offer, change, queue, state, made_at, deadline, match_id, body=json.loads(body), said=set(json.loads(said))
    )
