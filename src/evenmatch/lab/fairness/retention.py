"""Retention: the share of players whom each matchmaking policy keeps for a month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenmatch.durations import DAY
from evenmatch.lab.backtests.workers import Workers
from evenmatch.lab.fairness.audit import LEVEL, Contestant, Kept, Measure, Progress, finish, interval
from evenmatch.lab.seasons.season import START, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings

MONTH = 30 * DAY
GROUPS = 5  # of players by skill, from the weakest


class KeptPlayers(NamedTuple):
    """Retention in one season.

    kept      share of the players of the first week who are still there after a month
    by_skill  the same for each fifth of these players, from the weakest
    matches   matches per player and week;  wait  mean seconds in the queue;  unmatched  share of joins without a match
    """

    kept: float
    by_skill: tuple[float, ...]
    matches: float
    wait: float
    unmatched: float


class PolicyRetention(NamedTuple):
    """Means over the seasons of a policy. against_first: difference in the kept share to the first policy."""

    policy: str
    kept: Measure
    by_skill: tuple[float, ...]
    matches: float
    wait: float
    unmatched: float
    against_first: Measure


def kept_players(contestant: Contestant, settings: SeasonSettings) -> KeptPlayers:
    """Simulate a season whose players may leave the game for good, in any process."""
    record = simulate_season(settings, contestant.rules)
    players, step = settings.players, settings.weeks * 7 * DAY / record.rounds
    gone = record.gone_at[:players]
    left = (gone >= 0) & ((gone + 1) * step <= MONTH)
    slots = record.history.columns
    first = np.full(players, np.inf)
    np.minimum.at(first, slots.player, slots.time[record.history.slot_match].astype(np.float64))
    began = first < START + 7 * DAY
    skill = record.snapshots[0].skill[:players]
    group = np.minimum((skill.argsort().argsort() * GROUPS) // players, GROUPS - 1)
    return KeptPlayers(
        float(1.0 - left[began].mean()),
        tuple(float(1.0 - left[began & (group == index)].mean()) for index in range(GROUPS)),
        len(slots.player) / players / settings.weeks,
        record.mean_wait,
        record.unmatched / max(len(record.waits) + record.unmatched, 1),
    )


def compare_policies(
    policies: Sequence[str],
    contestant: Contestant,
    settings: SeasonSettings,
    seeds: Sequence[int],
    workers: Workers,
    kept: Kept | None = None,
    progress: Progress | None = None,
) -> list[PolicyRetention]:
    """Simulate the same seeds under each policy, and compare each policy with the first one in pairs.

    settings  with `leaving` above 0 and at least five weeks, so that players leave within the month
    progress  called with the number of finished seasons and of all
    """
    tasks = [(contestant, replace(settings, policy=policy, seed=seed)) for policy in policies for seed in seeds]
    found = finish(kept_players, KeptPlayers._make, tasks, workers, kept, progress)
    listed = []
    for index, policy in enumerate(policies):
        seasons = [found[task] for task in tasks[index * len(seeds) : (index + 1) * len(seeds)]]
        share = np.array([season.kept for season in seasons])
        apart = share - np.array([found[task].kept for task in tasks[: len(seeds)]])
        by_skill = tuple(np.mean([season.by_skill for season in seasons], 0).tolist())
        matches, wait, unmatched = np.mean([season[2:] for season in seasons], 0).tolist()
        both = interval(share, LEVEL), interval(apart, LEVEL)
        listed.append(PolicyRetention(policy, both[0], by_skill, matches, wait, unmatched, both[1]))
    return listed
