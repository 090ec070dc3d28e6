"""Stakes of a player as responses show them: rounded as on receipts."""

from __future__ import annotations

from evenmatch.http.models.matches import OutcomesOut, PlayerStakesOut
from evenmatch.service.queries.match_explanations import ShownRatingChange
from evenmatch.stakes import PlayerStakes


def player_stakes_out(stakes: PlayerStakes) -> PlayerStakesOut:
    """The response model of the stakes of a player."""
    changes = {outcome: ShownRatingChange.of(stakes.before, after) for outcome, after in stakes.after._asdict().items()}
    return PlayerStakesOut(
        before=changes["win"].before,
        after=OutcomesOut(**{outcome: change.after for outcome, change in changes.items()}),
        change=OutcomesOut(**{outcome: change.change for outcome, change in changes.items()}),
    )
