"""A per-process cache of plans, so that not every request reads all corrections of its ladder."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenmatch.ledger.plan import Plan

LADDERS = 1024  # whose plans are cached: those that were read last
OF_LADDER = 2  # plans of a ladder: up to its last correction, and up to the last one in its ratings


class PlanCache:
    """The plans that were read last, from committed corrections, which never change. Threads may share it."""

    def __init__(self) -> None:
        self._plans: OrderedDict[int, list[Plan]] = OrderedDict()  # by ladder
        self._guard = threading.Lock()

    def find(self, ladder: int, upto: int) -> Plan | None:
        """The cached plan with most of a ladder's corrections up to a position; None: no plan is cached."""
        with self._guard:
            plans = [plan for plan in self._plans.get(ladder, ()) if plan.upto <= upto]
        return max(plans, key=lambda plan: plan.upto, default=None)

    def add(self, ladder: int, plan: Plan) -> None:
        """Cache a plan from committed corrections of a ladder."""
        with self._guard:
            others = [other for other in self._plans.pop(ladder, ()) if other.upto != plan.upto]
            self._plans[ladder] = [plan, *others][:OF_LADDER]
            while len(self._plans) > LADDERS:
                self._plans.popitem(last=False)
