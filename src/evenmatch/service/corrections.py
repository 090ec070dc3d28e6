"""Corrections of history: void, ban, reinstate. Each is an event and a replay, and can be previewed."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from evenmatch.errors import BadParameterError, ConflictError, UnknownNameError
from evenmatch.history import Floats
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import Body, Correction, Kind
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import appearances, corrections, events, player_identities, player_states
from evenmatch.service.ladders import PlannedCorrection
from evenmatch.service.replay.ledger_replay import Progress, ReplayTally, begin, replay
from evenmatch.times import implausible


class RatingMove(NamedTuple):
    """A player whose rating a correction changes; before, after: None without a rating."""

    player: str
    before: float | None
    matches_before: int
    after: float | None
    matches_after: int


class Preview(NamedTuple):
    """The effect of a correction.

    told      what it does, in words;  moves  the largest change first
    players   on the ladder;  matches  that would be rated again
    left_out  matches that would stay unrated, since the new rules cannot rate them
    done      it is already in the ledger under the given id
    unlisted  further rating moves, smaller than those of `moves`
    """

    told: str
    moves: list[RatingMove]
    players: int
    matches: int
    left_out: int
    done: bool = False
    unlisted: int = 0

    @property
    def moved(self) -> int:
        """The number of players whose rating would change."""
        return len(self.moves) + self.unlisted


@dataclass(frozen=True)
class _OfMatch:
    """A request about a match. Raises UnknownNameError if there is no such match."""

    match_id: str
    reason: str | None = None

    kind: ClassVar[Kind]

    def body(self, store: Store, head: Head) -> Body:
        """Which match, and why."""
        return {"match": _match(store, head, self.match_id), "id": self.match_id, "reason": self.reason}

    def _planned(self, store: Store, head: Head, effect: str) -> PlannedCorrection:
        position = _match(store, head, self.match_id)
        return PlannedCorrection(self.kind, self.body(store, head), position, f"match {self.match_id!r} {effect}")

    def _is_void(self, store: Store, head: Head) -> bool:
        return _match(store, head, self.match_id) in corrections.read_plan(store, head, head.corrected).void


@dataclass(frozen=True)
class Void(_OfMatch):
    """A request to void a match. Raises ConflictError if it is void."""

    kind: ClassVar[Kind] = Kind.VOIDED

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event."""
        if self._is_void(store, head):
            hint = f"`evenmatch reinstate --match {shlex.quote(self.match_id)}` makes it count again"
            raise ConflictError(f"match {self.match_id!r} is void already; {hint}")
        return self._planned(store, head, "is void")


@dataclass(frozen=True)
class Unvoid(_OfMatch):
    """A request to count a match again that was voided by its id. Raises ConflictError if it is not void."""

    kind: ClassVar[Kind] = Kind.UNVOIDED

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event."""
        if not self._is_void(store, head):
            raise ConflictError(f"match {self.match_id!r} is not void; only a match voided by its id can be reinstated")
        return self._planned(store, head, "counts again")


@dataclass(frozen=True)
class Ban:
    """A request to ban a player from a ladder.

    rule   "void": their matches are void; "refund": players who finished behind them get their losses back
    since  microseconds; matches that ended earlier stay as they are. None: all matches, past and future
    """

    player: str
    rule: str = "void"
    since: int | None = None
    reason: str | None = None

    kind: ClassVar[Kind] = Kind.BANNED

    def __post_init__(self) -> None:
        if self.rule not in ("void", "refund"):
            raise BadParameterError(f"rule is {self.rule!r}; expected void or refund")
        if self.since is not None and (reason := implausible("since", self.since)):
            raise BadParameterError(reason)

    def body(self, store: Store, head: Head) -> Body:
        """The player, the rule, since when, and why."""
        player = player_identities.find(store, self.player)
        return {"player": player, "since": self.since, "rule": self.rule, "reason": self.reason}

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event. Raises ConflictError if the player is banned."""
        player = player_identities.find(store, self.player)
        if player in corrections.read_plan(store, head, head.corrected).bans:
            raise ConflictError(
                f"player {self.player!r} is banned from ladder {head.name!r} already; "
                f"`evenmatch reinstate {shlex.quote(self.player)}` lifts it"
            )
        first = first_match(store, head, player, self.since)
        effect = "matches are void" if self.rule == "void" else "victims get their losses back"
        return PlannedCorrection(
            self.kind, self.body(store, head), first, f"player {self.player!r} is banned, {effect}"
        )


