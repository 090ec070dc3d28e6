"""The list of matches, and the page that explains the rating changes of one match."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from evenmatch.http.cursors import FIRST_PAGE, list_key, write_cursor
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.view_models import LadderShown, counted_from_one, factors_of, largest_of, result_of

SIZE = 25  # matches per page


async def matches(visit: PageRequest) -> Response:
    """Show the matches of a ladder, latest first."""
    return await visit.show("matches", lambda: _matches(visit))


def _matches(visit: PageRequest) -> Mapping[str, object]:
    before = list_key(visit.asked("before") or None)
    _, listed, further = visit.reading.matches(visit.ladder, before=before, limit=SIZE)
    here = ("ladders", visit.ladder, "matches")
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "matches": listed,
        "before": None if before is FIRST_PAGE else address(*here),
        "after": None if further is None else address(*here, before=write_cursor(*further)),
        "first_page": before is FIRST_PAGE,
    }


async def match(visit: PageRequest) -> Response:
    """Show a match: teams, odds before it, and every factor of each rating change."""
    return await visit.show("match", lambda: _match(visit))


def _match(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    system, recorded = visit.reading.explained(visit.ladder, visit.part("match"))
    profile = counted_from_one(recorded)
    largest = largest_of(system, profile)
    effects = [effect for side in profile.sides for _, effect in side.parts if effect is not None]
    changes = [abs(effect.change.moved) for effect in effects if effect.change is not None]
    return {
        "ladder": LadderShown.of(view),
        "match": profile,
        "system": system,
        "sides": [
            {
                "side": side,
                "result": result_of(profile, side),
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
        "most": max(changes, default=0.0),
        "asked": visit.asked("player") or visit.me,
    }
