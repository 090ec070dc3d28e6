"""The page of a player: standing, rating over time, record against others, and the change of each match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

from evenmatch.errors import UsageError
from evenmatch.http.cursors import FIRST_PAGE, list_key, write_cursor
from evenmatch.ladders.descriptions import state_meanings
from evenmatch.ladders.inactivity import InactivityFall
from evenmatch.ladders.ladder_queries import ALL_MATCHES, ChosenMatches
from evenmatch.ladders.standings import View
from evenmatch.players.career import Career, Tally
from evenmatch.players.placement import placement_progress
from evenmatch.players.rating_path import RatingStep
from evenmatch.standings.activity import NEVER
from evenmatch.standings.bands import DivisionProgress, division_progress
from evenmatch.standings.board import Standing
from evenmatch.systems.system import FactorValue
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.view_models import LadderShown, PlayedMatch, played

if TYPE_CHECKING:
    from evenmatch.lab.ladder.charts import LevelPoint

SIZE = 20
RESULTS = ("won", "drew", "lost")
FORM = 10  # latest results shown in a row
POINTS = 300  # points of the rating chart
PERIOD = 3  # hours per period of the day, from midnight UTC
FEWEST_MATCHES = 5  # fewest matches in a period that counts as best or worst
CURVES = ("rating", "percentile", "division")
JSON = "application/json"


class Hours(NamedTuple):
    """A period of the day: PERIOD hours from hour `first` UTC, and the tally of its matches."""

    first: int
    tally: Tally


class BestAndWorst(NamedTuple):
    """The periods with the best and the worst results; None if no period is better, or worse, than expected."""

    best: Hours | None
    worst: Hours | None


class PlayerState(NamedTuple):
    """A value that the system keeps for a player in addition to the rating, and its meaning."""

    name: str
    value: FactorValue | None
    meaning: str


async def player(visit: PageRequest) -> Response:
    """Show the page of a player. A player logged in with a token sees only their own, unless reads are open."""
    visit.check_own(visit.part("player"))
    return await visit.show("player", lambda: _player(visit))


def _player(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    profile = visit.reading.profile(visit.ladder, visit.part("player"))
    before, chosen = list_key(visit.asked("before") or None), _chosen(visit)
    name, matches, further = visit.reading.played(visit.ladder, profile.player, before, SIZE, chosen)
    _, career = visit.reading.career(visit.ladder, name)
    here = ("ladders", visit.ladder, "players", name)
    system = visit.reading.described(visit.ladder).rules.system
    rows = [played(match, name) for match in matches]
    shown = LadderShown.of(view)
    curves = shown.visibility.curves
    seasons = visit.site.service.seasons(visit.ladder)
    has_expectations = not isnan(career.whole.expected)
    return {
        "ladder": shown,
        "curves": [of for of in curves if of == curves[0] or any(row.percentile is not None for row in rows)],
        "has_expectations": has_expectations,
        "view": view,
        "player": profile.player,
        "profile": profile,
        "standing": profile.standing,
        "placement": None
        if profile.standing is None or profile.standing.placed
        else placement_progress(profile.standing, view.settings.standings),
        "states": [
            PlayerState(state, profile.state[state], meaning)
            for state, meaning in state_meanings(system, profile.state).items()
        ],
        "rows": rows,
        "falls": _falls_between(
            career.falls if chosen == ALL_MATCHES else (), rows, before.played_at, last=further is None
        ),
        "chosen": chosen,
        "everything": ALL_MATCHES,
        "seasons": seasons,
        "titles": {season.number: season.title for season in seasons},
        "has_queue": bool(visit.site.queue_service.queues(visit.ladder)),
        "finals": visit.reading.finals_of(visit.ladder, name),
        "way": _way(view, profile.standing),
        "percentile_fall": next((fall for fall in career.falls if fall.of == "percentile"), None),
        "form": [row.result for row in rows[:FORM]] if before is FIRST_PAGE and chosen == ALL_MATCHES else [],
        "career": career,
        "hours": best_and_worst(career) if has_expectations else None,
        "first_page": before is FIRST_PAGE,
        "before": None if before is FIRST_PAGE else address(*here, **_query(chosen)),
        "after": None if further is None else address(*here, before=write_cursor(*further), **_query(chosen)),
    }


def _chosen(visit: PageRequest) -> ChosenMatches:
    """Return the choice of matches in the query of the page."""
    result = visit.asked("result") or None
    if result not in (None, *RESULTS):
        raise UsageError(f"result is {result[:40]!r}; expected {', '.join(RESULTS)}")
    return ChosenMatches(
        visit.asked("opponent").strip() or None,
        visit.asked("team_mate").strip() or None,
        result,
        visit.number("season", 0, 0, 10**9) or None,
    )


def _query(chosen: ChosenMatches) -> dict[str, object]:
    return {name: value for name, value in chosen._asdict().items() if value is not None}


def _way(view: View, standing: Standing | None) -> DivisionProgress | None:
    """Return how far the player is on the way to the next division; None if not listed."""
    if standing is None or standing.rank is None:
        return None
    return division_progress(view.snapshot, standing.rating, standing.percentile)


def _falls_between(
    falls: Sequence[InactivityFall], rows: Sequence[PlayedMatch], before: int, *, last: bool
) -> list[list[InactivityFall]]:
    """Return the rating falls to show above each row of a page of matches, latest first, and below the last row.

    before  when the last match of the previous page was played
    """
    latest_first = [fall for fall in reversed(falls) if fall.of == "rating"]
    times = [row.match.played_at for row in rows]
    tops = [before, *times]
    bottoms = [*times, NEVER if last else times[-1]] if rows else [NEVER]
    return [
        [fall for fall in latest_first if low < fall.fell_at <= high] for high, low in zip(tops, bottoms, strict=True)
    ]


def best_and_worst(career: Career) -> BestAndWorst | None:
    """Return the periods with the best and the worst results against expectation; None if too few matches."""
    periods = [Hours(first, _total(career.hours[first : first + PERIOD])) for first in range(0, 24, PERIOD)]
    enough = sorted((period for period in periods if period.tally.matches >= FEWEST_MATCHES), key=_percent)
    if len(enough) < 2:
        return None
    worst, *_, best = enough
    return BestAndWorst(best if _percent(best) > 0 else None, worst if _percent(worst) < 0 else None)


def _percent(period: Hours) -> int:
    """Return the surplus of a period in whole percent, as the page shows it."""
    return round(100 * period.tally.surplus)


def _total(hours: Sequence[Tally]) -> Tally:
    return Tally(*(sum(column) for column in zip(*hours, strict=True)))


async def path_figure(visit: PageRequest) -> Response:
    """Return the chart of a player's rating, percentile or division over time as JSON."""
    visit.check_own(visit.part("player"))
    return Response(await visit.site.work(_path_figure, visit), media_type=JSON)


