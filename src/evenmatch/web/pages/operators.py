"""Operators: all ladders, keys, the audit trail, webhooks and what they were told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from evenmatch.errors import AccessError, ConflictError, ForbiddenError, UnknownNameError, UsageError
from evenmatch.rating import rules
from evenmatch.service.callers.access import SCOPES
from evenmatch.service.callers.keys import Key
from evenmatch.service.choosing import check_installed
from evenmatch.service.hooks.webhooks import EVENTS, Webhook
from evenmatch.service.settings import Settings
from evenmatch.systems import names as system_names
from evenmatch.web.forms import CONFIRM, about
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import Visit, address

KEYS, WEBHOOKS = "/operate/keys", "/operate/webhooks"
LADDER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
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
        "form": visit.form_at("operate", "ladders"),
    }


async def create_ladder(visit: Visit) -> Response:
    """Make a ladder."""
    form = await visit.form()
    visit.check("admin")
    name, system = form.get("name", "").strip(), form.get("system", "")
    with about("name"):
        _check_ladder_name(name)
    with about("system"):
        check_installed(system)

    def make() -> None:
        settings = Settings().changed({"title": form.get("title", "").strip()})
        by = rules(system)
        body = {"system": system, "preset": None, "parameters": by.values()}
        done = visit.deed("ladder.created", name, body=body)
        with about("name"):
            visit.site.service.noting(done).create_ladder(name, system, by, settings)

    await visit.site.work(make)
    visit.site.kernels.follow()
    return visit.go(address("ladders", name, "operate"), f"Ladder {name} is there.")


def _check_ladder_name(name: str) -> None:
    """Raise UsageError for a name that would be awkward in addresses, commands and programs."""
    if not LADDER_NAME.fullmatch(name):
        slug = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:60]
        such = f", such as {slug}" if LADDER_NAME.fullmatch(slug) else ""
        raise UsageError(f"expected small letters, digits, - and _, beginning with a letter or digit{such}")


# keys


async def keys(visit: Visit) -> Response:
    """The keys; one that was just made is shown this once."""
    answer = await visit.show("keys", lambda: _keys(visit), kept=visit.once is None)
    visit.taken(answer, KEYS)
    return answer


def _keys(visit: Visit) -> Mapping[str, object]:
    visit.check("admin")
    now = visit.site.service.clock()
    listed = [(one, one.state(now)) for one in reversed(visit.site.keys.list())]
    return {
        "keys": listed,
        "made": visit.once,
        "scopes": SCOPES,
        "ladders": visit.site.service.names(),
        "form": visit.form_at("operate", "keys"),
        "own": _own_key(visit),
    }


def _own_key(visit: Visit) -> str | None:
    """The key that the visitor is logged in with."""
    return None if visit.session is None else visit.session.caller.key


async def create_key(visit: Visit) -> Response:
    """Make a key, and show it this once."""
    sent = await visit.fields()
    caller, form = visit.check("admin"), dict(sent)
    days = form.get("days", "").strip()
    with about("days"):
        if days and not (days.isdecimal() and 1 <= int(days[:6]) <= FOREVER):
            raise UsageError(f"expected whole days from 1 to {FOREVER:,}, or nothing for ever, got {days[:20]!r}")
    scopes = [value for name, value in sent if name == "scope"]
    with about("scope"):
        if not scopes:
            raise UsageError("choose what the key may do")
    ends = datetime.now(UTC) + timedelta(days=int(days)) if days else None

    def make() -> str:
        with about("name"):
            _, text = visit.site.keys.create(
                *(form.get("name", ""), scopes, [value for name, value in sent if name == "ladder"] or None),
                None if ends is None else int(ends.timestamp() * 1e6),
                by=caller,
                request=visit.request_id,
            )
        return text

    text = await visit.site.work(make)
    answer = visit.go(KEYS)
    visit.show_once(answer, text, KEYS)
    return answer


async def key_to_revoke(visit: Visit) -> Response:
    """What stops when a key is revoked, before that is confirmed."""
    return await visit.show("key_revoke", lambda: _key_to_revoke(visit))


def _key_to_revoke(visit: Visit) -> Mapping[str, object]:
    key = _key(visit)
    return {
        "key": key,
        "state": key.state(visit.site.service.clock()),
        "is_own": key.key == _own_key(visit),
        "form": visit.form_here(),
    }


def _key(visit: Visit) -> Key:
    """The key of the address. Raises UnknownNameError."""
    visit.check("admin")
    number = visit.part("key")
    found = next((one for one in visit.site.keys.list() if one.key == number), None)
    if found is None:
        raise UnknownNameError("key", number[:40], ())
    return found


async def revoke_key(visit: Visit) -> Response:
    """Revoke a key whose name was typed as a confirmation; not the one that the visitor is logged in with."""
    form, caller = await visit.form(), visit.check("admin")
    key = await visit.site.work(_key, visit)
    if key.key == _own_key(visit):
        raise ConflictError("you are logged in with this key; log in with another one to revoke it")
    with about(CONFIRM):
        if form.get(CONFIRM, "").split() != key.name.split():
            raise UsageError(f"type {key.name} to confirm")
    await visit.site.work(lambda: visit.site.keys.revoke(key.key, by=caller, request=visit.request_id))
    return visit.go(KEYS, f"The key {key.name} is revoked.")


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
    answer = await visit.show("webhooks", lambda: _webhooks(visit), kept=visit.once is None)
    visit.taken(answer, WEBHOOKS)
    return answer


def _webhooks(visit: Visit) -> Mapping[str, object]:
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
    form = visit.form_at("operate", "webhooks")
    return {
        **{"rows": rows, "events": EVENTS, "mine": mine, "all": visit.may("admin")},
        **{"secret": visit.once, "form": form},
    }


async def add_webhook(visit: Visit) -> Response:
    """Tell a URL what happens from now on; its secret is shown this once."""
    sent = await visit.fields()
    form = dict(sent)
    ladder, url = form.get("ladder") or None, form.get("url", "").strip()
    visit.check("admin", ladder)
    events = [value for name, value in sent if name == "event"]

    with about("event"):
        if not events:
            raise UsageError("choose at least one event")

    def add() -> str:
        done = visit.deed("webhook.created", ladder, body={"url": url, "events": events})
        with about("url"):
            _, secret = visit.site.webhooks.noting(done).add(url, events, ladder)
        return secret

    secret = await visit.site.work(add)
    answer = visit.go(WEBHOOKS)
    visit.show_once(answer, secret, WEBHOOKS)
    return answer


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
