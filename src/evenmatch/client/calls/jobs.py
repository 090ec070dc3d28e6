"""Background jobs: work that takes longer than a request."""

from __future__ import annotations

from evenmatch.client.call import Call, delete, get, path_of, post
from evenmatch.client.operation import Patient, conversation, operation
from evenmatch.client.talk import Talk, follow_job
from evenmatch.http.models.jobs import JobOut, JobsPage


class JobCalls:
    """Jobs that rebuild or verify ratings, and their progress."""

    @operation
    def rebuild_ladder(self, ladder: str) -> Call[JobOut]:
        """Start a job that rebuilds a ladder's ratings from its ledger; returns the running one if any."""
        return post(JobOut, path_of("ladders", ladder, "rebuild"))

    @operation
    def verify_ladder(self, ladder: str) -> Call[JobOut]:
        """Start a job that compares ratings bit for bit with a replay of the ledger; returns the running one if any."""
        return post(JobOut, path_of("ladders", ladder, "verify"))

    @operation
    def get_job(self, job: str, *, wait: float = 0.0) -> Call[JobOut]:
        """The state and progress of a job; `wait`: seconds to wait for its end."""
        return get(JobOut, path_of("jobs", job), {"wait": wait}, wait=wait)

    @operation
    def cancel_job(self, job: str) -> Call[JobOut]:
        """Cancel a running job; it ends soon and changes nothing, unless it was done just before."""
        return delete(JobOut, path_of("jobs", job))

    @operation
    def list_jobs(self, *, ladder: str | None = None, limit: int = 50, cursor: str | None = None) -> Call[JobsPage]:
        """A page of the jobs of one ladder or of all, newest first."""
        return get(JobsPage, path_of("jobs"), {"ladder": ladder, "limit": limit, "cursor": cursor})

    @conversation
    def wait_for_job(self: Patient, job: str) -> Talk[JobOut]:
        """Wait until a job has ended and return it; its `state` is the result.

        >>> client.wait_for_job(client.rebuild_ladder("arena").job).state
        'done'
        """
        return (yield from follow_job(job, self.patience, self.on_job))
