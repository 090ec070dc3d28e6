"""A per-process cache of plans, so that not every request reads all corrections of its ladder.

A plan depends on committed corrections alone, which never change. Only a repair adds one that was missing, and with it
comes another generation.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenmatch.ledger.plan import Plan
    from evenmatch.ledger.store import Head

LADDERS = 1024  # whose plans are cached: those that were read last
OF_LADDER = 2  # plans of a ladder: up to its last correction, and up to the last one in its ratings


class PlanCache:
    """The plans that were read last. Threads may share it."""

    def __init__(self) -> None:
        self._plans: OrderedDict[int, list[tuple[int, Plan]]] = OrderedDict()  # by ladder: generation and plan
        self._guard = threading.Lock()

    def find(self, head: Head, upto: int) -> Plan | None:
        """The plan whose last correction is at this position; None if it is not cached since the head's generation."""
        with self._guard:
            listed = self._plans.get(head.ladder, ())
            return next((plan for of, plan in listed if (of, plan.upto) == (head.generation, upto)), None)

    def begin(self, head: Head, positions: Sequence[int]) -> Plan | None:
        """The longest cached plan of the first ones of the corrections at these positions."""
        with self._guard:
            plans = [plan for _, plan in self._plans.get(head.ladder, ())]
        fitting = [plan for plan in plans if [*plan.systems] == positions[: len(plan.systems)]]
        return max(fitting, key=lambda plan: plan.upto, default=None)

    def add(self, head: Head, plan: Plan) -> None:
        """Cache a plan from committed corrections of the head's ladder."""
        with self._guard:
            others = [entry for entry in self._plans.pop(head.ladder, ()) if entry[1].upto != plan.upto]
            self._plans[head.ladder] = [(head.generation, plan), *others][:OF_LADDER]
            while len(self._plans) > LADDERS:
                self._plans.popitem(last=False)
