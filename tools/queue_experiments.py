"""Simulate experiments with two policies in one queue: `python tools/queue_experiments.py`, half an hour.

It prints the tables of docs/explanation/experiments.md: how far the difference of two policies that share a queue is
from that of queues with one policy each, for several ways to share, and how often two equal policies seem to differ.
Every simulated day has its own players and arrivals.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from evenmatch.calibration import Blocks, Estimate, GroupDifference, difference
from evenmatch.durations import SECOND
from evenmatch.experiment import ARMS, ExperimentDesign
from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking import Policy, Queue, presets, propose
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import Whole

TICK = 2.0  # seconds
MINUTES = 1440.0
POLICIES = tuple(replace(presets()[name], team_size=3) for name in ("balanced", "quick"))
SLICES = (150.0, 600.0, 1800.0)  # seconds
WASHOUTS = (0.0, 60.0, 120.0)  # seconds
GROUPS = 200  # of matches that are taken for independent

TRUTH = "a queue each, all players (the truth)"

Draw = Callable[[int, int], Whole]  # from a seed and a count of slices to the arm of each
Matchmaker = Callable[[Queue, int, Policy], Proposals]
Compared = list[GroupDifference]  # of median wait, wait of 95 of 100 and mean spread
Found = dict[str, list[Compared]]


class Day(NamedTuple):
    """The M matches of a simulated day with T tickets.

    time    float64 (M,)  seconds;  spread  float64 (M,)  percentiles
    wait    float64 (T,)  seconds;  match   int64 (T,)    the match of each ticket
    """

    time: Floats
    spread: Floats
    wait: Floats
    match: Whole

    def pick(self, chosen: Flags) -> Day:
        """The chosen matches."""
        inside = chosen[self.match]
        row = np.cumsum(chosen) - 1
        return Day(self.time[chosen], self.spread[chosen], self.wait[inside], row[self.match[inside]])


def simulated(seed: int, matchmaker: Matchmaker = propose, policy: Policy = POLICIES[0], arrivals: float = 1.0) -> Day:
    """A day with a quiet and a busy half."""
    scenario = Scenario(arrivals=arrivals, minutes=MINUTES, tick=TICK, seed=seed, kind="daily", swing=0.8)
    run = simulate(scenario, matchmaker, policy)
    return Day(run.matches.time / SECOND, run.worth.spread, run.waits[run.matches.ticket], run.matches.match)


def sharing(arm: Whole, length: float) -> Matchmaker:
    """A matchmaker that takes the policy of each slice, of this length in seconds. arm: 0 or 1 of each slice"""

    def matchmaker(queue: Queue, now: int, _: Policy) -> Proposals:
        return propose(queue, now, POLICIES[arm[now // round(length * SECOND)]])

    return matchmaker


def figures(day: Day, block: Whole, blocks: Blocks) -> list[Estimate]:
    """The figures of one arm. block: of each match"""
    of_wait = block[day.match]
    return [
        blocks.quantile(day.wait, of_wait, 0.5),
        blocks.quantile(day.wait, of_wait, 0.95),
        blocks.mean(day.spread, block),
    ]


def compared(day: Day, block: Whole, chosen: tuple[Flags, Flags]) -> Compared:
    """The second minus the first arm. block: of each match;  chosen: the matches of each arm"""
    blocks = Blocks(np.unique(block), 1)
    estimates = [figures(day.pick(arm), block[arm], blocks) for arm in chosen]
    return [difference(first, second) for first, second in zip(*estimates, strict=True)]


def of_days(first: Day, second: Day) -> Compared:
    """The difference of two days, without intervals."""
    estimates = [
        figures(day, np.zeros(len(day.time), np.int64), Blocks(np.zeros(1, np.int64), 1)) for day in (first, second)
    ]
    return [difference(one, other) for one, other in zip(*estimates, strict=True)]


def in_slices(day: Day, draw: Draw, seed: int, length: float, washout: float = 0.0, *, whole: bool = False) -> Compared:
    """A day's comparison by slices. whole: leave out matches with a player who has waited under both policies."""
    number = (day.time / length).astype(np.int64)
    count = int(number.max()) + 1
    arm, start = draw(seed, count), np.arange(count) * length
    is_new = np.diff(arm, prepend=0) != 0
    settled, since = start + washout * is_new, day.time
    if whole:
        longest = np.zeros(len(day.time))
        np.maximum.at(longest, day.match, day.wait)
        settled, since = np.maximum.accumulate(np.where(is_new, start, 0.0)), day.time - longest
    counts = since >= settled[number]
    block = number // 2 if draw is in_pairs else number
    return compared(day, block, (counts & (arm[number] == 0), counts & (arm[number] == 1)))


