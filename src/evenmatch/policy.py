"""Policies: the matchmaker's limits and preferences as data, with presets; target waits of queues."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any

from evenmatch.attributes import Attribute, attributes_of, check_size, names_of
from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.options import Checked, choice, known_values, number, options_of, structure, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from evenmatch.history import Floats


MOST_PLAYERS = 256  # in a match
LARGEST_TEAM = 50
Step = tuple[float, float]
INFINITE = float("inf")
OVERDUE_TIMES = 16.0  # an overdue wait, as a multiple of the mean wait; also its limit as a multiple of `overdue_after`
LARGEST_NUMBER = 1_000_000  # seconds, points or milliseconds: beyond any useful value


@dataclass(frozen=True, kw_only=True)
class Policy(Checked):
    """The rules of one queue. Raises BadParameterError for a value outside the range of its option.

    Times are in seconds, widths in percentiles (0..100), costs in equivalent seconds of waiting.
    """

    team_size: int = whole(6, 1, LARGEST_TEAM, "Players in each team.")
    teams: int = whole(2, 2, MOST_PLAYERS, "Teams in a match; teams of one player are a free-for-all.")
    min_team_size: int | None = whole(
        None,
        1,
        LARGEST_TEAM,
        "The smallest team size allowed after a long wait; none: teams are always full.",
        optional=True,
    )
    smaller_after: float = number(120.0, 0, LARGEST_NUMBER, "The wait before a player may be put into smaller teams.")
    steps: tuple[Step, ...] = structure(
        ((0.0, 4.5), (60.0, 10.0), (90.0, 20.0), (120.0, 40.0), (240.0, 100.0)),
        "How a loose filter widens with waiting: pairs of seconds waited and width in percentiles.",
    )
    max_odds: float | None = number(
        0.6,
        0.5,
        1.0,
        "The highest predicted chance of winning for a team; with three or more teams, of the best against the worst.",
        optional=True,
    )
    max_rating_spread: float | None = number(
        None,
        0,
        LARGEST_NUMBER,
        "The largest difference between the highest and the lowest rating in a match.",
        optional=True,
    )
    odds_scale: float = number(
        400.0,
        0.001,
        LARGEST_NUMBER,
        "Rating difference between two teams' means that gives odds of ten to one, by Elo's curve.",
    )
    max_ping: float | None = number(
        None,
        0,
        LARGEST_NUMBER,
        "The highest ping of any player to the region of the match, in milliseconds.",
        optional=True,
    )
    max_wait: float | None = number(
        None, 0, LARGEST_NUMBER, "The longest wait of a ticket; then it expires.", optional=True
    )
    overdue_after: float | None = number(
        240.0,
        0,
        LARGEST_NUMBER,
        "Loose tickets that have waited this long come first, and players are reserved for them; where the mean wait "
        "is long, 16 times the mean wait counts instead, up to 16 times this value; none: never.",
        optional=True,
    )
    party_wait: float = number(5.0, 0, LARGEST_NUMBER, "Cost of a match whose teams have different party sizes.")
    newcomer_wait: float = number(
        20.0, 0, LARGEST_NUMBER, "Cost of a match that mixes players in placement with others."
    )
    rematch_wait: float = number(30.0, 0, LARGEST_NUMBER, "Cost of meeting a player again immediately.")
    rematch_fade: float = number(
        1800.0, 1, LARGEST_NUMBER, "Seconds over which the cost of a rematch falls linearly to zero."
    )
    even_spread: float = number(
        4.5,
        0,
        100,
        "The spread, in percentiles from the lowest to the highest player, up to which a match may skip players in "
        "between. Players of a wider match must be neighbours in the queue. Filters limit both.",
    )
    spread_cost: float = number(
        30.0,
        0,
        LARGEST_NUMBER,
        "Cost per percentile of spread when possible matches compete for players; 0: make as many as possible.",
    )
    odds_cost: float = number(
        2.0, 0, LARGEST_NUMBER, "Cost per percent away from even odds when players are split into teams."
    )
    roles: Mapping[str, int] = structure(
        {}, "How many players of each role every team needs; each player gets one of the roles they offer."
    )
    attributes: Mapping[str, Attribute] = structure(
        {},
        "Attributes that all players of a match agree on, by name: a table with kind (equal or meet), values, and "
        "worth in seconds (none: no match without agreement).",
    )
    maps: tuple[str, ...] = structure((), "Maps; a match is played on a map that all its players accept.")
    vetoes: int = whole(0, 0, 63, "How many maps a player may veto.")
    map_choice: str = choice(
        "balanced",
        ("balanced", "even"),
        "How one of the maps that all accept is chosen: balanced draws it, seldom the last one again; even takes the "
        "one with the most even odds, none more than about twice as often as another. Its cost: maps repeat sooner, "
        "and favourites play less often where they are strong. The ladder must learn from the context column map.",
    )
    map_seed: int = whole(1, 0, 2**32 - 1, "Seed of the random choice of map.")
    odds: Callable[[Any], Floats] | None = None  # see matchmaking.OddsFunction

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_steps(self.steps)
        object.__setattr__(self, "steps", tuple((float(after), float(width)) for after, width in self.steps))
        _check_roles(self.roles, self.team_size, self.min_team_size)
        object.__setattr__(self, "roles", dict(sorted(self.roles.items())))
        object.__setattr__(self, "attributes", attributes_of(self.attributes))
        object.__setattr__(self, "maps", names_of("maps", self.maps))
        check_size(self.attributes.values(), self.maps)
        if self.maps and self.vetoes >= len(self.maps):
            raise BadParameterError(f"vetoes={self.vetoes}: expected fewer than the {len(self.maps)} maps")
        if self.odds is not None and not callable(self.odds):
            raise BadParameterError(f"odds={self.odds!r}: expected a function of line-ups, or none")
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

    def width(self, waited: float) -> float:
        """The width of a loose filter after `waited` seconds, in percentiles."""
        return max(width for after, width in self.steps if after <= max(waited, 0.0))

    def overdue_from(self, mean_wait: float) -> float:
        """The wait in seconds after which a loose ticket is overdue, if players wait `mean_wait` seconds on average.

        In a queue where everybody waits long, a ticket is overdue only after OVERDUE_TIMES the mean wait.
        """
        if self.overdue_after is None:
            return INFINITE
        return max(self.overdue_after, OVERDUE_TIMES * min(mean_wait, self.overdue_after))

    def open_to_all_after(self, mean_wait: float) -> float:
        """The wait in seconds after which a loose ticket can be matched with any other loose ticket.

        By then it is overdue, so players are reserved for it until their filters have reached the last step too.
        """
        return self.overdue_from(mean_wait) + self.steps[-1][0]

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Policy:
        """Create a policy from TOML or JSON data, starting from its `preset` (`balanced` by default).

        Raises UnknownNameError for an unknown option or preset, BadParameterError for an invalid value.
        """
        values = dict(data)
        name = values.pop("preset", "balanced")
        if not isinstance(name, str) or name not in presets():
            raise UnknownNameError("policy", str(name), presets())
        return dataclasses.replace(presets()[name], **_typed(known_values(cls, "option of a policy", values)))

    def to_data(self) -> dict[str, object]:
        """All options except `odds`, ready for JSON."""
        data = {name: getattr(self, name) for name in options_of(Policy)}
        attributes = {name: attribute.to_data() for name, attribute in self.attributes.items()}
        structures = {"steps": [list(step) for step in self.steps], "roles": dict(self.roles), "maps": list(self.maps)}
        return data | structures | {"attributes": attributes}


def presets() -> dict[str, Policy]:
    """The named policies; the first is the default."""
    return {
        "balanced": Policy(),
        "quick": Policy(
            steps=((0.0, 9.0), (30.0, 20.0), (60.0, 40.0), (120.0, 100.0)),
            max_odds=0.7,
            overdue_after=120.0,
            party_wait=0.0,
            newcomer_wait=5.0,
            rematch_wait=10.0,
        ),
        "fair": Policy(
            steps=((0.0, 2.5), (120.0, 5.0), (240.0, 10.0), (360.0, 20.0), (480.0, 40.0), (600.0, 100.0)),
            even_spread=2.5,
            max_odds=0.55,
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
    """Whether the value is a number that float can represent, and not NaN."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return not math.isnan(float(value))
    except OverflowError:
        return False


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
                f"steps has [{later:g}, {wide:g}] after [{earlier:g}, {narrow:g}]; "
                "expected a later step that is at least as wide"
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
            f"roles need {sum(roles.values())} players per team; expected at most {smallest}, the smallest team size"
        )
    if len(roles) > 8:
        raise BadParameterError(f"{len(roles)} roles; expected at most 8")


SHORTEST_TARGET, LONGEST_TARGET = 5.0, 3600.0  # seconds
FEWEST_SHARE, MOST_SHARE = 0.5, 0.99  # shares
IN_WORDS = {0.5: "half", 0.75: "three of four", 0.8: "four of five", 0.9: "nine of ten", 0.95: "19 of 20"}


@dataclass(frozen=True, kw_only=True)
class WaitTarget(Checked):
    """A target wait for a share of the players, for example nine of ten within 90 s.

    Raises BadParameterError for a value out of range.
    """

    within: float = number(
        90.0, SHORTEST_TARGET, LONGEST_TARGET, "The wait that this share of the players should not exceed, in seconds."
    )
    share: float = number(
        0.9, FEWEST_SHARE, MOST_SHARE, "The share of the players who should be matched within that time."
    )

    @property
    def share_in_words(self) -> str:
        """The share as people say it: nine of ten."""
        return IN_WORDS.get(self.share, f"{self.share * 100:g} of 100")

    @property
    def in_words(self) -> str:
        """The target as people say it: nine of ten within 90 s."""
        return f"{self.share_in_words} within {self.within:g} s"
