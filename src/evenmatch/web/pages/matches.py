"""Matches: the latest ones, and of one why everybody's rating moved."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from evenmatch.service.recorded import sentences_of
from evenmatch.web.shown import LadderShown, counted_from_one, factors_of, largest_of, result_of
from evenmatch.web.visit import Visit, address

SIZE = 25


async def matches(visit: Visit) -> Response:
    """The matches of a ladder, the latest first."""
    return await visit.show("matches", lambda: _matches(visit))


def _matches(visit: Visit) -> Mapping[str, object]:
    before = visit.number("before", 0, 0, 2**62) or None
    _, found, further = visit.reading.matches(visit.ladder, before=before, limit=SIZE)
    at = ("ladders", visit.ladder, "matches")
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "matches": found,
        "before": address(*at) if before is not None else None,
        "after": None if further is None else address(*at, before=further),
        "first_page": before is None,
    }


async def match(visit: Visit) -> Response:
    """A match: both line-ups, the odds before, and of every change each factor."""
    return await visit.show("match", lambda: _match(visit))


def _match(visit: Visit) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    system, recorded = visit.reading.explained(visit.ladder, visit.part("match"))
    found = counted_from_one(recorded)
    largest = largest_of(system, found)
    changes = [abs(line.change.after - line.change.before) for side in found.sides for _, line in side.parts if line]
    return {
        "ladder": LadderShown.of(view),
        "match": found,
        "system": system,
        "sides": [
            {
                "side": side,
                "result": result_of(found, side),
                "players": [
                    {
                        "part": part,
                        "sentences": sentences_of(part, found.reasons[at][seat] if found.reasons else ""),
                        "factors": factors_of(system, part, largest),
                    }
                    for seat, part in enumerate(side.parts)
                ],
            }
            for at, side in enumerate(found.sides)
        ],
        "most": max(changes, default=0.0),
        "asked": visit.asked("player") or visit.me,
    }