@dataclass(frozen=True)
class Reinstate:
    """A request to lift a ban, as if it had never existed."""

    player: str
    reason: str | None = None

    kind: ClassVar[Kind] = Kind.REINSTATED

    def body(self, store: Store, head: Head) -> Body:
        """The player, and why."""
        return {"player": player_identities.find(store, self.player), "reason": self.reason}

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event. Raises ConflictError if the player is not banned."""
        player = player_identities.find(store, self.player)
        banned = corrections.read_plan(store, head, head.corrected).bans.get(player)
        if banned is None:
            raise ConflictError(f"player {self.player!r} is not banned from ladder {head.name!r}")
        first = first_match(store, head, player, banned.since)
        return PlannedCorrection(self.kind, self.body(store, head), first, f"player {self.player!r} is reinstated")


def _match(store: Store, head: Head, match_id: str) -> int:
    position = events.find_match(store, head.ladder, match_id)
    if position is None:
        recent = events.read_last_match_ids(store, head.ladder, 20)
        raise UnknownNameError(f"match of ladder {head.name!r}", match_id, recent)
    return position


def first_match(store: Store, head: Head, player: int, since: int | None) -> int | None:
    """Position of the first match, at `since` or later, of a player or of anyone merged into them; None: no match."""
    merged = corrections.read_plan(store, head, head.corrected).merged
    ids = [player, *(old for old, into in merged.items() if into == player)]
    return appearances.first_position(store, head.ladder, ids, -(2**62) if since is None else since)


def preview(store: Store, head: Head, wish: PlannedCorrection, progress: Progress | None = None) -> Preview:
    """Compare the ratings after a correction, and any others that are due, with the ratings shown now."""
    hypothetical = Correction(head.position + 1, wish.kind, wish.body)
    plan = plan_of([*corrections.read(store, head, head.corrected), hypothetical])
    starts = [position for position in (wish.since, head.due) if position is not None]
    if not starts:
        return Preview(wish.told, [], 0, 0, 0)
    return _preview(store, head, plan, min(starts), wish, progress)


def _preview(
    store: Store, head: Head, plan: Plan, since: int, correction: PlannedCorrection, progress: Progress | None
) -> Preview:
    roster = begin(store, head, plan, since)
    tally = ReplayTally(head.name, plan, correction)
    for step in replay(store, head, plan, roster, progress, lines=False):
        tally.add(step)
    tally.check()
    current = player_states.read_roster(store, head, corrections.read_plan(store, head, head.planned).last_rules)
    ids = np.union1d(current.ids, roster.ids)
    before, after = (
        _columns(state.ids, state.records["rating"], state.tally["matches"], ids) for state in (current, roster)
    )
    change = np.abs(np.nan_to_num(after[0]) - np.nan_to_num(before[0]))
    same = (before[0] == after[0]) & (before[1] == after[1])
    moved = np.flatnonzero(~same)
    moved = moved[np.argsort(-change[moved], kind="stable")]
    names = player_identities.names_of(store, ids[moved].tolist())
    moves = [
        RatingMove(names[player], *_row(before, row), *_row(after, row))
        for row, player in zip(moved.tolist(), ids[moved].tolist(), strict=True)
    ]
    return Preview(correction.told, moves, len(ids), tally.rated, tally.left_out)


def _row(columns: tuple[Floats, Ids], row: int) -> tuple[float | None, int]:
    rating = float(columns[0][row])
    return None if math.isnan(rating) else rating, int(columns[1][row])


def _columns(own: Ids, rating: Floats, matches: Ids, ids: Ids) -> tuple[Floats, Ids]:
    """Ratings (NaN without one) and match counts of these ids, from columns that hold some of them."""
    all_ratings, all_matches = np.full(len(ids), np.nan), np.zeros(len(ids), np.int64)
    rows = np.searchsorted(ids, own)
    all_ratings[rows], all_matches[rows] = rating, matches
    return all_ratings, all_matches
