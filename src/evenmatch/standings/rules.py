"""The settings of a ladder that decide who is listed, and in which division."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.options import Checked, number, structure, whole
from evenmatch.standings.division import DIVISIONS, Division, checked

CENTURY = 36_525  # days
MOST = 2**31 - 1  # of a whole number without a limit of its own


@dataclass(frozen=True)
class StandingsRules(Checked):
    """The standings settings of a ladder. Raises BadParameterError or InputError for invalid values."""

    placement: int = whole(10, 0, MOST, "Matches that a player must complete to be listed.")
    active_days: float = number(30.0, 0, CENTURY, "List players who completed a match in the last N days.")
    divisions: tuple[Division, ...] = structure(DIVISIONS, "Divisions; the lowest begins at percentile 1.")
    division_margin: int = whole(
        3, 0, 100, "Percentiles below its lower limit at which a player still keeps a division."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "active_days", float(self.active_days))
        checked(self.divisions)
