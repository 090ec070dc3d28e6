"""A bound on the request bodies that a process holds in memory, and bodies that can be read twice.

The bound holds for all bodies, for each group of senders and for each sender.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from starlette.types import Message, Receive

SMALL_BODY = 128 * 1024  # bytes of bodies that are not of match reports or starting ratings


class SenderGroup(NamedTuple):
    """Senders that share a part of the bound.

    part    the divisor of the bound that gives the bytes they may hold
    bodies  the most that one of them may send at once; None: any number
    """

    name: str
    part: int
    bodies: int | None = None


class BodySender(NamedTuple):
    """The sender of bodies."""

    group: SenderGroup
    name: str


KEYS = SenderGroup("keys", 1)  # a sender is an API key
PAGES = SenderGroup("pages", 2)  # an address whose visitors are known
SIGNATURES = SenderGroup("signatures", 2, 8)  # an address: a signature is verified when its body has arrived
VERIFIED = SenderGroup("verified signatures", 2)  # an address whose last signature was verified lately
STRANGERS = SenderGroup("strangers", 8)  # an address whose sender is not known


def players_of(issuer: str) -> SenderGroup:
    """The players whose tokens a key has issued; a sender is a player."""
    return SenderGroup(f"players of {issuer}", 8)


def least_memory(body_limit: int) -> int:
    """The bytes that a process must hold for a body of the limit to arrive from each group that may send it.

    One sender alone gets half of the part of its group; a quarter is added for the cost of pieces.
    """
    signed, of_player = 4 * body_limit, 16 * min(body_limit, SMALL_BODY)
    return max(signed, of_player) * 5 // 4


class BodyMemory:
    """The bytes of bodies that are held, by sender. Use it in the event loop's thread only.

    No sender may hold more than it leaves free of what its group may hold, so that there is room for others: one
    alone gets half of it, each of n alike the (n + 1)th part.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[BodySender] = Counter()
        self._of_group: Counter[SenderGroup] = Counter()
        self._bodies: Counter[BodySender] = Counter()
        self.total = 0

    def begin(self, sender: BodySender) -> bool:
        """Count a body that a sender begins to send, until `end`; False, without counting, if it sends too many."""
        if sender.group.bodies is not None and self._bodies[sender] >= sender.group.bodies:
            return False
        self._bodies[sender] += 1
        return True

    def end(self, sender: BodySender) -> None:
        """Count a body no more that `begin` has counted."""
        self._bodies[sender] -= 1
        if not self._bodies[sender]:
            del self._bodies[sender]

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


class ReplayableBody:
    """The messages of a body, which can be received again from the first one."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []

    async def whole(self) -> bytes | None:
        """Read the whole body; None if the client disconnected. Raises BodyRefusedError."""
        parts = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._read = [message]  # nothing is done with the part that came
                return None
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                body = b"".join(parts)
                self._read = [{"type": "http.request", "body": body, "more_body": False}]
                return body

    async def __call__(self) -> Message:
        """The next message, as ASGI `receive`."""
        if self._read:
            return self._read.pop(0)
        return await self._receive()
