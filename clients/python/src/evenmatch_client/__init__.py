"""Python client of the evenmatch service."""

from evenmatch_client import calls, models
from evenmatch_client.client import AsyncClient, Client
from evenmatch_client.errors import EvenmatchClientError, ListMovedError, ProblemError, UnreachableError

__all__ = [
    "AsyncClient",
    "Client",
    "EvenmatchClientError",
    "ListMovedError",
    "ProblemError",
    "UnreachableError",
    "calls",
    "models",
]
