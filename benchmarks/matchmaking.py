"""The matchmaker: a tick over full queues, a busy steady state, joining and leaving, and how good the matches are."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise, product

import numpy as np
from numpy.typing import NDArray

from benchmarks.figure import Figure, Runs, Section, seconds
from benchmarks.matches import SEED, TEAMS, play
from benchmarks.rate import spread
from benchmarks.rivals import others
from evenmatch import rules
from evenmatch.history import Floats
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import play as run_queue
from evenmatch.lab.queue.simulation import simulate
from evenmatch.lab.queue.ticket_source import Crowd
from evenmatch.matchmaking import Attribute, LineUps, Member, Policy, Proposals, Queue, Ticket, Tickets, propose
from evenmatch.matchmaking.tickets import FOREVER, TicketChoice
from evenmatch.standings.distribution import queue_percentiles
from evenmatch.systems import forecasts
from evenmatch.systems.system import Records, Rules

SECOND = 1_000_000
NOW = 1_000_000 * SECOND
POLICY = Policy()
SEATS = POLICY.players
ROUNDS = 7
SEEDS = (1, 2, 3, 4, 5)
REGIONS = ("asia", "eu", "us-east", "us-west")
Whole = NDArray[np.int64]


def run() -> Section:
    """Measure ticks on one core, joins and leaves, and the default scenario over several seeds."""
    figures = [*ticks(), *attributes(), *own_odds(), *steady(), *moves(), *quality()]
    notes = [
        "6v6 under the policy `balanced`, one core, kernels compiled before; "
        f"{ROUNDS} ticks over the same queue, sorted once before the first. Percentiles are uniform, "
        "filters strict ±5 unless stated otherwise. *placed* is the share of players who get a match in that tick.",
        "Parties: 1 to 6 members, equally often; friends 1.5 percentiles (standard deviation) around the first. "
        "Filters: 2, 5 or 10 percentiles; a quarter are strict; waits are up to a minute. Regions: one of four is "
        "home, others are reached by "
        "chance within 100 ms. Avoid lists: every fifth party avoids one to four players.",
        "The reference for a tick is the obvious algorithm in plain Python for single players: sort tuples, cut "
        "windows of "
        "twelve, check every filter, split by snake. It knows no parties, regions, avoid lists or costs. That of "
        "joining is a dict of tuples. Tickets that join one by one are in the columns before the clock stops.",
        "Attributes: one of three modes (60, 35 and 5 %), one of two platforms or both, one of two versions (10 and 90 "
        "%), and up to two vetoes of seven maps, all to be agreed on by twelve.",
        "*by …*: the players have the ratings of a season of 200,000 5v5 matches, and the matchmaker asks that rating "
        "system for the odds of every match, from the states of its twelve players.",
        f"Quality is that of `evenmatch simulate-queue`, by its default scenario, the worst of seeds {SEEDS}; the "
        "reference is the best-window-first greedy matchmaker on the same arrivals.",
    ]
    return Section("Matchmaking", figures, notes)


def ticks() -> list[Figure]:
    """One full tick over queues of 100,000 and of a million."""
    figures = []
    for name, tickets, aim, placed in (
        ("100,000 single players", solos(100_000), 35.0, 0.99),
        ("100,000 single players, 40 % overdue", overdue(solos(100_000)), 70.0, 0.99),
        ("a million single players", solos(1_000_000), 500.0, None),
        ("100,000 players in parties", parties(100_000, plain=True), None, 0.96),
        ("100,000 in parties, four regions, filters, avoid lists", parties(100_000), 120.0, None),
    ):
        queue = Queue()
        queue.join_all(tickets)
        found = propose(queue, NOW, POLICY)
        taken = repeated(partial(propose, queue, NOW, POLICY))
        by = 1e3 * repeated(partial(plainly, tickets), 2) if len(tickets.player) == len(tickets) else None
        share = len(found.player) / len(tickets.player)
        figures.append(Figure(f"a tick over {name}", 1e3 * taken, "ms", aim, False, by, "plain Python"))
        figures.append(Figure(f"placed of {name}", 100 * share, "%", placed and 100 * placed, True, None, ""))
    for size in (1, 6):
        taken = 1e3 * repeated(partial(small_queues, replace(POLICY, team_size=size), ten_each()))
        figures.append(Figure(f"a thousand queues of ten, {size}v{size}", taken, "ms", 20.0, False, None, ""))
    return figures


def overdue(tickets: Tickets) -> Tickets:
    """The tickets as loose ones of all ages up to 400 seconds, 40 % of them beyond `overdue_after`."""
    waited = np.random.default_rng(SEED).uniform(0, 400, len(tickets))
    loose = np.ones(len(tickets.player), np.bool_)
    return replace(tickets, queued=(NOW - waited * SECOND).astype(np.int64), loose=loose)


def ten_each() -> list[Queue]:
    """A thousand queues in each of which ten loose players have waited for up to a minute."""
    queues = []
    for number in range(1000):
        draw = np.random.default_rng(number)
        tickets, queue = solos(10, draw), Queue()
        waited = draw.uniform(0, 60, 10)
        queue.join_all(replace(tickets, queued=(NOW - waited * SECOND).astype(np.int64), loose=np.ones(10, np.bool_)))
        queues.append(queue)
    return queues


def small_queues(policy: Policy, queues: Sequence[Queue]) -> None:
    """One tick of each queue."""
    for queue in queues:
        propose(queue, NOW, policy)


class SystemOdds:
    """Odds by a rating system, for players who have the ratings that a season has left.

    row  int64 (P,)  the state of each player, by number
    """

    def __init__(self, by: Rules) -> None:
        state = spread(by, TEAMS, play(TEAMS))
        self.rules = by
        self.state: Records = state[np.argsort(by.system.strength(state, by.parameters), kind="stable")]
        self.strength = by.system.strength(self.state, by.parameters)
        self.row = np.empty(0, np.int64)

    def take(self, tickets: Tickets) -> Tickets:
        """The tickets with the ratings of this ladder at the players' percentiles."""
        row = np.minimum((tickets.percentile / 100 * len(self.state)).astype(np.int64), len(self.state) - 1)
        if len(tickets.player) and tickets.player.max() >= len(self.row):
            self.row = np.concatenate((self.row, np.zeros(int(tickets.player.max()) + 1, np.int64)))
        self.row[tickets.player] = row
        return replace(tickets, rating=self.strength[row])

    def __call__(self, line_ups: LineUps) -> Floats:
        """See matchmaking.OddsFunction."""
        teams = forecasts.LineUpTeams(line_ups.start, self.row[line_ups.player])
        predicted = forecasts.line_up_forecasts(self.rules, self.state, teams, line_ups.teams, NOW)[:, 0]
        chance: Floats = predicted[:, 0] + predicted[:, 1] / 2
        return chance


