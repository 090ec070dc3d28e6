"""Hide the order in which matches list their teams from predictions if it reveals the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.history import Flags, History, Integers, ranges, rows_of
from evenmatch.tables import MatchTable

# If the first-listed team wins (or loses) at least this share of decided matches, the order reveals the result.
TELLING = 0.8
SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)  # odd multiplier of a multiplicative hash


def neutral(matches: MatchTable) -> tuple[MatchTable, str]:
    """Reorder teams if the first-listed one nearly always wins or loses; return the matches and a note, else "".

    Systems may give the first-listed team an advantage. If files list teams in order of finish, that would let them
    use the result for its own prediction.
    """
    share = order_gives_away(matches.history)
    if share < TELLING:
        return matches, ""
    history, order = scrambled(matches.history)
    return replace(matches, history=history, team=matches.team.take(pa.array(order))), order_note(share)


def order_note(share: float) -> str:
    """Return the note that the order of teams gives the result away; share: see `order_gives_away`."""
    note = f"the first-listed team of {share:.0%} of the decided matches finished first, or last: the order of teams"
    return note + " gives the result away, so a neutral order is used instead"


def order_gives_away(history: History) -> float:
    """Share of decided matches in which the first-listed team finished first, or last, whichever is larger."""
    return share_of(order_counts(history))


def order_counts(history: History) -> NDArray[np.int64]:
    """Numbers of decided matches, of wins of the first-listed team, and of its last places: int64 (3,)."""
    c = history.columns
    if not len(history):
        return np.zeros(3, np.int64)
    starts = c.team_start[:-1]
    best, worst = np.minimum.reduceat(c.place, starts), np.maximum.reduceat(c.place, starts)
    decided: Flags = best != worst
    first = c.place[starts][decided]
    return np.array([decided.sum(), (first == best[decided]).sum(), (first == worst[decided]).sum()], np.int64)


def share_of(counts: NDArray[np.int64]) -> float:
    """The share of `order_gives_away`, from sums of `order_counts`."""
    return float(counts[1:].max() / counts[0]) if counts[0] else 0.0


def scrambled(history: History, first: int = 0) -> tuple[History, NDArray[np.int64]]:
    """The teams of each match in a pseudo-random order derived from match and player numbers, and that order.

    first  number of the first match
    """
    c = history.columns
    match = np.repeat(np.arange(first, first + len(history)), np.diff(c.team_start))
    lowest_player = np.minimum.reduceat(c.player, c.slot_start[:-1]).astype(np.uint64)
    key = (lowest_player + np.uint64(1)) * SCRAMBLE ^ (match.astype(np.uint64) + np.uint64(1)) * (
        SCRAMBLE << np.uint64(1)
    )
    key ^= key >> np.uint64(29)
    order = np.lexsort((key * SCRAMBLE, match))
    slots = ranges(c.slot_start, order)
    sizes: Integers = np.diff(c.slot_start)[order]
    slot_columns = {
        name: getattr(c, name)[slots] for name in ("player", "score", "seconds", "performance", "quit", "keep")
    }
    columns = c._replace(
        place=c.place[order],
        team_score=c.team_score[order],
        slot_start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int32),
        offset=rows_of(c.offset, history.contexts, slots),
        entry=rows_of(c.entry, int(len(c.entry) > 0), slots),
        **slot_columns,
    )
    return History(columns), order
