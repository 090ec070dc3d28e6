"""Operators: all ladders, keys, the audit trail, webhooks and what they were told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from evenmatch.errors import AccessError, ForbiddenError, UnknownNameError, UsageError
from evenmatch.rating import rules
from evenmatch.service.callers.access import SCOPES
from evenmatch.service.choosing import check_installed
from evenmatch.service.hooks.webhooks import EVENTS, Webhook
from evenmatch.service.settings import Settings
from evenmatch.systems import names as system_names
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import Visit, address

SIZE = 50
JOBS = 20
FOREVER = 3650  # days


def _ladders(visit: Visit) -> list[str]:
    """The ladders that who is logged in operates. Raises AccessError or ForbiddenError where there are none."""
    if visit.session is None:
        raise AccessError("this page is for operators")
    found = [one for one in visit.site.service.names() if visit.may("admin", one)]
    if not found and not visit.may("admin"):
        raise ForbiddenError(f"{visit.session.caller.actor} operates no ladder; needed is a key with the scope admin")
    return found


async def operate(visit: Visit) -> Response:
    """The ladders, with what goes on."""
    return await visit.show("operate", lambda: _operate(visit))


def _operate(visit: Visit) -> Mapping[str, object]:
    site, mine = visit.site, _ladders(visit)
    rows = []
    for name in mine:
        view = visit.reading.view(name)
        rows.append({"ladder": LadderShown.of(view), "view": view, "queues": len(site.desk.queues(name))})
    jobs = [one for one in site.jobs.page(None, None, 5 * JOBS) if one.ladder in mine]
    return {
        "rows": rows,
        "jobs": jobs[:JOBS],
        "runs": any(one.state == "running" for one in jobs),
        "systems": system_names(),
        "all": visit.may("admin"),
    }


async def create_ladder(visit: Visit) -> Response:
    """Make a ladder."""
    form = await visit.form()
    visit.check("admin")
    name, system = form.get("name", "").strip(), form.get("system", "")
    check_installed(system)

    def make() -> None:
        settings = Settings().changed({"title": form.get("title", "").strip()})
        by = rules(system)
        body = {"system": system, "preset": None, "parameters": by.values()}
        done = visit.deed("ladder.created", name, body=body)
        visit.site.service.noting(done).create_ladder(name, system, by, settings)

    await visit.site.work(make)
    visit.site.kernels.follow()
    return visit.go(address("ladders", name, "operate"), f"Ladder {name} is there.")


# keys


async def keys(visit: Visit) -> Response:
    """The keys."""
    return await visit.show("keys", lambda: _keys(visit))


def _keys(visit: Visit, made: str | None = None) -> Mapping[str, object]:
    visit.check("admin")
    now = visit.site.service.clock()
    listed = [(one, one.state(now)) for one in reversed(visit.site.keys.list())]
    return {"keys": listed, "made": made, "scopes": SCOPES, "ladders": visit.site.service.names()}


async def create_key(visit: Visit) -> Response:
    """Make a key, and show it this once."""
    sent = await visit.fields()
    caller, form = visit.check("admin"), dict(sent)
    days = form.get("days", "").strip()
    if days and not (days.isdecimal() and 1 <= int(days[:6]) <= FOREVER):
        raise UsageError(f"days is {days[:20]!r}; accepted are whole days from 1 to {FOREVER:,}, or nothing for ever")
    ends = datetime.now(UTC) + timedelta(days=int(days)) if days else None

    def make() -> Mapping[str, object]:
        _, text = visit.site.keys.create(
            form.get("name", ""),
            [value for name, value in sent if name == "scope"],
            [value for name, value in sent if name == "ladder"] or None,
            None if ends is None else int(ends.timestamp() * 1e6),
            by=caller,
            request=visit.request_id,
        )
        return _keys(visit, text)

    return await visit.show("keys", make, kept=False)


async def revoke_key(visit: Visit) -> Response:
    """End a key."""
    form, caller = await visit.form(), visit.check("admin")
    await visit.site.work(lambda: visit.site.keys.revoke(form.get("key", ""), by=caller, request=visit.request_id))
    return visit.go("/operate/keys", f"The key {form.get('key', '')[:13]} is revoked.")


# audit


async def audit(visit: Visit) -> Response:
    """Who did what, the latest first."""
    return await visit.show("audit", lambda: _audit(visit))


def _audit(visit: Visit) -> Mapping[str, object]:
    mine, wanted = _ladders(visit), visit.asked("ladder") or None
    if wanted is None and not visit.may("admin"):
        wanted = mine[0]
    visit.check("admin", wanted)
    before = visit.number("before", 0, 0, 2**62) or None
    found = visit.site.audit.page(wanted, before, SIZE + 1)
    after = found[SIZE - 1].entry if len(found) > SIZE else None
    return {
        "entries": found[:SIZE],
        "wanted": wanted,
        "mine": mine,
        "all": visit.may("admin"),
        "after": None if after is None else address("operate", "audit", ladder=wanted, before=after),
        "before": address("operate", "audit", ladder=wanted) if before is not None else None,
    }


# webhooks


async def webhooks(visit: Visit) -> Response:
    """Who is told what happens, and where that fails."""
    return await visit.show("webhooks", lambda: _webhooks(visit))


def _webhooks(visit: Visit, secret: str | None = None) -> Mapping[str, object]:
    mine = _ladders(visit)
    found = [one for one in visit.site.webhooks.list() if visit.may("admin", one.ladder)]
    rows = [
        {
            "hook": one,
            "dead": len(visit.site.webhooks.deliveries(one.webhook, "dead", None, 100)),
            "pending": len(visit.site.webhooks.deliveries(one.webhook, "pending", None, 100)),
            "last": next(iter(visit.site.webhooks.deliveries(one.webhook, None, None, 1)), None),
        }
        for one in found
    ]
    return {"rows": rows, "events": EVENTS, "mine": mine, "all": visit.may("admin"), "secret": secret}


async def add_webhook(visit: Visit) -> Response:
    """Tell a URL what happens from now on; its secret is shown this once."""
    sent = await visit.fields()
    form = dict(sent)
    ladder, url = form.get("ladder") or None, form.get("url", "").strip()
    visit.check("admin", ladder)
    events = [value for name, value in sent if name == "event"]

    def add() -> Mapping[str, object]:
        done = visit.deed("webhook.created", ladder, body={"url": url, "events": events})
        _, secret = visit.site.webhooks.noting(done).add(url, events, ladder)
        return _webhooks(visit, secret)

    return await visit.show("webhooks", add, kept=False)


async def remove_webhook(visit: Visit) -> Response:
    """Tell a URL nothing any more."""
    await visit.form()
    hook = await visit.site.work(_hook, visit)
    done = visit.deed("webhook.removed", hook.ladder, str(hook.webhook))
    await visit.site.work(visit.site.webhooks.noting(done).remove, hook.webhook)
    return visit.go("/operate/webhooks", f"{hook.url[:100]} is told nothing any more.")


async def deliveries(visit: Visit) -> Response:
    """What a webhook was told, and what went wrong."""
    return await visit.show("deliveries", lambda: _deliveries(visit))


def _deliveries(visit: Visit) -> Mapping[str, object]:
    hook, state = _hook(visit), visit.asked("state") or None
    before = visit.number("before", 0, 0, 2**62) or None
    found = visit.site.webhooks.deliveries(hook.webhook, state, before, SIZE + 1)
    at = ("operate", "webhooks", hook.webhook)
    after = found[SIZE - 1].delivery if len(found) > SIZE else None
    return {
        "hook": hook,
        "state": state,
        "found": found[:SIZE],
        "before": address(*at, state=state) if before is not None else None,
        "after": None if after is None else address(*at, state=state, before=after),
    }


async def redeliver(visit: Visit) -> Response:
    """Send a delivery again."""
    form = await visit.form()
    hook = await visit.site.work(_hook, visit)
    text = form.get("delivery", "")
    number = int(text) if text.isdecimal() and len(text) < 19 else -1
    told = await visit.site.work(visit.site.webhooks.deliveries, hook.webhook, None, number + 1, 1)
    if not told or told[0].delivery != number:
        raise UnknownNameError("delivery of this webhook", text[:40], ())
    done = visit.deed("delivery.again", hook.ladder, str(number))
    await visit.site.work(visit.site.webhooks.noting(done).redeliver, number)
    return visit.go(address("operate", "webhooks", hook.webhook), f"Delivery {number} is sent again.")


def _hook(visit: Visit) -> Webhook:
    """The webhook of the address, which the visitor may operate."""
    text = visit.part("webhook")
    if not text.isdecimal() or len(text) > 18:
        raise UnknownNameError("webhook", text[:40], ())
    if visit.session is None:
        raise AccessError("this page is for operators")
    hook = visit.site.webhooks.get(int(text))
    visit.check("admin", hook.ladder)
    return hook
