"""The wait that a queue should keep for most of its players, stated by the operator."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.options import Checked, number

SHORTEST, LONGEST = 5.0, 3600.0  # seconds
FEWEST, MOST = 0.5, 0.99  # shares
IN_WORDS = {0.5: "half", 0.75: "three of four", 0.8: "four of five", 0.9: "nine of ten", 0.95: "19 of 20"}


@dataclass(frozen=True, kw_only=True)
class WaitTarget(Checked):
    """A share of the players and the wait that they should not exceed, for example nine of ten within 90 s.

    Raises BadParameterError for a value that is out of range.
    """

    within: float = number(90.0, SHORTEST, LONGEST, "The longest wait of the share, in seconds.")
    share: float = number(0.9, FEWEST, MOST, "The share of the players who should be matched within that time.")

    @property
    def share_in_words(self) -> str:
        """The share as people say it: nine of ten."""
        return IN_WORDS.get(self.share, f"{self.share * 100:g} of 100")

    @property
    def in_words(self) -> str:
        """The target as people say it: nine of ten within 90 s."""
        return f"{self.share_in_words} within {self.within:g} s"
