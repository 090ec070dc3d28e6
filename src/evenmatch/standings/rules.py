"""The settings of a ladder that decide who is listed, and in which division."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.options import Checked, choice, number, structure, whole
from evenmatch.standings.division import DIVISIONS, Division, checked

CENTURY = 36_525  # days
LEAVE, PERCENTILE, RATING = "leave", "percentile", "rating"  # rules of inactivity
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

    inactivity: str = choice(
        LEAVE,
        (LEAVE, PERCENTILE, RATING),
        "Loss by inactivity: only the place in the standings, after active_days; or shown percentiles too; or rating.",
    )
    grace_days: float = number(
        14.0, 0, CENTURY, "Days after a completed match in which no percentile or rating falls by inactivity."
    )
    percentile_decay: float = number(
        1.0, 0, 100, "Percentiles that an inactive player's shown percentile falls per day after the grace days."
    )
    percentile_floor: int = whole(1, 1, 100, "Lowest percentile to which inactivity lowers a shown percentile.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("active_days", "grace_days", "percentile_decay"):
            object.__setattr__(self, name, float(getattr(self, name)))
        checked(self.divisions)
