"""Who stands where: pages, around somebody, by a part of a name; how ratings are spread; how seasons ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from starlette.responses import Response

from evenmatch.errors import UnknownNameError
from evenmatch.service.boards import View
from evenmatch.service.finding import MANY
from evenmatch.service.listing import why_nobody, why_not
from evenmatch.standings.board import Standing
from evenmatch.web.pages.front import own_standing
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import Visit, address

SIZE = 50
FOUND = 50
EACH_SIDE = 12
BINS = 40
JSON = "application/json"


class Band(NamedTuple):
    """Players of one division who stand one after another."""

    division: str | None
    rows: list[tuple[str, Standing]]


async def standings(visit: Visit) -> Response:
    """The standings: a page of them, around a player, or the players whose names hold a text."""
    return await visit.show("standings", lambda: _standings(visit))


def _standings(visit: Visit) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    shared = {
        "ladder": LadderShown.of(view),
        "view": view,
        "search": visit.asked("search").strip()[:200],
        "begins": len(view.snapshot.board) > MANY,
        "around": None,
        "mine": own_standing(visit, view),
        "page": 1,
        "before": None,
        "after": None,
        "why_nobody": why_nobody(view),
        "cuts": {one.division.name: one for one in view.snapshot.cuts()},
    }
    if shared["search"]:
        text = str(shared["search"])
        bands = _banded(_found(visit, view, text))
        return shared | {"bands": bands, "similar": [] if bands else visit.reading.similar(visit.ladder, text)}
    if visit.asked("around"):
        name, standing, rows = visit.reading.around(visit.ladder, visit.asked("around"), EACH_SIDE)
        why = None if standing is None else why_not(view, standing)
        return shared | {"bands": _banded(rows), "around": name, "standing": standing, "why_not": why}
    number, pages = visit.number("page", 1, 1, 10**9), view.snapshot.pages(SIZE)
    rows = visit.site.service.named(view.snapshot.page(number, SIZE))
    return shared | {
        "bands": _banded(rows),
        "page": number,
        "pages": pages,
        "before": address("ladders", visit.ladder, "standings", page=min(number - 1, pages)) if number > 1 else None,
        "after": address("ladders", visit.ladder, "standings", page=number + 1) if number < pages else None,
    }


def _found(visit: Visit, view: View, text: str) -> list[tuple[str, Standing]]:
    """Players of the ladder whose names hold a text, best first."""
    names = visit.reading.search(text, FOUND, [visit.ladder])
    rows, _ = visit.reading.among(visit.ladder, names)
    return rows


def _banded(rows: Sequence[tuple[str, Standing]]) -> list[Band]:
    return [Band(division, list(group)) for division, group in groupby(rows, lambda row: row[1].division)]


async def distribution(visit: Visit) -> Response:
    """How ratings are spread, and where the visitor is among them."""
    return await visit.show("distribution", lambda: _distribution(visit))


def _distribution(visit: Visit) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    ratings, cuts = view.snapshot.against.rating, view.snapshot.cuts()
    return {
        "ladder": LadderShown.of(view),
        "view": view,
        "mine": own_standing(visit, view),
        "cuts": cuts,
        "counts": _by_division(view),
        "mean": float(ratings.mean()) if len(ratings) else None,
        "median": float(np.median(ratings)) if len(ratings) else None,
    }


def _by_division(view: View) -> list[int]:
    """How many listed players are in each division."""
    taken = view.snapshot
    divisions = taken.divisions[taken.order]
    return [int((divisions == at).sum()) for at in range(len(taken.rules.divisions))]


async def distribution_figure(visit: Visit) -> Response:
    """The picture of the same."""
    return Response(await visit.site.work(_distribution_figure, visit), media_type=JSON)


def _distribution_figure(visit: Visit) -> str:
    from evenmatch.lab import ladder_charts  # noqa: PLC0415 - charts are loaded where somebody looks at one

    view = visit.reading.view(visit.ladder)
    found = view.snapshot.distribution(BINS)
    mine = own_standing(visit, view)
    you = mine.rating if isinstance(mine, Standing) else None
    cuts = [(one.division.name, one.rating) for one in view.snapshot.cuts() if one.rating is not None]
    figure = ladder_charts.spread(found.edges.tolist(), found.counts.tolist(), cuts, you)
    return str(figure.to_json())


async def seasons(visit: Visit) -> Response:
    """All seasons of a ladder."""

    def make() -> Mapping[str, object]:
        view = visit.reading.view(visit.ladder)
        listed = visit.site.service.seasons(visit.ladder)
        return {"ladder": LadderShown.of(view), "seasons": listed[::-1]}

    return await visit.show("seasons", make)


async def season(visit: Visit) -> Response:
    """The standings with which a season ended."""
    return await visit.show("season", lambda: _season(visit))


def _season(visit: Visit) -> Mapping[str, object]:
    number, page = visit.part("season"), visit.number("page", 1, 1, 10**7)
    if not number.isdecimal() or len(number) > 9:
        raise UnknownNameError("season", number, ())
    view = visit.reading.view(visit.ladder)
    here = next((one for one in visit.site.service.seasons(visit.ladder) if one.number == int(number)), None)
    _, found = visit.reading.finals(visit.ladder, int(number), (page - 1) * SIZE, SIZE + 1)
    at = ("ladders", visit.ladder, "seasons", number)
    return {
        "ladder": LadderShown.of(view),
        "season": here,
        "rows": found[:SIZE],
        "before": address(*at, page=page - 1) if page > 1 else None,
        "after": address(*at, page=page + 1) if len(found) > SIZE else None,
    }


async def rules(visit: Visit) -> Response:
    """What a ladder is rated by, in words."""
    return await visit.show("rules", lambda: _rules(visit))


def _rules(visit: Visit) -> Mapping[str, object]:
    from evenmatch.service.describing import rules_told  # noqa: PLC0415

    ladder = visit.reading.described(visit.ladder)
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "told": rules_told(ladder.rules),
        "settings": ladder.settings,
        "json": json,
    }
