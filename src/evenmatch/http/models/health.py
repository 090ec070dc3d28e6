"""The health of a server process."""

from __future__ import annotations

from typing import Literal

from evenmatch.http.models.base import ResponseModel


class Health(ResponseModel):
    """The service is healthy."""

    status: Literal["ok"]
