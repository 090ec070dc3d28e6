"""What a caller may see of a ladder's numbers: everything that is rendered for callers passes through here.

`View.seen_by` filters standings, and the methods of `Visibility` filter the results of all other queries. Ratings can
be computed from odds, changes and factors, so these are shown only where ratings are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evenmatch.accounts.access import Caller
from evenmatch.errors import ForbiddenError
from evenmatch.ladders.seasons import StandingRow
from evenmatch.ladders.settings import Settings
from evenmatch.live.status import MatchStatus
from evenmatch.matchmaking import Waiting
from evenmatch.players.career import Career
from evenmatch.players.matches import MatchProfile, Part, PlayerEffect, TeamProfile
from evenmatch.players.rating_path import RatingPath
from evenmatch.queues.ticket_status import OfferStatus, Status, TicketRating
from evenmatch.standings.rules import AUTO, StandingsRules

NOWHERE = (math.nan, math.nan)  # replaces the window of a ticket if it is hidden


@dataclass(frozen=True)
class Visibility:
    """What one caller may see of one ladder. show: one of settings.SHOWS; "rating": everything."""

    show: str

    @classmethod
    def of(cls, settings: Settings, caller: Caller, ladder: str) -> Visibility:
        """The visibility for this caller of the ladder with these settings."""
        return cls(settings.shown_to(caller, ladder))

    @property
    def is_all(self) -> bool:
        """True if nothing is hidden."""
        return self.show == "rating"

    @property
    def ratings(self) -> bool:
        """True if ratings are shown, at least those of placed players."""
        return self.show in ("rating", "after_placement")

    @property
    def percentiles(self) -> bool:
        """True if percentiles are shown."""
        return self.show != "division"

    @property
    def curves(self) -> tuple[str, ...]:
        """The curves of a player over time, the most informative first."""
        if self.ratings:
            return "rating", "percentile"
        return ("percentile",) if self.percentiles else ("division",)

    def check(self, what: str, ladder: str) -> None:
        """Raise ForbiddenError, naming `what`, if ratings are hidden from this caller."""
        if not self.is_all:
            raise ForbiddenError(
                f"ladder {ladder!r} shows its players {SHOWN[self.show]} (show={self.show}), and {what} would "
                "reveal more; a key with the scope ratings is required"
            )

    # results of queries

    def match(self, match: MatchProfile, unplaced: Collection[str]) -> MatchProfile:
        """A match; unplaced: the names of players who have not completed their placement matches."""
        players = {appearance.player for side in match.sides for appearance, _ in side.parts}
        if self.is_all or (self.ratings and players.isdisjoint(unplaced)):
            return match
        sides = tuple(
            TeamProfile(side.finish._replace(expected=None), tuple(map(self._part, side.parts))) for side in match.sides
        )
        return replace(match, sides=sides, explanations=())

    def _part(self, part: Part) -> Part:
        appearance, effect = part
        if effect is None:
            return part
        return appearance, PlayerEffect(None, effect.percentile if self.percentiles else None, effect.division)

    def path(self, path: RatingPath, *, placed: bool) -> RatingPath:
        """A player's path. placed: the player is placed."""
        if self.is_all or (self.ratings and placed):
            return path
        steps = [
            step._replace(before=None, after=None, percentile=step.percentile if self.percentiles else None)
            for step in path.steps
        ]
        falls = [fall for fall in path.falls if fall.of == "percentile" and self.percentiles]
        return path._replace(steps=steps, falls=falls)

    def career(self, career: Career, *, placed: bool) -> Career:
        """A player's career. placed: the player is placed."""
        return career if self.is_all or (self.ratings and placed) else career.hidden(percentiles=self.percentiles)

    def journal_row(self, row: Mapping[str, object], *, placed: bool) -> dict[str, object]:
        """A row of export.matches_of_player. placed: the player is placed."""
        if self.is_all:
            return dict(row)
        hidden = {"expected", "factors"} | (set() if self.ratings and placed else {"before", "after"})
        return {name: value for name, value in row.items() if name not in hidden}

    def final(self, standing: StandingRow, rules: StandingsRules) -> StandingRow:
        """A final standing of a season. rules: the present ones of the ladder.

        If placement is automatic, players who were listed at the end count as placed.
        """
        placed = standing.rank is not None or (rules.placement != AUTO and standing.completed >= rules.fewest_matches)
        if self.is_all or (self.ratings and placed):
            return standing
        percentile = standing.percentile if self.percentiles else None
        return standing._replace(rank=None, rating=None, percentile=percentile)

    # queues and running matches

    def ticket(self, status: Status) -> Status:
        """A ticket with its offer, or the match and its receipt."""
        if self.is_all:
            return status
        match = status.match
        if match is not None and match.receipt is not None:
            players = {name: self._rating(rating) for name, rating in match.receipt.players.items()}
            match = replace(match, receipt=match.receipt._replace(players=players))
        waiting: Mapping[str, Waiting] = status.waiting
        if not self.percentiles:
            waiting = {name: replace(entry, window=NOWHERE, widens_to=None) for name, entry in waiting.items()}
        offer = None if status.offer is None else self._offer(status.offer)
        return replace(status, offer=offer, match=match, waiting=waiting)

    def _rating(self, rating: TicketRating) -> TicketRating:
        if self.ratings and rating.percentile is not None:  # only placed players have one
            return rating
        percentile = rating.percentile if self.percentiles else None
        return rating._replace(before=None, after=None, change=None, percentile=percentile)

    def _offer(self, offer: OfferStatus) -> OfferStatus:
        return replace(offer, odds=None, spread=offer.spread if self.percentiles else math.nan, costs={}, stakes={})

    def bands(self, waiting: Sequence[int]) -> list[int]:
        """The waiting players of a queue in bands of percentiles; empty: not shown."""
        return list(waiting) if self.percentiles else []

    @property
    def of_live(self) -> Visibility:
        """One representative of all visibilities that show the same of running matches."""
        return Visibility("percentile") if self.percentiles and not self.is_all else self

    def live(self, match: MatchStatus) -> MatchStatus:
        """A running match."""
        return match if self.is_all else replace(match, odds=None, spread=match.spread if self.percentiles else None)


SHOWN = {
    "percentile": "percentiles instead of ratings",
    "division": "divisions instead of ratings",
    "after_placement": "nothing before their placement matches",
}
