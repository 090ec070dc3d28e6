"""Corrections of history: void, ban, reinstate. Each is an event followed by a replay, and can be previewed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import cast

import numpy as np

from evenmatch.corrections.effect import Effect, rating_moves
from evenmatch.corrections.replay import Progress, ReplayTally, begin, check_replay_size, replay
from evenmatch.errors import BadParameterError, ConflictError, UnknownNameError
from evenmatch.ladders.ladders import PlannedCorrection
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.events import (
    AboutMatch,
    BanRule,
    Correction,
    MatchReinstated,
    MatchVoided,
    PlayerBanned,
    PlayerReinstated,
)
from evenmatch.ledger.plan import plan_of
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.recording.insertion import PendingMatches, ids_foreseen
from evenmatch.times import implausible


@dataclass(frozen=True)
class Void:
    """A request to void a match. Raises ConflictError if it is void, UnknownNameError if there is no such match."""

    match_id: str
    reason: str | None = None

    def change(self, store: Store, head: Head) -> MatchVoided:
        """Which match, and why."""
        return MatchVoided(_match(store, head, self.match_id), self.match_id, self.reason)

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event."""
        change = self.change(store, head)
        if _is_void(store, head, change):
            hint = f"`evenmatch reinstate --match {shlex.quote(self.match_id)}` makes it count again"
            raise ConflictError(f"match {self.match_id!r} is already void; {hint}")
        return _planned(store, head, change, "is void")


@dataclass(frozen=True)
class Unvoid:
    """A request to count a match again that was voided by its id.

    Raises ConflictError if it is not void, UnknownNameError if there is no such match.
    """

    match_id: str
    reason: str | None = None

    def change(self, store: Store, head: Head) -> MatchReinstated:
        """Which match, and why."""
        return MatchReinstated(_match(store, head, self.match_id), self.match_id, self.reason)

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event."""
        change = self.change(store, head)
        if not _is_void(store, head, change):
            raise ConflictError(f"match {self.match_id!r} is not void; only a match voided by its id can be reinstated")
        return _planned(store, head, change, "counts again")


def _is_void(store: Store, head: Head, change: AboutMatch) -> bool:
    return change.match in event_rows.read_plan(store, head, head.corrected).void


def _planned(store: Store, head: Head, change: AboutMatch, effect: str) -> PlannedCorrection:
    since = event_rows.counts_at(store, head.ladder, change.match)
    return PlannedCorrection(change, since, f"match {change.id!r} {effect}")


@dataclass(frozen=True)
class Ban:
    """A request to ban a player from a ladder.

    rule   "void": their matches are void; "refund": players who finished behind them get their losses back
    since  microseconds; matches that ended earlier are not affected. None: all matches, past and future
    """

    player: str
    rule: str = "void"
    since: int | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.rule not in ("void", "refund"):
            raise BadParameterError(f"rule is {self.rule!r}; expected void or refund")
        if self.since is not None and (reason := implausible("since", self.since)):
            raise BadParameterError(reason)

    def change(self, store: Store, _: Head) -> PlayerBanned:
        """The player, the rule, since when, and why."""
        return PlayerBanned(player_rows.find(store, self.player), self.since, cast("BanRule", self.rule), self.reason)

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event. Raises ConflictError if the player is banned."""
        change = self.change(store, head)
        if change.player in event_rows.read_plan(store, head, head.corrected).bans:
            raise ConflictError(
                f"player {self.player!r} is already banned from ladder {head.name!r}; "
                f"`evenmatch reinstate {shlex.quote(self.player)}` lifts it"
            )
        first = first_match(store, head, change.player, self.since)
        effect = "matches are void" if self.rule == "void" else "victims get their losses back"
        return PlannedCorrection(change, first, f"player {self.player!r} is banned, {effect}")


@dataclass(frozen=True)
class Reinstate:
    """A request to lift a ban, as if it had never existed."""

    player: str
    reason: str | None = None

    def change(self, store: Store, _: Head) -> PlayerReinstated:
        """The player, and why."""
        return PlayerReinstated(player_rows.find(store, self.player), self.reason)

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event. Raises ConflictError if the player is not banned."""
        change = self.change(store, head)
        banned = event_rows.read_plan(store, head, head.corrected).bans.get(change.player)
        if banned is None:
            raise ConflictError(f"player {self.player!r} is not banned from ladder {head.name!r}")
        first = first_match(store, head, change.player, banned.since)
        return PlannedCorrection(change, first, f"player {self.player!r} is reinstated")


def _match(store: Store, head: Head, match_id: str) -> int:
    position = event_rows.find_match(store, head.ladder, match_id)
    if position is None:
        recent = event_rows.read_last_match_ids(store, head.ladder, 20)
        raise UnknownNameError(f"match of ladder {head.name!r}", match_id, recent)
    return position


def first_match(store: Store, head: Head, player: int, since: int | None) -> int | None:
    """Position of the first rated match, at `since` or later, of a player or of anyone merged into them."""
    merged = event_rows.read_plan(store, head, head.corrected).merged
    ids = [player, *(old for old, into in merged.items() if into == player)]
    return event_rows.first_rated_position(store, head.ladder, ids, -(2**62) if since is None else since)


def preview(
    store: Store, head: Head, planned: PlannedCorrection, progress: Progress | None = None, limit: int | None = None
) -> Effect:
    """Compare the ratings after a correction and any pending ones with the ratings shown now.

    limit  the largest replay allowed, see replay_size; None: any. Raises ReplayTooLargeError.
    """
    plan = plan_of([Correction(head.position + 1, planned.change)], event_rows.read_plan(store, head, head.corrected))
    starts = [position for position in (planned.since, head.due) if position is not None]
    current = rating_rows.read_roster(store, head, event_rows.read_plan(store, head, head.planned).last_rules)
    if not starts:
        return Effect(planned.told, [], len(current), 0, 0, head.position)
    check_replay_size(store, head, min(starts), limit)
    roster = begin(store, head, plan, min(starts))
    tally = ReplayTally(head.name, plan, planned, min(starts))
    inserted: list[Row] = []
    newcomers: dict[int, str] = {}
    if planned.insertion is not None:
        ids, newcomers = ids_foreseen(store, planned.insertion.batch)
        inserted = PendingMatches.of(planned.insertion, ids).rows()
    for step in replay(store, head, plan, roster, progress, lines=False, pending=inserted):
        tally.add(step)
    tally.check()
    moves = rating_moves(store, current, roster, newcomers)
    players = len(np.union1d(current.ids, roster.ids))
    return Effect(planned.told, moves, players, tally.rated, tally.left_out, head.position)
