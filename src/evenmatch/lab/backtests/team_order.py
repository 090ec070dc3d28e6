"""Order in which matches list their teams: predictions must not see it if it reveals the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from evenmatch.history import Flags, History, Integers, ranges
from evenmatch.tables import MatchTable

# Share of decided matches won (or lost) by the first-listed team from which the order counts as one of finish.
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
    note = f"the first-listed team of {share:.0%} of the decided matches finished first, or last: the order of teams"
    return _scrambled(matches), note + " gives the result away, so a neutral order is used instead"


def order_gives_away(history: History) -> float:
    """Share of decided matches in which the first-listed team finished first, or last, whichever is larger."""
    c = history.columns
    if not len(history):
        return 0.0
    starts = c.team_start[:-1]
    best, worst = np.minimum.reduceat(c.place, starts), np.maximum.reduceat(c.place, starts)
    decided: Flags = best != worst
    first = c.place[starts][decided]
    if not decided.any():
        return 0.0
    return float(max((first == best[decided]).mean(), (first == worst[decided]).mean()))


def _scrambled(matches: MatchTable) -> MatchTable:
    """Matches with the teams of each in a pseudo-random order derived from match and player numbers."""
    c = matches.history.columns
    match = np.repeat(np.arange(len(matches.history)), np.diff(c.team_start))
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
        **slot_columns,
    )
    return replace(matches, history=History(columns), team=matches.team.take(pa.array(order)))
