"""JSON responses. Those to reads have an ETag, so that an unchanged response is not sent again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

from evenmatch.http.models.from_records import page_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    Payload = BaseModel | dict[str, object] | list[object]

JSON = "application/json"
PRIVATE = "private, no-cache"  # clients may store the response and must revalidate it


def etag_of(body: bytes) -> str:
    """Return a strong ETag of these bytes."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def is_known(request: Request, etag: str) -> bool:
    """Return whether the client already has the response with this ETag."""
    return holds(request.headers.get("if-none-match", ""), etag)


def holds(held: str, etag: str) -> bool:
    """Return whether the value of If-None-Match contains this ETag."""
    return held == "*" or etag in (tag.strip().removeprefix("W/") for tag in held.split(","))


def encoded(payload: Payload) -> bytes:
    """Encode a payload as JSON, with times and other types as pydantic writes them."""
    return to_json(payload, by_alias=True)


def read(request: Request, payload: Payload | bytes, *, headers: dict[str, str] | None = None) -> Response:
    """Return the response to a read: 200 with an ETag, or 304 if the client has it."""
    body = payload if isinstance(payload, bytes) else encoded(payload)
    etag = etag_of(body)
    fields = {"ETag": etag, "Cache-Control": PRIVATE, **(headers or {})}
    if is_known(request, etag):
        return Response(status_code=304, headers=fields)
    return Response(body, headers=fields, media_type=JSON)


def read_page(request: Request, item: type, items: Iterable[object], following: str | None = None) -> Response:
    """Return the response to a read of a list.

    item       the model or the record of its items
    following  the cursor of the next page
    """
    return read(request, page_of(item).model_validate({"items": items, "next": following}))


async def send_at_once(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes = b"") -> None:
    """Send a response with a JSON body over ASGI, without the cost of a Response object."""
    extra = [(b"content-length", b"%d" % len(body)), (b"content-type", JSON.encode())] if body else []
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *extra]})
    await send({"type": "http.response.body", "body": body})


def written(payload: Payload | bytes, status: int = 200, *, headers: dict[str, str] | None = None) -> Response:
    """Return the response to a write, which is never cached."""
    body = payload if isinstance(payload, bytes) else encoded(payload)
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, JSON)
