"""Players: profiles, matches, rating history and identities."""

from __future__ import annotations

from evenmatch.client.call import Call, get, path_of, post
from evenmatch.client.operation import operation
from evenmatch.http.models.players import (
    MergeRequest,
    OddNamesPage,
    PlayerErased,
    PlayerMatches,
    PlayerOut,
    PlayerPath,
    PlayerProfile,
    PlayerRenamed,
    PlayersFound,
    PlayersMerged,
    RenameRequest,
)


class Players:
    """Players of one ladder and across ladders."""

    @operation
    def get_player(self, ladder: str, player: str) -> Call[PlayerProfile]:
        """A player on a ladder: their standing, and the state that the rating system stores."""
        return get(PlayerProfile, path_of("ladders", ladder, "players", player))

    @operation
    def player_matches(
        self, ladder: str, player: str, *, limit: int = 50, cursor: str | None = None
    ) -> Call[PlayerMatches]:
        """A page of a player's matches, newest first, with the rating change of each."""
        query = {"limit": limit, "cursor": cursor}
        return get(PlayerMatches, path_of("ladders", ladder, "players", player, "matches"), query)

    @operation
    def player_path(self, ladder: str, player: str, *, points: int = 200) -> Call[PlayerPath]:
        """A player's rating over time for a graph: at most `points` matches, evenly spaced."""
        return get(PlayerPath, path_of("ladders", ladder, "players", player, "path"), {"points": points})

    @operation
    def list_odd_names(self, ladder: str, *, limit: int = 50, cursor: str | None = None) -> Call[OddNamesPage]:
        """A page of the names on a ladder that may pass as another player's, by name."""
        return get(OddNamesPage, path_of("ladders", ladder, "odd-names"), {"limit": limit, "cursor": cursor})

    @operation
    def search_players(self, *, search: str, limit: int = 20) -> Call[PlayersFound]:
        """Players whose name contains a text, ignoring case and diacritics."""
        return get(PlayersFound, path_of("players"), {"search": search, "limit": limit})

    @operation
    def find_player(self, player: str) -> Call[PlayerOut]:
        """A player, and the ladders they are on."""
        return get(PlayerOut, path_of("players", player))

    @operation
    def rename_player(self, player: str, rename: RenameRequest) -> Call[PlayerRenamed]:
        """Rename a player; reports under the old name still count for them."""
        return post(PlayerRenamed, path_of("players", player, "rename"), rename)

    @operation
    def merge_player(self, player: str, merge: MergeRequest) -> Call[PlayersMerged]:
        """Merge a player into the player `into`, who remains. Refused if both played in the same match."""
        return post(PlayersMerged, path_of("players", player, "merge"), merge)

    @operation
    def erase_player(self, player: str) -> Call[PlayerErased]:
        """Replace a player by a pseudonym everywhere, permanently; no rating of others changes."""
        return post(PlayerErased, path_of("players", player, "erase"))
