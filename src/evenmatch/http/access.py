"""Authentication, authorization and rate limits of requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import Scope

from evenmatch.accounts import signing
from evenmatch.accounts.access import ANYONE, Caller
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.accounts.keys import PREFIX as KEY
from evenmatch.accounts.signing import SignedRequest
from evenmatch.errors import (
    AccessError,
    EvenmatchError,
    ForbiddenError,
    HostError,
    IssuerError,
    RateLimitError,
    UnknownNameError,
    UsageError,
)
from evenmatch.http.hosts import client_address, is_text
from evenmatch.http.request_context import context_of
from evenmatch.http.site import ALL, Site, site_of

READS = ("GET", "HEAD", "OPTIONS")  # these change nothing, so their signatures may be repeated
SMALL = 65_536  # bytes; signatures of smaller bodies are checked in the event loop, which takes 0.1 ms
Body = Callable[[], Awaitable[bytes]]
ACCEPTED = "expected the header Authorization: Bearer KEY, with a key from `evenmatch key create` or a player's token"


class RequireScope(HTTPBearer):
    """A dependency that returns the caller if they have a scope, for the ladder of the path if there is one.

    open_read   requests without a key are allowed if the operator opened reads
    somewhere   the scope for any one ladder is enough; the handler then checks the ladder itself
    everywhere  the answer concerns all ladders, so it requires a key for all of them; a player's token is refused
    """

    def __init__(
        self, scope: str, *, open_read: bool = False, somewhere: bool = False, everywhere: bool = False
    ) -> None:
        super().__init__(auto_error=False, scheme_name="key", description="An API key, or a player's token.")
        self.scope, self.open_read, self.somewhere, self.everywhere = scope, open_read, somewhere, everywhere

    async def __call__(self, request: Request) -> Caller:  # type: ignore[override]  # returns a caller
        """Return the caller. Raises AccessError, ForbiddenError or RateLimitError."""
        site = site_of(request)
        caller = await authenticated(site, request.scope, request.body)
        _check_text(request)
        if caller is ANYONE and not (self.open_read and site.options.open_reads):
            raise no_key(site)
        if caller is not ANYONE and not (self.somewhere and _may_somewhere(caller, self.scope)):
            caller.check(self.scope, request.path_params.get("ladder"))
        if self.everywhere:
            caller.check_everywhere(request.url.path)
        return caller


def _check_text(request: Request) -> None:
    """Raise UnknownNameError or UsageError for parameters with NUL or a lone surrogate, which no database can store."""
    for name, value in request.path_params.items():
        if not is_text(value):
            raise UnknownNameError(name.removesuffix("_id"), value, ())
    for name, value in request.query_params.multi_items():
        if not is_text(value):
            raise UsageError(f"{name} is {value[:80]!r}; must be valid UTF-8 text without NUL")


def _may_somewhere(caller: Caller, scope: str) -> bool:
    return any(caller.may(scope, ladder) for ladder in caller.ladders or ())


async def authenticated(site: Site, scope: Scope, body: Body) -> Caller:
    """Authenticate a request, count it against a rate limit, and check that a signed write was not seen before.

    A wrong key counts as a request without a key, for its client address.
    Raises AccessError, HostError or RateLimitError.
    """
    context = context_of(scope)
    if context.caller is not None:
        return context.caller
    text = header(scope, b"authorization")
    if text is None:
        if site.options.open_reads:
            check_host(site, scope)
        allow(site, scope, ANYONE)
        return ANYONE
    try:
        caller, signed = await _verified(site, scope, text, body)
    except (AccessError, IssuerError):
        context.actor, context.allowance = "(unknown)", site.open_limit.take(client_of(scope))
        raise
    allow(site, scope, caller)
    if signed is not None and scope["method"] not in READS and not site.options.follower:
        await site.signed_requests.one(ALL, signed)
    context.caller = caller
    return caller


def read_before(body: bytes) -> Body:
    """Return a function that returns a body, for `authenticated`."""

    async def read() -> bytes:
        return body

    return read


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first value of a request header, given its lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None


def recalled(site: Site, scope: Scope) -> Caller | None:
    """Return the caller if no query is needed; None if the endpoint must authenticate them or report the error."""
    text = header(scope, b"authorization")
    if text is None:
        return ANYONE if site.options.open_reads and _has_allowed_host(site, scope) else None
    try:
        return _remembered(site, text)
    except AccessError:
        return None


async def count(site: Site, scope: Scope) -> None:
    """Count a request that reaches no endpoint, for its key or token, or else for its address. Raises RateLimitError.

    A signature is not verified, since that takes the body: the request counts for its address.
    """
    if _is_signature(header(scope, b"authorization") or ""):
        allow(site, scope, ANYONE)
        return
    try:
        await authenticated(site, scope, read_before(b""))
    except RateLimitError:
        raise
    except EvenmatchError:
        pass  # the response says that there is no endpoint


def allow(site: Site, scope: Scope, caller: Caller) -> None:
    """Count a request against its caller's rate limit, once. Raises RateLimitError, without counting, if exceeded."""
    context = context_of(scope)
    if context.caller is not None or (context.allowance is not None and context.actor == caller.actor):
        return
    context.actor, context.ladders = caller.actor, caller.ladders
    if caller is ANYONE:
        context.allowance = site.open_limit.take(client_of(scope))
    elif caller.player is None:
        context.allowance = site.key_limit.take(caller.key)
    else:
        context.allowance = site.player_limit.take(caller.key)


