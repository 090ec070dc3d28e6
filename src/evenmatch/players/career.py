"""A player's career on a ladder: record, streaks, peak, trends, best wins, rivals, team-mates and time played."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isnan, nan
from typing import NamedTuple

from evenmatch.durations import DAY, HOUR
from evenmatch.history import FloatOrNaN
from evenmatch.ladders.inactivity import InactivityFall, rating_falls
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import player_rows
from evenmatch.ledger.store import Head, Store
from evenmatch.players.rated_matches import OpponentMatch
from evenmatch.players.rating_path import StepLevel
from evenmatch.times import Time

TREND_DAYS = (7, 30)
BEST_WINS = 3
OTHERS = 12  # other players in the result, those met most often
RIVALS = 3
FEWEST_MET = 3  # matches with or against a player who counts as a rival or a good team-mate
HOURS = 24


class Tally(NamedTuple):
    """Counts of a player's results.

    score, expected  sums of actual and predicted scores, 0..1 per match; expected: NaN if hidden
    """

    won: int = 0
    drew: int = 0
    lost: int = 0
    score: float = 0.0
    expected: FloatOrNaN = 0.0

    @property
    def matches(self) -> int:
        """The number of matches."""
        return self.won + self.drew + self.lost

    @property
    def surplus(self) -> float:
        """The mean difference between actual and expected score, −1..1; 0 without matches."""
        return (self.score - self.expected) / self.matches if self.matches else 0.0

    def after(self, score: float, expected: float) -> Tally:
        """A copy with one more match."""
        return Tally(
            self.won + (score > 0.5),
            self.drew + (score == 0.5),
            self.lost + (score < 0.5),
            self.score + score,
            self.expected + expected,
        )

    def hidden(self) -> Tally:
        """A copy without expectations."""
        return self._replace(expected=nan)


class Encounter(NamedTuple):
    """Another player, and the results against them and in the same team."""

    player: str
    against: Tally
    beside: Tally

    def hidden(self) -> Encounter:
        """A copy without expectations."""
        return self._replace(against=self.against.hidden(), beside=self.beside.hidden())


class Streak(NamedTuple):
    """Matches in a row with the same result. word: won, drew or lost."""

    word: str
    length: int


class Peak(NamedTuple):
    """The highest standing of a player after a match. rating, percentile, division: null if not shown."""

    match_id: str
    played_at: Time
    rating: float | None
    percentile: int | None
    division: str | None


class Trend(NamedTuple):
    """A player's last days. change: of the rating in that time, by matches and inactivity; null if not shown."""

    days: int
    matches: int
    won: int
    change: float | None


class BestWin(NamedTuple):
    """A win and how likely it was.

    expected  the expected score before the match, 0..1;  rival  the opponent of a duel, else null
    """

    match_id: str
    played_at: Time
    expected: float
    rival: str | None


@dataclass(frozen=True)
class Career:
    """The rated matches of a player, up to the latest LONGEST.

    streak      the latest results; null: no match
    longest     the most wins in a row
    best_wins   least expected first; empty if expectations are hidden
    rivals      opponents who won more often than the player, hardest first
    team_mates  players beside whom the player won more often than lost, best first
    seconds     time played; null: no match has a recorded duration
    others      the players met most often, most frequent opponents first
    hours       24 tallies, by hour of the day in UTC
    falls       falls of the rating by inactivity, in order
    """

    whole: Tally
    streak: Streak | None
    longest: int
    peak: Peak | None
    trends: tuple[Trend, ...]
    best_wins: tuple[BestWin, ...]
    rivals: tuple[Encounter, ...]
    team_mates: tuple[Encounter, ...]
    seconds: float | None
    others: tuple[Encounter, ...]
    hours: tuple[Tally, ...]
    falls: list[InactivityFall]

    def hidden(self, *, percentiles: bool) -> Career:
        """A copy without ratings and what reveals them. percentiles: percentiles are shown."""
        peak = self.peak
        if peak is not None:
            peak = peak._replace(rating=None, percentile=peak.percentile if percentiles else None)
            peak = peak if peak.percentile or peak.division else None
        return replace(
            self,
            whole=self.whole.hidden(),
            peak=peak,
            trends=tuple(trend._replace(change=None) for trend in self.trends),
            best_wins=(),
            rivals=tuple(other.hidden() for other in self.rivals),
            team_mates=tuple(other.hidden() for other in self.team_mates),
            others=tuple(other.hidden() for other in self.others),
            hours=tuple(tally.hidden() for tally in self.hours),
            falls=[fall for fall in self.falls if fall.of == "percentile" and percentiles],
        )


