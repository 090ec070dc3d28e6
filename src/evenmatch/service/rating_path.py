"""A player's rating over time, match by match: of many matches those that show every peak and every low."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from evenmatch.ledger.store import Head, Store
from evenmatch.service.encounters import rated_matches
from evenmatch.service.exporting import positions_of_player
from evenmatch.service.seasons import seasons

LONGEST = 20_000  # matches, the latest, that are read for one path


class Step(NamedTuple):
    """A rated match of a player. word: won, drew or lost, by the mean over the rivals."""

    match_id: str
    played_at: int
    before: float
    after: float
    word: str


class Opening(NamedTuple):
    """A season that opened on the way; at: microseconds since the epoch."""

    title: str
    at: int


class RatingPath(NamedTuple):
    """Steps in order, and the seasons that opened between the first and the last of them.

    whole  how many matches there are, of which `steps` are some where these are more
    """

    steps: list[Step]
    openings: list[Opening]
    whole: int


def rating_path(
    store: Store, head: Head, player: int, most: int, since: int | None = None, until: int | None = None
) -> RatingPath:
    """The rating of a player after each rated match within these times (microseconds), by so many matches at most.

    The matches before the first and after the last are among them, so that the line goes on to both edges.
    """
    positions = positions_of_player(store, head, store.plan(head, head.planned), player, limit=LONGEST)
    found = sorted(rated_matches(store, head, player, positions), key=lambda one: one.position)
    after_opening, steps = set[int](), list[Step]()
    listed = [one for one in seasons(store, head) if one.number > 1]
    place = 0
    for one in found:
        place_now = sum(season.position < one.position for season in listed)
        if place_now != place:
            after_opening.add(len(steps))
        word = "won" if one.score > 0.5 else "lost" if one.score < 0.5 else "drew"
        before, after = float(one.line["before"]), float(one.line["after"])
        steps.append(Step(one.match_id, one.played_at, before, after, word))
        place = place_now
    first = 0 if since is None else max(sum(step.played_at < since for step in steps) - 1, 0)
    end = len(steps) if until is None else sum(step.played_at <= until for step in steps) + 1
    steps, after_opening = steps[first:end], {at - first for at in after_opening if first <= at < end}
    chosen = thinned([step.after for step in steps], most, after_opening)
    within = (steps[0].played_at, steps[-1].played_at) if steps else (0, -1)
    openings = [Opening(one.title, one.opened_at) for one in listed if within[0] <= one.opened_at <= within[1]]
    return RatingPath([steps[at] for at in chosen], openings, len(steps))


def thinned(values: Sequence[float], most: int, always: Collection[int] = ()) -> list[int]:
    """Places of these values, so many at most, ascending: of each stretch the lowest and the highest, and both ends.

    always  places that are kept too, as those at which something begins anew
    """
    if len(values) <= most:
        return list(range(len(values)))
    kept = {0, len(values) - 1, *always}
    stretches = max((most - len(kept)) // 2, 1)
    for number in range(stretches):
        stretch = range(number * len(values) // stretches, (number + 1) * len(values) // stretches)
        kept.add(min(stretch, key=values.__getitem__))
        kept.add(max(stretch, key=values.__getitem__))
    return sorted(kept)
