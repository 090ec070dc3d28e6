"""Finished matches: report and read them; odds of a line-up."""

from __future__ import annotations

from datetime import datetime

from evenmatch.client.call import Call, get, path_of, post
from evenmatch.client.operation import operation
from evenmatch.http.models.matches import (
    BatchOutcome,
    BatchReport,
    LineUp,
    MatchesPage,
    MatchOut,
    MatchReport,
    OddsOut,
    ReceiptOut,
)


class MatchCalls:
    """Reports of finished matches, and what was recorded."""

    @operation
    def report_match(self, ladder: str, match: MatchReport) -> Call[ReceiptOut]:
        """Report a finished match; returns each player's rating change with factors, percentile and division.

        Repeating the same id and content changes nothing and returns the same receipt.

        >>> ann = AppearanceReport(player="ann")
        >>> bob = AppearanceReport(player="bob", quit=True)
        >>> teams = [TeamReport(players=[ann], place=1), TeamReport(players=[bob], place=2)]
        >>> receipt = client.report_match("arena", MatchReport(id="m-1", played_at=datetime.now(UTC), teams=teams))
        >>> receipt.teams[0][0].change
        75.0
        """
        return post(ReceiptOut, path_of("ladders", ladder, "matches"), match, again=True)

    @operation
    def report_matches(self, ladder: str, batch: BatchReport) -> Call[BatchOutcome]:
        """Report up to 1,000 finished matches in the order in which they ended; each may be refused separately.

        >>> batch = client.report_matches("arena", BatchReport(matches=[first, second]))
        >>> [outcome.problem for outcome in batch.outcomes if outcome.problem]
        []
        """
        return post(BatchOutcome, path_of("ladders", ladder, "matches", "batch"), batch, again=True)

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
        """A page of the recorded matches, newest first, with their rating changes and the reasons.

        >>> for match in client.all(client.list_matches, "arena", player="ann"):
        ...     print(match.match_id, *match.sentences)
        """
        query = {"limit": limit, "cursor": cursor, "player": player, "since": since, "until": until}
        return get(MatchesPage, path_of("ladders", ladder, "matches"), query)

    @operation
    def get_match(self, ladder: str, match_id: str) -> Call[MatchOut]:
        """A recorded match: the predicted odds, and each player's rating change with factors and reasons."""
        return get(MatchOut, path_of("ladders", ladder, "matches", match_id))

    @operation
    def get_odds(self, ladder: str, line_up: LineUp) -> Call[OddsOut]:
        """The predicted odds of a line-up, and its stakes if asked for. Unknown players count as newcomers.

        >>> teams = [TeamLineUp(players=["ann", "bob"]), TeamLineUp(players=["eve", "joe"])]
        >>> odds = client.get_odds("arena", LineUp(teams=teams, stakes=StakesRequest(players=["ann"])))
        >>> odds.teams[0].expected
        0.64
        >>> odds.teams[0].players[0].stakes.change.win
        75.0
        """
        return post(OddsOut, path_of("ladders", ladder, "odds"), line_up, again=True)
