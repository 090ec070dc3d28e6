"""Policies: the limits and preferences of the matchmaker as data, with named presets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.history import Floats

MOST_PLAYERS = 256  # in a match
LARGEST_TEAM = 50
Step = tuple[float, float]


class Odds(Protocol):
    """Function that predicts a match of two teams with the rating system of a ladder."""

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """The chance that the first team wins, 0..1, for arrays of mean team ratings; it increases with `first`."""
        ...


@dataclass(frozen=True)
class Logistic:
    """Odds by Elo's curve: ten to one for a difference of `scale` points between the teams' means."""

    scale: float = 400.0

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """Return the chance that the first team wins."""
        logits = (np.asarray(first) - second) / self.scale * math.log(10)
        chance: Floats = 0.5 + 0.5 * np.tanh(logits / 2)  # equals 1 / (1 + exp(-logits)), without overflow
        return chance


class Option(NamedTuple):
    """The range and the effect of a policy option. `optional`: "none" disables it."""

    effect: str
    low: float
    high: float
    whole: bool = False
    optional: bool = False

    @property
    def accepts(self) -> str:
        """The allowed values in words, for messages: "expected …"."""
        kind = "a whole number" if self.whole else "a number"
        top = f"to {self.high:,.10g}" if math.isfinite(self.high) else "upwards"
        return f"{kind} from {self.low:g} {top}{', or none' if self.optional else ''}"


def _option(
    default: float | None, low: float, high: float, effect: str, *, whole: bool = False, optional: bool = False
) -> Any:  # noqa: ANN401 - typed as the value of the field
    return field(default=default, metadata={"option": Option(effect, low, high, whole, optional)})


INFINITE = float("inf")
MOST = 1_000_000  # seconds, points or milliseconds: beyond any useful value


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The rules of one queue. Raises BadParameterError for a value outside the range of its option.

    Times are in seconds, widths in percentiles (0..100), costs in equivalent seconds of waiting.
    """

    team_size: int = _option(6, 1, LARGEST_TEAM, "Players in each team.", whole=True)
    teams: int = _option(2, 2, MOST_PLAYERS, "Teams in a match; teams of one player are a free-for-all.", whole=True)
    min_team_size: int | None = _option(
        None,
        1,
        LARGEST_TEAM,
        "The smallest team size allowed after a long wait; none: teams are always full.",
        whole=True,
        optional=True,
    )
    smaller_after: float = _option(120.0, 0, MOST, "The least wait of every player of a match with smaller teams.")
    steps: tuple[Step, ...] = ((0.0, 2.0), (15.0, 5.0), (30.0, 10.0), (60.0, 20.0), (120.0, 40.0), (240.0, 100.0))
    uncertainty: float = _option(
        0.0, 0, 10, "Treat a player as a band of this many deviations to both sides; 0: as a point."
    )
    max_odds: float | None = _option(
        0.6,
        0.5,
        1.0,
        "The highest predicted chance of a team; with three or more teams, of the strongest against the weakest.",
        optional=True,
    )
    max_rating_spread: float | None = _option(
        None, 0, MOST, "The largest difference between the highest and the lowest rating in a match.", optional=True
    )
    odds_scale: float = _option(
        400.0, 0.001, MOST, "Rating points between the means of two teams for odds of ten to one, by Elo's curve."
    )
    max_ping: float | None = _option(
        None, 0, MOST, "The highest ping of a player to the region of the match, in milliseconds.", optional=True
    )
    max_wait: float | None = _option(None, 0, MOST, "The longest wait of a ticket; then it expires.", optional=True)
    overdue_after: float | None = _option(
        240.0,
        0,
        MOST,
        "Loose tickets with this wait come first, and other players are reserved for them; none: never.",
        optional=True,
    )
    party_wait: float = _option(5.0, 0, MOST, "Cost of different party sizes in the teams.")
    newcomer_wait: float = _option(20.0, 0, MOST, "Cost of a match between players who are not placed yet and others.")
    rematch_wait: float = _option(30.0, 0, MOST, "Cost of meeting a player again immediately.")
    rematch_fade: float = _option(1800.0, 1, MOST, "Time in which the cost of a rematch falls linearly to zero.")
    even_spread: float = _option(
        4.5,
        0,
        100,
        "The spread (percentiles between the lowest and the highest player) allowed to every match, within filters.",
    )
    spread_share: float = _option(
        0.2,
        0,
        1,
        "A wider match may span this share of the step width reached by its longest-waiting ticket.",
    )
    spread_cost: float = _option(
        3.0, 0, MOST, "Cost per percentile between the lowest and the highest player, when matches compete."
    )
    odds_cost: float = _option(2.0, 0, MOST, "Cost per percent away from even odds, when teams are chosen.")
    roles: Mapping[str, int] = field(default_factory=dict)
    odds: Odds | None = None

    def __post_init__(self) -> None:
        for name, option in options().items():
            _check(name, getattr(self, name), option)
        _check_steps(self.steps)
        object.__setattr__(self, "steps", tuple((float(after), float(width)) for after, width in self.steps))
        _check_roles(self.roles, self.team_size, self.min_team_size)
        object.__setattr__(self, "roles", dict(sorted(self.roles.items())))
        if self.odds is not None and not callable(self.odds):
            raise BadParameterError(f"odds={self.odds!r}: expected a function of two arrays of mean ratings, or none")
        if self.min_team_size is not None and self.min_team_size > self.team_size:
            raise BadParameterError(
                f"min_team_size={self.min_team_size}: expected at most team_size, which is {self.team_size}"
            )
        if self.players > MOST_PLAYERS:
            raise BadParameterError(
                f"teams={self.teams} of team_size={self.team_size} are {self.players} players; expected at most "
                f"{MOST_PLAYERS} in a match"
            )

    @property
    def players(self) -> int:
        """Players in a match with full teams."""
        return self.teams * self.team_size

    def foretell(self, first: Floats, second: Floats) -> Floats:
        """Predict the chance that the first of two teams wins from their mean ratings: `odds`, or Elo's curve."""
        return Logistic(self.odds_scale)(first, second) if self.odds is None else self.odds(first, second)

    def width(self, waited: float) -> float:
        """The width of a loose filter after `waited` seconds, in percentiles."""
        return max(width for after, width in self.steps if after <= max(waited, 0.0))

    def spread_wait(self, spread: float) -> float:
        """Seconds of waiting required for a match of this spread; if no step allows it, the time until overdue."""
        if spread <= self.even_spread:
            return 0.0
        sufficient = [after for after, width in self.steps if self.spread_share * width >= spread]
        return min([*sufficient, self.steps[-1][0] if self.overdue_after is None else self.overdue_after])

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Policy:
        """Create a policy from the data of a TOML or JSON document; `preset` is its base (`balanced` by default).

        Raises UnknownNameError for an unknown option or preset, BadParameterError for an invalid value.
        """
        values = dict(data)
        name = values.pop("preset", "balanced")
        if not isinstance(name, str) or name not in presets():
            raise UnknownNameError("policy", str(name), presets())
        known = [option.name for option in dataclasses.fields(cls) if option.name != "odds"]
        for given in values:
            if given not in known:
                raise UnknownNameError("option of a policy", given, known)
        for name_, value in values.items():
            if value == "none":
                values[name_] = None
        return dataclasses.replace(presets()[name], **_typed(values))

    def to_data(self) -> dict[str, object]:
        """All options except `odds`, ready for JSON."""
        data = {option.name: getattr(self, option.name) for option in dataclasses.fields(self) if option.name != "odds"}
        return data | {"steps": [list(step) for step in self.steps], "roles": dict(self.roles)}


