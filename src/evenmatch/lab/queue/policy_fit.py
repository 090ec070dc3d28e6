"""Fit a policy to a queue by simulation: the closest matches that meet a target for waits, explained in sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.runs import MATCHED, Run
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import ArrivalSource, play
from evenmatch.lab.queue.ticket_source import Crowd, TicketSample
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.tickets import Tickets
from evenmatch.policy import Policy, WaitTarget

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
        """Whether the target's share of the players waits no longer than the target."""
        return self.wait <= target.within

    def to_data(self) -> dict[str, object]:
        """All figures without the policy, ready for JSON: null for waits and spreads that are not known."""
        names = ("wait", "strict_wait", "spread", "widest", "arrivals", "share_strict", "matches")
        values = {name: getattr(self, name) for name in names}
        return {name: value if value is not None and isfinite(value) else None for name, value in values.items()}


def predict(run: Run, target: WaitTarget) -> QueuePrediction:
    """The figures of a run.

    The wait is that of players with loose filters; if there are none, of all. Counts only players who joined after the
    queue had time to fill, and early enough for a wait longer than the target's to be seen.
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


NARROWEST, WIDEST = 0.5, 100.0  # percentiles: bounds of the search
LOWER_STARTS = (32.0, 10.0, 3.2)  # tried if the widest fails: with many strict players, wide matches lengthen waits
HALVINGS = 5  # of the range of widths, on a logarithmic scale
WIDENINGS = 3  # after misses with other arrivals
STEP = 1.15  # factor of one widening
SEARCH_SEED, CHECK_SEED = 1, 2
RUNS = 1 + len(LOWER_STARTS) + HALVINGS + 1 + WIDENINGS + 1  # at most
MARGIN = 0.1  # smaller differences from the present policy are not worth a change
LEAST_SECONDS, MOST_SECONDS = 900.0, 7200.0
TICKS = 1200  # more take too long where few players wait long; see SimulatedLength
LEAST_PLAYERS, MOST_PLAYERS = 1500, 20_000
TARGETS = 8  # simulated time is at least this many times the target's wait
OVERDUE = 3.0  # times the target's wait after which a ticket is overdue
# of the target's wait, and of the even spread
WIDER = ((0.0, 1.0), (1 / 6, 2.0), (1 / 3, 4.0), (1 / 2, 8.0), (1.0, 16.0), (2.0, 32.0))

Arrivals = Callable[[Policy, int], ArrivalSource]  # the source for a policy and a seed
Share = Callable[[float], None]


def policy_with_spread(base: Policy, spread: float, target: WaitTarget) -> Policy:
    """The base policy with this even spread, and filters that widen from it in the time of the target."""
    steps = [(round(part * target.within, 1), min(round(times * spread, 2), 100.0)) for part, times in WIDER]
    end = round(OVERDUE * target.within, 1)
    return replace(base, even_spread=round(spread, 2), steps=(*steps, (end, 100.0)), overdue_after=end)


class SimulatedLength(NamedTuple):
    """Length of a simulation and the time between two decisions, in seconds."""

    seconds: float
    tick: float

    @classmethod
    def of(cls, arrivals: float, target: WaitTarget) -> SimulatedLength:
        """A length that gives a stable share of longer waits, with ticks much shorter than the target.

        arrivals  players per second
        """
        least = max(LEAST_SECONDS, LEAST_PLAYERS / arrivals)
        most = min(MOST_SECONDS, max(LEAST_SECONDS, MOST_PLAYERS / arrivals))
        seconds = max(min(least, most), TARGETS * target.within)
        tick = min(max(target.within / 30.0, seconds / TICKS), target.within / 10.0)
        return cls(seconds, max(tick, 1.0))


def scenario_arrivals(scenario: Scenario, target: WaitTarget) -> Arrivals:
    """The players of a scenario, for as long as a fit needs; `minutes`, `tick` and `seed` are replaced."""
    seconds, tick = SimulatedLength.of(scenario.arrivals, target)
    length = replace(scenario, minutes=seconds / 60.0, tick=tick)
    return lambda policy, seed: Crowd(replace(length, seed=seed), policy)


def ticket_arrivals(tickets: Tickets, arrivals: float, target: WaitTarget) -> Arrivals:
    """Draw tickets from those of a real queue. arrivals: players per second."""
    seconds, tick = SimulatedLength.of(arrivals, target)
    return lambda _policy, seed: TicketSample(tickets, arrivals, seconds, tick, seed)


@dataclass(frozen=True)
class PolicyFit:
    """The result of a fit; both predictions are of the same arrivals, which the search did not use.

    is_kept  whether the fitted policy keeps the target; if not, it is the one that comes nearest
    """

    target: WaitTarget
    present: QueuePrediction
    fitted: QueuePrediction
    is_kept: bool

    @property
    def policy(self) -> Policy:
        """The fitted policy."""
        return self.fitted.policy

    @property
    def is_better(self) -> bool:
        """Whether it keeps the target and is better than the present policy by more than a tenth.

        Better in the spread of matches if the present policy keeps the target, else in the wait.
        """
        if not self.is_kept:
            return False
        if self.present.keeps(self.target):
            return self.fitted.spread < (1.0 - MARGIN) * self.present.spread
        return self.fitted.wait < (1.0 - MARGIN) * self.present.wait

    def to_data(self) -> dict[str, object]:
        """The target, the predictions and the fitted policy, ready for JSON."""
        return {
            "within": self.target.within,
            "share": self.target.share,
            "is_kept": self.is_kept,
            "is_better": self.is_better,
            "present": self.present.to_data(),
            "fitted": self.fitted.to_data(),
            "policy": self.policy.to_data(),
        }


def fit_policy(base: Policy, arrivals: Arrivals, target: WaitTarget, progress: Share | None = None) -> PolicyFit:
    """Search the smallest even spread that keeps the target, and check it with other arrivals.

    base      the present policy; all options but even_spread, steps and overdue_after stay
    progress  called with the share of the work that is done
    A result is the same for the same arguments.
    """
    return _Search(base, arrivals, target, progress).result()


class _Search:
    def __init__(self, base: Policy, arrivals: Arrivals, target: WaitTarget, progress: Share | None) -> None:
        self._base, self._arrivals, self._target, self._progress = base, arrivals, target, progress
        self._runs = 0
        self._tried: dict[float, QueuePrediction] = {}

    def result(self) -> PolicyFit:
        """Search, then check."""
        spread, is_kept = self._found()
        present = self._predict(self._base, CHECK_SEED)
        fitted = self._predict(policy_with_spread(self._base, spread, self._target), CHECK_SEED)
        for _ in range(WIDENINGS if is_kept else 0):
            if fitted.keeps(self._target) or spread >= WIDEST:
                break
            spread = min(spread * STEP, WIDEST)
            fitted = self._predict(policy_with_spread(self._base, spread, self._target), CHECK_SEED)
        if self._progress is not None:
            self._progress(1.0)
        return PolicyFit(self._target, present, fitted, fitted.keeps(self._target))

    def _found(self) -> tuple[float, bool]:
        """An even spread, and whether it keeps the target in the search; if not, it comes nearest."""
        high = next((spread for spread in (WIDEST, *LOWER_STARTS) if self._keeps(spread)), None)
        if high is None:
            return min(self._tried, key=lambda spread: (self._tried[spread].wait, spread)), False
        low = NARROWEST
        for _ in range(HALVINGS):
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if self._keeps(middle) else (middle, high)
        kept = [spread for spread, tried in self._tried.items() if tried.keeps(self._target)]
        return min(kept, key=lambda spread: (self._tried[spread].spread, spread)), True

    def _keeps(self, spread: float) -> bool:
        if spread not in self._tried:
            policy = policy_with_spread(self._base, spread, self._target)
            self._tried[spread] = self._predict(policy, SEARCH_SEED)
        return self._tried[spread].keeps(self._target)

    def _predict(self, policy: Policy, seed: int) -> QueuePrediction:
        def step(_name: str, share: float) -> None:
            if self._progress is not None:
                self._progress(min((self._runs + share) / RUNS, 1.0))

        run = play(self._arrivals(policy, seed), propose, policy, "", None, progress=step)
        self._runs += 1
        return predict(run, self._target)


LONG = "longer than was simulated"


def explain(fit: PolicyFit) -> list[str]:
    """Explain in sentences who plays, what the fitted policy would change, and whether it keeps the target."""
    return [_crowd(fit.fitted), *(_kept(fit) if fit.is_kept else _missed(fit)), *_strict(fit), *_verdict(fit)]


def _crowd(seen: QueuePrediction) -> str:
    strict = (
        "none of them is strict" if seen.share_strict == 0 else f"{seen.share_strict * 100:.0f} % of them are strict"
    )
    players = f"the {seen.policy.players} players of a match"
    return f"Players join at {rate_in_words(seen.arrivals)}, {strict}; {players} take {_filling(seen)} to arrive."


def _kept(fit: PolicyFit) -> list[str]:
    now, then, share = fit.present, fit.fitted, fit.target.share_in_words
    return [
        f"With matches of up to {then.policy.even_spread:.3g} percentiles at once, {share} wait {_wait(then)} "
        f"({_now(now.wait)}).",
        f"Half of the matches span {_spread(then)} (now {now.spread:.1f}), 95 of 100 {then.widest:.1f} or less "
        f"(now {now.widest:.1f}).",
    ]


def _missed(fit: PolicyFit) -> list[str]:
    nearest, share = fit.fitted, fit.target.share_in_words
    return [
        f"{fit.target.in_words[0].upper()}{fit.target.in_words[1:]} cannot be kept by any width.",
        f"The nearest is matches of up to {nearest.policy.even_spread:.3g} percentiles at once: {share} wait "
        f"{_wait(nearest)} ({_now(fit.present.wait)}), and half of the matches span {_spread(nearest)} (now "
        f"{fit.present.spread:.1f}).",
        "Allow a longer wait or a smaller share, or choose smaller teams.",
    ]


def _strict(fit: PolicyFit) -> list[str]:
    then, now = fit.fitted.strict_wait, fit.present.strict_wait
    if then is None or now is None:
        return []
    return [
        f"These are players with loose filters. Strict filters never widen: of the strict players "
        f"{fit.target.share_in_words} wait {_seconds(then)} ({_now(now)})."
    ]


def _verdict(fit: PolicyFit) -> list[str]:
    if not fit.is_kept or fit.is_better:
        return []
    if fit.present.keeps(fit.target):
        return ["The present policy keeps the target with matches that are as close, or nearly so."]
    return ["The wait would hardly be shorter than with the present policy."]


def rate_in_words(arrivals: float) -> str:
    """Format players per second: 0.8 a second, 36 an hour."""
    if arrivals >= 0.1:
        return f"{arrivals:.2g} a second"
    return f"{arrivals * 3600:.0f} an hour"


def _filling(seen: QueuePrediction) -> str:
    return f"{seen.policy.players / seen.arrivals:.0f} s" if seen.arrivals > 0 else "a long time"


def _wait(seen: QueuePrediction) -> str:
    return _seconds(seen.wait)


def _seconds(wait: float) -> str:
    return f"{wait:.0f} s or less" if isfinite(wait) else LONG


def _now(wait: float) -> str:
    return f"now {wait:.0f} s" if isfinite(wait) else f"now {LONG}"


def _spread(seen: QueuePrediction) -> str:
    return f"{seen.spread:.1f} percentiles or less"
