"""Players: what they did, how their rating went, who they are."""

from __future__ import annotations

from evenmatch.client.call import Call, at, get, post
from evenmatch.client.operation import operation
from evenmatch.http.models.people import Erased, MergeAsked, Merged, RenameAsked, Renamed
from evenmatch.http.models.profiles import PlayerMatches, PlayerPath, PlayerProfile, PlayersFound, PlayerTold


class Players:
    """Players of a ladder, and across ladders."""

    @operation
    def get_player(self, ladder: str, player: str) -> Call[PlayerProfile]:
        """A player on a ladder: where they stand, and what the system keeps of them."""
        return get(PlayerProfile, at("ladders", ladder, "players", player))

    @operation
    def player_matches(
        self, ladder: str, player: str, *, limit: int = 50, cursor: str | None = None
    ) -> Call[PlayerMatches]:
        """A page of a player's matches, the latest first, and what each did to them."""
        query = {"limit": limit, "cursor": cursor}
        return get(PlayerMatches, at("ladders", ladder, "players", player, "matches"), query)

    @operation
    def player_path(self, ladder: str, player: str, *, points: int = 200) -> Call[PlayerPath]:
        """A player's rating over time, for a graph: some of many matches, spread evenly."""
        return get(PlayerPath, at("ladders", ladder, "players", player, "path"), {"points": points})

    @operation
    def search_players(self, *, search: str, limit: int = 20) -> Call[PlayersFound]:
        """Names of players that hold a text."""
        return get(PlayersFound, at("players"), {"search": search, "limit": limit})

    @operation
    def find_player(self, player: str) -> Call[PlayerTold]:
        """A player, and the ladders that know them."""
        return get(PlayerTold, at("players", player))

    @operation
    def rename_player(self, player: str, rename: RenameAsked) -> Call[Renamed]:
        """Give a player another name; what is reported under the old one still reaches them."""
        return post(Renamed, at("players", player, "rename"), rename)

    @operation
    def merge_player(self, player: str, merge: MergeAsked) -> Call[Merged]:
        """Make one player of two who never met: `into` is left."""
        return post(Merged, at("players", player, "merge"), merge)

    @operation
    def erase_player(self, player: str) -> Call[Erased]:
        """Replace a player by a pseudonym everywhere, for good; nobody's rating changes."""
        return post(Erased, at("players", player, "erase"))
