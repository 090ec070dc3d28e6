"""Scenario of a simulated queue: arrivals, parties, regions and habits of its players; named mixes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TypeVar

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.matchmaking.policy import LARGEST_TEAM, Option

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


def _option(
    effect: str, low: float, high: float = MOST, *, whole: bool = False, optional: bool = False
) -> dict[str, Option]:
    return {"option": Option(effect, low, high, whole, optional)}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A queue to simulate; by default solo players, a quarter of them strict.

    Times are in seconds, widths in percentiles (0..100), skill and rating in points of an Elo-like scale. Results
    follow true skill: odds of 10:1 for 400 points between the teams' means. The matchmaker sees only the known rating,
    which is the skill plus an error, and its fractional percentile among all players of the ladder.
    Raises BadParameterError if a value is out of range.
    """

    arrivals: float = field(default=5.0, metadata=_option("Players who arrive per second, on average.", 1e-4, 1e5))
    minutes: float = field(default=20.0, metadata=_option("Simulated time in minutes.", 0.02, 1e5))
    seed: int = field(default=1, metadata=_option("Seed of all random numbers.", 0, LARGEST_SEED, whole=True))
    tick: float = field(default=1.0, metadata=_option("Seconds between two decisions of the matchmaker.", 0.001, 3600))
    kind: str = "poisson"
    period: float = field(default=86_400.0, metadata=_option("`daily` only: length of a day.", 1))
    swing: float = field(
        default=0.8,
        metadata=_option("`daily` only: amplitude of the arrivals around their average, as a share of it.", 0, 1),
    )
    burst_every: float = field(default=300.0, metadata=_option("`bursts` only: time from one burst to the next.", 1))
    burst_seconds: float = field(
        default=20.0, metadata=_option("`bursts` only: time constant of the decay of a burst.", 0.1)
    )
    burst_share: float = field(
        default=0.7, metadata=_option("`bursts` only: share of the players who arrive in a burst.", 0, 1)
    )
    times: tuple[float, ...] = ()
    players: int | None = field(
        default=None,
        metadata=_option(
            "Players of the ladder; none: 20,000, or more if more arrive. If more arrive than the ladder has, players "
            "arrive again; those still waiting or playing are skipped.",
            2,
            20_000_000,
            whole=True,
            optional=True,
        ),
    )
    skill_mean: float = field(default=1500.0, metadata=_option("Mean true skill.", -1e9, 1e9))
    skill_sd: float = field(default=300.0, metadata=_option("Standard deviation of true skill.", 0, 1e9))
    rating_error: float = field(
        default=50.0, metadata=_option("Standard deviation of the known rating around the true skill.", 0, 1e9)
    )
    share_strict: float = field(default=0.25, metadata=_option("Share of the players whose filter never widens.", 0, 1))
    strict_within: float = field(default=5.0, metadata=_option("Filter of strict players.", 0, 100))
    loose_within: float = field(default=2.0, metadata=_option("Filter of loose players before it widens.", 0, 100))
    parties: tuple[float, ...] = (1.0,)
    friends_apart: float = field(
        default=10.0,
        metadata=_option("Standard deviation of party members' percentiles around the center of their party.", 0, 100),
    )
    regions: Mapping[str, float] = field(default_factory=dict)
    ping_home: float = field(default=30.0, metadata=_option("Mean ping to the home region, milliseconds.", 0, 10_000))
    ping_step: float = field(
        default=60.0, metadata=_option("Additional milliseconds for each region further away.", 0, 10_000)
    )
    max_ping: float = field(
        default=120.0, metadata=_option("Highest ping that players accept, milliseconds.", 1, 10_000)
    )
    patience: float | None = field(
        default=None, metadata=_option("Mean wait after which a party gives up; none: never.", 0.001, optional=True)
    )
    match_seconds: float = field(default=600.0, metadata=_option("Mean length of a match.", 0))
    match_seconds_sd: float = field(default=120.0, metadata=_option("Standard deviation of the length of a match.", 0))
    return_share: float = field(
        default=0.0,
        metadata=_option("Chance that a party queues again after its match, in addition to `arrivals`.", 0, 1),
    )
    share_newcomers: float = field(
        default=0.0, metadata=_option("Share of the players still in placement matches.", 0, 1)
    )
    newcomer_error: float = field(
        default=200.0, metadata=_option("Rating error of players in placement matches.", 0, 1e9)
    )
    tell_deviation: bool = False
    roles: Mapping[str, float] = field(default_factory=dict)
    share_avoiding: float = field(
        default=0.0, metadata=_option("Share of the players who avoid three others of about their strength.", 0, 1)
    )

    def __post_init__(self) -> None:
        for name, option in options().items():
            _check(name, getattr(self, name), option)
        if self.kind not in KINDS:
            raise BadParameterError(f"kind={self.kind!r}: expected one of {', '.join(KINDS)}")
        if not isinstance(self.tell_deviation, bool):
            raise BadParameterError(f"tell_deviation={self.tell_deviation!r}: expected true or false")
        object.__setattr__(self, "times", _times(self.times, self.kind))
        object.__setattr__(self, "parties", _mix(self.parties))
        object.__setattr__(self, "regions", _shares("regions", self.regions))
        object.__setattr__(self, "roles", _shares("roles", self.roles))
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
        return data | rows | {"regions": dict(self.regions), "roles": dict(self.roles)}

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Scenario:
        """Create a scenario from a TOML or JSON document; absent values have their defaults.

        `parties` and `regions` may be names of mixes. Raises UnknownNameError and BadParameterError.
        """
        known = [item.name for item in dataclasses.fields(cls)]
        values = dict(data)
        for name, value in values.items():
            if name not in known:
                raise UnknownNameError("value of a scenario", name, known)
            if value == "none" and name not in {"parties", "regions"}:
                values[name] = None
        if isinstance(mix := values.get("parties"), str):
            values["parties"] = _named("mix of parties", mix, PARTY_MIXES)
        if isinstance(mix := values.get("regions"), str):
            values["regions"] = _named("mix of regions", mix, REGION_MIXES)
        return cls(**values)  # type: ignore[arg-type]  # each is checked


