"""Bands of the standings, one for each division, and why a player's division may differ from their band."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.sentences import Sentence
from evenmatch.standings.board import DivisionThreshold, Snapshot, Standing
from evenmatch.standings.division import division_at, kept_down_to


def band_of(snapshot: Snapshot, standing: Standing) -> str | None:
    """Return the division whose band contains a player; None for a player who is not listed.

    Each division is one band of the list. It begins at the rating in `Snapshot.cuts`; if ratings are not shown, at the
    division's lowest percentile; if percentiles are not shown either, at its first player.
    """
    if standing.rank is None:
        return None
    if standing.rating is not None:
        return next(cut.division.name for cut in reversed(snapshot.cuts()) if _reaches(standing.rating, cut))
    if standing.percentile is None:
        return standing.division
    return division_at(standing.percentile, snapshot.rules.divisions).name


def division_notes(snapshot: Snapshot, standing: Standing) -> list[Sentence]:
    """Explain why a player's division differs from that of their percentile or band; empty if it does not."""
    if standing.division is None or standing.percentile is None:
        return []
    rules = snapshot.rules
    notes: list[Sentence] = []
    until = kept_down_to(standing.division, standing.percentile, rules.divisions, rules.division_margin)
    if until is not None:
        name = standing.division
        notes.append(
            Sentence("keeps {division} until below percentile {percentile}", {"division": name, "percentile": until})
            if until > 1
            else Sentence("keeps {division}", {"division": name})
        )
    if band_of(snapshot, standing) != division_at(standing.percentile, rules.divisions).name:
        notes.append(Sentence("percentile lowered by inactivity"))
    return notes


def _reaches(rating: float, cut: DivisionThreshold) -> bool:
    return cut.rating is not None and rating >= cut.rating


class DivisionProgress(NamedTuple):
    """The way from the lower limit of a division to the next division.

    following  the next higher division; null: this is the highest
    share      the part of the way behind the player, 0..1; 1 in the highest division
    missing    what is missing to the next division, in rating, or in percentiles if the rating is not shown; null in
               the highest division
    """

    division: str
    following: str | None
    share: float
    missing: float | None


def division_progress(snapshot: Snapshot, rating: float | None, percentile: int | None) -> DivisionProgress | None:
    """Return how far a rating, or a percentile if the rating is not shown, is on its way to the next division.

    None if neither is shown, or no player is listed. The lowest division begins at the lowest listed rating.
    """
    if rating is not None:
        limits = [(cut.division.name, cut.rating) for cut in snapshot.cuts() if cut.rating is not None]
        value = rating
    elif percentile is not None:
        limits = [(division.name, float(division.lowest)) for division in snapshot.rules.divisions]
        value = float(percentile)
    else:
        return None
    if not limits:
        return None
    reached = max(sum(value >= lowest for _, lowest in limits) - 1, 0)
    division, low = limits[reached]
    if reached == len(limits) - 1:
        return DivisionProgress(division, None, 1.0, None)
    following, high = limits[reached + 1]
    share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0
    return DivisionProgress(division, following, share, high - value)
