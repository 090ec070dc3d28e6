"""A player's rating over time, match by match; long histories are reduced to their peaks and lows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from evenmatch.ladders.export import list_of_player
from evenmatch.ladders.inactivity import InactivityFall, rating_falls
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, ladder_rows
from evenmatch.ledger.store import Head, Store
from evenmatch.players.rated_matches import LONGEST, rated_matches
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

    whole  the number of matches before the reduction to `steps`
    falls  falls by inactivity during or after the path
    """

    steps: list[RatingStep]
    openings: list[SeasonOpening]
    whole: int
    falls: list[InactivityFall]


def rating_path(
    store: Store,
    head: Head,
    player: int,
    most: int,
    since: int | None = None,
    until: int | None = None,
    *,
    by: StepLevel = "after",
) -> RatingPath:
    """The rating of a player after each rated match within these times (microseconds), in about `most` steps at most.

    by  the value whose peaks and lows are kept
    The last match before `since` and the first after `until` are included, so that a chart reaches both edges.
    """
    listed = list_of_player(store, head, event_rows.read_plan(store, head, head.planned), player, limit=LONGEST)
    rated = rated_matches(store, head, player, [key.position for key in listed])
    matches = sorted(rated, key=lambda match: (match.order, match.played_at))
    falls = rating_falls(store, head, player, matches)
    after_opening, steps, levels = set[int](), list[RatingStep](), list[float]()
    divisions = Settings.read(head.settings).standings.divisions
    later_seasons = [season for season in ladder_rows.read_seasons(store, head.ladder) if season.number > 1]
    opened = 0
    for match in matches:
        opened_now = sum(season.position < match.order[0] for season in later_seasons)
        if opened_now != opened:
            after_opening.add(len(steps))
        line = match.line
        place = match.percentile, match.division(divisions)
        steps.append(
            RatingStep(match.match_id, match.played_at, float(line["before"]), float(line["after"]), match.word, *place)
        )
        levels.append(float(line[by]))
        opened = opened_now
    first = 0 if since is None else max(sum(step.played_at < since for step in steps) - 1, 0)
    end = len(steps) if until is None else sum(step.played_at <= until for step in steps) + 1
    steps, levels = steps[first:end], levels[first:end]
    after_opening = {index - first for index in after_opening if first <= index < end}
    chosen = thinned(levels, most, after_opening)
    within = (steps[0].played_at, steps[-1].played_at) if steps else (0, -1)
    openings = [
        SeasonOpening(season.title, season.opened_at)
        for season in later_seasons
        if within[0] <= season.opened_at <= within[1]
    ]
    is_cut = end < len(matches)  # at `until`
    falls = [
        fall for fall in falls if steps and within[0] <= fall.fell_at and not (is_cut and within[1] < fall.fell_at)
    ]
    return RatingPath([steps[index] for index in chosen], openings, len(steps), falls)


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
