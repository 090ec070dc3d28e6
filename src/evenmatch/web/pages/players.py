"""The page of a player: standing, rating over time, record against others, and the change of each match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from math import isnan
from operator import itemgetter
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.durations import SECOND
from evenmatch.http.cursors import FIRST_PAGE, list_key, write_cursor
from evenmatch.lab.display_names import plain
from evenmatch.ladders.descriptions import state_meanings
from evenmatch.ladders.inactivity import InactivityFall
from evenmatch.ladders.standings import View
from evenmatch.players.career import Career, Tally
from evenmatch.players.placement import placement_progress
from evenmatch.players.rated_matches import ALL_MATCHES
from evenmatch.players.rating_path import RatingPath, RatingStep, SeasonOpening
from evenmatch.standings.activity import NEVER
from evenmatch.standings.bands import DivisionProgress, division_progress
from evenmatch.standings.board import Standing
from evenmatch.systems.system import FactorValue
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.pages.matches import chosen_matches, typed_filter
from evenmatch.web.svg_charts import Chart, Point, path_chart
from evenmatch.web.texts import Texts, number, signed
from evenmatch.web.view_models import LadderShown, PlayedMatch, played

SIZE = 20
NOT_PLAYING = "not playing"
FORM = 10  # latest results shown in a row
LAST = 30  # matches of the shortest chart
PERIOD = 3  # hours per period of the day, from midnight UTC
FEWEST_MATCHES = 5  # fewest matches in a period that counts as best or worst


class Hours(NamedTuple):
    """A period of the day: PERIOD hours from hour `first` UTC, and the tally of its matches."""

    first: int
    tally: Tally


class BestAndWorst(NamedTuple):
    """The periods with the best and the worst results; None if no period is better, or worse, than expected."""

    best: Hours | None
    worst: Hours | None


class Span(NamedTuple):
    """A link to a part of a player's path."""

    words: str
    address: str
    is_shown: bool


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
    before, chosen, typed = list_key(visit.asked("before") or None), chosen_matches(visit), typed_filter(visit)
    name, matches, further = visit.reading.played(visit.ladder, profile.player, before, SIZE, chosen)
    _, career, path = visit.reading.career(visit.ladder, name)
    here = ("ladders", visit.ladder, "players", name)
    shown_path, spans = _spans(visit, path, here)
    system = visit.reading.described(visit.ladder).rules.system
    rows = [played(match, name, visit.texts) for match in matches]
    shown = LadderShown.of(view)
    curves = shown.visibility.curves
    seasons = visit.site.service.seasons(visit.ladder)
    has_expectations = not isnan(career.whole.expected)
    return {
        "ladder": shown,
        "charts": _charts(visit.texts, shown_path, view, curves),
        "curve": curves[0],
        "spans": spans,
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
        "between": _between(
            path if chosen == ALL_MATCHES else RatingPath([], [], []), rows, before.played_at, last=further is None
        ),
        "last_loss": next((step.match_id for step in reversed(path.steps) if step.word == "lost"), None),
        "typed": typed,
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
        "before": None if before is FIRST_PAGE else address(*here, **typed),
        "after": None if further is None else address(*here, before=write_cursor(*further), **typed),
    }


def _way(view: View, standing: Standing | None) -> DivisionProgress | None:
    """Return how far the player is on the way to the next division; None if not listed."""
    if standing is None or standing.rank is None:
        return None
    return division_progress(view.snapshot, standing.rating, standing.percentile)


def _between(
    path: RatingPath, rows: Sequence[PlayedMatch], before: int, *, last: bool
) -> list[list[InactivityFall | SeasonOpening]]:
    """Return what to show above each row of a page of matches, latest first, and below the last row.

    That is rating falls by inactivity, and the openings of seasons, which may reset the ratings.

    before  when the last match of the previous page was played
    """
    events: list[tuple[int, InactivityFall | SeasonOpening]] = [
        *((opening.at, opening) for opening in path.openings),
        *((fall.fell_at, fall) for fall in path.falls if fall.of == "rating"),
    ]
    latest_first = sorted(events, key=itemgetter(0), reverse=True)
    times = [row.match.played_at for row in rows]
    tops = [before, *times]
    bottoms = [*times, NEVER if last else times[-1]] if rows else [NEVER]
    return [[event for at, event in latest_first if low < at <= high] for high, low in zip(tops, bottoms, strict=True)]


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


