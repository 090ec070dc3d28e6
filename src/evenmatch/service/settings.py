"""The settings of a ladder beside its rating system: title, standings, team size, seasons."""

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
    """The settings of a ladder; none of them changes a rating.

    title      shown to people; the ladder's name if empty
    standings  placement matches, active window, divisions
    team_size  players of a full team; None: any
    reset      how a season begins by default: "full", "soft" or "none"
    factor     of a soft reset: the share of each player's distance from the mean that remains, 0..1
    archived   closed: no new matches, seasons or players in its queues; it can still be read
    """

    title: str = ""
    standings: StandingsRules = field(default_factory=StandingsRules)
    team_size: int | None = None
    reset: str = "soft"
    factor: float = 0.5
    archived: bool = False

    def __post_init__(self) -> None:
        if self.team_size is not None and self.team_size < 1:
            raise BadParameterError(f"team_size is {self.team_size}; expected a whole number from 1, or none")
        if not isinstance(self.archived, bool):
            raise BadParameterError(f"archived is {self.archived!r}; expected true or false")
        reset_factor(self.reset, self.factor)

    def check_open(self, ladder: str) -> None:
        """Raise ConflictError if the ladder is archived."""
        if self.archived:
            raise archived(ladder)

    def changed(self, changes: Mapping[str, object]) -> Settings:
        """A copy with other values by name: fields of this class and of StandingsRules (divisions also as pairs)."""
        own = {setting.name for setting in fields(self)} - {"standings"}
        inner = {setting.name for setting in fields(StandingsRules)}
        unknown = [name for name in changes if name not in own | inner]
        if unknown:
            raise UnknownNameError("setting", unknown[0], sorted(own | inner))
        changes = {name: value if name != "divisions" else _divisions(value) for name, value in changes.items()}
        standings = replace(self.standings, **{name: value for name, value in changes.items() if name in inner})  # type: ignore[arg-type]
        own_changes = {name: value for name, value in changes.items() if name in own}
        return replace(self, standings=standings, **own_changes)  # type: ignore[arg-type]

    def plain(self) -> dict[str, object]:
        """All settings as JSON values."""
        rules = self.standings
        return {
            "title": self.title,
            "team_size": self.team_size,
            "reset": self.reset,
            "factor": self.factor,
            "placement": rules.placement,
            "active_days": rules.active_days,
            "divisions": [[division.name, division.lowest] for division in rules.divisions],
            "division_margin": rules.division_margin,
            "archived": self.archived,
        }

    def write(self) -> str:
        """The JSON text that is stored in the ladder's row."""
        return json.dumps(self.plain(), sort_keys=True, ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> Settings:
        """Parse what `write` returned. Raises StoreError if it is damaged."""
        try:
            return cls().changed(json.loads(text))
        except (ValueError, TypeError, AttributeError, EvenmatchError) as error:
            raise StoreError(f"the settings of a ladder are damaged ({error}); restore them from a backup") from error


def archived(ladder: str) -> ConflictError:
    """The error for an attempt to add something to an archived ladder."""
    return ConflictError(f"ladder {ladder!r} is archived, so nothing is added to it; an operator can reopen it")


def _divisions(value: object) -> tuple[Division, ...]:
    """Divisions from pairs of name and lowest percentile."""
    try:
        return tuple(Division(str(name), int(lowest)) for name, lowest in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise BadParameterError(
            f"divisions are {value!r}; expected pairs of a name and the lowest percentile, lowest first"
        ) from None


def reset_factor(reset: str, factor: float) -> float:
    """The share of each player's distance from the mean that a new season keeps, 0..1. Raises BadParameterError."""
    if reset in RESETS:
        return RESETS[reset]
    if reset != "soft":
        raise BadParameterError(f"reset is {reset!r}; expected full, soft or none")
    if not 0 <= factor <= 1:
        raise BadParameterError(f"factor is {factor}; expected a number from 0 (as full) to 1 (as none)")
    return float(factor)
