"""The standings of each ladder, cached in memory and refreshed as they age.

A view is a snapshot of the standings, with the settings and the ledger head that it was computed from.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.accounts.access import Caller
from evenmatch.errors import EvenmatchError
from evenmatch.history import Flags, Floats
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, ladder_rows, player_rows, rating_rows
from evenmatch.ledger.codec import UNSHOWN, Ids
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import Counting
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.standings.board import Board, Snapshot, snapshot
from evenmatch.standings.distribution import lowered
from evenmatch.standings.division import settle
from evenmatch.systems.system import timeless

__all__ = (
    "DIVIDE",
    "StandingsCache",
    "View",
    "divide",
    "take",
)


SHARE = 0.02  # share of processor time that refreshing may take: a snapshot that costs 0.5 s is used for 25 s
SHORTEST_USE = 0.05  # seconds: a snapshot is used for at least this long


@dataclass(frozen=True, eq=False)
class View:
    """A snapshot of the standings, with the ladder's head and settings that it was computed from.

    begun  seconds on the machine's monotonic clock: the view includes everything committed before
    taken  when the view was complete, on the same clock;  cost  processor seconds to compute it
    lasts  False: ratings change with time alone, so each view reads all of them again
    counting  which matches of a player the snapshot counts, see Plan.counting
    next_end  when the first ban in force ends, microseconds; None: none ends
    """

    head: Head
    settings: Settings
    snapshot: Snapshot
    begun: float
    taken: float
    cost: float
    lasts: bool
    counting: Counting
    next_end: int | None

    def seen_by(self, caller: Caller) -> View:
        """The view as this caller may see it: all of it with the scope `ratings`, otherwise what the ladder shows."""
        return self if self.settings.shown_to(caller, self.head.name) == "rating" else self.shown

    @property
    def basis(self) -> tuple[object, ...]:
        """Properties that two views must share for a page of one to follow a page of the other."""
        return self.head.ladder, self.head.generation, self.head.corrected, self.snapshot.show, self.settings

    @cached_property
    def identity(self) -> str:
        """A digest of the listed players in order: equal for two views only if they list the same players."""
        snapshot = self.snapshot
        digest = blake2b(repr(self.basis[:-1]).encode(), digest_size=12)
        for column in (snapshot.board.player, snapshot.board.rating):
            digest.update(column[snapshot.order].tobytes())
        return digest.hexdigest()

    @cached_property
    def shown(self) -> View:
        """The view as the ladder shows it to everybody."""
        return replace(self, snapshot=self.snapshot.shown_as(self.settings.show))

    def is_younger(self, times: float) -> bool:
        """True if the view is younger than `times` the period for which a view of this cost is used."""
        return time.monotonic() - self.taken < times * max(SHORTEST_USE, self.cost / SHARE)

    def show(
        self, ids: Ids, rating: Floats, completed: NDArray[np.int64], expected_move: Floats
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The percentiles and division indices shown to players after their matches; UNSHOWN while not placed.

        ids, rating, completed, expected_move  one entry per player and match, in order: the rating after the match;
                                               completed matches and lowest expected move after all of them
        Percentiles are relative to the ratings of all others after the last of these matches.
        """
        rules = self.settings.standings
        taken, board = self.snapshot, self.snapshot.board
        row = board.find(ids)
        known = row >= 0
        before, recorded = np.full(len(ids), np.nan), np.full(len(ids), UNSHOWN, np.int16)
        recorded[known] = board.division[row[known]]
        before[known] = np.where(taken.active[row[known]], board.rating[row[known]], np.nan)
        counts = completed > 0
        counts[known] &= ~board.hidden[row[known]]
        _, last, of = np.unique(ids[::-1], return_index=True, return_inverse=True)
        last = len(ids) - 1 - last  # index of each player's last match
        own = np.where(counts, rating, np.nan)[last]
        replaced = before[last]
        percentile = taken.against.percentiles_after(
            rating, own[of[::-1]], replaced[~np.isnan(replaced)], own[~np.isnan(own)]
        ).astype(np.int64)
        falls = np.zeros(len(ids), np.int64)
        falls[known] = np.where(completed[known] == board.completed[row[known]], taken.falls[row[known]], 0)
        percentile = lowered(percentile, falls, rules)  # a match that was quit does not end inactivity
        division = settle(recorded, percentile, rules.divisions, rules.division_margin)
        placed = rules.placed(completed, expected_move)
        return np.where(placed, percentile, UNSHOWN), np.where(placed, division.astype(np.int64), UNSHOWN)


