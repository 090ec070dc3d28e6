"""The list of standings cut into bands, one for each division, and why a player's own division may be another one."""

from __future__ import annotations

from evenmatch.standings.board import DivisionThreshold, Snapshot, Standing
from evenmatch.standings.division import division_at, kept_down_to


def band_of(snapshot: Snapshot, standing: Standing) -> str | None:
    """Return the division in whose part of the list a player stands; None for a player who is not listed.

    In order of the list, each division is one band. It begins at the rating in `Snapshot.cuts`; where ratings are not
    shown, at the division's lowest percentile; where percentiles are not shown either, with its first player.
    """
    if standing.rank is None:
        return None
    if standing.rating is not None:
        return next(cut.division.name for cut in reversed(snapshot.cuts()) if _reaches(standing.rating, cut))
    if standing.percentile is None:
        return standing.division
    return division_at(standing.percentile, snapshot.rules.divisions).name


def division_notes(snapshot: Snapshot, standing: Standing) -> list[str]:
    """Return why a player's division is not the one of their percentile or of their band; empty if it is."""
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
