"""Immutable domain records: a Match has Teams, a Team has Appearances. Constructors validate their arguments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from numbers import Integral
from typing import Self

from evenmatch.errors import InputError
from evenmatch.match_context import Context, check_context
from evenmatch.times import EPOCH, implausible

_MICROSECOND = timedelta(microseconds=1)
LARGEST_PLACE = 2**31 - 1
HIGHEST_ENTRY = 1e9


@dataclass(frozen=True, slots=True)
class Appearance:
    """One player in one match. None means not recorded.

    score        points the player scored
    seconds      time in the game, 0 or more
    quit         left before the end and did not come back; a late joiner is not a quitter
    performance  from -1 (worst) to 1 (best); 0 is an average game
    keep         False: the match does not change this player's rating (a refund, an unrated guest)
    entry        a number known before the player's first match, such as a seed or a rating elsewhere, kept to seven
                 digits; `even` learns what it says about where newcomers start
    """

    player: str
    score: float | None = None
    seconds: float | None = None
    quit: bool = False
    performance: float | None = None
    keep: bool = True
    entry: float | None = None

    def __post_init__(self) -> None:
        _check_name("a player's name", self.player)
        _check_finite("score", self.score, self.player)
        _check_not_negative("seconds", self.seconds, self.player)
        if self.performance is not None and not -1 <= self.performance <= 1:
            raise InputError(f"performance of {self.player!r} is {self.performance}; expected a number from -1 to 1")
        if self.entry is not None:
            check_entry(self.player, self.entry)


@dataclass(frozen=True, slots=True)
class Team:
    """One side of a match: its players and its result.

    place  1 is best, equal places are a draw; None: derived from the teams' scores
    score  the team's score, for instance rounds won; higher is better
    """

    players: tuple[Appearance, ...]
    place: int | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "players", tuple(self.players))
        if not self.players:
            raise InputError("a team has no players; expected at least one")
        invalid = next((entry for entry in self.players if not isinstance(entry, Appearance)), None)
        if invalid is not None:
            raise InputError(f"a team contains {invalid!r}; expected Appearance objects, or use Team.of for names")
        if self.place is not None and not (_is_whole(self.place) and 1 <= self.place <= LARGEST_PLACE):
            expected = f"a whole number from 1 (the best) to {LARGEST_PLACE}"
            raise InputError(f"place is {self.place!r}; expected {expected}")
        _check_finite("score", self.score, "a team")

    @classmethod
    def of(cls, *players: str, place: int | None = None, score: float | None = None) -> Self:
        """Create a team from player names alone."""
        return cls(tuple(Appearance(player) for player in players), place, score)


@dataclass(frozen=True, slots=True)
class Match:
    """A finished match. `played_at` is when it ended, in the years 1800 to 2099; without time zone it is UTC.

    teams     two or more; the first is the home side
    duration  seconds, 0 or more; None: the longest `seconds` of any player
    context   what it was played on, such as {"map": "dust"}: up to four values by column; an empty one is unknown
    places    finishing place of each team, derived from the scores if the teams have none
    """

    id: str
    played_at: datetime
    teams: tuple[Team, ...]
    ladder: str = "default"
    duration: float | None = None
    context: Context = field(default_factory=dict, hash=False)
    places: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        _check_name("a match's id", self.id)
        _check_name("a ladder's name", self.ladder)
        object.__setattr__(self, "teams", tuple(self.teams))
        if not isinstance(self.played_at, datetime):
            raise InputError(f"played_at of match {self.id!r} is {self.played_at!r}; expected a datetime")
        if reason := implausible("played_at", self.time):
            raise InputError(f"match {self.id!r}: {reason}")
        if len(self.teams) < 2:
            raise InputError(f"match {self.id!r} has {len(self.teams)} team; expected two or more")
        names = [appearance.player for team in self.teams for appearance in team.players]
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise InputError(f"player {twice!r} appears more than once in match {self.id!r}; expected once")
        _check_not_negative("duration", self.duration, f"match {self.id!r}")
        check_context(self.context)
        object.__setattr__(self, "places", _places(self.id, self.teams))

    @property
    def time(self) -> int:
        """The end of the match in microseconds since the Unix epoch."""
        moment = self.played_at if self.played_at.tzinfo else self.played_at.replace(tzinfo=UTC)
        return (moment - EPOCH) // _MICROSECOND


def check_entry(player: str, number: float) -> None:
    """Raise InputError if `entry` of an appearance cannot be this number."""
    if not abs(number) <= HIGHEST_ENTRY:
        raise InputError(f"entry of {player!r} is {number}; expected a number from -1e9 to 1e9")


def places_by_score(scores: Iterable[float]) -> tuple[int, ...]:
    """Places for these team scores, higher is better: (3, 5, 3) gives (2, 1, 2)."""
    listed = list(scores)
    places: dict[float, int] = {}
    for ahead, score in enumerate(sorted(listed, reverse=True)):
        places.setdefault(score, ahead + 1)
    return tuple(places[score] for score in listed)


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


def _check_name(what: str, text: str) -> None:
    if not text:
        raise InputError(f"{what} is empty; expected at least one character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{what}, {text!r}, is not valid Unicode; expected text that UTF-8 can encode") from None


def _check_finite(what: str, value: float | None, owner: str) -> None:
    if value is not None and not math.isfinite(value):
        raise InputError(f"{what} of {owner!r} is {value}; expected a finite number, or None if not recorded")


def _check_not_negative(what: str, value: float | None, owner: str) -> None:
    if value is not None and not 0 <= value < math.inf:
        raise InputError(f"{what} of {owner!r} is {value}; expected a number from 0, or None if not recorded")
