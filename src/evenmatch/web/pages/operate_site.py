"""The operator pages of the whole site: ladders, keys, the audit trail, webhooks and their deliveries."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from markupsafe import Markup
from starlette.responses import Response

from evenmatch.accounts.access import SCOPES
from evenmatch.accounts.account_sql import AuditFilter, Entry
from evenmatch.accounts.keys import Key
from evenmatch.errors import AccessError, ConflictError, ForbiddenError, UnknownNameError, UsageError
from evenmatch.ladders.descriptions import check_installed
from evenmatch.ladders.settings import SETTINGS, Settings
from evenmatch.rating import rules
from evenmatch.systems import names as system_names
from evenmatch.times import iso_time
from evenmatch.web.forms import about, check_confirmed, options_typed
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.pages.operate_ladder import day_typed
from evenmatch.web.view_models import LadderShown
from evenmatch.webhooks.subscriptions import EVENTS, Webhook

KEYS, WEBHOOKS = "/operate/keys", "/operate/webhooks"
LADDER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
SIZE = 50  # entries per page
CSV_AT_ONCE = 1000  # entries read together
JOBS = 20  # latest jobs listed
FOREVER = 3650  # days
FIRST_QUEUE, GAME_SCOPES = "main", ("report", "queue", "read")  # made together with a ladder


def _ladders(visit: PageRequest) -> list[str]:
    """The ladders on which the visitor has the scope admin. Raises AccessError, or ForbiddenError if none."""
    if visit.session is None:
        raise AccessError("this page is for operators; log in with a key that has the scope admin")
    ladders = [name for name in visit.site.service.names() if visit.may("admin", name)]
    if not ladders and not visit.may("admin"):
        raise ForbiddenError(f"{visit.session.caller.actor} operates no ladder; the scope admin is required")
    return ladders


async def operate(visit: PageRequest) -> Response:
    """Show the ladders and the jobs."""
    return await visit.show("operate", lambda: _operate(visit))


def _operate(visit: PageRequest) -> Mapping[str, object]:
    site, own = visit.site, _ladders(visit)
    rows = []
    for name in own:
        view = visit.reading.view(name)
        rows.append({"ladder": LadderShown.of(view), "view": view, "queues": len(site.queue_service.queues(name))})
    jobs = [job for job in site.jobs.page(None, None, 5 * JOBS) if job.ladder in own]
    return {
        "rows": rows,
        "jobs": jobs[:JOBS],
        "runs": any(job.state == "running" for job in jobs),
        "failing": _count_failing(visit),
        "systems": system_names(),
        "all": visit.may("admin"),
        "form": visit.form_at("operate", "ladders"),
    }


def _count_failing(visit: PageRequest) -> int:
    """The number of failing webhooks that the visitor may administer."""
    failing = visit.site.webhooks.failing()
    return sum(hook.webhook in failing and visit.may("admin", hook.ladder) for hook in visit.site.webhooks.list())


async def create_ladder(visit: PageRequest) -> Response:
    """Create a ladder and, if asked for, a queue and a key of the game; the key is shown once."""
    form = await visit.form()
    caller = visit.check("admin")
    name, system = form.get("name", "").strip(), form.get("system", "")
    with about("name"):
        _check_ladder_name(name)
    with about("system"):
        check_installed(system)
    changes = {"title": form.get("title", "").strip(), **options_typed(form, {"team_size": SETTINGS["team_size"]})}

    def make() -> str | None:
        settings = Settings().changed(changes)
        by = rules(system)
        body = {"system": system, "preset": None, "parameters": by.values()}
        entry = visit.audit_entry("ladder.created", name, body=body)
        with about("name"):
            visit.site.service.noting(entry).create_ladder(name, system, by, settings)
        if form.get("queue"):
            entry = visit.audit_entry("queue.set", name, FIRST_QUEUE)
            visit.site.queue_service.noting(entry).set_queue(name, FIRST_QUEUE, {})
        if not form.get("key"):
            return None
        return visit.site.keys.create(f"game of {name}", GAME_SCOPES, [name], by=caller, request=visit.request_id)[1]

    key = await visit.site.work(make)
    visit.site.kernels.follow()
    to = address("ladders", name, "operate", *(() if key is None else ("start",)))
    response = visit.go(to, visit.text("Ladder %(name)s was created.", name=name))
    if key is not None:
        visit.show_once(response, key, to)
    return response


async def start(visit: PageRequest) -> Response:
    """Show the lines that connect a game; with the key that was just created."""
    response = await visit.show("operate_start", lambda: _start(visit), kept=visit.once is None)
    visit.taken(response)
    return response


def _start(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    size = view.settings.team_size or 1
    teams = [
        {"place": place, "players": [{"player": f"test-{name}{number or ''}"} for number in range(size)]}
        for place, name in enumerate(("ann", "bob"), 1)
    ]
    queues = visit.site.queue_service.queues(visit.ladder)
    return {
        "ladder": LadderShown.of(view),
        "key": visit.once or "YOUR-KEY",
        "has_key": visit.once is not None,
        "url": str(visit.request.base_url).rstrip("/") + address("v1", "ladders", visit.ladder),
        "played_at": iso_time(visit.site.service.clock() // 1_000_000 * 1_000_000),
        "teams": Markup(json.dumps(teams)),
        "queue": json.dumps(queues[0].name) if queues else None,
    }


def _check_ladder_name(name: str) -> None:
    """Raise UsageError for a name that would need quoting in URLs and shell commands."""
    if not LADDER_NAME.fullmatch(name):
        slug = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:60]
        example = f", such as {slug}" if LADDER_NAME.fullmatch(slug) else ""
        raise UsageError(f"expected lower-case letters, digits, - and _, beginning with a letter or digit{example}")


# keys


async def keys(visit: PageRequest) -> Response:
    """Show the keys; the text of a key that was just created is shown once."""
    response = await visit.show("keys", lambda: _keys(visit), kept=visit.once is None)
    visit.taken(response)
    return response


def _keys(visit: PageRequest) -> Mapping[str, object]:
    visit.check("admin")
    now = visit.site.service.clock()
    listed = [(key, key.state(now)) for key in reversed(visit.site.keys.list())]
    return {
        "keys": listed,
        "made": visit.once,
        "scopes": SCOPES,
        "ladders": visit.site.service.names(),
        "form": visit.form_at("operate", "keys"),
        "own": _own_key(visit),
    }


def _own_key(visit: PageRequest) -> str | None:
    """The id of the key that the visitor is logged in with."""
    return None if visit.session is None else visit.session.caller.key


async def create_key(visit: PageRequest) -> Response:
    """Create a key, and show its text once."""
    sent = await visit.fields()
    caller, form = visit.check("admin"), dict(sent)
    days = form.get("days", "").strip()
    with about("days"):
        if days and not (days.isdecimal() and 1 <= int(days[:6]) <= FOREVER):
            raise UsageError(f"expected whole days from 1 to {FOREVER:,}, or an empty field, got {days[:20]!r}")
    scopes = [value for name, value in sent if name == "scope"]
    with about("scope"):
        if not scopes:
            raise UsageError(visit.text("choose what the key may do"))
    expires = datetime.now(UTC) + timedelta(days=int(days)) if days else None

    def make() -> str:
        with about("name"):
            _, text = visit.site.keys.create(
                *(form.get("name", ""), scopes, [value for name, value in sent if name == "ladder"] or None),
                None if expires is None else int(expires.timestamp() * 1e6),
                by=caller,
                request=visit.request_id,
            )
        return text

    text = await visit.site.work(make)
    response = visit.go(KEYS)
    visit.show_once(response, text, KEYS)
    return response


async def key_to_revoke(visit: PageRequest) -> Response:
    """Show the effects of revoking a key, and ask for confirmation."""
    return await visit.show("key_revoke", lambda: _key_to_revoke(visit))


def _key_to_revoke(visit: PageRequest) -> Mapping[str, object]:
    key = _key(visit)
    return {
        "key": key,
        "state": key.state(visit.site.service.clock()),
        "is_own": key.key == _own_key(visit),
        "form": visit.form_here(),
    }


def _key(visit: PageRequest) -> Key:
    """The key in the URL. Raises UnknownNameError."""
    visit.check("admin")
    number = visit.part("key")
    key = next((key for key in visit.site.keys.list() if key.key == number), None)
    if key is None:
        raise UnknownNameError("key", number[:40], ())
    return key


async def revoke_key(visit: PageRequest) -> Response:
    """Revoke a key whose name was typed as confirmation; ConflictError for the visitor's own key."""
    form, caller = await visit.form(), visit.check("admin")
    key = await visit.site.work(_key, visit)
    if key.key == _own_key(visit):
        raise ConflictError(visit.text("you are logged in with this key; log in with another one to revoke it"))
    check_confirmed(form, key.name)
    await visit.site.work(lambda: visit.site.keys.revoke(key.key, by=caller, request=visit.request_id))
    return visit.go(KEYS, visit.text("The key %(name)s is revoked.", name=key.name))


