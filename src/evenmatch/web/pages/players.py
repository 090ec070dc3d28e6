"""A player: where they stand, how they came there, whom they met, and what each match did to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.service.encounters import Encounters, Tally
from evenmatch.web.shown import LadderShown, played
from evenmatch.web.visit import Visit, address

SIZE = 20
FORM = 10  # results of the present form
POINTS = 300  # of a rating path
PERIOD = 3  # hours that are looked at together, from midnight on
LEAST = 5  # matches in such hours, below which they are neither best nor worst
JSON = "application/json"


class Hours(NamedTuple):
    """Hours of the day in UTC, from `first` for PERIOD hours, and how matches went then."""

    first: int
    tally: Tally


async def player(visit: Visit) -> Response:
    """The page of a player."""
    return await visit.show("player", lambda: _player(visit))


def _player(visit: Visit) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    profile = visit.reading.profile(visit.ladder, visit.part("player"))
    before = visit.number("before", 0, 0, 2**62) or None
    name, found, further = visit.reading.played(visit.ladder, profile.player, before, SIZE)
    met = visit.reading.encounters(visit.ladder, name)
    at = ("ladders", visit.ladder, "players", name)
    rows = [played(one, name) for one in found]
    best, worst = best_and_worst(met)
    return {
        "ladder": LadderShown.of(view),
        "view": view,
        "player": profile.player,
        "profile": profile,
        "standing": profile.standing,
        "rows": rows,
        "form": [row.result for row in rows[:FORM]] if before is None else [],
        "met": met,
        "best": best,
        "worst": worst,
        "first_page": before is None,
        "before": address(*at) if before is not None else None,
        "after": None if further is None else address(*at, before=further),
    }


def best_and_worst(met: Encounters) -> tuple[Hours | None, Hours | None]:
    """The hours in which a player did most and least better than expected; None where too little was played."""
    periods = [Hours(first, _joined(met.hours[first : first + PERIOD])) for first in range(0, 24, PERIOD)]
    enough = [one for one in periods if one.tally.matches >= LEAST]
    if len(enough) < 2:
        return None, None
    best, worst = (choose(enough, key=lambda one: one.tally.surplus) for choose in (max, min))
    return best, worst


def _joined(hours: Sequence[Tally]) -> Tally:
    """Several hours as one."""
    return Tally(*(sum(column) for column in zip(*hours, strict=True)))


async def path_figure(visit: Visit) -> Response:
    """The picture of a player's rating over time."""
    return Response(await visit.site.work(_path_figure, visit), media_type=JSON)


def _path_figure(visit: Visit) -> str:
    from evenmatch.lab import ladder_charts  # noqa: PLC0415 - charts are loaded where somebody looks at one

    view = visit.reading.view(visit.ladder)
    since, until = (visit.number(name, -1, -1, 2**53) for name in ("since", "until"))  # milliseconds, as charts count
    bounds = [None if one < 0 else one * 1000 for one in (since, until)]
    _, path = visit.reading.path(visit.ladder, visit.part("player"), POINTS, *bounds)
    cuts = [(one.division.name, one.rating) for one in view.snapshot.cuts() if one.rating is not None]
    points = [ladder_charts.PathPoint(*one) for one in path.steps]
    figure = ladder_charts.player_path(points, cuts, path.openings, path.whole)
    return str(figure.to_json())
