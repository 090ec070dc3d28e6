"""Rating decay: which ratings of inactive players fall, and the event of the ledger by which they do."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenmatch.durations import DAY
from evenmatch.errors import ConflictError, DamageError
from evenmatch.ledger.events import Kind
from evenmatch.ledger.idle_decay import WEEK, PlannedDecay, lower
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections, events, player_states
from evenmatch.service.ladders import correct
from evenmatch.service.queries.standings import View
from evenmatch.service.replay.effect import Effect, rating_moves
from evenmatch.service.settings import Settings
from evenmatch.standings.rules import RATING
from evenmatch.systems.system import Rules
from evenmatch.times import iso_time


class DecayResult(NamedTuple):
    """A decay in the ledger. until: idle weeks up to this time were counted."""

    position: int
    until: int
    effect: Effect

    @property
    def players(self) -> int:
        """The number of ratings that fell."""
        return self.effect.moved


class DueDecay(NamedTuple):
    """A decay that is due.

    decay   to be added at the next position;  bound  the rating at which the setting rating_stop stops it
    roster  the players whose rating falls, afterwards;  before  the same players before
    """

    decay: PlannedDecay
    bound: float | None
    roster: Roster
    before: Roster


def check(settings: Settings, ladder: str) -> None:
    """Raise ConflictError if inactivity lowers no rating on the ladder, or the ladder is archived."""
    settings.check_open(ladder)
    if settings.standings.inactivity != RATING:
        raise ConflictError(
            f"ladder {ladder!r} has inactivity={settings.standings.inactivity}; expected inactivity=rating, "
            "since otherwise no rating falls by inactivity"
        )


def bound_of(view: View, settings: Settings) -> float | None:
    """The lowest rating of an active player in the division rating_stop, as of a view; None: there is none."""
    cuts = {cut.division.name: cut.rating for cut in view.snapshot.cuts()}
    return cuts.get(settings.rating_stop)


def next_decay(
    store: Store, head: Head, rules: Rules, settings: Settings, bound: float | None, until: int
) -> PlannedDecay | None:
    """The decay that would be added next and count the weeks up to `until`; None: none can be.

    bound  see bound_of; where a division stops the fall and has no rating now, no rating falls
    """
    counted = _counted(store, head, rules.system.name)
    if counted is None or (settings.rating_stop and bound is None):
        return None
    floor = float(rules.newcomers(1)["rating"][0]) if settings.rating_floor is None else settings.rating_floor
    return PlannedDecay(
        position=head.position + 1,
        system=rules.system.name,
        began=counted[0],
        after=counted[1],
        until=until,
        grace_days=settings.standings.grace_days,
        rate=settings.rating_decay,
        floor=floor if bound is None else max(floor, bound),
        placement=max(settings.standings.fewest_matches, 1),
    )


def _counted(store: Store, head: Head, system: str) -> tuple[int, int] | None:
    """Since when the rule holds for ratings of this system, and up to when weeks were counted; None: it does not."""
    began: int | None = None
    after, rated_by = 0, None
    for event in reversed(corrections.read_stored(store, head.ladder, head.position + 1)):
        try:
            if event.kind == Kind.DECAYED:
                body = json.loads(event.body)
                after = body["until"] if body["system"] == system else after
            elif event.kind == Kind.CHANGED:
                body = json.loads(event.body)
                system_now = body.get("system", rated_by)
                settings = body["settings"]
                if settings.get("inactivity") != RATING or settings.get("archived"):
                    began = None
                elif began is None or system_now != rated_by:
                    began = event.recorded_at
                rated_by = system_now
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DamageError(
                f"the event of ladder {head.name!r} at position {event.position} is damaged ({error!r}); "
                "restore it from a backup"
            ) from error
    return None if began is None else (began, max(began, after))


def find_due(store: Store, head: Head, settings: Settings, bound: float | None, now: int) -> DueDecay | None:
    """The decay that is due as of the day that began last, UTC; None: no rating falls."""
    rules = corrections.read_plan(store, head, head.planned).last_rules
    decay = next_decay(store, head, rules, settings, bound, now // DAY * DAY)
    if decay is None or decay.until <= decay.after:
        return None
    idle_since = decay.until - WEEK - round(decay.grace_days * DAY)
    rows = player_states.read_idle(store, head, decay.placement, idle_since, decay.floor)
    if not rows:
        return None
    players, rating, completed, last_completed = (np.array(column) for column in zip(*rows, strict=True))
    falling = decay.ratings(rating, completed, last_completed) < rating
    roster = player_states.read_roster(store, head, rules, players[falling])
    before = replace(roster, records=roster.records.copy(), tally=roster.tally.copy())
    fallen = lower(roster.records, roster.tally, decay, rules)
    if not len(fallen):
        return None
    ids = roster.ids[fallen]
    return DueDecay(decay, bound, roster.part(ids), before.part(ids))


def add(store: Store, head: Head, due: DueDecay, settings: Settings, now: int) -> DecayResult:
    """Add a decay to the ledger with the ratings that it leads to. The ladder is locked, with no rebuild due."""
    numbers = {name: value for name, value in due.decay._asdict().items() if name != "position"}
    body = {**numbers, "stop": settings.rating_stop or None, "bound": due.bound, "count": len(due.roster)}
    event_id = f"decay:{iso_time(due.decay.until)[:10]}"
    if events.find(store, head, [event_id]):  # a match was reported with this id
        event_id = f"{event_id}:{secrets.token_hex(8)}"
    effect = effect_of(store, head, due)
    position = correct(store, head, Kind.DECAYED, body, event_id, now, since=None)
    assert position == due.decay.position
    player_states.put(store, head.ladder, head.generation, due.roster)
    return DecayResult(position, due.decay.until, effect)


def effect_of(store: Store, head: Head, due: DueDecay | None) -> Effect:
    """The effect of a decay on the ladder."""
    players = player_states.count(store, head)
    if due is None:
        return Effect("no rating falls by inactivity", [], players, 0, 0, head.position)
    moves = rating_moves(store, due.before, due.roster)
    return Effect("ratings fall by inactivity", moves, players, 0, 0, head.position)
