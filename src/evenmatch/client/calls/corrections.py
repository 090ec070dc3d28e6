"""Corrections of what counts: each is an event and a replay, and can be seen before it is done."""

from __future__ import annotations

from evenmatch.client.call import Call, at, delete, get, post
from evenmatch.client.operation import operation
from evenmatch.http.models.corrections import BanAsked, Corrected, Rulings, VoidAsked


class Corrections:
    """What operators correct. Sent again after a failure only with an `id`, by which the service knows it."""

    @operation
    def void_match(self, ladder: str, void: VoidAsked, *, preview: bool = False) -> Call[Corrected]:
        """Let a match count for nothing, and rate all that came after it anew.

        >>> client.void_match("arena", VoidAsked(match_id="m-1", reason="the server crashed"), preview=True)
        """
        return post(
            Corrected, at("ladders", ladder, "voids"), void, {"preview": preview}, again=void.id is not None or preview
        )

    @operation
    def unvoid_match(
        self,
        ladder: str,
        match_id: str,
        *,
        reason: str | None = None,
        id: str | None = None,  # noqa: A002 - so it is called everywhere
        preview: bool = False,
    ) -> Call[Corrected]:
        """Let a match that was voided count again."""
        query = {"reason": reason, "id": id, "preview": preview}
        return delete(Corrected, at("ladders", ladder, "voids", match_id), query)

    @operation
    def ban_player(self, ladder: str, ban: BanAsked, *, preview: bool = False) -> Call[Corrected]:
        """Ban a player from a ladder, and rate all that they had a part in anew; they are in no standings then."""
        return post(
            Corrected, at("ladders", ladder, "bans"), ban, {"preview": preview}, again=ban.id is not None or preview
        )

    @operation
    def reinstate_player(
        self,
        ladder: str,
        player: str,
        *,
        reason: str | None = None,
        id: str | None = None,  # noqa: A002 - so it is called everywhere
        preview: bool = False,
    ) -> Call[Corrected]:
        """Lift a ban, as though it had never been."""
        query = {"reason": reason, "id": id, "preview": preview}
        return delete(Corrected, at("ladders", ladder, "bans", player), query)

    @operation
    def list_voids(self, ladder: str, *, limit: int = 50, cursor: str | None = None) -> Call[Rulings]:
        """A page of the matches that are void now, each by the correction that did it."""
        return get(Rulings, at("ladders", ladder, "voids"), {"limit": limit, "cursor": cursor})

    @operation
    def list_bans(self, ladder: str, *, limit: int = 50, cursor: str | None = None) -> Call[Rulings]:
        """A page of the players who are banned now, each by the correction that did it."""
        return get(Rulings, at("ladders", ladder, "bans"), {"limit": limit, "cursor": cursor})

    @operation
    def list_corrections(self, ladder: str, *, limit: int = 50, cursor: str | None = None) -> Call[Rulings]:
        """A page of the events of the ladder's ledger that are no matches."""
        return get(Rulings, at("ladders", ladder, "corrections"), {"limit": limit, "cursor": cursor})
