"""What a matchmaker may do and what it prefers: data, with named presets."""

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
    """How a ladder's system foretells a match of two teams."""

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """The chance that the first team wins, 0..1, for each pair of teams' mean ratings; more for a higher first."""
        ...


@dataclass(frozen=True)
class Logistic:
    """Odds by Elo's curve: ten to one for `scale` points between the teams' means."""

    scale: float = 400.0

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """The chance that the first team wins."""
        logits = (np.asarray(first) - second) / self.scale * math.log(10)
        chance: Floats = 0.5 + 0.5 * np.tanh(logits / 2)  # the same as 1 / (1 + exp(-logits)), and never too large
        return chance


class Option(NamedTuple):
    """What an option accepts and what it does. `optional`: none switches it off."""

    effect: str
    low: float
    high: float
    whole: bool = False
    optional: bool = False

    @property
    def accepts(self) -> str:
        """The end of the sentence "accepted is …"."""
        kind = "a whole number" if self.whole else "a number"
        top = f"to {self.high:,.10g}" if math.isfinite(self.high) else "upwards"
        return f"{kind} from {self.low:g} {top}{', or none' if self.optional else ''}"


def _option(
    default: float | None, low: float, high: float, effect: str, *, whole: bool = False, optional: bool = False
) -> Any:  # noqa: ANN401 - a declared field stands for its value
    return field(default=default, metadata={"option": Option(effect, low, high, whole, optional)})


INFINITE = float("inf")
MOST = 1_000_000  # seconds, points, milliseconds: more than any policy wants


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The rules of one queue. Raises BadParameterError where a value is outside what its option accepts.

    Times are in seconds, widths in percentiles (0..100), costs in seconds of waiting that they are worth.
    """

    team_size: int = _option(6, 1, LARGEST_TEAM, "Players in each team.", whole=True)
    teams: int = _option(2, 2, MOST_PLAYERS, "Teams in a match; teams of one player are a free-for-all.", whole=True)
    min_team_size: int | None = _option(
        None,
        1,
        LARGEST_TEAM,
        "The smallest teams that are better than more waiting; none: teams are always full.",
        whole=True,
        optional=True,
    )
    smaller_after: float = _option(
        120.0, 0, MOST, "How long every player of a match with smaller teams has waited, at the least."
    )
    steps: tuple[Step, ...] = ((0.0, 2.0), (15.0, 5.0), (30.0, 10.0), (60.0, 20.0), (120.0, 40.0), (240.0, 100.0))
    uncertainty: float = _option(
        0.0, 0, 10, "A player counts as a band of so many deviations to both sides; 0: as a point."
    )
    max_odds: float | None = _option(
        0.6,
        0.5,
        1.0,
        "No match where a team's chance is foretold as more; of three and more the strongest's against the weakest.",
        optional=True,
    )
    max_rating_spread: float | None = _option(
        None, 0, MOST, "No match with more than this between the highest and the lowest rating.", optional=True
    )
    odds_scale: float = _option(
        400.0, 0.001, MOST, "Points between the mean ratings of two teams that make odds of ten to one, by Elo's curve."
    )
    max_ping: float | None = _option(
        None, 0, MOST, "No match in a region to which a player's ping is more milliseconds.", optional=True
    )
    max_wait: float | None = _option(
        None, 0, MOST, "Tickets that have waited so long are given up, and listed as expired.", optional=True
    )
    overdue_after: float | None = _option(
        240.0,
        0,
        MOST,
        "Loose tickets that have waited so long come first, and a match is kept free for them; none: never.",
        optional=True,
    )
    party_wait: float = _option(5.0, 0, MOST, "What it is worth that teams have parties of the same sizes.")
    newcomer_wait: float = _option(
        20.0, 0, MOST, "What it is worth that players who are not placed yet are among themselves."
    )
    rematch_wait: float = _option(30.0, 0, MOST, "What it is worth not to meet somebody again at once.")
    rematch_fade: float = _option(
        1800.0, 1, MOST, "After so long a meeting is forgotten; until then its worth shrinks evenly."
    )
    even_spread: float = _option(
        4.5,
        0,
        100,
        "Percentiles between the lowest and the highest player that every match may have, filters allowing.",
    )
    spread_share: float = _option(
        0.2,
        0,
        1,
        "A wider match may have this share of the step that the waiting of one of its tickets has reached.",
    )
    spread_cost: float = _option(
        3.0, 0, MOST, "What a percentile between the lowest and the highest player costs, where matches compete."
    )
    odds_cost: float = _option(2.0, 0, MOST, "What a percent away from even odds costs, where teams are chosen.")
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
            raise BadParameterError(
                f"odds={self.odds!r}: accepted is a function of two arrays of mean ratings, or none"
            )
        if self.min_team_size is not None and self.min_team_size > self.team_size:
            raise BadParameterError(
                f"min_team_size={self.min_team_size}: accepted is at most team_size, which is {self.team_size}"
            )
        if self.players > MOST_PLAYERS:
            raise BadParameterError(
                f"teams={self.teams} of team_size={self.team_size} are {self.players} players; accepted are at most "
                f"{MOST_PLAYERS} in a match"
            )

    @property
    def players(self) -> int:
        """Players in a match with full teams."""
        return self.teams * self.team_size

    def foretell(self, first: Floats, second: Floats) -> Floats:
        """The chance that the first of two teams wins, from their mean ratings: `odds`, or Elo's curve."""
        return Logistic(self.odds_scale)(first, second) if self.odds is None else self.odds(first, second)

    def width(self, waited: float) -> float:
        """How far a loose filter is widened after so many seconds, in percentiles."""
        return max(width for after, width in self.steps if after <= max(waited, 0.0))

    def spread_wait(self, spread: float) -> float:
        """Seconds that somebody must have waited for a match so wide; if no step allows it, until they are overdue."""
        if spread <= self.even_spread:
            return 0.0
        enough = [after for after, width in self.steps if self.spread_share * width >= spread]
        return min([*enough, self.steps[-1][0] if self.overdue_after is None else self.overdue_after])

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Policy:
        """The policy that a TOML or JSON document says; `preset` names the one it starts from (`balanced` if absent).

        Raises UnknownNameError for a name that is no option or no preset, BadParameterError for a value.
        """
        values = dict(data)
        name = values.pop("preset", "balanced")
        if not isinstance(name, str) or name not in presets():
            raise UnknownNameError("policy", str(name), presets())
        known = [one.name for one in dataclasses.fields(cls) if one.name != "odds"]
        for given in values:
            if given not in known:
                raise UnknownNameError("option of a policy", given, known)
        for name_, value in values.items():
            if value == "none":
                values[name_] = None
        return dataclasses.replace(presets()[name], **_typed(values))

    def to_data(self) -> dict[str, object]:
        """All options but a callable `odds`, ready for JSON."""
        data = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name != "odds"}
        return data | {"steps": [list(step) for step in self.steps], "roles": dict(self.roles)}


