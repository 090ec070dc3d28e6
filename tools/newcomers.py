"""What `newcomer_wait` costs and gains: `python tools/newcomers.py`, some minutes; a table of docs/matchmaking.md.

Players of a ladder with true skills queue, are matched by the matchmaker under `balanced` with several values of
`newcomer_wait`, and their results are rated by a rating system, so newcomers' percentiles settle as they play. About a
sixth of the queue are newcomers, who play ten matches in a row. Measured are the distance of the known percentile from
the true one after 1, 3, 5 and 9 matches, how lopsided newcomers' matches are by true skill (the favourite's chance),
and the median waits of newcomers and of the others.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from multiprocessing import Pool

import numpy as np

from evenmatch import Match, Rater, Team
from evenmatch.durations import SECOND
from evenmatch.matchmaking import Member, Policy, Queue, Ticket, presets, propose

REGULARS, SETTLING = 600, 60  # players who are known, and the matches each played before the queue opens
MATCHES = 10  # of a newcomer
AFTER = (1, 3, 5, 9)  # matches after which the percentile is compared
RESTING = 600  # seconds from a match until its players may queue again
ARRIVALS = 1.0  # players a second
SHARE = 0.02  # of them are new; they play ten matches, so that about a sixth of the queue are newcomers
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Ladder:
    """Players with true skills and the ratings that a system gives them."""

    def __init__(self, system: str, seed: int) -> None:
        self.draw, self.rater = np.random.default_rng(seed), Rater(system)
        self.skill = list(self.draw.normal(1500, 300, REGULARS))
        self.true = np.sort(self.skill)
        self.known = np.full(REGULARS, 1500.0)
        self.played, self.games = [SETTLING] * REGULARS, 0
        for _ in range(SETTLING):
            order = np.argsort(self.known + self.draw.normal(0, 60, REGULARS)).reshape(-1, 2).tolist()
            for pair in order:
                self.play([[pair[0]], [pair[1]]], 0)
            self.refresh()

    def refresh(self) -> None:
        """Read the ratings of the regular players again."""
        self.known = np.array([self.rater.rating(f"{player}") for player in range(REGULARS)])
        self.by_rating = np.sort(self.known)

    def newcomer(self) -> int:
        """A new player's number."""
        self.skill.append(float(self.draw.normal(1500, 300)))
        self.played.append(0)
        return len(self.skill) - 1

    def rating(self, player: int) -> float:
        """The shown rating; that of a newcomer before the first match."""
        return self.rater.rating(f"{player}") if self.played[player] else float(np.median(self.known))

    def percentile(self, player: int) -> float:
        """The percentile by rating among regular players."""
        return 100.0 * float(np.searchsorted(self.by_rating, self.rating(player))) / REGULARS

    def true_percentile(self, player: int) -> float:
        """The percentile by true skill among regular players."""
        return 100.0 * float(np.searchsorted(self.true, self.skill[player])) / REGULARS

    def chance(self, teams: list[list[int]]) -> float:
        """The first team's chance by true skill."""
        first, second = (np.mean([self.skill[player] for player in team]) for team in teams)
        return float(1 / (1 + 10 ** ((second - first) / 400)))

    def play(self, teams: list[list[int]], seconds: float) -> None:
        """Play and rate a match."""
        won = self.draw.random() < self.chance(teams)
        self.games += 1
        sides = tuple(
            Team.of(*(f"{player}" for player in team), place=1 + (won != (side == 0)))
            for side, team in enumerate(teams)
        )
        self.rater.rate(Match(f"{self.games}", BEGIN + timedelta(seconds=seconds), sides))
        for player in (player for team in teams for player in team):
            self.played[player] += 1


