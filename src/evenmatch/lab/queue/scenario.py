"""The settings of a simulated queue: its players, and when their parties arrive."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TypeVar

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.options import Checked, choice, known_values, number, structure, whole
from evenmatch.policy import LARGEST_TEAM

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
        "Number of players on the ladder; none: 20,000, or the number of arrivals if that is larger. If more arrive "
        "than the ladder has, players arrive again; those still waiting or playing are skipped.",
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
