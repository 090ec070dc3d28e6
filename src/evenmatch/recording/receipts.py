"""Receipts: how a recorded match changed its players' ratings, and warnings about unusual team sizes.

Matches are recorded by the thousand, so their lines are built as columns, and each receipt takes its share of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import DamageError
from evenmatch.history import Columns, Flags, Floats, team_results
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, player_rows
from evenmatch.ledger.block_rating import Block
from evenmatch.ledger.codec import line_type
from evenmatch.ledger.events import RulesChanged, SettingsChanged, write_body
from evenmatch.ledger.store import Head, Store
from evenmatch.systems.system import Change, Records, System
from evenmatch.times import iso_time

KINDS = 5  # combinations of team sizes that a summary lists


class OtherSizes(NamedTuple):
    """The team sizes of an unusual match, "5 against 6", and the ladder's team_size."""

    sizes: str
    team_size: int

    def __str__(self) -> str:
        return f"{self.sizes} players; expected teams of {self.team_size}, the ladder's team_size"

    @property
    def refusal(self) -> str:
        """Why a ladder that refuses other sizes refuses the match."""
        return f"{self} (the ladder has other_sizes=refuse)"


def other_sizes(settings: Settings, columns: Columns, rated: Flags | Sequence[bool]) -> Mapping[int, OtherSizes]:
    """The rated matches with other team sizes than the ladder's, by index; none if the ladder allows any.

    A team may exceed team_size by the number of players who quit, because others may have replaced them.
    """
    size = settings.team_size
    if size is None or settings.other_sizes == "any" or not len(columns.slot_start[1:]):
        return {}
    listed = np.diff(columns.slot_start)
    stayed = listed - np.add.reduceat(columns.quit, columns.slot_start[:-1], dtype=np.int32)
    odd = np.add.reduceat((listed < size) | (stayed > size), columns.team_start[:-1], dtype=np.int32)
    chosen = np.flatnonzero((odd > 0) & np.asarray(rated, np.bool_)).tolist()
    start = columns.team_start
    return {index: OtherSizes(_in_words(listed[start[index] : start[index + 1]].tolist()), size) for index in chosen}


def summary(matches: Sequence[OtherSizes]) -> list[str]:
    """One sentence about these matches of a ladder, with the most frequent sizes; an empty list if there are none."""
    if not matches:
        return []
    counts = Counter(match.sizes for match in matches)
    kinds = [f"{sizes}: {count:,}" for sizes, count in counts.most_common(KINDS)]
    if len(counts) > KINDS:
        kinds.append(f"others: {len(matches) - sum(count for _, count in counts.most_common(KINDS)):,}")
    have = "match has" if len(matches) == 1 else "matches have"
    return [f"{len(matches):,} {have} teams of other sizes than {matches[0].team_size} ({', '.join(kinds)})"]


def _in_words(sizes: list[int]) -> str:
    smallest, largest = min(sizes), max(sizes)
    if len(sizes) == 2:
        return f"{smallest:,} against {largest:,}"
    return f"{len(sizes):,} teams of {smallest:,}" + (f" to {largest:,}" if largest > smallest else "")


@dataclass(frozen=True)
class PlayerReceipt:
    """One player's part of a receipt.

    change      how the match changed the rating, and why
    percentile  1..100 as shown when the match was recorded; None: not shown (not placed, not active, no rebuild yet)
    division    as shown when the match was recorded; None: not shown
    """

    change: Change
    percentile: int | None
    division: str | None


@dataclass(frozen=True, eq=False)
class RatedBlock:
    """The matches of a block, and the packed lines of each (`told`; empty if it was not rated).

    names  of players by id;  divisions  names by the index stored in lines
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
        """The result of every slot's team: the mean over its rivals of 1 for a win, 0.5 for a draw, 0 for a loss."""
        c = self.block.columns
        return np.repeat(team_results(c.team_start, c.place), np.diff(c.slot_start))

    @property
    def percentile(self) -> list[int | None]:
        """The percentile shown to every slot's player; None: none."""
        return [value if value > 0 else None for value in self.records["percentile"].tolist()]

    @property
    def division(self) -> list[str | None]:
        """The name of the division shown to every slot's player; None: none."""
        names = dict(enumerate(self.divisions))
        return [names.get(index) for index in self.records["division"].tolist()]

    @cached_property
    def lines(self) -> tuple[Sequence[Any], ...]:
        """The lines as columns, one entry per slot: the fields of `Change`, then percentile and division.

        Lines of unrated matches are meaningless.
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
    other_sizes  its team sizes, if they are not the ladder's team_size and the ladder warns about that
    counted_at   when it counts as having ended, in microseconds, if another match ended later; None: at its own end
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
        """Sentences about effects that the sender may not expect."""
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


def first_receipts(store: Store, head: Head, ids: Sequence[str]) -> dict[str, MatchReceipt]:
    """The receipts of these recorded matches, by id, as they were first returned. Raises DamageError."""
    matches = event_rows.read_matches(store, head.ladder, ids)
    if not matches:
        return {}
    names = player_rows.names_of(store, np.unique(np.concatenate([block.ids for block, _ in matches])).tolist())
    rules_of = {
        generation: event_rows.read_rules(store, head, generation) for generation in {row[1] for _, row in matches}
    }
    changed, settings = _settings(store, head)
    positions = [int(block.positions[0]) for block, _ in matches]
    late = event_rows.read_counted_at(store, head.ladder, positions)
    receipt_of: dict[str, MatchReceipt] = {}
    for block, (match_id, generation, lines, _) in matches:
        present = settings[bisect_left(changed, int(block.positions[0])) - 1]
        divisions = [division.name for division in present.standings.divisions]
        system = rules_of[generation].system
        if lines is None or len(lines) not in (0, len(block.ids) * line_type(system).itemsize):
            raise DamageError(
                f"the stored receipt of match {match_id!r} of ladder {head.name!r} is damaged; "
                "`evenmatch verify` lists the damage; restore a backup"
            )
        rated = RatedBlock(system, block, [bytes(lines)], names, divisions)
        counted_at, _ = late.get(int(block.positions[0]), (None, None))
        receipt_of[match_id] = receipts(head.name, [match_id], rated, present, [counted_at])[0]
    return receipt_of


def _settings(store: Store, head: Head) -> tuple[list[int], list[Settings]]:
    """The positions of changes of settings, ascending, and the settings since each."""
    settings_since = {
        event.position: Settings.read(write_body(event.change.settings))
        for event in event_rows.read_corrections(store, head, head.corrected)
        if isinstance(event.change, RulesChanged | SettingsChanged)
    }
    return list(settings_since), list(settings_since.values())
