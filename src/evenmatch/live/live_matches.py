"""Live matches: announced by a game server or created by a queue, tracked while they are played, then recorded.

Players leave and join, a queue fills open slots, and a match is closed, cancelled or expires. A player who leaves gets
a strike, which returning removes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from evenmatch.durations import DAY
from evenmatch.errors import ConflictError, InputError, RateLimitError, StoreError, UnknownNameError
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, ladder_rows, player_rows
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_text
from evenmatch.live import live_sql, slots
from evenmatch.live.attendance import Ending, Presence, change_side, enter, late_switchers, match_of, note, quitters
from evenmatch.live.live_sql import (
    CANCELLED,
    CLOSED,
    EXPIRED,
    OPEN,
    LiveMatchBody,
    LiveMatchRow,
    MatchClosing,
    MatchSlot,
    MatchStart,
    Openings,
    StoredConnection,
)
from evenmatch.live.slots import check_expiry, check_on, state_in_words
from evenmatch.live.status import MatchStatus, status_of, statuses_of
from evenmatch.match import Match
from evenmatch.operations.service import Service
from evenmatch.players.name_rule import check_names
from evenmatch.queues import queue_sql, stored_queues
from evenmatch.queues.queue_sql import StoredPenalty
from evenmatch.queues.stored_queues import rules_of
from evenmatch.queues.stored_queues import strike as strike_players
from evenmatch.queues.ticket_notifier import TicketNotifier
from evenmatch.recording.ledger_append import AHEAD
from evenmatch.recording.receipts import MatchReceipt, first_receipts
from evenmatch.times import implausible, iso_time

EXPIRES_IN_LIMIT = 7 * 86_400.0  # seconds
EXPIRES_IN_DEFAULT = 7_200.0  # seconds, for a match without a queue
RETRY_AFTER = 10.0  # seconds after which to announce again on a ladder with too many live matches


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
    """Begin a match, or confirm one. Repeating the call changes nothing. Requires the ladder's change lock.

    everywhere  whether the seats of its players hold on all ladders, see `slots`
    most        limit of live matches on the ladder
    Raises RateLimitError at that limit, and ConflictError if the match was announced with other content or reported, or
    if one of its players waits or plays elsewhere.
    """
    check_text("match id", match_id)
    _check_times(match_id, started_at, expires_in, now)
    sides = _slots(store, head, match_id, teams)
    ids = [sorted(slot["id"] for slot in side) for side in sides]
    start: MatchStart = {"teams": ids, "started_at": started_at, "expires_in": expires_in, "queue": queue}
    known = live_sql.read(store, head.ladder, [match_id]).get(match_id)
    if known is not None and known.body.get("start") is not None:
        if known.body["start"] != start:
            raise ConflictError(
                f"match {match_id!r} was announced with other content; send the same content, or choose another id"
            )
        return known
    if known is not None:
        return _confirm(store, head, known, start, None if everywhere else now)
    Settings.read(head.settings).check_open(head.name)
    if event_rows.find_events(store, head, [match_id]):
        raise ConflictError(f"match {match_id!r} has already been reported; choose another id")
    if live_sql.count_open(store, head.ladder) >= most:
        raise RateLimitError(
            f"ladder {head.name!r} has {most:,} running matches, which is the limit (EVENMATCH_RUNNING_LIMIT); close "
            "or cancel finished matches, or report this match without announcing it",
            RETRY_AFTER,
        )
    began = now if started_at is None else started_at
    longest = EXPIRES_IN_DEFAULT
    if queue is not None:
        longest = stored_queues.find(stored_queues.read(store, head.ladder), queue).rules.longest_match
    expires_at = began + round(1e6 * (longest if expires_in is None else expires_in))
    if expires_at <= now:
        raise InputError(
            f"match {match_id!r} would have expired at {iso_time(expires_at)}; expected an expiry in the future"
        )
    change = reserve_changes(store, head.ladder, 1)
    body: LiveMatchBody = {"teams": sides, "announced": True, "start": start}
    match = slots.begin(store, head.ladder, match_id, change, queue, began, expires_at, body)
    slots.take(store, head, match_id, match.slots(), everywhere=everywhere)
    return match


@dataclass(frozen=True)
class Connection:
    """Where the players of a match connect. tokens: what each player presents there, by name."""

    address: str
    tokens: Mapping[str, str] = field(default_factory=dict)


def connect(store: Store, head: Head, match: LiveMatchRow, connection: Connection) -> LiveMatchRow:
    """Store where the players of a match connect. Tokens may be added later, for players who join.

    Requires the ladder's change lock. Raises InputError for the token of a player who is not in the match, and
    ConflictError if the match has another address or another token of a player.
    """
    name = repr(match.match_id)
    ids, players = player_rows.ids_of(store, sorted(connection.tokens)), {slot["id"] for slot in match.slots()}
    strangers = [player for player in connection.tokens if ids.get(player) not in players]
    if strangers:
        raise InputError(f"match {name}: connection.tokens names {strangers[0]!r}, who is not in the match")
    tokens = {str(ids[player]): token for player, token in connection.tokens.items()}
    before = match.body.get("connection")
    if before is not None:
        if before["address"] != connection.address or any(
            before["tokens"].get(player, token) != token for player, token in tokens.items()
        ):
            raise ConflictError(
                f"match {name} already has a connection, to {before['address']!r}, with other content; a connection "
                "cannot be replaced, and only players without a token can get one"
            )
        tokens = before["tokens"] | tokens
    new: StoredConnection = {"address": connection.address, "tokens": tokens}
    if new == before:
        return match
    check_on(match)
    match.body["connection"] = new
    connected = match._replace(change=reserve_changes(store, head.ladder, 1))
    live_sql.put(store, head.ladder, connected)
    return connected


def _confirm(store: Store, head: Head, match: LiveMatchRow, start: MatchStart, limited_at: int | None) -> LiveMatchRow:
    """Store the start of a match that a queue created. Attendance then begins at the confirmed start.

    limited_at  the present time for a caller who is limited to some ladders; because the players hold seats on all
                ladders, the match may not last longer than its queue allows, counted from now; None: no limit
    """
    name = repr(match.match_id)
    check_on(match)
    if start["queue"] not in (None, match.queue):
        raise ConflictError(f"match {name} belongs to queue {match.queue!r}, not {start['queue']!r}")
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
    change = reserve_changes(store, head.ladder, 1)
    confirmed = match._replace(change=change, started_at=began, expires_at=began + length)
    live_sql.put(store, head.ladder, confirmed)
    return confirmed


def _teams(match: LiveMatchRow, *, first: bool) -> list[list[int]]:
    """The player ids of each team, ascending. first: only those of players present from the start."""
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
            f"match {match_id!r}: started_at is {iso_time(started_at)}; expected at most a day from now, {limit}"
        )
    if expires_in is not None and not 0 < expires_in <= EXPIRES_IN_LIMIT:
        raise InputError(
            f"match {match_id!r}: expires_in is {expires_in}; expected seconds up to {EXPIRES_IN_LIMIT:.0f}"
        )


def _slots(store: Store, head: Head, match_id: str, teams: Sequence[Sequence[str]]) -> list[list[MatchSlot]]:
    """New slots for these players. Creates players who do not exist yet."""
    if len(teams) < 2 or not all(teams):
        shape = f"{len(teams)} teams of {', '.join(str(len(team)) for team in teams) or 'none'}"
        raise InputError(f"match {match_id!r} has {shape}; expected two or more teams of one or more players")
    names = [name for team in teams for name in team]
    check_names(store, head, names)
    ids, _ = player_rows.admit(store, names)
    first: dict[int, str] = {}
    for name in names:
        if ids[name] in first:
            raise InputError(
                f"match {match_id!r}: {first[ids[name]]!r} and {name!r} are the same player; expected each player once"
            )
        first[ids[name]] = name
    return [[{"player": name, "id": ids[name]} for name in team] for team in teams]


def request_backfill(
    store: Store,
    head: Head,
    match: LiveMatchRow,
    queue: str | None,
    seats: Sequence[int] | None,
    limited_at: int | None,
) -> Openings | None:
    """Check the number of open slots of each team, and return them with their queue; None: there are none.

    queue       None: the queue that created the match
    limited_at  as in `_confirm`, for the queue that fills the slots
    Raises InputError or ConflictError for slots that do not fit the queue's policy.
    """
    name = repr(match.match_id)
    if seats is None or not any(seats):
        return None
    if queue is None and match.queue is None:
        raise InputError(f"match {name} was not created by a queue; name the queue that fills its open slots")
    filling = str(match.queue if queue is None else queue)
    setup = stored_queues.find(stored_queues.read(store, head.ladder), filling)
    policy = setup.policy
    present = [sum(slot["spells"][-1][1] is None for slot in side) for side in match.body["teams"]]
    if len(present) != policy.teams:
        raise ConflictError(f"match {name} has {len(present)} teams; the queue fills matches of {policy.teams} (teams)")
    if len(seats) != len(present) or min(seats) < 0:
        raise InputError(f"seats are {list(seats)}; expected a number from 0 for each of the {len(present)} teams")
    if not any(present):
        raise ConflictError(f"match {name} has no players left; only a match with players can be filled")
    for team, (players, open_slots) in enumerate(zip(present, seats, strict=True)):
        if players + open_slots > policy.team_size:
            raise InputError(
                f"team {team} of match {name} has {players} players and would have {open_slots} open seats; "
                f"a team has at most {policy.team_size} (team_size)"
            )
    if limited_at is not None:
        check_expiry(match.match_id, filling, match.expires_at, limited_at + round(setup.rules.longest_match * 1e6))
    return {"queue": filling, "seats": list(seats)}


def strike(store: Store, ladder: int, queue: str | None, quitting: Sequence[MatchSlot], now: int) -> None:
    """Give a strike to the players of these slots, at most one per match, and record its effect in the slot.

    queue  the queue whose rules apply; None: no strikes, because the match does not belong to a queue
    """
    new = [slot for slot in quitting if slot.get("struck") is None]
    if queue is None or not new:
        return
    ids = [slot["id"] for slot in new]
    before = queue_sql.read_penalties(store, ladder, ids)
    after = strike_players(store, ladder, ids, now, rules_of(store, ladder, queue))
    for slot in new:
        former = before.get(slot["id"])
        slot["struck"] = [None if former is None else list(former), list(after[slot["id"]])]


def relent(store: Store, ladder: int, staying: Sequence[MatchSlot]) -> None:
    """Remove the strikes that the players of these slots got in this match.

    A strike stays if the player's penalty has changed since then.
    """
    recorded = {slot["id"]: struck for slot in staying if (struck := slot.get("struck")) is not None}
    if not recorded:
        return
    present = {
        player: list(penalty) for player, penalty in queue_sql.read_penalties(store, ladder, list(recorded)).items()
    }
    restored = {player: before for player, (before, after) in recorded.items() if present.get(player) == after}
    for player in [player for player, before in restored.items() if before is None]:
        queue_sql.delete_penalty(store, ladder, player)
    former = {player: StoredPenalty._make(before) for player, before in restored.items() if before is not None}
    queue_sql.put_penalties(store, ladder, former)
    for slot in staying:
        slot.pop("struck", None)


def begin_close(store: Store, head: Head, match: LiveMatchRow, ending: Ending, now: int) -> tuple[Match, MatchClosing]:
    """Store how the match is being closed, and return the finished match and that note.

    The note is stored before the match is recorded, so that a retry records the same match even if its end time came
    from the clock. Requires the ladder's change lock. Raises ConflictError if the match is over, InputError if the
    ending does not fit it.
    """
    if match.state != OPEN:
        raise ConflictError(f"match {match.match_id!r} is {state_in_words(match)}; only a live match can be closed")
    fingerprint, noted = ending.fingerprint(), match.body.get("close")
    if noted is None or noted["fingerprint"] != fingerprint:
        # The clock of the process that began the match may be ahead of ours.
        ended_at = max(now, match.started_at) if ending.ended_at is None else ending.ended_at
        rule = Settings.read(head.settings).side_counts
        noted = {"fingerprint": fingerprint, "ended_at": ended_at, "side_counts": rule}
    names = player_rows.names_to_write(store, [slot["id"] for slot in match.slots()])
    finished = match_of(match, head.name, names, ending, noted["ended_at"], noted["side_counts"])
    match.body["close"] = noted
    live_sql.put(store, head.ladder, match._replace(change=reserve_changes(store, head.ladder, 1)))
    return finished, noted


def was_closed_so(match: LiveMatchRow, ending: Ending) -> bool:
    """True if a match was already closed with this ending."""
    noted = match.body.get("close")
    return match.state == CLOSED and noted is not None and noted["fingerprint"] == ending.fingerprint()


def reopen(store: Store, head: Head, match_id: str, ending: Ending) -> None:
    """Undo `begin_close` after this ending was refused. Requires the ladder's change lock."""
    match = live_sql.read(store, head.ladder, [match_id]).get(match_id)
    noted = None if match is None or match.state != OPEN else match.body.get("close")
    if match is not None and noted is not None and noted["fingerprint"] == ending.fingerprint():
        match.body["close"] = None
        live_sql.put(store, head.ladder, match._replace(change=reserve_changes(store, head.ladder, 1)))


