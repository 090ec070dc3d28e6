"""Typed Python client of the HTTP service.

    from evenmatch.client import Client

    with Client("https://ranks.example", "em_…") as client:
        print(client.get_standings("arena").items)

`AsyncClient` has the same methods as coroutines. Request and response models are in `evenmatch.client.models`.
"""

from __future__ import annotations

from evenmatch.errors import needing

with needing("client", "the client"):
    from evenmatch.client import models
    from evenmatch.client.async_client import AsyncClient
    from evenmatch.client.client import Client
    from evenmatch.client.errors import ListMovedError, ProblemError, UnreachableError
    from evenmatch.http.models.problems import Problem

__all__ = ["AsyncClient", "Client", "ListMovedError", "Problem", "ProblemError", "UnreachableError", "models"]
