"""The table of all pages: route, handler and required scope."""

from __future__ import annotations

from importlib import import_module

from starlette.responses import Response

from evenmatch.web.page_request import PageRequest
from evenmatch.web.page_route import Handler, PageRoute
from evenmatch.web.pages import (
    account,
    cards,
    change_stream,
    front,
    home,
    login,
    matches,
    operate_files,
    operate_ladder,
    operate_players,
    operate_queues,
    operate_site,
    players,
    queue,
    standings,
)

LADDER = "/ladders/{ladder:text}"

PLAYERS = (
    PageRoute("/", front.front),
    PageRoute("/search", front.search),
    PageRoute("/me", front.set_me, methods=("POST",)),
    PageRoute("/me/forget", front.forget_me, scope=None, methods=("POST",)),
    PageRoute("/language", front.set_language, scope=None, methods=("POST",)),
    PageRoute("/theme", front.set_theme, scope=None, methods=("POST",)),
    PageRoute("/friends", front.change_friends, methods=("POST",)),
    PageRoute("/players/{player:text}", front.ladders_of),
    PageRoute(LADDER, home.overview),
    PageRoute(f"{LADDER}/me", home.me),
    PageRoute(f"{LADDER}/pulse", change_stream.pulse),
    PageRoute(f"{LADDER}/standings", standings.standings),
    PageRoute(f"{LADDER}/distribution", standings.distribution),
    PageRoute(f"{LADDER}/seasons", standings.seasons),
    PageRoute(f"{LADDER}/seasons/{{season:text}}", standings.season),
    PageRoute(f"{LADDER}/rules", standings.rules),
    PageRoute(f"{LADDER}/players/{{player:text}}", players.player),
    PageRoute(f"{LADDER}/players/{{player:text}}/card.{{kind}}", cards.card),
    PageRoute(f"{LADDER}/players/{{player:text}}/badge.{{kind}}", cards.badge),
    PageRoute(f"{LADDER}/embedded", cards.embedded),
    PageRoute(f"{LADDER}/matches", matches.matches),
    PageRoute(f"{LADDER}/matches/{{match:text}}", matches.match),
    PageRoute(f"{LADDER}/matches/{{match:text}}/results/{{player:text}}", matches.result),
)

TICKET = f"{LADDER}/queue/tickets/{{ticket}}"
QUEUE = (
    PageRoute(f"{LADDER}/queue", queue.queue),
    PageRoute(f"{LADDER}/queue/filter", queue.keep_filter, methods=("POST",), form=f"{LADDER}/queue"),
    PageRoute(f"{LADDER}/queue/join", queue.join, methods=("POST",), form=f"{LADDER}/queue"),
    PageRoute(TICKET, queue.ticket),
    PageRoute(TICKET, queue.answer, methods=("POST",), form=TICKET),
)

ADMIN, POST = "admin", ("POST",)


def _lab(name: str, module: str = "lab") -> Handler:
    """The handler of this name in a module of pages, which is imported on first use: the lab takes a second to load."""

    async def handler(visit: PageRequest) -> Response:
        lab = await visit.site.work(import_module, f"evenmatch.web.pages.{module}", is_limited=False)
        response: Response = await getattr(lab, name)(visit)
        return response

    handler.__module__, handler.__name__ = f"evenmatch.web.pages.{module}", name
    return handler


CHANGE = f"{LADDER}/lab/queue/change"
_LAB = (
    PageRoute(f"{LADDER}/lab", _lab("lab")),
    PageRoute(f"{LADDER}/lab/health", _lab("health")),
    PageRoute(f"{LADDER}/lab/waits", _lab("waits")),
    PageRoute(f"{LADDER}/lab/results", _lab("results")),
    PageRoute(f"{LADDER}/lab/backtest", _lab("backtest_form")),
    PageRoute(f"{LADDER}/lab/backtest", _lab("backtest"), methods=POST, form=f"{LADDER}/lab/backtest"),
    PageRoute(f"{LADDER}/lab/tuning", _lab("tuning_form")),
    PageRoute(f"{LADDER}/lab/tuning", _lab("tuning"), methods=POST, form=f"{LADDER}/lab/tuning"),
    PageRoute(f"{LADDER}/lab/what-if", _lab("what_if_form")),
    PageRoute(f"{LADDER}/lab/what-if", _lab("what_if"), methods=POST, form=f"{LADDER}/lab/what-if"),
    PageRoute(f"{LADDER}/lab/queue", _lab("queue", "lab_queue")),
    PageRoute(CHANGE, _lab("change_form", "lab_queue"), ADMIN),
    PageRoute(CHANGE, _lab("change", "lab_queue"), ADMIN, POST, form=CHANGE),
    PageRoute(f"{LADDER}/lab/audit", _lab("queue_audit")),
)
LAB = tuple(page._replace(whole=True) for page in _LAB)  # results depend on all ratings

ACCOUNT = (
    PageRoute("/login", login.login_form, scope=None),
    PageRoute("/login", login.login, scope=None, methods=POST),
    PageRoute("/login/link", login.link, scope=None),
    PageRoute("/login/link", login.use_link, scope=None, methods=POST),
    PageRoute("/login/{provider}", login.leave, scope=None),
    PageRoute("/login/{provider}/back", login.come_back, scope=None),
    PageRoute("/logout", login.logout, scope=None, methods=POST),
    PageRoute("/account", account.account, scope=None),  # the handler requires a player
    PageRoute("/account/data", account.data, scope=None),
    PageRoute("/account/erase", account.erase, scope=None, methods=POST, form="/account"),
)

