"""What a ladder decided beside its rating system: how it looks, who counts, how seasons begin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from evenmatch.errors import BadParameterError, ConflictError, EvenmatchError, StoreError, UnknownNameError
from evenmatch.standings.board import StandingsRules
from evenmatch.standings.division import Division

RESETS = {"full": 0.0, "none": 1.0}  # and "soft", whose factor is the ladder's


@dataclass(frozen=True)
class Settings:
    """Presentation and habits of a ladder; none of it changes a rating.

    title      what people read; the ladder's name where empty
    standings  placement matches, active window, divisions
    team_size  players of a full team; None: any
    reset      how a season begins unless it says otherwise: "full", "soft" or "none"
    factor     of a soft reset: what is left of everybody's distance from the mean, 0..1
    archived   nothing is added any more: no matches, no players in its queues, no seasons; it can be read as before
    """

    title: str = ""
    standings: StandingsRules = field(default_factory=StandingsRules)
    team_size: int | None = None
    reset: str = "soft"
    factor: float = 0.5
    archived: bool = False

    def __post_init__(self) -> None:
        if self.team_size is not None and self.team_size < 1:
            raise BadParameterError(f"team_size is {self.team_size}; accepted is a whole number from 1, or none")
        if not isinstance(self.archived, bool):
            raise BadParameterError(f"archived is {self.archived!r}; expected true or false")
        reset_factor(self.reset, self.factor)

    def check_open(self, ladder: str) -> None:
        """Raise ConflictError where the ladder is archived."""
        if self.archived:
            raise archived(ladder)

    def changed(self, changes: Mapping[str, object]) -> Settings:
        """These settings with others by name: those above, and those of StandingsRules (divisions as pairs, too)."""
        own = {one.name for one in fields(self)} - {"standings"}
        inner = {one.name for one in fields(StandingsRules)}
        unknown = [name for name in changes if name not in own | inner]
        if unknown:
            raise UnknownNameError("setting", unknown[0], sorted(own | inner))
        changes = {name: value if name != "divisions" else _divisions(value) for name, value in changes.items()}
        standings = replace(self.standings, **{name: value for name, value in changes.items() if name in inner})  # type: ignore[arg-type]
        kept = {name: value for name, value in changes.items() if name in own}
        return replace(self, standings=standings, **kept)  # type: ignore[arg-type]

    def plain(self) -> dict[str, object]:
        """All of it as JSON knows it."""
        rules = self.standings
        return {
            "title": self.title,
            "team_size": self.team_size,
            "reset": self.reset,
            "factor": self.factor,
            "placement": rules.placement,
            "active_days": rules.active_days,
            "divisions": [[one.name, one.lowest] for one in rules.divisions],
            "division_margin": rules.division_margin,
            "archived": self.archived,
        }

    def write(self) -> str:
        """For the ladder's row."""
        return json.dumps(self.plain(), sort_keys=True, ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> Settings:
        """What `write` wrote."""
        try:
            return cls().changed(json.loads(text))
        except (ValueError, TypeError, AttributeError, EvenmatchError) as error:
            raise StoreError(f"the settings of a ladder are damaged ({error}); a backup has them") from error


def archived(ladder: str) -> ConflictError:
    """Why nothing is added to a ladder."""
    return ConflictError(f"ladder {ladder!r} is archived, so nothing is added to it; an operator can reopen it")


def _divisions(value: object) -> tuple[Division, ...]:
    """Divisions from (name, lowest) each."""
    try:
        return tuple(Division(str(name), int(lowest)) for name, lowest in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise BadParameterError(
            f"divisions are {value!r}; accepted are pairs of a name and the lowest percentile, lowest first"
        ) from None


def reset_factor(reset: str, factor: float) -> float:
    """What a season leaves of everybody's distance from the mean. Raises BadParameterError."""
    if reset in RESETS:
        return RESETS[reset]
    if reset != "soft":
        raise BadParameterError(f"reset is {reset!r}; accepted is full, soft or none")
    if not 0 <= factor <= 1:
        raise BadParameterError(f"factor is {factor}; accepted is a number from 0 (as full) to 1 (as none)")
    return float(factor)
