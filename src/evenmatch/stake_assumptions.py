"""Assumptions about a coming match, on which the stakes of a line-up are based."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from evenmatch.errors import BadParameterError
from evenmatch.options import Checked, number, read_values


@dataclass(frozen=True)
class StakeAssumptions(Checked):
    """How the match is assumed to go, for systems that count more than its result. Raises BadParameterError."""

    seconds: float | None = number(
        600.0,
        1,
        1e6,
        "Length of the match in seconds; everyone plays all of it; none: times are not recorded.",
        optional=True,
    )
    win_score: float = number(2.0, 0, 1e6, "Score of the winning team and each of its players; in a draw, of everyone.")
    loss_score: float = number(1.0, 0, 1e6, "Score of the losing or last team and each of its players.")
    quit_after: float = number(0.5, 0, 1, "Share of the match after which a quitter leaves.")
    performance: float | None = number(
        None, -1, 1, "Performance of every player, from -1 (poor) to 1 (good); none: not recorded.", optional=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.win_score < self.loss_score:
            raise BadParameterError(
                f"win_score={self.win_score:g} is below loss_score={self.loss_score:g}; expected at least that"
            )

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Self:
        """Create assumptions from values by name, with defaults for the rest; text is parsed.

        Raises UnknownNameError or BadParameterError.
        """
        return cls(**read_values(cls, "assumption", values))
