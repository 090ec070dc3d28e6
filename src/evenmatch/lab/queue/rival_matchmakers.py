"""Simple versions of known matchmakers for comparison, all with the signature of `propose`.

All keep parties together, fill teams, choose the region of each ticket's best ping, and split a match into teams by
`team_building`. Each docstring says how it uses rank filters. Those that keep all filters also respect avoid lists, the
cap on odds and that on rating spread; the others do not. None respects roles or the uncertainty of a rating.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.lab.queue.anchor_matchmakers import flexmatch, pivot, playfab
from evenmatch.lab.queue.rival_filters import by_age
from evenmatch.lab.queue.run_matchmakers import exact_dp, greedy
from evenmatch.lab.queue.team_building import Group, by_region, fill, line_up, proposals
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.policy import Policy

BINS = 10
WAVE = 15 * SECOND


class RivalMatchmaker(NamedTuple):
    """A comparison matchmaker, its one-line description, and whether it keeps the filters of all players."""

    propose: Callable[[Queue, int, Policy], Proposals]
    what: str
    keeps_filters: bool = False


def others() -> dict[str, RivalMatchmaker]:
    """Create the comparison matchmakers by name; a new set for each run, since `waves` has state."""
    return {
        "fifo": RivalMatchmaker(fifo, "First in, first out; ranks are ignored."),
        "bins": RivalMatchmaker(bins, f"{BINS} fixed bins of percentiles; first in, first out in each."),
        "greedy": RivalMatchmaker(
            greedy,
            "Neighbours in percentile that satisfy all filters; the match with the smallest spread first.",
            keeps_filters=True,
        ),
        "pivot": RivalMatchmaker(
            pivot, "The longest-waiting ticket is matched with the nearest players within its own widened filter."
        ),
        "waves": RivalMatchmaker(
            PercentileWaves(),
            f"Every {WAVE // SECOND} seconds the whole queue, sorted by percentile, is cut into matches.",
        ),
        "exact-dp": RivalMatchmaker(
            exact_dp,
            "Neighbours in percentile that satisfy all filters; most matches, then the least total spread.",
            keeps_filters=True,
        ),
        "playfab": RivalMatchmaker(
            playfab,
            "The nearest tickets around the longest-waiting one that satisfy all filters, in a spread that grows with "
            "its age.",
            keeps_filters=True,
        ),
        "flexmatch": RivalMatchmaker(
            flexmatch,
            "Batches of the oldest tickets in order of percentile; neighbours around the oldest that satisfy all "
            "filters.",
            keeps_filters=True,
        ),
    }


def fifo(queue: Queue, now: int, policy: Policy) -> Proposals:
    """First in, first out, as Nakama without query properties or Open Match's first example."""
    line, groups = line_up(queue), []
    for region, rows in by_region(line, by_age(line)):
        groups += fill(line, rows, policy, region)
    return proposals(line, now, policy, groups)


def bins(queue: Queue, now: int, policy: Policy) -> Proposals:
    """First in, first out within ten fixed percentile bands, like queues by league or bracket in many games."""
    line, groups = line_up(queue), []
    for region, rows in by_region(line, by_age(line)):
        middle = (line.low[rows] + line.high[rows]) / 2.0
        band = np.minimum(middle * BINS // 100, BINS - 1)
        for number in np.unique(band):
            groups += fill(line, rows[band == number], policy, region)
    return proposals(line, now, policy, groups)


class PercentileWaves:
    """Every 15 seconds, cut the queue in percentile order into matches from the bottom up, like lichess.

    Filters are ignored; players left over at the top wait for the next wave.
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def __call__(self, queue: Queue, now: int, policy: Policy) -> Proposals:
        """Return the matches of the wave that is due, if any; a time before the last call restarts the waves."""
        last, self._last = self._last, now
        line, groups = line_up(queue), list[Group]()
        if last is not None and now // WAVE > last // WAVE:
            for region, rows in by_region(line, np.arange(len(line))):
                groups += fill(line, rows, policy, region)
        return proposals(line, now, policy, groups)
