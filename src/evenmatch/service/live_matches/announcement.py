"""Announcements: a game server begins a live match, or confirms the start of one that a queue created."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.errors import ConflictError, InputError, RateLimitError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import events, live_matches, player_identities
from evenmatch.ledger.tables.change_locks import advance
from evenmatch.ledger.tables.live_matches import LiveMatchBody, LiveMatchRow, MatchSlot, MatchStart
from evenmatch.ledger.text import check_text
from evenmatch.service import player_seats, stored_queues
from evenmatch.service.live_matches.match_slots import begin, check_expiry, check_on
from evenmatch.service.name_rule import check_names
from evenmatch.service.recording.ledger_append import AHEAD
from evenmatch.service.settings import Settings
from evenmatch.service.stored_queues import rules_of
from evenmatch.times import implausible, iso_time

LONGEST = 7 * 86_400.0  # largest expires_in, in seconds
AGAIN = 10.0  # seconds after which a ladder with too many live matches may be asked again
USUAL = 7_200.0  # default expires_in of a match without a queue, in seconds


def announce(
    store: Store,
    head: Head,
    match_id: str,
    teams: Sequence[Sequence[str]],
    started_at: int | None,
    expires_in: float | None,
    queue: str | None,
    now: int,
    *,
    everywhere: bool,
    most: int,
) -> LiveMatchRow:
    """Begin a match, or confirm one; repeating the call changes nothing. Requires the ladder's change lock.

    everywhere  whether the seats of its players hold on all ladders, see player_seats
    most        live matches of the ladder, beyond which no other one can begin: RateLimitError
    Raises ConflictError if the match was announced with other content or reported already, or if one of its players
    waits or plays elsewhere.
    """
    check_text("match id", match_id)
    _check_times(match_id, started_at, expires_in, now)
    slots = _slots(store, head, match_id, teams)
    ids = [sorted(slot["id"] for slot in side) for side in slots]
    start: MatchStart = {"teams": ids, "started_at": started_at, "expires_in": expires_in, "queue": queue}
    known = live_matches.read(store, head.ladder, [match_id]).get(match_id)
    if known is not None and known.body.get("start") is not None:
        if known.body["start"] != start:
            raise ConflictError(
                f"match {match_id!r} was announced with other content; send the same content, or choose another id"
            )
        return known
    if known is not None:
        return _confirm(store, head, known, start, None if everywhere else now)
    Settings.read(head.settings).check_open(head.name)
    if events.find(store, head, [match_id]):
        raise ConflictError(f"match {match_id!r} was reported already; choose another id")
    if live_matches.count_open(store, head.ladder) >= most:
        raise RateLimitError(
            f"ladder {head.name!r} has {most:,} running matches, which is the limit EVENMATCH_RUNNING_LIMIT; close or "
            "cancel those that are over, or report this match without an announcement",
            AGAIN,
        )
    began = now if started_at is None else started_at
    longest = USUAL
    if queue is not None:
        longest = stored_queues.find(stored_queues.read(store, head.ladder), queue).rules.longest_match
    expires_at = began + round(1e6 * (longest if expires_in is None else expires_in))
    if expires_at <= now:
        raise InputError(
            f"match {match_id!r} would have expired at {iso_time(expires_at)}; the expiry must be in the future"
        )
    change = advance(store, head.ladder, 1)
    body: LiveMatchBody = {"teams": slots, "announced": True, "start": start}
    begin(store, head.ladder, match_id, change, queue, began, expires_at, body)
    player_seats.take(store, head, match_id, [slot for side in slots for slot in side], everywhere=everywhere)
    return live_matches.read(store, head.ladder, [match_id])[match_id]


def _confirm(store: Store, head: Head, match: LiveMatchRow, start: MatchStart, limited_at: int | None) -> LiveMatchRow:
    """Store the start of a match that a queue created; attendance then begins at the confirmed start.

    limited_at  the time now, for a caller of some ladders only: the players hold seats on all ladders, so the match may
                not last longer from now on than its queue allows; None: as long as it says
    """
    name = repr(match.match_id)
    check_on(match)
    if start["queue"] not in (None, match.queue):
        raise ConflictError(f"match {name} is of queue {match.queue!r}, not {start['queue']!r}")
    if start["teams"] not in (_teams(match, first=True), _teams(match, first=False)):
        listed = " against ".join(", ".join(slot["player"] for slot in side) for side in match.body["teams"])
        raise ConflictError(f"match {name} was created with other teams: {listed}")
    began = match.started_at if start["started_at"] is None else start["started_at"]
    length = match.expires_at - match.started_at
    if start["expires_in"] is not None:
        length = round(1e6 * start["expires_in"])
    if limited_at is not None:
        longest = rules_of(store, head.ladder, match.queue or "").longest_match
        limit = max(limited_at + round(longest * 1e6), match.expires_at)
        check_expiry(match.match_id, match.queue, began + length, limit)
    for slot in match.slots():
        if slot["spells"][0][0] == match.started_at:
            slot["spells"][0][0] = began
        for spell in slot["spells"]:  # move times before the confirmed start
            spell[:] = [time if time is None else max(time, began) for time in spell]
    match.body["start"] = start
    change = advance(store, head.ladder, 1)
    confirmed = match._replace(change=change, started_at=began, expires_at=began + length)
    live_matches.put(store, head.ladder, confirmed)
    return confirmed


def _teams(match: LiveMatchRow, *, first: bool) -> list[list[int]]:
    """The player ids of each team, ascending; `first`: only players who were there from the start."""
    return [
        sorted(slot["id"] for slot in side if not first or slot["spells"][0][0] == match.started_at)
        for side in match.body["teams"]
    ]


def _check_times(match_id: str, started_at: int | None, expires_in: float | None, now: int) -> None:
    if started_at is not None and (reason := implausible("started_at", started_at)):
        raise InputError(f"match {match_id!r}: {reason}")
    if started_at is not None and started_at > now + AHEAD:
        limit = iso_time(now + AHEAD)
        raise InputError(
            f"match {match_id!r}: started_at is {iso_time(started_at)}; at most a day from now is allowed, {limit}"
        )
    if expires_in is not None and not 0 < expires_in <= LONGEST:
        raise InputError(f"match {match_id!r}: expires_in is {expires_in}; expected seconds up to {LONGEST:.0f}")


def _slots(store: Store, head: Head, match_id: str, teams: Sequence[Sequence[str]]) -> list[list[MatchSlot]]:
    """New slots for these players; creates players who are not known yet."""
    if len(teams) < 2 or not all(teams):
        shape = f"{len(teams)} teams of {', '.join(str(len(team)) for team in teams) or 'none'}"
        raise InputError(f"match {match_id!r} has {shape}; expected two or more teams of one or more players")
    names = [name for team in teams for name in team]
    check_names(store, head, names)
    ids, _ = player_identities.admit(store, names)
    first: dict[int, str] = {}
    for name in names:
        if ids[name] in first:
            raise InputError(
                f"match {match_id!r}: {first[ids[name]]!r} and {name!r} are the same player, who can play only once"
            )
        first[ids[name]] = name
    return [[{"player": name, "id": ids[name]} for name in team] for team in teams]