def options() -> dict[str, Option]:
    """The numeric options by name."""
    return {item.name: item.metadata["option"] for item in dataclasses.fields(Policy) if "option" in item.metadata}


OTHER_OPTIONS = {
    "steps": "The width of a loose filter by time waited: pairs of seconds and percentiles.",
    "roles": "How many players of each role every team needs; a player gets one of the roles that they offer.",
}


def presets() -> dict[str, Policy]:
    """The named policies; the first is the default."""
    return {
        "balanced": Policy(),
        "quick": Policy(
            steps=((0.0, 5.0), (10.0, 10.0), (20.0, 20.0), (40.0, 40.0), (80.0, 100.0)),
            even_spread=10.0,
            spread_share=0.5,
            max_odds=0.7,
            overdue_after=90.0,
            party_wait=0.0,
            newcomer_wait=5.0,
            rematch_wait=10.0,
        ),
        "fair": Policy(
            steps=((0.0, 1.0), (20.0, 2.0), (60.0, 5.0), (150.0, 10.0), (300.0, 20.0), (480.0, 40.0), (600.0, 100.0)),
            even_spread=3.0,
            max_odds=0.55,
            uncertainty=1.0,
            overdue_after=600.0,
            party_wait=30.0,
            newcomer_wait=60.0,
            rematch_wait=90.0,
        ),
    }


