"""Inactivity: which ratings fall, the daily event that lowers them, notices for players, and past falls for charts."""

from __future__ import annotations

import logging
import math
import secrets
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, cast

import numpy as np

from evenmatch.corrections.effect import Effect, rating_moves
from evenmatch.durations import DAY
from evenmatch.errors import ConflictError, EvenmatchError, StoreError
from evenmatch.ladders.ladders import correct
from evenmatch.ladders.settings import Settings
from evenmatch.ladders.standings import View
from evenmatch.ledger import event_rows, rating_rows
from evenmatch.ledger.events import Correction, RatingsDecayed, RulesChanged, SettingsChanged
from evenmatch.ledger.idle_decay import WEEK, decayed, lower
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store
from evenmatch.operations.service import Service
from evenmatch.players.rated_matches import OpponentMatch
from evenmatch.sentences import Sentence
from evenmatch.standings.activity import NEVER
from evenmatch.standings.board import Standing
from evenmatch.standings.rules import PERCENTILE, RATING
from evenmatch.systems.system import Rules
from evenmatch.times import Time, iso_time


class DecayResult(NamedTuple):
    """A decay in the ledger. until: idle weeks up to this time have been counted."""

    position: int
    until: int
    effect: Effect

    @property
    def players(self) -> int:
        """The number of ratings that fell."""
        return self.effect.moved


class DueDecay(NamedTuple):
    """A decay that is due.

    decay   to be added at the next position, with a count of 0
    roster  the players whose rating falls, after the fall;  before  the same players before it
    """

    decay: RatingsDecayed
    roster: Roster
    before: Roster


def check(settings: Settings, ladder: str) -> None:
    """Raise ConflictError if inactivity lowers no rating on the ladder, or the ladder is archived."""
    settings.check_open(ladder)
    if settings.standings.inactivity != RATING:
        raise ConflictError(
            f"ladder {ladder!r} has inactivity={settings.standings.inactivity}; expected inactivity=rating, "
            "because otherwise inactivity lowers no rating"
        )


def bound_of(view: View, settings: Settings) -> float | None:
    """The lowest rating of an active player in the division rating_stop, in this view; None: there is none."""
    cuts = {cut.division.name: cut.rating for cut in view.snapshot.cuts()}
    return cuts.get(settings.rating_stop)


def next_decay(
    store: Store, head: Head, rules: Rules, settings: Settings, bound: float | None, until: int
) -> RatingsDecayed | None:
    """The next decay, counting the idle weeks up to `until`; None: no decay is possible.

    bound  see bound_of; if the division that stops falls has no rating now, no rating falls
    """
    counted = _counted(store, head, rules.system.name)
    if counted is None or (settings.rating_stop and bound is None):
        return None
    floor = float(rules.newcomers(1)["rating"][0]) if settings.rating_floor is None else settings.rating_floor
    return RatingsDecayed(
        system=rules.system.name,
        began=counted[0],
        after=counted[1],
        until=until,
        grace_days=settings.standings.grace_days,
        rate=settings.rating_decay,
        floor=floor if bound is None else max(floor, bound),
        placement=max(settings.standings.fewest_matches, 1),
        stop=settings.rating_stop or None,
        bound=bound,
        count=0,
    )


def _counted(store: Store, head: Head, system: str) -> tuple[int, int] | None:
    """When the rule began to apply to this system's ratings, and the end of the counted weeks; None: it never did."""
    began: int | None = None
    after, rated_by = 0, None
    for event in event_rows.read_corrections(store, head, head.position):
        change = event.change
        if isinstance(change, RatingsDecayed):
            after = change.until if change.system == system else after
        elif isinstance(change, RulesChanged | SettingsChanged):
            system_now = change.system if isinstance(change, RulesChanged) else rated_by
            if change.settings.get("inactivity") != RATING or change.settings.get("archived"):
                began = None
            elif began is None or system_now != rated_by:
                began = event.recorded_at
            rated_by = system_now
    return None if began is None else (began, max(began, after))