AGE = 3_650 * 86_400_000_000  # ten years in microseconds: ratings equal after that time do not change with time
LONG = 0.02  # seconds: pages do not wait for a view that takes longer to compute
STALE = 10.0  # seconds for which receipts use a view, unless its cost makes it last longer
DIVIDE = 60_000_000  # microseconds between two recordings of divisions


class StandingsCache:
    """The cached views of all ladders that were requested. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._views: dict[str, View] = {}
        self._forgotten: dict[str, float] = {}  # time of the last `forget` call, by ladder; on the monotonic clock
        self._guard = threading.Lock()
        self._refreshing: dict[str, threading.Lock] = {}
        self._background: dict[str, threading.Thread] = {}  # refreshing a view, by ladder
        self._paid_at = 0.0  # when the views computed so far have taken their share of time; on the monotonic clock

    def view(self, ladder: str, now: int, *, fresh: bool = True) -> View:
        """The ladder's view as of now (microseconds); fresh=False: the cached view, which may be a few seconds old.

        Raises UnknownNameError.
        """
        if not fresh and (cached := self._views.get(ladder)) is not None and self._is_young(cached):
            return cached
        with self._guard:
            lock = self._refreshing.setdefault(ladder, threading.Lock())
        with lock:
            if not fresh and (cached := self._views.get(ladder)) is not None and self._is_young(cached):
                return cached
            return self._computed(ladder, now, self._views.get(ladder))

    def _computed(self, ladder: str, now: int, old: View | None) -> View:
        forgotten = self._forgotten.get(ladder, 0.0)
        with self._database.read() as store:
            view = take(store, ladder, now, old)
        self._keep(view, forgotten)
        self._paid_at = min(max(self._paid_at, view.taken) + view.cost / SHARE, view.taken + STALE)
        return view

    def _keep(self, view: View, forgotten: float) -> None:
        """Cache a view, unless the ladder has changed since and the view may predate the change."""
        with self._guard:
            if self._forgotten.get(view.head.name, 0.0) == forgotten:
                self._views[view.head.name] = view

    def for_receipts(self, ladder: str, now: int) -> View:
        """A view for the standing on receipts. All ladders' views together take SHARE of the time, if possible.

        Each view is younger than STALE, or than the period for which a view of its cost is used.
        Raises UnknownNameError.
        """
        cached, moment = self._views.get(ladder), time.monotonic()
        if cached is not None and moment < self._paid_at and moment - cached.taken < STALE:
            return cached
        return self.young(ladder, now) or self.view(ladder, now, fresh=False)

    def young(self, ladder: str, now: int) -> View | None:
        """The cached view if it is recent enough to show, else None; does not read the database.

        A view that has just become too old is returned while it is refreshed in the background.
        """
        cached = self._views.get(ladder)
        if cached is None or self._is_young(cached):
            return cached
        if not cached.is_younger(2):
            return None
        self._refresh_in_background(ladder, now)
        return cached

    def shown(self, ladder: str, now: int) -> View:
        """A view for a page that updates itself when a newer view exists; returns without a long wait.

        A view that is expensive to compute is returned at any age, while it is refreshed in the background.
        Raises UnknownNameError.
        """
        cached = self._views.get(ladder)
        if cached is None or cached.cost < LONG or self._is_young(cached):
            return self.view(ladder, now, fresh=False)
        self._refresh_in_background(ladder, now)
        return cached

    def _refresh_in_background(self, ladder: str, now: int) -> None:
        """Refresh the view in a thread, unless one is already doing so."""
        with self._guard:
            if ladder in self._background:
                return
            thread = threading.Thread(target=self._refresh, args=(ladder, now), name=f"evenmatch-{ladder}", daemon=True)
            try:
                thread.start()  # needs this lock to remove itself from the dict
            except RuntimeError:  # no thread available: a later request computes the view itself
                return
            self._background[ladder] = thread

    def _refresh(self, ladder: str, now: int) -> None:
        try:
            with suppress(EvenmatchError):  # the next request computes the view itself, and gets the error
                self.view(ladder, now, fresh=False)
        finally:
            with self._guard:
                del self._background[ladder]

    def close(self) -> None:
        """Wait for background refreshes to end."""
        with self._guard:
            threads = list(self._background.values())
        for thread in threads:
            thread.join()

    def forget(self, ladder: str) -> None:
        """Discard the cached view, so that the next one is read from the database."""
        with self._guard:
            self._forgotten[ladder] = time.monotonic()
            self._views.pop(ladder, None)

    def divided(self, view: View, at: int) -> None:
        """Update the cached view after its divisions were recorded, which saves reading them again."""
        board = replace(view.snapshot.board, division=view.snapshot.divisions)
        taken = replace(view.snapshot, board=board)
        with self._guard:
            if self._views.get(view.head.name) is view:
                self._views[view.head.name] = replace(view, head=view.head._replace(divided_at=at), snapshot=taken)

    @staticmethod
    def _is_young(view: View) -> bool:
        return view.is_younger(1)


def take(store: Store, ladder: str, now: int, old: View | None = None) -> View:
    """Compute a ladder's view in this transaction, reading only what changed since the view `old`."""
    begun, begin = time.monotonic(), time.thread_time()
    head = store.head(ladder)
    settings = Settings.read(head.settings)
    board, lasts = None, True
    if old is not None and old.head.generation == head.generation and old.head.ladder == head.ladder:
        board = _catch_up(store, old, head, now)
    if board is None:
        board = _board(store, head, _columns(rating_rows.read_standings(store, head)), now)
        rating, lasts = _aged(store, head, board.rating, now)
        board = replace(board, rating=rating)
    latest = now if head.time is None else max(now, head.time)  # clocks of game servers may be ahead
    taken = snapshot(board, settings.standings, latest)
    if old is not None and (old.head.ladder, old.head.planned) == (head.ladder, head.planned):
        counting = old.counting
    else:
        counting = event_rows.read_plan(store, head, head.planned).counting
    bans = event_rows.read_plan(store, head, head.corrected).banned(now).values()
    next_end = min((ban.until for ban in bans if ban.until is not None), default=None)
    cost = time.thread_time() - begin
    return View(head, settings, taken, begun, time.monotonic(), cost, lasts, counting, next_end)


