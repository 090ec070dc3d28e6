"""Cures: which change of rules makes a behaviour pay less, and what that costs in prediction and waiting.

Changes are parameters and presets of the rating system, and rules of the ladder's queue and game servers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenmatch.errors import BadParameterError
from evenmatch.history import Floats
from evenmatch.lab.backtests.workers import Workers
from evenmatch.lab.fairness.audit import AuditPlan, Cell, Contestant, Kept, Measure, Progress, audit, game_of
from evenmatch.options import Choice, Flag, Number, Option, Value, options_of
from evenmatch.policy import presets

STEPS = 4  # values tried of each number that has a range for tuning
LIMITS = 7  # values tried of a limit that is not set: 1, 2, 4, ...
CLOSED = 0.25  # share of the gain that a change may leave of a hole that it closes
SHOWN = (10.0, 1e4, 1.0, 100.0)  # parts of a percentile, of log loss, of a second and of the joins that are told apart
RULES: dict[str, dict[str, Value]] = {
    **{f"policy {name}": {"policy": name} for name in presets()},
    "no parties": {"solo_queue": True},
    "no quiet hours": {"busy_hours": True},
    "longest team counts": {"longest_team": True},
    "leaving saves no time": {"full_time": True},
    "50 matches to be listed": {"placement": 50},
}


class Cure(NamedTuple):
    """One change, measured against the original.

    changed   what of the contestant was changed: "k=20", "preset article", "policy quick"; "nothing" for the original
    gain      percentiles that the behaviour gains after the change, at its most profitable dose there
    rivals    what a match with a culprit then changes for honest rivals, in thousandths of a standard deviation
    log_loss, wait, unmatched  added in honest seasons to the log loss, the mean wait in seconds, and the share of joins
              without a match
    closes    the original gains by more than chance; this gains at most a quarter of that, and not more than chance
    is_best   no other change is better in gain, prediction or waiting without being worse in another of them
    """

    contestant: Contestant
    changed: str
    gain: Measure
    rivals: float
    closes: bool
    is_best: bool
    log_loss: float
    wait: float
    unmatched: float

    def to_data(self) -> dict[str, object]:
        """All numbers, for JSON."""
        return self._asdict() | {"contestant": str(self.contestant), "gain": self.gain._asdict()}


def candidates(plan: AuditPlan, vary: Collection[str] = ()) -> dict[str, AuditPlan]:
    """Return a plan for each change, keyed by what it changes: a preset, a parameter or a rule; "nothing" comes first.

    vary  parameters, "preset", "rules", or single rules; empty: everything
    """
    (own,) = plan.contestants
    values, listed = own.rules.values(), {"nothing": own}
    if not vary or "preset" in vary:
        listed |= {f"preset {preset}": Contestant(own.system, preset) for preset in own.rules.system.presets}
    for name, option in options_of(own.rules.system.parameters).items():
        kept = tuple(pair for pair in own.values if pair[0] != name)
        for value in _values(option, values[name]) if not vary or name in vary else ():
            listed[f"{name}={value}"] = own._replace(values=(*kept, (name, value)))
    different: dict[str, tuple[str, Contestant]] = {}
    for text, changed in listed.items():
        with suppress(BadParameterError):  # values that do not fit together
            different.setdefault(repr(changed.rules.values()), (text, changed))
    found = {text: replace(plan, contestants=(changed,)) for text, changed in different.values()}
    for rule, given in RULES.items():
        settings = replace(plan.settings, **given)  # type: ignore[arg-type]  # as declared
        if settings != plan.settings and (not vary or rule in vary or "rules" in vary):
            found[rule] = replace(plan, settings=settings)
    return found


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
        yield from _rounded(option, np.clip(2.0 ** np.arange(LIMITS), option.low, option.high))


def _rounded(option: Number, values: Floats) -> list[Value]:
    """The values with at most four digits, as the option accepts them."""
    short = [float(f"{value:.4g}") for value in values.tolist()]
    if option.whole:
        return [round(value) for value in short]
    return list(short) if option.decimals is None else [round(value, option.decimals) for value in short]


def cures(plan: AuditPlan, workers: Workers, kept: Kept, progress: Progress, vary: Collection[str] = ()) -> list[Cure]:
    """Measure one behaviour after each change, under each contestant that rates its game; smallest gain first.

    progress  called with the number of finished changes and the number of all;  vary  as in `candidates`
    Raises UsageError if no contestant rates a game of the behaviour.
    """
    rated = [one for one in plan.contestants if game_of(plan, one, *plan.behaviours)] or plan.contestants
    parts = [candidates(replace(plan, contestants=(contestant,)), vary) for contestant in rated]
    found, done, total = list[Cure](), 0, sum(map(len, parts))
    for contestant, changes in zip(rated, parts, strict=True):
        cells = list[Cell]()
        for change in changes.values():
            compared = len(changes) if plan.compared is None else plan.compared
            cells += audit(replace(change, compared=compared), workers, kept).cells
            progress(done := done + 1, total)
        own = cells[0].percentile
        costs = np.array([(cell.percentile.mean, cell.log_loss, cell.wait, cell.unmatched) for cell in cells])
        best, added = undominated(np.rint(costs * SHOWN).tolist()), (costs - costs[0])[:, 1:].tolist()
        listed = []
        for changed, cell, cost, is_best in zip(changes, cells, added, best, strict=True):
            closes = own.is_gain and cell.percentile.low <= 0.0 and cell.percentile.mean <= CLOSED * own.mean
            listed.append(Cure(contestant, changed, cell.percentile, cell.rivals.mean, closes, is_best, *cost))
        found += sorted(listed, key=lambda cure: cure.gain.mean)
    return found


def undominated(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Whether no other row is at most as large in every column and smaller in one."""
    table = np.array(costs)
    no_worse = (table[None] <= table[:, None]).all(2)
    better = (table[None] < table[:, None]).any(2)
    return [not np.any(row) for row in np.asarray(no_worse & better)]