def _typed(values: dict[str, object]) -> dict[str, Any]:
    """Convert steps from lists of lists to tuples."""
    if "steps" in values:
        steps = values["steps"]
        if not isinstance(steps, list | tuple) or not all(
            isinstance(step, list | tuple) and len(step) == 2 for step in steps
        ):
            raise BadParameterError(
                f"steps={steps!r}: expected pairs of seconds and percentiles, such as [[0, 2], [15, 5]]"
            )
        values["steps"] = tuple(tuple(step) for step in steps)
    return values


def _is_number(value: object) -> bool:
    """Whether the value is a number within the range of float, and not NaN."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return not math.isnan(float(value))
    except OverflowError:
        return False


def _check(name: str, value: object, option: Option) -> None:
    if value is None and option.optional:
        return
    good = _is_number(value) and option.low <= float(value) <= option.high  # type: ignore[arg-type]
    if not good or (option.whole and not isinstance(value, int | np.integer)):
        raise BadParameterError(f"{name}={value!r}: expected {option.accepts}")


def _check_steps(steps: object) -> None:
    if not isinstance(steps, list | tuple):
        raise BadParameterError(f"steps={steps!r}: expected pairs of seconds and percentiles")
    for step in steps:
        if (
            not isinstance(step, list | tuple)
            or len(step) != 2
            or not all(_is_number(value) for value in step)
            or not (0 <= step[1] <= 100 and 0 <= step[0] < INFINITE)
        ):
            raise BadParameterError(f"steps has {step!r}: expected seconds from 0 and a width of 0 to 100 percentiles")
    if not steps or steps[0][0] != 0:
        raise BadParameterError("steps do not begin at 0 seconds; expected a first step such as [0, 2]")
    for (earlier, narrow), (later, wide) in pairwise(steps):
        if later <= earlier or wide < narrow:
            raise BadParameterError(
                f"steps has [{later:g}, {wide:g}] after [{earlier:g}, {narrow:g}]; expected a later, not narrower step"
            )


def _check_roles(roles: object, team_size: int, min_team_size: int | None) -> None:
    if not isinstance(roles, Mapping):
        raise BadParameterError(f"roles={roles!r}: expected a table of names and counts")
    for name, count in roles.items():
        if not isinstance(name, str) or isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise BadParameterError(f"roles has {name!r}: {count!r}; expected a name and a whole number from 1")
    smallest = team_size if min_team_size is None else min_team_size
    if sum(roles.values()) > smallest:
        raise BadParameterError(
            f"roles are {sum(roles.values())} players of each team; expected at most {smallest}, the smallest team"
        )
    if len(roles) > 8:
        raise BadParameterError(f"{len(roles)} roles; expected at most 8")
