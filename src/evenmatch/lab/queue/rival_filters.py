"""Filters and limits shared by the comparison matchmakers: windows, odds and avoid lists."""

from __future__ import annotations

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Floats
from evenmatch.lab.queue.rule_checks import widths
from evenmatch.lab.queue.team_building import Group, QueueRow, predicted_odds_of
from evenmatch.matchmaking.tickets import FOREVER, Whole, rows_of
from evenmatch.policy import Policy


def by_age(line: QueueRow) -> Whole:
    """All rows, the oldest ticket first."""
    return np.lexsort((line.number, line.queued))


def windows(line: QueueRow, now: int, policy: Policy) -> tuple[Floats, Floats]:
    """Lowest and highest percentile that each ticket's filter accepts now."""
    wide = np.where(line.loose, widths(policy, (now - line.queued) / SECOND), -np.inf)
    return np.minimum(line.chosen_low, line.low - wide), np.maximum(line.chosen_high, line.high + wide)


def allowed(line: QueueRow, group: Group, policy: Policy) -> bool:
    """Whether the odds are within the policy's cap and no player meets one they avoid."""
    odds = predicted_odds_of(line, group, policy)
    if policy.max_odds is not None and max(odds, 1.0 - odds) > policy.max_odds:
        return False
    name = rows_of(line.named_first[group.rows], line.named_count[group.rows])
    if not len(name):
        return True
    avoided = line.named[name][line.met[name] == FOREVER]
    return not np.isin(avoided, line.players[rows_of(line.first[group.rows], line.size[group.rows])]).any()


def conflicts(line: QueueRow) -> dict[int, set[int]]:
    """Rows that must not meet because one of their players avoids another, by row; both ways."""
    avoiding = np.repeat(np.arange(len(line)), line.named_count)
    name = rows_of(line.named_first, line.named_count)
    lasting = line.met[name] == FOREVER
    avoided = line.named[name][lasting].tolist()
    if not avoided:
        return {}
    members = line.players[rows_of(line.first, line.size)].tolist()
    row_of = dict(zip(members, np.repeat(np.arange(len(line)), line.size).tolist(), strict=True))
    apart: dict[int, set[int]] = {}
    for row, player in zip(avoiding[lasting].tolist(), avoided, strict=True):
        if (other := row_of.get(player)) is not None:
            apart.setdefault(row, set()).add(other)
            apart.setdefault(other, set()).add(row)
    return apart
