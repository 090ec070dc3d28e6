"""Endpoints for access: keys for servers, tokens and linked accounts of players, and the audit trail."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.accounts.account_sql import Entry
from evenmatch.accounts.keys import Key
from evenmatch.http.access import Admin, AnyAdmin, Linker, Queuer
from evenmatch.http.cursors import Cursor, Limit, number_of, read_cursor, split_page
from evenmatch.http.models.base import micros
from evenmatch.http.models.from_records import page_of
from evenmatch.http.models.keys import (
    AccountLink,
    AccountOut,
    KeyCreate,
    KeyCreated,
    KeyOut,
    LoginLinkOut,
    LoginLinkRequest,
    TokenOut,
    TokenRequest,
)
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read_page, written
from evenmatch.http.site import site_of

router = APIRouter(prefix="/v1", tags=["access"])


@router.post("/keys", response_model=KeyCreated, status_code=201, operation_id="create_key")
async def create_key(asked: KeyCreate, request: Request, caller: Admin) -> Response:
    """Create a key and return its text, which is not stored and cannot be shown again."""
    site = site_of(request)
    expires_at = None if asked.expires_at is None else micros(asked.expires_at)

    def create() -> tuple[Key, str]:
        request_id = context_of(request.scope).id
        return site.keys.create(asked.name, asked.scopes, asked.ladders, expires_at, by=caller, request=request_id)

    key, text = await site.work(create)
    return written(KeyCreated.from_record(key, state=key.state(site.service.clock()), text=text), 201)


@router.get("/keys", response_model=page_of(KeyOut), operation_id="list_keys")
async def list_keys(request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List all keys without their text, including revoked and expired ones."""
    site = site_of(request)
    keys = await site.work(site.keys.list)
    if cursor is not None:
        begin = read_cursor(cursor, int, str)
        keys = [key for key in keys if (key.created_at, key.key) > begin]
    page, after = split_page(keys, limit, lambda key: (key.created_at, key.key))
    now = site.service.clock()
    return read_page(request, KeyOut, [KeyOut.from_record(key, state=key.state(now)) for key in page], after)


@router.delete("/keys/{key}", response_model=KeyOut, operation_id="revoke_key")
async def revoke_key(key: str, request: Request, caller: Admin) -> Response:
    """Revoke a key and the tokens it issued; this takes effect in every process within two seconds."""
    site = site_of(request)
    request_id = context_of(request.scope).id
    revoked = await site.work(lambda: site.keys.revoke(key, by=caller, request=request_id))
    return written(KeyOut.from_record(revoked, state=revoked.state(site.service.clock())))


@router.post("/tokens", response_model=TokenOut, status_code=201, operation_id="issue_token")
async def issue_token(asked: TokenRequest, request: Request, caller: Queuer) -> Response:
    """Issue a short-lived token with which a game client can queue and read as one player."""
    site = site_of(request)
    token = await site.work(site.tokens.issue, caller, asked.player, asked.ladders, asked.expires_in)
    return written(TokenOut.from_record(token, token=token.text), 201)


@router.post("/login-links", response_model=LoginLinkOut, status_code=201, operation_id="issue_login_link")
async def issue_login_link(asked: LoginLinkRequest, request: Request, caller: Queuer) -> Response:
    """Issue a link with which a player logs in to the web site, once, for the ladders of the key."""
    site = site_of(request)
    link = await site.work(site.tokens.issue_link, caller, asked.player, None, asked.expires_in)
    return written(LoginLinkOut.from_record(link, path=link.text), 201)


ACCOUNTS = "/players/{player:text}/accounts"


@router.put(ACCOUNTS, response_model=AccountOut, operation_id="link_account")
async def link_account(player: str, asked: AccountLink, request: Request, caller: Linker) -> Response:
    """Let the owner of an account log in as this player, who need not have played yet; requires a key for all ladders.

    The account may be linked to one player only, and a player may have several accounts.
    """
    site, request_id = site_of(request), context_of(request.scope).id
    linked = await site.work(
        lambda: site.accounts.link(player, asked.issuer, asked.subject, by=caller, request=request_id)
    )
    return written(AccountOut.from_record(linked))


@router.get(ACCOUNTS, response_model=page_of(AccountOut), operation_id="list_accounts")
async def list_accounts(player: str, request: Request, _: Linker) -> Response:
    """List the accounts with which a player can log in; requires a key for all ladders."""
    site = site_of(request)
    linked = await site.work(site.accounts.of, player)
    return read_page(request, AccountOut, [AccountOut.from_record(account) for account in linked])


@router.delete(ACCOUNTS, response_model=AccountOut, operation_id="unlink_account")
async def unlink_account(player: str, request: Request, caller: Linker, issuer: str, subject: str) -> Response:
    """End the link of an account, and the sessions begun with it; requires a key for all ladders."""
    site, request_id = site_of(request), context_of(request.scope).id
    unlinked = await site.work(lambda: site.accounts.unlink(player, issuer, subject, by=caller, request=request_id))
    return written(AccountOut.from_record(unlinked))


@router.get("/audit", response_model=page_of(Entry), operation_id="read_audit")
async def list_audit(
    request: Request, caller: AnyAdmin, ladder: str | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List the audit trail of a ladder, or of all ladders, latest first."""
    site = site_of(request)
    caller.check("admin", ladder)
    entries = await site.work(site.audit.page, ladder, number_of(cursor), limit + 1)
    return read_page(request, Entry, *split_page(entries, limit, lambda entry: (entry.entry,)))