def as_independent(day: Day, arm: Whole) -> Compared:
    """A day's comparison with intervals as if matches were independent. arm: 0 or 1 of each match"""
    block = np.random.default_rng(1).permutation(np.arange(len(arm)) * GROUPS // len(arm))
    return compared(day, block, (arm == 0, arm == 1))


def in_pairs(seed: int, count: int) -> Whole:
    """The arms of slices as the service draws them, one of each arm in each two: 0 or 1."""
    design = ExperimentDesign(seed=seed)
    return np.array([ARMS.index(design.arm_of(number)) for number in range(count)])


def one_by_one(seed: int, count: int) -> Whole:
    """The arms of slices that are drawn independently of each other."""
    return np.random.default_rng(seed).integers(0, 2, count)


def measured(day: int, draws: int) -> Found:
    """All comparisons of one simulated day, by name; those of equal policies begin with A/A."""
    alone = [simulated(day, policy=policy) for policy in POLICIES]
    half = [simulated(day, policy=policy, arrivals=0.5) for policy in POLICIES]
    found: Found = {TRUTH: [of_days(*alone)], "two pools, half of the players each": [of_days(*half)]}
    shared = simulated(day, sharing(one_by_one(day, round(MINUTES * 60 / TICK) + 1), TICK))
    found["a draw each tick"] = [in_slices(shared, one_by_one, day, TICK)]
    for length in SLICES:
        shared = simulated(day, sharing(in_pairs(day, round(MINUTES * 60 / length) + 2), length))
        name = f"slices of {length:g} s"
        for washout in WASHOUTS:
            found[f"{name}, washout {washout:g} s"] = [in_slices(shared, in_pairs, day, length, washout)]
        found[f"{name}, no match whose players waited under both"] = [
            in_slices(shared, in_pairs, day, length, whole=True)
        ]
    own, seeds = alone[0], [day * draws + draw for draw in range(draws)]
    found["A/A, a draw each match"] = [as_independent(own, one_by_one(seed, len(own.time))) for seed in seeds]
    for length in SLICES:
        name = f"A/A, slices of {length:g} s"
        for how, draw in (("in pairs", in_pairs), ("one by one", one_by_one)):
            found[f"{name}, {how}"] = [in_slices(own, draw, seed, length, WASHOUTS[-1]) for seed in seeds]
        number = (own.time / length).astype(np.int64)
        arms = [one_by_one(seed, int(number.max()) + 1)[number] for seed in seeds]
        found[f"{name}, one by one, matches as if independent"] = [as_independent(own, arm) for arm in arms]
    return found


def row(name: str, days: list[Found], truth: Floats) -> str:
    """A row of a table: mean difference, twice its standard error and coverage; for A/A false alarms and errors."""
    listed = [found for day in days for found in day[name]]
    values = np.array([[apart.value for apart in found] for found in listed])
    if name.startswith("A/A"):
        shares = np.array([[apart.is_known for apart in found] for found in listed]).mean(axis=0)
        cells = [f"{100 * share:.1f}% (± {wide:.2f})" for share, wide in zip(shares, values.std(axis=0), strict=True)]
        return " | ".join([name, *cells])
    error = 2 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
    covered = np.mean(
        [[apart.low <= true <= apart.high for apart, true in zip(found, truth, strict=True)] for found in listed],
        axis=0,
    )
    mean = values.mean(axis=0)
    return " | ".join([name, *(f"{mean[at]:.2f} ± {error[at]:.2f}, {100 * covered[at]:.0f}%" for at in range(3))])


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=10, help="simulated days")
    parser.add_argument("--draws", type=int, default=40, help="draws of equal policies for each day")
    given = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        days = list(pool.map(partial(measured, draws=given.draws), range(1, given.days + 1)))
    truth = np.array([[apart.value for apart in day[TRUTH][0]] for day in days])
    for name in days[0]:
        print(f"| {row(name, days, truth.mean(axis=0))} |")


if __name__ == "__main__":
    main()
