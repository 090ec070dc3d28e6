"""Every page: its address, what answers there, and what a visitor must be allowed."""

from __future__ import annotations

from evenmatch.web.page import Page
from evenmatch.web.pages import (
    entering,
    front,
    lab,
    lab_forms,
    lab_queue,
    live,
    matches,
    operating,
    operators,
    players,
    queue,
    standings,
)

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

QUEUE = (
    Page(f"{LADDER}/queue", queue.queue),
    Page(f"{LADDER}/queue/join", queue.join, methods=("POST",)),
    Page(f"{LADDER}/queue/tickets/{{ticket}}", queue.ticket),
    Page(f"{LADDER}/queue/tickets/{{ticket}}", queue.answer, methods=("POST",)),
)

ADMIN, POST = "admin", ("POST",)

LAB = (
    Page(f"{LADDER}/lab", lab.lab),
    Page(f"{LADDER}/lab/health", lab.health),
    Page(f"{LADDER}/lab/waits", lab.waits),
    Page(f"{LADDER}/lab/results", lab.results),
    Page(f"{LADDER}/lab/backtest", lab_forms.backtest_form),
    Page(f"{LADDER}/lab/backtest", lab_forms.backtest, methods=POST),
    Page(f"{LADDER}/lab/tuning", lab_forms.tuning_form),
    Page(f"{LADDER}/lab/tuning", lab_forms.tuning, methods=POST),
    Page(f"{LADDER}/lab/what-if", lab_forms.what_if_form),
    Page(f"{LADDER}/lab/what-if", lab_forms.what_if, methods=POST),
    Page(f"{LADDER}/lab/queue", lab_queue.queue),
)

OPERATORS = (
    Page("/login", entering.login_form, scope=None),
    Page("/login", entering.login, scope=None, methods=POST),
    Page("/logout", entering.logout, scope=None, methods=POST),
    Page("/operate", operators.operate, scope=None),  # for who operates any ladder: it shows those alone
    Page("/operate/ladders", operators.create_ladder, ADMIN, POST),
    Page("/operate/keys", operators.keys, ADMIN),
    Page("/operate/keys", operators.create_key, ADMIN, POST),
    Page("/operate/keys/revoke", operators.revoke_key, ADMIN, POST),
    Page("/operate/audit", operators.audit, scope=None),
    Page("/operate/webhooks", operators.webhooks, scope=None),
    Page("/operate/webhooks", operators.add_webhook, scope=None, methods=POST),
    Page("/operate/webhooks/{webhook}", operators.deliveries, scope=None),
    Page("/operate/webhooks/{webhook}/remove", operators.remove_webhook, scope=None, methods=POST),
    Page("/operate/webhooks/{webhook}/redeliver", operators.redeliver, scope=None, methods=POST),
    Page(f"{LADDER}/operate", operating.ladder, ADMIN),
    Page(f"{LADDER}/operate/correct", operating.correction, ADMIN),
    Page(f"{LADDER}/operate/correct", operating.correct, ADMIN, POST),
    Page(f"{LADDER}/operate/rules", operating.rules, ADMIN),
    Page(f"{LADDER}/operate/rules", operating.change_rules, ADMIN, POST),
    Page(f"{LADDER}/operate/settings", operating.settings, ADMIN, POST),
    Page(f"{LADDER}/operate/season", operating.season, ADMIN, POST),
    Page(f"{LADDER}/operate/jobs", operating.job, ADMIN, POST),
)

PAGES = (*PLAYERS, *QUEUE, *OPERATORS, *LAB)
