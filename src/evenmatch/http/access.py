"""Who asks, and whether they may: a dependency of every endpoint but those about health."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import Scope

from evenmatch.errors import AccessError, UnknownNameError, UsageError
from evenmatch.http.front import asked_of
from evenmatch.http.limits import Allowance
from evenmatch.http.site import Site, site_of
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
        if not _is_text(value):
            raise UnknownNameError(name.removesuffix("_id"), value, ())
    for name, value in request.query_params.multi_items():
        if not _is_text(value):
            raise UsageError(f"{name} is {value[:80]!r}; accepted is text without NUL that UTF-8 can hold")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _may_somewhere(caller: Caller, scope: str) -> bool:
    return any(caller.may(scope, ladder) for ladder in caller.ladders or ())


async def _who(site: Site, request: Request) -> Caller:
    """Who asks; a wrong key counts as a request of its address, so that nobody tries many."""
    asked = asked_of(request.scope)
    text = request.headers.get("authorization")
    if text is None:
        asked.actor, asked.allowance = ANYONE.actor, site.open_limit.take(_address(request))
        return ANYONE
    try:
        caller = await _known(site, request, text)
    except AccessError:
        asked.actor, asked.allowance = "(unknown)", site.open_limit.take(_address(request))
        raise
    asked.actor = caller.actor
    asked.allowance = _allowance(site, caller)
    return caller


def admit_at_once(site: Site, scope: Scope, ladder: str) -> bool:
    """Whether who reads a ladder is known without a wait, and may; if so, the request is counted as theirs.

    Raises AccessError, and counts nothing, where the endpoint will say why not.
    """
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    asked, client = asked_of(scope), scope.get("client")
    if not sent and site.options.open_reads:
        asked.allowance = site.open_limit.take(client[0] if client else "?")
        asked.actor = ANYONE.actor
        return True
    caller = _recalled(site, sent[0].decode("latin-1")) if sent else None
    if caller is None or not caller.may("read", ladder):
        return False
    asked.allowance = _allowance(site, caller)
    asked.actor = caller.actor
    return True


def _recalled(site: Site, text: str) -> Caller | None:
    """Who sends this header; None where the database must be asked, or more than the header."""
    scheme, _, credentials = text.partition(" ")
    if scheme.lower() != "bearer":
        return None
    credentials = credentials.strip()
    return (site.keys if credentials.startswith("em_") else site.tokens).recall(credentials)


def _allowance(site: Site, caller: Caller) -> Allowance:
    """What a caller has left after this request. Raises RateLimitError."""
    if caller.player is None:
        return site.key_limit.take(caller.key)
    return site.player_limit.take(caller.actor)


async def _known(site: Site, request: Request, text: str) -> Caller:
    known = _recalled(site, text)
    if known is not None:
        return known
    site.open_limit.check(_address(request))  # who sent many wrong keys asks no more of the database
    scheme, _, credentials = text.partition(" ")
    credentials = credentials.strip()
    if scheme.lower() == "bearer":
        judge = site.keys.authenticate if credentials.startswith("em_") else site.tokens.verify
        return await site.work(judge, credentials)
    if scheme.lower() == signing.SCHEME.lower():
        signed, target = signing.read(text), _target(request.scope)
        return await site.work(site.keys.authenticate_signed, *signed, request.method, target, await request.body())
    raise AccessError(f"the scheme {scheme[:20]!r} is not known; {ACCEPTED}")


def _target(scope: Scope) -> str:
    """The address with its query, as it was sent."""
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


def _address(request: Request) -> str:
    return request.client.host if request.client else "?"


Reader = Annotated[Caller, Depends(May("read", open_read=True))]
Watcher = Annotated[Caller, Depends(May("read"))]
Reporter = Annotated[Caller, Depends(May("report"))]
Queuer = Annotated[Caller, Depends(May("queue"))]
Admin = Annotated[Caller, Depends(May("admin"))]
AnyAdmin = Annotated[Caller, Depends(May("admin", somewhere=True))]  # of some ladder
