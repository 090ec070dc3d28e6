"""Log in at an identity provider, with a login link or with a key, and log out."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import RedirectResponse, Response

from evenmatch.errors import AccessError, IssuerError, UnknownNameError
from evenmatch.web.identity_providers import OPERATORS, Identity, IdentityProvider
from evenmatch.web.page_request import LOGIN, SESSION, PageRequest, address, local


async def login_form(visit: PageRequest) -> Response:
    """Show the ways to log in."""
    return await _show_form(visit, local(visit.asked("to")))


async def _show_form(visit: PageRequest, to: str, wrong: str | None = None, status: int = 200) -> Response:
    providers = visit.shared.providers
    values = {
        "to": to,
        "wrong": wrong,
        "providers": {name: one.label for name, one in providers.items() if name != OPERATORS},
        "operators": OPERATORS if OPERATORS in providers else None,
    }
    return await visit.show("login", values, status)


async def login(visit: PageRequest) -> Response:
    """Log in with a key; an invalid key shows the form again, with status 403."""
    form = dict(await visit.fields(proved=False))  # no proof, since the new session replaces the current one
    to = local(form.get("to", ""))
    try:
        session = await visit.site.work(visit.site.sessions.begin, form.get("key", ""))
    except AccessError as error:
        return await _show_form(visit, to, str(error), 403)
    return await _logged_in(visit, session, to)


async def _logged_in(visit: PageRequest, session: str, to: str) -> Response:
    created = await visit.site.work(visit.site.sessions.find, session)
    is_operator = created is not None and "admin" in created.caller.scopes
    response = visit.go(to or ("/operate" if is_operator else "/"))
    visit.log_in(response, session)
    return response


async def link(visit: PageRequest) -> Response:
    """Show whom a login link logs in. Only the button uses it up: programs that preview links do not."""
    token = visit.asked("token")
    try:
        caller = await visit.site.work(visit.site.tokens.read_link, token)
    except AccessError as error:
        return await _show_form(visit, "", str(error), 403)
    return await visit.show("login_link", {"player": caller.player, "token": token}, kept=False)


async def use_link(visit: PageRequest) -> Response:
    """Log in with a login link."""
    form = dict(await visit.fields(proved=False))
    try:
        session = await visit.site.work(visit.site.sessions.begin_by_link, form.get("token", ""))
    except AccessError as error:
        return await _show_form(visit, "", str(error), 403)
    return await _logged_in(visit, session, "")


def _provider(visit: PageRequest) -> tuple[str, IdentityProvider, str]:
    """Return the name of the provider in the URL, the provider, and the URL to which it sends visitors back."""
    name = visit.part("provider")
    if name not in visit.shared.providers:
        raise UnknownNameError("identity provider", name, ())
    back = str(visit.request.base_url).rstrip("/") + address("login", name, "back")
    return name, visit.shared.providers[name], back


async def leave(visit: PageRequest) -> Response:
    """Send the visitor to an identity provider."""
    name, provider, back = _provider(visit)
    url, state = await provider.leave(back)
    response = RedirectResponse(url, 303, {"Cache-Control": "no-store"})
    begun = {"provider": name, "to": local(visit.asked("to")), **state}
    begun.pop("url", None)
    visit.cookies.write(response, LOGIN, visit.site.sessions.remember_login(begun))
    return response


async def come_back(visit: PageRequest) -> Response:
    """Log in whoever comes back from an identity provider; each login comes back once."""
    name, provider, back = _provider(visit)
    state = visit.site.sessions.recall_login(visit.cookies.read(LOGIN) or "")
    to = "" if state is None else local(str(state.get("to")))
    try:
        identity = await provider.come_back(visit.request, back, _state_of(visit, name, state))
        response = await _log_in_as(visit, name, identity, to)
    except (AccessError, IssuerError) as error:
        response = await _show_form(visit, to, str(error), 503 if isinstance(error, IssuerError) else 403)
    response.headers["Cache-Control"] = "no-store"
    visit.cookies.delete(response, LOGIN)
    return response


def _state_of(visit: PageRequest, provider: str, state: Mapping[str, object] | None) -> dict[str, object]:
    """The state of a login that was begun at this provider in this browser. Raises AccessError."""
    if state is None or state.get("provider") != provider:
        raise AccessError(visit.text("this login has expired or was begun in another browser; log in again"))
    return dict(state)


async def _log_in_as(visit: PageRequest, name: str, identity: Identity, to: str) -> Response:
    sessions, account = visit.site.sessions, (identity.issuer, identity.subject)
    if name == OPERATORS:
        session = await visit.site.work(sessions.begin_as_operator, *account, list(identity.groups))
    elif await visit.site.work(visit.site.accounts.player, *account) is None:
        label = visit.shared.providers[name].label
        return await visit.show("unlinked", {"identity": identity, "label": label}, 403, kept=False)
    else:
        session = await visit.site.work(sessions.begin_as_player, *account)
    return await _logged_in(visit, session, to)


async def logout(visit: PageRequest) -> Response:
    """Log out: end the session for everyone who holds its cookie."""
    await visit.form()
    if visit.session is not None:
        await visit.site.work(visit.site.sessions.end, visit.session)
    response = visit.go("/", visit.text("You are logged out."))
    visit.cookies.delete(response, SESSION)
    return response