def _charts(texts: Texts, path: RatingPath, view: View, curves: Sequence[str]) -> list[Chart]:
    """The charts of a path: of the rating, the percentile and the division, as far as they are shown."""
    divisions = view.settings.standings.divisions
    number_of = {division.name: float(index) for index, division in enumerate(divisions)}
    openings = [(opening.title, opening.at) for opening in path.openings]
    cuts = [(cut.division.name, cut.rating) for cut in view.snapshot.cuts() if cut.rating is not None]
    lowest = [(division.name, float(division.lowest)) for division in divisions]
    bounds = {"rating": cuts, "percentile": lowest, "division": list(number_of.items())}
    spans = {"rating": None, "percentile": (0.0, 102.0), "division": (-0.5, len(divisions) - 0.5)}
    titles = {
        "rating": texts.text("Rating after each match"),
        "percentile": texts.text("Percentile after each match"),
        "division": texts.text("Division after each match"),
    }
    drawn = [
        path_chart(
            texts,
            titles[of],
            _points(texts, path, of, number_of),
            bounds=bounds[of],
            openings=openings,
            span=spans[of],
            named=of == "division",
        )
        for of in curves
    ]
    return [chart for chart in drawn if chart is not None]


def _points(texts: Texts, path: RatingPath, of: str, number_of: Mapping[str, float]) -> list[Point]:
    """The points of the chart of rating, percentile or division, as far as they are known."""
    points = []
    for step in path.steps:
        levels = {"rating": step.after, "percentile": step.percentile, "division": number_of.get(step.division or "")}
        if (level := levels[of]) is not None:
            before = step.before if of == "rating" else None
            points.append(Point(step.played_at, before, float(level), step.word, partial(_told, texts, step, of)))
    points += [
        Point(fall.fell_at, fall.before, fall.after, "fell", partial(_told, texts, fall, of))
        for fall in path.falls
        if fall.of == of
    ]
    return sorted(points, key=lambda point: point.at)


def _told(texts: Texts, event: RatingStep | InactivityFall, of: str) -> str:
    """What is told of a point of a chart."""
    at, word = (event.played_at, event.word) if isinstance(event, RatingStep) else (event.fell_at, NOT_PLAYING)
    if isinstance(event, RatingStep) and of != "rating":
        level = (
            texts.text("percentile %(percentile)s", percentile=event.percentile)
            if of == "percentile"
            else plain(event.division or "")
        )
    else:
        before, after = event.before, event.after
        change = None if before is None or after is None else after - before
        level = f"{number(before)} → {number(after)} ({signed(change)})"
    moment = datetime.fromtimestamp(at / SECOND, UTC)
    return f"{texts.day(moment, year=True)}, {moment:%H:%M}, {texts.translated(word)}: {level}"


def _spans(visit: PageRequest, path: RatingPath, here: Sequence[str]) -> tuple[RatingPath, list[Span]]:
    """The part of a path that the charts show, and links to the other parts."""
    firsts = {"all": 0}
    if path.openings:
        opened = path.openings[-1].at
        firsts["season"] = next(n for n, step in enumerate(path.steps) if step.played_at >= opened)
    if len(path.steps) > LAST:
        firsts["last"] = len(path.steps) - LAST
    chosen = visit.asked("path") if visit.asked("path") in firsts else "all"
    words = {
        "last": visit.texts.plural("Last %(n)s match", "Last %(n)s matches", LAST),
        "season": visit.text("This season"),
        "all": visit.texts.plural("All %(n)s match", "All %(n)s matches", len(path.steps)),
    }
    spans = [
        Span(words[name], address(*here) if name == "all" else address(*here, path=name), name == chosen)
        for name in words
        if name in firsts
    ]
    return path.since(firsts[chosen]), spans if len(spans) > 1 else []
