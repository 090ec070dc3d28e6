"""The read-only queries on ladders for the HTTP API, the web pages and the tools, one method each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from evenmatch.accounts.access import OPERATOR, Caller
from evenmatch.errors import UnknownNameError
from evenmatch.ladders import ladders
from evenmatch.ladders.inactivity import InactivityNotice, inactivity_notice, percentile_fall
from evenmatch.ladders.ladders import Ladder
from evenmatch.ladders.seasons import FinalOrder, Season, StandingRow, finals_from
from evenmatch.ladders.settings import Settings
from evenmatch.ladders.standings import View
from evenmatch.ladders.visibility import Visibility
from evenmatch.ledger import event_rows, ladder_rows, player_rows, rating_rows
from evenmatch.ledger.event_rows import END_OF_LIST, ListKey
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import fold
from evenmatch.match_context import NO_CONTEXT, Context
from evenmatch.operations.service import Service
from evenmatch.operations.transactions import Transacting
from evenmatch.players import matches as matches_rows
from evenmatch.players import players as players_rows
from evenmatch.players.career import Career, career
from evenmatch.players.context_skills import ContextSkill, context_skills
from evenmatch.players.explanations import known
from evenmatch.players.matches import MatchProfile
from evenmatch.players.odds import LineUpOdds, StakesQuery, prospects
from evenmatch.players.players import search_ladder
from evenmatch.players.rated_matches import ALL_MATCHES, LONGEST, MatchFilter, filtered, last_loss, latest_matches
from evenmatch.players.rating_path import RatingPath, StepLevel, rating_path
from evenmatch.players.records import PlayerRecord, records
from evenmatch.players.result_moment import ResultMoment, latest_results, result_moment
from evenmatch.queues import stored_queues
from evenmatch.queues.audit import QueueAudit, audit
from evenmatch.standings.board import Standing
from evenmatch.standings.placement import UNKNOWN
from evenmatch.systems.ladder_records import Learned
from evenmatch.systems.system import FactorValue, System
from evenmatch.systems.wording import same
from evenmatch.times import Time

CALLED_AT_MOST = 20  # players whose names are compared with a name

Named = list[tuple[str, Standing]]
State = dict[str, FactorValue | None]
FINALS_BY: Mapping[str, FinalOrder] = {  # by the setting `show`
    "rating": "rank",
    "after_placement": "rank",
    "percentile": "percentile",
    "division": "division",
}


STEPS_BY: Mapping[str, StepLevel] = {
    "rating": "after",
    "after_placement": "after",
    "percentile": "percentile",
    "division": "division",
}


class Profile(NamedTuple):
    """A player on a ladder.

    player       the player's current name
    names        all names of the player; null unless the caller is an admin
    standing     null: the player has no rated match
    state        other values that the rating system stores for the player, as of now; empty: not shown
    banned       true: they are not listed and cannot queue;  banned_until  null: for good, or not banned
    last_played  null: no match
    inactivity   null: inactivity costs the player nothing
    context      where the player is better or worse than the rating says, by context column, such as by map; the best
                 value first, each with at least ten matches; empty: not known, or not shown
    """

    player: str
    names: list[str]
    standing: Standing | None
    state: State
    banned: bool
    banned_until: Time | None
    last_played: Time | None
    inactivity: InactivityNotice | None
    context: Mapping[str, list[ContextSkill]] = MappingProxyType({})


class PlayerLadders(NamedTuple):
    """A player and the ladders they are on.

    names  all names of the player; null unless the caller is an admin
    """

    player: str
    names: list[str]
    ladders: list[str]


def contains(text: str, part: str) -> bool:
    """Whether a text contains another, ignoring case and diacritics."""
    return fold(part) in fold(text)


class LadderQueries(Transacting):
    """Queries on a database of ladders. On very large ladders, standings may be a few seconds old.

    view    returns the standings of a ladder; None: the service's cached view
    caller  results contain only what this caller may see of each ladder
    translate  of the messages that explanations consist of, see `headlines.explain`
    """

    def __init__(
        self,
        service: Service,
        view: Callable[[str], View] | None = None,
        caller: Caller = OPERATOR,
        translate: Callable[[str], str] = same,
    ) -> None:
        super().__init__(service.database, service.clock)
        self.service = service
        self._view, self._caller, self._translate = view, caller, translate

    def seen_by(self, caller: Caller, translate: Callable[[str], str] = same) -> LadderQueries:
        """The same queries for another caller, in another language."""
        return LadderQueries(self.service, self._view, caller, translate)

    def view(self, ladder: str) -> View:
        """A ladder's standings, as the caller may see them. Raises UnknownNameError."""
        return self._whole_view(ladder).seen_by(self._caller)

    def _whole_view(self, ladder: str) -> View:
        return self.service.view(ladder, fresh=False) if self._view is None else self._view(ladder)

    def _visibility(self, head: Head) -> Visibility:
        return Visibility.of(Settings.read(head.settings), self._caller, head.name)

    # ladders

    def ladders(self, after: str | None, limit: int, among: Collection[str] | None = None) -> list[Ladder]:
        """Up to `limit` ladders in `among` (None: all) by name, after the name `after` (None: from the first)."""
        with self._reading() as store:
            heads = [head for head in store.heads() if after is None or head.name > after]
            heads = [head for head in heads if among is None or head.name in among]
            return [ladders.describe(store, head) for head in heads[:limit]]

    def ladder(self, name: str) -> tuple[Ladder, Season]:
        """A ladder, and its current season."""
        with self._read(name) as (store, head):
            return ladders.describe(store, head), ladder_rows.read_seasons(store, head.ladder)[-1]

    def described(self, name: str) -> Ladder:
        """A ladder with its numbers; the number of players comes from the cached view."""
        players = len(self.view(name).snapshot.board)
        with self._read(name) as (store, head):
            return ladders.describe(store, head, players)

    def learned(self, name: str) -> tuple[Learned, ...]:
        """The numbers that a ladder's system has learned about it; empty if the system learns nothing about ladders."""
        with self._read(name) as (store, head):
            rules = event_rows.read_plan(store, head, head.planned).last_rules
            return rules.system.learned(rating_rows.read_ladder_records(head, rules), rules.parameters)

    def finals(self, ladder: str, season: int, offset: int, size: int) -> tuple[Settings, list[StandingRow]]:
        """A ladder's settings, and up to `size` final standings of a season from `offset` (from 0) on."""
        with self._read(ladder) as (store, head):
            settings, seen = Settings.read(head.settings), self._visibility(head)
            rows = finals_from(store, head, season, offset, size, by=FINALS_BY[seen.show])
            return settings, [seen.final(row, settings.standings) for row in rows]

    def order_of_finals(self, ladder: str) -> FinalOrder:
        """The order of a ladder's final standings, which depends on what the ladder shows."""
        with self._read(ladder) as (_, head):
            return FINALS_BY[self._visibility(head).show]

    # standings

    def around(self, ladder: str, name: str, each_side: int) -> tuple[str, Standing, Named]:
        """A player's current name and standing, and the players listed around them, including the player."""
        view = self.view(ladder)
        with self._read(ladder) as (store, head):
            player = players_rows.find(store, head, name)
            standing = view.snapshot.standing(player)
            if standing is None:
                raise UnknownNameError(f"player of ladder {ladder!r} with a rating", name, ())
            hidden = view.snapshot.board.hidden[view.snapshot.board.find([player])[0]]
            listed = [] if hidden else view.snapshot.around(player, each_side)
            names = player_rows.names_of(store, [player, *(neighbour.player for neighbour in listed)])
        return names[player], standing, [(names[neighbour.player], neighbour) for neighbour in listed]

    def among(self, ladder: str, names: Sequence[str]) -> tuple[Named, list[str]]:
        """The standings of these players, best first, and the names that are not shown on the ladder."""
        view = self.view(ladder)
        board = view.snapshot.board
        with self._reading() as store:
            ids = player_rows.ids_of(store, names)
            name_of = player_rows.names_of(store, list(set(ids.values())))
        rows = dict(zip(name_of, board.find(list(name_of)).tolist(), strict=True))
        shown = {player for player, row in rows.items() if row >= 0 and not board.hidden[row]}
        missing = [name for name in dict.fromkeys(names) if ids.get(name) not in shown]
        return [(name_of[standing.player], standing) for standing in view.snapshot.among(sorted(shown))], missing

    def records(self, view: View, standings: Sequence[Standing]) -> dict[int, PlayerRecord]:
        """The records of players by id. standings: of this view, which the caller may see."""
        with self._read(view.head.name) as (store, head):
            return records(store, head, view, standings)

    # players

    def profile(self, ladder: str, name: str) -> Profile:
        """A player on a ladder. Raises UnknownNameError if the ladder does not know them."""
        whole, now = self._whole_view(ladder), self.clock()
        with self._read(ladder) as (store, head):
            plan = event_rows.read_plan(store, head, head.planned)
            rules = plan.last_rules
            ids = player_rows.ids_of(store, [name])
            roster = rating_rows.read_roster(store, head, rules, np.array(list(ids.values()), np.int64))
            player = ids[name] if len(roster.ids) else players_rows.find(store, head, name)
            state: State = {}
            if len(roster.ids):
                aged = rules.system.as_of(roster.records, max(now, head.time or now), rules.parameters)
                columns = rules.system.columns(aged, rules.parameters)
                state = {title: known(column[0].item()) for title, column in columns.items()}
            played = int(roster.tally["last_played"][0]) if len(roster.ids) and roster.tally["matches"][0] else None
            standing = whole.seen_by(self._caller).snapshot.standing(player)
            present = player_rows.names_of(store, [player])[player]
            ban = event_rows.read_plan(store, head, head.corrected).banned(now).get(player)
            is_shown = standing is not None and standing.rating is not None
            return Profile(
                present,
                player_rows.aliases(store, player) if self._caller.ladders is None else [present],
                standing,
                state if is_shown else {},
                ban is not None,
                None if ban is None else ban.until,
                played,
                inactivity_notice(store, head, whole, player, now),
                context_skills(store, head, plan, player) if is_shown else {},
            )

    def check_known(self, ladder: str, name: str) -> None:
        """Raise UnknownNameError for a player who is unknown on the ladder, unless the caller may read all ladders."""
        if self._caller.ladders is not None:
            with self._read(ladder) as (store, head):
                players_rows.find_in_use(store, head, name)

    def known_as(self, ladder: str, name: str) -> str:
        """The current name of a player of a ladder; case and diacritics may be left out if one player is meant.

        Raises UnknownNameError.
        """
        with self._read(ladder) as (store, head):
            try:
                player = players_rows.find(store, head, name)
            except UnknownNameError:
                meant = self.called(name, [ladder])
                if len(meant) != 1:
                    raise
                return meant[0]
            return player_rows.names_of(store, [player])[player]

    def called(self, name: str, among: Collection[str]) -> list[str]:
        """The players of these ladders with this name; else, with a name that differs by case and diacritics only."""
        alike = [found for found in self.search(name, CALLED_AT_MOST, among) if fold(found) == fold(name)]
        return [name] if name in alike else alike

    def last_loss(self, ladder: str, name: str) -> str | None:
        """The id of the latest recent match in which a player's rating fell; None: there is none."""
        with self._read(ladder) as (store, head):
            return last_loss(store, head, players_rows.find(store, head, name))

    def path(self, ladder: str, name: str, most: int = LONGEST, latest: int = LONGEST) -> tuple[str, RatingPath]:
        """A player's current name, and their rating over their `latest` matches; see rating_path."""
        whole = self._whole_view(ladder)
        with self._read(ladder) as (store, head):
            player, seen = players_rows.find(store, head, name), self._visibility(head)
            matches = latest_matches(store, head, player, latest)
            path = rating_path(store, head, player, matches, most, STEPS_BY[seen.show])
            fall = percentile_fall(whole, player)
            path = path if fall is None else path._replace(falls=[*path.falls, fall])
            shown = seen.path(path, placed=player not in self._unplaced(store, head, [player]))
            return player_rows.names_of(store, [player])[player], shown

    def finals_of(self, ladder: str, name: str) -> list[tuple[int, StandingRow]]:
        """A player's final standings by the number of the season, latest first."""
        with self._read(ladder) as (store, head):
            player, seen = players_rows.find(store, head, name), self._visibility(head)
            rules = Settings.read(head.settings).standings
            ids = player_rows.identities(store, player)
            rows = ladder_rows.read_final_standings_of(store, head.ladder, ids)
            finals = [(season, seen.final(StandingRow(name, *row[1:]), rules)) for season, row in rows]
            return sorted(finals, key=lambda final: -final[0])

    def career(self, ladder: str, name: str) -> tuple[str, Career, RatingPath]:
        """A player's current name, and their career and rating path on a ladder.

        A fall of the shown percentile by inactivity is the last of their falls.
        """
        whole = self._whole_view(ladder)
        with self._read(ladder) as (store, head):
            player, seen = players_rows.find(store, head, name), self._visibility(head)
            matches, by = latest_matches(store, head, player), STEPS_BY[seen.show]
            found = career(store, head, player, matches, self.clock(), by)
            path = rating_path(store, head, player, matches, LONGEST, by)
            fall = percentile_fall(whole, player)
            falls = [] if fall is None else [fall]
            placed = player not in self._unplaced(store, head, [player])
            return (
                player_rows.names_of(store, [player])[player],
                seen.career(replace(found, falls=[*found.falls, *falls]), placed=placed),
                seen.path(path._replace(falls=[*path.falls, *falls]), placed=placed),
            )

    def search(self, text: str, limit: int, among: Collection[str] | None = None) -> list[str]:
        """Player names that contain this text, those that begin with it first, then short ones.

        among  only players with a rating on one of these ladders
        """
        if among is None:
            return self.service.search(text, limit)
        matching: dict[int, None] = {}  # an ordered set
        for ladder in sorted(among):
            try:
                view = self.view(ladder)
            except UnknownNameError:  # an API key may name a ladder that does not exist yet
                continue
            matching |= dict.fromkeys(search_ladder(self.database, view, text, limit))
        with self._reading() as store:
            names = set(player_rows.names_of(store, list(matching)).values())
        return sorted(names, key=lambda name: (not fold(name).startswith(fold(text)), len(name), name))[:limit]

    def similar(self, ladder: str, name: str) -> list[str]:
        """Names of a ladder's players that resemble an unknown name, most similar first."""
        with self._reading() as store:
            return player_rows.similar(store, name, store.head(ladder).ladder)

    def whereabouts(self, name: str, among: Collection[str] | None = None) -> PlayerLadders:
        """A player and their ladders, limited to `among`. Raises UnknownNameError if no player or ladder remains."""
        with self._reading() as store:
            player = player_rows.ids_of(store, [name]).get(name)
            on = [] if player is None else player_rows.ladders_of(store, player)
            listed = on if among is None else [ladder for ladder in on if ladder in among]
            if player is None or (among is not None and not listed):
                raise UnknownNameError("player", name, ())
            return PlayerLadders(
                player_rows.names_of(store, [player])[player], player_rows.aliases(store, player), listed
            )

    # matches

    def matches(
        self,
        ladder: str,
        *,
        before: ListKey = END_OF_LIST,
        limit: int,
        player: str | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> tuple[str, list[MatchProfile], ListKey | None]:
        """A ladder's system, a page of its matches, last played first, and `before` for the next page.

        For the parameters see players.matches.page_of.
        """
        with self._read(ladder) as (store, head):
            player_id = None if player is None else players_rows.find(store, head, player)
            positions, further = matches_rows.page_of(
                store, head, before=before, limit=limit, player=player_id, since=since, until=until
            )
            return head.system, self._matches(store, head, positions), further

    def played(
        self, ladder: str, name: str, before: ListKey, limit: int, chosen: MatchFilter = ALL_MATCHES
    ) -> tuple[str, list[MatchProfile], ListKey | None]:
        """A player's current name, a page of their matches, last played first, and `before` for the next page.

        Raises UnknownNameError for an unknown player, opponent or team-mate.
        """
        with self._read(ladder) as (store, head):
            player = players_rows.find(store, head, name)
            if chosen.is_by_time:
                since, until = chosen.since, chosen.until
                positions, further = matches_rows.page_of(
                    store, head, before=before, limit=limit, player=player, since=since, until=until
                )
            else:
                others = [other for other in (chosen.opponent, chosen.team_mate) if other is not None]
                ids = {other: players_rows.find(store, head, other) for other in others}
                positions, further = filtered(store, head, player, chosen, ids, before, limit)
            profiles = self._matches(store, head, positions)
            return player_rows.names_of(store, [player])[player], profiles, further

    def match(self, ladder: str, match_id: str) -> tuple[str, MatchProfile]:
        """A ladder's system, and one of its matches. Raises UnknownNameError."""
        with self._read(ladder) as (store, head):
            return head.system, self._matches(store, head, [matches_rows.position_of(store, head, match_id)])[0]

    def explained(self, ladder: str, match_id: str) -> tuple[System, MatchProfile]:
        """A match, and the system that rated it, whose factors explain the changes. Raises UnknownNameError."""
        with self._read(ladder) as (store, head):
            (profile,) = self._matches(store, head, [matches_rows.position_of(store, head, match_id)])
            counted = event_rows.counts_at(store, head.ladder, profile.position)
            return event_rows.read_plan(store, head, head.planned).rules_at(counted).system, profile

    def result(self, ladder: str, match_id: str, name: str) -> ResultMoment:
        """A match as one of its players sees it. Raises UnknownNameError for an unknown match, player or part."""
        view = self.view(ladder)
        with self._read(ladder) as (store, head):
            player = players_rows.find(store, head, name)
            (profile,) = self._matches(store, head, [matches_rows.position_of(store, head, match_id)])
            present = player_rows.names_of(store, [player])[player]
            if all(part.player != present for side in profile.sides for part, _ in side.parts):
                raise UnknownNameError(f"player of match {match_id!r}", name, ())
            latest = latest_results(store, head, player, profile)
            if not self._visibility(head).percentiles:
                latest = latest._replace(percentile=None)
            return result_moment(profile, present, latest, view.snapshot)

    def queue_audit(self, ladder: str, queue: str, since: int, until: int) -> QueueAudit:
        """The audit of the matches that a queue formed from `since` up to `until`, in microseconds.

        Raises UnknownNameError for a queue that neither exists nor formed a match; ForbiddenError if ratings are
        hidden.
        """
        with self._read(ladder) as (store, head):
            self._visibility(head).check("the audit of a queue", ladder)
            audited = audit(store, head, queue, since, until, now=self.clock())
            if not audited.formed:
                stored_queues.find(stored_queues.read(store, head.ladder), queue)
            return audited

    def prospects(
        self,
        ladder: str,
        teams: Sequence[Sequence[str]],
        query: StakesQuery | None = None,
        context: Context = NO_CONTEXT,
        entry: Mapping[str, float] = MappingProxyType({}),
    ) -> LineUpOdds:
        """The odds of a line-up as of now, and its stakes if they are asked for; see players.odds.prospects.

        Raises ForbiddenError if ratings are hidden.
        """
        with self._read(ladder) as (store, head):
            self._visibility(head).check("odds", ladder)
            limits = self.service.match_limits.on(ladder, Settings.read(head.settings))
            limits.check("the line-up", len(teams), sum(map(len, teams)))
            return prospects(store, head, self.clock(), teams, query, context, entry)

    def _matches(self, store: Store, head: Head, positions: Sequence[int]) -> list[MatchProfile]:
        """The matches at these positions, latest first, as the caller may see them."""
        seen, profiles = self._visibility(head), matches_rows.recorded(store, head, positions, self._translate)
        if seen.is_all:
            return profiles
        names = {appearance.player for match in profiles for side in match.sides for appearance, _ in side.parts}
        ids = player_rows.ids_of(store, sorted(names))
        hidden = self._unplaced(store, head, list(ids.values()))
        unplaced = {name for name in names if ids.get(name) in hidden}
        return [seen.match(profile, unplaced) for profile in profiles]

    def _unplaced(self, store: Store, head: Head, players: Sequence[int]) -> set[int]:
        """The ids of these players who have not completed the placement matches of the ladder."""
        rules = Settings.read(head.settings).standings
        if rules.placed(np.zeros(1, np.int64), np.full(1, UNKNOWN)).all():
            return set()
        rows = rating_rows.read_standings(store, head, sorted(set(players)))
        completed, moves = (np.array([row[column] for row in rows], kind) for column, kind in ((3, int), (5, float)))
        placed = rules.placed(completed, moves).tolist()
        return set(players) - {row[0] for row, is_placed in zip(rows, placed, strict=True) if is_placed}
