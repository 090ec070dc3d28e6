"""The lab of a ladder: how it does over time, and what was found by backtests, tuning and what-ifs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.responses import Response

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.service.jobs import Job
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import Visit, address

if TYPE_CHECKING:
    from evenmatch.lab.health import Health

KINDS = {"backtest": "Backtest", "tuning": "Tuning", "what-if": "What if"}
LATEST = 50  # jobs among which those of the lab are looked for
RECENT = 400  # offers in the picture of waits
JSON = "application/json"


async def lab(visit: Visit) -> Response:
    """What there is, and the ladder's health."""
    view = await visit.site.work(visit.reading.view, visit.ladder)
    found = visit.shared.bench.known(view)
    if found is None:
        visit.shared.bench.begin(visit.site, view)

    def make() -> Mapping[str, object]:
        from evenmatch.lab.health import floor_of  # noqa: PLC0415 - the lab is loaded where somebody looks into it

        return {
            "ladder": LadderShown.of(view),
            "has_floor": floor_of(visit.reading.described(visit.ladder).rules) is not None,
            "has_matches": bool(len(view.snapshot.board)),
            "found": found,
            "jobs": jobs_of(visit)[:6],
            "kinds": KINDS,
            "has_queues": bool(visit.site.desk.queues(visit.ladder)),
        }

    return await visit.show("lab", make)


async def health(visit: Visit) -> Response:
    """A figure of the ladder's health."""
    view = await visit.site.work(visit.reading.view, visit.ladder)
    found = await visit.shared.bench.health(visit.site, view)
    if found.health is None:
        raise InputError(found.findings[0])
    return Response(await visit.site.work(_health_figure, found.health, visit.asked("of", "levels")), media_type=JSON)


def _health_figure(found: Health, of: str) -> str:
    from evenmatch.web import experiments  # noqa: PLC0415 - the lab is loaded where somebody looks into it

    return experiments.health_figure(found, of)


async def waits(visit: Visit) -> Response:
    """The picture of waits."""
    return Response(await visit.site.work(_waits, visit), media_type=JSON)


def _waits(visit: Visit) -> str:
    from evenmatch.web import experiments  # noqa: PLC0415

    return experiments.waits_figure(visit.site.desk.recent(visit.ladder, RECENT))


async def results(visit: Visit) -> Response:
    """What a job of the lab found, or how far it is; without a name, all of them."""
    return await visit.show("lab_results", lambda: _results(visit))


def _results(visit: Visit) -> Mapping[str, object]:
    shown = {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "kinds": KINDS}
    if not visit.asked("job"):
        return shown | {"job": None, "jobs": jobs_of(visit)}
    job = visit.site.jobs.find(visit.asked("job"))
    if job.ladder != visit.ladder or job.kind not in KINDS:
        raise UnknownNameError("result of the lab", job.job, [one.job for one in jobs_of(visit)])
    figures: Mapping[str, object] = {}
    if job.result is not None:
        from evenmatch.web import experiments  # noqa: PLC0415

        figures = experiments.figures_of(job.kind, job.result)
    words = visit.shared.bench.words.get((job.ladder, job.kind), "")
    return shown | {"job": job, "found": job.result, "figures": figures, "words": words if job.result is None else ""}


def jobs_of(visit: Visit) -> list[Job]:
    """The lab's jobs on this ladder, the latest first."""
    return [one for one in visit.site.jobs.page(visit.ladder, None, LATEST) if one.kind in KINDS]


def result_address(job: Job) -> str:
    """Where a job's result is shown."""
    return address("ladders", job.ladder, "lab", "results", job=job.job)
