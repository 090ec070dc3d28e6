"""What went wrong, as it goes over the wire."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Fault(BaseModel):
    """One thing that is wrong, and where: as `teams.0.place`, or a match's id."""

    model_config = ConfigDict(frozen=True)

    where: str
    reason: str


class Problem(BaseModel):
    """What went wrong, as RFC 9457 says it: for people in `title` and `detail`, for programs in `type`."""

    model_config = ConfigDict(frozen=True)

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
    problems: list[Fault] | None = None
    retry_after: float | None = None
    until: str | None = None
