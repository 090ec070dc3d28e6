"""A player's results in their latest matches: against and beside each other player, and by hour of the day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.durations import HOUR
from evenmatch.ladders.export import list_of_player
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.codec import Ids, read_lines
from evenmatch.ledger.store import Head, Store

LATEST = 300  # latest matches that are evaluated
LOOKED_AT = 50  # latest matches that are searched for the last loss
HOURS = 24


class Tally(NamedTuple):
    """Counts of a player's results.

    score, expected  sums of actual and predicted scores, 0..1 per match; expected: NaN if hidden
    """

    won: int = 0
    drew: int = 0
    lost: int = 0
    score: float = 0.0
    expected: float = 0.0

    @property
    def matches(self) -> int:
        """The number of matches."""
        return self.won + self.drew + self.lost

    @property
    def surplus(self) -> float:
        """The mean difference between actual and expected score, −1..1; 0 without matches."""
        return (self.score - self.expected) / self.matches if self.matches else 0.0

    def after(self, score: float, expected: float) -> Tally:
        """A copy with one more match."""
        return Tally(
            self.won + (score > 0.5),
            self.drew + (score == 0.5),
            self.lost + (score < 0.5),
            self.score + score,
            self.expected + expected,
        )


class Encounter(NamedTuple):
    """Another player, and the results against them and in the same team."""

    player: str
    against: Tally
    beside: Tally


class Encounters(NamedTuple):
    """The results of a player's latest rated matches.

    whole   over all of these matches;  others  most frequent opponents first
    hours   24 entries, by hour of the day in UTC
    latest  True if older matches exist, which were not evaluated
    """

    whole: Tally
    others: tuple[Encounter, ...]
    hours: tuple[Tally, ...]
    latest: bool


def encounters(store: Store, head: Head, player: int, *, most: int = 12) -> Encounters:
    """The encounters of a player, with at most `most` other players.

    The result against another player compares the places of their teams; other results cover all rivals.
    """
    listed = list_of_player(store, head, event_rows.read_plan(store, head, head.planned), player, limit=LATEST + 1)
    positions = [key.position for key in listed]
    against: dict[int, Tally] = defaultdict(Tally)
    beside: dict[int, Tally] = defaultdict(Tally)
    hours = [Tally()] * HOURS
    whole = Tally()
    for match in rated_matches(store, head, player, positions[:LATEST]):
        own_place, score, expected = match.places[match.team], match.score, float(match.line["expected"])
        whole = whole.after(score, expected)
        hour = match.played_at // HOUR % HOURS
        hours[hour] = hours[hour].after(score, expected)
        for other, team in zip(match.players.tolist(), match.teams.tolist(), strict=True):
            if other == player:
                continue
            if team == match.team:
                beside[other] = beside[other].after(score, expected)
            else:
                place = match.places[team]
                points = 1.0 if place > own_place else 0.5 if place == own_place else 0.0
                against[other] = against[other].after(points, expected)
    met = sorted(against.keys() | beside.keys(), key=lambda one: (-against[one].matches, -beside[one].matches, one))
    names = player_rows.names_of(store, met[:most])
    others = tuple(Encounter(names[other], against[other], beside[other]) for other in met[:most])
    return Encounters(whole, others, tuple(hours), len(positions) > LATEST)


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
    team, score, completed, line  of the player; score: see _score; completed: counted and not quit
    """

    order: tuple[int, int]
    match_id: str
    played_at: int
    players: Ids
    teams: Ids
    places: NDArray[np.int32]
    team: int
    score: float
    completed: bool
    line: np.void


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
            played_at, score = int(block.played_at[match]), _score(places, team)
            completed = bool(c.keep[starts[0] + slot] and not c.quit[starts[0] + slot])
            order = int(block.counts_at[match]), int(block.counts_at[match] == position)
            yield OpponentMatch(order, rows[match][0], played_at, players, teams, places, team, score, completed, line)


def _score(places: NDArray[np.int32], team: int) -> float:
    """The mean over a team's rivals of 1 for a win, 0.5 for a draw and 0 for a loss."""
    rivals = np.delete(places, team)
    return float(((rivals > places[team]) + 0.5 * (rivals == places[team])).mean())
