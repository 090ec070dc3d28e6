"""Compare the journal lines of a ladder's matches with those of a replay, bit for bit."""

from __future__ import annotations

import numpy as np

from evenmatch.ledger.codec import same_bits
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import generations, journal_lines
from evenmatch.service.replay.ledger_replay import ReplayStep, same_lines


class LineCheck:
    """Collects, step by step, where the lines of the live generation differ from a replay.

    used  numbers of the generations whose lines were returned for matches
    """

    def __init__(self, store: Store, head: Head, plan: Plan) -> None:
        self._store, self._head = store, head
        system = plan.last_rules.system.name
        systems = generations.read_systems(store, head.ladder)
        self._own = [generation for generation, name in systems.items() if name == system]
        self._changed = 0
        self.used: set[int] = set()
        self.differences: list[str] = []

    def add(self, step: ReplayStep) -> None:
        """Compare the lines of a step: those in the journal, else those first returned."""
        positions, stored = step.block.positions, step.stored
        generation = np.array(stored.generations)
        self.used.update(np.unique(generation).tolist())
        changed = journal_lines.read_changed(self._store, self._head, step.block)
        in_journal = np.isin(positions, list(changed))
        same = same_lines(stored.told, step.rated, np.isin(generation, self._own) & ~in_journal)
        if changed:
            self._changed += int(in_journal.sum())
            lines = [changed.get(position, b"") for position in positions.tolist()]
            same |= same_lines(lines, step.rated, in_journal, same_bits)
        self.differences += [
            f"match {stored.ids[match]!r} at position {positions[match]} has another line than a replay"
            for match in np.flatnonzero(~same).tolist()
        ]

    def finish(self) -> list[str]:
        """The differences, also of the lines in the journal that belong to no match."""
        lost = journal_lines.count(self._store, self._head) - self._changed
        return [*self.differences, *([f"{lost:,} lines in the journal belong to no match"] if lost else [])]
