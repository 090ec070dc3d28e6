"""Endpoint for names that may pass as another player's."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.http.access import Admin
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.models.player_identities import OddNameOut, OddNamesPage
from evenmatch.http.page_parameters import Cursor, Limit
from evenmatch.http.responses import read
from evenmatch.http.site import site_of
from evenmatch.service.name_rule import odd_names

router = APIRouter(prefix="/v1/ladders/{ladder:text}/odd-names", tags=["players"])


@router.get("", response_model=OddNamesPage, operation_id="list_odd_names")
async def list_odd_names(ladder: str, request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The names on the ladder that may pass as another one, by name; none where the setting `names` is any."""
    site = site_of(request)
    after = "" if cursor is None else str(read_cursor(cursor, str)[0])
    names, following = await site.work(odd_names, site.service, ladder, after, limit)
    items = [OddNameOut.model_validate(odd._asdict()) for odd in names]
    return read(request, OddNamesPage(items=items, next=None if following is None else write_cursor(following)))