def _path_figure(visit: PageRequest) -> str:
    from evenmatch.lab.ladder import charts  # noqa: PLC0415 - charts are imported on first use

    view = visit.reading.view(visit.ladder)
    of = visit.asked("of", "rating")
    if of not in CURVES:
        raise UsageError(f"of is {of[:40]!r}; expected {', '.join(CURVES)}")
    since, until = (visit.number(name, -1, -1, 2**53) for name in ("since", "until"))  # milliseconds
    bounds = [None if millis < 0 else millis * 1000 for millis in (since, until)]
    _, path = visit.reading.path(visit.ladder, visit.part("player"), POINTS, *bounds)
    if of == "rating":
        cuts = [(cut.division.name, cut.rating) for cut in view.snapshot.cuts() if cut.rating is not None]
        points = [
            charts.ChartPoint(step.match_id, step.played_at, step.before, step.after, step.word)
            for step in path.steps
            if step.before is not None and step.after is not None
        ]
        points += [
            charts.ChartPoint(charts.NOT_PLAYING, fall.fell_at, fall.before, fall.after, "fell")
            for fall in path.falls
            if fall.of == "rating"
        ]
        points.sort(key=lambda point: point.played_at)
        return str(charts.player_path(points, cuts, path.openings, path.whole).to_json())
    divisions = view.settings.standings.divisions
    number = {division.name: index for index, division in enumerate(divisions)}
    levels = [_level_point(step, number, of) for step in path.steps]
    marks = [
        (division.name, float(index if of == "division" else division.lowest))
        for index, division in enumerate(divisions)
    ]
    drawn = [point for point in levels if point is not None]
    drawn += [
        charts.LevelPoint(
            charts.NOT_PLAYING, fall.fell_at, fall.after, f"percentile {fall.after:.0f}: {fall.text}", "fell"
        )
        for fall in path.falls
        if fall.of == of
    ]
    whole = path.whole if len(path.steps) < path.whole else None
    return str(charts.level_path(drawn, of, marks, path.openings, whole).to_json())


def _level_point(step: RatingStep, number: Mapping[str, int], of: str) -> LevelPoint | None:
    """Return the point of a match in the chart of percentiles or divisions; None if it was not shown then."""
    from evenmatch.lab.ladder.charts import LevelPoint  # noqa: PLC0415

    level = step.percentile if of == "percentile" else number.get(step.division or "")
    if level is None:
        return None
    words = [f"percentile {step.percentile}"] if step.percentile is not None else []
    text = ", ".join([*words, *([step.division] if step.division else [])])
    return LevelPoint(step.match_id, step.played_at, float(level), text, step.word)
