"""A per-process cache of plans, so that not every request reads all corrections of its ladder.

The effect of a committed correction never changes, so a plan stays valid unless the file of one of its systems was
edited, or the database server was lost: its replacement may lack the last corrections.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenmatch.ledger.plan import Plan

MAX_LADDERS = 1024  # the most recently used ladders are kept
PLANS_PER_LADDER = 2  # one up to the last correction, and one up to the last correction in the ratings


class PlanCache:
    """The most recently used plans. Threads may share it."""

    def __init__(self) -> None:
        self._plans: OrderedDict[int, list[Plan]] = OrderedDict()  # by ladder, the plan of most corrections first
        self._guard = threading.Lock()

    def find(self, ladder: int, upto: int) -> Plan | None:
        """The valid plan with most of a ladder's corrections up to a position; None: none is cached."""
        with self._guard:
            if ladder not in self._plans:
                return None
            self._plans.move_to_end(ladder)
            plan = next((plan for plan in self._plans[ladder] if plan.upto <= upto), None)
        return plan if plan is not None and plan.is_current() else None

    def add(self, ladder: int, plan: Plan) -> None:
        """Cache a plan from committed corrections of a ladder."""
        with self._guard:
            others = [other for other in self._plans.pop(ladder, ()) if other.upto != plan.upto]
            listed = sorted((plan, *others), key=lambda each: each.upto, reverse=True)
            self._plans[ladder] = listed[:PLANS_PER_LADDER]
            while len(self._plans) > MAX_LADDERS:
                self._plans.popitem(last=False)

    def clear(self) -> None:
        """Forget all plans."""
        with self._guard:
            self._plans.clear()
