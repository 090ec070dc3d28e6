"""A ladder's overview, and the players' three questions."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from evenmatch.errors import EvenmatchError, UnknownNameError, UsageError
from evenmatch.players.placement import why_nobody
from evenmatch.web.page_request import LONGEST_NAME, PageRequest, address
from evenmatch.web.pages.front import waiting_in
from evenmatch.web.view_models import LadderShown

TOP = 10
LATEST = 8
WANTS = ("standing", "why", "wait")


async def overview(visit: PageRequest) -> Response:
    """Show the overview of a ladder."""
    return await visit.show("overview", lambda: _overview(visit))


def _overview(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    _, matches, _ = visit.reading.matches(visit.ladder, limit=LATEST)
    return {
        "ladder": LadderShown.of(view),
        "view": view,
        "top": visit.site.service.named(view.snapshot.page(1, TOP)),
        "why_nobody": why_nobody(view),
        "matches": matches,
        "waiting": waiting_in(visit, visit.ladder),
        "mine": visit.my_standing(view.snapshot),
    }


async def me(visit: PageRequest) -> Response:
    """Redirect to the page that answers the visitor's question, and store their name in a cookie."""
    name, want, ladder = visit.asked("player").strip() or visit.me or "", visit.asked("want", "standing"), visit.ladder
    if want not in WANTS:
        raise UsageError(f"want is {want[:40]!r}; expected {', '.join(WANTS)}")
    if not name or len(name) > LONGEST_NAME:
        raise UsageError(visit.text("Enter a name of 1 to %(most)s letters.", most=LONGEST_NAME))
    if want == "why":
        visit.check_own(name)
    try:
        player = await visit.site.work(visit.reading.known_as, ladder, name)
    except UnknownNameError:
        if want == "wait":  # new players may ask for their wait too
            response = visit.go(address("ladders", ladder, "queue"))
            visit.remember(response, name)
            return response
        return visit.go(address("search", q=name))
    response = visit.go(await visit.site.work(_page_for, visit, want, player))
    visit.remember(response, player)
    return response


def _page_for(visit: PageRequest, want: str, name: str) -> str:
    """The URL of the page that answers the question."""
    ladder = visit.ladder
    if want == "wait":
        return address("ladders", ladder, "queue")
    if want == "standing":
        view = visit.reading.view(ladder)
        board = view.snapshot.board
        row = int(board.find([visit.site.service.player(name)])[0])
        if row < 0 or board.hidden[row]:  # not rated yet, or banned: the player's page says so
            return address("ladders", ladder, "players", name)
        return address("ladders", ladder, "standings", around=name)
    try:
        lost = visit.reading.last_loss(ladder, name)
    except EvenmatchError:
        lost = None
    return (
        address("ladders", ladder, "players", name)
        if lost is None
        else address("ladders", ladder, "matches", lost, player=name)
    )
