"""The rated matches of a player, from the player's point of view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.ladders.export import list_of_player
from evenmatch.ledger import event_rows, rating_rows
from evenmatch.ledger.codec import Ids, read_lines
from evenmatch.ledger.store import Head, Store

LOOKED_AT = 50  # latest matches that are searched for the last loss


def last_loss(store: Store, head: Head, player: int) -> str | None:
    """The id of the latest recent match in which a player's rating fell; None: there is none."""
    listed = list_of_player(store, head, event_rows.read_plan(store, head, head.planned), player, limit=LOOKED_AT)
    matches = rated_matches(store, head, player, [key.position for key in listed])
    lost = [match for match in matches if match.line["after"] < match.line["before"]]
    return max(lost, key=lambda match: match.order).match_id if lost else None


class OpponentMatch(NamedTuple):
    """A rated match of a player.

    order           (position, 1), or (position before which it counts, 0): sorts matches in the order they count
    players, teams  id and team of every slot;  places  of the teams
    team, score, seconds, completed, line  of the player; score: see _score; seconds: time played, NaN if not recorded;
                    completed: counted and not quit
    """

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
    def word(self) -> str:
        """The result of the player: won, drew or lost, by the mean score over the rivals."""
        return "won" if self.score > 0.5 else "lost" if self.score < 0.5 else "drew"


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