def is_allowed(site: Site, scope: Scope, caller: Caller) -> bool:
    """Like `allow`, but return False if the limit is exceeded; the endpoint then reports it."""
    try:
        allow(site, scope, caller)
    except RateLimitError:
        return False
    return True


def _remembered(site: Site, text: str) -> Caller | None:
    """The caller of a key or token, from memory alone. Raises AccessError."""
    credentials = _bearer(text)
    if credentials is None:
        return None
    return (site.keys if credentials.startswith(KEY) else site.tokens).recall(credentials)


def _bearer(text: str) -> str | None:
    """The key or token in an Authorization header; None for another scheme."""
    scheme, _, credentials = text.partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else None


async def _verified(site: Site, scope: Scope, text: str, body: Body) -> tuple[Caller, SignedRequest | None]:
    """The caller of these credentials, and the signature of a signed request. Raises AccessError, RateLimitError."""
    caller = _remembered(site, text)
    if caller is not None:
        return caller, None
    credentials = _bearer(text)
    if credentials is not None:
        if not credentials.startswith(KEY):  # a forged token is refused without a query
            return await site.identify(site.tokens.verify, credentials), None
        with _limiting_lookups(site, scope, credentials):
            return await site.identify(site.keys.authenticate, credentials), None
    if not _is_signature(text):
        raise AccessError(f"unknown authorization scheme {text.partition(' ')[0][:20]!r}; {ACCEPTED}")
    signed, content = signing.read(text), await body()
    verify, request = site.keys.authenticate_signed, (signed, scope["method"], _target(scope), content)
    if len(content) <= SMALL and site.keys.is_remembered(signed.key):
        return verify(*request), signed
    with _limiting_lookups(site, scope, signed.key):
        return await site.identify(verify, *request), signed


@contextmanager
def _limiting_lookups(site: Site, scope: Scope, key: str) -> Iterator[None]:
    """Count the block as a failed lookup if it raises AccessError. Raises RateLimitError if its address has too many.

    key  the text or id of a key. One that was found before is not limited: it is read at most every two seconds.
    """
    if site.keys.was_found(key):
        yield
        return
    client = client_of(scope)
    site.lookup_limit.check(client)
    try:
        yield
    except AccessError:
        site.lookup_limit.charge(client)
        raise


def _is_signature(text: str) -> bool:
    return text.partition(" ")[0].lower() == signing.SCHEME.lower()


def _target(scope: Scope) -> str:
    """Path and query string as sent."""
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


def check_own(site: Site, caller: Caller, player: str) -> None:
    """Raise ForbiddenError if a player's token asks about another player, unless reads are open to all."""
    if not site.options.open_reads and caller.player not in (None, player):
        raise ForbiddenError(
            f"{caller.actor} cannot read about {player!r}: the token is only valid for {caller.player!r}, unless "
            "EVENMATCH_OPEN_READS allows everybody to read"
        )


def no_key(site: Site) -> AccessError:
    """Return the error for a request that needs a key and has none."""
    opened = "" if site.options.open_reads else ". EVENMATCH_OPEN_READS allows reading without a key"
    return AccessError(f"no key was sent; {ACCEPTED}{opened}")


def client_of(scope: Scope) -> str:
    """The client address for rate limits; behind a trusted proxy, the one that the proxy reports."""
    client = scope.get("client")
    return client_address(client[0]) if client else "?"


def check_host(site: Site, scope: Scope) -> None:
    """Raise HostError if a request without a key, which may come from a browser, uses a host name that is not allowed.

    The request counts for its address. Raises RateLimitError.
    """
    if not _has_allowed_host(site, scope):
        allow(site, scope, ANYONE)
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        raise HostError(", ".join(hosts))


def _has_allowed_host(site: Site, scope: Scope) -> bool:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return len(hosts) == 1 and hosts[0].decode("latin-1") in site.hosts


def audit_entry(
    request: Request,
    caller: Caller,
    action: str,
    ladder: str | None = None,
    target: str | None = None,
    body: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Return the audit entry of an action that the caller is about to take."""
    return AuditEntry(caller, action, ladder, target, {} if body is None else body, context_of(request.scope).id)


Reader = Annotated[Caller, Depends(RequireScope("read", open_read=True))]
Watcher = Annotated[Caller, Depends(RequireScope("read", everywhere=True))]
Reporter = Annotated[Caller, Depends(RequireScope("report"))]
Linker = Annotated[Caller, Depends(RequireScope("queue", everywhere=True))]
Queuer = Annotated[Caller, Depends(RequireScope("queue"))]
Admin = Annotated[Caller, Depends(RequireScope("admin"))]
AnyAdmin = Annotated[Caller, Depends(RequireScope("admin", somewhere=True))]  # of at least one ladder
