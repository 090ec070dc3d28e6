"""The page of a player: standing, rating over time, record against others, and the change of each match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.service.queries.player_statistics import Encounters, Tally
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.view_models import LadderShown, played

SIZE = 20
FORM = 10  # latest results shown in a row
POINTS = 300  # points of the rating chart
PERIOD = 3  # hours per period of the day, from midnight UTC
LEAST = 5  # matches a period needs to count as best or worst
JSON = "application/json"


class Hours(NamedTuple):
    """A period of the day: PERIOD hours from hour `first` UTC, and the tally of its matches."""

    first: int
    tally: Tally


async def player(visit: PageRequest) -> Response:
    """Show the page of a player."""
    return await visit.show("player", lambda: _player(visit))


def _player(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    profile = visit.reading.profile(visit.ladder, visit.part("player"))
    before = visit.number("before", 0, 0, 2**62) or None
    name, matches, next_before = visit.reading.played(visit.ladder, profile.player, before, SIZE)
    met = visit.reading.encounters(visit.ladder, name)
    here = ("ladders", visit.ladder, "players", name)
    rows = [played(match, name) for match in matches]
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
        "before": address(*here) if before is not None else None,
        "after": None if next_before is None else address(*here, before=next_before),
    }


def best_and_worst(met: Encounters) -> tuple[Hours | None, Hours | None]:
    """Return the periods with the best and the worst results against expectation; None if too few matches."""
    periods = [Hours(first, _total(met.hours[first : first + PERIOD])) for first in range(0, 24, PERIOD)]
    enough = [period for period in periods if period.tally.matches >= LEAST]
    if len(enough) < 2:
        return None, None
    best, worst = (choose(enough, key=lambda period: period.tally.surplus) for choose in (max, min))
    return best, worst


def _total(hours: Sequence[Tally]) -> Tally:
    return Tally(*(sum(column) for column in zip(*hours, strict=True)))


async def path_figure(visit: PageRequest) -> Response:
    """Return the chart of a player's rating over time as JSON."""
    return Response(await visit.site.work(_path_figure, visit), media_type=JSON)


def _path_figure(visit: PageRequest) -> str:
    from evenmatch.lab.ladder import rating_charts  # noqa: PLC0415 - charts are imported on first use

    view = visit.reading.view(visit.ladder)
    since, until = (visit.number(name, -1, -1, 2**53) for name in ("since", "until"))  # milliseconds
    bounds = [None if millis < 0 else millis * 1000 for millis in (since, until)]
    _, path = visit.reading.path(visit.ladder, visit.part("player"), POINTS, *bounds)
    cuts = [(cut.division.name, cut.rating) for cut in view.snapshot.cuts() if cut.rating is not None]
    points = [rating_charts.ChartPoint(*step) for step in path.steps]
    figure = rating_charts.player_path(points, cuts, path.openings, path.whole)
    return str(figure.to_json())
