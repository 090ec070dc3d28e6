"""The endpoints, a file for each subject."""

from __future__ import annotations

from evenmatch.http import text  # noqa: F401 - the converter that the addresses use
from evenmatch.http.routes import (
    catalog,
    changes,
    corrections,
    health,
    jobs,
    keys,
    live,
    matches,
    people,
    profiles,
    queues,
    recorded,
    standings,
    tickets,
    webhooks,
)

ROUTERS = (
    health.router,
    catalog.router,
    standings.router,
    standings.distribution,
    profiles.router,
    recorded.router,
    matches.router,
    live.router,
    queues.router,
    tickets.router,
    changes.router,
    corrections.router,
    jobs.router,
    keys.router,
    people.router,
    webhooks.router,
)
