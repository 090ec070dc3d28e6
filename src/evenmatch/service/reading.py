"""What players, designers and web sites read of ladders: each question as one call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from evenmatch.errors import UnknownNameError
from evenmatch.ledger import people
from evenmatch.ledger.store import Head, Store
from evenmatch.service import ladders, recorded
from evenmatch.service.boards import View
from evenmatch.service.encounters import Encounters, encounters, last_loss
from evenmatch.service.finding import search_ladder
from evenmatch.service.ladders import Ladder
from evenmatch.service.lineups import Prospects, prospects
from evenmatch.service.rating_path import RatingPath, rating_path
from evenmatch.service.recorded import Recorded
from evenmatch.service.seasons import Final, Season, finals_from, seasons
from evenmatch.service.service import Service
from evenmatch.service.settings import Settings
from evenmatch.service.stories import known
from evenmatch.service.transacting import Transacting
from evenmatch.standings.board import Standing
from evenmatch.systems.system import FactorValue, System

Named = list[tuple[str, Standing]]
State = dict[str, FactorValue | None]


class Profile(NamedTuple):
    """A player on a ladder.

    names     all that lead to them, the present one among them
    standing  None: they have no rating here
    state     the columns of the system beside the rating, as of now
    """

    player: str
    names: list[str]
    standing: Standing | None
    state: State
    banned: bool
    last_played: int | None


class Whereabouts(NamedTuple):
    """A player, all names that lead to them, and the ladders that know them."""

    player: str
    names: list[str]
    ladders: list[str]


class Reading(Transacting):
    """Questions to a database of ladders. Standings may be some seconds old, on a ladder of very many players.

    view  where standings come from; None: the service's, as young as they can be had
    """

    def __init__(self, service: Service, view: Callable[[str], View] | None = None) -> None:
        super().__init__(service.database, service.clock)
        self.service = service
        self._view = view

    def view(self, ladder: str) -> View:
        """A ladder's standings. Raises UnknownNameError."""
        return self.service.view(ladder, fresh=False) if self._view is None else self._view(ladder)

    # ladders

    def ladders(self, after: str | None, limit: int, among: Collection[str] | None = None) -> list[Ladder]:
        """So many ladders by name, of these (None: of all), after a name (None: from the first on)."""
        with self._reading() as store:
            heads = [one for one in store.heads() if after is None or one.name > after]
            heads = [one for one in heads if among is None or one.name in among]
            return [ladders.describe(store, head) for head in heads[:limit]]

    def ladder(self, name: str) -> tuple[Ladder, Season]:
        """A ladder, and its present season."""
        with self._read(name) as (store, head):
            return ladders.describe(store, head), seasons(store, head)[-1]

    def described(self, name: str) -> Ladder:
        """A ladder with its numbers, of which that of its players is the view's."""
        players = len(self.view(name).snapshot.board)
        with self._read(name) as (store, head):
            return ladders.describe(store, head, players)

    def finals(self, ladder: str, season: int, offset: int, size: int) -> tuple[Settings, list[Final]]:
        """A ladder's settings, and so many of the standings with which a season ended from a place on, from 0."""
        with self._read(ladder) as (store, head):
            return Settings.read(head.settings), finals_from(store, head, season, offset, size)

    # standings

    def around(self, ladder: str, name: str, each_side: int) -> tuple[str, Standing, Named]:
        """A player by their present name, where they stand, and the listed around them, themselves among these."""
        view = self.view(ladder)
        with self._read(ladder) as (store, head):
            player = _find(store, head, name)
            standing = view.snapshot.standing(player)
            if standing is None:
                raise UnknownNameError(f"player of ladder {ladder!r} with a rating", name, ())
            around = [] if view.snapshot.board.hidden[view.snapshot.board.find([player])[0]] else [player]
            rows = view.snapshot.around(player, each_side) if around else []
            names = people.names_of(store, [player, *(one.player for one in rows)])
        return names[player], standing, [(names[one.player], one) for one in rows]

    def among(self, ladder: str, names: Sequence[str]) -> tuple[Named, list[str]]:
        """Where these players stand, best first, and the names of those who are not shown on the ladder."""
        view = self.view(ladder)
        board = view.snapshot.board
        with self._reading() as store:
            ids = people.ids_of(store, names)
            called = people.names_of(store, list(set(ids.values())))
        rows = dict(zip(called, board.find(list(called)).tolist(), strict=True))
        shown = {player for player, row in rows.items() if row >= 0 and not board.hidden[row]}
        missing = [name for name in dict.fromkeys(names) if ids.get(name) not in shown]
        return [(called[one.player], one) for one in view.snapshot.among(sorted(shown))], missing

    # players

    def profile(self, ladder: str, name: str) -> Profile:
        """A player on a ladder. Raises UnknownNameError where it does not know them."""
        view = self.view(ladder)
        now = self.clock()
        with self._read(ladder) as (store, head):
            player = _find(store, head, name)
            rules = store.plan(head, head.planned).last_rules
            roster = store.roster(head, rules, np.array([player], np.int64))
            state: State = {}
            if len(roster.ids):
                latest = now if head.time is None else max(now, head.time)
                aged = rules.system.as_of(roster.records, latest, rules.parameters)
                state = {one: known(column[0].item()) for one, column in rules.system.columns(aged).items()}
            played = int(roster.tally["last_played"][0]) if len(roster.ids) and roster.tally["matches"][0] else None
            return Profile(
                people.names_of(store, [player])[player],
                people.aliases(store, player),
                view.snapshot.standing(player),
                state,
                player in store.plan(head, head.corrected).bans,
                played,
            )

    def known_as(self, ladder: str, name: str) -> str:
        """The present name of a player whom a ladder knows. Raises UnknownNameError."""
        with self._read(ladder) as (store, head):
            player = _find(store, head, name)
            return people.names_of(store, [player])[player]

    def last_loss(self, ladder: str, name: str) -> str | None:
        """The latest of a player's last matches in which their rating fell; None: it did not."""
        with self._read(ladder) as (store, head):
            return last_loss(store, head, _find(store, head, name))

    def path(
        self, ladder: str, name: str, most: int, since: int | None = None, until: int | None = None
    ) -> tuple[str, RatingPath]:
        """A player's present name, and their rating over time; see rating_path."""
        with self._read(ladder) as (store, head):
            player = _find(store, head, name)
            return people.names_of(store, [player])[player], rating_path(store, head, player, most, since, until)

    def encounters(self, ladder: str, name: str) -> Encounters:
        """Whom a player met in their latest matches, with what success, and at which hours."""
        with self._read(ladder) as (store, head):
            return encounters(store, head, _find(store, head, name))

    def search(self, text: str, limit: int, among: Collection[str] | None = None) -> list[str]:
        """Names that hold this text; of players with a rating on one of these ladders, where they are named."""
        if among is None:
            return self.service.search(text, limit)
        found: dict[int, None] = {}
        for ladder in sorted(among):
            try:
                view = self.view(ladder)
            except UnknownNameError:  # a key may be for a ladder that is still to be made
                continue
            found |= dict.fromkeys(search_ladder(self.database, view, text, limit))
        with self._reading() as store:
            names = people.names_of(store, list(found))
        return [names[player] for player in found][:limit]

    def similar(self, ladder: str, name: str) -> list[str]:
        """Names of a ladder's players that were perhaps meant by one that none of them has, the most similar first."""
        with self._reading() as store:
            return people.similar(store, name, store.head(ladder).ladder)

    def whereabouts(self, name: str, among: Collection[str] | None = None) -> Whereabouts:
        """A player and the ladders that know them, of these. Raises UnknownNameError where none of these does."""
        with self._reading() as store:
            player = people.ids_of(store, [name]).get(name)
            on = [] if player is None else people.ladders_of(store, player)
            here = on if among is None else [one for one in on if one in among]
            if player is None or (among is not None and not here):
                raise UnknownNameError("player", name, ())
            return Whereabouts(people.names_of(store, [player])[player], people.aliases(store, player), here)

    # matches

    def matches(
        self,
        ladder: str,
        *,
        before: int | None,
        limit: int,
        player: str | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> tuple[str, list[Recorded], int | None]:
        """The system that rates a ladder, matches of it, the latest first, and before which position to go on.

        For the rest see recorded.positions_of.
        """
        with self._read(ladder) as (store, head):
            whom = None if player is None else _find(store, head, player)
            positions, further = recorded.positions_of(
                store, head, before=before, limit=limit, player=whom, since=since, until=until
            )
            return head.system, recorded.recorded(store, head, positions), further

    def played(self, ladder: str, name: str, before: int | None, limit: int) -> tuple[str, list[Recorded], int | None]:
        """A player by their present name, their matches, the latest first, and before which position to go on."""
        with self._read(ladder) as (store, head):
            player = _find(store, head, name)
            positions, further = recorded.positions_of(store, head, before=before, limit=limit, player=player)
            found = recorded.recorded(store, head, positions)
            return people.names_of(store, [player])[player], found, further

    def match(self, ladder: str, match_id: str) -> tuple[str, Recorded]:
        """The system that rates a ladder, and a match of it."""
        with self._read(ladder) as (store, head):
            return head.system, recorded.find(store, head, match_id)

    def explained(self, ladder: str, match_id: str) -> tuple[System, Recorded]:
        """A match of a ladder, and the system by whose factors its changes are explained."""
        with self._read(ladder) as (store, head):
            found = recorded.find(store, head, match_id)
            return store.plan(head, head.planned).rules_at(found.position).system, found

    def prospects(self, ladder: str, teams: Sequence[Sequence[str]]) -> Prospects:
        """The odds of a line-up as of now."""
        with self._read(ladder) as (store, head):
            return prospects(store, head, self.clock(), teams)


def _find(store: Store, head: Head, name: str) -> int:
    """A player whom a ladder knows: by a match, a rating or a ban. Raises UnknownNameError for others."""
    player = people.ids_of(store, [name]).get(name)
    if player is not None:
        ids = people.identities(store, player)
        for table in ("appearance", "state"):
            sql = f"SELECT 1 FROM {table} WHERE ladder = ? AND player IN ({{}}) LIMIT 1"
            if store.rows.among(store.connection, sql, (head.ladder,), ids):
                return player
        if player in store.plan(head, head.corrected).bans:
            return player
    raise UnknownNameError(f"player of ladder {head.name!r}", name, people.similar(store, name, head.ladder))
