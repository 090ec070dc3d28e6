"""The queues of a ladder: waiting players, statistics of offers, expected waits, and tickets of guests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import quantiles
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.accounts.access import ANYONE
from evenmatch.attributes import EQUAL, Attribute
from evenmatch.durations import SECOND
from evenmatch.errors import FollowerError, ForbiddenError, InputError, UnknownNameError
from evenmatch.http.site import Site
from evenmatch.queues import requests
from evenmatch.queues.audit import RecentOffer
from evenmatch.queues.endings import ending
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.stored_queues import QueueSetup
from evenmatch.queues.ticket_status import OfferStatus, Status, StatusRead
from evenmatch.standings.board import Standing
from evenmatch.web.forms import about
from evenmatch.web.page_request import LONGEST_NAME, PageRequest, address
from evenmatch.web.texts import MINUTE, Texts
from evenmatch.web.view_models import LadderShown

NEAR = (5.0, 10.0, 20.0, 100.0)  # percentiles on each side; the smallest range with enough tickets is used
ENOUGH = 8  # fewest tickets for a statistic of waits
MATCHES = 5  # fewest offers for a statistic of evenness
LEVELS = ((0, 20), (20, 40), (40, 60), (60, 80), (80, 100))


class Wait(NamedTuple):
    """The waits of tickets in a range of percentiles.

    low, high  the percentiles;  tickets  the number of tickets
    half, most  the median and the 90th percentile of the waits, seconds
    """

    low: float
    high: float
    tickets: int
    half: float
    most: float


class Share(NamedTuple):
    """A median and a 90th percentile."""

    half: float
    most: float


class EvennessStatistics(NamedTuple):
    """The evenness of the matches that a queue offered.

    matches     the number of matches
    spread      percentiles between the lowest and the highest player
    favourite   predicted score of the favourite, 0..1; None: the ladder's system could not predict the matches
    wait        seconds of each ticket
    """

    matches: int
    spread: Share
    favourite: Share | None
    wait: Share


def evenness(recent: Sequence[RecentOffer]) -> dict[str, EvennessStatistics]:
    """Return the evenness of the latest offers by queue, for queues with at least MATCHES offers."""
    by_queue = {}
    for queue in sorted({offer.queue for offer in recent}):
        offers = [offer for offer in recent if offer.queue == queue]
        waits = [wait for offer in offers for wait in offer.waits]
        favourites = [max(offer.odds) for offer in offers if offer.odds is not None]
        if len(offers) >= MATCHES and len(waits) >= MATCHES:
            by_queue[queue] = EvennessStatistics(
                matches=len(offers),
                spread=_share([offer.spread for offer in offers]),
                favourite=_share(favourites) if len(favourites) >= MATCHES else None,
                wait=_share(waits),
            )
    return by_queue


def _share(values: Sequence[float]) -> Share:
    tenths = quantiles(values, n=10, method="inclusive")
    return Share(tenths[4], tenths[8])


def expected(recent: Sequence[RecentOffer], percentile: float) -> Wait | None:
    """Return the waits of tickets near this percentile until their offer; None if there are too few."""
    for near in NEAR:
        wait = _wait_between(recent, percentile - near, percentile + near)
        if wait is not None:
            return wait
    return None


def by_level(recent: Sequence[RecentOffer]) -> list[Wait]:
    """Return the waits in each fifth of the ladder, lowest first, omitting fifths with too few tickets."""
    return [wait for low, high in LEVELS if (wait := _wait_between(recent, low, high)) is not None]


def _wait_between(recent: Sequence[RecentOffer], low: float, high: float) -> Wait | None:
    waits = [
        wait
        for offer in recent
        for wait, percentile in zip(offer.waits, offer.percentiles, strict=True)
        if low <= percentile < high or (percentile == high == 100)
    ]
    if len(waits) < ENOUGH:
        return None
    return Wait(max(low, 0.0), min(high, 100.0), len(waits), *_share(waits))


OFFERS = 200  # latest offers from which waits are estimated
SHOWN = 12  # latest offers listed
MOST_ELSEWHERE = 24  # queues of other ladders listed
SUGGESTED = 5.0  # percentiles, for players without a stored filter
ATTRIBUTE = "attribute."  # prefix of the form field of an attribute
ANNOUNCED = (5, 10, 30, 60, 300)  # remaining seconds of an offer that screen readers announce
NEWCOMER = 50.0  # percentile assumed for an unrated player


async def queue(visit: PageRequest) -> Response:
    """Show waiting players, the latest offers, and the expected wait at the visitor's level."""
    return await visit.show("queue", lambda: _queue(visit))


