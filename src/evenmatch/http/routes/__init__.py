"""The endpoints of the API, one module for each subject."""

from __future__ import annotations

from evenmatch.http import hosts  # noqa: F401 - registers the path converter `text`
from evenmatch.http.routes import (
    corrections,
    jobs,
    keys,
    ladders,
    live,
    matches,
    players,
    queues,
    standings,
    tickets,
    webhooks,
)

ROUTERS = (
    jobs.health_router,
    ladders.router,
    standings.router,
    standings.distribution,
    players.router,
    matches.router,
    matches.report_router,
    live.router,
    queues.router,
    tickets.router,
    ladders.changes_router,
    corrections.router,
    jobs.router,
    keys.router,
    players.identity_router,
    players.odd_names_router,
    webhooks.router,
)