def settle(
    store: Store, head: Head, quitters: Mapping[str, set[int]], noted: Mapping[str, MatchClosing], now: int
) -> list[str]:
    """Close recorded matches that are still live and give strikes to quitters; return the ids of the closed matches.

    Requires the ladder's change lock.

    quitters  player ids by recorded match;  noted  the notes of `begin_close`, for matches that have one
    """
    closed = []
    for match in live_sql.read(store, head.ladder, sorted(quitters)).values():
        if match.state == OPEN:
            ids = quitters[match.match_id]
            strike(store, head.ladder, match.queue, [slot for slot in match.slots() if slot["id"] in ids], now)
            relent(store, head.ladder, [slot for slot in match.slots() if slot["id"] not in ids])
            match.body["close"] = noted.get(match.match_id)
            end(store, head, match, CLOSED)
            closed.append(match.match_id)
    return sorted(closed)


def cancel(store: Store, head: Head, match: LiveMatchRow, reason: str | None) -> LiveMatchRow:
    """End a match without rating it, and remove its strikes. Requires the ladder's change lock.

    Raises ConflictError if it has ended in another way, or is in the ledger.
    """
    if match.state == CANCELLED:
        return match
    if match.state != OPEN or event_rows.find_events(store, head, [match.match_id]):
        state = "closed" if match.state == OPEN else state_in_words(match)
        raise ConflictError(f"match {match.match_id!r} is {state}; only a live match can be cancelled")
    match.body["close"], match.body["reason"] = None, reason
    relent(store, head.ladder, match.slots())
    return end(store, head, match, CANCELLED)


