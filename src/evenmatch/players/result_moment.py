"""A match as one of its players sees it right after it: the result, the way of the rating, the streak, and why."""

from __future__ import annotations

from itertools import takewhile
from typing import Literal, NamedTuple

from evenmatch.ladders.settings import Settings
from evenmatch.ledger.store import Head, Store
from evenmatch.players.career import Streak
from evenmatch.players.matches import MatchProfile
from evenmatch.players.rated_matches import latest_matches
from evenmatch.standings.bands import DivisionProgress, division_progress
from evenmatch.standings.board import Snapshot
from evenmatch.times import Time

LOOKED_AT = 100  # latest matches in which a streak is counted

Outcome = Literal["victory", "defeat", "draw", "place"]


class StandingThen(NamedTuple):
    """A player's standing at a time. rating, percentile, division: null if not shown then, or hidden.

    way  the progress towards the next division, by the present limits
    """

    rating: float | None
    percentile: int | None
    division: str | None
    way: DivisionProgress | None


class ResultMoment(NamedTuple):
    """A match as one of its players sees it right after it.

    outcome    place: there were more than two teams
    place      of the player's team; 1 is best, and equal places are a draw
    own_score, best_rival_score  of the teams; null: not recorded
    reason     why the match is not rated; null: it is rated
    standing_before, standing_after  null: the match is not rated
    change     of the rating; null: not rated, or hidden
    expected   the team's expected score before the match, 0..1; null: not rated, or hidden
    streak     the player's latest results up to this match; null: the match is not rated
    headline   a sentence to the player that says what the match did to the rating; null: not rated, or hidden
    otherwise  what another result would have done; null: not known
    """

    match_id: str
    player: str
    played_at: Time
    outcome: Outcome
    place: int
    teams: int
    own_score: float | None
    best_rival_score: float | None
    quit: bool
    reason: str | None
    standing_before: StandingThen | None
    standing_after: StandingThen | None
    change: float | None
    expected: float | None
    streak: Streak | None
    headline: str | None
    otherwise: str | None


class LatestResults(NamedTuple):
    """A player's streak up to a match, and the standing recorded after the match before it (None: not shown)."""

    streak: Streak | None
    percentile: int | None
    division: str | None


def latest_results(store: Store, head: Head, player: int, match: MatchProfile) -> LatestResults:
    """The streak of a player up to a match, of LOOKED_AT matches at most, and the standing before the match."""
    rated = latest_matches(store, head, player, LOOKED_AT, match.played_at + 1)
    up_to = [*takewhile(lambda one: one.match_id != match.match_id, rated)]
    own = next((one for one in rated if one.match_id == match.match_id), None)
    if own is None:
        return LatestResults(None, None, None)
    same = sum(1 for _ in takewhile(lambda one: one.word == own.word, reversed(up_to)))
    streak, divisions = Streak(own.word, same + 1), Settings.read(head.settings).standings.divisions
    if not up_to:
        return LatestResults(streak, None, None)
    return LatestResults(streak, up_to[-1].percentile, up_to[-1].division(divisions))


def result_moment(match: MatchProfile, player: str, latest: LatestResults, snapshot: Snapshot) -> ResultMoment:
    """The result of a match for one of its players. match, latest and snapshot: as the caller may see them.

    Raises StopIteration if the player is not in the match.
    """
    team, slot = match.part_of(player)
    side = match.sides[team]
    appearance, effect = side.parts[slot]
    rivals = [other.finish for other in match.sides if other is not side]
    change = None if effect is None else effect.change
    explanation = match.explanations[team][slot] if match.explanations else None
    before = after = None
    if effect is not None:
        before = _then(snapshot, None if change is None else change.before, latest.percentile, latest.division)
        after = _then(snapshot, None if change is None else change.after, effect.percentile, effect.division)
    return ResultMoment(
        match_id=match.match_id,
        player=player,
        played_at=match.played_at,
        outcome=_outcome(side.finish.place, [rival.place for rival in rivals]),
        place=side.finish.place,
        teams=len(match.sides),
        own_score=side.finish.score,
        best_rival_score=max((rival.score for rival in rivals if rival.score is not None), default=None),
        quit=appearance.quit,
        reason=match.reason,
        standing_before=before,
        standing_after=after,
        change=None if change is None else change.moved,
        expected=None if change is None else change.expected,
        streak=latest.streak,
        headline=None if explanation is None else explanation.headline,
        otherwise=None if explanation is None else explanation.otherwise,
    )


def _then(snapshot: Snapshot, rating: float | None, percentile: int | None, division: str | None) -> StandingThen:
    return StandingThen(rating, percentile, division, division_progress(snapshot, rating, percentile))


def _outcome(place: int, rivals: list[int]) -> Outcome:
    if len(rivals) > 1:
        return "place"
    return "victory" if place < rivals[0] else "defeat" if place > rivals[0] else "draw"
