"""A per-process cache of player states, which saves reading them again while no other process writes them.

The states of a ladder are as of a position of its ledger, which every event advances. The recorder reads the position
under the ladder's lock. What other processes have recorded since makes the states of its players stale; a correction,
and a change of names, those of all. Only committed states are cached.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import Kind
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import events, player_identities, player_states
from evenmatch.systems.ladder_records import join_records
from evenmatch.systems.system import Records, Rules

MOST = 200_000  # names, and players of a ladder; when there are more, the cache is emptied
FOLLOWED = 5_000  # events of other processes up to which their players are looked up; after more, all states are stale


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
        """Note that another process has changed the states of these players."""
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


def _basis(head: Head) -> tuple[int, ...]:
    """The properties of a head whose change makes the states of all players stale."""
    return head.generation, head.corrected, head.planned, head.names


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer


class PlayerStateCache:
    """The cached names and player states of one process. Threads may share it.

    They read under their ladder's lock, and keep what they committed when another thread may already hold it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._version = -1
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        # By ladder: what the states rest on, the position that they stand for, and the states.
        self._players: dict[int, tuple[tuple[int, ...], int, _Players]] = {}

    def names(self, version: int, wanted: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
        """The ids of the names that are cached, and the current names of these players by id."""
        with self._guard:
            if self._version != version:
                return {}, {}
            ids = {name: self._ids[name] for name in wanted if name in self._ids}
            return ids, {player: self._names[player] for player in ids.values()}

    def position(self, head: Head) -> int | None:
        """The position that the cached states stand for; None: they are not of this head, or too old."""
        with self._guard:
            basis, position, _ = self._players.get(head.ladder, (None, 0, None))
        return None if basis != _basis(head) or head.position - position > FOLLOWED else position

    def states(
        self, head: Head, position: int, later: Sequence[Row], ids: Ids
    ) -> tuple[Flags, Records, NDArray[np.void]] | None:
        """A mask of these players whose states are cached as of this head, and copies of those; None: all are stale.

        position  as `position` returned it;  later: the events after it, see RecordingLookup
        """
        if any(kind != Kind.MATCH for kind, _, _ in later):
            return None
        changed = events.changed_players(later)
        with self._guard:
            basis, read_at, players = self._players.get(head.ladder, (None, 0, None))
            if players is None or basis != _basis(head) or read_at < position:  # `keep` came meanwhile
                return None
            players.mark_stale(changed)
            self._players[head.ladder] = basis, head.position, players
            known, rows = players.part(ids)
            return known, players.records.take(rows), players.tally.take(rows)

    def keep(self, transaction: StateTransaction, position: int) -> None:
        """Cache what a transaction committed; the ladder's ledger now ends at this position."""
        head, roster = transaction.head, transaction.read
        with self._guard:
            if self._version < head.names or len(self._ids) > MOST:
                self._version, self._ids, self._names = head.names, {}, {}
            if self._version == head.names:
                self._ids |= transaction.ids
                self._names |= transaction.names
            if roster is not None:
                self._keep(head, roster, position)

    def _keep(self, head: Head, roster: Roster, position: int) -> None:
        """Cache states as of a position. The ladder's lock is released: others may have read or kept later ones."""
        basis, read_at, players = self._players.get(head.ladder, (None, 0, None))
        if basis == _basis(head) and read_at > position:
            return
        is_current = basis == _basis(head) and read_at in (head.position, position)
        if players is None or not is_current or len(players.rows) > MOST:
            players = _Players(roster.records[:0], roster.tally[:0])
        players.keep(roster)
        self._players[head.ladder] = _basis(head), position, players


@dataclass(eq=False)
class StateTransaction:
    """The names and states that one transaction reads of a ladder, from the cache if possible; cached on commit.

    head      as the transaction locked it
    position  that the cached states stood for then; None: they are of no use
    later     the events after it, see RecordingLookup
    read      the states of its players, changed in place
    """

    memory: PlayerStateCache
    head: Head
    position: int | None
    later: Sequence[Row]
    ids: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    read: Roster | None = None

    def admit(self, store: Store, wanted: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
        """The ids and current names of players, like player_identities.admit."""
        ids, names = self.memory.names(self.head.names, wanted)
        self.ids, self.names = player_identities.admit(
            store, [name for name in wanted if name not in ids], present=True
        )
        return ids | self.ids, names | self.names

    def roster(self, store: Store, rules: Rules, ids: Ids) -> Roster:
        """The states of these players, like player_states.read_roster; the caller changes them in place."""
        states = None if self.position is None else self.memory.states(self.head, self.position, self.later, ids)
        if states is None:
            self.read = player_states.read_roster(store, self.head, rules, ids)
            return self.read
        known, cached_records, cached_tally = states
        read = player_states.read_roster(store, self.head, rules, ids[~known])
        whole = np.concatenate((ids[known], read.ids))
        order = np.argsort(whole, kind="stable")
        records = join_records(cached_records, read.records).take(order)
        tally = join_records(cached_tally, read.tally).take(order)
        self.read = replace(read, ids=whole[order], records=records, tally=tally)
        self.read.others = player_states.others_reader(store, self.head, self.read)
        return self.read

    def keep(self, position: int) -> None:
        """Cache it after the commit; the ladder's ledger now ends at this position."""
        self.memory.keep(self, position)
