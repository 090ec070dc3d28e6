"""Who stands where, kept in memory and brought up to date by itself."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import EvenmatchError
from evenmatch.history import Flags, Floats
from evenmatch.ledger import schema
from evenmatch.ledger.codec import ID, UNSHOWN, Ids
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Kind
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.service.settings import Settings
from evenmatch.standings.board import Board, Snapshot, snapshot
from evenmatch.standings.hysteresis import settle
from evenmatch.systems.system import timeless

SHARE = 0.02  # of the time that refreshing may take: a snapshot of 0.5 s is kept for 25 s
LEAST = 0.05  # seconds that a snapshot is kept at least
AGE = 3_650 * 86_400_000_000  # ten years in microseconds: what does not change by then lasts
LONG = 0.02  # seconds: a view that takes longer to make is not waited for by who looks at a page
DIVIDE = 60_000_000  # microseconds between two times that divisions are recorded

_COLUMNS = "SELECT player, rating, matches, completed, last_completed FROM state WHERE ladder = ? AND generation = ?"


@dataclass(frozen=True, eq=False)
class View:
    """A snapshot, and what it was made from.

    taken  when, on the monotonic clock;  cost  seconds of the processor that it took
    lasts  False: ratings change with time alone, so all are read anew each time
    """

    head: Head
    settings: Settings
    snapshot: Snapshot
    taken: float
    cost: float
    lasts: bool

    def is_younger(self, times: float) -> bool:
        """Whether it is younger than so many times what a view may cost."""
        return time.monotonic() - self.taken < times * max(LEAST, self.cost / SHARE)

    def show(
        self, ids: Ids, rating: Floats, completed: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What players are told after their matches: percentile and division, UNSHOWN while not placed.

        ids, rating, completed  of each player and match in order, as they are after it; percentiles are taken against
        all others as they are after the last of these matches
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
        last = len(ids) - 1 - last  # of each player's matches
        own = np.where(counts, rating, np.nan)[last]
        gone = before[last]
        percentile = taken.against.percentiles_after(
            rating, own[of[::-1]], gone[~np.isnan(gone)], own[~np.isnan(own)]
        ).astype(np.int64)
        division = settle(recorded, percentile, rules.divisions, rules.division_margin)
        placed = completed >= rules.placement
        return np.where(placed, percentile, UNSHOWN), np.where(placed, division.astype(np.int64), UNSHOWN)


class Boards:
    """The boards of all ladders that anybody asked for. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._views: dict[str, View] = {}
        self._forgotten: dict[str, int] = {}  # how often, by ladder
        self._guard = threading.Lock()
        self._refreshing: dict[str, threading.Lock] = {}
        self._beside: dict[str, threading.Thread] = {}

    def view(self, ladder: str, now: int, *, fresh: bool = True) -> View:
        """The ladder's present view, as of now (microseconds); not fresh: one that may be some seconds old.

        Raises UnknownNameError where there is no such ladder.
        """
        if not fresh and (kept := self._views.get(ladder)) is not None and self._is_young(kept):
            return kept
        with self._guard:
            lock = self._refreshing.setdefault(ladder, threading.Lock())
        with lock:
            if not fresh and (kept := self._views.get(ladder)) is not None and self._is_young(kept):
                return kept
            old, forgotten = self._views.get(ladder), self._forgotten.get(ladder, 0)
            with self._database.read() as connection:
                made = take(Store(connection, self._database.rows), ladder, now, old)
            with self._guard:
                if self._forgotten.get(ladder, 0) == forgotten:  # else it may be of before what made it old
                    self._views[ladder] = made
            return made

    def young(self, ladder: str, now: int) -> View | None:
        """The view that is kept, if it is young enough to be shown; the database is not asked.

        One that has just become too old is shown while it is made anew, so that nobody waits for that.
        """
        kept = self._views.get(ladder)
        if kept is None or self._is_young(kept):
            return kept
        if not kept.is_younger(2):
            return None
        self._refresh_beside(ladder, now)
        return kept

    def shown(self, ladder: str, now: int) -> View:
        """A view for somebody who watches, and is told once there is a newer one: nobody waits long for it.

        One that takes long to make is shown however old it is, while it is made anew. Raises UnknownNameError.
        """
        kept = self._views.get(ladder)
        if kept is None or kept.cost < LONG or self._is_young(kept):
            return self.view(ladder, now, fresh=False)
        self._refresh_beside(ladder, now)
        return kept

    def _refresh_beside(self, ladder: str, now: int) -> None:
        """Make the view anew in a thread, unless that is being done."""
        with self._guard:
            if ladder in self._beside:
                return
            thread = threading.Thread(target=self._refresh, args=(ladder, now), name=f"evenmatch-{ladder}", daemon=True)
            try:
                thread.start()  # it waits for this lock before it takes itself out again
            except RuntimeError:  # no more threads: whoever asks when the view is older yet makes it
                return
            self._beside[ladder] = thread

    def _refresh(self, ladder: str, now: int) -> None:
        try:
            with suppress(EvenmatchError):  # whoever asks next waits for the view, and is told
                self.view(ladder, now, fresh=False)
        finally:
            with self._guard:
                del self._beside[ladder]

    def close(self) -> None:
        """Wait for what is being made."""
        with self._guard:
            threads = list(self._beside.values())
        for thread in threads:
            thread.join()

    def forget(self, ladder: str) -> None:
        """Make the next view from the database alone."""
        with self._guard:
            self._forgotten[ladder] = self._forgotten.get(ladder, 0) + 1
            self._views.pop(ladder, None)

    def divided(self, view: View, at: int) -> None:
        """Remember that the divisions of this view were recorded, so that nobody reads them again for that."""
        board = replace(view.snapshot.board, division=view.snapshot.divisions)
        taken = replace(view.snapshot, board=board)
        with self._guard:
            if self._views.get(view.head.name) is view:
                self._views[view.head.name] = replace(view, head=view.head._replace(divided_at=at), snapshot=taken)

    @staticmethod
    def _is_young(view: View) -> bool:
        return view.is_younger(1)


