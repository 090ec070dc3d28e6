"""Recorded matches beside a simulated season of the game that was fitted to them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats, History, team_results
from evenmatch.lab.seasons.games import Whole, find_game
from evenmatch.lab.seasons.season import SeasonRecord
from evenmatch.lab.seasons.skill_gaps import heats, normal_quantile
from evenmatch.rating import rules_of
from evenmatch.systems import loop
from evenmatch.tables import MatchTable

FEWEST = 100  # matches that are compared
_GAPS = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, np.inf])  # bins of the predicted gap, in probits


class Row(NamedTuple):
    """One line of a comparison; `distance` is a difference of shares, 0..1."""

    topic: str
    at: str
    recorded: float
    simulated: float
    distance: float


class _Side:
    """One history, recorded or simulated, with the gaps that `even` predicted; the first half teaches it."""

    def __init__(self, history: History, expected: Floats) -> None:
        self.c = c = history.columns
        self.result = team_results(c.team_start, c.place)
        self.gap = normal_quantile(expected)
        match = np.repeat(np.arange(len(history)), np.diff(c.team_start))
        self.two = bool((np.diff(c.team_start) == 2).all())
        self.drawn = np.minimum.reduceat(self.result, c.team_start[:-1]) == 0.5
        self.favourite = (self.gap >= 0.0) & (match >= len(history) // 2)
        self.level = np.digitize(np.abs(self.gap[c.team_start[:-1]]), _GAPS) - 1
        self.decided = np.bincount(self.level[~self.drawn], minlength=len(_GAPS))
        length = np.where(np.isnan(c.duration), 1.0, c.duration)[history.slot_match]
        self.left_after = (c.seconds / length)[c.quit]

    def shares(self, low: float, high: float) -> tuple[float, float]:
        """Result of favourites with a gap in this range, and share of draws; NaN for fewer than FEWEST."""
        chosen = self.favourite & (self.gap >= low) & (self.gap < high)
        if chosen.sum() < FEWEST:
            return np.nan, np.nan
        results = self.result[chosen]
        return float(results.mean()), float((results == 0.5).mean()) if self.two else np.nan

    def scores(self, frequencies: Whole) -> dict[str, tuple[Floats, Floats]]:
        """Margins and scores of decided matches with their weights, which give the gaps these frequencies."""
        best, least = np.fmax(*self.c.team_score.reshape(-1, 2).T), np.fmin(*self.c.team_score.reshape(-1, 2).T)
        kept = ~self.drawn & ~np.isnan(best - least)
        weight = (frequencies / np.maximum(self.decided, 1))[self.level][kept]
        listed = {"margin": best - least, "winner's score": best, "loser's score": least}
        return {topic: (values[kept], weight) for topic, values in listed.items()}


def compare(matches: MatchTable, record: SeasonRecord) -> tuple[Row, ...]:
    """The recorded matches beside a season: results and draws by predicted gap, margins, scores, durations, quits.

    Shares are compared directly. Quantiles are compared by the share of the matches below the recorded quantile.
    Margins and scores are weighted, so that predicted gaps are as frequent in the season as in the recorded matches.
    """
    rules, game = rules_of("even"), find_game(record.settings.game)
    history = heats(matches.history, game.teams)
    predicted = loop.replay(rules, history, rules.newcomers(history.players)).expected
    real, made = _Side(history, predicted), _Side(record.history, record.expected)
    rows: list[Row] = []
    for low, high in pairwise(_GAPS.tolist()):
        topics = zip(("result of favourites", "draws"), real.shares(low, high), made.shares(low, high), strict=True)
        for topic, share, simulated in topics:
            if not np.isnan(share + simulated):
                rows.append(Row(topic, f"gap {low:g} to {high:g}", share, simulated, abs(share - simulated)))
    if real.two and not np.isnan(real.c.team_score).all():
        # A gap that a season has a few matches of would give each of them the weight of many.
        common = np.where(np.minimum(real.decided, made.decided) < FEWEST, 0, real.decided)
        scores = made.scores(common)
        for topic, values in real.scores(common).items() if common.any() else ():
            rows += _quantile_rows(topic, values, scores[topic])
    if game.team_size > 1 and scored(history):
        rows += _quantile_rows("player's score", *(_alike(side.c.score[~side.c.quit]) for side in (real, made)))
    if not np.isnan(real.c.duration).all():
        rows += _quantile_rows("duration", *(_alike(side.c.duration) for side in (real, made)))
    if real.c.quit.any():
        quits = float(real.c.quit.mean()), float(made.c.quit.mean())
        rows.append(Row("quits", "all", *quits, abs(quits[0] - quits[1])))
        rows += _quantile_rows("quits after", _alike(real.left_after), _alike(made.left_after))
    return tuple(rows)


def _alike(values: Floats) -> tuple[Floats, Floats]:
    values = values[~np.isnan(values)]
    return values, np.ones(len(values))


def _quantile_rows(topic: str, recorded: tuple[Floats, Floats], simulated: tuple[Floats, Floats]) -> list[Row]:
    """Five quantiles of two weighted samples."""
    rows = []
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        values = [_quantile(*sample, share) for sample in (recorded, simulated)]
        below = [
            float((weight * ((value < values[0]) + 0.5 * (value == values[0]))).sum() / weight.sum())
            for value, weight in (recorded, simulated)
        ]
        rows.append(Row(topic, f"{share:.0%}", values[0], values[1], abs(below[0] - below[1])))
    return rows


def _quantile(values: Floats, weight: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(total, share * total[-1])])


def scored(history: History) -> bool:
    """Whether nearly all players have a score above 0."""
    return bool((history.columns.score > 0.0).mean() > 0.9)
