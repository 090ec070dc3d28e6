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
from numpy.typing import NDArray

from evenmatch.history import Floats
from evenmatch.ledger.codec import line_type
from evenmatch.ledger.replay import Block
from evenmatch.systems.system import Change, FactorValue, Records, Rules


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
    def records(self) -> Records:
        """The line of every slot; nothing but noughts in matches that were not rated."""
        kind = line_type(self.rules.system)
        c = self.block.columns
        sizes = np.diff(c.slot_start[c.team_start]).tolist()
        whole = b"".join(told or bytes(size * kind.itemsize) for told, size in zip(self.told, sizes, strict=True))
        return np.frombuffer(whole, kind)

    @property
    def player(self) -> list[str]:
        """The present name of every slot's player."""
        names = self.names
        return [names[one] for one in self.block.ids.tolist()]

    @property
    def team(self) -> NDArray[np.int64]:
        """Of every slot, counted from 0 in its match."""
        c = self.block.columns
        team = np.arange(len(c.place)) - np.repeat(c.team_start[:-1], np.diff(c.team_start))
        return np.repeat(team, np.diff(c.slot_start))

    @property
    def result(self) -> Floats:
        """Of every slot's team."""
        c = self.block.columns
        return np.repeat(_results(c.team_start.tolist(), c.place.tolist()), np.diff(c.slot_start))

    @property
    def percentile(self) -> list[int | None]:
        """As every slot's player was shown it."""
        return [one if one > 0 else None for one in self.records["percentile"].tolist()]

    @property
    def division(self) -> list[str | None]:
        """Likewise."""
        shown = dict(enumerate(self.divisions))
        return [shown.get(one) for one in self.records["division"].tolist()]

    @cached_property
    def lines(self) -> Lines:
        """The lines, made when somebody asks; those of matches that were not rated mean nothing."""
        records = self.records
        return Lines(
            player=self.player,
            team=self.team.tolist(),
            before=records["before"].tolist(),
            after=records["after"].tolist(),
            expected=records["expected"].tolist(),
            result=self.result.tolist(),
            factors=self.rules.system.name_factors(records["factors"].tolist()),
            percentile=self.percentile,
            division=self.division,
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

    @cached_property
    def teams(self) -> tuple[tuple[Line, ...], ...]:
        """The lines of its players, team by team, as they were sent; without lines where it was not rated."""
        return tuple(
            tuple(
                Line(Change(*change), percentile, division)
                for *change, percentile, division in zip(*(column[a:b] for column in self.source.lines), strict=True)
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
