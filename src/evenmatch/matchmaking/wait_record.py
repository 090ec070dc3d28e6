"""A queue's memory of the waits that it estimated and of those that followed, to calibrate later estimates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats

MOST = 500  # estimates kept of each kind
NEAREST = 100  # of these: those of similar size, from which an estimate is calibrated
FEW = 30  # with fewer matched tickets among them, the assumed factors count too
SAMPLE = 4  # estimates remembered per second
QUANTILES = (0.5, 0.9)


class WaitKind(NamedTuple):
    """Tickets whose waits are compared. size: players; at_once: an opponent of a duel waits already."""

    size: int
    strict: bool
    newcomers: bool
    at_once: bool = False


class ExpectedWait(NamedTuple):
    """The further wait of a ticket before calibration.

    seconds  the mean time in which the missing players arrive
    median, upper  assumed quantiles of the wait (half, nine of ten), as multiples of `seconds`
    """

    kind: WaitKind
    seconds: float
    median: float
    upper: float


class WaitEstimate(NamedTuple):
    """An estimated further wait in seconds: half of the tickets wait less than `estimate`, nine of ten than `upper`."""

    estimate: float
    upper: float


@dataclass(slots=True)
class _Remembered:
    """A ticket with an estimate. waited: in seconds, until `is_matched` or until it left; None: it still waits."""

    since: int
    seconds: float
    waited: float | None = None
    is_matched: bool = False


class WaitRecord:
    """Estimates of a queue and the waits that followed, by kind. It never influences which matches are made."""

    def __init__(self) -> None:
        self._kinds: dict[WaitKind, deque[_Remembered]] = {}
        self._open: dict[int, _Remembered] = {}  # by ticket
        self._second, self._room = -1, 0  # the second of the latest estimate, and how many more it may have

    def room(self, now: int) -> int:
        """How many estimates may be added in this second."""
        return self._room if now // SECOND == self._second else SAMPLE

    def add(self, ticket: int, expected: ExpectedWait, now: int) -> None:
        """Remember an expected wait as of this time."""
        self._room, self._second = self.room(now) - 1, now // SECOND
        entry = _Remembered(now, expected.seconds)
        self._kinds.setdefault(expected.kind, deque(maxlen=MOST)).append(entry)
        self._open[ticket] = entry

    def end(self, tickets: Iterable[int], now: int, *, is_matched: bool) -> None:
        """Note that tickets found a match or left without one; those that are not remembered are ignored."""
        for ticket in tickets:
            if (entry := self._open.pop(ticket, None)) is not None:
                entry.waited, entry.is_matched = max(now - entry.since, 0) / SECOND, is_matched

    def calibrated(self, expected: ExpectedWait, now: int) -> WaitEstimate:
        """The quantiles of the wait, from the latest waits of this kind for which a similar time was expected.

        Each ratio of a wait to the expected time counts; tickets that still wait, or left, count as waits that are at
        least as long (Kaplan and Meier 1958), so a new queue does not take the first matches as typical.
        """
        factors = [expected.median, expected.upper]
        entries = self._kinds.get(expected.kind)
        if entries:
            ratios, matched = _ratios(list(entries), expected.seconds, now)
            share = min(int(matched.sum()) / FEW, 1.0)
            longest = float(ratios.max())
            for place, known in enumerate(quantiles(ratios, matched, QUANTILES)):
                factors[place] = (
                    max(factors[place], longest) if known is None else share * known + (1 - share) * factors[place]
                )
        median, upper = factors
        return WaitEstimate(expected.seconds * median, expected.seconds * max(median, upper))


def quantiles(waits: Floats, ended: Flags, shares: Iterable[float]) -> list[float | None]:
    """The quantiles of waits, some of them still going on; None: beyond the longest. By Kaplan and Meier (1958)."""
    order = np.lexsort((~ended, waits))
    at_risk = len(waits) - np.arange(len(waits))
    over = 1 - np.cumprod(1 - ended[order] / at_risk)
    places = np.searchsorted(over, np.array(list(shares)) - 1e-12).tolist()
    return [float(waits[order[place]]) if place < len(waits) else None for place in places]


def _ratios(entries: list[_Remembered], seconds: float, now: int) -> tuple[Floats, Flags]:
    """Waits as multiples of the times expected, of the NEAREST to these seconds; and whether they ended in a match."""
    expected = np.array([entry.seconds for entry in entries])
    waited = np.array(
        [max(now - entry.since, 0) / SECOND if entry.waited is None else entry.waited for entry in entries]
    )
    matched = np.array([entry.is_matched for entry in entries])
    near = np.argsort(np.abs(np.log(expected / seconds)), kind="stable")[:NEAREST]
    return waited[near] / expected[near], matched[near]
