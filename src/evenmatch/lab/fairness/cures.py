"""Cures: which change of rules makes a behaviour pay less, and what that costs in prediction and waiting.

Changes are other parameters and presets of the rating system, and other policies of the matchmaker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenmatch.errors import BadParameterError
from evenmatch.history import Floats
from evenmatch.lab.backtests.workers import Workers
from evenmatch.lab.fairness.audit import AuditPlan, Cell, Contestant, Kept, Measure, Progress, audit
from evenmatch.options import Choice, Flag, Number, Option, Value, options_of
from evenmatch.policy import presets

STEPS = 4  # values tried of each number that has a range for tuning
LIMITS = 7  # values tried of a limit that is not set
LARGEST_LIMIT = 1000.0


class Cure(NamedTuple):
    """One change, measured against the original.

    changed   what was changed: "k=20", "preset article", "policy quick"; "nothing" for the original
    gain      percentiles that the behaviour gains after the change, at its most profitable dose there
    log_loss  what the predictions of honest seasons lose by the change;  wait  seconds added to the mean wait
    is_best   no other change is better in gain, prediction or wait without being worse in another of them
    """

    contestant: Contestant
    policy: str
    changed: str
    gain: Measure
    log_loss: float
    wait: float
    is_best: bool

    def to_data(self) -> dict[str, object]:
        """All numbers, for JSON."""
        return self._asdict() | {"contestant": str(self.contestant), "gain": self.gain._asdict()}


def candidates(contestant: Contestant) -> dict[Contestant, str]:
    """What each candidate changes: the contestant itself, the presets of its system, and each parameter alone."""
    rules = contestant.rules
    own = rules.values()
    listed = {contestant: "nothing"}
    listed |= {Contestant(contestant.system, preset): f"preset {preset}" for preset in rules.system.presets}
    for name, option in options_of(rules.system.parameters).items():
        kept = tuple(pair for pair in contestant.values if pair[0] != name)
        for value in _values(option, own[name]):
            listed[contestant._replace(values=(*kept, (name, value)))] = f"{name}={value}"
    listed[contestant] = "nothing"
    different: dict[str, Contestant] = {}
    for changed in listed:
        try:
            different.setdefault(repr(changed.rules.values()), changed)
        except BadParameterError:  # values that do not fit together
            continue
    return {changed: listed[changed] for changed in different.values()}


def _values(option: Option, own: Value) -> Iterator[Value]:
    """Other values of an option that are worth trying."""
    if isinstance(option, Flag):
        yield not own
    elif isinstance(option, Choice):
        yield from (choice for choice in option.choices if choice != own)
    elif isinstance(option, Number) and option.search is not None:
        low, high = (float(end) for end in option.search)
        spaced = np.geomspace(low, high, STEPS) if low > 0 else np.linspace(low, high, STEPS)
        yield from (value for value in _rounded(option, spaced) if value != own)
    elif isinstance(option, Number) and option.optional and own is None:
        yield from _rounded(option, np.geomspace(max(option.low, 1.0), min(option.high, LARGEST_LIMIT), LIMITS))


def _rounded(option: Number, values: Floats) -> list[Value]:
    """The values with at most four digits, as the option accepts them."""
    short = [float(f"{value:.4g}") for value in values.tolist()]
    if option.whole:
        return [round(value) for value in short]
    return list(short) if option.decimals is None else [round(value, option.decimals) for value in short]


def cures(plan: AuditPlan, workers: Workers, kept: Kept | None = None, progress: Progress | None = None) -> list[Cure]:
    """What each change makes of one behaviour under one contestant, the smallest gain first.

    plan  with one contestant and one behaviour, whose game the contestant rates
    """
    (original,) = plan.contestants
    changes = candidates(original)
    policies = [plan.settings.policy, *(name for name in presets() if name != plan.settings.policy)]
    compared = len(changes) + len(policies) - 1 if plan.compared is None else plan.compared
    found: list[tuple[str, str, Cell]] = []
    for index, policy in enumerate(policies):
        contestants = (original,) if index else tuple(changes)
        part = replace(plan, contestants=contestants, compared=compared, settings=replace(plan.settings, policy=policy))
        shown = None if progress is None else _part(progress, len(found), len(contestants), compared)
        found += [
            (policy, f"policy {policy}" if index else changes[cell.contestant], cell)
            for cell in audit(part, workers, kept, shown).cells
        ]
    own = found[0][2]
    best = undominated([(cell.percentile.mean, cell.log_loss, round(cell.wait)) for *_, cell in found])
    listed = [
        Cure(
            cell.contestant,
            policy,
            changed,
            cell.percentile,
            cell.log_loss - own.log_loss,
            cell.wait - own.wait,
            is_best,
        )
        for (policy, changed, cell), is_best in zip(found, best, strict=True)
    ]
    return sorted(listed, key=lambda cure: cure.gain.mean)


def _part(progress: Progress, before: int, own: int, all_cells: int) -> Progress:
    """Progress of one of several audits, as seasons of all of them."""
    return lambda done, total: progress(before * total + done * own, max(all_cells, before + own) * total)


def undominated(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Whether no other row is at most as large in every column and smaller in one."""
    table = np.array(costs)
    no_worse = (table[None] <= table[:, None]).all(2)
    better = (table[None] < table[:, None]).any(2)
    return [not np.any(row) for row in np.asarray(no_worse & better)]
