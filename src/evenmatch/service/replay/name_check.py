"""Compare the tables of players and names with what a ladder's events say of them.

A match's digest covers the names that were reported; its players are stored as ids. So the names that lead to these ids
now must give the digest again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

import numpy as np

from evenmatch.ledger.codec import ID, Ids, PackedMatches, digests
from evenmatch.ledger.events import Event, Kind
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import player_identities
from evenmatch.ledger.tables.player_identities import Identity

MOST = 2000  # combinations of names tried for a match whose players have several


class NameCheck:
    """Collects, event by event, what is wrong with the names of a ladder's players.

    merged  the present player of each merged one, as the ladder's corrections say; None: not known
    """

    def __init__(self, store: Store, merged: Mapping[int, int] | None) -> None:
        self._store, self._merged = store, merged
        self._known: dict[int, Identity] = {}
        self._names: dict[int, list[str]] = {}  # by id: the names that lead to the player, the likeliest first
        self.damage: list[str] = []

    def add_players(self, ids: Ids) -> None:
        """Check the rows of these players, once each."""
        new = [player for player in np.unique(ids).tolist() if player not in self._names]
        known = player_identities.read_identities(self._store, new)
        owners = {player: known[player].merged_into or player for player in known}
        aliases = player_identities.read_aliases(self._store, sorted({*owners.values()}))
        for player in new:
            names = [] if player not in known else aliases.get(owners[player], [])
            finding = self._finding(player, known.get(player), names)
            if finding is not None:
                self.damage.append(finding)
            is_open = finding is None and known[player].erased_at is None  # the names of erased players are gone
            own = known[player].name if is_open else ""
            self._names[player] = sorted(names, key=lambda name: name != own) if is_open else []

    def _finding(self, player: int, identity: Identity | None, names: Sequence[str]) -> str | None:
        if identity is None:
            return f"player #{player} of the ledger is not in the table of players"
        name, folded, merged_into, _ = identity
        target = merged_into if self._merged is None else self._merged.get(player)
        if merged_into != target:
            by_table, by_ledger = (
                f"player #{into}" if into is not None else "no player" for into in (merged_into, target)
            )
            return f"player {name!r} is merged into {by_table}; the ledger says {by_ledger}"
        if not names:
            return f"no name leads to player {name!r}"
        if name not in names and identity.erased_at is None:
            return f"player #{player} is shown as {name!r}, which is none of their names: {', '.join(sorted(names))}"
        if folded != name.casefold():
            return f"player {name!r} is searched as {folded!r}"
        return None

    def add_matches(self, events: Sequence[Event]) -> None:
        """Check the names of the players of these events, which are whole."""
        matches = [event for event in events if event.kind == Kind.MATCH]
        if not matches:
            return
        packed = [bytes(event.players or b"") for event in matches]
        ids = np.frombuffer(b"".join(packed), ID).astype(np.int64)
        self.add_players(ids)
        ends = np.cumsum([0, *(len(players) // ID.itemsize for players in packed)])
        listed = ids.tolist()
        likely = [names[0] if (names := self._names[player]) else "" for player in listed]
        given = _digests(matches, likely, ends, [bool(event.rated) for event in matches])
        for index, (event, digest) in enumerate(zip(matches, given, strict=True)):
            players = listed[ends[index] : ends[index + 1]]
            if digest != event.digest and all(self._names[player] for player in players):
                self._try_others(event, players)

    def _try_others(self, event: Event, players: Sequence[int]) -> None:
        """Look for the names under which the players of a match were reported."""
        ends = np.array([0, len(players)])
        # A match with two names of one player was reported as rated, and is stored as unrated.
        reported = [True, False] if not event.rated and len(set(players)) < len(players) else [bool(event.rated)]
        for names in islice(product(*(self._names[player] for player in players)), MOST):
            if any(_digests([event], names, ends, [rated])[0] == event.digest for rated in reported):
                for player, name in zip(players, names, strict=True):  # the same names are likely in the next match
                    self._names[player].sort(key=lambda other: other != name)
                return
        count = np.prod([float(len(self._names[player])) for player in players])
        if count <= MOST:
            self.damage.append(f"match {event.id!r} at position {event.position} was reported with other names")


def _digests(matches: Sequence[Event], names: Sequence[str], ends: Ids, rated: Sequence[bool]) -> list[bytes]:
    """The digests of matches with these names of every slot, reported as rated or not."""
    packed = PackedMatches(
        [event.played_at or 0 for event in matches],
        [event.duration for event in matches],
        [bytes(event.teams or b"") for event in matches],
        [bytes(event.slots or b"") for event in matches],
    )
    return digests(packed, names, ends, rated)