def end(store: Store, head: Head, match: LiveMatchRow, state: str) -> LiveMatchRow:
    """Write the final state of a match, free its seats, and forget where its players connected."""
    match.body.pop("connection", None)
    slots.free(store, head, match.match_id, [slot["id"] for slot in match.slots()])
    match = match._replace(state=state, openings=None, change=reserve_changes(store, head.ladder, 1))
    live_sql.put(store, head.ladder, match)
    return match


def move(
    store: Store, head: Head, match: LiveMatchRow, presences: Sequence[Presence], now: int, *, everywhere: bool
) -> LiveMatchRow:
    """Record players who left or joined, in order, and return the changed match. Requires the ladder's change lock.

    A player who leaves loses the seat, and gets a strike if a queue created the match. Returning undoes both, unless
    the player has taken another seat in the meantime. Raises ConflictError if a new player has another seat.

    everywhere  whether the seats of joining players hold on all ladders, see `slots`
    """
    ids = player_rows.ids_of(store, sorted({presence.player for presence in presences}))
    new: set[int] = set()
    moved: set[int] = set()
    for presence in presences:
        slot = _slot(match, presence, ids)
        if slot is None:
            check_names(store, head, [presence.player])
            admitted, _ = player_rows.admit(store, [presence.player])
            slot = enter(match, presence, admitted[presence.player], now)
            new.add(slot["id"])
            ids |= admitted
        elif not _note(match, slot, presence, now):
            continue
        moved.add(slot["id"])
    if not moved:
        return match
    check_on(match)
    changed = [slot for slot in match.slots() if slot["id"] in moved]
    present = [slot for slot in changed if slot["spells"][-1][1] is None]
    absent = [slot for slot in changed if slot["spells"][-1][1] is not None]
    joining = [slot for slot in present if slot["id"] in new]
    returning = [slot for slot in present if slot["id"] not in new]
    slots.take(store, head, match.match_id, joining, everywhere=everywhere)
    slots.take_again(store, head, match.match_id, returning, everywhere=everywhere)
    slots.free(store, head, match.match_id, [slot["id"] for slot in absent])
    strike(store, head.ladder, match.queue, absent, now)
    relent(store, head.ladder, present)
    match = match._replace(change=reserve_changes(store, head.ladder, 1))
    live_sql.put(store, head.ladder, match)
    return match


