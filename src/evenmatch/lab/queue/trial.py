"""A trial: the present policy of a queue and a changed one, simulated with the same players."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from evenmatch.lab.queue.policy_fit import SEARCH_SEED
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.runs import Run
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import ArrivalSource, play
from evenmatch.lab.queue.ticket_source import Crowd, TicketSample
from evenmatch.lab.queue.verdict import seconds
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.tickets import Tickets
from evenmatch.policy import Policy

NOW, CHANGED = "Now", "Your change"
PLAYERS = 3000  # arrivals to simulate, within the limits of the length
SHORTEST, LONGEST = 360.0, 7200.0  # seconds
TICK = 3.0  # shortest time between two decisions, seconds
TICKS = 240  # most decisions; the time of a run grows with their number
FEWEST_STEPS = 3  # that can be changed; a policy with fewer gets further steps of the last width
GAP = 30.0  # seconds between such steps


class PolicyKnobs(NamedTuple):
    """The options of a policy that a trial changes.

    times, widths  when loose filters widen, in seconds from 0, and how far, in percentiles
    even_spread    see Policy
    max_odds       1: no limit
    """

    times: tuple[float, ...]
    widths: tuple[float, ...]
    even_spread: float
    max_odds: float

    @classmethod
    def of(cls, policy: Policy) -> PolicyKnobs:
        """The options as a policy has them, with at least FEWEST_STEPS steps."""
        times, widths = map(list, zip(*policy.steps, strict=True))
        while len(times) < FEWEST_STEPS:
            times.append(times[-1] + GAP)
            widths.append(widths[-1])
        return cls(tuple(times), tuple(widths), policy.even_spread, 1.0 if policy.max_odds is None else policy.max_odds)

    def applied(self, base: Policy) -> Policy:
        """The base policy with these options. Its other options stay, and so do equal ones.

        Steps are put in order: each at least a second after the one before, and no narrower. Steps that do not widen
        the filter are left out. A ticket that becomes overdue at the last step does so at the new last step.
        Raises BadParameterError for a value out of range.
        """
        if self == PolicyKnobs.of(base):
            return base
        times = accumulate((0.0, *self.times[1:]), lambda before, time: max(time, before + 1.0))
        ordered = list(zip(times, accumulate(self.widths, max), strict=True))
        steps = [step for index, step in enumerate(ordered) if not index or step[1] > ordered[index - 1][1]]
        if (self.times, self.widths) == PolicyKnobs.of(base)[:2]:
            steps = list(base.steps)
        last = base.steps[-1][0]
        return replace(
            base,
            steps=tuple(steps),
            even_spread=self.even_spread,
            max_odds=None if self.max_odds >= 1.0 else self.max_odds,
            overdue_after=steps[-1][0] if base.overdue_after == last and last > 0 else base.overdue_after,
        )


@dataclass(frozen=True, eq=False)
class Trial:
    """A queue to try changes on, and the runs so far.

    policy    the present policy
    told      sentences: what was taken from the records, and what is assumed
    arrivals  players per second
    tickets   recorded tickets to draw from; None: the scenario's players join
    """

    policy: Policy
    told: tuple[str, ...]
    arrivals: float
    tickets: Tickets | None
    scenario: Scenario
    _runs: dict[tuple[str, float], Run] = field(default_factory=dict)

    def length(self, times: float) -> tuple[float, float]:
        """Simulated time and the time between two decisions, seconds, if `times` as many players join."""
        simulated = min(max(PLAYERS / (self.arrivals * times), SHORTEST), LONGEST)
        return simulated, max(TICK, simulated / TICKS)

    def run(self, policy: Policy, name: str, times: float) -> Run:
        """Simulate a policy; `times` as many players join as now."""
        length, tick = self.length(times)
        arrivals = self.arrivals * times
        source: ArrivalSource
        if self.tickets is not None:
            source = TicketSample(self.tickets, arrivals, length, tick, SEARCH_SEED)
            return play(source, propose, policy, name, None)
        scenario = replace(self.scenario, arrivals=arrivals, minutes=length / 60.0, tick=tick)
        return play(Crowd(scenario, policy), propose, policy, name, scenario)

    def cached_run(self, policy: Policy, name: str, times: float) -> Run:
        """Return the run of a policy whose name always means the same policy. It is simulated once."""
        if (name, times) not in self._runs:
            self._runs[name, times] = self.run(policy, name, times)
        return self._runs[name, times]


NOTICED = 1.1  # smaller ratios of waits or spreads are not mentioned


def compare(now: Run, changed: Run) -> list[str]:
    """Describe the effect of a changed policy on waits and matches, in sentences, the most important first."""
    before, after = summary_of(now), summary_of(changed)
    if not before["matches"] or not after["matches"]:
        return [f"{NOW} the queue makes {before['matches']:,} matches, with your change {after['matches']:,}."]
    waits = _direction(before, after, "wait_p50", "shorter waits", "longer waits")
    spreads = _direction(before, after, "spread_p50", "closer matches", "less even matches")
    if waits and spreads:
        good = {waits, spreads} & {"shorter waits", "closer matches"}
        verdict = f"{waits[0].upper()}{waits[1:]}{' but' if len(good) == 1 else ' and'} {spreads}."
    elif waits or spreads:
        same = "the matches stay as close" if waits else "the waits stay the same"
        changes = waits or spreads
        verdict = f"{changes[0].upper()}{changes[1:]}; {same}."
    else:
        verdict = "Players would hardly notice this change."
    left = [
        f"{after['unmatched']:,} of {after['arrived']:,} players still wait at the end (now {before['unmatched']:,})."
    ]
    return [
        verdict,
        f"Half of the players wait {seconds(_of(after, 'wait_p50'))} or less (now {seconds(_of(before, 'wait_p50'))}), "
        f"95 of 100 wait {seconds(_of(after, 'wait_p95'))} or less (now {seconds(_of(before, 'wait_p95'))}).",
        f"Half of the matches span {_of(after, 'spread_p50'):.1f} percentiles or less "
        f"(now {_of(before, 'spread_p50'):.1f}).",
        *(left if after["unmatched"] or before["unmatched"] else []),
    ]


def _direction(before: dict[str, object], after: dict[str, object], name: str, less: str, more: str) -> str:
    """Return `less` or `more` if a figure fell or rose noticeably, else an empty string."""
    old, new = max(_of(before, name), 0.1), max(_of(after, name), 0.1)
    return "" if max(old / new, new / old) < NOTICED else less if new < old else more


def _of(summary: dict[str, object], name: str) -> float:
    value = summary[name]
    assert isinstance(value, float)
    return value
