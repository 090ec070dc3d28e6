"""Who is still there after a month: matchmaking policies judged by the players they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenmatch.durations import DAY
from evenmatch.lab.backtests.workers import Workers
from evenmatch.lab.fairness.audit import Contestant, Measure, interval
from evenmatch.lab.seasons.season import START, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings

MONTH = 30 * DAY
GROUPS = 5  # of players by skill, from the weakest


class KeptPlayers(NamedTuple):
    """A season under a policy.

    kept      share of the players who began in the first week and are still there after a month
    by_skill  the same for each fifth of them, from the weakest
    matches   matches per player and week;  wait  mean seconds in the queue;  unmatched  share of joins without a match
    """

    kept: float
    by_skill: tuple[float, ...]
    matches: float
    wait: float
    unmatched: float


class PolicyRetention(NamedTuple):
    """A policy over several seasons: means, and for the share of kept players the difference to the first policy."""

    policy: str
    kept: Measure
    by_skill: tuple[float, ...]
    matches: float
    wait: float
    unmatched: float
    against_first: Measure

    def to_data(self) -> dict[str, object]:
        """All numbers, for JSON."""
        return self._asdict() | {name: getattr(self, name)._asdict() for name in ("kept", "against_first")}


def kept_players(contestant: Contestant, settings: SeasonSettings) -> KeptPlayers:
    """Simulate a season whose players may leave the game for good."""
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
    joins = max(len(record.waits) + record.unmatched, 1)
    return KeptPlayers(
        float(1.0 - left[began].mean()),
        tuple(float(1.0 - left[began & (group == index)].mean()) for index in range(GROUPS)),
        len(slots.player) / players / settings.weeks,
        float(record.waits.mean()) if len(record.waits) else 0.0,
        record.unmatched / joins,
    )


def compare_policies(
    policies: Sequence[str],
    contestant: Contestant,
    settings: SeasonSettings,
    seeds: Sequence[int],
    workers: Workers,
    progress: Callable[[int, int], None] | None = None,
) -> list[PolicyRetention]:
    """Each policy on the same seeds, compared with the first one in pairs.

    settings  `leaving` above 0 and at least five weeks, or nobody can be seen to leave
    progress  called with the number of finished seasons and of all
    """
    tasks = [replace(settings, policy=policy, seed=seed) for policy in policies for seed in seeds]
    futures = [workers.submit(kept_players, contestant, task) for task in tasks]
    found = []
    for done, future in enumerate(futures, 1):
        found.append(future.result())
        if progress is not None:
            progress(done, len(futures))
    listed = []
    for index, policy in enumerate(policies):
        seasons = found[index * len(seeds) : (index + 1) * len(seeds)]
        kept = np.array([season.kept for season in seasons])
        apart = kept - np.array([season.kept for season in found[: len(seeds)]])
        matches, wait, unmatched = np.mean([season[2:] for season in seasons], 0).tolist()
        by_skill = tuple(np.mean([season.by_skill for season in seasons], 0).tolist())
        listed.append(
            PolicyRetention(policy, interval(kept, 0.05), by_skill, matches, wait, unmatched, interval(apart, 0.05))
        )
    return listed
