"""Finished matches as plain lists, a form that is cheap to fill from thousands of reports per second."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from evenmatch.match import Match
from evenmatch.match_context import write_context

Value = TypeVar("Value")


@dataclass(slots=True)
class ReportBatch:
    """Finished matches in the order in which they were sent, equivalent to a list of `Match`.

    per match   ids, played_at (microseconds), rated, duration (seconds; NaN: unknown), context (see write_context),
                teams (their number)
    per team    place, team_score (NaN: not recorded), sizes (number of players)
    per player  player (the name), score, seconds, performance, entry (NaN: not recorded), quit, keep
    """

    ids: list[str] = field(default_factory=list)
    played_at: list[int] = field(default_factory=list)
    rated: list[bool] = field(default_factory=list)
    duration: list[float] = field(default_factory=list)
    context: list[str | None] = field(default_factory=list)
    teams: list[int] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    team_score: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    player: list[str] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    performance: list[float] = field(default_factory=list)
    quit: list[bool] = field(default_factory=list)
    keep: list[bool] = field(default_factory=list)
    entry: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, matches: Sequence[Match], rated: Iterable[bool]) -> ReportBatch:
        """Convert matches; `rated` says for each whether it is to be rated."""
        return cls.of_fields(matches, [match.time for match in matches], [match.places for match in matches], rated)

    @classmethod
    def of_fields(
        cls, matches: Sequence[Any], played_at: list[int], places: Iterable[Sequence[int]], rated: Iterable[bool]
    ) -> ReportBatch:
        """Convert objects of any type with the fields of `Match`; times (microseconds) and places are separate."""
        teams = [team for match in matches for team in match.teams]
        slots = [slot for team in teams for slot in team.players]
        return cls(
            ids=[match.id for match in matches],
            played_at=played_at,
            rated=list(rated),
            duration=[number(match.duration) for match in matches],
            context=[write_context(match.context) if match.context else None for match in matches],
            teams=[len(match.teams) for match in matches],
            place=[place for of_match in places for place in of_match],
            team_score=[number(team.score) for team in teams],
            sizes=[len(team.players) for team in teams],
            player=[slot.player for slot in slots],
            score=[number(slot.score) for slot in slots],
            seconds=[number(slot.seconds) for slot in slots],
            performance=[number(slot.performance) for slot in slots],
            quit=[slot.quit for slot in slots],
            keep=[slot.keep for slot in slots],
            entry=[number(slot.entry) for slot in slots],
        )

    @classmethod
    def joined(cls, batches: Sequence[ReportBatch]) -> ReportBatch:
        """The matches of all these batches, in order."""
        if len(batches) == 1:
            return batches[0]
        return cls(*([value for reports in batches for value in getattr(reports, name)] for name in _COLUMNS))

    @staticmethod
    def shares(batches: Sequence[ReportBatch], values: list[Value]) -> list[list[Value]]:
        """Split the values of all matches into those of each batch."""
        return [values[begin:end] for begin, end in pairwise([0, *accumulate(map(len, batches))])]

    def __len__(self) -> int:
        return len(self.ids)

    def parts(self, spans: Iterable[tuple[int, int]]) -> list[ReportBatch]:
        """For each (first, end) the matches from index `first` up to, but not including, `end`."""
        team = [0, *accumulate(self.teams)]
        slot = [0, *accumulate(self.sizes)]
        batches = []
        for first, end in spans:
            matches, teams = slice(first, end), slice(team[first], team[end])
            slots = slice(slot[teams.start], slot[teams.stop])
            rows = [matches] * 6 + [teams] * 3 + [slots] * 7
            batches.append(ReportBatch(*(getattr(self, name)[row] for name, row in zip(_COLUMNS, rows, strict=True))))
        return batches

    def players(self) -> list[int]:
        """The number of players of each match."""
        slot = [0, *accumulate(self.sizes)]
        return [slot[end] - slot[first] for first, end in pairwise([0, *accumulate(self.teams)])]

    def quitters(self, matches: Iterable[int]) -> dict[str, list[str]]:
        """The players who quit each of these matches (indices), by match id, omitting matches that nobody quit."""
        quitters_of: dict[str, list[str]] = {}
        if any(self.quit):
            slot = [0, *accumulate(self.sizes)]
            team = [0, *accumulate(self.teams)]
            for match in matches:
                slots = range(slot[team[match]], slot[team[match + 1]])
                names = [self.player[index] for index in slots if self.quit[index]]
                if names:
                    quitters_of[self.ids[match]] = names
        return quitters_of


_COLUMNS = [column.name for column in fields(ReportBatch)]


def number(value: float | None) -> float:
    """The value, or NaN for None."""
    return math.nan if value is None else value
