"""Operators correct what counts: each correction is an event and a replay, and can be seen before it is done."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.http.access import Admin
from evenmatch.http.asked import asked_of
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.doing import Cursor, Limit
from evenmatch.http.models.base import LONGEST, micros, moment
from evenmatch.http.models.corrections import (
    BanAsked,
    Corrected,
    Foreseen,
    MoveTold,
    Rulings,
    RulingTold,
    VoidAsked,
)
from evenmatch.http.replies import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.service import rulings
from evenmatch.service.callers.access import Caller
from evenmatch.service.callers.deeds import Correcting, correcting
from evenmatch.service.corrections import Ban, Move, Preview, Reinstate, Unvoid, Void
from evenmatch.service.rulings import Ruling
from evenmatch.service.stories import RATING_DECIMALS, Movement

router = APIRouter(prefix="/v1/ladders/{ladder:text}", tags=["corrections"])
MOST = 200  # moves that a preview tells
NOTHING = Preview("nothing would change", [], 0, 0, 0)
Seen = Annotated[bool, Query(description="Only tell who would move; change nothing.")]
Reason = Annotated[str | None, Query(max_length=2000, description="Why.")]
EventId = Annotated[str | None, Query(min_length=1, max_length=LONGEST, description="As `id` of a body.")]


@router.post("/voids", response_model=Corrected, operation_id="void_match")
async def void_match(ladder: str, asked: VoidAsked, request: Request, caller: Admin, preview: Seen = False) -> Response:
    """Let a match count for nothing, and rate all that came after it anew."""
    return await _correct(request, caller, ladder, Void(asked.match_id, asked.reason), asked.id, preview)


@router.delete("/voids/{match_id:text}", response_model=Corrected, operation_id="unvoid_match")
async def unvoid_match(
    ladder: str,
    match_id: str,
    request: Request,
    caller: Admin,
    reason: Reason = None,
    id: EventId = None,  # noqa: A002 - so it is called everywhere
    preview: Seen = False,
) -> Response:
    """Let a match that was voided count again."""
    return await _correct(request, caller, ladder, Unvoid(match_id, reason), id, preview)


@router.post("/bans", response_model=Corrected, operation_id="ban_player")
async def ban_player(ladder: str, asked: BanAsked, request: Request, caller: Admin, preview: Seen = False) -> Response:
    """Ban a player from a ladder, and rate all that they had a part in anew; they are in no standings then."""
    since = None if asked.since is None else micros(asked.since)
    wish = Ban(asked.player, asked.rule, since, asked.reason)
    return await _correct(request, caller, ladder, wish, asked.id, preview)


@router.delete("/bans/{player:text}", response_model=Corrected, operation_id="reinstate_player")
async def reinstate_player(
    ladder: str,
    player: str,
    request: Request,
    caller: Admin,
    reason: Reason = None,
    id: EventId = None,  # noqa: A002 - so it is called everywhere
    preview: Seen = False,
) -> Response:
    """Lift a ban, as though it had never been."""
    return await _correct(request, caller, ladder, Reinstate(player, reason), id, preview)


@router.get("/voids", response_model=Rulings, operation_id="list_voids")
async def list_voids(ladder: str, request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The matches that are void now, each by the correction that did it."""
    return await _listed(request, ladder, "voids", limit, cursor)


@router.get("/bans", response_model=Rulings, operation_id="list_bans")
async def list_bans(ladder: str, request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The players who are banned now, each by the correction that did it."""
    return await _listed(request, ladder, "bans", limit, cursor)


@router.get("/corrections", response_model=Rulings, operation_id="list_corrections")
async def list_corrections(
    ladder: str, request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """Every event of the ladder's ledger that is no match."""
    return await _listed(request, ladder, "all", limit, cursor)


async def _correct(
    request: Request, caller: Caller, ladder: str, wish: Correcting, event_id: str | None, preview: bool
) -> Response:
    site = site_of(request)
    if preview:
        seen = await site.work(site.service.preview, ladder, wish, None, event_id)
        return written(Corrected(told=seen.told, there_already=seen.done, preview=True, foreseen=foreseen(seen)))
    service = site.service.noting(correcting(caller, ladder, wish, asked_of(request.scope).id))
    made = await site.work(service.correct, ladder, wish, None, event_id)
    said = f"{event_id!r} was done already" if made is None else made.told
    return written(Corrected(told=said, there_already=made is None, preview=False, foreseen=None))


def foreseen(seen: Preview) -> Foreseen:
    """A preview as JSON knows it."""
    return Foreseen(
        players=seen.players,
        matches=seen.matches,
        left_out=seen.left_out,
        moved=len(seen.moves),
        moves=[_move(one) for one in seen.moves[:MOST]],
    )


def _move(move: Move) -> MoveTold:
    before, after = (None if one is None else round(one, RATING_DECIMALS) for one in (move.before, move.after))
    both = None if before is None or after is None else Movement.of(before, after).change
    return MoveTold(**move._replace(before=before, after=after)._asdict(), change=both)


async def _listed(request: Request, ladder: str, what: str, limit: int, cursor: str | None) -> Response:
    site = site_of(request)
    before = None if cursor is None else int(read_cursor(cursor, int)[0])
    found = await site.work(_read, site, ladder, what, before, limit + 1)
    page = [ruling_told(one) for one in found[:limit]]
    after = write_cursor(page[-1].position) if len(found) > limit else None
    return read(request, Rulings(items=page, next=after))


def _read(site: Site, ladder: str, what: str, before: int | None, most: int) -> list[Ruling]:
    with site.service.reading(ladder) as (store, head):
        if what == "all":
            return rulings.rulings(store, head, before, most)
        found = rulings.voids(store, head) if what == "voids" else rulings.bans(store, head)
        return [one for one in found if before is None or one.position < before][:most]


def ruling_told(one: Ruling) -> RulingTold:
    """A correction as JSON knows it."""
    return RulingTold(**{**one._asdict(), "at": moment(one.at), "said": dict(one.said)})
