"""Correct history: void, ban, reinstate. Each is an event and a replay, and can be seen before it is done."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from evenmatch.errors import BadParameterError, ConflictError, UnknownNameError
from evenmatch.history import Floats
from evenmatch.ledger import people
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import Body, Correction, Kind
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.store import Head, Store
from evenmatch.service.ladders import Wish
from evenmatch.service.replaying import Progress, Tally, begin, replay


class Move(NamedTuple):
    """A player whose rating a correction changes. None: not rated before, or not after."""

    player: str
    before: float | None
    matches_before: int
    after: float | None
    matches_after: int


class Preview(NamedTuple):
    """Who would move, the largest change first.

    players   on the ladder;  matches  that would be rated anew
    left_out  matches that would stay without a rating, since the new rules cannot rate them
    done      it is in the ledger already, under the id that was given
    """

    told: str
    moves: list[Move]
    players: int
    matches: int
    left_out: int
    done: bool = False


@dataclass(frozen=True)
class Void:
    """A match counts for nothing. Refused where it is not there (UnknownNameError) or void already (ConflictError)."""

    match_id: str
    reason: str | None = None

    kind: ClassVar[Kind] = Kind.VOIDED

    def body(self, store: Store, head: Head) -> Body:
        """Which match, and why."""
        return {"match": _match(store, head, self.match_id), "id": self.match_id, "reason": self.reason}

    def __call__(self, store: Store, head: Head) -> Wish:
        """The event."""
        position = _match(store, head, self.match_id)
        if position in store.plan(head, head.corrected).void:
            hint = f"`evenmatch reinstate --match {shlex.quote(self.match_id)}` makes it count again"
            raise ConflictError(f"match {self.match_id!r} is void already; {hint}")
        return Wish(self.kind, self.body(store, head), position, f"match {self.match_id!r} is void")


@dataclass(frozen=True)
class Unvoid:
    """A match that was voided by its id counts again."""

    match_id: str
    reason: str | None = None

    kind: ClassVar[Kind] = Kind.UNVOIDED

    def body(self, store: Store, head: Head) -> Body:
        """Which match, and why."""
        return {"match": _match(store, head, self.match_id), "id": self.match_id, "reason": self.reason}

    def __call__(self, store: Store, head: Head) -> Wish:
        """The event."""
        position = _match(store, head, self.match_id)
        if position not in store.plan(head, head.corrected).void:
            raise ConflictError(f"match {self.match_id!r} is not void; accepted is one that was voided by its id")
        return Wish(self.kind, self.body(store, head), position, f"match {self.match_id!r} counts again")


@dataclass(frozen=True)
class Ban:
    """A player's matches are void, or who finished behind them gets their losses back.

    rule   "void" or "refund"
    since  microseconds; matches that ended before stay as they are. None: all of them, and those to come
    """

    player: str
    rule: str = "void"
    since: int | None = None
    reason: str | None = None

    kind: ClassVar[Kind] = Kind.BANNED

    def __post_init__(self) -> None:
        if self.rule not in ("void", "refund"):
            raise BadParameterError(f"rule is {self.rule!r}; accepted is void or refund")

    def body(self, store: Store, head: Head) -> Body:
        """Who, by which rule, since when, and why."""
        player = people.find(store, self.player)
        return {"player": player, "since": self.since, "rule": self.rule, "reason": self.reason}

    def __call__(self, store: Store, head: Head) -> Wish:
        """The event."""
        player = people.find(store, self.player)
        if player in store.plan(head, head.corrected).bans:
            raise ConflictError(
                f"player {self.player!r} is banned from ladder {head.name!r} already; "
                f"`evenmatch reinstate {shlex.quote(self.player)}` lifts it"
            )
        first = first_match(store, head, player, self.since)
        effect = "matches are void" if self.rule == "void" else "victims get their losses back"
        return Wish(self.kind, self.body(store, head), first, f"player {self.player!r} is banned, {effect}")


@dataclass(frozen=True)
class Reinstate:
    """A ban is as though it had never been."""

    player: str
    reason: str | None = None

    kind: ClassVar[Kind] = Kind.REINSTATED

    def body(self, store: Store, head: Head) -> Body:
        """Who, and why."""
        return {"player": people.find(store, self.player), "reason": self.reason}

    def __call__(self, store: Store, head: Head) -> Wish:
        """The event."""
        player = people.find(store, self.player)
        banned = store.plan(head, head.corrected).bans.get(player)
        if banned is None:
            raise ConflictError(
                f"player {self.player!r} is not banned from ladder {head.name!r}; accepted is one who is"
            )
        first = first_match(store, head, player, banned.since)
        return Wish(self.kind, self.body(store, head), first, f"player {self.player!r} is reinstated")


def _match(store: Store, head: Head, match_id: str) -> int:
    sql = "SELECT position, kind FROM event WHERE ladder = ? AND id = ?"
    found = store.all(sql, head.ladder, match_id)
    if not found or found[0][1] != Kind.MATCH:
        like = store.all(
            "SELECT id FROM event WHERE ladder = ? AND kind = ? ORDER BY position DESC LIMIT 20",
            *(head.ladder, Kind.MATCH.value),
        )
        raise UnknownNameError(f"match of ladder {head.name!r}", match_id, [row[0] for row in like])
    position: int = found[0][0]
    return position


def first_match(store: Store, head: Head, player: int, since: int | None) -> int | None:
    """Position of the first match of a player, or of anybody merged into them, that ended at a time or later."""
    merged = store.plan(head, head.corrected).merged
    ids = [player, *(one for one, into in merged.items() if into == player)]
    sql = (
        "SELECT MIN(e.position) FROM appearance a JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "WHERE a.ladder = ? AND e.played_at >= ? AND a.player IN ({})"
    )
    earliest = -(2**62) if since is None else since
    first: int | None = store.rows.among(store.connection, sql, (head.ladder, earliest), ids)[0][0]
    return first


def preview(store: Store, head: Head, wish: Wish, progress: Progress | None = None) -> Preview:
    """What a correction would do, with all others that are due, against the ratings that are read now."""
    corrections = store.corrections(head, head.corrected)
    hypothetical = Correction(head.position + 1, wish.kind, wish.body)
    plan = plan_of([*corrections, hypothetical])
    wanted = [at for at in (wish.since, head.due) if at is not None]
    if not wanted:
        return Preview(wish.told, [], 0, 0, 0)
    return _preview(store, head, plan, min(wanted), wish, progress)


def _preview(store: Store, head: Head, plan: Plan, since: int, wish: Wish, progress: Progress | None) -> Preview:
    roster = begin(store, head, plan, since)
    tally = Tally(head.name, plan, wish)
    for step in replay(store, head, plan, roster, progress):
        tally.add(step)
    tally.check()
    live = store.roster(head, store.plan(head, head.planned).last_rules)
    ids = np.union1d(live.ids, roster.ids)
    before, after = (_columns(one.ids, one.records["rating"], one.tally["matches"], ids) for one in (live, roster))
    change = np.abs(np.nan_to_num(after[0]) - np.nan_to_num(before[0]))
    same = (before[0] == after[0]) & (before[1] == after[1])
    moved = np.flatnonzero(~same)
    moved = moved[np.argsort(-change[moved], kind="stable")]
    names = people.names_of(store, ids[moved].tolist())
    moves = [
        Move(names[player], *_at(before, at), *_at(after, at))
        for at, player in zip(moved.tolist(), ids[moved].tolist(), strict=True)
    ]
    return Preview(wish.told, moves, len(ids), tally.rated, tally.left_out)


def _at(columns: tuple[Floats, Ids], at: int) -> tuple[float | None, int]:
    """The rating of a row, None where there is none, and the matches."""
    rating = float(columns[0][at])
    return None if math.isnan(rating) else rating, int(columns[1][at])


def _columns(own: Ids, rating: Floats, matches: Ids, ids: Ids) -> tuple[Floats, Ids]:
    """Rating (NaN where there is none) and matches of each of these ids."""
    wide, count = np.full(len(ids), np.nan), np.zeros(len(ids), np.int64)
    at = np.searchsorted(ids, own)
    wide[at], count[at] = rating, matches
    return wide, count
