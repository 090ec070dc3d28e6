"""Background jobs, and the health of a server process."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenmatch.http.models.base import Fault, ResponseModel
from evenmatch.http.models.from_records import fields_of
from evenmatch.jobs.jobs import Job


@fields_of(Job)
class JobOut(ResponseModel):
    """A background job and its progress."""

    problems: list[Fault] = Field(description="Matches that cannot be rated, if the job failed because of them.")


class Health(ResponseModel):
    """The service is healthy."""

    status: Literal["ok"]
