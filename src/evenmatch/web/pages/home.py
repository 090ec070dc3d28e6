"""A ladder's overview, the players' three questions, login and logout."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from evenmatch.errors import AccessError, EvenmatchError, UnknownNameError, UsageError
from evenmatch.players.placement import why_nobody
from evenmatch.web.page_request import LONGEST_NAME, SESSION, PageRequest, address, local
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


async def login_form(visit: PageRequest) -> Response:
    """Show the login form."""
    return await visit.show("login", {"to": local(visit.asked("to")), "wrong": None})


async def login(visit: PageRequest) -> Response:
    """Log in with a key; an invalid key shows the form again, with status 403."""
    form = dict(await visit.fields(proved=False))  # no proof, since the new session replaces the current one
    to = local(form.get("to", ""))
    try:
        session = await visit.site.work(visit.site.sessions.begin, form.get("key", ""))
    except AccessError as error:
        return await visit.show("login", {"to": to, "wrong": str(error)}, 403)
    created = await visit.site.work(visit.site.sessions.find, session)
    is_operator = created is not None and "admin" in created.caller.scopes
    response = visit.go(to or ("/operate" if is_operator else "/"))
    visit.log_in(response, session)
    return response


async def logout(visit: PageRequest) -> Response:
    """Log out: end the session for everyone who holds its cookie."""
    await visit.form()
    if visit.session is not None:
        await visit.site.work(visit.site.sessions.end, visit.session)
    response = visit.go("/", visit.text("You are logged out."))
    visit.cookies.delete(response, SESSION)
    return response