class Evening:
    """One queue over a ladder, a tick a second."""

    def __init__(self, ladder: Ladder, policy: Policy) -> None:
        self.ladder, self.policy, self.queue = ladder, policy, Queue()
        self.errors: dict[int, list[float]] = {count: [] for count in AFTER}
        self.favourites: list[float] = []
        self.waits: dict[bool, list[float]] = {True: [], False: []}  # of newcomers and of others
        self.busy: dict[int, int] = {}  # until which second each player rests
        self.again: list[int] = []  # newcomers who queue after a rest

    def is_new(self, player: int) -> bool:
        """Whether a player has not played ten matches yet."""
        return self.ladder.played[player] < MATCHES

    def arrive(self, second: int) -> None:
        """Let players join: regular ones, new ones, and newcomers who play again."""
        ladder = self.ladder
        came = [player for player in self.again if self.busy[player] <= second]
        self.again = [player for player in self.again if self.busy[player] > second]
        shares = ladder.draw.random(int(ladder.draw.poisson(ARRIVALS))).tolist()
        came += [ladder.newcomer() if share < SHARE else int(ladder.draw.integers(REGULARS)) for share in shares]
        for player in dict.fromkeys(came):
            if self.queue.ticket_of(player) is None and self.busy.get(player, 0) <= second:
                self.queue.join(Ticket(id=player, queued=second * SECOND, members=(self.member(player),)))

    def member(self, player: int) -> Member:
        """The player as the matchmaker sees them."""
        return Member(
            player=player,
            percentile=self.ladder.percentile(player),
            rating=self.ladder.rating(player),
            within=2.0,
            newcomer=self.is_new(player),
        )

    def decide(self, second: int) -> None:
        """Make matches, play and rate them."""
        found = list(propose(self.queue, second * SECOND, self.policy))
        for proposal in found:
            teams = [list(team) for team in proposal.players]
            players = [player for team in teams for player in team]
            fresh = [player for player in players if self.is_new(player)]
            for player in players:
                self.waits[player in fresh].append(second - float(self.queue.tickets_of((player,)).queued[0]) / SECOND)
                self.busy[player] = second + (60 if player in fresh else RESTING)
            if fresh:
                chance = self.ladder.chance(teams)
                self.favourites.append(max(chance, 1 - chance))
            self.ladder.play(teams, second)
            self.look_at(fresh)
        self.queue.leave_all([ticket for proposal in found for ticket in proposal.tickets])

    def look_at(self, fresh: list[int]) -> None:
        """Compare newcomers' percentiles with the true ones after their match."""
        for player in fresh:
            count = self.ladder.played[player]
            if count in self.errors:
                self.errors[count].append(abs(self.ladder.percentile(player) - self.ladder.true_percentile(player)))
            if self.is_new(player):
                self.again.append(player)


def measure(arguments: tuple[str, int, float, int, int]) -> list[float]:
    """Run one queue; the figures of a row of the table."""
    system, team_size, newcomer_wait, seed, minutes = arguments
    policy = replace(presets()["balanced"], team_size=team_size, newcomer_wait=newcomer_wait)
    evening = Evening(Ladder(system, seed), policy)
    for second in range(minutes * 60):
        evening.arrive(second)
        evening.decide(second)
        if second % 60 == 0:
            evening.ladder.refresh()
    return [
        *(float(np.mean(values)) if values else float("nan") for values in evening.errors.values()),
        100 * float(np.mean(evening.favourites)),
        *(float(np.median(evening.waits[who])) for who in (True, False)),
    ]


def main() -> None:
    """Measure all and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default="glicko2,wager", help="rating systems")
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    cells = list(product(given.systems.split(","), (1, 3), (0.0, 20.0, 60.0)))
    jobs = [(*cell, seed, given.minutes) for cell in cells for seed in range(given.seeds)]
    with Pool(2) as pool:
        rows = np.array(pool.map(measure, jobs, chunksize=1)).reshape(len(cells), given.seeds, -1).mean(axis=1)
    counted = " | ".join(f"after {count}" for count in AFTER)
    print(f"| system | match | `newcomer_wait` | {counted} | favourite | newcomers wait | others wait |")
    print(f"| --- | --- | ---: |{' ---: |' * (len(AFTER) + 3)}")
    for (system, size, wait), row in zip(cells, rows.tolist(), strict=True):
        errors = " | ".join(f"{error:.1f}" for error in row[: len(AFTER)])
        favourite, fresh, others = row[len(AFTER) : len(AFTER) + 3]
        print(
            f"| {system} | {size}v{size} | {wait:g} s | {errors} | {favourite:.0f} % | {fresh:.0f} s | {others:.0f} s |"
        )


if __name__ == "__main__":
    main()