class Ladder(Crowd):
    """The players of a scenario with the ratings of a ladder."""

    def __init__(self, scenario: Scenario, policy: Policy, odds: SystemOdds) -> None:
        super().__init__(scenario, policy)
        self.odds = odds

    def joining(self, at: int) -> Tickets:
        """Tickets that join at this tick."""
        return self.odds.take(super().joining(at))


def attributes() -> list[Figure]:
    """A tick where every player asks for a mode, platforms and a version, and vetoes maps."""
    declared: dict[str, Attribute] = {
        "mode": Attribute(kind="equal", values=("flag", "deathmatch", "hill")),
        "platform": Attribute(values=("pc", "console")),
        "version": Attribute(kind="equal", values=("1.4", "1.5")),
    }
    maps = tuple(f"map {number}" for number in range(1, 8))
    policy, queue = replace(POLICY, attributes=declared, maps=maps, vetoes=2), Queue()
    queue.join_all(choosing(solos(100_000), maps))
    found = propose(queue, NOW, policy)
    taken = repeated(partial(propose, queue, NOW, policy))
    name = "100,000 single players, attributes on all tickets"
    return [
        Figure(f"a tick over {name}", 1e3 * taken, "ms", 200.0, False, None, ""),
        Figure(f"placed of {name}", 100 * len(found.player) / 100_000, "%", 99.0, True, None, ""),
    ]


def choosing(tickets: Tickets, maps: Sequence[str]) -> Tickets:
    """The tickets with a mode, platforms, a version and up to two vetoed maps each."""
    draw, modes = np.random.default_rng(SEED), {"flag": 0.6, "deathmatch": 0.35, "hill": 0.05}
    platforms = {("pc",): 0.3, ("console",): 0.3, ("console", "pc"): 0.4}
    versions, vetoes = {"1.4": 0.1, "1.5": 0.9}, [(), *combinations(maps, 1), *combinations(maps, 2)]
    drawn = product(modes, platforms, versions, vetoes)
    choices = [
        TicketChoice((("mode", (mode,)), ("platform", platform), ("version", (version,))), veto)
        for mode, platform, version, veto in drawn
    ]
    weights = [
        modes[mode] * platforms[platform] * versions[version] / len(vetoes)
        for mode, platform, version, _ in product(modes, platforms, versions, vetoes)
    ]
    return replace(tickets, choice=draw.choice(len(choices), len(tickets), p=weights), choices=tuple(choices))


