"""The list of matches, and the page that explains the rating changes of one match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.durations import DAY
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.http.cursors import FIRST_PAGE, list_key, write_cursor
from evenmatch.ladders.seasons import Season
from evenmatch.players.rated_matches import MatchFilter
from evenmatch.players.result_moment import ResultMoment
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.pages.operate_ladder import day_typed
from evenmatch.web.view_models import LadderShown, counted_from_one, factors_of, largest_of, result_of

SIZE = 25  # matches per page


RESULTS = ("won", "drew", "lost")
FILTERS = ("player", "opponent", "team_mate", "result", "season", "since", "until")  # in the query of a list


def typed_filter(visit: PageRequest) -> dict[str, str]:
    """Return the filters of a list of matches as the visitor typed them; links to other pages keep them."""
    return {name: typed for name in FILTERS if (typed := visit.asked(name).strip())}


def chosen_matches(visit: PageRequest) -> MatchFilter:
    """Return the filter of a list of matches. Raises UsageError."""
    typed = typed_filter(visit)
    result, until = typed.get("result"), day_typed(typed.get("until", ""))
    if result not in (None, *RESULTS):
        raise UsageError(f"result is {result[:40]!r}; expected {', '.join(RESULTS)}")
    return MatchFilter(
        typed.get("opponent"),
        typed.get("team_mate"),
        result,
        visit.number("season", 0, 0, 10**9) or None,
        day_typed(typed.get("since", "")),
        None if until is None else until + DAY,
    )


async def matches(visit: PageRequest) -> Response:
    """Show the matches of a ladder, latest first."""
    return await visit.show("matches", lambda: _matches(visit))


def _matches(visit: PageRequest) -> Mapping[str, object]:
    before, chosen, typed = list_key(visit.asked("before") or None), chosen_matches(visit), typed_filter(visit)
    seasons = visit.site.service.seasons(visit.ladder)
    player, view = typed.get("player"), visit.reading.view(visit.ladder)
    if player is not None:
        visit.check_own(player)
        player = visit.reading.known_as(visit.ladder, player)
        _, listed, further = visit.reading.played(visit.ladder, player, before, SIZE, chosen)
    elif chosen._replace(season=None).is_by_time:
        since, until = _times(chosen, seasons)
        _, listed, further = visit.reading.matches(visit.ladder, before=before, limit=SIZE, since=since, until=until)
    else:
        raise UsageError("opponent, team_mate and result are those of a player; choose a player as well")
    here = ("ladders", visit.ladder, "matches")
    return {
        "ladder": LadderShown.of(view),
        "view": view,
        "typed": typed,
        "seasons": seasons,
        "matches": listed,
        "before": None if before is FIRST_PAGE else address(*here, **typed),
        "after": None if further is None else address(*here, before=write_cursor(*further), **typed),
        "first_page": before is FIRST_PAGE,
    }


def _times(chosen: MatchFilter, seasons: Sequence[Season]) -> tuple[int | None, int | None]:
    """The times from and up to which matches are chosen, by days and season; the first season has no beginning.

    Raises UnknownNameError.
    """
    if chosen.season is None:
        return chosen.since, chosen.until
    season = next((season for season in seasons if season.number == chosen.season), None)
    if season is None:
        raise UnknownNameError("season", str(chosen.season), ())
    opened = season.opened_at if season.number > 1 else None
    since = [time for time in (chosen.since, opened) if time is not None]
    until = [time for time in (chosen.until, season.closed_at) if time is not None]
    return max(since, default=None), min(until, default=None)


async def match(visit: PageRequest) -> Response:
    """Show a match as a scoreboard: teams, odds before it, and why each rating changed."""
    return await visit.show("match", lambda: _match(visit))


def _match(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    system, recorded = visit.reading.explained(visit.ladder, visit.part("match"))
    profile = counted_from_one(recorded)
    largest = largest_of(system, profile)
    asked = visit.asked("player") or visit.me
    return {
        "ladder": LadderShown.of(view),
        "match": profile,
        "system": system,
        "sides": [
            {
                "side": side,
                "result": result_of(profile, side),
                "is_own": any(appearance.player == asked for appearance, _ in side.parts),
                "factors": factors_of(system, {} if told is None else told[0].factors_of_team, largest),
                "players": [
                    {
                        "part": part,
                        "explanation": one,
                        "factors": [] if one is None else factors_of(system, one.factors_of_player, largest),
                    }
                    for part, one in zip(side.parts, told or (None,) * len(side.parts), strict=True)
                ],
            }
            for side, told in zip(profile.sides, profile.explanations or (None,) * len(profile.sides), strict=True)
        ],
        "asked": asked,
    }


class Stretch(NamedTuple):
    """The part of a division's bar, 0..1, over which a match moved the player. rose: it moved to the right."""

    low: float
    high: float
    rose: bool


async def result(visit: PageRequest) -> Response:
    """Show the result moment: a match as one of its players sees it, which a game can open in its overlay."""
    visit.check_own(visit.part("player"))
    return await visit.show("result", lambda: _result(visit))


def _result(visit: PageRequest) -> Mapping[str, object]:
    moment = visit.reading.result(visit.ladder, visit.part("match"), visit.part("player"))
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "result": moment,
        "stretch": _stretch(moment),
        "has_queue": bool(visit.site.queue_service.queues(visit.ladder)),
    }


def _stretch(moment: ResultMoment) -> Stretch | None:
    """Return the way from the standing before the match to the one after it, on the bar of the division after it."""
    before = None if moment.standing_before is None else moment.standing_before.way
    after = None if moment.standing_after is None else moment.standing_after.way
    if before is None or after is None:
        return None
    rose = before.share < after.share if before.division == after.division else (moment.change or 0.0) > 0
    start = before.share if before.division == after.division else 0.0 if rose else 1.0
    return Stretch(min(start, after.share), max(start, after.share), rose)
