"""The corrections of a ladder: all of them, those behind void matches, and those behind bans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.ledger import event_rows, player_rows
from evenmatch.ledger.events import AboutMatch, Correction, Kind, body_of
from evenmatch.ledger.store import Head, Store
from evenmatch.times import Time, iso_time

PEOPLE = ("player", "into")
APART = {*PEOPLE, "match", "id", "reason"}  # attributes of a correction that have their own field in Ruling


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
    found = event_rows.read_last_corrections(store, head, end, limit)
    people = [body_of(event.change).get(name) for event in found for name in PEOPLE]
    ids = {player for player in people if isinstance(player, int)}
    names = player_rows.names_of(store, sorted(ids))
    return [_entry(event, names) for event in found]


def _entry(event: Correction, names: Mapping[int, str]) -> CorrectionEntry:
    body = body_of(event.change)
    people = [names.get(one) if isinstance(one := body.get(name), int) else None for name in PEOPLE]
    rest = {name: value for name, value in body.items() if name not in APART}
    rest |= {name: iso_time(time) for name in ("since", "until") if isinstance(time := rest.get(name), int)}
    match_id = event.change.id if isinstance(event.change, AboutMatch) else None
    reason = getattr(event.change, "reason", None)
    head = (event.position, event.id, event.change.kind.value, event.recorded_at)
    return CorrectionEntry(*head, people[0], people[1], match_id, reason, rest)


def voids(store: Store, head: Head) -> list[CorrectionEntry]:
    """The events behind matches that are currently void by id, latest first."""
    return _in_force(rulings(store, head), Kind.VOIDED, Kind.UNVOIDED, "match_id")


def bans(store: Store, head: Head, now: int) -> list[CorrectionEntry]:
    """The events behind the bans in force at a time (microseconds), latest first."""
    current = _in_force(rulings(store, head), Kind.BANNED, Kind.REINSTATED, "player")
    banned = event_rows.read_plan(store, head, head.corrected).banned(now)
    names = set(player_rows.names_of(store, sorted(banned)).values())
    return [one for one in current if one.player in names]


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
