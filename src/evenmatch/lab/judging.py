"""One run over a history that predicts, judges and learns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenmatch.history import Floats, History, Integers
from evenmatch.lab.metrics import BINS, judge
from evenmatch.systems import loop
from evenmatch.systems.system import Rules

REFUSED = 0.05  # share of the matches that a system may be unable to rate


def replay_and_judge(
    rules: Rules, history: History, cell: Integers, cells: int, *, with_bins: bool = True
) -> tuple[Floats, Floats]:
    """Rate a history from newcomers and judge what was foretold: sums (C, 7) and bins (C, BINS, 3) over cells."""
    sums, bins = np.zeros((cells, 7)), np.zeros((cells if with_bins else 0, BINS, 3))
    c = history.columns

    def watch(start: int, stop: int, foretold: Floats) -> None:
        judge(c.team_start, c.place, start, stop, foretold, cell, sums, bins)

    loop.replay(rules, history, rules.newcomers(history.players), watch=watch)
    return sums, bins


def refused_by(rules: Rules, history: History) -> dict[int, str]:
    """The matches (by number) that rules cannot rate, and why."""
    return dict(rules.system.refusals(history.columns, rules.parameters))


def too_many(refused: Mapping[int, str], history: History) -> bool:
    """Whether so many matches are refused that the rules cannot be judged on this history."""
    return len(refused) > REFUSED * len(history)


def why_not(history: History, rules: Rules) -> str:
    """Why rules cannot be judged on this history; empty where they can."""
    refused = refused_by(rules, history)
    if not too_many(refused, history):
        return ""
    return f"cannot rate {len(refused):,} of {len(history):,} matches: {next(iter(refused.values()))}"


def rateable_history(history: History, rules: Rules) -> History:
    """The same matches; those that rules cannot rate are predicted, but nobody's state is kept from them."""
    return without(history, refused_by(rules, history))


def without(history: History, refused: Mapping[int, str]) -> History:
    """The same matches, of which nothing is learned from those that are refused."""
    if not refused:
        return history
    lost = np.isin(history.slot_match, list(refused))
    return History(history.columns._replace(keep=history.columns.keep & ~lost))
