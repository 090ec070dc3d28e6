"""Matches whose teams have other sizes than the `team_size` of their ladder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from evenmatch.history import Columns, Flags
from evenmatch.service.settings import Settings

KINDS = 5  # combinations of sizes that a summary lists


class OtherSizes(NamedTuple):
    """The sizes of the teams of such a match, "5 against 6", and the ladder's team_size."""

    sizes: str
    team_size: int

    def __str__(self) -> str:
        return f"{self.sizes} players; expected teams of {self.team_size}, the ladder's team_size"

    @property
    def refusal(self) -> str:
        """Why a ladder that refuses other sizes refuses the match."""
        return f"{self}, since it has other_sizes=refuse"


def other_sizes(settings: Settings, columns: Columns, rated: Flags | Sequence[bool]) -> Mapping[int, OtherSizes]:
    """The rated matches whose teams have other sizes than the ladder's, by index; none if the ladder allows any.

    A team may list more players than team_size by as many as quit, because others may have replaced them.
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
    """One sentence about several matches of a ladder, with the most frequent sizes; an empty list if there are none."""
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
