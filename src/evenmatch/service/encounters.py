"""Whom a player met, with what success, and at which hours of the day: out of their latest matches."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.ledger import people
from evenmatch.ledger.codec import Ids, read_lines
from evenmatch.ledger.replay import Block
from evenmatch.ledger.store import Head, Store
from evenmatch.service.exporting import positions_of_player

LATEST = 300  # matches that are looked at
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
    plan = store.plan(head, head.planned)
    positions = positions_of_player(store, head, plan, player, limit=LATEST + 1)
    lines = store.lines(head, positions[:LATEST])
    against: dict[int, Tally] = defaultdict(Tally)
    beside: dict[int, Tally] = defaultdict(Tally)
    hours = [Tally()] * HOURS
    whole = Tally()
    for block, _ in store.blocks_at(head, positions[:LATEST]):
        ids = plan.identity(block.ids)
        for at, position in enumerate(block.positions.tolist()):
            told = lines.get(position, (b"", 0))[0]
            if not told:
                continue
            own, teams, places, there = _line_up(block, at, ids, player)
            expected = float(read_lines(plan.last_rules.system, told)["expected"][own])
            mine = places[teams[own]]
            score = _score(places, int(teams[own]))
            whole = whole.after(score, expected)
            hour = int(block.played_at[at]) // HOUR % HOURS
            hours[hour] = hours[hour].after(score, expected)
            for other, team in zip(there.tolist(), teams.tolist(), strict=True):
                if other == player:
                    continue
                if team == teams[own]:
                    beside[other] = beside[other].after(score, expected)
                else:
                    duel = 1.0 if places[team] > mine else 0.5 if places[team] == mine else 0.0
                    against[other] = against[other].after(duel, expected)
    chosen = sorted(against.keys() | beside.keys(), key=lambda one: (-against[one].matches, -beside[one].matches, one))
    names = people.names_of(store, chosen[:most])
    others = tuple(Encounter(names[one], against[one], beside[one]) for one in chosen[:most])
    return Encounters(whole, others, tuple(hours), len(positions) > LATEST)


class Step(NamedTuple):
    """A rated match of a player. word: won, drew or lost, by the mean over the rivals."""

    match_id: str
    played_at: int
    before: float
    after: float
    word: str


def steps(store: Store, head: Head, player: int, most: int) -> list[Step]:
    """A player's rated matches in order, so many at most, spread evenly: the way of their rating."""
    plan = store.plan(head, head.planned)
    positions = positions_of_player(store, head, plan, player)
    if len(positions) > most:
        positions = [positions[at] for at in np.linspace(0, len(positions) - 1, most).round().astype(int).tolist()]
    lines, found = store.lines(head, positions), list[tuple[int, Step]]()
    for block, rows in store.blocks_at(head, positions):
        ids = plan.identity(block.ids)
        for at, position in enumerate(block.positions.tolist()):
            told = lines.get(position, (b"", 0))[0]
            if not told:
                continue
            own, teams, places, _ = _line_up(block, at, ids, player)
            line = read_lines(plan.last_rules.system, told)[own]
            score = _score(places, int(teams[own]))
            word = "won" if score > 0.5 else "lost" if score < 0.5 else "drew"
            step = Step(rows[at][0], int(block.played_at[at]), float(line["before"]), float(line["after"]), word)
            found.append((position, step))
    return [step for _, step in sorted(found)]


def _score(places: NDArray[np.int32], team: int) -> float:
    """The mean over a team's rivals of 1 for finishing ahead, 0.5 for a draw, 0 for behind."""
    rivals = np.delete(places, team)
    return float(((rivals > places[team]) + 0.5 * (rivals == places[team])).mean())


def _line_up(block: Block, at: int, ids: Ids, player: int) -> tuple[int, Ids, NDArray[np.int32], Ids]:
    """A match of a block: the player's slot, everybody's team, the places of the teams, and everybody's id."""
    c = block.columns
    first, end = c.team_start[at : at + 2].tolist()
    starts = c.slot_start[first : end + 1]
    teams = np.repeat(np.arange(end - first), np.diff(starts))
    there = ids[starts[0] : starts[-1]]
    return int(np.flatnonzero(there == player)[0]), teams, c.place[first:end], there
