"""The page of the lab that audits a queue: its predictions, compared with the reported results."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from evenmatch.options import shown
from evenmatch.service.queries.experiment_audit import ExperimentAudit
from evenmatch.service.queries.queue_audit import QueueAudit
from evenmatch.service.stored_queues import find
from evenmatch.web.page_request import PageRequest
from evenmatch.web.view_models import LadderShown

PERIODS = {"day": 1, "week": 7, "month": 30, "all": None}  # days
DAY = 86_400_000_000  # microseconds


async def queue_audit(visit: PageRequest) -> Response:
    """Show the audit of a queue, the first one by name unless another is asked for."""
    return await visit.show("lab_audit", lambda: _audit(visit))


def _audit(visit: PageRequest) -> Mapping[str, object]:
    setups = {setup.name: setup for setup in visit.site.queue_service.queues(visit.ladder)}
    values = {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "queues": list(setups), "periods": PERIODS}
    if not setups:
        return values | {"queue": None, "audit": None}
    name = visit.asked("queue", next(iter(setups)))
    find(setups, name)
    period = visit.asked("period", "week")
    days = PERIODS.get(period, PERIODS["week"])
    now = visit.site.service.clock()
    audited = visit.reading.queue_audit(visit.ladder, name, 0 if days is None else now - days * DAY, now)
    return values | {
        "queue": name,
        "period": period,
        "audit": audited,
        "figure": _curve(audited),
        "experiments": [_experiment(compared) for compared in audited.experiments],
    }


def _experiment(audited: ExperimentAudit) -> Mapping[str, object]:
    """An experiment with its chart, and the options in which the policies differ: name, first and second value."""
    from evenmatch.web import lab_jobs  # noqa: PLC0415 - the lab is imported on first use

    first, second = audited.experiment.first.to_data(), audited.experiment.second.to_data()
    changed = [(name, _shown(value), _shown(second[name])) for name, value in first.items() if value != second[name]]
    return {"audit": audited, "figure": lab_jobs.experiment_figure(audited), "changed": changed}


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(f"{after:g} s: {width:g}" for after, width in value)
    return shown(value)


def _curve(audited: QueueAudit) -> object:
    from evenmatch.web import lab_jobs  # noqa: PLC0415 - the lab is imported on first use

    return lab_jobs.calibration_figure(audited.curve)
