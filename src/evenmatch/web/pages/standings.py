"""Pages of standings: in full, around a player; the distribution of ratings; past seasons; the rules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from starlette.responses import Response

from evenmatch.errors import UnknownNameError
from evenmatch.ladders.standings import View
from evenmatch.players.placement import why_nobody, why_not
from evenmatch.standings.bands import band_of
from evenmatch.standings.board import Standing
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.svg_charts import histogram
from evenmatch.web.view_models import LadderShown

SIZE = 50  # players per page
JUMPS = 10  # links to pages
EACH_SIDE = 12  # players above and below the one in the middle
BINS = 40  # of the histogram of ratings


class Band(NamedTuple):
    """Consecutive players whose ratings are in one division, see `bands.band_of`."""

    division: str | None
    rows: list[tuple[str, Standing]]


async def standings(visit: PageRequest) -> Response:
    """Show a page of the standings, or the players around one player."""
    return await visit.show("standings", lambda: _standings(visit))


class Jump(NamedTuple):
    """A link to a page of the standings, with its first and last rank."""

    page: int
    first: int
    last: int
    address: str


def _standings(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    shared: dict[str, object] = {
        "ladder": LadderShown.of(view),
        "view": view,
        "around": None,
        "mine": visit.my_standing(view.snapshot),
        "page": 0,
        "before": None,
        "after": None,
        "why_nobody": why_nobody(view),
        "cuts": {cut.division.name: cut for cut in view.snapshot.cuts()},
    }
    if visit.asked("around"):
        name, standing, rows = visit.reading.around(visit.ladder, visit.asked("around"), EACH_SIDE)
        why = None if standing is None else why_not(view, standing)
        about = {"around": name, "standing": standing, "why_not": why, "jumps": _jumps(visit, view, 0)}
        return shared | about | _rows(visit, view, rows)
    number, pages = visit.number("page", 1, 1, 10**9), view.snapshot.pages(SIZE)
    rows = visit.site.service.named(view.snapshot.page(number, SIZE))
    return (
        shared
        | {
            "page": number,
            "pages": pages,
            "jumps": _jumps(visit, view, number),
            "before": address("ladders", visit.ladder, "standings", page=min(number - 1, pages))
            if number > 1
            else None,
            "after": address("ladders", visit.ladder, "standings", page=number + 1) if number < pages else None,
        }
        | _rows(visit, view, rows)
    )


def _jumps(visit: PageRequest, view: View, number: int) -> list[Jump]:
    """Links to JUMPS pages spread over the standings, and to this page and the ones beside it."""
    listed, pages = len(view.snapshot), view.snapshot.pages(SIZE)
    spread = {1 + step * (pages - 1) // (JUMPS - 1) for step in range(JUMPS)} | {number - 1, number, number + 1}
    return [
        Jump(
            page,
            (page - 1) * SIZE + 1,
            min(page * SIZE, listed),
            address("ladders", visit.ladder, "standings", page=page),
        )
        for page in sorted(spread)
        if 1 <= page <= pages
    ]


def _rows(visit: PageRequest, view: View, rows: Sequence[tuple[str, Standing]]) -> dict[str, object]:
    """The bands of these players, and their records by id."""
    records = visit.reading.records(view, [standing for _, standing in rows])
    return {"bands": _banded(view, rows), "records": records}


def _banded(view: View, rows: Sequence[tuple[str, Standing]]) -> list[Band]:
    return [
        Band(division, list(group)) for division, group in groupby(rows, lambda row: band_of(view.snapshot, row[1]))
    ]


async def distribution(visit: PageRequest) -> Response:
    """Show the distribution of ratings and the visitor's place in it."""
    return await visit.show("distribution", lambda: _distribution(visit))


def _distribution(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    ratings, cuts = view.snapshot.against.rating, view.snapshot.cuts()
    mine, found = visit.my_standing(view.snapshot), view.snapshot.distribution(BINS)
    marks = [(cut.division.name, cut.rating) for cut in cuts if cut.rating is not None]
    return {
        "ladder": LadderShown.of(view),
        "view": view,
        "mine": mine,
        "drawn": None
        if found is None
        else histogram(
            "Active players by rating",
            found.edges,
            found.counts.tolist(),
            marks,
            None if mine is None else mine.rating,
        ),
        "cuts": cuts,
        "counts": _by_division(view),
        "mean": float(ratings.mean()) if len(ratings) else None,
        "median": float(np.median(ratings)) if len(ratings) else None,
        "has_ratings": view.snapshot.has_ratings,
    }


def _by_division(view: View) -> list[int]:
    """The number of listed players in each division, lowest first."""
    snapshot = view.snapshot
    divisions = snapshot.divisions[snapshot.order]
    return [int((divisions == index).sum()) for index in range(len(snapshot.rules.divisions))]


async def seasons(visit: PageRequest) -> Response:
    """Show all seasons of a ladder, latest first."""

    def make() -> Mapping[str, object]:
        view = visit.reading.view(visit.ladder)
        listed = visit.site.service.seasons(visit.ladder)
        return {"ladder": LadderShown.of(view), "seasons": listed[::-1]}

    return await visit.show("seasons", make)


async def season(visit: PageRequest) -> Response:
    """Show the final standings of a season."""
    return await visit.show("season", lambda: _season(visit))


def _season(visit: PageRequest) -> Mapping[str, object]:
    number, page = visit.part("season"), visit.number("page", 1, 1, 10**7)
    if not number.isdecimal() or len(number) > 9:
        raise UnknownNameError("season", number, ())
    view = visit.reading.view(visit.ladder)
    known = visit.site.service.seasons(visit.ladder)
    listed = next((candidate for candidate in known if candidate.number == int(number)), None)
    _, rows = visit.reading.finals(visit.ladder, int(number), (page - 1) * SIZE, SIZE + 1)
    here = ("ladders", visit.ladder, "seasons", number)
    return {
        "ladder": LadderShown.of(view),
        "season": listed,
        "rows": rows[:SIZE],
        "before": address(*here, page=page - 1) if page > 1 else None,
        "after": address(*here, page=page + 1) if len(rows) > SIZE else None,
    }


async def rules(visit: PageRequest) -> Response:
    """Show the rating system, parameters and settings of a ladder."""
    return await visit.show("rules", lambda: _rules(visit))


def _rules(visit: PageRequest) -> Mapping[str, object]:
    from evenmatch.ladders.descriptions import rules_as_data  # noqa: PLC0415

    ladder = visit.reading.described(visit.ladder)
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "told": rules_as_data(ladder.rules),
        "settings": ladder.settings,
        "json": json,
    }
