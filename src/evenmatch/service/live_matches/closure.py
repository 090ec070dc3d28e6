"""End a live match: recorded in the ledger, cancelled or expired."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import ConflictError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import events, live_matches, player_identities
from evenmatch.ledger.tables.change_locks import advance
from evenmatch.ledger.tables.live_matches import CANCELLED, CLOSED, OPEN, LiveMatchRow, MatchClosing
from evenmatch.match import Match
from evenmatch.service import player_seats
from evenmatch.service.live_matches import strikes
from evenmatch.service.live_matches.attendance import Ending, match_of
from evenmatch.service.live_matches.match_slots import state_in_words
from evenmatch.service.settings import Settings


def begin_close(store: Store, head: Head, match: LiveMatchRow, ending: Ending, now: int) -> tuple[Match, MatchClosing]:
    """Store how the match is being closed; return the finished match and that note. Requires the ladder's change lock.

    The note is stored before the match is recorded, so that a retry records the same match, even if its end time came
    from the clock. Raises ConflictError if the match is over, InputError if the ending does not fit it.
    """
    if match.state != OPEN:
        raise ConflictError(f"match {match.match_id!r} is {state_in_words(match)}; only a live match can be closed")
    fingerprint, noted = ending.fingerprint(), match.body.get("close")
    if noted is None or noted["told"] != fingerprint:
        # The clock of the process that began the match may be ahead of this one's.
        ended_at = max(now, match.started_at) if ending.ended_at is None else ending.ended_at
        rule = Settings.read(head.settings).side_counts
        noted = {"told": fingerprint, "ended_at": ended_at, "side_counts": rule}
    names = player_identities.names_to_write(store, [slot["id"] for slot in match.slots()])
    finished = match_of(match, head.name, names, ending, noted["ended_at"], noted.get("side_counts", "last"))
    match.body["close"] = noted
    live_matches.put(store, head.ladder, match._replace(change=advance(store, head.ladder, 1)))
    return finished, noted


def was_closed_so(match: LiveMatchRow, ending: Ending) -> bool:
    """Whether a match was already closed with this ending."""
    noted = match.body.get("close")
    return match.state == CLOSED and noted is not None and noted["told"] == ending.fingerprint()


def reopen(store: Store, head: Head, match_id: str, ending: Ending) -> None:
    """Undo `begin_close` after this ending was refused. Requires the ladder's change lock."""
    match = live_matches.read(store, head.ladder, [match_id]).get(match_id)
    noted = None if match is None or match.state != OPEN else match.body.get("close")
    if match is not None and noted is not None and noted["told"] == ending.fingerprint():
        match.body["close"] = None
        live_matches.put(store, head.ladder, match._replace(change=advance(store, head.ladder, 1)))


def settle(
    store: Store, head: Head, quitters: Mapping[str, set[int]], noted: Mapping[str, MatchClosing], now: int
) -> list[str]:
    """Close the live matches among these recorded ones and give strikes to quitters; return the ids of the matches.

    Requires the ladder's change lock.

    quitters  player ids by match;  noted  the notes of `begin_close`, for matches that were closed that way
    """
    closed = []
    for match in live_matches.read(store, head.ladder, sorted(quitters)).values():
        if match.state == OPEN:
            ids = quitters[match.match_id]
            strikes.strike(store, head.ladder, match.queue, [slot for slot in match.slots() if slot["id"] in ids], now)
            strikes.relent(store, head.ladder, [slot for slot in match.slots() if slot["id"] not in ids])
            match.body["close"] = noted.get(match.match_id)
            end(store, head, match, CLOSED)
            closed.append(match.match_id)
    return sorted(closed)


def cancel(store: Store, head: Head, match: LiveMatchRow, reason: str | None) -> LiveMatchRow:
    """End a match without rating it, and remove its strikes. Requires the ladder's change lock.

    Raises ConflictError if it has ended another way, or is in the ledger.
    """
    if match.state == CANCELLED:
        return match
    if match.state != OPEN or events.find(store, head, [match.match_id]):
        state = "closed" if match.state == OPEN else state_in_words(match)
        raise ConflictError(f"match {match.match_id!r} is {state}; only a live match can be cancelled")
    match.body["close"], match.body["reason"] = None, reason
    strikes.relent(store, head.ladder, match.slots())
    return end(store, head, match, CANCELLED)


def end(store: Store, head: Head, match: LiveMatchRow, state: str) -> LiveMatchRow:
    """Write the final state of a match and free its seats."""
    player_seats.free(store, head, match.match_id, [slot["id"] for slot in match.slots()])
    match = match._replace(state=state, openings=None, change=advance(store, head.ladder, 1))
    live_matches.put(store, head.ladder, match)
    return match
