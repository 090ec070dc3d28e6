"""What a logged-in player finds about themselves: tickets, filters, accounts, the export and erasure of their data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.accounts.access import Caller
from evenmatch.errors import AccessError, UnknownNameError
from evenmatch.ladders.standings import View
from evenmatch.players.profile import everything
from evenmatch.queues.parties import QueueFilter
from evenmatch.web.forms import check_confirmed
from evenmatch.web.page_request import SESSION, PageRequest
from evenmatch.web.view_models import LadderShown

THEMSELF = "the player"  # in the audit trail, which keeps its entries: not the name that was erased


class OnLadder(NamedTuple):
    """A ladder with queues: the ticket with which the player waits or plays, and their filter; None: none."""

    ladder: LadderShown
    ticket: int | None
    filter: QueueFilter | None


def _player(visit: PageRequest) -> tuple[Caller, str]:
    """The logged-in player and their name. Raises AccessError for anybody else."""
    if visit.session is None or visit.session.caller.player is None:
        raise AccessError(visit.text("this page is for players; log in as one"))
    return visit.session.caller, visit.session.caller.player


async def account(visit: PageRequest) -> Response:
    """Show what concerns the player themself."""
    _player(visit)
    return await visit.show("account", lambda: _account(visit))


def _account(visit: PageRequest) -> Mapping[str, object]:
    caller, name = _player(visit)
    site, ladders = visit.site, []
    for ladder in site.service.names():
        if caller.may("read", ladder) and site.queue_service.queues(ladder):
            view: View = visit.reading.view(ladder)
            seat = site.queue_service.seat(ladder, name)
            kept = site.queue_service.filter_of(ladder, name)
            ladders.append(OnLadder(LadderShown.of(view), None if seat is None else seat.ticket, kept))
    return {
        "player": name,
        "ladders": ladders,
        "accounts": site.accounts.of(name),
        "is_known": _is_known(visit, name),
        "form": visit.form_at("account", "erase"),
    }


def _is_known(visit: PageRequest, name: str) -> bool:
    try:
        visit.site.service.player(name)
    except UnknownNameError:
        return False
    return True


async def data(visit: PageRequest) -> Response:
    """Send what is stored about the player, as each ladder shows it to its players."""
    caller, name = _player(visit)
    database, clock = visit.site.service.database, visit.site.service.clock
    document = await visit.site.work(lambda: everything(database, name, clock(), caller=caller))
    body = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    headers = {"Content-Disposition": 'attachment; filename="evenmatch-data.json"', "Cache-Control": "no-store"}
    return Response(body, headers=headers, media_type="application/json")


async def erase(visit: PageRequest) -> Response:
    """Replace the player by a pseudonym everywhere, and log them out."""
    form = await visit.form()
    caller, name = _player(visit)
    check_confirmed(form, name)
    entry = replace(visit.audit_entry("player.erased"), caller=replace(caller, actor=THEMSELF))
    await visit.site.change("", visit.site.service.noting(entry).erase, name)
    assert visit.session is not None
    await visit.site.work(visit.site.sessions.end, visit.session)
    response = visit.go("/", visit.text("You are erased. Your matches stay under a pseudonym."))
    visit.cookies.delete(response, SESSION)
    return response