def own_odds() -> list[Figure]:
    """Ticks, and the default scenario, with odds by rating systems."""
    figures = []
    for system in ("wager", "scorefactor", "prav", "trueskill"):
        odds = SystemOdds(rules(system))
        policy, queue = replace(POLICY, odds=odds), Queue()
        queue.join_all(odds.take(solos(100_000)))
        propose(queue, NOW, policy)
        taken = 1e3 * repeated(partial(propose, queue, NOW, policy))
        figures.append(Figure(f"a tick over 100,000 single players by {system}", taken, "ms", 60.0, False, None, ""))
        scenario = Scenario()
        run = run_queue(Ladder(scenario, policy, odds), propose, policy, system, scenario)
        even = 100 * float(np.mean((run.matches.odds >= 0.45) & (run.matches.odds <= 0.55)))
        figures.append(Figure(f"matches foretold in 45–55 % by {system}", even, "%", 99.0, True, None, ""))
    return figures


def steady() -> list[Figure]:
    """Ticks of a second at 2,000 arrivals a second, the queue as it settles."""
    draw, queue, taken = np.random.default_rng(SEED), Queue(), []
    for second in range(60):
        now = NOW + second * SECOND
        count = int(draw.poisson(2000))
        queue.join_all(solos(count, draw, now, first=second * 10_000))
        began = time.perf_counter()
        found = propose(queue, now, POLICY)
        queue.leave_all(found.ticket)
        taken.append(time.perf_counter() - began)
    last = taken[20:]
    return [
        Figure("a tick at 2,000 arrivals a second", 1e3 * np.array(last), "ms", 20.0, False, None, ""),
        Figure("the slowest of forty of them", 1e3 * max(last), "ms", 20.0, False, None, ""),
    ]


def moves() -> list[Figure]:
    """Joining and leaving, in bulk and one by one."""
    tickets, count = solos(100_000), 100_000
    queue, in_bulk = Queue(), list[tuple[float, float]]()
    for _ in range(ROUNDS):
        gc.collect()
        began = time.perf_counter()
        queue.join_all(tickets)
        joined = time.perf_counter()
        queue.leave_all(tickets.id)
        in_bulk.append((joined - began, time.perf_counter() - joined))
        queue.order()
    plain = dict[int, tuple[float, ...]]()
    rows = list(zip(tickets.percentile.tolist(), tickets.rating.tolist(), tickets.within.tolist(), strict=True))
    began = time.perf_counter()
    for number, row in enumerate(rows):
        plain[number] = row
    dict_join = time.perf_counter() - began
    singles = [alone(at, *row) for at, row in enumerate(rows[:2000])]
    began = time.perf_counter()
    for ticket in singles:
        queue.join(ticket)
    queue.settle()
    joined = time.perf_counter()
    for at in range(2000):
        queue.leave(at)
    left = time.perf_counter()
    return [
        Figure(
            "join in bulk",
            1e6 * np.array([a for a, _ in in_bulk]) / count,
            "µs",
            2.0,
            False,
            1e6 * dict_join / count,
            "a dict",
        ),
        Figure("leave in bulk", 1e6 * np.array([b for _, b in in_bulk]) / count, "µs", 2.0, False, None, ""),
        Figure("join one by one", 1e6 * (joined - began) / 2000, "µs", 20.0, False, None, ""),
        Figure("leave one by one", 1e6 * (left - joined) / 2000, "µs", 20.0, False, None, ""),
    ]


def quality() -> list[Figure]:
    """The default scenario over several seeds: the worst of each measure."""
    greedy = others()["greedy"].propose
    told = [(scored(seed, propose), scored(seed, greedy)) for seed in SEEDS]
    figures = []
    for key, name, unit, aim, more in (
        ("wait_p50", "wait, half of the players", "s", 30.0, False),
        ("wait_p95", "wait, 95 of 100 players", "s", 80.0, False),
        ("spread_p95", "spread, 95 of 100 matches", "percentiles", 5.0, False),
        ("share_45_55", "matches foretold in 45–55 %", "%", 99.0, True),
        ("violations", "players whose filter was broken", "players", 0.0, False),
    ):
        scale, worst = 100 if unit == "%" else 1, min if more else max
        own, other = (scale * worst(pair[side][key] for pair in told) for side in (0, 1))
        figures.append(Figure(name, own, unit, aim, more, other if other else None, "greedy"))
    return figures


