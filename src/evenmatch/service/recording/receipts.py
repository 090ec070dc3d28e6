"""Receipts: what a recorded match did to the ratings of its players.

Matches are recorded by the thousand, so their lines are built as columns, and each receipt takes its part of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Floats, team_results
from evenmatch.ledger.block_rating import Block
from evenmatch.ledger.codec import line_type
from evenmatch.service.recording.other_sizes import OtherSizes, other_sizes
from evenmatch.service.settings import Settings
from evenmatch.systems.system import Change, Records, System
from evenmatch.times import iso_time


@dataclass(frozen=True)
class PlayerReceipt:
    """One player's part of a receipt.

    change      what the match did to the rating, and why
    percentile  1..100 as shown when the match was recorded; None: not shown (not placed, not active, no rebuild yet)
    division    as shown when the match was recorded; None: not shown
    """

    change: Change
    percentile: int | None
    division: str | None


@dataclass(frozen=True, eq=False)
class RatedBlock:
    """The matches of a block, and the packed lines of each (`told`; empty if it was not rated).

    names  of players by id;  divisions  names, by the index that lines hold
    """

    system: System
    block: Block
    told: Sequence[bytes]
    names: Mapping[int, str]
    divisions: Sequence[str]

    @cached_property
    def records(self) -> Records:
        """The line of every slot; zeros in matches that were not rated."""
        kind = line_type(self.system)
        c = self.block.columns
        sizes = np.diff(c.slot_start[c.team_start]).tolist()
        whole = b"".join(lines or bytes(size * kind.itemsize) for lines, size in zip(self.told, sizes, strict=True))
        return np.frombuffer(whole, kind)

    @property
    def player(self) -> list[str]:
        """The current name of every slot's player."""
        names = self.names
        return [names[player] for player in self.block.ids.tolist()]

    @property
    def team(self) -> NDArray[np.int64]:
        """The team of every slot, counted from 0 in its match."""
        c = self.block.columns
        team = np.arange(len(c.place)) - np.repeat(c.team_start[:-1], np.diff(c.team_start))
        return np.repeat(team, np.diff(c.slot_start))

    @property
    def result(self) -> Floats:
        """The result of every slot's team: the mean over its rivals of 1 ahead, 0.5 draw, 0 behind."""
        c = self.block.columns
        return np.repeat(team_results(c.team_start, c.place), np.diff(c.slot_start))

    @property
    def percentile(self) -> list[int | None]:
        """The percentile that every slot's player was shown; None: none."""
        return [value if value > 0 else None for value in self.records["percentile"].tolist()]

    @property
    def division(self) -> list[str | None]:
        """The name of the division that every slot's player was shown; None: none."""
        names = dict(enumerate(self.divisions))
        return [names.get(index) for index in self.records["division"].tolist()]

    @cached_property
    def lines(self) -> tuple[Sequence[Any], ...]:
        """The lines as columns, one entry per slot: the fields of `Change`, then percentile and division.

        Those of matches that were not rated are meaningless.
        """
        records = self.records
        return (
            self.player,
            self.team.tolist(),
            records["before"].tolist(),
            records["after"].tolist(),
            records["expected"].tolist(),
            self.result.tolist(),
            self.system.name_factors(records["factors"]),
            self.percentile,
            self.division,
        )


@dataclass(frozen=True, eq=False)
class MatchReceipt:
    """The result of recording a match.

    position  in the ladder's ledger
    rated     False: it changed no rating (it was sent as unrated, is void, or names a player twice)
    source    the lines of this match and others;  starts  index of each team's first line in it, then the end
    other_sizes  of its teams, if they are not the ladder's team_size and the ladder warns of that
    counted_at   when it counts as having ended, in microseconds, if another match had ended later; None: when it did
    """

    match_id: str
    ladder: str
    position: int
    rated: bool
    source: RatedBlock = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    other_sizes: OtherSizes | None = None
    counted_at: int | None = None

    @property
    def warnings(self) -> list[str]:
        """What the sender may not have expected, as sentences."""
        sentences = [] if self.other_sizes is None else [str(self.other_sizes)]
        if self.counted_at is not None:
            sentences.append(f"reported late: it counts as if it had ended at {iso_time(self.counted_at)}")
        return sentences

    @cached_property
    def teams(self) -> tuple[tuple[PlayerReceipt, ...], ...]:
        """The lines of its players, team by team, in the order sent; empty if it was not rated."""
        return tuple(
            tuple(
                PlayerReceipt(Change(*change), percentile, division)
                for *change, percentile, division in zip(*(column[a:b] for column in self.source.lines), strict=True)
            )
            for a, b in pairwise(self.starts)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatchReceipt) and self._content == other._content

    def __hash__(self) -> int:
        return hash((self.ladder, self.match_id))

    @property
    def _content(self) -> tuple[object, ...]:
        return self.match_id, self.ladder, self.position, self.rated, self.teams, self.warnings


def receipts(
    ladder: str,
    match_ids: Sequence[str],
    source: RatedBlock,
    settings: Settings | None = None,
    counted_at: Sequence[int | None] = (),
) -> list[MatchReceipt]:
    """The receipts of the matches of a block, in its order.

    settings    of the ladder when the matches were recorded, for warnings; None: without warnings
    counted_at  of each match, see MatchReceipt; empty: all in time
    """
    c = source.block.columns
    odd = {} if settings is None else other_sizes(settings, c, source.block.rated)
    team_start, slot_start = c.team_start.tolist(), c.slot_start.tolist()
    return [
        MatchReceipt(
            *(match_id, ladder, position, bool(told), source, tuple(slot_start[first : end + 1]) if told else ()),
            odd.get(index),
            counted_at[index] if counted_at else None,
        )
        for index, (match_id, position, told, (first, end)) in enumerate(
            zip(match_ids, source.block.positions.tolist(), source.told, pairwise(team_start), strict=True)
        )
    ]
