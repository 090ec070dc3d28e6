"""Matches that are on."""

from __future__ import annotations

from evenmatch.client.call import Call, at, get, post, put
from evenmatch.client.operation import operation
from evenmatch.http.models.live import Announce, Backfill, Cancel, Close, LiveMatch, LiveMatches, Presences
from evenmatch.http.models.matches import Receipt


class Live:
    """What game servers tell while a match is played."""

    @operation
    def live_matches(self, ladder: str, *, queue: str | None = None) -> Call[LiveMatches]:
        """The matches that are on: those that a queue made wait here for a server to play them."""
        return get(LiveMatches, at("ladders", ladder, "live"), {"queue": queue})

    @operation
    def live_match(self, ladder: str, match_id: str, *, after: int | None = None, wait: float = 0.0) -> Call[LiveMatch]:
        """A running match, or one that was; with `after` and `wait` (seconds) once it has changed."""
        query = {"after": after, "wait": wait}
        return get(LiveMatch, at("ladders", ladder, "live", match_id), query, wait=wait)

    @operation
    def announce_match(self, ladder: str, match_id: str, match: Announce) -> Call[LiveMatch]:
        """A match begins. One that a queue made is confirmed so. The same again changes nothing.

        >>> teams = [LiveTeam(players=["ann", "bob"]), LiveTeam(players=["eve", "joe"])]
        >>> client.announce_match("arena", "m-2", Announce(teams=teams)).state
        'open'
        """
        return put(LiveMatch, at("ladders", ladder, "live", match_id), match)

    @operation
    def tell_presence(self, ladder: str, match_id: str, presences: Presences) -> Call[LiveMatch]:
        """Players left, came back, or came late.

        >>> client.tell_presence("arena", "m-2", Presences(players=[Coming(player="joe")]))  # joe left
        """
        return post(LiveMatch, at("ladders", ladder, "live", match_id, "presence"), presences)

    @operation
    def wish_backfill(self, ladder: str, match_id: str, wish: Backfill) -> Call[LiveMatch]:
        """Wish for players from a queue to fill open seats; who accepts joins the match.

        >>> client.wish_backfill("arena", "m-2", Backfill(seats=[0, 1]))  # the second team lacks one
        """
        return put(LiveMatch, at("ladders", ladder, "live", match_id, "backfill"), wish)

    @operation
    def close_match(self, ladder: str, match_id: str, ending: Close) -> Call[Receipt]:
        """A match ended: it is recorded, with seconds and quitters from who was there when.

        The same again gets the same answer.

        >>> client.close_match("arena", "m-2", Close(teams=[TeamResult(score=7), TeamResult(score=4)])).rated
        True
        """
        return post(Receipt, at("ladders", ladder, "live", match_id, "close"), ending, again=True)

    @operation
    def cancel_match(self, ladder: str, match_id: str, cancel: Cancel) -> Call[LiveMatch]:
        """A match is not to be rated, and nobody is blamed; its players may queue again."""
        return post(LiveMatch, at("ladders", ladder, "live", match_id, "cancel"), cancel)
