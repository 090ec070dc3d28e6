"""Work that takes longer than a request."""

from __future__ import annotations

from evenmatch.client.call import Call, at, get, post
from evenmatch.client.operation import Patient, conversation, operation
from evenmatch.client.talk import Talk, ask
from evenmatch.http.models.jobs import JobsTold, JobTold

LONG = 30.0  # seconds of one long poll


class Jobs:
    """Ratings made anew or verified, and how far that is."""

    @operation
    def rebuild_ladder(self, ladder: str) -> Call[JobTold]:
        """Make a ladder's ratings anew from its ledger, as a job; one that is at it already is told."""
        return post(JobTold, at("ladders", ladder, "rebuild"))

    @operation
    def verify_ladder(self, ladder: str) -> Call[JobTold]:
        """Compare a ladder's ratings with a replay of its ledger, bit for bit, as a job; one that is at it is told."""
        return post(JobTold, at("ladders", ladder, "verify"))

    @operation
    def get_job(self, job: str, *, wait: float = 0.0) -> Call[JobTold]:
        """How far a job is; with `wait` (seconds), once it has ended."""
        return get(JobTold, at("jobs", job), {"wait": wait}, wait=wait)

    @operation
    def list_jobs(self, *, ladder: str | None = None, limit: int = 50, cursor: str | None = None) -> Call[JobsTold]:
        """A page of the jobs of a ladder, or of all, the latest first."""
        return get(JobsTold, at("jobs"), {"ladder": ladder, "limit": limit, "cursor": cursor})

    @conversation
    def wait_for_job(self: Patient, job: str) -> Talk[JobTold]:
        """A job once it has ended; its `state` says how.

        >>> client.wait_for_job(client.rebuild_ladder("arena").job).state
        'done'
        """
        while True:
            found = yield from ask(get(JobTold, at("jobs", job), {"wait": LONG}, wait=LONG), self.patience)
            if found.state != "running":
                return found
