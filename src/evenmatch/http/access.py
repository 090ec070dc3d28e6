"""Authentication and authorization: a dependency of every endpoint except health checks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import Scope

from evenmatch.errors import AccessError, StoreError, UnknownNameError, UsageError
from evenmatch.http.path_text import is_text
from evenmatch.http.request_context import context_of
from evenmatch.http.site import ALL, Site, site_of
from evenmatch.service.callers import signing
from evenmatch.service.callers.access import ANYONE, Caller
from evenmatch.service.callers.signing import SignedRequest

READS = ("GET", "HEAD", "OPTIONS")  # methods that change nothing, so that a signature may be seen again
SMALL = 65_536  # bytes of a body whose signature is checked on the event loop, in a tenth of a millisecond
Body = Callable[[], Awaitable[bytes]]
ACCEPTED = "expected the header Authorization: Bearer KEY, with a key from `evenmatch key create` or a player's token"


class RequireScope(HTTPBearer):
    """A dependency that returns the caller if they have a scope, on the ladder of the path if it has one.

    open_read  requests without a key are allowed if the operator opened reads
    somewhere  the scope on any one ladder is enough here; the handler then checks the ladder itself
    everywhere  the answer is about all ladders: a key for all of them is required, and no player's token will do
    """

    def __init__(
        self, scope: str, *, open_read: bool = False, somewhere: bool = False, everywhere: bool = False
    ) -> None:
        super().__init__(auto_error=False, scheme_name="key", description="An API key, or a player's token.")
        self.scope, self.open_read, self.somewhere, self.everywhere = scope, open_read, somewhere, everywhere

    async def __call__(self, request: Request) -> Caller:  # type: ignore[override]  # a caller, not only the header
        """Return the caller. Raises AccessError, ForbiddenError or RateLimitError."""
        site = site_of(request)
        caller = await authenticated(site, request.scope, request.body)
        _check_text(request)
        if caller is ANYONE and not (self.open_read and site.options.open_reads):
            raise AccessError(f"no key was sent; {ACCEPTED}")
        if caller is not ANYONE and not (self.somewhere and _may_somewhere(caller, self.scope)):
            caller.check(self.scope, request.path_params.get("ladder"))
        if self.everywhere:
            caller.check_everywhere(request.url.path)
        return caller


def _check_text(request: Request) -> None:
    """Raise UnknownNameError or UsageError for parameters no database can store: NUL or a lone surrogate."""
    for name, value in request.path_params.items():
        if not is_text(value):
            raise UnknownNameError(name.removesuffix("_id"), value, ())
    for name, value in request.query_params.multi_items():
        if not is_text(value):
            raise UsageError(f"{name} is {value[:80]!r}; must be valid UTF-8 text without NUL")


def _may_somewhere(caller: Caller, scope: str) -> bool:
    return any(caller.may(scope, ladder) for ladder in caller.ladders or ())


async def authenticated(site: Site, scope: Scope, body: Body) -> Caller:
    """The caller of a request, counted against their rate limit; of a signed write, that it was not seen before.

    A wrong key counts against the limit of its client address, which slows down guessing.
    Raises AccessError or RateLimitError.
    """
    context = context_of(scope)
    if context.caller is not None:
        return context.caller
    text = header(scope, b"authorization")
    if text is None:
        allow(site, scope, ANYONE)
        return ANYONE
    try:
        caller, signed = await _verified(site, scope, text, body)
    except AccessError:
        context.actor, context.allowance = "(unknown)", site.open_limit.take(_address(scope))
        raise
    allow(site, scope, caller)
    if signed is not None and scope["method"] not in READS:
        await site.signed_requests.one(ALL, signed)
    context.caller = caller
    return caller


def read_before(body: bytes) -> Body:
    """A function that returns a body, for `authenticated`."""

    async def read() -> bytes:
        return body

    return read


def header(scope: Scope, name: bytes) -> str | None:
    """The first value of a request header, given its lower-case name."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def recalled(site: Site, scope: Scope) -> Caller | None:
    """The caller, if known without a database query; None: the endpoint authenticates, or reports the error."""
    text = header(scope, b"authorization")
    if text is None:
        return ANYONE if site.options.open_reads else None
    try:
        return _remembered(site, text)
    except AccessError:
        return None


