"""A bound on the request bodies that a process holds in memory, in all, of each group of senders and of each sender."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple


class SenderGroup(NamedTuple):
    """Senders that share a part of the bound. part: the divisor of the bound that gives the bytes they may hold."""

    name: str
    part: int


class BodySender(NamedTuple):
    """The sender of bodies."""

    group: SenderGroup
    name: str


KEYS = SenderGroup("keys", 1)  # a sender is an API key
PAGES = SenderGroup("pages", 2)  # an address whose visitors are known
SIGNATURES = SenderGroup("signatures", 2)  # an address: a signature is verified when its body has arrived
STRANGERS = SenderGroup("strangers", 8)  # an address whose sender is not known


def players_of(issuer: str) -> SenderGroup:
    """The players whose tokens a key has issued; a sender is a player."""
    return SenderGroup(f"players of {issuer}", 8)


class BodyMemory:
    """The bytes of bodies that are held, by sender. Use it in the event loop's thread only.

    No sender may hold more than it leaves free of what its group may hold, so that there is room for others: one
    alone gets half of it, each of n alike the (n + 1)th part.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[BodySender] = Counter()
        self._of_group: Counter[SenderGroup] = Counter()
        self.total = 0

    def has_room(self, sender: BodySender, size: int) -> bool:
        """Whether a sender may hold this number of bytes more."""
        left = min(self._most - self.total, self._most // sender.group.part - self._of_group[sender.group]) - size
        return self._held[sender] + size <= left

    def take(self, sender: BodySender, size: int) -> bool:
        """Count bytes of a sender; False, without counting, if there is no room for them."""
        if not self.has_room(sender, size):
            return False
        self._held[sender] += size
        self._of_group[sender.group] += size
        self.total += size
        return True

    def give_back(self, sender: BodySender, size: int) -> None:
        """Count bytes of a sender no more."""
        self.total -= size
        self._held[sender] -= size
        self._of_group[sender.group] -= size
        if not self._held[sender]:
            del self._held[sender]
        if not self._of_group[sender.group]:
            del self._of_group[sender.group]
