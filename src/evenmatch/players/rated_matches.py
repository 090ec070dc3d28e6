"""The rated matches of a player, from the player's point of view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.ladders.export import list_of_player
from evenmatch.ledger import event_rows, ladder_rows, rating_rows
from evenmatch.ledger.codec import Ids, read_lines
from evenmatch.ledger.event_rows import ListKey
from evenmatch.ledger.store import Head, Store
from evenmatch.standings.division import Division

LONGEST = 20_000  # latest matches of a player that are read at once
LOOKED_AT = 50  # latest matches that are searched for the last loss


def last_loss(store: Store, head: Head, player: int) -> str | None:
    """The id of the latest recent match in which a player's rating fell; None: there is none."""
    matches = latest_matches(store, head, player, LOOKED_AT)
    lost = [match.match_id for match in matches if match.line["after"] < match.line["before"]]
    return lost[-1] if lost else None


class OpponentMatch(NamedTuple):
    """A rated match of a player.

    position        in the ladder's ledger
    order           (position, 1), or (position before which it counts, 0): sorts matches in the order they count
    players, teams  id and team of every slot;  places  of the teams
    team, score, seconds, completed, line  of the player; score: see _score; seconds: time played, NaN if not recorded;
                    completed: counted and not quit
    """

    position: int
    order: tuple[int, int]
    match_id: str
    played_at: int
    players: Ids
    teams: Ids
    places: NDArray[np.int32]
    team: int
    score: float
    seconds: float
    completed: bool
    line: np.void

    @property
    def is_duel(self) -> bool:
        """True if two players played against each other."""
        return len(self.places) == len(self.players) == 2

    @property
    def percentile(self) -> int | None:
        """The percentile that was shown after the match; None: the player was not listed."""
        return int(self.line["percentile"]) if self.line["percentile"] > 0 else None

    def division(self, divisions: Sequence[Division]) -> str | None:
        """The division that was shown after the match, of the ladder's divisions; None: the player was not listed."""
        index = int(self.line["division"])
        return divisions[index].name if 0 <= index < len(divisions) else None

    @property
    def word(self) -> str:
        """The result of the player: won, drew or lost, by the mean score over the rivals."""
        return "won" if self.score > 0.5 else "lost" if self.score < 0.5 else "drew"


def latest_matches(
    store: Store, head: Head, player: int, latest: int = LONGEST, until: int | None = None
) -> list[OpponentMatch]:
    """The rated matches among a player's `latest` ones, in the order they count. until: only those before this time."""
    plan = event_rows.read_plan(store, head, head.planned)
    listed = list_of_player(store, head, plan, player, limit=latest, until=until)
    matches = rated_matches(store, head, player, [key.position for key in listed])
    return sorted(matches, key=lambda match: (match.order, match.played_at))


def rated_matches(store: Store, head: Head, player: int, positions: list[int]) -> Iterator[OpponentMatch]:
    """A player's rated matches at these positions, in no fixed order."""
    plan, lines = (
        event_rows.read_plan(store, head, head.planned),
        rating_rows.read_journal_lines(store, head, positions),
    )
    for block, rows in event_rows.read_blocks_at(store, head, positions):
        ids, c = plan.identity(block.ids), block.columns
        for match, position in enumerate(block.positions.tolist()):
            match_lines = lines.get(position, (b"", 0))[0]
            if not match_lines:
                continue
            first, end = c.team_start[match : match + 2].tolist()
            starts = c.slot_start[first : end + 1]
            teams, places = np.repeat(np.arange(end - first), np.diff(starts)), c.place[first:end]
            players = ids[starts[0] : starts[-1]]
            slot = int(np.flatnonzero(players == player)[0])
            team = int(teams[slot])
            line = read_lines(plan.last_rules.system, match_lines)[slot]
            at = starts[0] + slot
            own = float(c.duration[match] if np.isnan(c.seconds[at]) else c.seconds[at])
            yield OpponentMatch(
                position=position,
                order=(int(block.counts_at[match]), int(block.counts_at[match] == position)),
                match_id=rows[match][0],
                played_at=int(block.played_at[match]),
                players=players,
                teams=teams,
                places=places,
                team=team,
                score=_score(places, team),
                seconds=own,
                completed=bool(c.keep[at] and not c.quit[at]),
                line=line,
            )


def _score(places: NDArray[np.int32], team: int) -> float:
    """The mean over a team's rivals of 1 for a win, 0.5 for a draw and 0 for a loss."""
    rivals = np.delete(places, team)
    return float(((rivals > places[team]) + 0.5 * (rivals == places[team])).mean())


class MatchFilter(NamedTuple):
    """Which of a player's matches to list; None: all. With a choice besides time, only rated matches are listed.

    opponent, team_mate  a player's name;  result  won, drew or lost;  season  its number
    since, until         only matches that ended from `since` up to `until`, microseconds
    """

    opponent: str | None = None
    team_mate: str | None = None
    result: str | None = None
    season: int | None = None
    since: int | None = None
    until: int | None = None

    @property
    def is_by_time(self) -> bool:
        """Whether nothing but the time is chosen."""
        return self._replace(since=None, until=None) == ALL_MATCHES


ALL_MATCHES = MatchFilter()


def filtered(
    store: Store,
    head: Head,
    player: int,
    chosen: MatchFilter,
    ids: Mapping[str, int],
    before: ListKey,
    limit: int,
) -> tuple[list[int], ListKey | None]:
    """The positions of up to `limit` chosen matches of a player, last played first, and where the next page begins.

    ids  of the opponent and the team-mate by name. Only the player's latest LONGEST matches are searched.
    """
    plan = event_rows.read_plan(store, head, head.planned)
    listed = list_of_player(
        store, head, plan, player, before=before, limit=LONGEST, since=chosen.since, until=chosen.until
    )
    openings = [season.position for season in ladder_rows.read_seasons(store, head.ladder) if season.number > 1]
    rated = {match.position: match for match in rated_matches(store, head, player, [key.position for key in listed])}
    keys = [
        key
        for key in listed
        if key.position in rated and _is_chosen(rated[key.position], player, chosen, ids, openings)
    ]
    further = keys[limit - 1] if len(keys) > limit else None
    return [key.position for key in keys[:limit]], further


def _is_chosen(
    match: OpponentMatch, player: int, chosen: MatchFilter, ids: Mapping[str, int], openings: Sequence[int]
) -> bool:
    rivals, mates = match.players[match.teams != match.team], match.players[match.teams == match.team]
    return (
        (chosen.opponent is None or ids[chosen.opponent] in rivals)
        and (chosen.team_mate is None or ids[chosen.team_mate] in mates[mates != player])
        and (chosen.result is None or chosen.result == match.word)
        and (chosen.season is None or chosen.season == 1 + sum(at < match.order[0] for at in openings))
    )
