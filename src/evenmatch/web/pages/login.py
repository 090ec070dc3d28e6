"""Login with a key, and logout."""

from __future__ import annotations

from starlette.responses import Response

from evenmatch.errors import AccessError
from evenmatch.web.cookies import SESSION
from evenmatch.web.page_request import PageRequest


def _local(to: str) -> str:
    """The path if it is one of this site, else an empty string: no redirects to other sites."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) and "\n" not in to else ""


async def login_form(visit: PageRequest) -> Response:
    """Show the login form."""
    return await visit.show("login", {"to": _local(visit.asked("to")), "wrong": None})


async def login(visit: PageRequest) -> Response:
    """Log in with a key; an invalid key shows the form again, with status 403."""
    form = dict(await visit.fields(proved=False))  # the new session replaces the present one
    to = _local(form.get("to", ""))
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
    """Log out: end the session for all holders of its cookie."""
    await visit.form()
    if visit.session is not None:
        await visit.site.work(visit.site.sessions.end, visit.session)
    response = visit.go("/", "You are logged out.")
    visit.cookies.delete(response, SESSION)
    return response
