"""Endpoints for queues: state, configuration, penalties, and the ticket of a player."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.http.access import Admin, Queuer, Reader
from evenmatch.http.audit_entries import audit_entry
from evenmatch.http.models.base import moment
from evenmatch.http.models.policies import QueuePolicy
from evenmatch.http.models.queues import PenaltyOut, QueueOut, QueuesPage, SetQueue, TicketOf
from evenmatch.http.responses import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.service.queries.visibility import Visibility
from evenmatch.service.queue_rules import QueueRules
from evenmatch.service.stored_queues import QueueSetup

router = APIRouter(prefix="/v1/ladders/{ladder:text}", tags=["queues"])
BANDS = 10


@router.get("/queues", response_model=QueuesPage, operation_id="queues")
async def queues(ladder: str, request: Request, caller: Reader) -> Response:
    """The queues of a ladder, with the numbers of waiting players."""
    site = site_of(request)
    seen = await site.visibility(caller, ladder)
    return read(request, QueuesPage(items=await site.work(_queues, site, ladder, seen)))


@router.get("/queues/{queue:text}", response_model=QueueOut, operation_id="queue")
async def queue(ladder: str, queue: str, request: Request, caller: Reader) -> Response:
    """A queue, with the numbers of waiting players by percentile and region."""
    site = site_of(request)
    setup = await site.work(site.queue_service.queue, ladder, queue)
    seen = await site.visibility(caller, ladder)
    return read(request, await site.work(_queue, site, ladder, setup, seen))


@router.put("/queues/{queue:text}", response_model=QueueOut, operation_id="set_queue")
async def set_queue(ladder: str, queue: str, body: SetQueue, request: Request, caller: Admin) -> Response:
    """Create a queue, or replace its policy and rules; waiting tickets stay in it."""
    site = site_of(request)
    policy, rule_values = (part.model_dump(exclude_unset=True) for part in (body.policy, body.rules))
    rules = QueueRules.from_data(rule_values)
    entry = audit_entry(request, caller, "queue.set", ladder, queue, {"policy": policy, "rules": rule_values})
    setup = await site.work(site.queue_service.noting(entry).set_queue, ladder, queue, policy, rules)
    seen = await site.visibility(caller, ladder)
    return written(await site.work(_queue, site, ladder, setup, seen))


@router.delete("/queues/{queue:text}", status_code=204, operation_id="remove_queue")
async def remove_queue(ladder: str, queue: str, request: Request, caller: Admin, force: bool = False) -> Response:
    """Remove a queue. Refused while players wait in it, unless `force` is set: then their tickets are removed."""
    site = site_of(request)
    queue_service = site.queue_service.noting(
        audit_entry(request, caller, "queue.removed", ladder, queue, {"force": force})
    )
    await site.work(lambda: queue_service.remove_queue(ladder, queue, force=force))
    return Response(status_code=204)


@router.get("/penalties/{player:text}", response_model=PenaltyOut, operation_id="penalty")
async def penalty(ladder: str, player: str, request: Request, caller: Queuer) -> Response:
    """The penalty of a player who declined, did not answer, or quit."""
    caller.speaks_for(player)
    site = site_of(request)
    current = await site.work(site.queue_service.penalties, ladder, player)
    if current is None:
        return read(request, PenaltyOut(player=player, ladder=ladder, strikes=0.0, until=None))
    until = moment(current.until) if current.until > site.service.clock() else None
    return read(request, PenaltyOut(player=player, ladder=ladder, strikes=current.strikes, until=until))


@router.delete("/penalties/{player:text}", status_code=204, operation_id="forgive")
async def forgive(ladder: str, player: str, request: Request, caller: Admin) -> Response:
    """Remove a player's strikes, so that they may queue at once."""
    site = site_of(request)
    entry = audit_entry(request, caller, "penalty.forgiven", ladder, player)
    await site.work(site.queue_service.noting(entry).forgive, ladder, player)
    return Response(status_code=204)


@router.get("/players/{player:text}/ticket", response_model=TicketOf, operation_id="ticket_of_player")
async def ticket_of_player(ladder: str, player: str, request: Request, caller: Queuer) -> Response:
    """The ticket or match of a player, for a client that was restarted."""
    caller.speaks_for(player)
    site = site_of(request)
    slot = await site.work(site.queue_service.seat, ladder, player)
    ticket, match_id = (None, None) if slot is None else (slot.ticket, slot.match_id)
    return read(request, TicketOf(player=player, ladder=ladder, ticket=ticket, match_id=match_id))


def _queues(site: Site, ladder: str, seen: Visibility) -> list[QueueOut]:
    return [_queue(site, ladder, setup, seen) for setup in site.queue_service.queues(ladder)]


def _queue(site: Site, ladder: str, setup: QueueSetup, seen: Visibility) -> QueueOut:
    counts = site.queue_service.counts(ladder).get(setup.name)
    return QueueOut(
        ladder=ladder,
        queue=setup.name,
        change=setup.change,
        policy=QueuePolicy.model_validate(setup.policy.to_data()),
        rules=setup.rules.to_data(),  # type: ignore[arg-type] # numbers, or none
        matchmaker="running" if site.queue_service.is_matching(ladder) else "starting",
        tickets=0 if counts is None else counts.tickets,
        players=0 if counts is None else counts.players,
        by_percentile=seen.bands([0] * BANDS if counts is None else counts.bands),
        by_region={} if counts is None else dict(counts.regions),
    )
