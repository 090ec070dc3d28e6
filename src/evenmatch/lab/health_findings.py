"""The health of a ladder in plain words: what moved, who is stuck, whether its odds can be believed."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.health import Health
from evenmatch.lab.queue_verdict import percent

CALM = 0.01  # share of the mean rating: a smaller rise is none
STEADY = 0.01  # share of the points that a match moves: so many may come or go without a word
CROWD = 0.05  # share of the players who stand at the floor: more are many
FEW = 30  # matches with a favourite, below which nothing is said of them
SURE = 2.0  # standard errors: a difference that is more than chance


def health_findings(found: Health) -> list[str]:
    """Sentences, the most important first."""
    return [
        *_level(found),
        *_created(found),
        *_floor(found),
        *_shares(found),
        *_odds(found),
        *([f"{found.left_out:,} matches cannot be rated by these rules."] if found.left_out else []),
    ]


def span(found: Health) -> str:
    """How long the periods are together, in words."""
    count = len(found.start)
    if found.unit == "6 hours":
        return f"{6 * count} hours"
    return f"{count} {found.unit}{'' if count == 1 else 's'}"


def _level(found: Health) -> list[str]:
    mean = found.mean[~np.isnan(found.mean)]
    if len(mean) < 2:
        return ["All matches are of one period: nothing can be said of changes yet."]
    first, last = float(mean[0]), float(mean[-1])
    moved = last - first
    share = moved / first if first > 0 else None
    near = abs(share) < CALM if share is not None else moved == 0
    if near:
        return [f"The mean rating hardly moved in {span(found)}: {points(first)} at first, {points(last)} at last."]
    by = "" if share is None or abs(share) > 1 else f", by {abs(share):.1%},"
    told = f"The mean rating {'rose' if moved > 0 else 'fell'}{by} from {points(first)} to {points(last)}"
    told += f" in {span(found)}"
    rise = found.inflation
    if rise is not None and rise * moved > 0:
        told += f": about {points(abs(rise))} points {'more' if rise > 0 else 'less'} with every 1,000 matches"
    return [f"{told}."]


def _created(found: Health) -> list[str]:
    if abs(found.created) < STEADY * found.moved or not found.moved:
        return ["What winners gain, losers give: matches neither make points nor take them away."]
    share = percent(abs(found.created) / found.moved)
    told = f"Of {points(found.moved)} points that a match moves, up and down, {points(abs(found.created))} ({share})"
    return [f"{told} are {'made by it' if found.created > 0 else 'lost'}."]


def _floor(found: Health) -> list[str]:
    if found.at_floor is None:
        return []
    share = _last(found.at_floor)
    if share is None or share == 0:
        return ["Nobody who played lately stands at the floor."]
    told = f"{share:.1%} of those who played lately stand at the floor"
    return [f"{told}, which is many: they have nothing to lose." if share > CROWD else f"{told}."]


def _shares(found: Health) -> list[str]:
    drawn, left = (_overall(one, found) for one in (found.drawn, found.quit))
    return [f"{drawn:.1%} of the matches were drawn, and somebody left {left:.1%} of them early."]


def _odds(found: Health) -> list[str]:
    count = int(found.favoured.sum())
    if count < FEW:
        return []
    known = found.favoured > 0
    given, scored = (
        float(np.average(one[known], weights=found.favoured[known])) for one in (found.given, found.scored)
    )
    error = np.sqrt(given * (1.0 - given) / count)
    told = f"Favourites were given {given:.1%} and scored {scored:.1%}"
    if abs(scored - given) <= SURE * error:
        return [f"{told}: the odds hold."]
    return [f"{told}: the odds are {'too sure' if scored < given else 'too timid'}."]


def _overall(shares: Floats, found: Health) -> float:
    known = found.matches > 0
    return float(np.average(shares[known], weights=found.matches[known]))


def _last(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else None


def points(value: float) -> str:
    """Points of rating as people read them: three digits or more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
