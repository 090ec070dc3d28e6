"""Assumptions about the match to come behind the stakes of a line-up, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.options import Checked, number, options_of, shown


@dataclass(frozen=True)
class StakeAssumptions(Checked):
    """How the match is assumed to go, where a system counts more than its result. Raises BadParameterError."""

    seconds: float | None = number(
        600.0,
        1,
        1e6,
        "Seconds that the match lasts and everybody plays; none: times are not recorded.",
        optional=True,
    )
    win_score: float = number(2.0, 0, 1e6, "Score of the winning team and of each of its players; in a draw of all.")
    loss_score: float = number(1.0, 0, 1e6, "Score of the losing team, or the last one, and of each of its players.")
    quit_after: float = number(0.5, 0, 1, "Share of the match after which a player who quits leaves.")
    performance: float | None = number(
        None, -1, 1, "Performance of every player, -1 poor to 1 good; none: not recorded.", optional=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.win_score < self.loss_score:
            raise BadParameterError(
                f"win_score={self.win_score:g} is below loss_score={self.loss_score:g}; expected at least as much"
            )

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Self:
        """Create assumptions from values by name, defaults elsewhere; text is parsed.

        Raises UnknownNameError or BadParameterError.
        """
        options = options_of(cls)
        read: dict[str, float | None] = {}
        for name, value in values.items():
            if name not in options:
                raise UnknownNameError("assumption", name, options)
            try:
                read[name] = options[name].read(value)
            except (ValueError, TypeError, OverflowError):
                raise BadParameterError(f"{name}={shown(value)}: expected {options[name].accepts}") from None
        return cls(**read)  # type: ignore[arg-type] # each option has read its own
