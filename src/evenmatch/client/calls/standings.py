"""Standings of a ladder."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.client.call import Call, get, path_of
from evenmatch.client.operation import operation
from evenmatch.http.models.standings import DistributionOut, NeighboursOut, SelectedStandings, StandingsPage


class Standings:
    """Standings of a ladder, and the distribution of its ratings."""

    @operation
    def get_standings(
        self, ladder: str, *, limit: int = 50, cursor: str | None = None, season: int | None = None
    ) -> Call[StandingsPage]:
        """A page of the listed players, best first: now, or at the end of a season.

        >>> for row in client.all(client.get_standings, "arena", limit=500):
        ...     print(row.rank, row.player, row.rating)
        """
        return get(
            StandingsPage, path_of("ladders", ladder, "standings"), {"limit": limit, "cursor": cursor, "season": season}
        )

    @operation
    def standings_around(self, ladder: str, player: str, *, each_side: int = 5) -> Call[NeighboursOut]:
        """A player with up to `each_side` players ranked above and below them."""
        return get(NeighboursOut, path_of("ladders", ladder, "standings", "around", player), {"each_side": each_side})

    @operation
    def standings_among(self, ladder: str, *, player: Sequence[str]) -> Call[SelectedStandings]:
        """Only these players, with their ranks on the ladder: listed ones first, then the others by rating.

        >>> client.standings_among("arena", player=["ann", "bob", "zoe"]).missing
        ['zoe']
        """
        return get(SelectedStandings, path_of("ladders", ladder, "standings", "among"), {"player": player})

    @operation
    def rating_distribution(self, ladder: str, *, bins: int = 40) -> Call[DistributionOut]:
        """A histogram of the ratings of active players, and the ratings at which divisions begin."""
        return get(DistributionOut, path_of("ladders", ladder, "distribution"), {"bins": bins})
