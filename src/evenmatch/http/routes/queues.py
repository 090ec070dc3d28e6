"""Endpoints for queues: state, configuration, experiments, audit, penalties, and the ticket of a player."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.accounts.access import Caller
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.experiment import ARMS
from evenmatch.http.access import Admin, Queuer, Reader, audit_entry
from evenmatch.http.models.base import Moment, micros, moment
from evenmatch.http.models.queues import (
    ComparedFigureOut,
    DesignOut,
    ExperimentAuditOut,
    ExperimentOut,
    FilterChange,
    FilterOut,
    PauseQueue,
    PenaltyOut,
    QueueAuditOut,
    QueueOut,
    QueuePolicy,
    QueuesPage,
    SetQueue,
    StartExperiment,
    TicketOf,
)
from evenmatch.http.responses import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.ladders.visibility import Visibility
from evenmatch.queues import policy_fits
from evenmatch.queues.experiment_audit import ExperimentAudit
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.stored_queues import QueueExperiment, QueueSetup


def experiment_out(ladder: str, experiment: QueueExperiment) -> ExperimentOut:
    """Return the response model of an experiment."""
    return ExperimentOut.from_record(
        experiment,
        experiment=experiment.number,
        ladder=ladder,
        design=DesignOut.model_validate(experiment.design.to_data()),
        first=QueuePolicy.model_validate(experiment.first.to_data()),
        second=QueuePolicy.model_validate(experiment.second.to_data()),
    )


def experiment_audit_out(ladder: str, audited: ExperimentAudit) -> ExperimentAuditOut:
    """Return the response model of the audit of an experiment."""
    by_arm = {name: dict(zip(ARMS, getattr(audited, name), strict=True)) for name in ("slices", "formed", "counted")}
    figures = [ComparedFigureOut.from_record(figure, figure=figure.figure.name) for figure in audited.figures]
    experiment = experiment_out(ladder, audited.experiment)
    return ExperimentAuditOut.from_record(audited, **by_arm, experiment=experiment, figures=figures)


router = APIRouter(prefix="/v1/ladders/{ladder:text}", tags=["queues"])
BANDS = 10
Since = Annotated[Moment | None, Query(description="Only matches formed at or after this time.")]
Until = Annotated[Moment | None, Query(description="Only matches formed before this time.")]


@router.get("/queues", response_model=QueuesPage, operation_id="queues")
async def queues(ladder: str, request: Request, caller: Reader) -> Response:
    """List the queues of a ladder, with the numbers of waiting players."""
    site = site_of(request)
    seen = await site.visibility(caller, ladder)
    return read(request, QueuesPage(items=await site.work(_queues, site, ladder, seen)))


@router.get("/queues/{queue:text}", response_model=QueueOut, operation_id="queue")
async def queue(ladder: str, queue: str, request: Request, caller: Reader) -> Response:
    """Return a queue, with the numbers of waiting players by percentile and region."""
    site = site_of(request)
    setup = await site.work(site.queue_service.queue, ladder, queue)
    seen = await site.visibility(caller, ladder)
    return read(request, await site.work(_queue, site, ladder, setup, seen))


@router.get("/queues/{queue:text}/audit", response_model=QueueAuditOut, operation_id="queue_audit")
async def queue_audit(
    ladder: str, queue: str, request: Request, caller: Reader, since: Since = None, until: Until = None
) -> Response:
    """Compare the predictions for the matches that a queue formed with the reported results."""
    site = site_of(request)
    begin = moment(0) if since is None else since
    end = moment(site.service.clock()) if until is None else until
    audited = await site.work(site.reading(caller).queue_audit, ladder, queue, micros(begin), micros(end))
    experiments = [experiment_audit_out(ladder, compared) for compared in audited.experiments]
    return read(request, QueueAuditOut.from_record(audited, since=begin, until=end, experiments=experiments))


@router.put("/queues/{queue:text}", response_model=QueueOut, operation_id="set_queue")
async def set_queue(ladder: str, queue: str, body: SetQueue, request: Request, caller: Admin) -> Response:
    """Create a queue, or replace its policy and rules. Waiting tickets stay in it."""
    site = site_of(request)
    policy, rule_values = (part.model_dump(exclude_unset=True) for part in (body.policy, body.rules))
    rules = QueueRules.from_data(rule_values)
    entry = audit_entry(request, caller, "queue.set", ladder, queue, {"policy": policy, "rules": rule_values})
    setup = await site.change(ladder, site.queue_service.noting(entry).set_queue, ladder, queue, policy, rules)
    seen = await site.visibility(caller, ladder)
    return written(await site.work(_queue, site, ladder, setup, seen))


@router.put("/queues/{queue:text}/experiment", response_model=ExperimentOut, operation_id="start_experiment")
async def start_experiment(ladder: str, queue: str, body: StartExperiment, request: Request, caller: Admin) -> Response:
    """Start an experiment in which a second policy shares the queue. Refused while another experiment runs.

    Time is divided into slices. In each slice one policy, drawn with the seed, decides alone. Waiting tickets stay.
    """
    site = site_of(request)
    design = body.model_dump(exclude_unset=True)
    policy = design.pop("policy", {})
    entry = audit_entry(request, caller, "experiment.started", ladder, queue, {"policy": policy, **design})
    queue_service = site.queue_service.noting(entry)
    started = await site.change(ladder, queue_service.start_experiment, ladder, queue, policy, design)
    return written(experiment_out(ladder, started))


@router.delete("/queues/{queue:text}/experiment", response_model=ExperimentOut, operation_id="stop_experiment")
async def stop_experiment(ladder: str, queue: str, request: Request, caller: Admin) -> Response:
    """Stop a queue's experiment, so that its own policy decides alone. The audit still compares the matches."""
    site = site_of(request)
    queue_service = site.queue_service.noting(audit_entry(request, caller, "experiment.stopped", ladder, queue))
    return written(experiment_out(ladder, await site.change(ladder, queue_service.stop_experiment, ladder, queue)))


