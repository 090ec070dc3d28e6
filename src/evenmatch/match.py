"""The domain's frozen records: a Match of Teams of Appearances. Whatever was constructed is valid."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from numbers import Integral
from typing import Self

from evenmatch.errors import InputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
LARGEST_PLACE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Appearance:
    """One player in one match. None: not recorded.

    score        points of the player in the match
    seconds      in the game, 0 or more
    quit         left before the end and did not come back; a late joiner is not a quitter
    performance  −1 (as poor as can be) to 1 (as good as can be), 0 is an average game
    keep         False: the match does not change this player's rating (a refund, an unrated guest)
    """

    player: str
    score: float | None = None
    seconds: float | None = None
    quit: bool = False
    performance: float | None = None
    keep: bool = True

    def __post_init__(self) -> None:
        _named("a player's name", self.player)
        _finite("score", self.score, self.player)
        _at_least_zero("seconds", self.seconds, self.player)
        if self.performance is not None and not -1 <= self.performance <= 1:
            raise InputError(f"performance of {self.player!r} is {self.performance}; accepted is a number from -1 to 1")


@dataclass(frozen=True, slots=True)
class Team:
    """A side of a match: who was on it and how it finished.

    place  1 is best, equal places are a draw; None: derived from the teams' scores
    score  the team's, for instance rounds won; higher is better
    """

    players: tuple[Appearance, ...]
    place: int | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "players", tuple(self.players))
        if not self.players:
            raise InputError("a team has no players; accepted are one or more")
        stranger = next((one for one in self.players if not isinstance(one, Appearance)), None)
        if stranger is not None:
            raise InputError(f"a team holds {stranger!r}; accepted are Appearances, or names by Team.of")
        if self.place is not None and not (_is_whole(self.place) and 1 <= self.place <= LARGEST_PLACE):
            accepted = f"whole numbers from 1 (the best) to {LARGEST_PLACE}"
            raise InputError(f"place is {self.place!r}; accepted are {accepted}")
        _finite("score", self.score, "a team")

    @classmethod
    def of(cls, *players: str, place: int | None = None, score: float | None = None) -> Self:
        """A team of players of whom only the names are recorded."""
        return cls(tuple(Appearance(player) for player in players), place, score)


@dataclass(frozen=True, slots=True)
class Match:
    """A finished match. `played_at` is when it ended, taken as UTC where it names no zone.

    teams     two or more, in the order in which they are listed (the first is the home side)
    duration  seconds, 0 or more; None: the longest `seconds` of any player
    places    finishing place per team, derived from the scores where the teams name none
    """

    id: str
    played_at: datetime
    teams: tuple[Team, ...]
    ladder: str = "default"
    duration: float | None = None
    places: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        _named("a match's id", self.id)
        _named("a ladder's name", self.ladder)
        object.__setattr__(self, "teams", tuple(self.teams))
        if not isinstance(self.played_at, datetime):
            raise InputError(f"played_at of match {self.id!r} is {self.played_at!r}; accepted is a datetime")
        if len(self.teams) < 2:
            raise InputError(f"match {self.id!r} has {len(self.teams)} team; accepted are two or more")
        names = [appearance.player for team in self.teams for appearance in team.players]
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise InputError(f"player {twice!r} appears more than once in match {self.id!r}; accepted is once")
        _at_least_zero("duration", self.duration, f"match {self.id!r}")
        object.__setattr__(self, "places", _places(self.id, self.teams))

    @property
    def time(self) -> int:
        """When the match ended, in microseconds since the Unix epoch."""
        moment = self.played_at if self.played_at.tzinfo else self.played_at.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND


def places_by_score(scores: Iterable[float]) -> tuple[int, ...]:
    """Places of teams with these scores, higher is better: (3, 5, 3) gives (2, 1, 2)."""
    listed = list(scores)
    return tuple(1 + sum(other > score for other in listed) for score in listed)


def _places(match_id: str, teams: tuple[Team, ...]) -> tuple[int, ...]:
    places = [team.place for team in teams if team.place is not None]
    if len(places) == len(teams):
        return tuple(places)
    if places:
        raise InputError(f"match {match_id!r} has a place for {len(places)} of {len(teams)} teams; give all or none")
    scores = [team.score for team in teams if team.score is not None]
    if len(scores) < len(teams):
        raise InputError(f"match {match_id!r} has neither a place nor a score for every team; give one of them")
    return places_by_score(scores)


def _is_whole(number: object) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _named(what: str, text: str) -> None:
    if not text:
        raise InputError(f"{what} is empty; accepted is any text with at least one character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{what}, {text!r}, holds half a letter; accepted is text that UTF-8 can hold") from None


def _finite(what: str, value: float | None, whose: str) -> None:
    if value is not None and not math.isfinite(value):
        raise InputError(f"{what} of {whose!r} is {value}; accepted is a finite number, or None where not recorded")


def _at_least_zero(what: str, value: float | None, whose: str) -> None:
    if value is not None and not 0 <= value < math.inf:
        raise InputError(f"{what} of {whose!r} is {value}; accepted is a number from 0, or None where not recorded")
