"""Compare the tables of players and names with what a ladder's events say of them.

A match's digest covers the names that were reported; its players are stored as ids. So the names that lead to these ids
now must give the digest again. The names of erased players are gone, and with them what that says of their matches.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, product

import numpy as np

from evenmatch.ledger.codec import ID, Ids, PackedMatches, contents, digest_of, digests
from evenmatch.ledger.events import Correction, Event, Kind
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import player_identities
from evenmatch.ledger.tables.player_identities import PSEUDONYM, Identity
from evenmatch.ledger.text import fold

LARGEST = np.iinfo(np.int64).max
MOST = 20_000  # combinations of names tried for a match whose players have several
FEW = 256  # after several searches were cut off: each halves how many the next one tries


class NameCheck:
    """Collects, event by event, what is wrong with the names of a ladder's players.

    merged       the present player of each merged one, as the ladder's corrections say; None: they are not known
    corrections  all of the ladder's; an event that renames a player does not say to what
    """

    def __init__(self, store: Store, merged: Mapping[int, int] | None, corrections: Sequence[Correction]) -> None:
        self._store, self._merged = store, merged
        self._renames = _players_by_position(corrections, Kind.RENAMED)
        self._renames_of = Counter(self._renames.values())  # by player
        self._renames_left = self._renames_of.copy()  # by player: those that are still to come
        self._erased = {*_players_by_position(corrections, Kind.ERASED).values()}
        self._own: dict[int, str] = {}  # the names that players have now
        self._known: dict[int, Identity] = {}
        self._names: dict[int, list[str]] = {}  # by id: the names that lead to the player, the likeliest first
        self._reported: set[int] = set()  # whose likeliest name is that of a match since they were last renamed
        self._former: dict[int, set[str]] = {}  # by id: names of matches before the player was renamed
        self._most = MOST
        self._unchecked: list[str] = []  # matches, by id and position
        self.damage: list[str] = []

    @property
    def unchecked(self) -> tuple[str, ...]:
        """A sentence on the matches whose players have too many names to try, if there are any."""
        if not self._unchecked:
            return ()
        number = len(self._unchecked)
        return (
            f"the names in {number:,} {'match' if number == 1 else 'matches'} were not checked (the first: "
            f"{self._unchecked[0]}): their players have more names than can be tried, and the likeliest do not fit",
        )

    def add_players(self, ids: Ids) -> None:
        """Check the rows of these players, once each."""
        new = [player for player in np.unique(ids).tolist() if player not in self._names]
        known = player_identities.read_identities(self._store, new)
        owners = {player: known[player].merged_into or player for player in known}
        aliases = player_identities.read_aliases(self._store, sorted({*owners.values()}))
        for player in new:
            if player not in known:
                self._names[player] = []
                self.damage.append(f"player #{player} of the ledger is not in the table of players")
                continue
            names = aliases.get(owners[player], [])
            finding = next(self._findings(player, known[player], names), None)
            if finding is not None:
                self.damage.append(finding)
            is_open = finding is None and not self._is_erased(owners[player], known[player])
            self._names[player] = sorted(names) if is_open else []
            if is_open:
                self._own[player] = known[player].name
                self._sort(player)

    def _sort(self, player: int) -> None:
        """Put the name that a player has now first, or last while they are still to be renamed; former names go last.

        All others keep their order.
        """
        own, former = self._own.get(player), self._former.get(player, ())
        is_renamed = self._renames_left[player] > 0
        self._names[player].sort(key=lambda name: ((name == own) == is_renamed, name in former))

    def _likely(self, player: int) -> list[str]:
        """The names without those that the player had before, and without the present one if it came later.

        With fewer names than renames would add, the player was renamed back: the present name may be an early one, too.
        """
        own, former, names = self._own.get(player), self._former.get(player, ()), self._names[player]
        is_later = self._renames_left[player] > 0 and len(names) > self._renames_of[player]
        return [name for name in names if name not in former and not (is_later and name == own)] or names[:1]

    def _findings(self, player: int, identity: Identity, names: Sequence[str]) -> Iterator[str]:
        name, folded, merged_into, erased_at = identity
        target = merged_into if self._merged is None else self._merged.get(player)
        if merged_into != target:
            by_table, by_ledger = (
                f"player #{into}" if into is not None else "no player" for into in (merged_into, target)
            )
            yield f"player {name!r} is merged into {by_table}; the ledger says {by_ledger}"
        is_erased = self._is_erased(player if target is None else target, identity)
        if is_erased and erased_at is None:
            yield f"player {name!r} is not marked as erased; the ledger says that they were erased"
        if erased_at is not None and not is_erased and (names != [name] or not PSEUDONYM.fullmatch(name)):
            yield f"player {name!r} is marked as erased; no event of the ladder says so"
        if not names:
            yield f"no name leads to player {name!r}"
        if is_erased and (names != [name] or not PSEUDONYM.fullmatch(name)):
            listed = ", ".join(sorted({name, *names}))
            yield f"player #{player} was erased; expected a pseudonym as the only name, got {listed}"
        if name not in names:
            yield f"player #{player} is shown as {name!r}, which is none of their names: {', '.join(sorted(names))}"
        if folded != fold(name):
            yield f"player {name!r} is searched as {folded!r}"

    def _is_erased(self, owner: int, identity: Identity) -> bool:
        """Whether the ladder says that a player was erased; if that is not known, whether the player's row does.

        Events of a ladder that does not say so came later: they are about the pseudonym, and are checked under it.
        """
        return identity.erased_at is not None if self._merged is None else owner in self._erased

    def add_events(self, events: Sequence[Event]) -> None:
        """Check the names of the players of these events, which are whole."""
        matches: list[Event] = []
        named: set[int] = set()  # by corrections
        for event in events:
            if event.kind == Kind.MATCH:
                matches.append(event)
                continue
            named.update(_named(event))
            if event.position in self._renames:
                self._add_matches(matches)
                matches = []
                self._rename(self._renames[event.position])
        self._add_matches(matches)
        self.add_players(np.array([*named], np.int64))

    def _rename(self, player: int) -> None:
        self._renames_left[player] -= 1
        if names := self._names.get(player):
            if player in self._reported:
                self._reported.remove(player)
                self._former.setdefault(player, set()).add(names[0])
            self._sort(player)

    def _add_matches(self, matches: Sequence[Event]) -> None:
        if not matches:
            return
        packed = [bytes(event.players or b"") for event in matches]
        ids = np.frombuffer(b"".join(packed), ID).astype(np.int64)
        self.add_players(ids)
        ends = np.cumsum([0, *(len(players) // ID.itemsize for players in packed)])
        listed = ids.tolist()
        likely = [names[0] if (names := self._names[player]) else "" for player in listed]
        given = digests(_packed(matches), likely, ends, [bool(event.rated) for event in matches])
        for index, (event, digest) in enumerate(zip(matches, given, strict=True)):
            players = listed[ends[index] : ends[index + 1]]
            if digest == event.digest:
                self._reported.update(players)
            elif all(self._names[player] for player in players):
                self._try_others(event, players)

    def _try_others(self, event: Event, players: Sequence[int]) -> None:
        """Look for the names under which the players of a match were reported."""
        # A match with two names of one player was reported as rated, and is stored as unrated.
        reported = [True, False] if not event.rated and len(set(players)) < len(players) else [bool(event.rated)]
        tried = contents(_packed([event] * len(reported)), reported)
        known, likely = [self._names[player] for player in players], [self._likely(player) for player in players]
        subject = f"match {event.id!r} at position {event.position}"
        present = [self._own[player] for player in players]
        for number, chosen in enumerate(_combinations(known, likely, present)):
            if number == self._most:
                # Before players were renamed, only those of their names are plausible that they did not get later.
                if all(len(names) == 1 for names in likely) and self._former.keys().isdisjoint(players):
                    self.damage.append(
                        f"{subject} was reported with other names than its players seem to have had then"
                    )
                    return
                self._unchecked.append(subject.removeprefix("match "))
                self._most = max(self._most // 2, FEW)
                return
            if any(digest_of(content, chosen) == event.digest for content in tried):
                for player, name in zip(players, chosen, strict=True):  # the same names are likely in the next match
                    self._names[player].sort(key=lambda other: other != name)
                self._reported.update(players)
                return
        self.damage.append(f"{subject} was reported with other names")


def _players_by_position(corrections: Sequence[Correction], kind: Kind) -> dict[int, int]:
    """The player by the position of each event of a kind that is about one."""
    players = ((event.position, event.body.get("player")) for event in corrections if event.kind == kind)
    return {position: player for position, player in players if isinstance(player, int)}


def _named(correction: Event) -> list[int]:
    """The ids of the players that a correction names or gives a starting rating."""
    body = json.loads(correction.body or "{}")
    named = [player for player in (body.get("player"), body.get("into")) if isinstance(player, int)]
    started = np.frombuffer(correction.players or b"", ID).tolist()
    return [player for player in (*named, *started) if 0 < player <= LARGEST]


def _combinations(
    known: Sequence[Sequence[str]], likely: Sequence[Sequence[str]], present: list[str]
) -> Iterator[list[str]]:
    """Every choice of one of the known names of each slot, some of them twice: the likeliest first."""
    sizes = range(len(known) + 1)
    together = ([names[min(rank, len(names) - 1)] for names in known] for rank in range(max(map(len, known))))
    some = (_changed(known, sizes[:3]), _changed(likely, sizes[3:]), _changed(known, sizes[3:]))
    return chain(together, [present], *some)


def _changed(known: Sequence[Sequence[str]], sizes: Sequence[int]) -> Iterator[list[str]]:
    """The choices of one of the names of each slot in which that many slots have another name than their first."""
    several = [slot for slot, names in enumerate(known) if len(names) > 1]
    for size in sizes:
        for slots in combinations(several, size):
            for others in product(*(known[slot][1:] for slot in slots)):
                names = [listed[0] for listed in known]
                for slot, name in zip(slots, others, strict=True):
                    names[slot] = name
                yield names


def _packed(matches: Sequence[Event]) -> PackedMatches:
    return PackedMatches(
        [event.played_at or 0 for event in matches],
        [event.duration for event in matches],
        [bytes(event.teams or b"") for event in matches],
        [bytes(event.slots or b"") for event in matches],
    )
