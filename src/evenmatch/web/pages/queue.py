"""The queues of a ladder as they are now: who waits, what was offered of late, how long somebody would wait."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from evenmatch.errors import ForbiddenError, InputError, UnknownNameError
from evenmatch.http.site import Site
from evenmatch.service.queueing import wishes
from evenmatch.service.queueing.statuses import Status
from evenmatch.standings.board import Standing
from evenmatch.web import waits
from evenmatch.web.forms import about
from evenmatch.web.pages.front import own_standing
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import LONGEST_NAME, Visit, address

OFFERS = 200  # the latest, by which waits are judged
SHOWN = 12
NEWCOMER = 50.0  # the percentile of who has no rating


async def queue(visit: Visit) -> Response:
    """Who waits, the latest offers, and the wait at the visitor's level."""
    return await visit.show("queue", lambda: _queue(visit))


def _queue(visit: Visit) -> Mapping[str, object]:
    site, view = visit.site, visit.reading.view(visit.ladder)
    setups = site.desk.queues(visit.ladder)
    counts = site.desk.counts(visit.ladder) if setups else {}
    recent = site.desk.recent(visit.ladder, OFFERS) if setups else []
    mine = own_standing(visit, view)
    level = view.snapshot.queue_percentile(mine.rating) if isinstance(mine, Standing) else NEWCOMER
    return {
        "ladder": LadderShown.of(view),
        "queues": [(one, counts.get(one.name)) for one in setups],
        "is_matching": not setups or site.desk.is_matching(visit.ladder),
        "offers": recent[:SHOWN],
        "mine": mine,
        "level": level,
        "evenness": waits.evenness(recent),
        "expected": waits.expected(recent, level),
        "levels": waits.by_level(recent),
        "may_queue": may_queue(visit),
        "ticket": _own_ticket(site, visit) if may_queue(visit) else None,
        "form": visit.form_at("ladders", visit.ladder, "queue", "join"),
        "team_size": view.settings.team_size or max((one.policy.team_size for one in setups), default=1),
    }


def may_queue(visit: Visit) -> bool:
    """Whether the visitor may queue here, under whatever name: where guests may, or with a key for queues."""
    return visit.site.options.guests or visit.may("queue", visit.ladder)


def _own_ticket(site: Site, visit: Visit) -> int | None:
    """The ticket in which the visitor waits or plays."""
    if visit.me is None:
        return None
    try:
        seat = site.desk.seat(visit.ladder, visit.me)
    except UnknownNameError:
        return None
    return None if seat is None else seat.ticket


async def join(visit: Visit) -> Response:
    """Queue up, alone or with friends."""
    sent = await visit.fields()
    _check_may(visit)
    form = dict(sent)
    name, friends = form.get("player", "").strip(), form.get("friends", "")
    names = list(dict.fromkeys(one for one in (name, *(part.strip() for part in friends.split(","))) if one))
    with about("player"):
        if not name or any(len(one) > LONGEST_NAME for one in names):
            raise InputError(f"expected names of 1 to {LONGEST_NAME} letters each")
    queues = tuple(value for key, value in sent if key == "queue")
    with about("queue"):
        if not queues:
            raise InputError("choose a queue")
    with about("within"):
        within = _within(form.get("within", "5"))
    loose = form.get("filter") != "strict"
    region = form.get("region")
    ping = {region: 30.0} if region else {}
    party = tuple(wishes.Seeker(name=one, within=within, loose=loose, ping=ping) for one in names)
    told = await visit.site.wishes.one(visit.ladder, wishes.Join(members=party, queues=queues))
    answer = visit.go(address("ladders", visit.ladder, "queue", "tickets", told.ticket))
    visit.remember(answer, name)
    return answer


def _within(text: str) -> float:
    try:
        within = float(text)
    except ValueError:
        within = -1.0
    if not 0 <= within <= 100:
        raise InputError(f"expected a number from 0 to 100, got {text[:20]!r}")
    return within


def _check_may(visit: Visit) -> None:
    if not may_queue(visit):
        raise ForbiddenError(
            "queueing up on this page is for demonstrations, and for who logs in with a key for queues"
        )


async def ticket(visit: Visit) -> Response:
    """A party that waits, or is asked, or plays: what it waits for, in words."""
    status = await _look(visit)
    return await visit.show("ticket", lambda: _ticket(visit, status))


def _ticket(visit: Visit, status: Status) -> Mapping[str, object]:
    match = status.match
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "status": status,
        "goes_on": status.state in ("waiting", "offered") or (match is not None and match.state == "open"),
        "is_recorded": match is not None and match.state == "closed",
    }


async def answer(visit: Visit) -> Response:
    """Accept, decline, or leave."""
    form = await visit.form()
    status = await _look(visit)
    wish: wishes.Wish
    match form.get("say"):
        case "accept":
            wish = wishes.Accept(status.ticket)
        case "decline":
            wish = wishes.Decline(status.ticket, visit.me)
        case "leave":
            wish = wishes.Leave(status.ticket)
        case other:
            raise InputError(f"say is {str(other)[:20]!r}; accepted are accept, decline, leave")
    await visit.site.wishes.one(visit.ladder, wish)
    return visit.go(address("ladders", visit.ladder, "queue", "tickets", status.ticket))


async def _look(visit: Visit) -> Status:
    """The ticket of the address, which is the visitor's own. Raises UnknownNameError, ForbiddenError."""
    _check_may(visit)
    text = visit.part("ticket")
    if not text.isdecimal() or len(text) > 18:
        raise UnknownNameError("ticket", text[:40], ())
    found = await visit.site.looks.one(visit.ladder, int(text))
    if visit.me not in found.players and visit.session is None:
        raise ForbiddenError(f"ticket {text} is another party's")
    return found