# audit


async def audit(visit: PageRequest) -> Response:
    """Show the audit trail, latest entry first."""
    return await visit.show("audit", lambda: _audit(visit))


def _audit(visit: PageRequest) -> Mapping[str, object]:
    own, ladder = _ladders(visit), _audited(visit)
    names, form = _key_names(visit), visit.form_here()
    entries: list[Entry] = []
    before = visit.number("before", 0, 0, 2**62) or None
    with visit.previewing():
        entries = visit.site.audit.page(ladder, before, SIZE + 1, _audit_filter(visit, names))
    after = entries[SIZE - 1].entry if len(entries) > SIZE else None
    return {
        "entries": entries[:SIZE],
        "names": names,
        "wanted": ladder,
        "mine": own,
        "all": visit.may("admin"),
        "form": visit.refused or form,
        "file": address("operate", "audit", "file") + f"?{visit.request.url.query}",
        "after": None if after is None else visit.same_page(before=after),
        "before": visit.same_page(before="") if before is not None else None,
    }


def _audited(visit: PageRequest) -> str | None:
    """The ladder whose entries are asked for; None: all. Raises ForbiddenError if the visitor may not see them."""
    own, ladder = _ladders(visit), visit.asked("ladder") or None
    if ladder is None and not visit.may("admin"):
        ladder = own[0]
    visit.check("admin", ladder)
    return ladder