@router.put("/queues/{queue:text}/pause", response_model=QueueOut, operation_id="pause_queue")
async def pause_queue(ladder: str, queue: str, body: PauseQueue, request: Request, caller: Admin) -> Response:
    """Pause a queue, or change the message of its pause.

    It refuses new tickets and makes no offers. Waiting tickets stay, and open offers can be accepted.
    """
    entry = audit_entry(request, caller, "queue.paused", ladder, queue, {"message": body.message})
    return await _paused(request, caller, ladder, queue, entry, body.message)


@router.delete("/queues/{queue:text}/pause", response_model=QueueOut, operation_id="resume_queue")
async def resume_queue(ladder: str, queue: str, request: Request, caller: Admin) -> Response:
    """Resume a paused queue."""
    entry = audit_entry(request, caller, "queue.resumed", ladder, queue)
    return await _paused(request, caller, ladder, queue, entry, None)


async def _paused(
    request: Request, caller: Caller, ladder: str, queue: str, entry: AuditEntry, message: str | None
) -> Response:
    site = site_of(request)
    setup = await site.change(ladder, site.queue_service.noting(entry).pause_queue, ladder, queue, message)
    seen = await site.visibility(caller, ladder)
    return written(await site.work(_queue, site, ladder, setup, seen))


@router.delete("/queues/{queue:text}", status_code=204, operation_id="remove_queue")
async def remove_queue(ladder: str, queue: str, request: Request, caller: Admin, force: bool = False) -> Response:
    """Remove a queue. Refused while players wait in it, unless `force` is set, which removes their tickets."""
    site = site_of(request)
    queue_service = site.queue_service.noting(
        audit_entry(request, caller, "queue.removed", ladder, queue, {"force": force})
    )
    await site.change(ladder, lambda: queue_service.remove_queue(ladder, queue, force=force))
    return Response(status_code=204)


@router.get("/penalties/{player:text}", response_model=PenaltyOut, operation_id="penalty")
async def penalty(ladder: str, player: str, request: Request, caller: Queuer) -> Response:
    """Return the penalty of a player who declined, did not answer, or quit."""
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
    await site.change(ladder, site.queue_service.noting(entry).forgive, ladder, player)
    return Response(status_code=204)


@router.get("/players/{player:text}/filter", response_model=FilterOut, operation_id="get_filter")
async def get_filter(ladder: str, player: str, request: Request, caller: Queuer) -> Response:
    """Return a player's stored filter on the ladder. A join uses its values where it has none of its own."""
    caller.speaks_for(player)
    site = site_of(request)
    return read(request, _filter(ladder, player, await site.work(site.queue_service.filter_of, ladder, player)))


@router.put("/players/{player:text}/filter", response_model=FilterOut, operation_id="set_filter")
async def set_filter(ladder: str, player: str, body: FilterChange, request: Request, caller: Queuer) -> Response:
    """Store a player's filter. It also applies to the ticket in which the player waits, which keeps its place."""
    caller.speaks_for(player)
    site = site_of(request)
    chosen = QueueFilter.from_data(body.model_dump(exclude_unset=True))
    await site.change(ladder, site.queue_service.set_filter, ladder, player, chosen)
    return written(_filter(ladder, player, chosen))


@router.delete("/players/{player:text}/filter", status_code=204, operation_id="forget_filter")
async def forget_filter(ladder: str, player: str, request: Request, caller: Queuer) -> Response:
    """Delete a player's stored filter on the ladder."""
    caller.speaks_for(player)
    site = site_of(request)
    await site.change(ladder, site.queue_service.set_filter, ladder, player, None)
    return Response(status_code=204)


@router.get("/players/{player:text}/ticket", response_model=TicketOf, operation_id="ticket_of_player")
async def ticket_of_player(ladder: str, player: str, request: Request, caller: Queuer) -> Response:
    """Return the ticket or match of a player, for a client that was restarted."""
    caller.speaks_for(player)
    site = site_of(request)
    slot = await site.work(site.queue_service.seat, ladder, player)
    ticket, match_id = (None, None) if slot is None else (slot.ticket, slot.match_id)
    return read(request, TicketOf(player=player, ladder=ladder, ticket=ticket, match_id=match_id))


def _filter(ladder: str, player: str, kept: QueueFilter | None) -> FilterOut:
    values = (QueueFilter() if kept is None else kept).to_data()
    return FilterOut(player=player, ladder=ladder, kept=kept is not None, **values)


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
        paused=setup.paused,
        matchmaker="running" if site.queue_service.is_matching(ladder) else "starting",
        tickets=0 if counts is None else counts.tickets,
        players=0 if counts is None else counts.players,
        by_percentile=seen.bands([0] * BANDS if counts is None else counts.bands),
        by_region={} if counts is None else dict(counts.regions),
        fit=policy_fits.last_fit(site.jobs, ladder, setup),
    )
