"""Ladders that were rated, summed up: how many matches and players, and the best of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

TOP = 20


@dataclass(frozen=True)
class RatedLadder:
    """One ladder that was rated.

    players, placed  how many played, and how many of them have completed their placement matches
    top              the best of the placed players (of all, if none is placed): rows of the standings by column
    """

    name: str
    matches: int
    players: int
    placed: int
    top: tuple[dict[str, object], ...]


def summaries(standings: pa.Table, matches: Mapping[str, int]) -> Iterator[RatedLadder]:
    """The ladders of standings by name, with their best players; those without `matches` are left out."""
    for name in sorted(ladder for ladder, count in matches.items() if count):
        here = standings.filter(pc.equal(standings["ladder"], name)) if len(matches) > 1 else standings
        placed = here.filter(here["placed"])
        shown = placed if placed.num_rows else here
        top = tuple(shown.slice(0, TOP).to_pylist())
        yield RatedLadder(name, matches[name], here.num_rows, placed.num_rows, top)
