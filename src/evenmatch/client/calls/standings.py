"""Who stands where."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.client.call import Call, at, get
from evenmatch.client.operation import operation
from evenmatch.http.models.standings import Among, Around, DistributionTold, StandingsPage


class Standings:
    """The standings of a ladder."""

    @operation
    def get_standings(
        self, ladder: str, *, limit: int = 50, cursor: str | None = None, season: int | None = None
    ) -> Call[StandingsPage]:
        """A page of the listed players, best first: now, or as a season ended.

        >>> for row in client.all(client.get_standings, "arena", limit=500):
        ...     print(row.rank, row.player, row.rating)
        """
        return get(
            StandingsPage, at("ladders", ladder, "standings"), {"limit": limit, "cursor": cursor, "season": season}
        )

    @operation
    def standings_around(self, ladder: str, player: str, *, each_side: int = 5) -> Call[Around]:
        """A player between those above and those below."""
        return get(Around, at("ladders", ladder, "standings", "around", player), {"each_side": each_side})

    @operation
    def standings_among(self, ladder: str, *, player: Sequence[str]) -> Call[Among]:
        """Some players alone, with the ladder's ranks: the listed first, then the others by rating.

        >>> client.standings_among("arena", player=["ann", "bob", "zoe"]).missing
        ['zoe']
        """
        return get(Among, at("ladders", ladder, "standings", "among"), {"player": player})

    @operation
    def rating_distribution(self, ladder: str, *, bins: int = 40) -> Call[DistributionTold]:
        """How many active players have which rating, in round ranges, and where divisions begin."""
        return get(DistributionTold, at("ladders", ladder, "distribution"), {"bins": bins})