def _note(match: LiveMatchRow, slot: MatchSlot, presence: Presence, now: int) -> bool:
    """Record that a player joined, left or changed sides. False if that was already recorded."""
    is_there = slot["spells"][-1][1] is None
    if not presence.back or presence.team is None:
        return note(match, slot, presence, now)
    returned = not is_there and note(match, slot, presence, now)
    return change_side(match, slot, presence, now) or returned


def _slot(match: LiveMatchRow, presence: Presence, ids: Mapping[str, int]) -> MatchSlot | None:
    """The slot of a player who is or was in the match; None: the player joins for the first time.

    Raises UnknownNameError if a player without a slot leaves, or joins without a team.
    """
    by_name = {slot["player"]: slot for slot in match.slots()}
    by_id = {slot["id"]: slot for slot in match.slots()}
    slot = by_id.get(ids.get(presence.player, 0), by_name.get(presence.player))
    if slot is None and not (presence.back and presence.team is not None):
        raise UnknownNameError(f"player of match {match.match_id!r}", presence.player, sorted(by_name))
    return slot


READABLE_FOR = DAY  # microseconds after its expiry for which a finished match stays readable
EXPIRE_EVERY, PRUNE_EVERY = 2.0, 60.0  # seconds

log = logging.getLogger(__name__)