def _queue(visit: PageRequest) -> Mapping[str, object]:
    site, view = visit.site, visit.reading.view(visit.ladder)
    setups = site.queue_service.queues(visit.ladder)
    counts = site.queue_service.counts(visit.ladder) if setups else {}
    recent = site.queue_service.recent(visit.ladder, OFFERS) if setups else []
    own = visit.my_standing(view.snapshot)
    level = view.snapshot.queue_percentile(own.rating) if isinstance(own, Standing) else NEWCOMER
    return {
        "ladder": LadderShown.of(view),
        "elsewhere": _elsewhere(visit) if may_queue(visit) else [],
        "queues": [(setup, counts.get(setup.name)) for setup in setups],
        "is_matching": not setups or site.queue_service.is_matching(visit.ladder),
        "offers": recent[:SHOWN],
        "mine": own,
        "level": level,
        "evenness": evenness(recent),
        "expected": expected(recent, level),
        "levels": by_level(recent),
        "may_queue": may_queue(visit),
        "ticket": _own_ticket(site, visit) if may_queue(visit) else None,
        "filter": _kept(visit) if may_queue(visit) else QueueFilter(),
        "attributes": _declared(setups),
        "maps": list(dict.fromkeys(name for setup in setups for name in setup.policy.maps)),
        "vetoes": max((setup.policy.vetoes for setup in setups), default=0),
        "form": visit.form_at("ladders", visit.ladder, "queue", "join"),
        "team_size": view.settings.team_size or max((setup.policy.team_size for setup in setups), default=1),
    }


class QueueElsewhere(NamedTuple):
    """A queue of another ladder that a playlist can include."""

    ladder: str
    queue: str

    @property
    def value(self) -> str:
        """The value that stands for it in the form."""
        return json.dumps(self, ensure_ascii=False)


def _elsewhere(visit: PageRequest) -> list[QueueElsewhere]:
    """The queues of other ladders that the visitor may join on these pages, at most MOST_ELSEWHERE."""
    is_open = visit.site.options.guests
    listed = visit.site.queue_service.queues_elsewhere(visit.ladder)
    allowed = [QueueElsewhere(*named) for named in listed if is_open or visit.may("queue", named[0])]
    return allowed[:MOST_ELSEWHERE]


