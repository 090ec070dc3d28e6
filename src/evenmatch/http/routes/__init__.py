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
    jobs.router_health,
    ladders.router_ladders,
    standings.router,
    standings.distribution,
    players.router_players,
    matches.router_match_history,
    matches.router_matches,
    live.router,
    queues.router,
    tickets.router,
    ladders.router_ladder_changes,
    corrections.router,
    jobs.router_jobs,
    keys.router,
    players.router_player_identities,
    players.router_odd_names,
    webhooks.router,
)