def _key_names(visit: PageRequest) -> dict[str, str]:
    """The names of the keys by actor, for operators of the whole site."""
    return {f"key {key.key}": key.name for key in visit.site.keys.list()} if visit.may("admin") else {}


def _audit_filter(visit: PageRequest, names: Mapping[str, str]) -> AuditFilter:
    """The filter that the query describes. The actor may be the name of a key, its id, or as entries show it."""
    actor, until = visit.asked("actor").strip(), None
    with about("since"):
        since = day_typed(visit.asked("since"))
    with about("until"):
        until = day_typed(visit.asked("until"))
    known = [one for one, name in names.items() if actor in (name, one.removeprefix("key "))]
    return AuditFilter(
        actors=[*known, actor] if actor else None,
        action=visit.asked("action") or None,
        target=visit.asked("target").strip() or None,
        since=since,
        until=None if until is None else until + 86_400_000_000,  # the whole day
    )


async def audit_file(visit: PageRequest) -> Response:
    """Send the entries that match the filter as CSV."""
    text = await visit.site.work(_audit_csv, visit)
    headers = {"Content-Disposition": 'attachment; filename="audit-trail.csv"', "Cache-Control": "no-store"}
    return Response(text, media_type="text/csv", headers=headers)


def _audit_csv(visit: PageRequest) -> str:
    ladder, names, out = _audited(visit), _key_names(visit), io.StringIO()
    wanted, writer = _audit_filter(visit, names), csv.writer(out)
    writer.writerow(("entry", "at", "actor", "name", *Entry._fields[3:]))
    before: int | None = None
    while page := visit.site.audit.page(ladder, before, CSV_AT_ONCE, wanted):
        for one in page:
            told = (one.action, one.ladder, one.target, json.dumps(one.body, ensure_ascii=False), one.request)
            writer.writerow((one.entry, iso_time(one.at), one.actor, names.get(one.actor), *told))
        before = page[-1].entry
    return out.getvalue()


# webhooks


async def webhooks(visit: PageRequest) -> Response:
    """Show the webhooks and their failures."""
    response = await visit.show("webhooks", lambda: _webhooks(visit), kept=visit.once is None)
    visit.taken(response)
    return response


def _webhooks(visit: PageRequest) -> Mapping[str, object]:
    own = _ladders(visit)
    hooks = [hook for hook in visit.site.webhooks.list() if visit.may("admin", hook.ladder)]
    failing = visit.site.webhooks.failing()
    rows = [
        {
            "hook": hook,
            "failed": failing.get(hook.webhook),
            "dead": len(visit.site.webhooks.deliveries(hook.webhook, "dead", None, 100)),
            "pending": len(visit.site.webhooks.deliveries(hook.webhook, "pending", None, 100)),
            "last": next(iter(visit.site.webhooks.deliveries(hook.webhook, None, None, 1)), None),
        }
        for hook in hooks
    ]
    form = visit.form_at("operate", "webhooks")
    return {
        **{"rows": rows, "events": EVENTS, "mine": own, "all": visit.may("admin")},
        **{"secret": visit.once, "form": form},
    }