class Running:
    """The live matches of all ladders. Safe to use from many threads and processes.

    Every change is durable when the call returns. Methods raise UnknownNameError for an unknown ladder or match, and
    ConflictError for a request that contradicts the match's state.
    """

    def __init__(self, service: Service, notifier: TicketNotifier | None = None) -> None:
        """notifier: told of the tickets whose match changes; None: their followers find out when they look again."""
        self._service, self._clock, self._notifier = service, service.clock, notifier

    @contextmanager
    def _read(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        with self._service.database.read() as store:
            yield store, store.head(ladder)

    @contextmanager
    def _write(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        """A write transaction that holds the ladder's change lock. Notifies the tickets of the matches it changes."""
        touched: list[int] = []
        with self._service.database.write() as store:
            head = store.head(ladder)
            before = ladder_rows.reserve_changes(store, head.ladder, 0) - 1
            yield store, head
            if self._notifier is not None:
                slots = [slot for match in live_sql.read_changed(store, head.ladder, before) for slot in match.slots()]
                touched = sorted({number for slot in slots if (number := slot.get("ticket")) is not None})
                self._notifier.announce(store, ladder, touched)
        if self._notifier is not None:
            self._notifier.ring(ladder, touched)

    def announce(
        self,
        ladder: str,
        match_id: str,
        teams: Sequence[Sequence[str]],
        *,
        started_at: int | None = None,
        expires_in: float | None = None,
        queue: str | None = None,
        connection: Connection | None = None,
        everywhere: bool = True,
    ) -> MatchStatus:
        """Begin a match, or confirm the start of one that a queue created. Repeating the call changes nothing.

        started_at  microseconds since the epoch; None: now, or the creation time of a match that a queue created
        expires_in  seconds from its start until it expires unless closed; None: the queue's longest_match
        queue       the queue whose rules penalize players who leave; None: no penalties
        connection  where the players connect, see `connect`; None: not known yet
        everywhere  False: the caller is limited to some ladders, so the players' seats hold on this ladder only
        Raises RateLimitError if the ladder has too many live matches.
        """
        with self._write(ladder) as (store, head):
            limits = self._service.match_limits.on(ladder, Settings.read(head.settings))
            limits.check(f"match {match_id!r}", len(teams), sum(map(len, teams)))
            now = self._clock()
            most = self._service.match_limits.running
            start = (started_at, expires_in, queue)
            match = announce(store, head, match_id, teams, *start, now, everywhere=everywhere, most=most)
            if connection is not None:
                match = connect(store, head, match, connection)
            return status_of(store, ladder, match)

    def leaves(
        self, ladder: str, match_id: str, presences: Sequence[Presence], *, everywhere: bool = True
    ) -> MatchStatus:
        """Record players who left or joined, in order, all or nothing. Repeating the call changes nothing.

        A player who leaves may queue again, with a strike if a queue created the match. Returning removes the strike.

        everywhere  as in `announce`
        """
        with self._write(ladder) as (store, head):
            match = _find(store, head, match_id)
            match = move(store, head, match, presences, self._clock(), everywhere=everywhere)
            limits = self._service.match_limits.on(ladder, Settings.read(head.settings))
            limits.check(f"match {match_id!r}", len(match.body["teams"]), len(match.slots()))
            return status_of(store, ladder, match)

    def openings(
        self,
        ladder: str,
        match_id: str,
        queue: str | None = None,
        seats: Sequence[int] | None = None,
        *,
        everywhere: bool = True,
    ) -> MatchStatus:
        """Ask a queue to fill open slots.

        queue       None: the match's own queue
        seats       number of open slots of each team; None: withdraw the request
        everywhere  False: the caller is limited to some ladders, so the match may not outlast the queue's longest_match
        """
        with self._write(ladder) as (store, head):
            match = _find(store, head, match_id)
            limited_at = None if everywhere else self._clock()
            openings = request_backfill(store, head, match, queue, seats, limited_at)
            if openings != match.openings:
                check_on(match)
                match = match._replace(openings=openings, change=ladder_rows.reserve_changes(store, head.ladder, 1))
                live_sql.put(store, head.ladder, match)
            return status_of(store, ladder, match)

    def close(self, ladder: str, match_id: str, ending: Ending) -> MatchReceipt:
        """End a match, record it under its id, and return its receipt. Repeating the call returns the first receipt.

        A player's seconds are the time of attendance. A player who joined but was absent at the end is a quitter.
        Raises the errors of Service.record. After an InputError the match stays open.
        """
        with self._write(ladder) as (store, head):
            match = _find(store, head, match_id)
            if was_closed_so(match, ending):
                return first_receipts(store, head, [match_id])[match_id]
            finished, noted = begin_close(store, head, match, ending, self._clock())
        try:
            receipt = self._service.record(finished, rated=ending.rated)
        except InputError:
            with self._write(ladder) as (store, head):
                reopen(store, head, match_id, ending)
            raise
        with self._write(ladder) as (store, head):
            window = Settings.read(head.settings).switch_window
            late = late_switchers(match, finished, window, noted["ended_at"]) if window else set()
            quitter_ids = {match_id: quitters(match, noted["ended_at"]) | late}
            settle(store, head, quitter_ids, {match_id: noted}, self._clock())
        return receipt

    def settle_reported(
        self, ladder: str, match_ids: Sequence[str], quitters: Mapping[str, Iterable[str]]
    ) -> list[str]:
        """Close live matches that were reported as finished matches, and return the ids of those that were live.

        quitters  names of the players who quit and get a strike, by match
        """
        with self._read(ladder) as (store, head):
            live = live_sql.ids_of_open(store, head.ladder, match_ids)
            if not live:
                return []
            names = {name for match_id in live for name in quitters.get(match_id, ())}
            ids = player_rows.ids_of(store, sorted(names))
        quitter_ids = {match_id: {ids[name] for name in quitters.get(match_id, ()) if name in ids} for match_id in live}
        with self._write(ladder) as (store, head):
            return settle(store, head, quitter_ids, {}, self._clock())

    def cancel(self, ladder: str, match_id: str, reason: str | None = None) -> MatchStatus:
        """End a match without rating it, and remove its strikes. Cancelling again changes nothing."""
        with self._write(ladder) as (store, head):
            match = cancel(store, head, _find(store, head, match_id), reason)
            return status_of(store, ladder, match)

    def status(self, ladder: str, match_id: str) -> MatchStatus:
        """A match that is live or ended recently (about a day)."""
        with self._read(ladder) as (store, head):
            return status_of(store, ladder, _find(store, head, match_id))

    def on(self, ladder: str) -> list[MatchStatus]:
        """The live matches, latest change last."""
        with self._read(ladder) as (store, head):
            return statuses_of(store, ladder, live_sql.read_open(store, head.ladder))

    def count(self, ladder: str) -> int:
        """The number of live matches."""
        with self._read(ladder) as (store, head):
            return live_sql.count_open(store, head.ladder)

    def expire(self, ladder: str) -> list[str]:
        """End overdue matches without rating them, free their players, and return their ids."""
        now = self._clock()
        with self._read(ladder) as (store, head):
            if not live_sql.read_overdue(store, head.ladder, now):
                return []
        expired = []
        with self._write(ladder) as (store, head):
            overdue = live_sql.read_overdue(store, head.ladder, now)
            recorded = event_rows.find_events(store, head, overdue)  # reported, but not closed as live matches
            for match in live_sql.read(store, head.ladder, overdue).values():
                end(store, head, match, CLOSED if match.match_id in recorded else EXPIRED)
                expired += [match.match_id] if match.match_id not in recorded else []
        return sorted(expired)

    def prune(self, ladder: str) -> int:
        """Delete matches that ended long ago, and return their number."""
        count = 0
        while True:
            with self._write(ladder) as (store, head):
                deleted = live_sql.delete_older_than(store, head.ladder, self._clock() - READABLE_FOR)
            count += deleted
            if not deleted:
                return count

    def run(self, stop: threading.Event) -> None:
        """Expire and prune matches of all ladders until `stop` is set. Safe to run in many processes."""
        prune_at = 0.0
        while not stop.wait(EXPIRE_EVERY):
            prunes = time.monotonic() >= prune_at
            try:
                for ladder in self._ladders():
                    self.expire(ladder)
                    if prunes:
                        self.prune(ladder)
                        prune_at = time.monotonic() + PRUNE_EVERY
            except StoreError as error:
                log.warning("expiring live matches failed and will be tried again: %s", error)

    def _ladders(self) -> list[str]:
        with self._service.database.read() as store:
            return ladder_rows.read_changed_ladders(store)


def _find(store: Store, head: Head, match_id: str) -> LiveMatchRow:
    match = live_sql.read(store, head.ladder, [match_id]).get(match_id)
    if match is None:
        raise UnknownNameError(f"live match of ladder {head.name!r}", match_id, [])
    return match
