"""Corrections of a ladder: each adds an event, replays the ledger, and can be previewed."""

from __future__ import annotations

from evenmatch.client.call import Call, delete, get, path_of, post, whole
from evenmatch.client.operation import operation
from evenmatch.http.models.corrections import BanRequest, CorrectionResult, CorrectionsPage, LateMatches, VoidRequest


class Corrections:
    """Corrections by operators.

    On a large ladder a job does the work: these methods wait for it, and the `on_job` of the client sees its progress.
    """

    @operation
    def void_match(self, ladder: str, void: VoidRequest, *, preview: bool = False) -> Call[CorrectionResult]:
        """Void a match and recalculate all ratings after it.

        >>> client.void_match("arena", VoidRequest(match_id="m-1", reason="the server crashed"), preview=True)
        """
        return post(
            CorrectionResult,
            path_of("ladders", ladder, "voids"),
            void,
            {"preview": preview},
            again=void.id is not None or preview,
            of_job=whole,
        )

    @operation
    def unvoid_match(
        self,
        ladder: str,
        match_id: str,
        *,
        reason: str | None = None,
        id: str | None = None,  # noqa: A002 - the name in the API
        preview: bool = False,
    ) -> Call[CorrectionResult]:
        """Restore a voided match, so that it counts again."""
        query = {"reason": reason, "id": id, "preview": preview}
        return delete(CorrectionResult, path_of("ladders", ladder, "voids", match_id), query, of_job=whole)

    @operation
    def ban_player(self, ladder: str, ban: BanRequest, *, preview: bool = False) -> Call[CorrectionResult]:
        """Ban a player from a ladder and its standings; recalculate all ratings that their matches affected."""
        return post(
            CorrectionResult,
            path_of("ladders", ladder, "bans"),
            ban,
            {"preview": preview},
            again=ban.id is not None or preview,
            of_job=whole,
        )

    @operation
    def reinstate_player(
        self,
        ladder: str,
        player: str,
        *,
        reason: str | None = None,
        id: str | None = None,  # noqa: A002 - the name in the API
        preview: bool = False,
    ) -> Call[CorrectionResult]:
        """Lift a ban; ratings become what they would be without it."""
        query = {"reason": reason, "id": id, "preview": preview}
        return delete(CorrectionResult, path_of("ladders", ladder, "bans", player), query, of_job=whole)

    @operation
    def insert_late_matches(
        self, ladder: str, matches: LateMatches, *, preview: bool = False
    ) -> Call[CorrectionResult]:
        """Record matches that ended before the ladder's newest match, and rate them at the time they were played."""
        return post(
            CorrectionResult,
            path_of("ladders", ladder, "late-matches"),
            matches,
            {"preview": preview},
            again=matches.id is not None or preview,
            of_job=whole,
        )

    @operation
    def list_voids(self, ladder: str, *, limit: int = 50, cursor: str | None = None) -> Call[CorrectionsPage]:
        """A page of the currently void matches, each with the correction that voided it."""
        return get(CorrectionsPage, path_of("ladders", ladder, "voids"), {"limit": limit, "cursor": cursor})

    @operation
    def list_bans(self, ladder: str, *, limit: int = 50, cursor: str | None = None) -> Call[CorrectionsPage]:
        """A page of the currently banned players, each with the correction that banned them."""
        return get(CorrectionsPage, path_of("ladders", ladder, "bans"), {"limit": limit, "cursor": cursor})

    @operation
    def list_corrections(self, ladder: str, *, limit: int = 50, cursor: str | None = None) -> Call[CorrectionsPage]:
        """A page of all events of the ladder's ledger except matches."""
        return get(CorrectionsPage, path_of("ladders", ladder, "corrections"), {"limit": limit, "cursor": cursor})
