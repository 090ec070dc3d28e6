"""Where a player plays better or worse than their rating says: by the values of the ladder's context columns."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from evenmatch.ledger import event_rows, rating_rows
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.match_context import read_context

FEWEST = 10  # matches of the player under a value
FEWEST_VALUES = 2  # of a column


class ContextSkill(NamedTuple):
    """A player under one value of a context column, such as on one map.

    matches    rated matches of the player there
    points     how many rating points more than usual the player is worth there
    low, high  interval of 95 %
    """

    value: str
    matches: int
    points: float
    low: float
    high: float


def context_skills(store: Store, head: Head, plan: Plan, player: int) -> dict[str, list[ContextSkill]]:
    """The values with at least FEWEST matches of the player, the best first, by column; no column with only one."""
    if not plan.context_columns:
        return {}
    ids = [player, *(old for old, new in plan.merged.items() if new == player)]
    counts: Counter[tuple[str, str]] = Counter()
    for text, matches in event_rows.count_contexts(store, head, ids):
        for value in read_context(text).items():
            counts[value] += matches
    wanted = {value for value, matches in counts.items() if matches >= FEWEST and value[0] in plan.context_columns}
    rules = plan.last_rules
    contexts = rating_rows.read_contexts(store, head, rules, np.array([player]), wanted)
    ladders = rating_rows.read_ladder_records(head, rules)
    skills: dict[str, list[ContextSkill]] = {}
    for number, column in enumerate(plan.context_columns):
        worth = rules.system.offset_points(ladders, number, contexts.offsets, rules.parameters).tolist()
        listed = [
            ContextSkill(value, counts[name, value], points, points - width, points + width)
            for (_, name, value), (points, width) in zip(contexts.named_pairs(), worth, strict=True)
            if name == column
        ]
        if len(listed) >= FEWEST_VALUES:
            skills[column] = sorted(listed, key=lambda skill: (-skill.points, skill.value))
    return skills