def options() -> dict[str, Option]:
    """The options that are numbers, by name."""
    return {one.name: one.metadata["option"] for one in dataclasses.fields(Policy) if "option" in one.metadata}


OTHER_OPTIONS = {
    "steps": "How far a loose filter reaches after so many seconds, in percentiles: pairs of seconds and width.",
    "roles": "How many of each role every team needs; a player is asked for one of the roles that they offer.",
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
    """The same with rows of numbers where lists of lists stand."""
    if "steps" in values:
        steps = values["steps"]
        if not isinstance(steps, list | tuple) or not all(
            isinstance(one, list | tuple) and len(one) == 2 for one in steps
        ):
            raise BadParameterError(
                f"steps={steps!r}: accepted are pairs of seconds and percentiles, as [[0, 2], [15, 5]]"
            )
        values["steps"] = tuple(tuple(step) for step in steps)
    return values


def _is_number(value: object) -> bool:
    """Whether it is a number that a float holds."""
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
        raise BadParameterError(f"{name}={value!r}: accepted is {option.accepts}")


def _check_steps(steps: object) -> None:
    if not isinstance(steps, list | tuple):
        raise BadParameterError(f"steps={steps!r}: accepted are pairs of seconds and percentiles")
    for step in steps:
        if (
            not isinstance(step, list | tuple)
            or len(step) != 2
            or not all(_is_number(one) for one in step)
            or not (0 <= step[1] <= 100 and 0 <= step[0] < INFINITE)
        ):
            raise BadParameterError(
                f"steps has {step!r}: accepted are seconds from 0 and a width of 0 to 100 percentiles"
            )
    if not steps or steps[0][0] != 0:
        raise BadParameterError("steps do not begin at 0 seconds; accepted is a first step such as [0, 2]")
    for (earlier, narrow), (later, wide) in pairwise(steps):
        if later <= earlier or wide < narrow:
            raise BadParameterError(
                f"steps has [{later:g}, {wide:g}] after [{earlier:g}, {narrow:g}]; accepted is a later one, no narrower"
            )


def _check_roles(roles: object, team_size: int, min_team_size: int | None) -> None:
    if not isinstance(roles, Mapping):
        raise BadParameterError(f"roles={roles!r}: accepted is a table of names and counts")
    for name, count in roles.items():
        if not isinstance(name, str) or isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise BadParameterError(f"roles has {name!r}: {count!r}; accepted is a name and a whole number from 1")
    smallest = team_size if min_team_size is None else min_team_size
    if sum(roles.values()) > smallest:
        raise BadParameterError(
            f"roles are {sum(roles.values())} players of each team; accepted are at most {smallest}, the smallest team"
        )
    if len(roles) > 8:
        raise BadParameterError(f"{len(roles)} roles; accepted are at most 8")
