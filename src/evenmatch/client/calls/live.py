"""Running matches."""

from __future__ import annotations

from evenmatch.client.call import Call, get, path_of, post, put
from evenmatch.client.operation import operation
from evenmatch.http.models.live import Announce, AttendanceReport, Backfill, Cancel, Close, LiveMatch, LiveMatches
from evenmatch.http.models.matches import ReceiptOut


class LiveMatchCalls:
    """Calls of game servers while a match is played."""

    @operation
    def live_matches(self, ladder: str, *, queue: str | None = None) -> Call[LiveMatches]:
        """The running matches, including those from queues that still wait for a game server."""
        return get(LiveMatches, path_of("ladders", ladder, "live"), {"queue": queue})

    @operation
    def live_match(self, ladder: str, match_id: str, *, after: int | None = None, wait: float = 0.0) -> Call[LiveMatch]:
        """A running or ended match; `after` and `wait` (seconds): wait until its `change` exceeds `after`."""
        query = {"after": after, "wait": wait}
        return get(LiveMatch, path_of("ladders", ladder, "live", match_id), query, wait=wait)

    @operation
    def announce_match(self, ladder: str, match_id: str, match: Announce) -> Call[LiveMatch]:
        """Announce the start of a match, or confirm a match of a queue. Repeating it changes nothing.

        >>> teams = [LiveTeam(players=["ann", "bob"]), LiveTeam(players=["eve", "joe"])]
        >>> client.announce_match("arena", "m-2", Announce(teams=teams)).state
        'open'
        """
        return put(LiveMatch, path_of("ladders", ladder, "live", match_id), match, again=True)

    @operation
    def tell_presence(self, ladder: str, match_id: str, presences: AttendanceReport) -> Call[LiveMatch]:
        """Report players who left, came back or came late.

        >>> client.tell_presence("arena", "m-2", AttendanceReport(players=[AttendanceChange(player="joe")]))  # joe left
        """
        return post(LiveMatch, path_of("ladders", ladder, "live", match_id, "presence"), presences)

    @operation
    def request_backfill(self, ladder: str, match_id: str, wish: Backfill) -> Call[LiveMatch]:
        """Request players from a queue to fill open slots; players who accept join the match.

        >>> client.request_backfill("arena", "m-2", Backfill(seats=[0, 1]))  # the second team has one open slot
        """
        return put(LiveMatch, path_of("ladders", ladder, "live", match_id, "backfill"), wish)

    @operation
    def close_match(self, ladder: str, match_id: str, ending: Close) -> Call[ReceiptOut]:
        """End a match and record it; playing times and quitters follow from the reported attendance.

        Repeating the same request returns the same receipt.

        >>> client.close_match("arena", "m-2", Close(teams=[TeamResult(score=7), TeamResult(score=4)])).rated
        True
        """
        return post(ReceiptOut, path_of("ladders", ladder, "live", match_id, "close"), ending, again=True)

    @operation
    def cancel_match(self, ladder: str, match_id: str, cancel: Cancel) -> Call[LiveMatch]:
        """Cancel a match: it is not rated, no player is penalised, and its players may queue again."""
        return post(LiveMatch, path_of("ladders", ladder, "live", match_id, "cancel"), cancel)
