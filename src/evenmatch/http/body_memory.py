"""A bound on the request bodies that a process holds in memory, in all and of each sender."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple


class BodySender(NamedTuple):
    """The sender of bodies. part: the divisor of the bound that gives the bytes they may hold."""

    name: str
    part: int = 2


STRANGERS = BodySender("", 8)  # of all bodies whose sender is not known
SIGNATURES = BodySender("signatures")  # of all signed bodies: a signature is verified when its body has arrived


class BodyMemory:
    """The bytes of bodies that are held, by sender. Use it in the event loop's thread only.

    No sender may hold more than half of the bound, so that there is room for others; strangers an eighth together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[BodySender] = Counter()
        self.total = 0

    def take(self, sender: BodySender, size: int) -> bool:
        """Count bytes of a sender; False, without counting, if there is no room for them."""
        if self.total + size > self._most or self._held[sender] + size > self._most // sender.part:
            return False
        self._held[sender] += size
        self.total += size
        return True

    def give_back(self, sender: BodySender, size: int) -> None:
        """Count bytes of a sender no more."""
        self.total -= size
        self._held[sender] -= size
        if not self._held[sender]:
            del self._held[sender]