def scored(seed: int, matchmaker: Callable[[Queue, int, Policy], Proposals]) -> dict[str, float]:
    """The measures of one run of the default scenario."""
    summary = summary_of(simulate(Scenario(seed=seed), matchmaker, POLICY))
    return {key: float(value) for key, value in summary.items() if isinstance(value, int | float)}


def repeated(work: Callable[[], object], rounds: int = ROUNDS) -> Runs:
    """The seconds of several runs, without garbage of the one before."""
    taken = []
    for _ in range(rounds):
        gc.collect()
        taken.append(seconds(work))
    return np.array(taken)


def solos(count: int, draw: np.random.Generator | None = None, now: int = NOW, first: int = 0) -> Tickets:
    """Single players with a strict filter of five, of a game whose skill is normal."""
    draw = np.random.default_rng(SEED) if draw is None else draw
    ratings = draw.normal(1500, 300, count)
    percentile = queue_percentiles(ratings, np.ones(count, np.bool_)) if count else np.empty(0)
    number = np.arange(first, first + count)
    queued, start, within = np.full(count, now), np.arange(count + 1), np.full(count, 5.0)
    return Tickets.plain(number, queued, start, number, percentile, ratings, within, np.zeros(count, np.bool_))


def parties(players: int, *, plain: bool = False) -> Tickets:
    """Parties of friends; `plain`: strict filters of five, nobody has waited, no regions, nobody avoided."""
    draw = np.random.default_rng(SEED)
    size = draw.integers(1, 7, players)
    size = size[: int(np.searchsorted(np.cumsum(size), players))]
    count, start = len(size), np.concatenate(([0], np.cumsum(size)))
    members = int(start[-1])
    ladder = np.sort(draw.normal(1500, 300, 100_000))
    apart = np.where(np.isin(np.arange(members), start), 0.0, draw.normal(0, 1.5, members))
    percentile = np.clip(np.repeat(draw.uniform(0, 100, count), size) + apart, 0, 100)
    rating = ladder[np.minimum(percentile * 1000, len(ladder) - 1).astype(np.int64)]
    strict = np.repeat(draw.random(count) < 0.25, size)
    within = np.repeat(draw.choice([2.0, 5.0, 10.0], count), size)
    home = draw.integers(0, len(REGIONS), count)
    ping = np.where(np.arange(len(REGIONS)) == home[:, None], 30.0, draw.uniform(60, 160, (count, len(REGIONS))))
    avoiding = np.where(draw.random(count) < 0.2, draw.integers(1, 5, count), 0) * (not plain)
    named = draw.integers(0, members, int(avoiding.sum()))
    waited = 0.0 if plain else draw.uniform(0, 60, count)
    return Tickets(
        id=np.arange(count),
        queued=(NOW - np.broadcast_to(waited, count) * SECOND).astype(np.int64),
        start=start,
        player=np.arange(members),
        percentile=percentile,
        rating=rating,
        within=np.full(members, 5.0) if plain else within.astype(np.float64),
        loose=np.zeros(members, np.bool_) if plain else ~strict,
        newcomer=np.zeros(members, np.bool_),
        roles=np.zeros(members, np.uint64),
        ping=np.empty((count, 0)) if plain else np.where(ping > 100, np.inf, ping),
        named_start=np.concatenate(([0], np.cumsum(avoiding))),
        named=named,
        met=np.full(len(named), FOREVER),
        region_names=() if plain else REGIONS,
    )


def alone(number: int, percentile: float, rating: float, within: float) -> Ticket:
    """A ticket of one player."""
    member = Member(player=number, percentile=percentile, rating=rating, within=within, loose=False)
    return Ticket(id=number, queued=NOW, members=(member,))


def plainly(tickets: Tickets) -> list[list[int]]:
    """The obvious way: windows of twelve in a sorted list, each filter checked, split by snake."""
    rows = sorted(
        zip(
            tickets.percentile.tolist(),
            tickets.within.tolist(),
            tickets.rating.tolist(),
            tickets.id.tolist(),
            strict=True,
        )
    )
    made, at = [], 0
    while at + SEATS <= len(rows):
        window = rows[at : at + SEATS]
        if all(one[0] - one[1] <= window[0][0] and window[-1][0] <= one[0] + one[1] for one in window):
            by_rating = sorted(window, key=lambda one: one[2])
            made.append([one[3] for first, second in pairwise(by_rating) for one in (first, second)])
            at += SEATS
        else:
            at += 1
    return made
