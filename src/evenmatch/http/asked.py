"""What is known of a request, whatever answers it."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import Scope

from evenmatch.errors import EvenmatchError
from evenmatch.http.limits import Allowance


@dataclass(slots=True)
class Asked:
    """What is known of a request; the rest of the application writes into it.

    waits   it is answered when something happens, and so is not among those whose time is measured
    status  of the answer, 0 until it begins
    refused why it is not known who asks, where that was found out before the endpoint asked
    """

    id: str
    actor: str | None = None
    allowance: Allowance | None = None
    waits: bool = False
    status: int = 0
    refused: EvenmatchError | None = None


class BodyTooLargeError(HTTPException):
    """More was sent than is read; of another kind it would be taken for a body that cannot be read."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the body has more than {limit:,} bytes; accepted are so many, or several requests")


def asked_of(scope: Scope) -> Asked:
    """What is known of a request."""
    asked: Asked = scope["evenmatch.asked"]
    return asked
