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

TICKET = f"{LADDER}/queue/tickets/{{ticket}}"
QUEUE = (
    Page(f"{LADDER}/queue", queue.queue),
    Page(f"{LADDER}/queue/join", queue.join, methods=("POST",), form=f"{LADDER}/queue"),
    Page(TICKET, queue.ticket),
    Page(TICKET, queue.answer, methods=("POST",), form=TICKET),
)

ADMIN, POST = "admin", ("POST",)

LAB = (
    Page(f"{LADDER}/lab", lab.lab),
    Page(f"{LADDER}/lab/health", lab.health),
    Page(f"{LADDER}/lab/waits", lab.waits),
    Page(f"{LADDER}/lab/results", lab.results),
    Page(f"{LADDER}/lab/backtest", lab_forms.backtest_form),
    Page(f"{LADDER}/lab/backtest", lab_forms.backtest, methods=POST, form=f"{LADDER}/lab/backtest"),
    Page(f"{LADDER}/lab/tuning", lab_forms.tuning_form),
    Page(f"{LADDER}/lab/tuning", lab_forms.tuning, methods=POST, form=f"{LADDER}/lab/tuning"),
    Page(f"{LADDER}/lab/what-if", lab_forms.what_if_form),
    Page(f"{LADDER}/lab/what-if", lab_forms.what_if, methods=POST, form=f"{LADDER}/lab/what-if"),
    Page(f"{LADDER}/lab/queue", lab_queue.queue),
)

OPERATE = f"{LADDER}/operate"
OPERATORS = (
    Page("/login", entering.login_form, scope=None),
    Page("/login", entering.login, scope=None, methods=POST),
    Page("/logout", entering.logout, scope=None, methods=POST),
    Page("/operate", operators.operate, scope=None),  # for who operates any ladder: it shows those alone
    Page("/operate/ladders", operators.create_ladder, ADMIN, POST, form="/operate"),
    Page("/operate/keys", operators.keys, ADMIN),
    Page("/operate/keys", operators.create_key, ADMIN, POST, form="/operate/keys"),
    Page("/operate/keys/{key}/revoke", operators.key_to_revoke, ADMIN),
    Page("/operate/keys/{key}/revoke", operators.revoke_key, ADMIN, POST, form="/operate/keys/{key}/revoke"),
    Page("/operate/audit", operators.audit, scope=None),
    Page("/operate/webhooks", operators.webhooks, scope=None),
    Page("/operate/webhooks", operators.add_webhook, scope=None, methods=POST, form="/operate/webhooks"),
    Page("/operate/webhooks/{webhook}", operators.deliveries, scope=None),
    Page("/operate/webhooks/{webhook}/remove", operators.remove_webhook, scope=None, methods=POST),
    Page("/operate/webhooks/{webhook}/redeliver", operators.redeliver, scope=None, methods=POST),
    Page(OPERATE, operating.ladder, ADMIN),
    Page(f"{OPERATE}/correct", operating.correction, ADMIN),
    Page(f"{OPERATE}/correct", operating.correct, ADMIN, POST, form=f"{OPERATE}/correct"),
    Page(f"{OPERATE}/rules", operating.rules, ADMIN),
    Page(f"{OPERATE}/rules", operating.change_rules, ADMIN, POST, form=f"{OPERATE}/rules"),
    Page(f"{OPERATE}/settings", operating.settings, ADMIN, POST, form=OPERATE),
    Page(f"{OPERATE}/season", operating.season_to_open, ADMIN),
    Page(f"{OPERATE}/season", operating.season, ADMIN, POST, form=f"{OPERATE}/season"),
    Page(f"{OPERATE}/archive", operating.ladder_to_archive, ADMIN),
    Page(f"{OPERATE}/archive", operating.archive, ADMIN, POST, form=f"{OPERATE}/archive"),
    Page(f"{OPERATE}/jobs", operating.job, ADMIN, POST),
)

PAGES = (*PLAYERS, *QUEUE, *OPERATORS, *LAB)
