"""The queues of a ladder: what they are, who waits, and what operators decide."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.http.access import Admin, Queuer, Reader
from evenmatch.http.doing import deed
from evenmatch.http.models.base import moment
from evenmatch.http.models.policies import QueuePolicy
from evenmatch.http.models.queues import PenaltyTold, QueuesTold, QueueTold, SetQueue, TicketOf
from evenmatch.http.replies import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.service.queueing.queue_rules import QueueRules, QueueSetup

router = APIRouter(prefix="/v1/ladders/{ladder:text}", tags=["queues"])
BANDS = 10


@router.get("/queues", response_model=QueuesTold, operation_id="queues")
async def queues(ladder: str, request: Request, _: Reader) -> Response:
    """The queues of a ladder, and who waits in each."""
    return read(request, QueuesTold(items=await site_of(request).work(_all, site_of(request), ladder)))


@router.get("/queues/{queue:text}", response_model=QueueTold, operation_id="queue")
async def queue(ladder: str, queue: str, request: Request, _: Reader) -> Response:
    """A queue, and who waits in it, by percentile and region."""
    site = site_of(request)
    setup = await site.work(site.desk.queue, ladder, queue)
    return read(request, await site.work(_told, site, ladder, setup))


@router.put("/queues/{queue:text}", response_model=QueueTold, operation_id="set_queue")
async def set_queue(ladder: str, queue: str, body: SetQueue, request: Request, caller: Admin) -> Response:
    """Make a queue, or replace its policy and rules; who waits there goes on waiting."""
    site = site_of(request)
    policy, given = (part.model_dump(exclude_unset=True) for part in (body.policy, body.rules))
    rules = QueueRules.from_data(given)
    done = deed(request, caller, "queue.set", ladder, queue, {"policy": policy, "rules": given})
    setup = await site.work(site.desk.noting(done).set_queue, ladder, queue, policy, rules)
    return written(await site.work(_told, site, ladder, setup))


@router.delete("/queues/{queue:text}", status_code=204, operation_id="remove_queue")
async def remove_queue(ladder: str, queue: str, request: Request, caller: Admin, force: bool = False) -> Response:
    """Remove a queue. Refused while somebody waits there, unless forced: then their tickets are gone."""
    site = site_of(request)
    desk = site.desk.noting(deed(request, caller, "queue.removed", ladder, queue, {"force": force}))
    await site.work(lambda: desk.remove_queue(ladder, queue, force=force))
    return Response(status_code=204)


@router.get("/penalties/{player:text}", response_model=PenaltyTold, operation_id="penalty")
async def penalty(ladder: str, player: str, request: Request, caller: Queuer) -> Response:
    """What a player waits out for having declined, been silent or quit."""
    caller.speaks_for(player)
    site = site_of(request)
    found = await site.work(site.desk.penalties, ladder, player)
    if found is None:
        return read(request, PenaltyTold(player=player, ladder=ladder, strikes=0.0, until=None))
    until = moment(found.until) if found.until > site.service.clock() else None
    return read(request, PenaltyTold(player=player, ladder=ladder, strikes=found.strikes, until=until))


@router.delete("/penalties/{player:text}", status_code=204, operation_id="forgive")
async def forgive(ladder: str, player: str, request: Request, caller: Admin) -> Response:
    """Forget a player's strikes: they may queue at once."""
    site = site_of(request)
    done = deed(request, caller, "penalty.forgiven", ladder, player)
    await site.work(site.desk.noting(done).forgive, ladder, player)
    return Response(status_code=204)


@router.get("/players/{player:text}/ticket", response_model=TicketOf, operation_id="ticket_of_player")
async def ticket_of_player(ladder: str, player: str, request: Request, caller: Queuer) -> Response:
    """Where a player waits or plays: for a client that was started anew."""
    caller.speaks_for(player)
    site = site_of(request)
    seat = await site.work(site.desk.seat, ladder, player)
    ticket, match_id = (None, None) if seat is None else (seat.ticket, seat.match_id)
    return read(request, TicketOf(player=player, ladder=ladder, ticket=ticket, match_id=match_id))


def _all(site: Site, ladder: str) -> list[QueueTold]:
    return [_told(site, ladder, setup) for setup in site.desk.queues(ladder)]


def _told(site: Site, ladder: str, setup: QueueSetup) -> QueueTold:
    counts = site.desk.counts(ladder).get(setup.name)
    return QueueTold(
        ladder=ladder,
        queue=setup.name,
        change=setup.change,
        policy=QueuePolicy.model_validate(setup.policy.to_data()),
        rules=setup.rules.to_data(),  # type: ignore[arg-type] # numbers, or none
        matchmaker="running" if site.desk.is_matching(ladder) else "starting",
        tickets=0 if counts is None else counts.tickets,
        players=0 if counts is None else counts.players,
        by_percentile=[0] * BANDS if counts is None else list(counts.bands),
        by_region={} if counts is None else dict(counts.regions),
    )
