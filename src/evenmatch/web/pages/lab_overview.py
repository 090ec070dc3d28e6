"""The lab of a ladder: its health over time, and the results of backtests, tuning and what-ifs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.responses import Response

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.service.jobs import Job
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.view_models import LadderShown

if TYPE_CHECKING:
    from evenmatch.lab.ladder.health import LadderHealth
    from evenmatch.web.lab_cache import CachedHealth

KINDS = {"backtest": "Backtest", "tuning": "Tuning", "what-if": "What if"}
LATEST = 50  # latest jobs of the ladder that are searched for lab jobs
RECENT = 400  # offers in the chart of waits
JSON = "application/json"


async def lab(visit: PageRequest) -> Response:
    """Show the lab's tools, the ladder's health, and the latest results."""
    view = await visit.site.work(visit.reading.view, visit.ladder)
    report = visit.shared.lab_cache.known(view)
    if report is None:
        visit.shared.lab_cache.begin(visit.site, view)

    def make() -> Mapping[str, object]:
        from evenmatch.lab.ladder.health import floor_of  # noqa: PLC0415 - the lab is imported on first use

        return {
            "ladder": LadderShown.of(view),
            "has_floor": floor_of(visit.reading.described(visit.ladder).rules) is not None,
            "has_matches": bool(len(view.snapshot.board)),
            "found": report,
            "learned": _learned(report),
            "jobs": jobs_of(visit)[:6],
            "kinds": KINDS,
            "has_queues": bool(visit.site.queue_service.queues(visit.ladder)),
        }

    return await visit.show("lab", make)


def _learned(report: CachedHealth | None) -> tuple[list[int], list[tuple[str, list[str]]]] | None:
    """The table of what was learned: matches at the top, meanings at the side; None where nothing was."""
    if report is None or report.health is None or not report.health.learned:
        return None
    from evenmatch.lab.ladder.learning import shown_number  # noqa: PLC0415 - the lab is imported on first use

    moments = report.health.learned
    rows = [
        (numbers[-1].meaning, [shown_number(number) for number in numbers])
        for numbers in zip(*(moment.numbers for moment in moments), strict=True)
    ]
    return [moment.matches for moment in moments], rows


async def health(visit: PageRequest) -> Response:
    """Return a figure of the ladder's health as JSON."""
    view = await visit.site.work(visit.reading.view, visit.ladder)
    report = await visit.shared.lab_cache.health(visit.site, view)
    if report.health is None:
        raise InputError(report.findings[0])
    return Response(await visit.site.work(_health_figure, report.health, visit.asked("of", "levels")), media_type=JSON)


def _health_figure(measured: LadderHealth, name: str) -> str:
    from evenmatch.web import lab_jobs  # noqa: PLC0415 - the lab is imported on first use

    return lab_jobs.health_figure(measured, name)


async def waits(visit: PageRequest) -> Response:
    """Return the chart of waits as JSON."""
    return Response(await visit.site.work(_waits, visit), media_type=JSON)


def _waits(visit: PageRequest) -> str:
    from evenmatch.web import lab_jobs  # noqa: PLC0415

    return lab_jobs.waits_figure(visit.site.queue_service.recent(visit.ladder, RECENT))


async def results(visit: PageRequest) -> Response:
    """Show the result or the progress of a lab job; without a job id, the list of all."""
    return await visit.show("lab_results", lambda: _results(visit))


def _results(visit: PageRequest) -> Mapping[str, object]:
    shared = {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "kinds": KINDS}
    if not visit.asked("job"):
        return shared | {"job": None, "jobs": jobs_of(visit)}
    job = visit.site.jobs.find_on(visit.ladder, visit.asked("job"))
    if job.kind not in KINDS:
        raise UnknownNameError("result of the lab", job.job, [known.job for known in jobs_of(visit)])
    figures: Mapping[str, object] = {}
    if job.result is not None:
        from evenmatch.web import lab_jobs  # noqa: PLC0415

        figures = lab_jobs.figures_of(job.kind, job.result)
    words = visit.shared.lab_cache.words.get((job.ladder, job.kind), "")
    return shared | {"job": job, "found": job.result, "figures": figures, "words": words if job.result is None else ""}


def jobs_of(visit: PageRequest) -> list[Job]:
    """Return the lab jobs of this ladder, the latest first."""
    return [job for job in visit.site.jobs.page(visit.ladder, None, LATEST) if job.kind in KINDS]


def result_address(job: Job) -> str:
    """Return the URL of the page that shows a job's result."""
    return address("ladders", job.ladder, "lab", "results", job=job.job)
