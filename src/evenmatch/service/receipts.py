"""What a recorded match did to its players, as they are told.

A thousand matches are told at once: their lines are made as columns, from which each receipt has its part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from evenmatch.ledger.codec import line_type
from evenmatch.ledger.replay import Block
from evenmatch.systems.system import Change, FactorValue, Rules


@dataclass(frozen=True)
class Line:
    """One player's part of a receipt.

    change      what the match did to the rating, and why
    percentile  1..100 as shown when the match was recorded; None: not shown (not placed, not active, no rebuild yet)
    division    likewise
    """

    change: Change
    percentile: int | None
    division: str | None


class Lines(NamedTuple):
    """The lines of any number of matches as columns, an entry per slot: those of `Change`, then those of `Line`."""

    player: list[str]
    team: list[int]
    before: list[float]
    after: list[float]
    expected: list[float]
    result: list[float]
    factors: list[dict[str, FactorValue]]
    percentile: list[int | None]
    division: list[str | None]


@dataclass(frozen=True, eq=False)
class Told:
    """The matches of a block and what was told of each; nothing of one that was not rated.

    names  of players by id;  divisions  by the index that lines hold
    """

    rules: Rules
    block: Block
    told: Sequence[bytes]
    names: Mapping[int, str]
    divisions: Sequence[str]

    @cached_property
    def lines(self) -> Lines:
        """The lines, made when somebody asks; those of matches that were not rated mean nothing."""
        c, kind = self.block.columns, line_type(self.rules.system)
        sizes = np.diff(c.slot_start)
        blank = [bytes(size * kind.itemsize) for size in np.diff(c.slot_start[c.team_start]).tolist()]
        lines = np.frombuffer(b"".join(one or nothing for one, nothing in zip(self.told, blank, strict=True)), kind)
        shown: list[str | None] = [*self.divisions, None]
        within = np.where(lines["division"] < len(self.divisions), np.maximum(lines["division"], -1), -1)
        team = np.arange(len(sizes)) - np.repeat(c.team_start[:-1], np.diff(c.team_start))
        names = self.names
        return Lines(
            player=[names[one] for one in self.block.ids.tolist()],
            team=np.repeat(team, sizes).tolist(),
            before=lines["before"].tolist(),
            after=lines["after"].tolist(),
            expected=lines["expected"].tolist(),
            result=np.repeat(_results(c.team_start.tolist(), c.place.tolist()), sizes).tolist(),
            factors=self.rules.system.name_factors(lines["factors"].tolist()),
            percentile=[one if one > 0 else None for one in lines["percentile"].tolist()],
            division=[shown[at] for at in within.tolist()],
        )


@dataclass(frozen=True, eq=False)
class Receipt:
    """What recording a match did.

    position  its place in the ladder's ledger
    rated     False: it changed no rating (the sender wished so, or it is void)
    source    has the lines of this match and others; its teams' begin at `starts`, the last of which is where they end
    """

    match_id: str
    ladder: str
    position: int
    rated: bool
    source: Told = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)

    @property
    def lines(self) -> Lines:
        """The lines of this match and others."""
        return self.source.lines

    @cached_property
    def teams(self) -> tuple[tuple[Line, ...], ...]:
        """The lines of its players, team by team, as they were sent; without lines where it was not rated."""
        return tuple(
            tuple(
                Line(Change(*change), percentile, division)
                for *change, percentile, division in zip(*(column[a:b] for column in self.lines), strict=True)
            )
            for a, b in pairwise(self.starts)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Receipt) and self._told == other._told

    def __hash__(self) -> int:
        return hash((self.ladder, self.match_id))

    @property
    def _told(self) -> tuple[object, ...]:
        return self.match_id, self.ladder, self.position, self.rated, self.teams


def receipts(ladder: str, match_ids: Sequence[str], source: Told) -> list[Receipt]:
    """The receipts of matches by their lines, in the order of the block."""
    c = source.block.columns
    team_start, slot_start = c.team_start.tolist(), c.slot_start.tolist()
    return [
        Receipt(match_id, ladder, position, bool(told), source, tuple(slot_start[first : end + 1]) if told else ())
        for match_id, position, told, (first, end) in zip(
            match_ids, source.block.positions.tolist(), source.told, pairwise(team_start), strict=True
        )
    ]


def _results(team_start: list[int], place: list[int]) -> list[float]:
    """Of every team the mean over its rivals of 1 for finishing ahead, 0.5 for a draw, 0 for behind."""
    found: list[float] = []
    for first, end in pairwise(team_start):
        places = place[first:end]
        for own in places:
            ahead = sum((other > own) + 0.5 * (other == own) for other in places) - 0.5
            found.append(ahead / (end - first - 1))
    return found
