"""Whether a process lives and can serve."""

from __future__ import annotations

from typing import Literal

from evenmatch.http.models.base import Told


class Health(Told):
    """The service is healthy."""

    status: Literal["ok"]
