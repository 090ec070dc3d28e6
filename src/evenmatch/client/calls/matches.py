"""Finished matches: report them, look at them, and what is to be expected of a line-up."""

from __future__ import annotations

from datetime import datetime

from evenmatch.client.call import Call, at, get, post
from evenmatch.client.operation import operation
from evenmatch.http.models.matches import (
    BatchOutcome,
    BatchReport,
    LineUp,
    MatchesPage,
    MatchReport,
    MatchTold,
    Odds,
    Receipt,
)


class Matches:
    """What game servers report."""

    @operation
    def report_match(self, ladder: str, match: MatchReport) -> Call[Receipt]:
        """Report a finished match, and get back each player's change with its factors, percentile and division.

        The same id with the same content changes nothing and gets the same answer.

        >>> ann = AppearanceReport(player="ann")
        >>> bob = AppearanceReport(player="bob", quit=True)
        >>> teams = [TeamReport(players=[ann], place=1), TeamReport(players=[bob], place=2)]
        >>> receipt = client.report_match("arena", MatchReport(id="m-1", played_at=datetime.now(UTC), teams=teams))
        >>> receipt.teams[0][0].change
        75.0
        """
        return post(Receipt, at("ladders", ladder, "matches"), match, again=True)

    @operation
    def report_matches(self, ladder: str, batch: BatchReport) -> Call[BatchOutcome]:
        """Report several finished matches, up to 1,000, in the order in which they ended; each stands for itself.

        >>> told = client.report_matches("arena", BatchReport(matches=[first, second]))
        >>> [one.problem for one in told.outcomes if one.problem]
        []
        """
        return post(BatchOutcome, at("ladders", ladder, "matches", "batch"), batch, again=True)

    @operation
    def list_matches(
        self,
        ladder: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        player: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Call[MatchesPage]:
        """A page of the recorded matches, the latest first, with what each did and why.

        >>> for match in client.all(client.list_matches, "arena", player="ann"):
        ...     print(match.match_id, *match.sentences)
        """
        query = {"limit": limit, "cursor": cursor, "player": player, "since": since, "until": until}
        return get(MatchesPage, at("ladders", ladder, "matches"), query)

    @operation
    def get_match(self, ladder: str, match_id: str) -> Call[MatchTold]:
        """A recorded match: the odds before, each player's change with its factors, and why."""
        return get(MatchTold, at("ladders", ladder, "matches", match_id))

    @operation
    def get_odds(self, ladder: str, line_up: LineUp) -> Call[Odds]:
        """What is to be expected of teams that might play. Who is unknown counts as a newcomer.

        >>> teams = [TeamLineUp(players=["ann", "bob"]), TeamLineUp(players=["eve", "joe"])]
        >>> client.get_odds("arena", LineUp(teams=teams)).teams[0].expected
        0.64
        """
        return post(Odds, at("ladders", ladder, "odds"), line_up, again=True)
