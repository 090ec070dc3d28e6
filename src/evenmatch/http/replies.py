"""Answers as JSON, with an ETag by which an answer that is still good need not be sent again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

if TYPE_CHECKING:
    from pydantic import BaseModel

    Payload = BaseModel | dict[str, object] | list[object]

JSON = "application/json"
PRIVATE = "private, no-cache"  # whoever asked may keep it, and asks whether it is still good


def etag_of(body: bytes) -> str:
    """A strong validator of exactly these bytes."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def is_known(request: Request, etag: str) -> bool:
    """Whether who asks holds this answer already."""
    return holds(request.headers.get("if-none-match", ""), etag)


def holds(held: str, etag: str) -> bool:
    """Whether the header If-None-Match names this answer."""
    return held == "*" or etag in (one.strip().removeprefix("W/") for one in held.split(","))


def encoded(payload: Payload) -> bytes:
    """As JSON; times and the like as pydantic writes them."""
    return to_json(payload, by_alias=True)


def read(request: Request, payload: Payload | bytes, *, headers: dict[str, str] | None = None) -> Response:
    """The answer to a read: 200 with an ETag, or 304 where it is known."""
    body = payload if isinstance(payload, bytes) else encoded(payload)
    etag = etag_of(body)
    told = {"ETag": etag, "Cache-Control": PRIVATE, **(headers or {})}
    if is_known(request, etag):
        return Response(status_code=304, headers=told)
    return Response(body, headers=told, media_type=JSON)


async def send_at_once(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes = b"") -> None:
    """An answer without what a Response does for others; JSON, if it has a body."""
    more = [(b"content-length", b"%d" % len(body)), (b"content-type", JSON.encode())] if body else []
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})
    await send({"type": "http.response.body", "body": body})


def written(payload: Payload | bytes, status: int = 200, *, headers: dict[str, str] | None = None) -> Response:
    """The answer to a write."""
    body = payload if isinstance(payload, bytes) else encoded(payload)
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, JSON)