def options() -> dict[str, Option]:
    """Numeric options by name."""
    return {item.name: item.metadata["option"] for item in dataclasses.fields(Scenario) if "option" in item.metadata}


OTHER_OPTIONS = {
    "kind": "How players arrive: poisson, daily (a sine), bursts (as after a match night), recorded (at `times`).",
    "times": "`recorded` only: arrival time of each party, in seconds from the start; `arrivals` is then ignored.",
    "parties": "Shares of parties with one member, two members …; or the name of a mix.",
    "regions": "Shares of the players by region, neighbours side by side; or the name of a mix. Empty: no regions.",
    "tell_deviation": "Whether tickets state the uncertainty of the percentile.",
    "roles": "Share of the players who offer each role; players with none offer the most common one. Empty: no roles.",
}


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


def _check(name: str, value: object, option: Option) -> None:
    if value is None and option.optional:
        return
    in_range = _is_number(value) and option.low <= float(value) <= option.high  # type: ignore[arg-type]
    if not in_range or (option.whole and not isinstance(value, int)):
        shown = f"{value:.12g}" if isinstance(value, float) else repr(value)
        raise BadParameterError(f"{name}={shown}: expected {option.accepts}")


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
    """Check a table of shares: regions have relative weights, roles independent shares up to 1."""
    high = 1.0 if name == "roles" else math.inf
    if not isinstance(shares, Mapping):
        raise BadParameterError(f"{name}={shares!r}: expected a table of names and shares")
    for word, share in shares.items():
        if not isinstance(word, str) or not word or not _is_number(share) or not 0 < float(share) <= high:
            top = "to 1" if name == "roles" else "upwards"
            raise BadParameterError(f"{name} has {word!r}: {share!r}; expected a name and a number above 0 {top}")
    if len(shares) > 60:
        raise BadParameterError(f"{len(shares)} {name}; at most 60 are allowed")
    return {word: float(share) for word, share in shares.items()}