def career(store: Store, head: Head, player: int, matches: Sequence[OpponentMatch], now: int, by: StepLevel) -> Career:
    """The career of a player as of `now` (microseconds).

    matches  all rated matches of the player, in order;  by  the value whose highest is the peak
    """
    falls = rating_falls(store, head, player, matches)
    streaks = [Streak(word, len(list(run))) for word, run in groupby(match.word for match in matches)]
    seconds = [match.seconds for match in matches if not isnan(match.seconds)]
    whole, hours = Tally(), [Tally()] * HOURS
    for match in matches:
        score, expected, hour = match.score, float(match.line["expected"]), match.played_at // HOUR % HOURS
        whole, hours[hour] = whole.after(score, expected), hours[hour].after(score, expected)
    met = _encountered(player, matches)
    won = [match for match in matches if match.word == "won"]
    best_wins = sorted(won, key=lambda match: float(match.line["expected"]))[:BEST_WINS]
    rivals = _foremost({one: against.lost - against.won for one, (against, _) in met.items() if _is_often(against)})
    team_mates = _foremost({one: beside.won - beside.lost for one, (_, beside) in met.items() if _is_often(beside)})
    others = sorted(met, key=lambda one: (-met[one][0].matches, -met[one][1].matches, one))[:OTHERS]
    rival_of = {match.match_id: int(match.players[match.players != player][0]) for match in best_wins if match.is_duel}
    names = player_rows.names_of(store, [*others, *rivals, *team_mates, *rival_of.values()])
    return Career(
        whole=whole,
        streak=streaks[-1] if streaks else None,
        longest=max((streak.length for streak in streaks if streak.word == "won"), default=0),
        peak=_peak(head, matches, by),
        trends=tuple(_trend(matches, falls, days, now) for days in TREND_DAYS),
        best_wins=tuple(
            BestWin(
                match.match_id,
                match.played_at,
                float(match.line["expected"]),
                names[rival_of[match.match_id]] if match.is_duel else None,
            )
            for match in best_wins
        ),
        rivals=tuple(Encounter(names[one], *met[one]) for one in rivals),
        team_mates=tuple(Encounter(names[one], *met[one]) for one in team_mates),
        seconds=sum(seconds) if seconds else None,
        others=tuple(Encounter(names[one], *met[one]) for one in others),
        hours=tuple(hours),
        falls=falls,
    )


def _encountered(player: int, matches: Sequence[OpponentMatch]) -> dict[int, tuple[Tally, Tally]]:
    """The results against and beside each other player.

    The result against a player compares the places of both teams; the result beside one covers all rivals.
    """
    met: dict[int, tuple[Tally, Tally]] = defaultdict(lambda: (Tally(), Tally()))
    for match in matches:
        own_place, expected = match.places[match.team], float(match.line["expected"])
        for other, team in zip(match.players.tolist(), match.teams.tolist(), strict=True):
            against, beside = met[other]
            if team == match.team:
                met[other] = against, beside.after(match.score, expected)
            else:
                place = match.places[team]
                points = 1.0 if place > own_place else 0.5 if place == own_place else 0.0
                met[other] = against.after(points, expected), beside
    met.pop(player, None)
    return dict(met)


def _is_often(tally: Tally) -> bool:
    return tally.matches >= FEWEST_MET


def _foremost(net: Mapping[int, int]) -> list[int]:
    """The players with the largest positive values, largest first."""
    positive = [player for player, value in net.items() if value > 0]
    return sorted(positive, key=lambda player: (-net[player], player))[:RIVALS]


def _peak(head: Head, matches: Sequence[OpponentMatch], by: StepLevel) -> Peak | None:
    """Return the first match after which `by` was highest; None if it was never shown."""
    lowest_shown = {"after": float("-inf"), "percentile": 1, "division": 0}[by]
    shown = [match for match in matches if match.line[by] >= lowest_shown]
    if not shown:
        return None
    best = max(shown, key=lambda match: float(match.line[by]))
    rating, divisions = float(best.line["after"]), Settings.read(head.settings).standings.divisions
    return Peak(best.match_id, best.played_at, rating, best.percentile, best.division(divisions))


def _trend(matches: Sequence[OpponentMatch], falls: Sequence[InactivityFall], days: int, now: int) -> Trend:
    since = now - days * DAY
    recent = [match for match in matches if match.played_at > since]
    moves = [float(match.line["after"] - match.line["before"]) for match in recent]
    moves += [fall.after - fall.before for fall in falls if fall.of == "rating" and fall.fell_at > since]
    return Trend(days, len(recent), sum(match.word == "won" for match in recent), sum(moves))
