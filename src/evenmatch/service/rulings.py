"""What operators decided about a ladder, to be read: which matches are void, who is banned, every correction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.ledger import people
from evenmatch.ledger.events import Kind
from evenmatch.ledger.store import Head, Store
from evenmatch.service.times import iso_time

PEOPLE = ("player", "into")
APART = {*PEOPLE, "match", "id", "reason"}  # of what an event says: told by fields of their own


class Ruling(NamedTuple):
    """An event of a ledger that is no match.

    id    of the event;  at  when it was recorded, in microseconds
    said  the rest of it: a ban's rule, the parameters of other rules, a season's title and the like
    """

    position: int
    id: str
    kind: str
    at: int
    player: str | None
    into: str | None
    match_id: str | None
    reason: str | None
    said: Mapping[str, object]


def rulings(store: Store, head: Head, before: int | None = None, limit: int | None = None) -> list[Ruling]:
    """The corrections of a ladder, the latest first: those before a position, so many at most."""
    end = head.position + 1 if before is None else before
    sql = (
        "SELECT e.position, e.id, e.kind, e.recorded_at, e.body FROM correction c "
        "JOIN event e ON e.ladder = c.ladder AND e.position = c.position "
        "WHERE c.ladder = ? AND c.position < ? ORDER BY c.position DESC"
    )
    at_most = ("", ()) if limit is None else (" LIMIT ?", (limit,))
    found = store.all(sql + at_most[0], head.ladder, end, *at_most[1])
    rows = [(*row[:4], json.loads(row[4])) for row in found]
    ids = {body[name] for *_, body in rows for name in PEOPLE if isinstance(body.get(name), int)}
    names = people.names_of(store, sorted(ids))
    return [_ruling(position, id_, kind, at, body, names) for position, id_, kind, at, body in rows]


def _ruling(
    position: int, event_id: str, kind: str, at: int, body: dict[str, object], names: Mapping[int, str]
) -> Ruling:
    who = [names.get(one) if isinstance(one := body.get(name), int) else None for name in PEOPLE]
    said = {name: value for name, value in body.items() if name not in APART}
    if isinstance(since := said.get("since"), int):
        said["since"] = iso_time(since)
    match_id = str(body["id"]) if "match" in body else None
    reason = body.get("reason")
    return Ruling(position, event_id, kind, at, who[0], who[1], match_id, None if reason is None else str(reason), said)


def voids(store: Store, head: Head) -> list[Ruling]:
    """Of each match that was voided by its id and is void now, the event that did it; the latest first."""
    return _latest(rulings(store, head), Kind.VOIDED, Kind.UNVOIDED, "match_id")


def bans(store: Store, head: Head) -> list[Ruling]:
    """Of each player who is banned now, the event that did it; the latest first."""
    return _latest(rulings(store, head), Kind.BANNED, Kind.REINSTATED, "player")


def _latest(found: list[Ruling], done: Kind, undone: Kind, whom: str) -> list[Ruling]:
    """Of those whose latest event of these kinds is that it was done: this event."""
    seen: set[str] = set()
    kept = []
    for one in found:
        name = getattr(one, whom)
        if one.kind in (done, undone) and name not in seen:
            seen.add(name)
            if one.kind == done:
                kept.append(one)
    return kept
