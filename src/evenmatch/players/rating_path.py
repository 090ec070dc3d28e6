"""A player's rating over time, match by match, and the reduction of a long history to its peaks and lows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from evenmatch.ladders.inactivity import InactivityFall, rating_falls
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import ladder_rows
from evenmatch.ledger.store import Head, Store
from evenmatch.players.rated_matches import OpponentMatch
from evenmatch.times import Time

StepLevel = Literal["after", "percentile", "division"]  # columns of a journal line


class RatingStep(NamedTuple):
    """A rated match of a player.

    before, after  the rating; None: not shown
    word           won, drew or lost, by the mean score over the rivals
    percentile, division  as shown when the match was recorded; null: not shown
    """

    match_id: str
    played_at: Time
    before: float | None
    after: float | None
    word: str
    percentile: int | None
    division: str | None


class SeasonOpening(NamedTuple):
    """The opening of a season; at: microseconds since the epoch."""

    title: str
    at: int


class RatingPath(NamedTuple):
    """Steps in order, and the seasons that opened between the first and the last of them.

    falls  falls by inactivity during or after the path
    """

    steps: list[RatingStep]
    openings: list[SeasonOpening]
    falls: list[InactivityFall]

    def since(self, first: int) -> RatingPath:
        """Return the path from this step on, with the seasons and falls after it."""
        steps = self.steps[first:]
        begin = steps[0].played_at if steps else 0
        openings = [opening for opening in self.openings if opening.at >= begin]
        return RatingPath(steps, openings, [fall for fall in self.falls if fall.fell_at >= begin])

    def moved_since(self, time: Time) -> float | None:
        """The change of the rating by matches and inactivity after a time; None: no match since, or not shown."""
        moves = [
            step.after - step.before
            for step in self.steps
            if step.played_at > time and step.before is not None and step.after is not None
        ]
        falls = [fall.after - fall.before for fall in self.falls if fall.of == "rating" and fall.fell_at > time]
        return sum(moves + falls) if moves else None


def rating_path(
    store: Store, head: Head, player: int, matches: Sequence[OpponentMatch], most: int, by: StepLevel = "after"
) -> RatingPath:
    """The rating of a player after each of these matches, which are in order, in about `most` steps at most.

    by  the value whose peaks and lows are kept
    """
    divisions = Settings.read(head.settings).standings.divisions
    steps, levels = list[RatingStep](), list[float]()
    for match in matches:
        line = match.line
        place = match.percentile, match.division(divisions)
        steps.append(
            RatingStep(match.match_id, match.played_at, float(line["before"]), float(line["after"]), match.word, *place)
        )
        levels.append(float(line[by]))
    within = (steps[0].played_at, steps[-1].played_at) if steps else (0, -1)
    openings = [
        SeasonOpening(season.title, season.opened_at)
        for season in ladder_rows.read_seasons(store, head.ladder)
        if season.number > 1 and within[0] <= season.opened_at <= within[1]
    ]
    falls = rating_falls(store, head, player, matches) if steps else []
    firsts = {next(n for n, step in enumerate(steps) if step.played_at >= opening.at) for opening in openings}
    kept = [steps[n] for n in thinned(levels, most, firsts)]
    return RatingPath(kept, openings, [fall for fall in falls if within[0] <= fall.fell_at])


def thinned(values: Sequence[float], most: int, always: Collection[int] = ()) -> list[int]:
    """Ascending indices of at most about `most` values: both ends, and the lowest and highest of each stretch.

    always  indices that are always included, such as the first match of a season
    """
    if len(values) <= most:
        return list(range(len(values)))
    chosen = {0, len(values) - 1, *always}
    stretches = max((most - len(chosen)) // 2, 1)
    for number in range(stretches):
        stretch = range(number * len(values) // stretches, (number + 1) * len(values) // stretches)
        chosen.add(min(stretch, key=values.__getitem__))
        chosen.add(max(stretch, key=values.__getitem__))
    return sorted(chosen)
