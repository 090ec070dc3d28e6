"""Waits and spreads that a policy would give a queue, predicted by a simulated run."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.run_result import MATCHED, Run
from evenmatch.policy import Policy
from evenmatch.wait_target import WaitTarget

LEAST_STRICT = 30  # players; fewer give no estimate


@dataclass(frozen=True)
class QueuePrediction:
    """Figures of a simulated queue. Waits are in seconds, spreads in percentiles.

    wait          the wait that the target's share of the players does not exceed; inf if that share was not matched
    strict_wait   the same of strict players, whose wait no policy can limit; None: too few came
    spread        not exceeded by half of the matches;  widest  not exceeded by 95 of 100; None: there were no matches
    arrivals      players per second;  share_strict  share of them who are strict, or in a party with such a player
    """

    policy: Policy
    wait: float
    strict_wait: float | None
    spread: float
    widest: float
    arrivals: float
    share_strict: float
    matches: int

    def keeps(self, target: WaitTarget) -> bool:
        """Whether the target's share of the players waits as long as the target says, or less."""
        return self.wait <= target.within

    def to_data(self) -> dict[str, object]:
        """All figures without the policy, ready for JSON: null for waits and spreads that are not known."""
        names = ("wait", "strict_wait", "spread", "widest", "arrivals", "share_strict", "matches")
        values = {name: getattr(self, name) for name in names}
        return {name: value if value is not None and isfinite(value) else None for name, value in values.items()}


def predict(run: Run, target: WaitTarget) -> QueuePrediction:
    """The figures of a run.

    The wait is that of players with loose filters; if there are none, of all. Only players count who joined after the
    queue had time to fill, and early enough that a longer wait than the target's is seen.
    """
    loose = (
        np.logical_and.reduceat(run.tickets.loose, run.tickets.start[:-1]) if len(run.tickets) else np.empty(0, bool)
    )
    within, end = target.within * SECOND, int(run.ticks[-1])
    judged = (run.tickets.queued >= within) & (run.tickets.queued <= end - within)
    judged_loose = judged & loose if loose.any() else judged
    strict, spread = judged & ~loose, run.worth.spread
    enough_strict = int(run.sizes[strict].sum()) >= LEAST_STRICT
    return QueuePrediction(
        policy=run.policy,
        wait=_quantile(run, judged_loose, target.share),
        strict_wait=_quantile(run, strict, target.share) if enough_strict and loose.any() else None,
        spread=float(np.quantile(spread, 0.5)) if len(spread) else inf,
        widest=float(np.quantile(spread, 0.95)) if len(spread) else inf,
        arrivals=float(run.sizes.sum()) * SECOND / end,
        share_strict=float(run.sizes[~loose].sum() / run.sizes.sum()) if len(loose) else 0.0,
        matches=len(run.matches),
    )


def _quantile(run: Run, tickets: Flags, share: float) -> float:
    """The wait that this share of the tickets' players does not exceed; inf if fewer were matched in the run."""
    waits: Floats = np.where(run.fate == MATCHED, run.waits, inf)[tickets]
    players = np.repeat(waits, run.sizes[tickets])
    return float(np.quantile(players, share, method="inverted_cdf")) if len(players) else inf