def take(store: Store, ladder: str, now: int, old: View | None = None) -> View:
    """A view of a ladder as it is in this transaction; an old one saves reading what has not changed."""
    begin = time.thread_time()
    head = store.head(ladder)
    settings = Settings.read(head.settings)
    board, lasts = None, True
    if old is not None and old.head.generation == head.generation and old.head.ladder == head.ladder:
        board = _catch_up(store, old, head)
    if board is None:
        rows = store.all(f"{_COLUMNS} ORDER BY player", head.ladder, head.generation)
        board = _board(store, head, _columns(rows))
        rating, lasts = _aged(store, head, board.rating, now)
        board = replace(board, rating=rating)
    latest = now if head.time is None else max(now, head.time)  # clocks of game servers may be ahead
    made = snapshot(board, settings.standings, latest)
    return View(head, settings, made, time.monotonic(), time.thread_time() - begin, lasts)


def _aged(store: Store, head: Head, rating: Floats, now: int) -> tuple[Floats, bool]:
    """The ratings as of now, and whether time alone leaves them as they are."""
    rules = store.plan(head, head.planned).last_rules
    system = rules.system
    if system.as_of is timeless or not len(rating):
        return rating, system.as_of is timeless
    records = store.roster(head, rules).records
    later = system.as_of(records, now + AGE, rules.parameters)["rating"]
    if np.array_equal(later, rating):  # what grows is not what is shown
        return rating, True
    return np.ascontiguousarray(system.as_of(records, now, rules.parameters)["rating"]), False


