"""Operators change who players are, on all ladders at once."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.http.access import Admin
from evenmatch.http.doing import deed
from evenmatch.http.models.people import Erased, MergeAsked, Merged, RenameAsked, Renamed
from evenmatch.http.replies import written
from evenmatch.http.site import site_of

router = APIRouter(prefix="/v1/players/{player:text}", tags=["players"])


@router.post("/rename", response_model=Renamed, operation_id="rename_player")
async def rename_player(player: str, asked: RenameAsked, request: Request, caller: Admin) -> Response:
    """Give a player another name; what is reported under the old one still reaches them."""
    site = site_of(request)
    service = site.service.noting(deed(request, caller, "player.renamed", target=player, body={"to": asked.to}))
    changed = await site.work(service.rename, player, asked.to)
    return written(Renamed(player=asked.to, changed=changed))


@router.post("/merge", response_model=Merged, operation_id="merge_player")
async def merge_player(player: str, asked: MergeAsked, request: Request, caller: Admin) -> Response:
    """Make one player of two who never met: `into` is left, as though they had played all matches of both."""
    site = site_of(request)
    service = site.service.noting(deed(request, caller, "player.merged", target=player, body={"into": asked.into}))
    ladders = await site.work(service.merge, player, asked.into)
    return written(Merged(player=asked.into, ladders=ladders))


@router.post("/erase", response_model=Erased, operation_id="erase_player")
async def erase_player(player: str, request: Request, caller: Admin) -> Response:
    """Replace a player by a pseudonym everywhere, for good; nobody's rating changes."""
    site = site_of(request)
    service = site.service.noting(deed(request, caller, "player.erased"))
    return written(Erased(pseudonym=await site.work(service.erase, player)))
