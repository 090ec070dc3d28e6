"""Endpoints to rename, merge and erase players, on all ladders at once."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.http.access import Admin
from evenmatch.http.audit_entries import audit_entry
from evenmatch.http.models.player_identities import (
    MergeRequest,
    PlayerErased,
    PlayerRenamed,
    PlayersMerged,
    RenameRequest,
)
from evenmatch.http.responses import written
from evenmatch.http.site import site_of
from evenmatch.http.task_outcomes import outcome
from evenmatch.service.players import NAMED_TWICE
from evenmatch.service.work.tasks import DueTask

router = APIRouter(prefix="/v1/players/{player:text}", tags=["players"])


@router.post("/rename", response_model=PlayerRenamed, operation_id="rename_player")
async def rename_player(player: str, asked: RenameRequest, request: Request, caller: Admin) -> Response:
    """Rename a player; reports under the old name still count for them."""
    site = site_of(request)
    service = site.service.noting(audit_entry(request, caller, "player.renamed", target=player, body={"to": asked.to}))
    changed = await site.change("", service.rename, player, asked.to)
    return written(PlayerRenamed(player=asked.to, changed=changed))


@router.post("/merge", response_model=PlayersMerged, operation_id="merge_player")
async def merge_player(player: str, asked: MergeRequest, request: Request, caller: Admin) -> Response:
    """Merge a player into `into`, who then has the matches of both. The two must never have met in a match.

    A match that is reported with two of the player's names afterwards is recorded, but not rated. Large ladders are
    rated again by a job, and show the ratings from before until it has ended.
    """
    site = site_of(request)
    service = site.service.noting(
        audit_entry(request, caller, "player.merged", target=player, body={"into": asked.into})
    )
    ladders = await site.change("", lambda: service.merge(player, asked.into, rebuild=False))
    for ladder in ladders:
        await outcome(site, DueTask(ladder))
    return written(PlayersMerged(player=asked.into, ladders=ladders, note=NAMED_TWICE))


@router.post("/erase", response_model=PlayerErased, operation_id="erase_player")
async def erase_player(player: str, request: Request, caller: Admin) -> Response:
    """Replace a player's names with a pseudonym everywhere, permanently; no rating changes."""
    site = site_of(request)
    service = site.service.noting(audit_entry(request, caller, "player.erased"))
    return written(PlayerErased(pseudonym=await site.change("", service.erase, player)))