def _catch_up(store: Store, old: View, head: Head) -> Board | None:
    """The old board with what changed since; None where reading all of it is as quick."""
    board = old.snapshot.board
    if not old.lasts or head.position - old.head.position > max(1000, len(board) // 20):
        return None
    if head == old.head:
        return board
    sql = "SELECT kind, body, players FROM event WHERE ladder = ? AND position > ? AND position <= ?"
    events = store.all(sql, head.ladder, old.head.position, head.position)
    if any(kind == Kind.SEASON and json.loads(body)["factor"] != 1 for kind, body, _ in events):
        return None  # everybody begins anew
    held = [players for _, _, players in events if players is not None]
    ids = np.unique(np.frombuffer(b"".join(held), ID).astype(np.int64))
    rows = store.rows.among(
        store.connection, f"{_COLUMNS} AND player IN ({{}})", (head.ladder, head.generation), ids.tolist()
    )
    board = _joined(board, _columns(sorted(rows)))
    if head.corrected != old.head.corrected:
        board = replace(board, hidden=_hidden(store, head, board.player))
    if head.divided_at != old.head.divided_at:
        board = replace(board, division=_divisions(store, head, board.player))
    return board


def _joined(board: Board, changed: Columns) -> Board:
    """The board with other values for some players, who may be new to it."""
    at = board.find(changed.player)
    new = at < 0
    order = np.argsort(np.concatenate((board.player, changed.player[new])), kind="stable")

    def joined(own: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        column = own.copy()
        column[at[~new]] = values[~new]
        return np.concatenate((column, values[new]))[order] if new.any() else column

    division = np.where(new, UNSHOWN, board.division[at] if len(board) else UNSHOWN).astype(np.int16)
    hidden = ~new & (board.hidden[at] if len(board) else False)
    return Board(
        joined(board.player, changed.player),
        joined(board.rating, changed.rating),
        joined(board.matches, changed.matches),
        joined(board.completed, changed.completed),
        joined(board.last_completed, changed.last_completed),
        joined(board.division, division),
        joined(board.hidden, hidden),
    )


class Columns(NamedTuple):
    """What is read of players' states."""

    player: Ids
    rating: Floats
    matches: Ids
    completed: Ids
    last_completed: Ids


def _columns(rows: list[Row]) -> Columns:
    if not rows:
        none = np.empty(0, np.int64)
        return Columns(none, np.empty(0), none, none, none)
    player, rating, *rest = zip(*rows, strict=True)
    return Columns(np.array(player, np.int64), np.array(rating, np.float64), *(np.array(one, np.int64) for one in rest))


def _board(store: Store, head: Head, columns: Columns) -> Board:
    player = columns.player
    division, hidden = _divisions(store, head, player), _hidden(store, head, player)
    return Board(player, columns.rating, columns.matches, columns.completed, columns.last_completed, division, hidden)


def _divisions(store: Store, head: Head, player: Ids) -> NDArray[np.int16]:
    """The recorded division of each player, UNSHOWN where there is none."""
    division = np.full(len(player), UNSHOWN, np.int16)
    recorded = store.all("SELECT player, division FROM division WHERE ladder = ?", head.ladder)
    if recorded and len(player):
        ids, values = np.array(recorded, np.int64).T
        at = np.minimum(player.searchsorted(ids), len(player) - 1)
        here = player[at] == ids
        division[at[here]] = values[here]
    return division


def _hidden(store: Store, head: Head, player: Ids) -> Flags:
    """Who is shown nowhere: the banned and the erased."""
    banned = list(store.plan(head, head.corrected).bans)
    erased = [row[0] for row in store.all("SELECT player FROM player WHERE erased_at IS NOT NULL")]
    return np.isin(player, np.array(banned + erased, np.int64))


def divide(store: Store, view: View, now: int) -> int | None:
    """Record the divisions that a snapshot gives; how many changed. The ladder must be locked.

    None: nothing is recorded, for the ladder's ratings or divisions have been made anew since the view was taken.
    """
    head = store.head(view.head.name)
    if (head.generation, head.divided_at) != (view.head.generation, view.head.divided_at):
        return None
    board, taken = view.snapshot.board, view.snapshot
    rows = taken.changed(board)
    listed = zip(board.player[rows].tolist(), taken.divisions[rows].tolist(), strict=True)
    columns = ("ladder", "player", "division")
    store.rows.upsert(store.connection, schema.division, columns, [(head.ladder, *row) for row in listed])
    store.run("UPDATE ladder SET divided_at = ? WHERE ladder = ?", now, head.ladder)
    return len(rows)
