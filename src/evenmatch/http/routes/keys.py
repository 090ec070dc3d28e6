"""Operators give access: keys for servers, tokens for players; and see who did what."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.http.access import Admin, AnyAdmin, Queuer
from evenmatch.http.asked import asked_of
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.doing import Cursor, Limit
from evenmatch.http.models.base import micros, moment
from evenmatch.http.models.keys import (
    AuditTold,
    EntryTold,
    KeyAsked,
    KeyMade,
    KeysTold,
    KeyTold,
    TokenAsked,
    TokenTold,
)
from evenmatch.http.replies import read, written
from evenmatch.http.site import site_of
from evenmatch.service.callers.keys import Key

router = APIRouter(prefix="/v1", tags=["access"])


@router.post("/keys", response_model=KeyMade, status_code=201, operation_id="create_key")
async def create_key(asked: KeyAsked, request: Request, caller: Admin) -> Response:
    """Make a key, and show it: this once, since only its hash is kept."""
    site = site_of(request)
    ends = None if asked.expires_at is None else micros(asked.expires_at)

    def create() -> tuple[Key, str]:
        request_id = asked_of(request.scope).id
        return site.keys.create(asked.name, asked.scopes, asked.ladders, ends, by=caller, request=request_id)

    made, text = await site.work(create)
    return written(KeyMade.model_validate({**_plain(made, site.service.clock()), "text": text}), 201)


@router.get("/keys", response_model=KeysTold, operation_id="list_keys")
async def list_keys(request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The keys, those that were revoked or have expired among them; never their text."""
    site = site_of(request)
    found = await site.work(site.keys.list)
    if cursor is not None:
        begin = read_cursor(cursor, int, str)
        found = [one for one in found if (one.created_at, one.key) > begin]
    last = found[:limit][-1:]
    after = write_cursor(last[0].created_at, last[0].key) if len(found) > limit else None
    now = site.service.clock()
    return read(
        request, KeysTold(items=[KeyTold.model_validate(_plain(one, now)) for one in found[:limit]], next=after)
    )


@router.delete("/keys/{key}", response_model=KeyTold, operation_id="revoke_key")
async def revoke_key(key: str, request: Request, caller: Admin) -> Response:
    """End a key, and the players' tokens it issued; every process heeds it within two seconds."""
    site = site_of(request)
    request_id = asked_of(request.scope).id
    revoked = await site.work(lambda: site.keys.revoke(key, by=caller, request=request_id))
    return written(KeyTold.model_validate(_plain(revoked, site.service.clock())))


@router.post("/tokens", response_model=TokenTold, status_code=201, operation_id="issue_token")
async def issue_token(asked: TokenAsked, request: Request, caller: Queuer) -> Response:
    """A short-lived token with which a game's client queues and reads as one player, and does nothing else."""
    site = site_of(request)
    made = await site.work(site.tokens.issue, caller, asked.player, asked.ladders, asked.expires_in)
    ladders = None if made.ladders is None else list(made.ladders)
    return written(
        TokenTold(player=made.player, ladders=ladders, expires_at=moment(made.expires_at), token=made.text), 201
    )


@router.get("/audit", response_model=AuditTold, operation_id="read_audit")
async def list_audit(
    request: Request, caller: AnyAdmin, ladder: str | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """Who did what, on a ladder or on all, the latest first."""
    site = site_of(request)
    caller.check("admin", ladder)
    before = None if cursor is None else int(read_cursor(cursor, int)[0])
    found = await site.work(site.audit.page, ladder, before, limit + 1)
    page = [EntryTold(**{**one._asdict(), "at": moment(one.at)}) for one in found[:limit]]
    after = write_cursor(page[-1].entry) if len(found) > limit else None
    return read(request, AuditTold(items=page, next=after))


def _plain(key: Key, now: int) -> dict[str, object]:
    times = {"created_at": key.created_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at}
    told = {name: None if at is None else moment(at) for name, at in times.items()}
    ladders = None if key.ladders is None else list(key.ladders)
    return {
        "key": key.key,
        "name": key.name,
        "scopes": list(key.scopes),
        "ladders": ladders,
        "state": key.state(now),
        **told,
    }
