"""A running match ends: into the ledger, or without a rating."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import ConflictError
from evenmatch.ledger import people
from evenmatch.ledger.store import Head, Store
from evenmatch.match import Match
from evenmatch.service.playing import live, striking
from evenmatch.service.playing.live import CANCELLED, CLOSED, OPEN, Close, Live
from evenmatch.service.playing.presence import Ending, match_of
from evenmatch.service.queueing.lines import advance


def begin_close(store: Store, head: Head, match: Live, ending: Ending, now: int) -> tuple[Match, Close]:
    """The finished match, and the note that it is being closed so; the line is locked.

    The note is durable before the match is recorded, so that a retry records the same match, whose end was perhaps
    told by the clock. Raises ConflictError where the match is over, InputError where the ending does not fit it.
    """
    if match.state != OPEN:
        raise ConflictError(f"match {match.match_id!r} is {match.state}; accepted is one that is on")
    told, noted = ending.told(), match.body.get("close")
    if noted is None or noted["told"] != told:
        noted = {"told": told, "ended_at": now if ending.ended_at is None else ending.ended_at}
    names = people.names_of(store, [slot["id"] for slot in match.slots()])
    finished = match_of(match, head.name, names, ending, noted["ended_at"])
    match.body["close"] = noted
    live.write(store, head.ladder, match._replace(change=advance(store, head.ladder, 1)))
    return finished, noted


def was_closed_so(match: Live, ending: Ending) -> bool:
    """Whether a match was closed by this ending."""
    noted = match.body.get("close")
    return match.state == CLOSED and noted is not None and noted["told"] == ending.told()


def reopen(store: Store, head: Head, match_id: str, ending: Ending) -> None:
    """Take back that a match is being closed by an ending that was refused; the line is locked."""
    match = live.read(store, head.ladder, [match_id]).get(match_id)
    noted = None if match is None or match.state != OPEN else match.body.get("close")
    if match is not None and noted is not None and noted["told"] == ending.told():
        match.body["close"] = None
        live.write(store, head.ladder, match._replace(change=advance(store, head.ladder, 1)))


def settle(
    store: Store, head: Head, quitters: Mapping[str, set[int]], noted: Mapping[str, Close], now: int
) -> list[str]:
    """Close those of these recorded matches that are on, and strike who quit them; which. The line is locked.

    quitters  ids by match;  noted  how they were closed, of those that were not reported as a whole
    """
    closed = []
    for match in live.read(store, head.ladder, sorted(quitters)).values():
        if match.state == OPEN:
            gone = quitters[match.match_id]
            striking.strike(
                store, head.ladder, match.queue, [slot for slot in match.slots() if slot["id"] in gone], now
            )
            striking.relent(store, head.ladder, [slot for slot in match.slots() if slot["id"] not in gone])
            match.body["close"] = noted.get(match.match_id)
            end(store, head, match, CLOSED)
            closed.append(match.match_id)
    return sorted(closed)


def cancel(store: Store, head: Head, match: Live, reason: str | None) -> Live:
    """End a match that is not to be rated, and take back its strikes; the line is locked.

    Raises ConflictError where it is over otherwise, or in the ledger.
    """
    if match.state == CANCELLED:
        return match
    if match.state != OPEN or store.known(head, [match.match_id]):
        state = "closed" if match.state == OPEN else match.state
        raise ConflictError(f"match {match.match_id!r} is {state}; accepted is one that is on")
    match.body["close"], match.body["reason"] = None, reason
    striking.relent(store, head.ladder, match.slots())
    return end(store, head, match, CANCELLED)


def end(store: Store, head: Head, match: Live, state: str) -> Live:
    """Write a match that is over, and free its seats."""
    live.free_seats(store, head.ladder, match.match_id, [slot["id"] for slot in match.slots()])
    match = match._replace(state=state, openings=None, change=advance(store, head.ladder, 1))
    live.write(store, head.ladder, match)
    return match