def _aged(store: Store, head: Head, rating: Floats, now: int) -> tuple[Floats, bool]:
    """The ratings as of now, and whether they stay the same as time passes."""
    rules = event_rows.read_plan(store, head, head.planned).last_rules
    system = rules.system
    if system.as_of is timeless or not len(rating):
        return rating, system.as_of is timeless
    records = rating_rows.read_roster(store, head, rules).records
    later = system.as_of(records, now + AGE, rules.parameters)["rating"]
    if np.array_equal(later, rating):  # only the uncertainty grows, not the shown rating
        return rating, True
    return np.ascontiguousarray(system.as_of(records, now, rules.parameters)["rating"]), False


def _catch_up(store: Store, old: View, head: Head, now: int) -> Board | None:
    """The old board with later changes applied; None if reading the whole board is as fast, or necessary."""
    board = old.snapshot.board
    if not old.lasts or head.position - old.head.position > max(1000, len(board) // 20):
        return None
    has_lapsed = old.next_end is not None and old.next_end <= now
    if head == old.head:
        return replace(board, hidden=_hidden(store, head, board.player, now)) if has_lapsed else board
    later = event_rows.read_changes_between(store, head.ladder, old.head.position, head.position)
    if any(
        kind == Kind.DECAYED or (kind == Kind.SEASON and json.loads(body)["factor"] != 1) for kind, body, _ in later
    ):
        return None  # ratings of players without a match changed
    ids = event_rows.changed_players(later).tolist()
    changed = _columns(rating_rows.read_standings(store, head, ids))
    added = changed.player[board.find(changed.player) < 0]  # some may be banned already, or have a recorded division
    recorded = ladder_rows.read_divisions_of(store, head.ladder, added.tolist())
    board = _joined(board, changed, _divisions(recorded, added), _hidden(store, head, added, now))
    if has_lapsed or head.corrected != old.head.corrected:
        board = replace(board, hidden=_hidden(store, head, board.player, now))
    if head.divided_at != old.head.divided_at:
        board = replace(board, division=_divisions(ladder_rows.read_divisions(store, head.ladder), board.player))
    return board


def _joined(board: Board, changed: StandingsColumns, division: NDArray[np.int16], hidden: Flags) -> Board:
    """The board with new values for some players. division, hidden: of the players that it lacks."""
    row = board.find(changed.player)
    new = row < 0
    order = np.argsort(np.concatenate((board.player, changed.player[new])), kind="stable")

    def extended(column: NDArray[Any], added: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate((column, added))[order] if new.any() else column

    def joined(own: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        column = own.copy()
        column[row[~new]] = values[~new]
        return extended(column, values[new])

    return Board(
        joined(board.player, changed.player),
        joined(board.rating, changed.rating),
        joined(board.matches, changed.matches),
        joined(board.completed, changed.completed),
        joined(board.last_completed, changed.last_completed),
        joined(board.expected_move, changed.expected_move),
        extended(board.division, division),
        extended(board.hidden, hidden),
    )


class StandingsColumns(NamedTuple):
    """The columns of players' states that standings need."""

    player: Ids
    rating: Floats
    matches: Ids
    completed: Ids
    last_completed: Ids
    expected_move: Floats


def _columns(rows: list[Row]) -> StandingsColumns:
    if not rows:
        empty = np.empty(0, np.int64)
        return StandingsColumns(empty, np.empty(0), empty, empty, empty, np.empty(0))
    kinds = (np.int64, np.float64, np.int64, np.int64, np.int64, np.float64)
    columns: Any = zip(zip(*rows, strict=True), kinds, strict=True)
    return StandingsColumns(*[np.array(column, kind) for column, kind in columns])


def _board(store: Store, head: Head, columns: StandingsColumns, now: int) -> Board:
    player = columns.player
    division = _divisions(ladder_rows.read_divisions(store, head.ladder), player)
    hidden = _hidden(store, head, player, now)
    return Board(*columns, division, hidden)


def _divisions(recorded: list[Row], player: Ids) -> NDArray[np.int16]:
    """The recorded division index of each player, UNSHOWN without one."""
    division = np.full(len(player), UNSHOWN, np.int16)
    if recorded and len(player):
        ids, values = np.array(recorded, np.int64).T
        row = np.minimum(player.searchsorted(ids), len(player) - 1)
        present = player[row] == ids
        division[row[present]] = values[present]
    return division


def _hidden(store: Store, head: Head, player: Ids, now: int) -> Flags:
    """A mask of banned and erased players, who are never listed."""
    if not len(player):
        return np.zeros(0, np.bool_)
    banned = list(event_rows.read_plan(store, head, head.corrected).banned(now))
    return np.isin(player, np.array(banned + player_rows.read_erased(store), np.int64))


def divide(store: Store, view: View, now: int) -> int | None:
    """Record the divisions of a view's snapshot. Return how many changed. The ladder must be locked.

    Return None and record nothing if the ladder's ratings were rebuilt or its divisions recorded after the view.
    """
    head = store.head(view.head.name)
    if (head.generation, head.divided_at) != (view.head.generation, view.head.divided_at):
        return None
    board, taken = view.snapshot.board, view.snapshot
    rows = taken.changed(board)
    listed = zip(board.player[rows].tolist(), taken.divisions[rows].tolist(), strict=True)
    ladder_rows.put_divisions(store, head.ladder, listed)
    ladder_rows.set_divided_at(store, head.ladder, now)
    return len(rows)
