"""Bands of the standings, one for each division, and why a player's division may differ from their band."""

from __future__ import annotations

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


def division_notes(snapshot: Snapshot, standing: Standing) -> list[str]:
    """Explain why a player's division differs from that of their percentile or band; empty if it does not."""
    if standing.division is None or standing.percentile is None:
        return []
    rules, notes = snapshot.rules, []
    until = kept_down_to(standing.division, standing.percentile, rules.divisions, rules.division_margin)
    if until is not None:
        limit = f" until below percentile {until}" if until > 1 else ""
        notes.append(f"keeps {standing.division}{limit}")
    if band_of(snapshot, standing) != division_at(standing.percentile, rules.divisions).name:
        notes.append("percentile lowered by inactivity")
    return notes


def _reaches(rating: float, cut: DivisionThreshold) -> bool:
    return cut.rating is not None and rating >= cut.rating
