"""Findings on a ladder's health as sentences: inflation, players at the floor, draws and leavers, calibration."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.ladder.health import LadderHealth
from evenmatch.lab.queue.verdict import percent

CALM = 0.01  # share of the mean rating: smaller changes count as no change
STEADY = 0.01  # share of the points that a match moves: a smaller surplus or loss is not reported
CROWD = 0.05  # share of the players at the floor above which it is called many
FEW = 30  # fewest matches with a favourite for a finding on the odds
SURE = 2.0  # standard errors beyond which a difference is more than chance


def health_findings(found: LadderHealth) -> list[str]:
    """Findings as sentences, the most important first."""
    return [
        *_level(found),
        *_created(found),
        *_floor(found),
        *_shares(found),
        *_odds(found),
        *([f"{found.left_out:,} matches cannot be rated by these rules."] if found.left_out else []),
    ]


def span(found: LadderHealth) -> str:
    """Length of all periods together, for example "12 days"."""
    count = len(found.start)
    if found.unit == "6 hours":
        return f"{6 * count} hours"
    return f"{count} {found.unit}{'' if count == 1 else 's'}"


def _level(found: LadderHealth) -> list[str]:
    mean = found.mean[~np.isnan(found.mean)]
    if len(mean) < 2:
        return ["All matches are in one period: changes cannot be measured yet."]
    first, last = float(mean[0]), float(mean[-1])
    moved = last - first
    share = moved / first if first > 0 else None
    near = abs(share) < CALM if share is not None else moved == 0
    if near:
        return [f"The mean rating hardly moved in {span(found)}: {points(first)} at first, {points(last)} at last."]
    by = "" if share is None or abs(share) > 1 else f", by {abs(share):.1%},"
    sentence = f"The mean rating {'rose' if moved > 0 else 'fell'}{by} from {points(first)} to {points(last)}"
    sentence += f" in {span(found)}"
    rise = found.inflation
    if rise is not None and rise * moved > 0:
        sentence += f": about {points(abs(rise))} points {'more' if rise > 0 else 'less'} with every 1,000 matches"
    return [f"{sentence}."]


def _created(found: LadderHealth) -> list[str]:
    if abs(found.created) < STEADY * found.moved or not found.moved:
        return ["Winners gain what losers lose: matches neither create nor remove points."]
    share = percent(abs(found.created) / found.moved)
    sentence = (
        f"Of {points(found.moved)} points that a match moves, up and down, {points(abs(found.created))} ({share})"
    )
    return [f"{sentence} are {'created' if found.created > 0 else 'lost'}."]


def _floor(found: LadderHealth) -> list[str]:
    if found.at_floor is None:
        return []
    share = _last(found.at_floor)
    if share is None or share == 0:
        return ["No player who played lately is at the floor."]
    sentence = f"{share:.1%} of the players who played lately are at the floor"
    return [f"{sentence}, which is many: they have nothing to lose." if share > CROWD else f"{sentence}."]


def _shares(found: LadderHealth) -> list[str]:
    drawn, left = (_overall(shares, found) for shares in (found.drawn, found.quit))
    return [f"{drawn:.1%} of the matches were drawn, and in {left:.1%} of them a player left early."]


def _odds(found: LadderHealth) -> list[str]:
    count = int(found.favoured.sum())
    if count < FEW:
        return []
    known = found.favoured > 0
    given, scored = (
        float(np.average(scores[known], weights=found.favoured[known])) for scores in (found.given, found.scored)
    )
    error = np.sqrt(given * (1.0 - given) / count)
    sentence = f"Favourites were expected to score {given:.1%} and scored {scored:.1%}"
    if abs(scored - given) <= SURE * error:
        return [f"{sentence}: the odds are right."]
    return [f"{sentence}: the odds are {'too sure' if scored < given else 'too timid'}."]


def _overall(shares: Floats, found: LadderHealth) -> float:
    known = found.matches > 0
    return float(np.average(shares[known], weights=found.matches[known]))


def _last(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else None


def points(value: float) -> str:
    """Format rating points with at least three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
