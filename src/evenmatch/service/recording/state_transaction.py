"""The names and player states that a transaction reads of a ladder: from the process's cache if possible.

If several processes record on a ladder, each reads ahead, while another one holds the ladder's lock, what its own cache
lacks. Under the lock it then reads only the states that were changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import Kind
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import events, player_identities, player_states
from evenmatch.ledger.tables.recording_lookup import later_events
from evenmatch.service.recording.player_state_cache import FOLLOWED, PlayerStateCache, States, basis
from evenmatch.systems.ladder_records import join_records
from evenmatch.systems.system import Rules


@dataclass(frozen=True, eq=False)
class ReadAhead:
    """Names and states of players as of a head whose ladder was not locked.

    ids, names  as `player_identities.known` returns them
    players     those whose states were read, ascending; some have none yet
    """

    head: Head
    ids: Mapping[str, int]
    names: Mapping[int, str]
    players: Ids
    states: States


def read_ahead(store: Store, head: Head, memory: PlayerStateCache, rules: Rules, wanted: Sequence[str]) -> ReadAhead:
    """Read names and states of players, except for those that are cached, in a transaction that only reads."""
    transaction = StateTransaction(memory, head)
    transaction.later = later_events(store, head, transaction.after)
    ids, names = memory.names(head.names, wanted)
    new_ids, new_names = player_identities.known(store, [name for name in wanted if name not in ids])
    ids |= new_ids
    players = np.unique(np.array(list(ids.values()), np.int64))
    roster = transaction.roster(store, rules, players)
    return ReadAhead(head, ids, names | new_names, players, States(roster.ids, roster.records, roster.tally))


@dataclass(eq=False)
class StateTransaction:
    """The names and states that one transaction reads of a ladder; cached on commit.

    head   of the ladder in this transaction
    ahead  what was read before, without the lock
    later  the events after the position `after`, see RecordingLookup
    ids, names  what was not cached
    read   the states of its players, changed in place
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
        """The position from which on later events must be looked up."""
        positions = [self.head.position]
        if self._cached is not None:
            positions.append(self._cached)
        if self.ahead is not None:
            positions.append(self.ahead.head.position)
        return min(positions)

    def note_shared(self) -> None:
        """Note, in a transaction that has the ladder's lock, whether another process records on the ladder."""
        if self._cached is not None:
            is_shared = any(row[1] > self._cached for row in self.later)
            self.memory.note_shared(self.head.ladder, is_shared=is_shared)

    def admit(self, store: Store, wanted: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
        """The ids and current names of players, like player_identities.admit."""
        ids, names = self.memory.names(self.head.names, wanted)
        if self.ahead is not None:
            self.ids = {name: self.ahead.ids[name] for name in wanted if name not in ids and name in self.ahead.ids}
            self.names = {player: self.ahead.names[player] for player in self.ids.values()}
        missing = [name for name in wanted if name not in ids and name not in self.ids]
        new_ids, new_names = player_identities.admit(store, missing, present=True)
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
        self.read = player_states.read_roster(store, self.head, rules, missing)
        if parts:
            parts.append(States(self.read.ids, self.read.records, self.read.tally))
            self.read = replace(self.read, **_joined(parts)._asdict())
            self.read.others = player_states.others_reader(store, self.head, self.read)
        return self.read

    def _changed_after(self, position: int) -> Ids:
        return events.changed_players([row for row in self.later if row[1] > position])

    def keep(self, position: int) -> None:
        """Cache it after the commit; the ladder's ledger now ends at this position."""
        self.memory.keep(self.head, self.ids, self.names, self.read, position)


def _part(states: States, ids: Ids) -> States:
    """The states of those of these players that have one."""
    rows = np.flatnonzero(np.isin(states.ids, ids, assume_unique=True))
    return States(states.ids[rows], states.records.take(rows), states.tally.take(rows))


def _joined(parts: Sequence[States]) -> States:
    """The states of different players, by id."""
    ids = np.concatenate([part.ids for part in parts])
    order = np.argsort(ids, kind="stable")
    records, tally = parts[0].records, parts[0].tally
    for part in parts[1:]:
        records, tally = join_records(records, part.records), join_records(tally, part.tally)
    return States(ids[order], records.take(order), tally.take(order))
