"""Every page: its address, what answers there, and what a visitor must be allowed."""

from __future__ import annotations

from evenmatch.web.app import Page
from evenmatch.web.pages import front, live, matches, players, standings

LADDER = "/ladders/{ladder:text}"

PLAYERS = (
    Page("/", front.front),
    Page("/me/forget", front.forget_me, scope=None, methods=("POST",)),
    Page(LADDER, front.overview),
    Page(f"{LADDER}/me", front.me),
    Page(f"{LADDER}/pulse", live.pulse),
    Page(f"{LADDER}/standings", standings.standings),
    Page(f"{LADDER}/distribution", standings.distribution),
    Page(f"{LADDER}/distribution/figure", standings.distribution_figure),
    Page(f"{LADDER}/seasons", standings.seasons),
    Page(f"{LADDER}/seasons/{{season:text}}", standings.season),
    Page(f"{LADDER}/rules", standings.rules),
    Page(f"{LADDER}/players/{{player:text}}", players.player),
    Page(f"{LADDER}/players/{{player:text}}/path", players.path_figure),
    Page(f"{LADDER}/matches", matches.matches),
    Page(f"{LADDER}/matches/{{match:text}}", matches.match),
)

PAGES = (*PLAYERS,)
