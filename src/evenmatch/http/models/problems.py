"""Error responses: problems as defined by RFC 9457."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Fault(BaseModel):
    """One error and its location: a path in the body such as `teams.0.place`, or the id of a match."""

    model_config = ConfigDict(frozen=True)

    where: str
    reason: str


class Problem(BaseModel):
    """An error as defined by RFC 9457: `type` for programs, `title` and `detail` for people."""

    model_config = ConfigDict(frozen=True)

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
    problems: list[Fault] | None = None
    retry_after: float | None = None
    until: str | None = None