OPERATE = f"{LADDER}/operate"
OPERATORS = (
    PageRoute("/operate", operate_site.operate, scope=None),  # the handler checks the scope
    PageRoute("/operate/ladders", operate_site.create_ladder, ADMIN, POST, form="/operate"),
    PageRoute("/operate/keys", operate_site.keys, ADMIN),
    PageRoute("/operate/keys", operate_site.create_key, ADMIN, POST, form="/operate/keys"),
    PageRoute("/operate/keys/{key}/revoke", operate_site.key_to_revoke, ADMIN),
    PageRoute("/operate/keys/{key}/revoke", operate_site.revoke_key, ADMIN, POST, form="/operate/keys/{key}/revoke"),
    PageRoute("/operate/players", operate_players.players, ADMIN),
    PageRoute("/operate/players", operate_players.change_player, ADMIN, POST, form="/operate/players"),
    PageRoute("/operate/accounts", operate_players.accounts, ADMIN),
    PageRoute("/operate/accounts", operate_players.change_account, ADMIN, POST, form="/operate/accounts"),
    PageRoute("/operate/audit", operate_site.audit, scope=None),
    PageRoute("/operate/audit/file", operate_site.audit_file, scope=None),
    PageRoute("/operate/webhooks", operate_site.webhooks, scope=None),
    PageRoute("/operate/webhooks", operate_site.add_webhook, scope=None, methods=POST, form="/operate/webhooks"),
    PageRoute("/operate/webhooks/{webhook}", operate_site.deliveries, scope=None),
    PageRoute("/operate/webhooks/{webhook}/remove", operate_site.remove_webhook, scope=None, methods=POST),
    PageRoute("/operate/webhooks/{webhook}/resume", operate_site.resume_webhook, scope=None, methods=POST),
    PageRoute("/operate/webhooks/{webhook}/redeliver", operate_site.redeliver, scope=None, methods=POST),
    PageRoute(OPERATE, operate_ladder.ladder, ADMIN),
    PageRoute(f"{OPERATE}/correct", operate_ladder.correction, ADMIN),
    PageRoute(f"{OPERATE}/correct", operate_ladder.correct, ADMIN, POST, form=f"{OPERATE}/correct"),
    PageRoute(f"{OPERATE}/rules", operate_ladder.rules, ADMIN),
    PageRoute(f"{OPERATE}/rules", operate_ladder.change_rules, ADMIN, POST, form=f"{OPERATE}/rules"),
    PageRoute(f"{OPERATE}/settings", operate_ladder.settings, ADMIN, POST, form=OPERATE),
    PageRoute(f"{OPERATE}/divisions", operate_ladder.divisions, ADMIN),
    PageRoute(f"{OPERATE}/divisions", operate_ladder.set_divisions, ADMIN, POST, form=f"{OPERATE}/divisions"),
    PageRoute(f"{OPERATE}/season", operate_ladder.season_to_open, ADMIN),
    PageRoute(f"{OPERATE}/season", operate_ladder.season, ADMIN, POST, form=f"{OPERATE}/season"),
    PageRoute(f"{OPERATE}/decay", operate_ladder.decay_to_apply, ADMIN),
    PageRoute(f"{OPERATE}/decay", operate_ladder.decay, ADMIN, POST, form=f"{OPERATE}/decay"),
    PageRoute(f"{OPERATE}/archive", operate_ladder.ladder_to_archive, ADMIN),
    PageRoute(f"{OPERATE}/archive", operate_ladder.archive, ADMIN, POST, form=f"{OPERATE}/archive"),
    PageRoute(f"{OPERATE}/bans", operate_players.bans, ADMIN),
    PageRoute(f"{OPERATE}/bans", operate_players.ban_all, ADMIN, POST, form=f"{OPERATE}/bans"),
    PageRoute(f"{OPERATE}/files", operate_files.files, ADMIN),
    PageRoute(f"{OPERATE}/files", operate_files.import_file, ADMIN, POST, form=f"{OPERATE}/files"),
    PageRoute(f"{OPERATE}/export", operate_files.export_file, ADMIN),
    PageRoute(f"{OPERATE}/start", operate_site.start, ADMIN),
    PageRoute(f"{OPERATE}/queues", operate_queues.queues, ADMIN),
    PageRoute(f"{OPERATE}/queue", operate_queues.queue, ADMIN),
    PageRoute(f"{OPERATE}/queue", operate_queues.set_queue, ADMIN, POST, form=f"{OPERATE}/queue"),
    PageRoute(f"{OPERATE}/queue/pause", operate_queues.pause_queue, ADMIN, POST, form=f"{OPERATE}/queues"),
    PageRoute(f"{OPERATE}/queue/remove", operate_queues.queue_to_remove, ADMIN),
    PageRoute(f"{OPERATE}/queue/remove", operate_queues.remove_queue, ADMIN, POST, form=f"{OPERATE}/queue/remove"),
    PageRoute(f"{OPERATE}/suspects", _lab("suspects"), ADMIN, whole=True),
    PageRoute(f"{OPERATE}/suspects", _lab("find_suspects"), ADMIN, POST, form=f"{OPERATE}/suspects", whole=True),
    PageRoute(f"{OPERATE}/jobs", operate_ladder.job, ADMIN, POST),
    PageRoute(f"{OPERATE}/jobs/cancel", operate_ladder.cancel_job, ADMIN, POST),
)

PAGES = (*PLAYERS, *QUEUE, *ACCOUNT, *OPERATORS, *LAB)
