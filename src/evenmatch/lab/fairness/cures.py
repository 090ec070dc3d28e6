"""Cures: which parameters of a system make a behaviour pay less, and what that costs in prediction and waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenmatch.errors import BadParameterError
from evenmatch.lab.backtests.workers import Workers
from evenmatch.lab.fairness.audit import AuditPlan, Cell, Contestant, Kept, Measure, Progress, audit
from evenmatch.options import Choice, Flag, Number, Option, Value, options_of

STEPS = 4  # values tried of each number


class Cure(NamedTuple):
    """A contestant with changed parameters, against the original.

    gain      percentiles that the behaviour gains under it, at its most profitable dose there
    log_loss  what the predictions of honest seasons lose by the change;  wait  seconds added to the mean wait
    is_best   no other change leaves a smaller gain at a smaller loss of prediction
    """

    contestant: Contestant
    gain: Measure
    log_loss: float
    wait: float
    is_best: bool

    def to_data(self) -> dict[str, object]:
        """All numbers, for JSON."""
        return self._asdict() | {"contestant": str(self.contestant), "gain": self.gain._asdict()}


def candidates(contestant: Contestant) -> list[Contestant]:
    """The contestant, every preset of its system, and every parameter changed alone to a few other values."""
    rules = contestant.rules
    own = rules.values()
    listed = [contestant, *(Contestant(contestant.system, preset) for preset in rules.system.presets)]
    for name, option in options_of(rules.system.parameters).items():
        for value in _values(option, own[name]):
            changed = contestant._replace(
                values=(*(pair for pair in contestant.values if pair[0] != name), (name, value))
            )
            try:
                changed.rules  # noqa: B018 - raises where values do not fit together
            except BadParameterError:
                continue
            listed.append(changed)
    return list(dict.fromkeys(listed))


def _values(option: Option, own: Value) -> Iterator[Value]:
    """Other values of an option that are worth trying."""
    if isinstance(option, Flag):
        yield not own
    elif isinstance(option, Choice):
        yield from (choice for choice in option.choices if choice != own)
    elif isinstance(option, Number) and option.search is not None:
        low, high = (float(end) for end in option.search)
        spaced = np.geomspace(low, high, STEPS) if low > 0 else np.linspace(low, high, STEPS)
        yield from (round(float(value), option.decimals or 4) for value in spaced if value != own)
    elif isinstance(option, Number) and option.optional and own is None:
        yield from (float(option.low * factor) for factor in (1, 2, 4, 8) if option.low * factor <= option.high)


def cures(plan: AuditPlan, workers: Workers, kept: Kept | None = None, progress: Progress | None = None) -> list[Cure]:
    """What each change of parameters makes of one behaviour under one contestant, the smallest gain first.

    plan  with one contestant and one behaviour, whose game the contestant rates
    """
    (original,) = plan.contestants
    found = audit(replace(plan, contestants=tuple(candidates(original))), workers, kept, progress).cells
    own = next(cell for cell in found if cell.contestant == original)
    best = _undominated(found)
    listed = [
        Cure(cell.contestant, cell.percentile, cell.log_loss - own.log_loss, cell.wait - own.wait, cell in best)
        for cell in found
    ]
    return sorted(listed, key=lambda cure: cure.gain.mean)


def _undominated(cells: Sequence[Cell]) -> list[Cell]:
    """The cells for which no other has both a smaller gain and better predictions."""
    return [
        cell
        for cell in cells
        if not any(
            (other.percentile.mean < cell.percentile.mean and other.log_loss <= cell.log_loss)
            or (other.percentile.mean <= cell.percentile.mean and other.log_loss < cell.log_loss)
            for other in cells
        )
    ]
