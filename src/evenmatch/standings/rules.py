"""The settings of a ladder that decide who is listed, and in which division."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from evenmatch.options import Checked, choice, number, structure, whole
from evenmatch.standings.division import DIVISIONS, Division, checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evenmatch.history import Flags, Floats

CENTURY = 36_525  # days
WINDOW = 8  # completed matches over which rating changes are averaged, and before which no move is expected
AUTO: Final = "auto"  # automatic placement, see standings.placement
LEAVE, PERCENTILE, RATING = "leave", "percentile", "rating"  # rules of inactivity
LARGEST_COUNT = 2**31 - 1  # limit of whole numbers that need no other


@dataclass(frozen=True)
class StandingsRules(Checked):
    """The standings settings of a ladder. Raises BadParameterError or InputError for invalid values."""

    placement: int | Literal["auto"] = whole(
        10,
        0,
        LARGEST_COUNT,
        "Matches that a player must complete to be listed; auto: until the player's percentile has steadied.",
        word=AUTO,
    )
    placement_bound: float = number(
        5.0, 0.5, 50, "With placement=auto: percentiles below which the expected move by the next match must fall."
    )
    placement_most: int = whole(
        50, WINDOW, LARGEST_COUNT, "With placement=auto: completed matches after which a player is listed in any case."
    )
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
        for name in ("placement_bound", "active_days", "grace_days", "percentile_decay"):
            object.__setattr__(self, name, float(getattr(self, name)))
        checked(self.divisions)

    @property
    def fewest_matches(self) -> int:
        """Fewest completed matches of a placed player."""
        return WINDOW if self.placement == AUTO else self.placement

    def placed(self, completed: NDArray[np.int64], expected_move: Floats) -> Flags:
        """Mask of placed players, by completed matches and lowest expected move (see standings.placement)."""
        enough: Flags = completed >= self.fewest_matches
        if self.placement != AUTO:
            return enough
        return enough & ((expected_move < self.placement_bound) | (completed >= self.placement_most))