async def add_webhook(visit: PageRequest) -> Response:
    """Create a webhook; its secret is shown once."""
    sent = await visit.fields()
    form = dict(sent)
    ladder, url = form.get("ladder") or None, form.get("url", "").strip()
    visit.check("admin", ladder)
    events = [value for name, value in sent if name == "event"]

    with about("event"):
        if not events:
            raise UsageError(visit.text("choose at least one event"))
    with about("url"):
        await visit.site.check_webhook(ladder, url)

    def add() -> str:
        entry = visit.audit_entry("webhook.created", ladder, body={"url": url, "events": events})
        with about("url"):
            _, secret = visit.site.webhooks.noting(entry).add(url, events, ladder)
        return secret

    secret = await visit.site.work(add)
    response = visit.go(WEBHOOKS)
    visit.show_once(response, secret, WEBHOOKS)
    return response


async def remove_webhook(visit: PageRequest) -> Response:
    """Remove a webhook."""
    await visit.form()
    hook = await visit.site.work(_hook, visit)
    entry = visit.audit_entry("webhook.removed", hook.ladder, str(hook.webhook))
    await visit.site.work(visit.site.webhooks.noting(entry).remove, hook.webhook)
    return visit.go("/operate/webhooks", visit.text("The webhook %(url)s was removed.", url=hook.url[:100]))


async def resume_webhook(visit: PageRequest) -> Response:
    """Make the next attempt of a failing webhook at once."""
    await visit.form()
    hook = await visit.site.work(_hook, visit)
    entry = visit.audit_entry("webhook.resumed", hook.ladder, str(hook.webhook))
    await visit.site.work(visit.site.webhooks.noting(entry).resume, hook.webhook)
    return visit.go(WEBHOOKS, visit.text("The next delivery to %(url)s is being sent.", url=hook.url[:100]))


async def deliveries(visit: PageRequest) -> Response:
    """Show the deliveries of a webhook and their errors."""
    return await visit.show("deliveries", lambda: _deliveries(visit))


def _deliveries(visit: PageRequest) -> Mapping[str, object]:
    hook, state = _hook(visit), visit.asked("state") or None
    before = visit.number("before", 0, 0, 2**62) or None
    listed = visit.site.webhooks.deliveries(hook.webhook, state, before, SIZE + 1)
    here = ("operate", "webhooks", hook.webhook)
    after = listed[SIZE - 1].delivery if len(listed) > SIZE else None
    return {
        "hook": hook,
        "state": state,
        "found": listed[:SIZE],
        "before": address(*here, state=state) if before is not None else None,
        "after": None if after is None else address(*here, state=state, before=after),
    }


async def redeliver(visit: PageRequest) -> Response:
    """Send a delivery again."""
    form = await visit.form()
    hook = await visit.site.work(_hook, visit)
    text = form.get("delivery", "")
    number = int(text) if text.isdecimal() and len(text) < 19 else -1
    latest = await visit.site.work(visit.site.webhooks.deliveries, hook.webhook, None, number + 1, 1)
    if not latest or latest[0].delivery != number:
        raise UnknownNameError("delivery of this webhook", text[:40], ())
    entry = visit.audit_entry("delivery.again", hook.ladder, str(number))
    await visit.site.work(visit.site.webhooks.noting(entry).redeliver, number)
    return visit.go(
        address("operate", "webhooks", hook.webhook),
        visit.text("Delivery %(number)s will be sent again.", number=number),
    )


def _hook(visit: PageRequest) -> Webhook:
    """The webhook in the URL. Raises AccessError; UnknownNameError, also for a webhook of another ladder."""
    text = visit.part("webhook")
    if not text.isdecimal() or len(text) > 18:
        raise UnknownNameError("webhook", text[:40], ())
    if visit.session is None:
        raise AccessError("this page is for operators; log in with a key that has the scope admin")
    hook = visit.site.webhooks.get(int(text))
    if not visit.may("admin", hook.ladder):
        raise UnknownNameError("webhook", text, ())
    return hook
