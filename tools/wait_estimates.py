"""How well the estimated waits hold: `python tools/wait_estimates.py`, some minutes.

Simulates queues, asks `why` for a sample of players when they join, and compares with the waits that follow. A row per
queue and kind of player: the share of them who waited less than the estimate (half of them should), and less than the
upper figure (nine of ten). Those who still wait at the end have waited longer than they were told if they have by then;
the others do not count, nor do those who were told "at once". These are the figures of docs/matchmaking.md.
"""

from __future__ import annotations

import argparse
from multiprocessing import Pool
from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.run_result import MATCHED, WAITING
from evenmatch.lab.queue.scenario import Scenario, party_mix
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking import Policy, Proposals, Queue, propose, why

WARM_UPS = 2  # calls of the matchmaker before a simulation begins
EVERY = 3  # one of so many joining tickets is asked
SECONDS_ALONE = 600  # of a start, which count as its first minutes


class Case(NamedTuple):
    """A queue to simulate."""

    name: str
    policy: dict[str, Any]
    scenario: dict[str, Any]


CASES = (
    Case("6v6, 20 a second", {}, {"arrivals": 20.0, "minutes": 15.0}),
    Case("6v6, 5 a second", {}, {"arrivals": 5.0, "minutes": 30.0}),
    Case("6v6, 1 a second", {}, {"arrivals": 1.0, "minutes": 90.0}),
    Case("6v6, 0.2 a second", {}, {"arrivals": 0.2, "minutes": 360.0}),
    Case("3v3, 1 a second", {"team_size": 3}, {"arrivals": 1.0, "minutes": 90.0}),
    Case("3v3 with parties, 2 a second", {"team_size": 3}, {"arrivals": 2.0, "parties": "some", "minutes": 60.0}),
    Case("duels, 5 a second", {"team_size": 1}, {"arrivals": 5.0, "minutes": 20.0}),
    Case("duels, 1 a second", {"team_size": 1}, {"arrivals": 1.0, "minutes": 60.0}),
    Case("duels, 0.2 a second", {"team_size": 1}, {"arrivals": 0.2, "minutes": 360.0}),
    Case("6v6, three in ten newcomers", {}, {"arrivals": 5.0, "share_newcomers": 0.3, "minutes": 30.0}),
)


class Asked:
    """A matchmaker that asks for estimates of joining tickets before it decides."""

    def __init__(self) -> None:
        self.calls, self.last = 0, -1
        self.estimates: dict[int, tuple[float, float]] = {}

    def __call__(self, queue: Queue, now: int, policy: Policy) -> Proposals:
        """Propose; the first calls only compile."""
        self.calls += 1
        if self.calls > WARM_UPS:
            for ticket in queue.ids:
                if ticket > self.last and ticket % EVERY == 0:
                    waiting = why(ticket, queue, now, policy)
                    if waiting.estimate is not None and waiting.upper is not None:
                        self.estimates[ticket] = (waiting.waited + waiting.estimate, waiting.waited + waiting.upper)
            self.last = max([self.last, *queue.ids])
        return propose(queue, now, policy)


def measure(arguments: tuple[Case, int]) -> dict[str, tuple[Floats, Floats]]:
    """For each kind of player: whether they waited less than the estimate, and than the upper figure (0, 1, NaN)."""
    case, seed = arguments
    policy = Policy(**case.policy)
    values = dict(case.scenario)
    if "parties" in values:
        values["parties"] = party_mix(values["parties"], policy.team_size)
    asked = Asked()
    run = simulate(Scenario(seed=seed, tick=min(2.0, max(0.5, 1 / values["arrivals"])), **values), asked, policy)
    rows = np.flatnonzero(np.isin(run.tickets.id, list(asked.estimates)))
    told = np.array([asked.estimates[int(ticket)] for ticket in run.tickets.id[rows]])
    waited, fate = run.waits[rows], run.fate[rows]
    kept = []
    later = told[:, 0] >= 1  # those who were told "at once" are no test of a figure
    for figure in told.T:
        less = np.where(waited <= figure, 1.0, 0.0)
        less[(fate == WAITING) & (waited <= figure)] = np.nan
        less[~later | ((fate != WAITING) & (fate != MATCHED))] = np.nan
        kept.append(less)
    start = run.tickets.start
    joined = (run.tickets.queued[rows] - run.ticks[0]) / 1e6
    strict = ~np.logical_and.reduceat(run.tickets.loose, start[:-1])[rows]
    kinds: dict[str, Flags] = {
        "all": joined > SECONDS_ALONE,
        "strict": strict & (joined > SECONDS_ALONE),
        "parties": (run.sizes[rows] > 1) & (joined > SECONDS_ALONE),
        "newcomers": np.logical_or.reduceat(run.tickets.newcomer, start[:-1])[rows] & (joined > SECONDS_ALONE),
        "first ten minutes": joined <= SECONDS_ALONE,
    }
    return {name: (kept[0][kind], kept[1][kind]) for name, kind in kinds.items() if kind.sum() >= 30}


def main() -> None:
    """Simulate all cases and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=201)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    jobs = [(case, given.first_seed + seed) for case in CASES for seed in range(given.seeds)]
    with Pool(given.processes) as pool:
        results = pool.map(measure, jobs, chunksize=1)
    print("| queue | players | asked | waited less than the estimate | less than the upper figure |")
    print("| --- | --- | ---: | ---: | ---: |")
    for case in CASES:
        own = [result for (other, _), result in zip(jobs, results, strict=True) if other == case]
        for kind in dict.fromkeys(kind for result in own for kind in result):
            half, upper = (
                np.concatenate([result[kind][figure] for result in own if kind in result]) for figure in (0, 1)
            )
            shares = f"{100 * np.nanmean(half):.0f} % | {100 * np.nanmean(upper):.0f} %"
            print(f"| {case.name} | {kind} | {np.isfinite(half).sum():,} | {shares} |")


if __name__ == "__main__":
    main()
