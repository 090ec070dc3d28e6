"""Logging in with a key, and out."""

from __future__ import annotations

from starlette.responses import Response

from evenmatch.errors import AccessError
from evenmatch.web.visit import SESSION, Visit


def _local(to: str) -> str:
    """An address of this site; the front page where something else is meant."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) and "\n" not in to else "/"


async def login_form(visit: Visit) -> Response:
    """The page to log in."""
    return await visit.show("login", {"to": _local(visit.asked("to", "/operate")), "wrong": None})


async def login(visit: Visit) -> Response:
    """Log in with a key; a wrong one is told on the same page."""
    form = await visit.form()
    to = _local(form.get("to", "/operate"))
    try:
        session = await visit.site.work(visit.site.sessions.begin, form.get("key", ""))
    except AccessError as error:
        return await visit.show("login", {"to": to, "wrong": str(error)}, 403)
    answer = visit.go(to)
    visit.log_in(answer, session)
    return answer


async def logout(visit: Visit) -> Response:
    """Log out."""
    await visit.form()
    answer = visit.go("/", "You are logged out.")
    answer.delete_cookie(SESSION, httponly=True, samesite="lax")
    return answer
