"""The endpoints of the API, one module for each subject."""

from __future__ import annotations

from evenmatch.http import path_text  # noqa: F401 - registers the path converter `text`
from evenmatch.http.routes import (
    corrections,
    health,
    jobs,
    keys,
    ladder_changes,
    ladders,
    live,
    match_history,
    matches,
    odd_names,
    player_identities,
    players,
    queues,
    standings,
    tickets,
    webhooks,
)

ROUTERS = (
    health.router,
    ladders.router,
    standings.router,
    standings.distribution,
    players.router,
    match_history.router,
    matches.router,
    live.router,
    queues.router,
    tickets.router,
    ladder_changes.router,
    corrections.router,
    jobs.router,
    keys.router,
    player_identities.router,
    odd_names.router,
    webhooks.router,
)
