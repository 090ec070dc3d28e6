"""Whom a player met, with what success, and at which hours of the day: out of their latest matches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.ledger import people
from evenmatch.ledger.codec import Ids, read_lines
from evenmatch.ledger.store import Head, Store
from evenmatch.service.exporting import positions_of_player

LATEST = 300  # matches that are looked at
LOOKED_AT = 50  # among which the last loss is looked for
HOUR = 3_600_000_000  # microseconds
HOURS = 24


class Tally(NamedTuple):
    """Matches by what the player made of them. expected: what the ratings promised them, 0..1 for each match."""

    won: int = 0
    drew: int = 0
    lost: int = 0
    score: float = 0.0
    expected: float = 0.0

    @property
    def matches(self) -> int:
        """How many."""
        return self.won + self.drew + self.lost

    @property
    def surplus(self) -> float:
        """How much better than expected a match went on average, −1..1."""
        return (self.score - self.expected) / self.matches if self.matches else 0.0

    def after(self, score: float, expected: float) -> Tally:
        """With one more match."""
        return Tally(
            self.won + (score > 0.5),
            self.drew + (score == 0.5),
            self.lost + (score < 0.5),
            self.score + score,
            self.expected + expected,
        )


class Encounter(NamedTuple):
    """Another player, and the matches against them, and beside them."""

    player: str
    against: Tally
    beside: Tally


class Encounters(NamedTuple):
    """What a player's latest rated matches tell.

    whole   all of them;  others  who was met most often first
    hours   by hour of the day in UTC, of which there are 24
    latest  whether there are older ones that were not looked at
    """

    whole: Tally
    others: tuple[Encounter, ...]
    hours: tuple[Tally, ...]
    latest: bool


def encounters(store: Store, head: Head, player: int, *, most: int = 12) -> Encounters:
    """The encounters of a player, with so many others at most.

    Against a player the own team's place counts against theirs; of an hour, the score over all rivals.
    """
    positions = positions_of_player(store, head, store.plan(head, head.planned), player, limit=LATEST + 1)
    against: dict[int, Tally] = defaultdict(Tally)
    beside: dict[int, Tally] = defaultdict(Tally)
    hours = [Tally()] * HOURS
    whole = Tally()
    for one in rated_matches(store, head, player, positions[:LATEST]):
        mine, team, score, expected = one.places[one.team], one.team, one.score, float(one.line["expected"])
        whole = whole.after(score, expected)
        hour = one.played_at // HOUR % HOURS
        hours[hour] = hours[hour].after(score, expected)
        for other, theirs in zip(one.players.tolist(), one.teams.tolist(), strict=True):
            if other == player:
                continue
            if theirs == team:
                beside[other] = beside[other].after(score, expected)
            else:
                place = one.places[theirs]
                against[other] = against[other].after(1.0 if place > mine else 0.5 if place == mine else 0.0, expected)
    chosen = sorted(against.keys() | beside.keys(), key=lambda one: (-against[one].matches, -beside[one].matches, one))
    names = people.names_of(store, chosen[:most])
    others = tuple(Encounter(names[one], against[one], beside[one]) for one in chosen[:most])
    return Encounters(whole, others, tuple(hours), len(positions) > LATEST)


def last_loss(store: Store, head: Head, player: int) -> str | None:
    """The latest of a player's last matches in which their rating fell; None: it did not."""
    positions = positions_of_player(store, head, store.plan(head, head.planned), player, limit=LOOKED_AT)
    fallen = [one for one in rated_matches(store, head, player, positions) if one.line["after"] < one.line["before"]]
    return max(fallen, key=lambda one: one.position).match_id if fallen else None


class Played(NamedTuple):
    """A rated match of a player: everybody's id and team, the places of the teams, the own team, score and line."""

    position: int
    match_id: str
    played_at: int
    players: Ids
    teams: Ids
    places: NDArray[np.int32]
    team: int
    score: float
    line: np.void


def rated_matches(store: Store, head: Head, player: int, positions: list[int]) -> Iterator[Played]:
    """The matches of a player at these positions that are rated."""
    plan, lines = store.plan(head, head.planned), store.lines(head, positions)
    for block, rows in store.blocks_at(head, positions):
        ids, c = plan.identity(block.ids), block.columns
        for at, position in enumerate(block.positions.tolist()):
            told = lines.get(position, (b"", 0))[0]
            if not told:
                continue
            first, end = c.team_start[at : at + 2].tolist()
            starts = c.slot_start[first : end + 1]
            teams, places = np.repeat(np.arange(end - first), np.diff(starts)), c.place[first:end]
            players = ids[starts[0] : starts[-1]]
            slot = int(np.flatnonzero(players == player)[0])
            team = int(teams[slot])
            line = read_lines(plan.last_rules.system, told)[slot]
            played_at, score = int(block.played_at[at]), _score(places, team)
            yield Played(position, rows[at][0], played_at, players, teams, places, team, score, line)


def _score(places: NDArray[np.int32], team: int) -> float:
    """The mean over a team's rivals of 1 for finishing ahead, 0.5 for a draw, 0 for behind."""
    rivals = np.delete(places, team)
    return float(((rivals > places[team]) + 0.5 * (rivals == places[team])).mean())
