"""The players of a simulated ladder, their parties, and when the parties arrive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Floats
from evenmatch.lab.queue.scenario import FEWEST_PLAYERS, Scenario
from evenmatch.matchmaking.tickets import FOREVER, Masks, TicketChoice, Tickets, Whole, starts
from evenmatch.standings.distribution import queue_percentiles

PEOPLE, CHOICES = 0, 7  # indices of the random streams for the population, and for what it accepts
ANY = "any"  # in a scenario: all values of an attribute
AVOIDED = 3  # number of players avoided by each player who avoids any
AVOIDED_APART = 0.05  # standard deviation of their distance in rank, as a share of all players


@dataclass(frozen=True, eq=False)
class ScenarioPopulation:
    """P players, numbered from 0, each in one of G parties.

    skill    float64 (P,)  true skill, unknown to the matchmaker
    rating   float64 (P,)  known rating
    parties  one row per party, in no order of strength; id is the party's number, queued is 0
    """

    skill: Floats
    rating: Floats
    parties: Tickets


def populate(scenario: Scenario, arriving: int = 0) -> ScenarioPopulation:
    """Create the players of the ladder; if the scenario sets no number, enough for `arriving` parties."""
    rng = np.random.default_rng([scenario.seed, PEOPLE])
    count = scenario.players
    if count is None:
        count = max(FEWEST_PLAYERS, int(np.ceil(arriving * scenario.party_size * 1.02)) + 100)
    skill = rng.normal(scenario.skill_mean, scenario.skill_sd, count)
    newcomer = rng.random(count) < scenario.share_newcomers
    error = np.where(newcomer, scenario.newcomer_error, scenario.rating_error)
    rating = skill + error * rng.standard_normal(count)
    percentile = queue_percentiles(rating, np.ones(count, np.bool_))
    sizes, player = _parties(rng, scenario, percentile)
    strict = rng.random(count) < scenario.share_strict
    tickets = Tickets.plain(
        np.arange(len(sizes)),
        np.zeros(len(sizes), np.int64),
        starts(sizes),
        player,
        percentile[player],
        rating[player],
        np.where(strict, scenario.strict_within, scenario.loose_within)[player],
        ~strict[player],
    )
    tickets = replace(tickets, newcomer=newcomer[player], roles=_roles(rng, scenario, count)[player])
    tickets = replace(tickets, role_names=tuple(scenario.roles), region_names=tuple(scenario.regions))
    tickets = replace(tickets, ping=_pings(rng, scenario, tickets.start))
    tickets = _choosing(scenario, _avoiding(rng, scenario, tickets, percentile))
    return ScenarioPopulation(skill, rating, tickets)


def _parties(rng: np.random.Generator, scenario: Scenario, percentile: Floats) -> tuple[Whole, Whole]:
    """Sizes of the parties and their members, party by party.

    Each party has a uniformly distributed center, and each place in it a target percentile near the center. Players in
    order of percentile take the places in order of target. So each player is in one party, and members are about as
    far apart as `friends_apart` requests.
    """
    count = len(percentile)
    sizes = rng.choice(len(scenario.parties), size=count, p=np.array(scenario.parties) / sum(scenario.parties)) + 1
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), count)) + 1].astype(np.int64)
    sizes[-1] -= sizes.sum() - count
    center = np.repeat(rng.uniform(0.0, 100.0, len(sizes)), sizes)
    target = np.abs(center + scenario.friends_apart * rng.standard_normal(count))
    target = np.where(target > 100.0, 200.0 - target, target)
    player = np.empty(count, np.int64)
    player[np.argsort(target, kind="stable")] = np.argsort(percentile, kind="stable")
    return sizes, player


def _roles(rng: np.random.Generator, scenario: Scenario, count: int) -> Masks:
    roles = np.zeros(count, np.uint64)
    for bit, share in enumerate(scenario.roles.values()):
        roles |= (rng.random(count) < share).astype(np.uint64) << np.uint64(bit)
    if scenario.roles:
        commonest = int(np.argmax(list(scenario.roles.values())))
        roles[roles == 0] = 1 << commonest
    return roles


def _pings(rng: np.random.Generator, scenario: Scenario, start: Whole) -> Floats:
    """Worst ping of each party to each region; inf if not accepted. All members share a home region."""
    names, shares = len(scenario.regions), np.array(list(scenario.regions.values()))
    if not names:
        return np.empty((len(start) - 1, 0))
    home = rng.choice(names, size=len(start) - 1, p=shares / shares.sum())
    slowest = np.maximum.reduceat(rng.exponential(scenario.ping_home, start[-1]), start[:-1])
    steps = np.abs(np.arange(names) - home[:, None])
    ping = np.minimum(slowest, scenario.max_ping)[:, None] + scenario.ping_step * np.minimum(steps, names - steps)
    return np.where(ping <= scenario.max_ping, ping, np.inf)


def _choosing(scenario: Scenario, tickets: Tickets) -> Tickets:
    """Add what each party accepts, and the maps that it vetoes."""
    if not scenario.attributes and not scenario.vetoes:
        return tickets
    rng, count = np.random.default_rng([scenario.seed, CHOICES]), len(tickets)
    accepted: list[list[tuple[str, tuple[str, ...]]]] = [[] for _ in range(count)]
    for name, shares in sorted(scenario.attributes.items()):
        weights = np.array(list(shares.values()))
        values = [tuple(sorted(value.strip() for value in listed.split(","))) for listed in shares]
        for party, row in enumerate(rng.choice(len(values), size=count, p=weights / weights.sum()).tolist()):
            if values[row] != (ANY,):
                accepted[party].append((name, values[row]))
    vetoed = {name: (rng.random(count) < share).tolist() for name, share in sorted(scenario.vetoes.items())}
    drawn = [
        TicketChoice(tuple(accepted[party]), tuple(name for name, who in vetoed.items() if who[party]))
        for party in range(count)
    ]
    rows = {choice: row for row, choice in enumerate(dict.fromkeys(drawn))}
    return replace(tickets, choice=np.array([rows[choice] for choice in drawn], np.int64), choices=tuple(rows))


def _avoiding(rng: np.random.Generator, scenario: Scenario, tickets: Tickets, percentile: Floats) -> Tickets:
    """Add the avoid lists; no player avoids a member of their own party."""
    count = len(percentile)
    by_strength = np.argsort(percentile, kind="stable")
    position = np.empty(count, np.int64)
    position[by_strength] = np.arange(count)
    avoiding = np.repeat(np.flatnonzero(rng.random(count) < scenario.share_avoiding), AVOIDED)
    distance = np.rint(rng.normal(0.0, AVOIDED_APART * count, len(avoiding))).astype(np.int64)
    avoided = by_strength[np.clip(position[avoiding] + distance, 0, count - 1)]
    party = np.empty(count, np.int64)
    party[tickets.player] = np.repeat(tickets.id, np.diff(tickets.start))
    party_of, avoided_player = np.unique(
        np.column_stack((party[avoiding], avoided))[party[avoiding] != party[avoided]], axis=0
    ).T
    return replace(
        tickets,
        named_start=starts(np.bincount(party_of, minlength=len(tickets))),
        named=np.ascontiguousarray(avoided_player),
        met=np.full(len(avoided_player), FOREVER),
    )


ARRIVALS = 1  # index of the random stream for arrivals
GRID = 1.0  # seconds; grid of the cumulative arrival rate has four points per GRID


def arrival_times(scenario: Scenario) -> Whole:
    """Arrival time of each party in microseconds from the start, ascending; all before the last tick.

    An inhomogeneous Poisson process: the number of parties is Poisson distributed, and their times are obtained by
    inverting the cumulative expected number of arrivals.
    """
    if scenario.kind == "recorded":
        times = np.array(scenario.times)
        return to_microseconds(times[times < scenario.seconds])
    rng = np.random.default_rng([scenario.seed, ARRIVALS])
    expected = EXPECTED[scenario.kind]
    grid = np.linspace(0.0, scenario.seconds, max(2, int(np.ceil(scenario.seconds / GRID)) * 4 + 1))
    cumulative = expected(scenario, grid) * scenario.arrivals / scenario.party_size
    drawn = np.sort(rng.random(rng.poisson(cumulative[-1]))) * cumulative[-1]
    return to_microseconds(np.interp(drawn, cumulative, grid))


def to_microseconds(seconds: Floats) -> Whole:
    """Convert seconds to microseconds, rounded down."""
    microseconds: Whole = np.floor(seconds * SECOND).astype(np.int64)
    return microseconds


def _steady(_scenario: Scenario, time: Floats) -> Floats:
    return time


def _daily(scenario: Scenario, time: Floats) -> Floats:
    """Integral of 1 + swing sin(2πt/period)."""
    frequency = 2.0 * np.pi / scenario.period
    cumulative: Floats = time + scenario.swing / frequency * (1.0 - np.cos(frequency * time))
    return cumulative


def _bursts(scenario: Scenario, time: Floats) -> Floats:
    """Uniform arrivals plus exponentially decaying bursts, the first after half an interval."""
    since = time - scenario.burst_every / 2.0
    whole = np.maximum(np.floor(since / scenario.burst_every) + 1.0, 0.0)
    fade = np.exp(-scenario.burst_every / scenario.burst_seconds)
    into = np.where(since >= 0, since % scenario.burst_every, 0.0)
    # Arrivals still to come from all bursts so far: a geometric series.
    remaining = np.exp(-into / scenario.burst_seconds) * (1.0 - fade**whole) / (1.0 - fade)
    cumulative: Floats = (1.0 - scenario.burst_share) * time + scenario.burst_share * scenario.burst_every * (
        whole - remaining
    )
    return cumulative


EXPECTED: dict[str, Callable[[Scenario, Floats], Floats]] = {"poisson": _steady, "daily": _daily, "bursts": _bursts}
