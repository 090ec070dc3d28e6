"""The corrections of a ladder: all of them, the matches that are void, the players who are banned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.ledger import event_rows, player_rows
from evenmatch.ledger.events import Kind
from evenmatch.ledger.store import Head, Store
from evenmatch.times import Time, iso_time

PEOPLE = ("player", "into")
APART = {*PEOPLE, "match", "id", "reason"}  # keys of an event's body that have their own field in Ruling


class CorrectionEntry(NamedTuple):
    """An event of the ledger other than a match: a correction, or a change of the ladder.

    at    when the event was recorded
    into  the player into whom `player` was merged
    said  further details, such as the rule of a ban, the parameters of new rules, the title of a season
    """

    position: int
    id: str
    kind: str
    at: Time
    player: str | None
    into: str | None
    match_id: str | None
    reason: str | None
    said: Mapping[str, object]


def rulings(store: Store, head: Head, before: int | None = None, limit: int | None = None) -> list[CorrectionEntry]:
    """Up to `limit` corrections of a ladder (None: all) before a position (None: from the end), latest first."""
    end = head.position + 1 if before is None else before
    rows = [
        (*row[:4], json.loads(row.body)) for row in event_rows.read_stored_corrections(store, head.ladder, end, limit)
    ]
    ids = {body[name] for *_, body in rows for name in PEOPLE if isinstance(body.get(name), int)}
    names = player_rows.names_of(store, sorted(ids))
    return [_ruling(position, id_, kind, recorded_at, body, names) for position, id_, kind, recorded_at, body in rows]


def _ruling(
    position: int, event_id: str, kind: str, recorded_at: int, body: dict[str, object], names: Mapping[int, str]
) -> CorrectionEntry:
    people = [names.get(one) if isinstance(one := body.get(name), int) else None for name in PEOPLE]
    rest = {name: value for name, value in body.items() if name not in APART}
    if isinstance(since := rest.get("since"), int):
        rest["since"] = iso_time(since)
    match_id = str(body["id"]) if "match" in body else None
    reason = None if (given := body.get("reason")) is None else str(given)
    return CorrectionEntry(position, event_id, kind, recorded_at, people[0], people[1], match_id, reason, rest)


def voids(store: Store, head: Head) -> list[CorrectionEntry]:
    """The events that voided the matches which are void by id now, latest first."""
    return _in_force(rulings(store, head), Kind.VOIDED, Kind.UNVOIDED, "match_id")


def bans(store: Store, head: Head) -> list[CorrectionEntry]:
    """The events that banned the players who are banned now, latest first."""
    return _in_force(rulings(store, head), Kind.BANNED, Kind.REINSTATED, "player")


def _in_force(found: list[CorrectionEntry], done: Kind, undone: Kind, subject: str) -> list[CorrectionEntry]:
    """The events of kind `done` that no later event of kind `undone` about the same `subject` has reversed."""
    seen: set[str] = set()
    in_force = []
    for ruling in found:
        name = getattr(ruling, subject)
        if ruling.kind in (done, undone) and name not in seen:
            seen.add(name)
            if ruling.kind == done:
                in_force.append(ruling)
    return in_force