async def identified(site: Site, scope: Scope, body: bytes) -> Caller | None:
    """The same, but query the database for an unknown key or token; the context notes an error.

    A signed request is authenticated as by `authenticated`, which raises errors.
    """
    caller, text = context_of(scope).caller or recalled(site, scope), header(scope, b"authorization")
    if caller is not None or text is None:
        return caller
    if _is_signed(text):
        return await authenticated(site, scope, read_before(body))
    try:
        return await _looked_up(site, scope, text)
    except (AccessError, StoreError) as error:
        context_of(scope).refused = error
        return None


def allow(site: Site, scope: Scope, caller: Caller) -> None:
    """Count a request against its caller's rate limit, once. Raises RateLimitError, without counting, if exceeded."""
    context = context_of(scope)
    if context.caller is not None:
        return
    context.actor, context.ladders = caller.actor, caller.ladders
    if caller is ANYONE:
        context.allowance = site.open_limit.take(_address(scope))
    elif caller.player is None:
        context.allowance = site.key_limit.take(caller.key)
    else:
        context.allowance = site.player_limit.take(caller.actor)


def _remembered(site: Site, text: str) -> Caller | None:
    """The caller of this header; None if the database or the rest of the request is needed."""
    scheme, _, credentials = text.partition(" ")
    if scheme.lower() != "bearer":
        return None
    credentials = credentials.strip()
    return (site.keys if credentials.startswith("em_") else site.tokens).recall(credentials)


async def _verified(site: Site, scope: Scope, text: str, body: Body) -> tuple[Caller, SignedRequest | None]:
    """The caller of these credentials, and the signature if that is what they are."""
    refused = context_of(scope).refused
    if refused is not None:
        raise refused
    caller = _remembered(site, text)
    if caller is not None:
        return caller, None
    caller = await _looked_up(site, scope, text)
    if caller is not None:
        return caller, None
    if not _is_signed(text):
        raise AccessError(f"unknown authorization scheme {text.partition(' ')[0][:20]!r}; {ACCEPTED}")
    signed, content = signing.read(text), await body()
    verify, request = site.keys.authenticate_signed, (signed, scope["method"], _target(scope), content)
    if len(content) <= SMALL and site.keys.is_remembered(signed.key):
        return verify(*request), signed
    return await site.work(verify, *request), signed


def _is_signed(text: str) -> bool:
    return text.partition(" ")[0].lower() == signing.SCHEME.lower()


async def _looked_up(site: Site, scope: Scope, text: str) -> Caller | None:
    """The caller of a key or token, from the database; None for other credentials. Raises AccessError."""
    site.open_limit.check(_address(scope))  # no database query for an address that sent many wrong keys
    scheme, _, credentials = text.partition(" ")
    if scheme.lower() != "bearer":
        return None
    credentials = credentials.strip()
    verify = site.keys.authenticate if credentials.startswith("em_") else site.tokens.verify
    return await site.work(verify, credentials)


def _target(scope: Scope) -> str:
    """Path and query string as sent."""
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "?"


Reader = Annotated[Caller, Depends(RequireScope("read", open_read=True))]
Watcher = Annotated[Caller, Depends(RequireScope("read", everywhere=True))]
Reporter = Annotated[Caller, Depends(RequireScope("report"))]
Queuer = Annotated[Caller, Depends(RequireScope("queue"))]
Admin = Annotated[Caller, Depends(RequireScope("admin"))]
AnyAdmin = Annotated[Caller, Depends(RequireScope("admin", somewhere=True))]  # of at least one ladder
