"""What a process remembers of the players whom it rated: it need not read them again while nobody else wrote them.

Good as long as two numbers of the database stand still: the position of a ladder's ledger, which every event moves, and
the count of changes of names. Whoever records reads both under its lock. Nothing is remembered before it is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenmatch.ledger import people
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store
from evenmatch.systems.system import Records, Rules

MOST = 200_000  # names, and players of a ladder; when there are more all are forgotten


@dataclass(eq=False)
class _Players:
    """The states of a ladder's players as of a position: rows in the order in which they came."""

    records: Records
    tally: NDArray[np.void]
    rows: dict[int, int] = field(default_factory=dict)

    def part(self, ids: Ids) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which of these players are remembered, and their rows."""
        row = np.array([self.rows.get(one, -1) for one in ids.tolist()], np.int64)
        known = row >= 0
        return known, row[known]

    def keep(self, roster: Roster) -> None:
        """Remember these players as they are now."""
        rows = self.rows
        at = np.array([rows.setdefault(one, len(rows)) for one in roster.ids.tolist()], np.int64)
        if len(rows) > len(self.records):
            self.records = _longer(self.records, 2 * len(rows))
            self.tally = _longer(self.tally, 2 * len(rows))
        self.records[at], self.tally[at] = roster.records, roster.tally


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer


class Memory:
    """Of one process. Ladders may be recorded in several threads, each by one at a time."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._version = -1
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._players: dict[int, tuple[tuple[int, int, int], _Players]] = {}  # by ladder; the first says as of what

    def names(self, version: int, wanted: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
        """The ids of those of these names that are remembered, and their present names by id."""
        with self._guard:
            if self._version != version:
                return {}, {}
            ids = {name: self._ids[name] for name in wanted if name in self._ids}
            return ids, {player: self._names[player] for player in ids.values()}

    def players(self, head: Head) -> _Players | None:
        """The players of a ladder, if they are remembered as they are now."""
        state, players = self._players.get(head.ladder, (None, None))
        return players if state == (head.generation, head.position, head.names) else None

    def keep(self, draft: Draft, position: int) -> None:
        """Remember what was committed, after which the ladder's ledger ends at this position."""
        head, roster = draft.head, draft.read
        with self._guard:
            if self._version < head.names or len(self._ids) > MOST:
                self._version, self._ids, self._names = head.names, {}, {}
            if self._version == head.names:
                self._ids |= draft.ids
                self._names |= draft.names
        if roster is not None:
            players = self.players(head)
            if players is None or len(players.rows) > MOST:
                players = _Players(roster.records[:0], roster.tally[:0])
            players.keep(roster)
            self._players[head.ladder] = (head.generation, position, head.names), players


@dataclass(eq=False)
class Draft:
    """What one transaction reads of a ladder, from memory where it can: to be remembered once it is committed.

    head  as the transaction locked it;  read: its players, whom it changes
    """

    memory: Memory
    head: Head
    ids: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    read: Roster | None = None

    def admit(self, store: Store, wanted: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
        """As people.admit does, by present names."""
        ids, names = self.memory.names(self.head.names, wanted)
        self.ids, self.names = people.admit(store, [name for name in wanted if name not in ids], present=True)
        return ids | self.ids, names | self.names

    def roster(self, store: Store, rules: Rules, ids: Ids) -> Roster:
        """As Store.roster does; to be changed in place."""
        players = self.memory.players(self.head)
        if players is None:
            self.read = store.roster(self.head, rules, ids)
            return self.read
        known, rows = players.part(ids)
        read = store.roster(self.head, rules, ids[~known])
        whole = np.concatenate((ids[known], read.ids))
        order = np.argsort(whole, kind="stable")
        records = np.concatenate((players.records[rows], read.records))[order]
        tally = np.concatenate((players.tally[rows], read.tally))[order]
        self.read = Roster(whole[order], records, tally, self.head.position, self.head.time)
        return self.read

    def keep(self, position: int) -> None:
        """Remember it, now that it is committed, and the ladder's ledger ends at this position."""
        self.memory.keep(self, position)
