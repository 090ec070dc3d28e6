"""The preview of a correction on a page: shown at once, or followed as a job by a page that reloads itself."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import ConflictError
from evenmatch.http.task_outcomes import ended, outcome
from evenmatch.service.callers.audit_entry import Correcting
from evenmatch.service.jobs import Job
from evenmatch.service.replay.effect import Effect
from evenmatch.service.work.results import effect_of
from evenmatch.service.work.tasks import PreviewTask
from evenmatch.web.page_request import PageRequest

MOVES = 30  # rating changes that a preview lists
FOLLOWED = "job"  # the query parameter with the job of a preview
PREVIEWED = "previewed"  # the form field with the position of the preview that is confirmed


async def previewed(visit: PageRequest, request: Correcting) -> Effect | Job:
    """The preview of a correction, or its job if that takes longer. Raises what the correction raises.

    The job that the page follows is read without starting another, however many matches arrive meanwhile.
    """
    name = visit.asked(FOLLOWED)
    if name:
        job = await visit.site.work(visit.site.jobs.find, name)
        if (job.ladder, job.kind) != (visit.ladder, PreviewTask.kind):
            raise ConflictError(f"{name} is no preview of ladder {visit.ladder!r}")
        done = await ended(visit.site, job, 0)
    else:
        done = await outcome(visit.site, PreviewTask(visit.ladder, request, None))
    return done if isinstance(done, Job) else effect_of(done)


def preview_values(foreseen: Effect | Job | None) -> dict[str, object]:
    """The template values of a preview: itself, or the job to follow."""
    if isinstance(foreseen, Job):
        return {"seen": None, "moves": (), "following": foreseen}
    return {"seen": foreseen, "moves": () if foreseen is None else foreseen.moves[:MOVES], "following": None}


def outdated(form: Mapping[str, str], position: int) -> str:
    """A sentence for a correction that was applied after this position, if its preview is of an earlier one; or ""."""
    previewed = form.get(PREVIEWED, "")
    later = position - int(previewed) if previewed.isascii() and previewed.isdigit() else 0
    if later <= 0:
        return ""
    since = "1 event was" if later == 1 else f"{later:,} events were"
    return f" The preview was out of date: {since} recorded after it."


def following_address(visit: PageRequest, job: Job) -> str:
    """The URL of this page with the job to follow, so that reloading it starts no other."""
    return f"{visit.here}{'&' if '?' in visit.here else '?'}{FOLLOWED}={job.job}"
