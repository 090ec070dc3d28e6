"""The rule of placement, and the progress of a player, in words."""

from __future__ import annotations

from evenmatch.standings.board import Standing
from evenmatch.standings.rules import AUTO, StandingsRules


def placement_rule(rules: StandingsRules) -> str:
    """The rule in words: "10 completed matches"."""
    fewest = _matches(rules.fewest_matches)
    if rules.placement != AUTO:
        return fewest
    return (
        f"{fewest} once the next one is expected to move the percentile by less than {rules.placement_bound:g}, "
        f"and after {rules.placement_most:,} in any case"
    )


def placement_progress(standing: Standing, rules: StandingsRules) -> str:
    """The progress of a player who is not placed: "3 of 10 matches completed"."""
    completed, fewest = standing.completed, rules.fewest_matches
    if rules.placement != AUTO:
        return f"{completed} of {fewest} matches completed"
    if completed < fewest:
        return f"{completed} of at least {fewest} matches completed"
    latest = f"after {rules.placement_most:,} matches at the latest"
    if standing.expected_move is None:
        return f"{completed} matches completed; the percentile is shown once it has steadied, {latest}"
    return (
        f"the percentile still moves by about {max(standing.expected_move, 1):.0f} per match; it is shown below "
        f"{rules.placement_bound:g}, {latest} ({completed} completed)"
    )


def _matches(count: int) -> str:
    return f"{count:,} completed match{'' if count == 1 else 'es'}"
