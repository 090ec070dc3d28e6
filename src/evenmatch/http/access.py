"""Who asks, and whether they may: a dependency of every endpoint but those about health."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import Scope

from evenmatch.errors import AccessError, StoreError, UnknownNameError, UsageError
from evenmatch.http.asked import asked_of
from evenmatch.http.site import Site, site_of
from evenmatch.http.text import is_text
from evenmatch.service.callers import signing
from evenmatch.service.callers.access import ANYONE, Caller

ACCEPTED = "accepted is the header Authorization: Bearer KEY, with a key of `evenmatch key create` or a player's token"


class May(HTTPBearer):
    """A caller who may do something of a scope, on the ladder of the address if it has one.

    open_read  nobody needs to be known where the operator opened reads
    somewhere  on any ladder: the handler, which sees on which, asks further
    """

    def __init__(self, scope: str, *, open_read: bool = False, somewhere: bool = False) -> None:
        super().__init__(auto_error=False, scheme_name="key", description="An API key, or a player's token.")
        self.scope, self.open_read, self.somewhere = scope, open_read, somewhere

    async def __call__(self, request: Request) -> Caller:  # type: ignore[override]  # a caller, not the mere header
        """The caller. Raises AccessError, ForbiddenError or RateLimitError."""
        site = site_of(request)
        caller = await _who(site, request)
        _check_texts(request)
        if caller is ANYONE and not (self.open_read and site.options.open_reads):
            raise AccessError(f"no key was sent; {ACCEPTED}")
        if caller is not ANYONE and not (self.somewhere and _may_somewhere(caller, self.scope)):
            caller.check(self.scope, request.path_params.get("ladder"))
        return caller


def _check_texts(request: Request) -> None:
    """Raise UnknownNameError or UsageError for what no database can look for: NUL, or half a letter."""
    for name, value in request.path_params.items():
        if not is_text(value):
            raise UnknownNameError(name.removesuffix("_id"), value, ())
    for name, value in request.query_params.multi_items():
        if not is_text(value):
            raise UsageError(f"{name} is {value[:80]!r}; accepted is text without NUL that UTF-8 can hold")


def _may_somewhere(caller: Caller, scope: str) -> bool:
    return any(caller.may(scope, ladder) for ladder in caller.ladders or ())


async def _who(site: Site, request: Request) -> Caller:
    """Who asks; a wrong key counts as a request of its address, so that nobody tries many."""
    asked = asked_of(request.scope)
    text = request.headers.get("authorization")
    if text is None:
        allow(site, request.scope, ANYONE)
        return ANYONE
    try:
        caller = await _known(site, request, text)
    except AccessError:
        asked.actor, asked.allowance = "(unknown)", site.open_limit.take(_address(request.scope))
        raise
    allow(site, request.scope, caller)
    return caller


def recalled(site: Site, scope: Scope) -> Caller | None:
    """Who asks, where that is known without a wait; None: the endpoint will know, or say why not."""
    sent = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if sent is None:
        return ANYONE if site.options.open_reads else None
    try:
        return _recalled(site, sent.decode("latin-1"))
    except AccessError:
        return None


async def identified(site: Site, scope: Scope) -> Caller | None:
    """The same, but who sends a key or a token is looked for where that is needed; why that failed is noted."""
    caller = recalled(site, scope)
    sent = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if caller is not None or sent is None:
        return caller
    try:
        return await _judged(site, scope, sent.decode("latin-1"))
    except (AccessError, StoreError) as error:
        asked_of(scope).refused = error
        return None


def allow(site: Site, scope: Scope, caller: Caller) -> None:
    """Count a request as its caller's. Raises RateLimitError, and counts nothing, where there are too many."""
    asked = asked_of(scope)
    asked.actor = caller.actor
    if caller is ANYONE:
        asked.allowance = site.open_limit.take(_address(scope))
    elif caller.player is None:
        asked.allowance = site.key_limit.take(caller.key)
    else:
        asked.allowance = site.player_limit.take(caller.actor)


def _recalled(site: Site, text: str) -> Caller | None:
    """Who sends this header; None where the database must be asked, or more than the header."""
    scheme, _, credentials = text.partition(" ")
    if scheme.lower() != "bearer":
        return None
    credentials = credentials.strip()
    return (site.keys if credentials.startswith("em_") else site.tokens).recall(credentials)


async def _known(site: Site, request: Request, text: str) -> Caller:
    refused = asked_of(request.scope).refused
    if refused is not None:
        raise refused
    known = _recalled(site, text)
    if known is not None:
        return known
    judged = await _judged(site, request.scope, text)
    if judged is not None:
        return judged
    scheme = text.partition(" ")[0]
    if scheme.lower() == signing.SCHEME.lower():
        signed, target = signing.read(text), _target(request.scope)
        return await site.work(site.keys.authenticate_signed, *signed, request.method, target, await request.body())
    raise AccessError(f"the scheme {scheme[:20]!r} is not known; {ACCEPTED}")


async def _judged(site: Site, scope: Scope, text: str) -> Caller | None:
    """Who sends a key or a token, by the database; None where something else is sent. Raises AccessError."""
    site.open_limit.check(_address(scope))  # who sent many wrong keys asks no more of the database
    scheme, _, credentials = text.partition(" ")
    if scheme.lower() != "bearer":
        return None
    credentials = credentials.strip()
    judge = site.keys.authenticate if credentials.startswith("em_") else site.tokens.verify
    return await site.work(judge, credentials)


def _target(scope: Scope) -> str:
    """The address with its query, as it was sent."""
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "?"


Reader = Annotated[Caller, Depends(May("read", open_read=True))]
Watcher = Annotated[Caller, Depends(May("read"))]
Reporter = Annotated[Caller, Depends(May("report"))]
Queuer = Annotated[Caller, Depends(May("queue"))]
Admin = Annotated[Caller, Depends(May("admin"))]
AnyAdmin = Annotated[Caller, Depends(May("admin", somewhere=True))]  # of some ladder
