"""Slots for deliveries in flight: shared so that slow receivers, or those of one ladder, do not hold all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evenmatch.ledger.tables.webhooks import Webhook
from evenmatch.service.webhooks.addresses import check_url

AT_ONCE = 64  # deliveries in flight; a ladder that has none may start one more
LADDER = 32  # of these, to the webhooks of one ladder, or to those of all ladders
RECEIVER = 4  # of a ladder to one host and port
FAILING = 16  # to all receivers whose last attempt failed; each has one slot
Receiver = tuple[str | None, str]  # ladder, and host and port: what one ladder's receiver does concerns no other


class Slots:
    """The slots in use. Use it in one thread at a time."""

    def __init__(self) -> None:
        self._receivers: Counter[Receiver] = Counter()
        self._ladders: Counter[str | None] = Counter()
        self._failing: frozenset[Receiver] = frozenset()

    def has_room(self, hook: Webhook) -> bool:
        """Whether one more delivery to this webhook may start."""
        if not self._ladders[hook.ladder]:
            return True
        receiver = receiver_of(hook)
        if self._receivers.total() >= AT_ONCE or self._ladders[hook.ladder] >= LADDER:
            return False
        if receiver in self._failing:
            failing = sum(count for name, count in self._receivers.items() if name in self._failing)
            return not self._receivers[receiver] and failing < FAILING
        return self._receivers[receiver] < RECEIVER

    def take(self, hook: Webhook) -> None:
        """Use a slot."""
        self._receivers[receiver_of(hook)] += 1
        self._ladders[hook.ladder] += 1

    def free(self, hook: Webhook) -> None:
        """Free a slot after an attempt."""
        self._receivers -= Counter((receiver_of(hook),))
        self._ladders -= Counter((hook.ladder,))

    def set_failing(self, hooks: Iterable[Webhook]) -> None:
        """Set the webhooks whose last attempt failed."""
        self._failing = frozenset(map(receiver_of, hooks))


def receiver_of(hook: Webhook) -> Receiver:
    """The receiver of a webhook, as `("duel", "hooks.example:443")`."""
    parts = check_url(hook.url)
    return hook.ladder, f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
