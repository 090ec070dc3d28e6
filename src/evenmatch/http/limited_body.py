"""The body of a request, read within limits: strangers send little, and a process holds a bounded number of bytes.

The sender of a large or slow body is identified by the head, before more of it is read. The endpoint authenticates the
caller again when the whole body is there: a key may be revoked during a slow upload. A signature is verified only then,
and its key is charged nothing before.
"""

from __future__ import annotations

import re
from contextlib import suppress

from starlette.types import Message, Receive, Scope

from evenmatch.accounts.access import Caller
from evenmatch.errors import EvenmatchError, ForbiddenError, RateLimitError
from evenmatch.http.access import allow, client_of, count_wrong_key, header, is_signed, sender_in_head
from evenmatch.http.bodies import KEYS, PAGES, SIGNATURES, SMALL_BODY, STRANGERS, VERIFIED, BodySender, players_of
from evenmatch.http.connections import Connection
from evenmatch.http.hosts import as_meant, is_api
from evenmatch.http.problems import BUSY, OTHERS, ProblemKind, make_problem, refused_problem
from evenmatch.http.request_context import BodyRefusedError, context_of
from evenmatch.http.site import Site

LARGE = re.compile(r"/v1/ladders/([^/]+)/(matches|matches/batch|start-ratings)")  # paths of bodies up to the body limit
OPEN = re.compile(r"/v1/ladders/[^/]+/odds")  # paths of bodies without a key, where everybody may read
OTHER = SMALL_BODY  # bytes of all other bodies
SMALL = 64 * 1024  # bytes of a body that arrived with its head, and of one that strangers send: forms of pages, OPEN
PIECE = 64  # bytes that a piece of a body costs beside its own


class LimitedBody:
    """ASGI `receive` of a request within the limits. `release` must be called when the request has ended."""

    def __init__(self, site: Site, scope: Scope, receive: Receive, declared: int) -> None:
        """declared: the length that the head says, 0 if it says none."""
        self._site, self._scope, self._receive, self._declared = site, scope, receive, declared
        self._connection: Connection | None = scope.get("evenmatch.connection")
        self._caller: Caller | None = None
        self._sender: BodySender | None = None  # None: not yet known
        self._size = self._held = self._pieces = 0
        self._is_counted = False
        self._small = min(SMALL, site.options.body_limit)

    async def __call__(self) -> Message:
        """The next message. Raises BodyRefusedError."""
        if self._sender is None and self._is_large_or_slow():
            await self._begin()
            self._check_size(self._declared)
            self._check_room(self._declared)
        message = await self._receive()
        size = len(message.get("body", b""))
        self._size += size
        self._pieces += 1
        has_more = size > 0 and message.get("more_body", False)
        if self._sender is None and (has_more or size > self._small):
            await self._begin()
        if self._sender is not None:
            self._check_size(self._size)
            self._take(self._size + self._pieces * PIECE)
        return message

    def _is_large_or_slow(self) -> bool:
        """Whether there is more to come than what arrived with the head."""
        return self._declared > self._small or (self._connection is not None and self._connection.is_receiving)

    def release(self) -> None:
        """Give back the memory of the body. A signature that was not verified counts as a wrong key."""
        is_signed = self._sender is not None and self._sender.group in (SIGNATURES, VERIFIED)
        if is_signed and context_of(self._scope).actor is None:
            with suppress(RateLimitError):
                count_wrong_key(self._site, self._scope)
        if self._held and self._sender is not None:
            self._site.bodies.give_back(self._sender, self._held)
            self._held = 0
        if self._is_counted and self._sender is not None:
            self._site.bodies.end(self._sender)
            self._is_counted = False

    async def _begin(self) -> None:
        """Find out who sends the body, and count it. Raises BodyRefusedError."""
        await self._identify()
        assert self._sender is not None
        self._is_counted = self._site.bodies.begin(self._sender)
        if not self._is_counted:
            raise self._no_room()

    async def _identify(self) -> None:
        """Find out who sends the body. Raises BodyRefusedError for a stranger where a key is required."""
        if not is_api(self._scope["path"]):
            is_stranger = self._connection is None or not self._connection.is_known
            self._sender = BodySender(STRANGERS if is_stranger else PAGES, client_of(self._scope))
            return
        if self._is_open():
            self._sender = BodySender(STRANGERS, client_of(self._scope))  # the endpoint counts the request
            return
        try:
            caller = self._caller = await sender_in_head(self._site, self._scope)
            if is_signed(self._scope):
                address = client_of(self._scope)
                self._sender = BodySender(VERIFIED if address in self._site.signing_addresses else SIGNATURES, address)
                return
            self._sender = BodySender(KEYS if caller.player is None else players_of(caller.issuer), caller.key)
            allow(self._site, self._scope, caller)
        except EvenmatchError as error:
            raise self._refused(error) from None
        if self._connection is not None:
            self._connection.keep()

    def _is_open(self) -> bool:
        """Whether no key is sent, nor needed for this body. A large one needs a key."""
        is_open = self._site.options.open_reads and OPEN.fullmatch(self._scope["path"]) is not None
        return is_open and self._declared <= self._small and header(self._scope, b"authorization") is None

    def _refused(self, error: EvenmatchError) -> BodyRefusedError:
        return BodyRefusedError(refused_problem(error, context_of(self._scope)))

    def _check_size(self, size: int) -> None:
        path = self._scope["path"]
        large = LARGE.fullmatch(path)
        limit = self._site.options.body_limit
        is_stranger = self._sender is not None and self._sender.group == STRANGERS
        if not is_api(path) or is_stranger:
            limit = min(limit, SMALL)
        elif large is None:
            limit = min(limit, OTHER)
        if size > limit:
            setting = ", EVENMATCH_BODY_LIMIT" if limit == self._site.options.body_limit else ""
            detail = f"the body is larger than the limit of {limit:,} bytes{setting}; split it into several requests"
            raise self._problem(OTHERS[413], detail)
        if large is not None and size > OTHER:
            self._check_scope("admin" if large[2] == "start-ratings" else "report", as_meant(large[1]))

    def _check_scope(self, scope: str, ladder: str) -> None:
        """Raise BodyRefusedError unless the sender may send a large body to this ladder."""
        if self._caller is None or not self._caller.may(scope, ladder):
            raise self._refused(
                ForbiddenError(f"a body of more than {OTHER:,} bytes needs the scope {scope} on ladder {ladder!r}")
            )

    def _check_room(self, size: int) -> None:
        """Raise BodyRefusedError if there is no room for a body of this size now. Only what arrives takes room."""
        assert self._sender is not None
        if not self._site.bodies.has_room(self._sender, size):
            raise self._no_room()

    def _take(self, size: int) -> None:
        """Hold at least this number of bytes for this request, out of those that this process may hold."""
        assert self._sender is not None
        more = size - self._held
        if more > 0:
            if not self._site.bodies.take(self._sender, more):
                raise self._no_room()
            self._held += more

    def _no_room(self) -> BodyRefusedError:
        detail = (
            "the bodies that arrive at this moment fill the memory that EVENMATCH_BODY_MEMORY allows for them; nothing "
            "was done with this one: send it again"
        )
        return self._problem(BUSY, detail, retry_after=1.0)

    def _problem(self, kind: ProblemKind, detail: str, retry_after: float | None = None) -> BodyRefusedError:
        return BodyRefusedError(make_problem(kind, detail, context_of(self._scope).id, retry_after=retry_after))
