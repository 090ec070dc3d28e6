"""Background jobs, and the health of a server process."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from evenmatch.http.models.base import Fault, Moment, ResponseModel

JOB: dict[str, JsonValue] = {
    "job": "job_2f7c9a1be04d5a66",
    "ladder": "arena",
    "kind": "rebuild",
    "state": "done",
    "done": 1290,
    "total": 1290,
    "begun_at": "2026-11-21T18:30:00Z",
    "changed_at": "2026-11-21T18:30:02Z",
    "told": None,
    "result": {"since": 1, "matches": 1288, "changed": 0},
    "problems": [],
    "ahead": 0,
}


class JobOut(ResponseModel):
    """A job and its progress."""

    model_config = ConfigDict(json_schema_extra={"examples": [JOB]})

    job: str
    ladder: str
    kind: str = Field(
        description="preview, correction, season, rebuild, verify or update; policy of …: fit of a queue; "
        "in the lab: backtest, tuning or what-if."
    )
    state: Literal["running", "done", "failed", "cancelled"]
    done: int = Field(description="Ledger events processed so far.")
    total: int
    begun_at: Moment
    changed_at: Moment
    told: str | None = Field(description="Why the job failed, or that it is being cancelled.")
    result: dict[str, object] | None = Field(
        description="The result, when the job is done; of a request that was answered 202, what it would have answered."
    )
    problems: list[Fault] = Field(description="Matches that cannot be rated, if the job failed for that reason.")
    ahead: int = Field(default=0, description="Jobs before it in the line; 0: it runs or has ended.")


class JobsPage(ResponseModel):
    """A page of jobs, latest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [JOB], "next": None}]})

    items: list[JobOut]
    next: str | None


class Health(ResponseModel):
    """The service is healthy."""

    status: Literal["ok"]
