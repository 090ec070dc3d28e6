"""What a simulated queue is given: who arrives, when, in which parties and with which habits; and named mixes."""

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
FEWEST_PLAYERS = 20_000  # of a ladder whose size is not told
MOST = 1_000_000_000  # of what has no bound of its own
LARGEST_SEED = 2**32 - 1

# Shares of the parties that have one member, two members …
PARTY_MIXES: dict[str, tuple[float, ...]] = {
    "none": (1.0,),
    "some": (0.7, 0.18, 0.06, 0.03, 0.02, 0.01),
    "many": (0.35, 0.25, 0.15, 0.1, 0.1, 0.05),
}
# Shares of the players who live in each region; neighbours in the list are neighbours on the globe.
REGION_MIXES: dict[str, dict[str, float]] = {
    "none": {},
    "four": {"europe": 0.4, "america-east": 0.25, "america-west": 0.15, "asia": 0.2},
}


T = TypeVar("T")


def _says(
    effect: str, low: float, high: float = MOST, *, whole: bool = False, optional: bool = False
) -> dict[str, Option]:
    return {"option": Option(effect, low, high, whole, optional)}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A queue to simulate; the defaults are the issue of quality: solo players, a quarter of them strict.

    Times are in seconds, widths in percentiles (0..100), skill and rating in points of an Elo-like scale. Matches are
    won by true skill: ten to one for 400 points between the teams' means. The known rating is the skill with an error;
    the matchmaker sees only it, and its fractional percentile among all players of the ladder.
    Raises BadParameterError where a value is outside what its option accepts.
    """

    arrivals: float = field(default=5.0, metadata=_says("Players who arrive in a second, on average.", 1e-4, 1e5))
    minutes: float = field(default=20.0, metadata=_says("How long the queue is watched.", 0.02, 1e5))
    seed: int = field(default=1, metadata=_says("Everything random follows from it.", 0, LARGEST_SEED, whole=True))
    tick: float = field(default=1.0, metadata=_says("Seconds between two decisions of the matchmaker.", 0.001, 3600))
    kind: str = "poisson"
    period: float = field(default=86_400.0, metadata=_says("Of `daily`: how long a day is.", 1))
    swing: float = field(
        default=0.8,
        metadata=_says("Of `daily`: how far the arrivals swing around their average, as a share of it.", 0, 1),
    )
    burst_every: float = field(default=300.0, metadata=_says("Of `bursts`: from one burst to the next.", 1))
    burst_seconds: float = field(default=20.0, metadata=_says("Of `bursts`: how slowly a burst fades.", 0.1))
    burst_share: float = field(default=0.7, metadata=_says("Of `bursts`: share of the players who come in one.", 0, 1))
    times: tuple[float, ...] = ()
    players: int | None = field(
        default=None,
        metadata=_says(
            "Players of the ladder; none: 20,000, or as many as arrive where these are more. Where more arrive than "
            "there are, they come round again; who still waits or plays then is passed over.",
            2,
            20_000_000,
            whole=True,
            optional=True,
        ),
    )
    skill_mean: float = field(default=1500.0, metadata=_says("Mean true skill.", -1e9, 1e9))
    skill_sd: float = field(default=300.0, metadata=_says("Standard deviation of true skill.", 0, 1e9))
    rating_error: float = field(
        default=50.0, metadata=_says("Standard deviation of the known rating around the true skill.", 0, 1e9)
    )
    share_strict: float = field(default=0.25, metadata=_says("Share of the players whose filter never widens.", 0, 1))
    strict_within: float = field(default=5.0, metadata=_says("Filter of strict players.", 0, 100))
    loose_within: float = field(default=2.0, metadata=_says("Filter that loose players choose.", 0, 100))
    parties: tuple[float, ...] = (1.0,)
    friends_apart: float = field(
        default=10.0,
        metadata=_says("Standard deviation of party members' percentiles around their party's middle.", 0, 100),
    )
    regions: Mapping[str, float] = field(default_factory=dict)
    ping_home: float = field(default=30.0, metadata=_says("Mean ping to the own region, milliseconds.", 0, 10_000))
    ping_step: float = field(
        default=60.0, metadata=_says("Milliseconds more for each region further around the globe.", 0, 10_000)
    )
    max_ping: float = field(default=120.0, metadata=_says("Ping that players accept, milliseconds.", 1, 10_000))
    patience: float | None = field(
        default=None, metadata=_says("Mean wait after which a party gives up; none: never.", 0.001, optional=True)
    )
    match_seconds: float = field(default=600.0, metadata=_says("Mean length of a match.", 0))
    match_seconds_sd: float = field(default=120.0, metadata=_says("Standard deviation of the length of a match.", 0))
    return_share: float = field(
        default=0.0,
        metadata=_says("Chance that a party queues again after its match. These come on top of `arrivals`.", 0, 1),
    )
    share_newcomers: float = field(default=0.0, metadata=_says("Share of the players who are not placed yet.", 0, 1))
    newcomer_error: float = field(default=200.0, metadata=_says("The rating error of those not placed yet.", 0, 1e9))
    tell_deviation: bool = False
    roles: Mapping[str, float] = field(default_factory=dict)
    share_avoiding: float = field(
        default=0.0, metadata=_says("Share of the players who avoid three others of about their strength.", 0, 1)
    )

    def __post_init__(self) -> None:
        for name, option in options().items():
            _check(name, getattr(self, name), option)
        if self.kind not in KINDS:
            raise BadParameterError(f"kind={self.kind!r}: accepted is one of {', '.join(KINDS)}")
        if not isinstance(self.tell_deviation, bool):
            raise BadParameterError(f"tell_deviation={self.tell_deviation!r}: accepted is true or false")
        object.__setattr__(self, "times", _times(self.times, self.kind))
        object.__setattr__(self, "parties", _mix(self.parties))
        object.__setattr__(self, "regions", _shares("regions", self.regions))
        object.__setattr__(self, "roles", _shares("roles", self.roles))
        if self.seconds < self.tick:
            raise BadParameterError(
                f"minutes={self.minutes:g}: accepted is at least one tick, of {self.tick:g} seconds"
            )

    @property
    def seconds(self) -> float:
        """How long the queue is watched."""
        return self.minutes * 60.0

    @property
    def party_size(self) -> float:
        """Mean members of a party."""
        return math.fsum(size * share for size, share in enumerate(self.parties, 1))

    def to_data(self) -> dict[str, object]:
        """All values, ready for JSON."""
        data = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        rows = {name: list(getattr(self, name)) for name in ("times", "parties")}
        return data | rows | {"regions": dict(self.regions), "roles": dict(self.roles)}

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Scenario:
        """The scenario that a TOML or JSON document says; what is absent has its default.

        `parties` and `regions` may be names of mixes. Raises UnknownNameError and BadParameterError.
        """
        known = [one.name for one in dataclasses.fields(cls)]
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
    """The values that are numbers, by name."""
    return {one.name: one.metadata["option"] for one in dataclasses.fields(Scenario) if "option" in one.metadata}


OTHER_OPTIONS = {
    "kind": "How players arrive: poisson, daily (a sine), bursts (as after a match night), recorded (at `times`).",
    "times": "Of `recorded`: when each party arrives, in seconds from the start; `arrivals` counts for nothing then.",
    "parties": "Shares of parties with one member, two members …; or the name of a mix.",
    "regions": "Shares of the players by region, neighbours side by side; or the name of a mix. Empty: play anywhere.",
    "tell_deviation": "Whether tickets tell how uncertain the percentile is.",
    "roles": "Share of the players who offer each role; who would offer none offers the commonest. Empty: no roles.",
}


def party_mix(name: str, team_size: int) -> tuple[float, ...]:
    """The named mix for teams of this size: parties that are larger are left out. Raises UnknownNameError."""
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
    good = _is_number(value) and option.low <= float(value) <= option.high  # type: ignore[arg-type]
    if not good or (option.whole and not isinstance(value, int)):
        told = f"{value:.12g}" if isinstance(value, float) else repr(value)
        raise BadParameterError(f"{name}={told}: accepted is {option.accepts}")


def _times(times: object, kind: str) -> tuple[float, ...]:
    if not isinstance(times, list | tuple) or not all(_is_number(time) and time >= 0 for time in times):
        raise BadParameterError("times: accepted is a row of seconds from 0")
    if kind == "recorded" and not times:
        raise BadParameterError("times is empty; accepted with kind='recorded' are the seconds at which parties arrive")
    if kind != "recorded" and times:
        raise BadParameterError(f"times are given with kind={kind!r}; accepted are they with kind='recorded' alone")
    return tuple(sorted(float(time) for time in times))


def _mix(parties: object) -> tuple[float, ...]:
    if (
        not isinstance(parties, list | tuple)
        or not 1 <= len(parties) <= LARGEST_TEAM
        or not all(_is_number(share) and share >= 0 for share in parties)
        or abs(math.fsum(parties) - 1.0) > 1e-6
    ):
        raise BadParameterError(
            f"parties={parties!r}: accepted are 1 to {LARGEST_TEAM} shares from 0 that add up to 1, "
            f"for parties of one, of two …"
        )
    return tuple(float(share) for share in parties)


def _shares(name: str, shares: object) -> dict[str, float]:
    """The table as a dict: of regions, whose shares are weighed against each other, or of roles, each by itself."""
    high = 1.0 if name == "roles" else math.inf
    if not isinstance(shares, Mapping):
        raise BadParameterError(f"{name}={shares!r}: accepted is a table of names and shares")
    for word, share in shares.items():
        if not isinstance(word, str) or not word or not _is_number(share) or not 0 < float(share) <= high:
            top = "to 1" if name == "roles" else "upwards"
            raise BadParameterError(f"{name} has {word!r}: {share!r}; accepted is a name and a number above 0 {top}")
    if len(shares) > 60:
        raise BadParameterError(f"{len(shares)} {name}; accepted are at most 60")
    return {word: float(share) for word, share in shares.items()}
