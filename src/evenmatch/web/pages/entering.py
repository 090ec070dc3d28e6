"""Logging in with a key, and out."""

from __future__ import annotations

from starlette.responses import Response

from evenmatch.errors import AccessError
from evenmatch.web.visit import SESSION, Visit


def _local(to: str) -> str:
    """An address of this site; nothing where something else is meant."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) and "\n" not in to else ""


async def login_form(visit: Visit) -> Response:
    """The page to log in."""
    return await visit.show("login", {"to": _local(visit.asked("to")), "wrong": None})


async def login(visit: Visit) -> Response:
    """Log in with a key; a wrong one is told on the same page."""
    form = dict(await visit.fields(proved=False))  # it ends the session that there is
    to = _local(form.get("to", ""))
    try:
        session = await visit.site.work(visit.site.sessions.begin, form.get("key", ""))
    except AccessError as error:
        return await visit.show("login", {"to": to, "wrong": str(error)}, 403)
    known = await visit.site.work(visit.site.sessions.find, session)
    operates = known is not None and "admin" in known.caller.scopes
    answer = visit.go(to or ("/operate" if operates else "/"))
    visit.log_in(answer, session)
    return answer


async def logout(visit: Visit) -> Response:
    """Log out: the session is over, whoever holds its cookie."""
    await visit.form()
    if visit.session is not None:
        await visit.site.work(visit.site.sessions.end, visit.session)
    answer = visit.go("/", "You are logged out.")
    answer.delete_cookie(SESSION, httponly=True, samesite="lax")
    return answer