def _playlist(visit: PageRequest, sent: Sequence[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The queues of other ladders that a form names, by ladder. Raises InputError, ForbiddenError."""
    chosen = {value for key, value in sent if key == "elsewhere"}
    playlist: dict[str, tuple[str, ...]] = {}
    with about("elsewhere"):
        for named in _elsewhere(visit):
            if named.value in chosen:
                playlist[named.ladder] = (*playlist.get(named.ladder, ()), named.queue)
                chosen.discard(named.value)
        if chosen:
            raise InputError(f"{min(chosen)[:80]!r} is not a queue that you may join here; choose from the list")
    return playlist


class AttributeChoices(NamedTuple):
    """The field of an attribute in the form. field: its name there; is_single: one value can be chosen."""

    name: str
    field: str
    values: list[str]
    is_single: bool


def _declared(setups: Sequence[QueueSetup]) -> list[AttributeChoices]:
    """The attributes that the queues declare, by name."""
    known: dict[str, list[Attribute]] = {}
    for setup in setups:
        for name, attribute in setup.policy.attributes.items():
            known.setdefault(name, []).append(attribute)
    return [
        AttributeChoices(
            name,
            ATTRIBUTE + name,
            list(dict.fromkeys(value for attribute in declared for value in attribute.values)),
            any(attribute.kind == EQUAL for attribute in declared),
        )
        for name, declared in sorted(known.items())
    ]


def may_queue(visit: PageRequest) -> bool:
    """Return whether the visitor may join queues on this page, as a guest or with the scope queue."""
    return visit.site.options.guests or visit.may("queue", visit.ladder)


def _kept(visit: PageRequest) -> QueueFilter:
    """Return the visitor's stored filter, or the one that the page suggests."""
    kept = None if visit.me is None else visit.site.queue_service.filter_of(visit.ladder, visit.me)
    return QueueFilter(within=SUGGESTED) if kept is None else kept


def _own_ticket(site: Site, visit: PageRequest) -> int | None:
    """Return the number of the visitor's ticket; None if they are neither waiting nor playing."""
    slot = None if visit.me is None else site.queue_service.seat(visit.ladder, visit.me)
    return None if slot is None else slot.ticket


async def join(visit: PageRequest) -> Response:
    """Join a queue, alone or with friends."""
    sent = await visit.fields()
    _check_may(visit)
    form = dict(sent)
    name, friends = form.get("player", "").strip(), form.get("friends", "")
    names = list(dict.fromkeys(part for part in (name, *(text.strip() for text in friends.split(","))) if part))
    with about("player"):
        if not name or any(len(part) > LONGEST_NAME for part in names):
            raise InputError(visit.text("expected names of 1 to %(most)s letters each", most=LONGEST_NAME))
    queues = tuple(value for key, value in sent if key == "queue")
    with about("queue"):
        if not queues:
            raise InputError(visit.text("choose a queue"))
    _check_speaks(visit, names)
    chosen = _filter_of(visit, sent)
    first = requests.QueuedPlayer(
        name=name,
        within=chosen.within,
        loose=chosen.loose,
        regions=chosen.regions,
        max_ping=chosen.max_ping,
        attributes=chosen.attributes,
        vetoes=chosen.vetoes,
    )
    party = (first, *(requests.QueuedPlayer(name=member) for member in names if member != name))
    playlist = await visit.site.work(_playlist, visit, sent)
    readable = (visit.caller or ANYONE).ladders
    wish = requests.Join(members=party, queues=queues, playlist=playlist, readable=readable)
    joined = await visit.site.wishes.one(visit.ladder, wish)
    response = visit.go(address("ladders", visit.ladder, "queue", "tickets", joined.ticket))
    visit.remember(response, name)
    return response


async def keep_filter(visit: PageRequest) -> Response:
    """Store the visitor's filter, and apply it to the ticket in which they wait."""
    sent = await visit.fields()
    _check_may(visit)
    name = dict(sent).get("player", "").strip()
    with about("player"):
        if not name or len(name) > LONGEST_NAME:
            raise InputError(visit.text("expected a name of 1 to %(most)s letters", most=LONGEST_NAME))
    _check_speaks(visit, [name])
    await visit.site.work(visit.site.queue_service.set_filter, visit.ladder, name, _filter_of(visit, sent))
    response = visit.go(address("ladders", visit.ladder, "queue"), visit.text("Your preferences were saved."))
    visit.remember(response, name)
    return response


def _check_speaks(visit: PageRequest, names: Sequence[str]) -> None:
    """Raise ForbiddenError if the visitor is logged in as a player and names another one."""
    if visit.session is not None:
        for name in names:
            visit.session.caller.speaks_for(name)


def _filter_of(visit: PageRequest, sent: Sequence[tuple[str, str]]) -> QueueFilter:
    """The filter in a form."""
    form = dict(sent)
    with about("within"):
        within = _within(visit, form.get("within", "5"))
    regions = tuple(value for key, value in sent if key == "region" and value)
    attributes: dict[str, tuple[str, ...]] = {}
    for key, value in sent:
        name = key.removeprefix(ATTRIBUTE)
        if name != key and value:
            attributes[name] = (*attributes.get(name, ()), value)
    vetoes = tuple(value for key, value in sent if key == "veto" and value)
    return QueueFilter(
        within=within, loose=form.get("filter") != "strict", regions=regions, attributes=attributes, vetoes=vetoes
    )


def _within(visit: PageRequest, text: str) -> float:
    try:
        within = float(text)
    except ValueError:
        within = -1.0
    if not 0 <= within <= 100:
        raise InputError(visit.text("expected a number from 0 to 100, got %(text)s", text=repr(text[:20])))
    return within


def _check_may(visit: PageRequest) -> None:
    if not may_queue(visit):
        raise ForbiddenError(
            visit.text(
                "to join a queue on this page, log in with a key that has the scope queue; or the operator can let all "
                "visitors join with EVENMATCH_GUESTS"
            )
        )


async def ticket(visit: PageRequest) -> Response:
    """Show the ticket of a party: waiting, offered a match, or playing; for a playlist, the one with the match."""
    status = await _own_status(visit)
    if status.follow is not None:
        return visit.go(address("ladders", status.follow.ladder, "queue", "tickets", status.follow.ticket))
    match = status.match
    if match is not None and match.state == "closed" and any(visit.me == one.player for one in chain(*match.teams)):
        return visit.go(address("ladders", visit.ladder, "matches", match.match_id, "results", visit.me))
    return await visit.show("ticket", lambda: _ticket(visit, status))


def _ticket(visit: PageRequest, status: Status) -> Mapping[str, object]:
    ladder, match, offer = LadderShown.of(visit.reading.view(visit.ladder)), status.match, status.offer
    left = 0.0 if offer is None else max(offer.deadline - visit.site.service.clock(), 0) / SECOND
    return {
        "ladder": ladder,
        "status": ladder.visibility.ticket(status),
        "ended": None if status.ended is None else ending(status.ended),
        "goes_on": status.state in ("waiting", "offered") or (match is not None and match.state == "open"),
        "is_recorded": match is not None and match.state == "closed",
        "is_asked": offer is not None and _is_asked(visit, offer),
        "left": left,
        "announced": None if offer is None else announced(visit.texts, left, (offer.deadline - offer.made_at) / SECOND),
        "allowed": None if offer is None else (offer.deadline - offer.made_at) / SECOND,
        "standings": {} if offer is None else dict(visit.reading.among(visit.ladder, list(chain(*offer.teams)))[0]),
    }


def _is_asked(visit: PageRequest, offer: OfferStatus) -> bool:
    """Return whether the visitor can still accept: as a logged-in player, or for the whole party."""
    if visit.is_player and visit.me is not None and visit.me in offer.own:
        return not offer.own[visit.me]
    return not all(offer.own.values())


def announced(texts: Texts, left: float, allowed: float) -> str:
    """Return the time left to answer, in words that change rarely, since screen readers announce every change.

    left     seconds until the offer ends
    allowed  seconds that it lasts in all
    """
    step = min((step for step in ANNOUNCED if left <= step < allowed), default=allowed)
    if step < 2 * MINUTE:
        return texts.plural("%(n)s second", "%(n)s seconds", step)
    return texts.plural("%(n)s minute", "%(n)s minutes", step / MINUTE)


async def answer(visit: PageRequest) -> Response:
    """Accept or decline the offer, or leave the queue."""
    form = await visit.form()
    status = await _own_status(visit)
    player = visit.me if visit.is_player else None  # a token acts only for its own player
    number = form.get("offer", "")
    offer = int(number) if number.isdecimal() and len(number) <= 18 else None  # None: the current one
    request: requests.QueueRequest
    match form.get("say"):
        case "accept":
            request = requests.Accept(status.ticket, player, offer)
        case "decline":
            request = requests.Decline(status.ticket, visit.me, offer)
        case "leave":
            request = requests.Leave(status.ticket, player)
        case other:
            raise InputError(f"say is {str(other)[:20]!r}; expected accept, decline or leave")
    await visit.site.wishes.one(visit.ladder, request)
    return visit.go(address("ladders", visit.ladder, "queue", "tickets", status.ticket))


async def _own_status(visit: PageRequest) -> Status:
    """The status of the ticket in the URL; this counts as a heartbeat.

    Raises UnknownNameError, ForbiddenError if it is not the visitor's ticket and they have no key with the scope queue,
    FollowerError in a read-only process.
    """
    _check_may(visit)
    if visit.site.options.follower:
        raise FollowerError(visit.site.options.writes_at)
    text = visit.part("ticket")
    if not text.isdecimal() or len(text) > 18:
        raise UnknownNameError("ticket", text[:40], ())
    status = await visit.site.status_reads.one(visit.ladder, StatusRead(int(text)))
    is_allowed = visit.me in status.players
    if not is_allowed and visit.is_player:  # names as of joining
        member_name = visit.site.queue_service.member_name
        is_allowed = await visit.site.work(member_name, visit.ladder, status.ticket, visit.me) is not None
    elif not is_allowed:
        is_allowed = visit.session is not None and visit.may("queue", visit.ladder)
    if not is_allowed:
        raise ForbiddenError(visit.text("ticket %(ticket)s belongs to another party", ticket=text))
    visit.site.queue_service.heartbeats.note(visit.ladder, status)
    return status.seen_by(visit.caller or ANYONE, None)
