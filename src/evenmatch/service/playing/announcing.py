"""A game server announces a match, or confirms that one which a queue made has started."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.errors import ConflictError, InputError
from evenmatch.ledger import people
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_text
from evenmatch.service.appending import AHEAD
from evenmatch.service.playing import live
from evenmatch.service.playing.live import Live, Slot, Start
from evenmatch.service.queueing import queue_rules
from evenmatch.service.queueing.lines import advance
from evenmatch.service.settings import Settings
from evenmatch.service.times import iso_time

LONGEST = 7 * 86_400.0  # seconds until a match that is never closed expires, at most
USUAL = 7_200.0  # the same where nobody says


def announce(
    store: Store,
    head: Head,
    match_id: str,
    teams: Sequence[Sequence[str]],
    started_at: int | None,
    expires_in: float | None,
    queue: str | None,
    now: int,
) -> Live:
    """Begin a match, or confirm one; the same again changes nothing. The line is locked.

    Raises ConflictError where the match is known with other content, was reported already, or one of its players
    waits or plays elsewhere.
    """
    check_text("match id", match_id)
    _check_times(match_id, started_at, expires_in, now)
    slots = _slots(store, match_id, teams)
    asked = [sorted(slot["id"] for slot in side) for side in slots]
    start: Start = {"teams": asked, "started_at": started_at, "expires_in": expires_in, "queue": queue}
    known = live.read(store, head.ladder, [match_id]).get(match_id)
    if known is not None and known.body.get("start") is not None:
        if known.body["start"] != start:
            raise ConflictError(
                f"match {match_id!r} was announced with other content; accepted is the same again, or another id"
            )
        return known
    if known is not None:
        return _confirm(store, head, known, start)
    Settings.read(head.settings).check_open(head.name)
    if store.known(head, [match_id]):
        raise ConflictError(f"match {match_id!r} was reported already; accepted is another id")
    began = now if started_at is None else started_at
    longest = USUAL
    if queue is not None:
        longest = queue_rules.find(queue_rules.read(store, head.ladder), queue).rules.longest_match
    expires_at = began + round(1e6 * (longest if expires_in is None else expires_in))
    if expires_at <= now:
        raise InputError(f"match {match_id!r} would have expired at {iso_time(expires_at)}; accepted is a later time")
    change = advance(store, head.ladder, 1)
    body: live.Body = {"teams": slots, "announced": True, "start": start}
    live.begin(store, head.ladder, match_id, change, queue, began, expires_at, body)
    seat_all(store, head, match_id, slots)
    return live.read(store, head.ladder, [match_id])[match_id]


def _confirm(store: Store, head: Head, match: Live, start: Start) -> Live:
    """Note what the server said of a match that a queue made: from then on its first players are in it."""
    name = repr(match.match_id)
    live.check_on(match)
    if start["queue"] not in (None, match.queue):
        raise ConflictError(f"match {name} is of queue {match.queue!r}, not {start['queue']!r}")
    if start["teams"] not in (_teams(match, first=True), _teams(match, first=False)):
        listed = " against ".join(", ".join(slot["player"] for slot in side) for side in match.body["teams"])
        raise ConflictError(f"match {name} was made with other teams; accepted are {listed}")
    began = match.started_at if start["started_at"] is None else start["started_at"]
    length = match.expires_at - match.started_at
    if start["expires_in"] is not None:
        length = round(1e6 * start["expires_in"])
    for slot in match.slots():
        if slot["spells"][0][0] == match.started_at:
            slot["spells"][0][0] = began
        for spell in slot["spells"]:  # who came or left before the confirmed start
            spell[:] = [one if one is None else max(one, began) for one in spell]
    match.body["start"] = start
    change = advance(store, head.ladder, 1)
    made = match._replace(change=change, started_at=began, expires_at=began + length)
    live.write(store, head.ladder, made)
    return made


def _teams(match: Live, *, first: bool) -> list[list[int]]:
    """The ids of its players by team, ascending; `first`: of those alone who were there when it began."""
    return [
        sorted(slot["id"] for slot in side if not first or slot["spells"][0][0] == match.started_at)
        for side in match.body["teams"]
    ]


def _check_times(match_id: str, started_at: int | None, expires_in: float | None, now: int) -> None:
    if started_at is not None and not 0 <= started_at <= now + AHEAD:
        limit = iso_time(now + AHEAD)
        raise InputError(
            f"match {match_id!r}: started_at is {started_at} μs; accepted is up to a day from now, {limit}"
        )
    if expires_in is not None and not 0 < expires_in <= LONGEST:
        raise InputError(f"match {match_id!r}: expires_in is {expires_in}; accepted are seconds up to {LONGEST:.0f}")


def _slots(store: Store, match_id: str, teams: Sequence[Sequence[str]]) -> list[list[Slot]]:
    """The slots of these players, who become known."""
    if len(teams) < 2 or not all(teams):
        told = f"{len(teams)} teams of {', '.join(str(len(team)) for team in teams) or 'none'}"
        raise InputError(f"match {match_id!r} has {told}; accepted are two or more teams of one or more players")
    names = [name for team in teams for name in team]
    ids, _ = people.admit(store, names)
    first: dict[int, str] = {}
    for name in names:
        if ids[name] in first:
            raise InputError(
                f"match {match_id!r}: {first[ids[name]]!r} and {name!r} are the same player; accepted is each once"
            )
        first[ids[name]] = name
    return [[{"player": name, "id": ids[name]} for name in team] for team in teams]


def seat_all(store: Store, head: Head, match_id: str, slots: Sequence[Sequence[Slot]]) -> None:
    """Seat everybody of these teams. Raises ConflictError where one has a seat elsewhere."""
    named = {slot["id"]: slot["player"] for side in slots for slot in side}
    live.take_seats(store, head.ladder, match_id, named)
    sql = (
        "SELECT s.player, l.name, s.ticket, s.match_id, s.ladder FROM seat s JOIN ladder l ON l.ladder = s.ladder "
        "WHERE s.player IN ({})"
    )
    for player, ladder, ticket, other, number in sorted(store.rows.among(store.connection, sql, (), list(named))):
        if (number, other) != (head.ladder, match_id):
            where = f"waits in ticket {ticket}" if other is None else f"plays match {other!r}"
            raise ConflictError(
                f"player {named[player]!r} {where} of ladder {ladder!r}; accepted for match {match_id!r} is who is free"
            )
