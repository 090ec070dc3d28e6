"""Simulate queues and count how many players waited less than they were told: half of them, and nine of ten, should.

    python tools/wait_estimates.py --seeds 3 --processes 2

Prints a Markdown table. Tickets that left or still wait at the end count as waits of more than they have waited; they
are left out only where that does not decide.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.lab.queue.scenario import Scenario, party_mix
from evenmatch.lab.queue.ticket_source import Crowd
from evenmatch.matchmaking import Queue, presets, propose
from evenmatch.matchmaking.queue import WaitEstimate
from evenmatch.matchmaking.waiting import remember

START = 600 * SECOND  # the first minutes after a start
BANDS = ((0.0, 10.0), (10.0, 40.0), (40.0, np.inf))  # of what was told, seconds


@dataclass(frozen=True)
class Population:
    """A population: the match, and what differs from the default scenario."""

    team_size: int
    minutes: float
    values: Mapping[str, object] = field(default_factory=dict)
    policy: str = "balanced"


POPULATIONS = {
    "6v6, 0.2 players a second": Population(6, 180, {"arrivals": 0.2}),
    "6v6, 1": Population(6, 60, {"arrivals": 1.0}),
    "6v6, 5": Population(6, 25, {"arrivals": 5.0}),
    "6v6, 20": Population(6, 12, {"arrivals": 20.0}),
    "duels, 0.2": Population(1, 120, {"arrivals": 0.2}),
    "duels, 1": Population(1, 40, {"arrivals": 1.0}),
    "duels, 5": Population(1, 15, {"arrivals": 5.0}),
    "3v3 with parties, 2": Population(3, 40, {"arrivals": 2.0, "parties": party_mix("many", 3)}),
    "6v6, 2, six of ten strict": Population(6, 30, {"arrivals": 2.0, "share_strict": 0.6}),
    "6v6, 2, three of ten newcomers": Population(6, 30, {"arrivals": 2.0, "share_newcomers": 0.3}),
    "6v6, 4, four regions": Population(6, 25, {"arrivals": 4.0, "regions": "four"}),
    "6v6, 5, policy quick": Population(6, 20, {"arrivals": 5.0}, "quick"),
}


class Told(NamedTuple):
    """What a ticket was told and how long it waited. at: seconds since the start; is_matched: else at least as long."""

    at: float
    estimate: float
    upper: float
    waited: float
    is_matched: bool


def run(name: str, seed: int) -> list[Told]:
    """Simulate a population with one seed."""
    population = POPULATIONS[name]
    policy = replace(presets()[population.policy], team_size=population.team_size)
    scenario = Scenario.from_data({"minutes": population.minutes, "seed": seed, **population.values})
    source, queue, told, rows = Crowd(scenario, policy), Queue(), dict[int, tuple[int, WaitEstimate]](), list[Told]()
    ticks = source.ticks.tolist()

    def end(ticket: int, now: int, *, is_matched: bool) -> None:
        if ticket in told:
            at, wait = told.pop(ticket)
            rows.append(Told((at - ticks[0]) / SECOND, *wait, (now - at) / SECOND, is_matched))

    for index, now in enumerate(ticks):
        joining = source.joining(index)
        if len(joining):
            queue.join_all(joining)
            asked = int(joining.queued.max())  # the answer to the join requests, before the next tick
            told |= {
                ticket: (asked, wait)
                for ticket, wait in remember(queue, joining.id[-4:].tolist(), asked, policy).items()
            }
        gone = [ticket for ticket in dict.fromkeys(source.leaving(index)) if ticket in queue]
        queue.leave_all(gone)
        queue.waits.end(gone, now, is_matched=False)
        proposals = propose(queue, now, policy)
        queue.leave_all(proposals.ticket)
        matched = proposals.ticket.tolist()
        queue.waits.end(matched, now, is_matched=True)
        for ticket in matched:
            end(ticket, now, is_matched=True)
        for ticket in gone:
            end(ticket, now, is_matched=False)
        source.decided(index, proposals, gone + proposals.expired.tolist())
    for ticket in list(told):
        end(ticket, ticks[-1], is_matched=False)
    return rows


def shares(rows: list[Told]) -> tuple[int, float, float]:
    """How many were told, and the shares of those who waited less than the estimate and than the upper figure."""
    known = [row for row in rows if row.is_matched or row.waited >= row.upper]
    if not known:
        return 0, np.nan, np.nan
    return (
        len(known),
        float(np.mean([row.waited < row.estimate for row in known])),
        float(np.mean([row.waited < row.upper for row in known])),
    )


def line(name: str, rows: list[Told]) -> str:
    """A line of the table."""
    count, half, most = shares(rows)
    if not count:
        return f"| {name} | 0 | | | | |"
    medians = [np.median([row[place] for row in rows]) for place in (1, 2)]
    return f"| {name} | {count:,} | {half:.0%} | {most:.0%} | {medians[0]:.3g} s | {medians[1]:.3g} s |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="populations whose name contains this")
    args = parser.parse_args()
    names = [name for name in POPULATIONS if args.only in name]
    jobs = [(name, seed) for name in names for seed in range(1, args.seeds + 1)]
    with ProcessPoolExecutor(args.processes) as pool:
        results = list(pool.map(run, *zip(*jobs, strict=True)))
    rows = {
        name: [row for job, found in zip(jobs, results, strict=True) if job[0] == name for row in found]
        for name in names
    }
    print("| players | told | waited less than told | than the upper figure | told, half | upper, half |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, found in rows.items():
        print(line(name, found), flush=True)
        first = [row for row in found if row.at * SECOND < START]
        if len(first) < len(found):
            print(line("… first ten minutes", first))
    everybody = [row for found in rows.values() for row in found]
    for low, high in BANDS:
        words = f"told {low:g} to {high:g} s" if high < np.inf else f"told {low:g} s or more"
        print(line(words, [row for row in everybody if low <= row.estimate < high]))


if __name__ == "__main__":
    main()
