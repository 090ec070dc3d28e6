"""Scenario of a simulated queue: its settings, the players of its ladder, and when their parties arrive."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import TypeVar

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.history import Floats
from evenmatch.matchmaking.tickets import FOREVER, Masks, TicketChoice, Tickets, Whole, starts
from evenmatch.options import Checked, choice, known_values, number, structure, whole
from evenmatch.policy import LARGEST_TEAM
from evenmatch.standings.distribution import queue_percentiles

KINDS = ("poisson", "daily", "bursts", "recorded")
FEWEST_PLAYERS = 20_000  # fewest players of a ladder if `players` is not given
MOST = 1_000_000_000  # upper bound of options without their own
LARGEST_SEED = 2**32 - 1

# Shares of parties with one member, two members …
PARTY_MIXES: dict[str, tuple[float, ...]] = {
    "none": (1.0,),
    "some": (0.7, 0.18, 0.06, 0.03, 0.02, 0.01),
    "many": (0.35, 0.25, 0.15, 0.1, 0.1, 0.05),
}
# Share of the players in each region; neighbours in the list are geographic neighbours.
REGION_MIXES: dict[str, dict[str, float]] = {
    "none": {},
    "four": {"europe": 0.4, "america-east": 0.25, "america-west": 0.15, "asia": 0.2},
}


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Scenario(Checked):
    """A queue to simulate; by default solo players, a quarter of them strict.

    Times are in seconds, widths in percentiles (0..100), skill and rating in points of an Elo-like scale. Results
    follow true skill: odds of 10:1 for 400 points between the teams' means. The matchmaker sees only the known rating,
    which is the skill plus an error, and its fractional percentile among all players of the ladder.
    Raises BadParameterError if a value is out of range.
    """

    arrivals: float = number(5.0, 1e-4, 1e5, "Players who arrive per second, on average.")
    minutes: float = number(20.0, 0.02, 1e5, "Simulated time in minutes.")
    seed: int = whole(1, 0, LARGEST_SEED, "Seed of all random numbers.")
    tick: float = number(1.0, 0.001, 3600, "Seconds between two decisions of the matchmaker.")
    kind: str = choice(
        "poisson",
        KINDS,
        "How players arrive: poisson, daily (a sine), bursts (as after a match night), recorded (at `times`).",
    )
    period: float = number(86_400.0, 1, MOST, "`daily` only: length of a day.")
    swing: float = number(0.8, 0, 1, "`daily` only: amplitude of the arrivals around their average, as a share of it.")
    burst_every: float = number(300.0, 1, MOST, "`bursts` only: time from one burst to the next.")
    burst_seconds: float = number(20.0, 0.1, MOST, "`bursts` only: time constant of the decay of a burst.")
    burst_share: float = number(0.7, 0, 1, "`bursts` only: share of the players who arrive in a burst.")
    times: tuple[float, ...] = structure(
        (), "`recorded` only: arrival time of each party, in seconds from the start; `arrivals` is then ignored."
    )
    players: int | None = whole(
        None,
        2,
        20_000_000,
        "Players of the ladder; none: 20,000, or more if more arrive. If more arrive than the ladder has, players "
        "arrive again; those still waiting or playing are skipped.",
        optional=True,
    )
    skill_mean: float = number(1500.0, -1e9, 1e9, "Mean true skill.")
    skill_sd: float = number(300.0, 0, 1e9, "Standard deviation of true skill.")
    rating_error: float = number(50.0, 0, 1e9, "Standard deviation of the known rating around the true skill.")
    share_strict: float = number(0.25, 0, 1, "Share of the players whose filter never widens.")
    strict_within: float = number(5.0, 0, 100, "Filter of strict players.")
    loose_within: float = number(2.0, 0, 100, "Filter of loose players before it widens.")
    parties: tuple[float, ...] = structure(
        (1.0,), "Shares of parties with one member, two members …; or the name of a mix."
    )
    friends_apart: float = number(
        10.0, 0, 100, "Standard deviation of party members' percentiles around the center of their party."
    )
    regions: Mapping[str, float] = structure(
        {}, "Shares of the players by region, neighbours side by side; or the name of a mix. Empty: no regions."
    )
    ping_home: float = number(30.0, 0, 10_000, "Mean ping to the home region, milliseconds.")
    ping_step: float = number(60.0, 0, 10_000, "Additional milliseconds for each region further away.")
    max_ping: float = number(120.0, 1, 10_000, "Highest ping that players accept, milliseconds.")
    patience: float | None = number(
        None, 0.001, MOST, "Mean wait after which a party gives up; none: never.", optional=True
    )
    match_seconds: float = number(600.0, 0, MOST, "Mean length of a match.")
    match_seconds_sd: float = number(120.0, 0, MOST, "Standard deviation of the length of a match.")
    return_share: float = number(
        0.0, 0, 1, "Chance that a party queues again after its match, in addition to `arrivals`."
    )
    share_newcomers: float = number(0.0, 0, 1, "Share of the players still in placement matches.")
    newcomer_error: float = number(200.0, 0, 1e9, "Rating error of players in placement matches.")
    roles: Mapping[str, float] = structure(
        {}, "Share of the players who offer each role; players with none offer the most common one. Empty: no roles."
    )
    attributes: Mapping[str, Mapping[str, float]] = structure(
        {},
        "Shares of the parties by what they accept, for attributes of the policy: { platform = { pc = 6, console = 3, "
        '"pc, console" = 1 } }; `any` accepts all. A policy that does not declare an attribute ignores it.',
    )
    vetoes: Mapping[str, float] = structure({}, "Share of the parties that veto each map of the policy.")
    share_avoiding: float = number(0.0, 0, 1, "Share of the players who avoid three others of about their strength.")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "times", _times(self.times, self.kind))
        object.__setattr__(self, "parties", _mix(self.parties))
        object.__setattr__(self, "regions", _shares("regions", self.regions))
        object.__setattr__(self, "roles", _shares("roles", self.roles))
        object.__setattr__(self, "vetoes", _shares("vetoes", self.vetoes))
        if not isinstance(self.attributes, Mapping):
            raise BadParameterError(f"attributes={self.attributes!r}: expected a table of shares for each attribute")
        attributes = {name: _shares(name, shares) for name, shares in self.attributes.items()}
        object.__setattr__(self, "attributes", attributes)
        if self.seconds < self.tick:
            raise BadParameterError(f"minutes={self.minutes:g}: expected at least one tick of {self.tick:g} seconds")

    @property
    def seconds(self) -> float:
        """Simulated time in seconds."""
        return self.minutes * 60.0

    @property
    def party_size(self) -> float:
        """Mean number of members of a party."""
        return math.fsum(size * share for size, share in enumerate(self.parties, 1))

    def to_data(self) -> dict[str, object]:
        """Return all values in JSON-compatible form."""
        data = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        rows = {name: list(getattr(self, name)) for name in ("times", "parties")}
        tables = {name: dict(getattr(self, name)) for name in ("regions", "roles", "vetoes")}
        return data | rows | tables | {"attributes": {name: dict(own) for name, own in self.attributes.items()}}

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Scenario:
        """Create a scenario from a TOML or JSON document; absent values have their defaults.

        `parties` and `regions` may be names of mixes. Raises UnknownNameError and BadParameterError.
        """
        values = known_values(cls, "value of a scenario", data)
        if isinstance(mix := values.get("parties"), str):
            values["parties"] = _named("mix of parties", mix, PARTY_MIXES)
        if isinstance(mix := values.get("regions"), str):
            values["regions"] = _named("mix of regions", mix, REGION_MIXES)
        return cls(**values)


def party_mix(name: str, team_size: int) -> tuple[float, ...]:
    """Named mix without parties larger than the team, rescaled. Raises UnknownNameError."""
    shares = _named("mix of parties", name, PARTY_MIXES)[:team_size]
    return tuple(share / math.fsum(shares) for share in shares)


def _named(kind: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return known[name]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value))


def _times(times: object, kind: str) -> tuple[float, ...]:
    if not isinstance(times, list | tuple) or not all(_is_number(time) and time >= 0 for time in times):
        raise BadParameterError("times: expected a list of seconds from 0")
    if kind == "recorded" and not times:
        raise BadParameterError("times is empty; kind='recorded' requires the arrival times of parties in seconds")
    if kind != "recorded" and times:
        raise BadParameterError(f"times are given with kind={kind!r}, but are only allowed with kind='recorded'")
    return tuple(sorted(float(time) for time in times))


def _mix(parties: object) -> tuple[float, ...]:
    if (
        not isinstance(parties, list | tuple)
        or not 1 <= len(parties) <= LARGEST_TEAM
        or not all(_is_number(share) and share >= 0 for share in parties)
        or abs(math.fsum(parties) - 1.0) > 1e-6
    ):
        raise BadParameterError(
            f"parties={parties!r}: expected 1 to {LARGEST_TEAM} shares from 0 that add up to 1, "
            f"for parties of one, of two …"
        )
    return tuple(float(share) for share in parties)


def _shares(name: str, shares: object) -> dict[str, float]:
    """Check a table of shares: roles and vetoes have independent shares up to 1, others relative weights."""
    high = 1.0 if name in {"roles", "vetoes"} else math.inf
    if not isinstance(shares, Mapping):
        raise BadParameterError(f"{name}={shares!r}: expected a table of names and shares")
    for word, share in shares.items():
        if not isinstance(word, str) or not word or not _is_number(share) or not 0 < float(share) <= high:
            top = "upwards" if high == math.inf else "to 1"
            raise BadParameterError(f"{name} has {word!r}: {share!r}; expected a name and a number above 0 {top}")
    if len(shares) > 60:
        raise BadParameterError(f"{len(shares)} {name}; at most 60 are allowed")
    return {word: float(share) for word, share in shares.items()}


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
