"""Corrections of history: void, ban, reinstate. Each is an event followed by a replay, and can be previewed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import cast, get_args

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
from evenmatch.times import implausible, iso_time

BAN_RULES = get_args(BanRule)
BAN_EFFECTS = {
    "void": "matches are void",
    "refund": "victims get their losses back",
    "keep": "matches count as before",
}


@dataclass(frozen=True)
class Void:
    """A request to void a match. Raises ConflictError if it is void, UnknownNameError if there is no such match."""

    match_id: str
    reason: str | None = None

    def change(self, store: Store, head: Head) -> MatchVoided:
        """The match and the reason."""
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
        """The match and the reason."""
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

    rule   "void": their matches are void; "refund": players who finished behind them get their losses back; "keep": no
           rating changes. None: keep if the ban has an end, otherwise void
    since  microseconds; matches that ended earlier are not affected. None: all matches, past and future
    until  microseconds, when the ban ends by itself; None: never. Only with the rule "keep": ratings that changed
           without an event could neither be previewed nor verified
    """

    player: str
    rule: str | None = None
    since: int | None = None
    reason: str | None = None
    until: int | None = None

    def __post_init__(self) -> None:
        if self.chosen_rule not in BAN_RULES:
            raise BadParameterError(f"rule is {self.rule!r}; expected {', '.join(BAN_RULES[:-1])} or {BAN_RULES[-1]}")
        for name, time in (("since", self.since), ("until", self.until)):
            if time is not None and (reason := implausible(name, time)):
                raise BadParameterError(reason)
        if self.chosen_rule == "keep" and self.since is not None:
            raise BadParameterError("a ban with the rule keep changes no rating; expected no time since which it does")
        if self.chosen_rule != "keep" and self.until is not None:
            raise BadParameterError(
                f"rule is {self.rule!r}; a ban with an end changes no rating, so expected the rule keep"
            )

    @property
    def chosen_rule(self) -> str:
        """The rule, given or by default."""
        if self.rule is not None:
            return self.rule
        return "void" if self.until is None else "keep"

    def check_end(self, now: int) -> None:
        """Raise BadParameterError if the ban ends before now (microseconds)."""
        if self.until is not None and self.until <= now:
            raise BadParameterError(f"until is {iso_time(self.until)}, which has passed; expected a time in the future")

    def change(self, store: Store, _: Head) -> PlayerBanned:
        """The player, the rule, the time from which it applies, and the reason."""
        player, rule = player_rows.find(store, self.player), cast("BanRule", self.chosen_rule)
        return PlayerBanned(player, self.since, rule, self.reason, self.until)

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event. It replaces a ban with the rule keep. Raises ConflictError for any other ban."""
        change = self.change(store, head)
        former = event_rows.read_plan(store, head, head.corrected).bans.get(change.player)
        if former is not None and former.rule != "keep":
            raise ConflictError(
                f"player {self.player!r} is already banned from ladder {head.name!r}; "
                f"`evenmatch reinstate {shlex.quote(self.player)}` lifts it"
            )
        end = "" if self.until is None else f" until {iso_time(self.until)}"
        told = f"player {self.player!r} is banned{end}, {BAN_EFFECTS[self.chosen_rule]}"
        return PlannedCorrection(change, _first_affected(store, head, change), told)


@dataclass(frozen=True)
class Reinstate:
    """A request to lift a ban, as if it had never existed."""

    player: str
    reason: str | None = None

    def change(self, store: Store, _: Head) -> PlayerReinstated:
        """The player and the reason."""
        return PlayerReinstated(player_rows.find(store, self.player), self.reason)

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event. Raises ConflictError if the player is not banned."""
        change = self.change(store, head)
        banned = event_rows.read_plan(store, head, head.corrected).bans.get(change.player)
        if banned is None:
            raise ConflictError(f"player {self.player!r} is not banned from ladder {head.name!r}")
        first = _first_affected(store, head, banned)
        return PlannedCorrection(change, first, f"player {self.player!r} is reinstated")


def _first_affected(store: Store, head: Head, ban: PlayerBanned) -> int | None:
    """Position of the first match that a ban affects; None: it affects none."""
    return None if ban.rule == "keep" else first_match(store, head, ban.player, ban.since)


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
