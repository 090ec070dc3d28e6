"""The names and player states that recording reads, from this process's cache where possible.

The cached states of a ladder belong to a position of its ledger, which every event advances. The recorder reads the
position under the ladder's lock. A match recorded by another process makes its players' states stale; a correction or
a change of names makes all states stale. Only committed states are cached. If several processes record on a ladder,
each reads what its cache lacks while another one holds the lock. Under the lock it then reads only states that have
changed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import Kind
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.recording.recording_sql import later_events
from evenmatch.systems.ladder_records import join_records
from evenmatch.systems.system import Records, Rules

MOST_CACHED = 200_000  # names, and players of a ladder; a larger cache is emptied
FOLLOWED = 5_000  # after more events from other processes, all states are stale instead of looked up


class States(NamedTuple):
    """The states of players, whose ids ascend."""

    ids: Ids
    records: Records
    tally: NDArray[np.void]


@dataclass(eq=False)
class _Players:
    """The states of a ladder's players as of a position: rows in order of first use.

    ids  of the players, ascending;  rows  the row of each
    stale  by row: another process has changed the state
    """

    records: Records
    tally: NDArray[np.void]
    stale: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    ids: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def part(self, ids: Ids) -> tuple[Flags, NDArray[np.int64]]:
        """A mask of these players whose states are cached and not stale, and the rows of those."""
        known, rows = self._find(ids)
        valid = ~self.stale[rows]
        known[known] = valid
        return known, rows[valid]

    def mark_stale(self, ids: Ids) -> None:
        """Mark the states of these players as changed by another process."""
        self.stale[self._find(ids)[1]] = True

    def _find(self, ids: Ids) -> tuple[Flags, NDArray[np.int64]]:
        """A mask of these players that have a row, and the rows of those."""
        if not len(self.ids):
            return np.zeros(len(ids), np.bool_), self.rows
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        known = self.ids[place] == ids
        return known, self.rows[place[known]]

    def keep(self, roster: Roster) -> None:
        """Store the states of these players, whose ids ascend."""
        known, rows = self._find(roster.ids)
        used = np.empty(len(known), np.int64)
        used[known], count = rows, len(self.rows)
        if not known.all():
            new = roster.ids[~known]
            added = used[~known] = np.arange(count, count + len(new))
            place = np.searchsorted(self.ids, new)
            self.ids, self.rows = np.insert(self.ids, place, new), np.insert(self.rows, place, added)
            if len(self.rows) > len(self.records):
                self.records = _longer(self.records, 2 * len(self.rows))
                self.tally = _longer(self.tally, 2 * len(self.rows))
                self.stale = _longer(self.stale, 2 * len(self.rows))
        self.records[used], self.tally[used], self.stale[used] = roster.records, roster.tally, False


def basis(head: Head) -> tuple[int, ...]:
    """The properties of a head whose change makes the states of all players stale."""
    return head.generation, head.corrected, head.planned, head.names


class _Ladder(NamedTuple):
    """The cached states of a ladder, the position they belong to, and their `basis`."""

    basis: tuple[int, ...]
    position: int
    players: _Players


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer


class PlayerStateCache:
    """The cached names and player states of one process. Threads may share it.

    Threads read under their ladder's lock. They store what they committed when another thread may already hold it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._version = -1
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._ladders: dict[int, _Ladder] = {}
        self._shared: set[int] = set()

    def names(self, version: int, wanted: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
        """The ids of the cached names, and the current names of these players by id."""
        with self._guard:
            if self._version != version:
                return {}, {}
            ids = {name: self._ids[name] for name in wanted if name in self._ids}
            return ids, {player: self._names[player] for player in ids.values()}

    def is_shared(self, ladder: int) -> bool:
        """True if another process recorded on a ladder before this one's last transaction there."""
        with self._guard:
            return ladder in self._shared

    def position(self, head: Head) -> int | None:
        """The position of the cached states; None: they do not belong to this head, or are too old."""
        with self._guard:
            cached = self._ladders.get(head.ladder)
        is_old = cached is None or cached.basis != basis(head) or head.position - cached.position > FOLLOWED
        return None if is_old or cached is None else cached.position

    def note_shared(self, ladder: int, *, is_shared: bool) -> None:
        """Note whether another process recorded on a ladder before the current transaction."""
        with self._guard:
            if is_shared:
                self._shared.add(ladder)
            else:
                self._shared.discard(ladder)

    def states(self, head: Head, position: int, changed: Ids, ids: Ids) -> tuple[Flags, States] | None:
        """A mask of the players whose states are cached as of this head, and copies of the states; None: all stale.

        position  as `position` returned it
        changed   players whose states later events changed
        """
        with self._guard:
            cached = self._ladders.get(head.ladder)
            if cached is None or cached.basis != basis(head) or cached.position < position:  # `keep` came meanwhile
                return None
            players = cached.players
            players.mark_stale(changed)
            self._ladders[head.ladder] = cached._replace(position=max(cached.position, head.position))
            known, rows = players.part(ids)
            return known, States(ids[known], players.records.take(rows), players.tally.take(rows))

    def keep(
        self, head: Head, ids: Mapping[str, int], names: Mapping[int, str], roster: Roster | None, position: int
    ) -> None:
        """Cache what a transaction with this head committed; the ladder's ledger now ends at this position."""
        with self._guard:
            if self._version < head.names or len(self._ids) > MOST_CACHED:
                self._version, self._ids, self._names = head.names, {}, {}
            if self._version == head.names:
                self._ids |= ids
                self._names |= names
            if roster is not None:
                self._keep(head, roster, position)

    def _keep(self, head: Head, roster: Roster, position: int) -> None:
        """Cache states as of a position. The lock is released, so other threads may have cached later ones."""
        cached = self._ladders.get(head.ladder)
        if cached is not None and cached.basis != basis(head):
            cached = None
        if cached is not None and cached.position > position:
            return
        is_current = cached is not None and cached.position in (head.position, position)
        if cached is not None and is_current and len(cached.players.rows) <= MOST_CACHED:
            players = cached.players
        else:
            players = _Players(roster.records[:0], roster.tally[:0])
        players.keep(roster)
        self._ladders[head.ladder] = _Ladder(basis(head), position, players)


@dataclass(frozen=True, eq=False)
class ReadAhead:
    """Names and states of players, read as of a head without the ladder's lock.

    ids, names  as `player_rows.find_known` returns them
    players     the players whose states were read, ascending; some have no state yet
    """

    head: Head
    ids: Mapping[str, int]
    names: Mapping[int, str]
    players: Ids
    states: States


def read_ahead(store: Store, head: Head, memory: PlayerStateCache, rules: Rules, wanted: Sequence[str]) -> ReadAhead:
    """Read names and states of players that are not cached, in a read-only transaction."""
    transaction = StateTransaction(memory, head)
    transaction.later = later_events(store, head, transaction.after)
    ids, names = memory.names(head.names, wanted)
    new_ids, new_names = player_rows.find_known(store, [name for name in wanted if name not in ids])
    ids |= new_ids
    players = np.unique(np.array(list(ids.values()), np.int64))
    roster = transaction.roster(store, rules, players)
    return ReadAhead(head, ids, names | new_names, players, States(roster.ids, roster.records, roster.tally))


@dataclass(eq=False)
class StateTransaction:
    """The names and states that one transaction reads for a ladder; cached on commit.

    head   of the ladder in this transaction
    ahead  what was read earlier, without the lock
    later  the events after the position `after`, see RecordingLookup
    ids, names  what was not cached
    read   the states of the transaction's players, changed in place
    """

    memory: PlayerStateCache
    head: Head
    ahead: ReadAhead | None = None
    later: Sequence[Row] = ()
    ids: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    read: Roster | None = None

    def __post_init__(self) -> None:
        self._cached = self.memory.position(self.head)  # the position that the cached states stand for
        if self.ahead is not None:
            is_old = self.head.position - self.ahead.head.position > FOLLOWED
            if is_old or basis(self.ahead.head) != basis(self.head):
                self.ahead = None

    @property
    def after(self) -> int:
        """The position after which events must be looked up."""
        positions = [self.head.position]
        if self._cached is not None:
            positions.append(self._cached)
        if self.ahead is not None:
            positions.append(self.ahead.head.position)
        return min(positions)

    def note_shared(self) -> None:
        """Note, while holding the ladder's lock, whether another process records on the ladder."""
        if self._cached is not None:
            is_shared = any(row[1] > self._cached for row in self.later)
            self.memory.note_shared(self.head.ladder, is_shared=is_shared)

    def admit(self, store: Store, wanted: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
        """The ids and current names of players, like player_rows.admit."""
        ids, names = self.memory.names(self.head.names, wanted)
        if self.ahead is not None:
            self.ids = {name: self.ahead.ids[name] for name in wanted if name not in ids and name in self.ahead.ids}
            self.names = {player: self.ahead.names[player] for player in self.ids.values()}
        missing = [name for name in wanted if name not in ids and name not in self.ids]
        new_ids, new_names = player_rows.admit(store, missing, present=True)
        self.ids |= new_ids
        self.names |= new_names
        return ids | self.ids, names | self.names

    def roster(self, store: Store, rules: Rules, ids: Ids) -> Roster:
        """The states of these players, like player_states.read_roster; the caller changes them in place."""
        parts: list[States] = []
        missing = ids
        if all(kind == Kind.MATCH for kind, _, _ in self.later):
            if self._cached is not None:
                changed = self._changed_after(self._cached)
                states = self.memory.states(self.head, self._cached, changed, ids)
                if states is not None:
                    known, cached = states
                    parts, missing = [cached], ids[~known]
            if self.ahead is not None and len(missing):
                changed = self._changed_after(self.ahead.head.position)
                valid = np.setdiff1d(np.intersect1d(missing, self.ahead.players), changed)
                parts.append(_part(self.ahead.states, valid))
                missing = np.setdiff1d(missing, valid)
        self.read = rating_rows.read_roster(store, self.head, rules, missing)
        if parts:
            parts.append(States(self.read.ids, self.read.records, self.read.tally))
            self.read = replace(self.read, **_joined(parts)._asdict())
            self.read.others = rating_rows.others_reader(store, self.head, self.read)
        return self.read

    def _changed_after(self, position: int) -> Ids:
        return event_rows.changed_players([row for row in self.later if row[1] > position])

    def keep(self, position: int) -> None:
        """Update the cache after the commit; the ladder's ledger now ends at this position."""
        self.memory.keep(self.head, self.ids, self.names, self.read, position)


def _part(states: States, ids: Ids) -> States:
    """The states of these players, omitting players without one."""
    rows = np.flatnonzero(np.isin(states.ids, ids, assume_unique=True))
    return States(states.ids[rows], states.records.take(rows), states.tally.take(rows))


def _joined(parts: Sequence[States]) -> States:
    """The states of disjoint groups of players, by id."""
    ids = np.concatenate([part.ids for part in parts])
    order = np.argsort(ids, kind="stable")
    records, tally = parts[0].records, parts[0].tally
    for part in parts[1:]:
        records, tally = join_records(records, part.records), join_records(tally, part.tally)
    return States(ids[order], records.take(order), tally.take(order))