def find_due(store: Store, head: Head, settings: Settings, bound: float | None, now: int) -> DueDecay | None:
    """The decay that is due at the start of the current day (UTC); None: no rating falls."""
    rules = event_rows.read_plan(store, head, head.planned).last_rules
    decay = next_decay(store, head, rules, settings, bound, now // DAY * DAY)
    if decay is None or decay.until <= decay.after:
        return None
    idle_since = decay.until - WEEK - round(decay.grace_days * DAY)
    rows = rating_rows.read_idle(store, head, decay.placement, idle_since, decay.floor)
    if not rows:
        return None
    players, rating, completed, last_completed = (np.array(column) for column in zip(*rows, strict=True))
    falling = decayed(decay, rating, completed, last_completed) < rating
    roster = rating_rows.read_roster(store, head, rules, players[falling])
    before = replace(roster, records=roster.records.copy(), tally=roster.tally.copy())
    fallen = lower(roster.records, roster.tally, decay, rules)
    if not len(fallen):
        return None
    ids = roster.ids[fallen]
    return DueDecay(decay, roster.part(ids), before.part(ids))


def add(store: Store, head: Head, due: DueDecay, now: int) -> DecayResult:
    """Add a decay to the ledger, with the resulting ratings. The ladder must be locked, with no rebuild due."""
    event_id = f"decay:{iso_time(due.decay.until)[:10]}"
    if event_rows.find_events(store, head, [event_id]):  # a match was reported with this id
        event_id = f"{event_id}:{secrets.token_hex(8)}"
    effect = effect_of(store, head, due)
    position = correct(store, head, replace(due.decay, count=len(due.roster)), event_id, now)
    assert position is not None
    rating_rows.put_states(store, head.ladder, head.generation, due.roster)
    return DecayResult(position, due.decay.until, effect)


def effect_of(store: Store, head: Head, due: DueDecay | None) -> Effect:
    """The effect of a decay on the ladder."""
    players = rating_rows.count_states(store, head)
    if due is None:
        return Effect("inactivity lowers no rating", [], players, 0, 0, head.position)
    moves = rating_moves(store, due.before, due.roster)
    return Effect("inactivity lowers ratings", moves, players, 0, 0, head.position)


CHECK_EVERY = 30.0  # seconds between checks of the date

log = logging.getLogger(__name__)


class DailyDecay:
    """Lowers the ratings of inactive players by each ladder's rule. Safe to run in many processes.

    Weeks that ended before the current day (UTC) count once each, however often the decay is applied.

    every  seconds between checks of the date
    """

    def __init__(self, service: Service, every: float = CHECK_EVERY) -> None:
        self._service, self._every = service, every
        self._done: dict[str, int] = {}  # the day that was last applied, by ladder

    def apply(self, ladder: str) -> DecayResult | None:
        """Lower the ratings that fall now; return None if there are none.

        Raises ConflictError if the ladder has another inactivity rule, or is archived.
        """
        service = self._service
        view, now = service.view(ladder), service.clock()
        with service.reading(ladder) as (store, head):
            if head.due is None and _find(store, head, view, now) is None:
                return None
        with service.settled(ladder) as (store, head):
            due = _find(store, head, view, now)
            if due is None:
                return None
            result = add(store, head, due, now)
            service.note(store)
        return result

    def preview(self, ladder: str, days: float = 0.0) -> Effect:
        """Compute what `apply` would do after some days without a match, and change nothing."""
        view, now = self._service.view(ladder), self._service.clock() + round(days * DAY)
        with self._service.reading(ladder) as (store, head):
            return effect_of(store, head, _find(store, head, view, now))

    def step(self) -> list[DecayResult]:
        """Apply what is due on the ladders that have not been checked today."""
        today, applied = self._service.clock() // DAY, []
        for ladder in self._ladders():
            if self._done.get(ladder) == today:
                continue
            try:
                result = self.apply(ladder)
            except EvenmatchError as error:
                log.warning("the decay of inactive ratings on ladder %s failed and will be retried: %s", ladder, error)
                continue
            self._done[ladder] = today
            applied += [] if result is None else [result]
        return applied

    def run(self, stop: threading.Event) -> None:
        """Check the date from time to time until `stop` is set."""
        while not stop.wait(self._every):
            try:
                self.step()
            except StoreError as error:
                log.warning("the decay of inactive players' ratings failed and will be retried: %s", error)

    def _ladders(self) -> list[str]:
        with self._service.database.read() as store:
            settings = {head.name: Settings.read(head.settings) for head in store.heads()}
        return [name for name, own in settings.items() if own.standings.inactivity == RATING and not own.archived]


def _find(store: Store, head: Head, view: View, now: int) -> DueDecay | None:
    settings = Settings.read(head.settings)
    check(settings, head.name)
    return find_due(store, head, settings, bound_of(view, settings), now)


NEAR = 7 * DAY  # pages announce events within this time
YEAR = 366 * DAY  # notices omit later events


InactivityRule = Literal["leave", "percentile", "rating"]


class InactivityNotice(NamedTuple):
    """The effect of inactivity on a player who completes no further match.

    rule        the ladder's setting `inactivity`
    leaves_at   when the standings stop listing the player; null: the player is not listed
    falls_at    when the shown percentile or the rating falls next; null: it does not fall
    amount      the percentiles or points it loses then, at most
    text        the events of the next year in a sentence; empty: there are none
    """

    rule: InactivityRule
    leaves_at: Time | None
    falls_at: Time | None
    amount: float | None
    text: Sentence

    def is_near(self, now: int) -> bool:
        """True if anything happens within a week."""
        return any(time is not None and time - now <= NEAR for time in (self.leaves_at, self.falls_at))


class _Fall(NamedTuple):
    """The next fall: its time, its largest amount, and the falls from then on in words."""

    time: int
    amount: float
    text: Sentence


def inactivity_notice(store: Store, head: Head, view: View, player: int, now: int) -> InactivityNotice | None:
    """The notice for a player as of now; None if inactivity costs them nothing.

    view  the whole view: the notice states the ladder's rule and no rating
    """
    standing = view.snapshot.standing(player)
    if standing is None:
        return None
    row = int(view.snapshot.board.find([player])[0])
    if not standing.placed or not standing.completed or view.snapshot.board.hidden[row] or view.settings.archived:
        return None
    rules, last = view.settings.standings, int(view.snapshot.board.last_completed[row])
    leaves_at = None if standing.rank is None else last + round(rules.active_days * DAY)
    fall = None
    if rules.inactivity == PERCENTILE and leaves_at is not None:
        fall = _percentile_fall(view.settings, standing, last, now)
        fall = None if fall is not None and fall.time > leaves_at else fall
    elif rules.inactivity == RATING:
        fall = _rating_fall(store, head, view, standing, last)
    if leaves_at is None and fall is None:
        return None
    effects = [] if fall is None else [fall.text]
    if leaves_at is not None and leaves_at - now < YEAR:
        effects.append(Sentence("this player leaves the standings after {day}", {"day": _day(leaves_at)}))
    falls_at, amount = (None, None) if fall is None else fall[:2]
    rule = cast("InactivityRule", rules.inactivity)
    return InactivityNotice(rule, leaves_at, falls_at, amount, _notice(effects))


def _notice(effects: Sequence[Sentence]) -> Sentence:
    """The sentence about at most two effects."""
    if not effects:
        return Sentence("")
    if len(effects) == 1:
        return Sentence("Without a completed match, {effect}.", {"effect": effects[0]})
    return Sentence("Without a completed match, {effect}, and {then}.", {"effect": effects[0], "then": effects[1]})


def _percentile_fall(settings: Settings, standing: Standing, last: int, now: int) -> _Fall | None:
    rules = settings.standings
    if not rules.percentile_decay or standing.percentile is None or standing.percentile <= rules.percentile_floor:
        return None
    begins = last + round(rules.grace_days * DAY)
    days = max(now - begins, 0) // DAY
    fallen = math.floor(days * rules.percentile_decay)
    following = max(days + 1, math.ceil((fallen + 1) / rules.percentile_decay))
    falls_at = begins + following * DAY
    text = Sentence(
        "the shown percentile falls by {amount} a day from {day} on, to {floor} at the lowest",
        {"amount": f"{rules.percentile_decay:g}", "day": _day(falls_at), "floor": rules.percentile_floor},
    )
    return _Fall(falls_at, math.floor(following * rules.percentile_decay) - fallen, text)


def _rating_fall(store: Store, head: Head, view: View, standing: Standing, last: int) -> _Fall | None:
    """The next fall of a rating, at the first midnight (UTC) after a week has ended."""
    rated_by = event_rows.read_plan(store, head, head.planned).last_rules
    settings = Settings.read(head.settings)
    decay = next_decay(store, head, rated_by, settings, bound_of(view, settings), until=0)
    if decay is None or standing.rating is None or standing.rating <= decay.floor:
        return None
    begins = max(last, decay.began) + round(decay.grace_days * DAY)
    weeks = max((decay.after - begins) // WEEK, 0) + 1
    falls_at = -(-(begins + weeks * WEEK) // DAY) * DAY
    lowest = settings.rating_stop or f"{decay.floor:.2f}"
    text = Sentence(
        "the rating falls by {amount} a week from {day} on, down to {lowest}",
        {"amount": f"{decay.rate:g}", "day": _day(falls_at), "lowest": lowest},
    )
    return _Fall(falls_at, decay.rate, text)


def _day(time: int) -> str:
    return iso_time(time)[:10]


class InactivityFall(NamedTuple):
    """A loss by inactivity.

    of        rating: an event of the ledger lowered the rating; percentile: the shown percentile is lower now
    position  of the event; of the last event, for a percentile
    """

    of: Literal["rating", "percentile"]
    position: int
    fell_at: Time
    before: float
    after: float

    @property
    def text(self) -> Sentence:
        """The fall in words: "−12.3, not playing"."""
        amount = f"{self.before - self.after:.2f}".rstrip("0").rstrip(".")
        return Sentence("−{amount}, not playing", {"amount": amount})


def rating_falls(store: Store, head: Head, player: int, matches: Sequence[OpponentMatch]) -> list[InactivityFall]:
    """The falls of a player's rating, in order. matches: all rated matches of the player, in order."""
    plan = event_rows.read_plan(store, head, head.planned)
    decays = [turn for turn in plan.turns if isinstance(turn.change, RatingsDecayed)]
    rows = rating_rows.read_standings(store, head, [player]) if decays and matches else []
    if not rows:
        return []
    falls: list[InactivityFall] = []
    ends = [*(match.order for match in matches[1:]), (head.position + 1, 1)]
    ratings = [*(float(match.line["before"]) for match in matches[1:]), float(rows[0][1])]
    for number, (match, end, known) in enumerate(zip(matches, ends, ratings, strict=True)):
        between = [decay for decay in decays if match.order < (decay.position, 1) < end]
        if between:
            falls += _between(plan, matches[: number + 1], between, end, known)
    return falls


def _between(
    plan: Plan, played: Sequence[OpponentMatch], decays: Sequence[Correction], end: tuple[int, int], known: float
) -> Iterator[InactivityFall]:
    """The falls after the last of these matches. known: the rating after all of them, before a match at `end`."""
    seasons = [(position, 1) for position, opening in plan.openings if opening.factor != 1]
    last = played[-1].order
    begun = max((season for season in seasons if season < last), default=(0, 0))
    reset = min((season for season in seasons if last < season < end), default=None)
    completed = [match.played_at for match in played if match.order > begun and match.completed]
    rating = float(played[-1].line["after"])
    decays = [decay for decay in decays if reset is None or (decay.position, 1) < reset]
    counts, latest = np.array([len(completed)]), np.array([max(completed, default=NEVER)])
    for number, decay in enumerate(decays, 1):
        assert isinstance(decay.change, RatingsDecayed)
        after = _rating_after(plan.rules_at(decay.position), decay.change, rating, counts, latest)
        if number == len(decays) and reset is None:
            after = known
        if after < rating:
            yield InactivityFall("rating", decay.position, decay.change.until, rating, after)
            rating = after


def _rating_after(
    rules: Rules, decay: RatingsDecayed, rating: float, completed: np.ndarray, latest: np.ndarray
) -> float:
    """The shown rating after a decay, which a system may round."""
    wanted = decayed(decay, np.array([rating]), completed, latest)
    return float(rules.system.move(rules.starting(np.array([rating])), wanted, rules.parameters)["rating"][0])


def percentile_fall(view: View, player: int) -> InactivityFall | None:
    """The fall of a listed player's shown percentile in a whole view; None: it has not fallen."""
    taken = view.snapshot
    standing = taken.standing(player)
    if standing is None or standing.percentile is None or standing.rating is None:
        return None
    before = taken.percentile(standing.rating)
    if before <= standing.percentile:
        return None
    return InactivityFall("percentile", view.head.position, taken.as_of, before, standing.percentile)
