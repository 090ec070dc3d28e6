"""Endpoints for access: keys for servers, tokens for players, and the audit trail."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.accounts.keys import Key
from evenmatch.http.access import Admin, AnyAdmin, Queuer
from evenmatch.http.cursors import Cursor, Limit, read_cursor, write_cursor
from evenmatch.http.models.base import micros, moment
from evenmatch.http.models.keys import (
    AuditEntryOut,
    AuditPage,
    KeyCreate,
    KeyCreated,
    KeyOut,
    KeysPage,
    TokenOut,
    TokenRequest,
)
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read, written
from evenmatch.http.site import site_of

router = APIRouter(prefix="/v1", tags=["access"])


@router.post("/keys", response_model=KeyCreated, status_code=201, operation_id="create_key")
async def create_key(asked: KeyCreate, request: Request, caller: Admin) -> Response:
    """Create a key and return its text, which is shown only once, since it is not stored."""
    site = site_of(request)
    expires_at = None if asked.expires_at is None else micros(asked.expires_at)

    def create() -> tuple[Key, str]:
        request_id = context_of(request.scope).id
        return site.keys.create(asked.name, asked.scopes, asked.ladders, expires_at, by=caller, request=request_id)

    key, text = await site.work(create)
    return written(KeyCreated.model_validate({**_plain(key, site.service.clock()), "text": text}), 201)


@router.get("/keys", response_model=KeysPage, operation_id="list_keys")
async def list_keys(request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """All keys without their text, including revoked and expired ones."""
    site = site_of(request)
    keys = await site.work(site.keys.list)
    if cursor is not None:
        begin = read_cursor(cursor, int, str)
        keys = [key for key in keys if (key.created_at, key.key) > begin]
    last = keys[:limit][-1:]
    after = write_cursor(last[0].created_at, last[0].key) if len(keys) > limit else None
    now = site.service.clock()
    return read(request, KeysPage(items=[KeyOut.model_validate(_plain(key, now)) for key in keys[:limit]], next=after))


@router.delete("/keys/{key}", response_model=KeyOut, operation_id="revoke_key")
async def revoke_key(key: str, request: Request, caller: Admin) -> Response:
    """Revoke a key and the tokens it issued; this takes effect in every process within two seconds."""
    site = site_of(request)
    request_id = context_of(request.scope).id
    revoked = await site.work(lambda: site.keys.revoke(key, by=caller, request=request_id))
    return written(KeyOut.model_validate(_plain(revoked, site.service.clock())))


@router.post("/tokens", response_model=TokenOut, status_code=201, operation_id="issue_token")
async def issue_token(asked: TokenRequest, request: Request, caller: Queuer) -> Response:
    """Issue a short-lived token with which a game client can queue and read as one player, and nothing else."""
    site = site_of(request)
    token = await site.work(site.tokens.issue, caller, asked.player, asked.ladders, asked.expires_in)
    ladders = None if token.ladders is None else list(token.ladders)
    return written(
        TokenOut(player=token.player, ladders=ladders, expires_at=moment(token.expires_at), token=token.text), 201
    )


@router.get("/audit", response_model=AuditPage, operation_id="read_audit")
async def list_audit(
    request: Request, caller: AnyAdmin, ladder: str | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The audit trail of a ladder, or of all ladders, latest first."""
    site = site_of(request)
    caller.check("admin", ladder)
    before = None if cursor is None else int(read_cursor(cursor, int)[0])
    entries = await site.work(site.audit.page, ladder, before, limit + 1)
    page = [AuditEntryOut(**{**entry._asdict(), "at": moment(entry.at)}) for entry in entries[:limit]]
    after = write_cursor(page[-1].entry) if len(entries) > limit else None
    return read(request, AuditPage(items=page, next=after))


def _plain(key: Key, now: int) -> dict[str, object]:
    times = {"created_at": key.created_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at}
    moments = {name: None if time is None else moment(time) for name, time in times.items()}
    ladders = None if key.ladders is None else list(key.ladders)
    return {
        "key": key.key,
        "name": key.name,
        "scopes": list(key.scopes),
        "ladders": ladders,
        "state": key.state(now),
        **moments,
    }
