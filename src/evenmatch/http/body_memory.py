"""A bound on the request bodies that a process holds in memory, in all and of each sender."""

from __future__ import annotations

from collections import Counter

STRANGERS = ""  # the sender of all bodies whose sender is not known


class BodyMemory:
    """The bytes of bodies that are held, by sender. Use it in the event loop's thread only.

    A known sender may hold half of the bound, so that there is room for others; strangers an eighth together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self.total = 0

    def take(self, sender: str, size: int) -> bool:
        """Count bytes of a sender; False, without counting, if there is no room for them."""
        share = self._most // 8 if sender == STRANGERS else self._most // 2
        if self.total + size > self._most or self._held[sender] + size > share:
            return False
        self._held[sender] += size
        self.total += size
        return True

    def give_back(self, sender: str, size: int) -> None:
        """Count bytes of a sender no more."""
        self.total -= size
        self._held[sender] -= size
        if not self._held[sender]:
            del self._held[sender]
