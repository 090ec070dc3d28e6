"""Replay a history with one set of rules and score its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from evenmatch.calibration import BINS, weigh
from evenmatch.history import Floats, History, Integers
from evenmatch.lab.backtests.metrics import judge
from evenmatch.match import Appearance, Match, Team
from evenmatch.rating import rules_of
from evenmatch.systems import loop
from evenmatch.systems.system import Rules
from evenmatch.tables import from_matches

REFUSED = 0.05  # largest share of the matches that a system may be unable to rate


def replay_and_judge(
    rules: Rules, history: History, cell: Integers, cells: int, *, with_bins: bool = True
) -> tuple[Floats, Floats]:
    """Rate a history from initial ratings and score its predictions: sums (C, 7) and bins (C, BINS, 3) by cell."""
    sums, bins = np.zeros((cells, 7)), np.zeros((cells if with_bins else 0, BINS, 3))
    c = history.columns

    def watch(start: int, stop: int, predicted: Floats) -> None:
        judge(c.team_start, c.place, start, stop, predicted, cell, sums, bins)

    loop.replay(rules, history, rules.newcomers(history.players), watch=watch)
    return sums, bins


def refused_by(rules: Rules, history: History) -> dict[int, str]:
    """Matches (by number) that the rules cannot rate, with the reasons."""
    return dict(rules.system.refusals(history.columns, rules.parameters))


def too_many(refused: int, matches: int) -> bool:
    """Whether more than the share REFUSED of the matches cannot be rated."""
    return refused > REFUSED * matches


def why_not(history: History, rules: Rules) -> str:
    """Reason why rules cannot be evaluated on this history; empty if they can."""
    refused = refused_by(rules, history)
    return why_not_of(len(refused), len(history), next(iter(refused.values()), ""))


def why_not_of(refused: int, matches: int, reason: str) -> str:
    """The same from the number of matches that cannot be rated, and the reason for the first of them."""
    if not too_many(refused, matches):
        return ""
    return f"cannot rate {refused:,} of {matches:,} matches: {reason}"


def rateable_history(history: History, rules: Rules) -> History:
    """History in which matches that the rules cannot rate are predicted but change no ratings."""
    return without(history, refused_by(rules, history))


def without(history: History, refused: Mapping[int, str]) -> History:
    """History in which the refused matches change no ratings."""
    if not refused:
        return history
    in_refused = np.isin(history.slot_match, list(refused))
    return History(history.columns._replace(keep=history.columns.keep & ~in_refused))


def compile_measures() -> None:
    """Compile the kernels that judge predictions, or load them, on a duel rated by elo."""
    sides = tuple(Team((Appearance(name),), place) for place, name in ((1, "a"), (2, "b")))
    duel = from_matches([Match("duel", datetime(2026, 1, 1, tzinfo=UTC), sides)])
    replay_and_judge(rules_of("elo"), duel.history, np.zeros(1, np.int32), 1)
    weigh(np.ones((1, 1)), np.ones((1, 1)))
