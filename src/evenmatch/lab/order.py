"""The order in which matches list their teams: where it gives the result away, no prediction may see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from evenmatch.history import Flags, History, Integers, ranges
from evenmatch.tables import MatchTable

TELLING = 0.8  # share of decided matches won (or lost) by the first-listed above which the order is one of finish
SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that products of it are spread over all 64 bits


def neutral(matches: MatchTable) -> tuple[MatchTable, str]:
    """The same matches and no word; or, where the first-listed nearly always wins or loses, teams in a neutral order.

    Systems may give the first-listed side an advantage, or have it attack; in a file that lists teams in order of
    finish that would be hindsight. The word says what was done.
    """
    share = told_by_order(matches.history)
    if share < TELLING:
        return matches, ""
    word = f"the first-listed team of {share:.0%} of the decided matches finished first, or last: the order of teams"
    return _scrambled(matches), word + " gives the result away, and was put aside"


def told_by_order(history: History) -> float:
    """The share of decided matches whose first-listed team finished first, or the share in which it finished last."""
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
    """The same matches, the teams of each in an order made of the numbers of the match and of its players."""
    c = matches.history.columns
    match = np.repeat(np.arange(len(matches.history)), np.diff(c.team_start))
    least = np.minimum.reduceat(c.player, c.slot_start[:-1]).astype(np.uint64)
    key = (least + np.uint64(1)) * SCRAMBLE ^ (match.astype(np.uint64) + np.uint64(1)) * (SCRAMBLE << np.uint64(1))
    key ^= key >> np.uint64(29)
    order = np.lexsort((key * SCRAMBLE, match))
    slots = ranges(c.slot_start, order)
    sizes: Integers = np.diff(c.slot_start)[order]
    taken = {name: getattr(c, name)[slots] for name in ("player", "score", "seconds", "performance", "quit", "keep")}
    columns = c._replace(
        place=c.place[order],
        team_score=c.team_score[order],
        slot_start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int32),
        **taken,
    )
    return replace(matches, history=History(columns), team=matches.team.take(pa.array(order)))
