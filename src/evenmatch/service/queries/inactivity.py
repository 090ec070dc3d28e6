"""The notice of what inactivity will cost a player, and when."""

from __future__ import annotations

import math
from typing import NamedTuple

from evenmatch.durations import DAY
from evenmatch.ledger.idle_decay import WEEK
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections
from evenmatch.service.queries.standings import View
from evenmatch.service.rating_decay import bound_of, next_decay
from evenmatch.service.settings import Settings
from evenmatch.standings.board import Standing
from evenmatch.standings.rules import PERCENTILE, RATING
from evenmatch.times import iso_time

NEAR = 7 * DAY  # how long before it happens a page shows it
YEAR = 366 * DAY  # what happens later is left out


class InactivityNotice(NamedTuple):
    """The future of a player who completes no match. Times are microseconds since the epoch.

    rule        leave, percentile or rating: the ladder's setting
    leaves_at   when the standings stop listing them; None: they are not listed
    falls_at    when their shown percentile or their rating falls next; None: it does not
    amount      percentiles, or points, by which it falls then at most
    text        what happens within a year, as a sentence; empty: nothing does
    """

    rule: str
    leaves_at: int | None
    falls_at: int | None
    amount: float | None
    text: str

    def is_near(self, now: int) -> bool:
        """Whether any of it happens within a week."""
        return any(time is not None and time - now <= NEAR for time in (self.leaves_at, self.falls_at))


class _Fall(NamedTuple):
    """The next fall: its time, its amount at most, and the falls from then on in words."""

    time: int
    amount: float
    text: str


def inactivity_notice(store: Store, head: Head, view: View, player: int, now: int) -> InactivityNotice | None:
    """The notice for a player as of now; None if inactivity costs them nothing.

    view  the whole one: the notice says what the rule of the ladder says, and no rating
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
        effects.append(f"the standings list this player no longer after {_day(leaves_at)}")
    text = f"Without a completed match, {', and '.join(effects)}." if effects else ""
    falls_at, amount = (None, None) if fall is None else fall[:2]
    return InactivityNotice(rules.inactivity, leaves_at, falls_at, amount, text)


def _percentile_fall(settings: Settings, standing: Standing, last: int, now: int) -> _Fall | None:
    rules = settings.standings
    if not rules.percentile_decay or standing.percentile is None or standing.percentile <= rules.percentile_floor:
        return None
    begins = last + round(rules.grace_days * DAY)
    days = max(now - begins, 0) // DAY
    fallen = math.floor(days * rules.percentile_decay)
    following = max(days + 1, math.ceil((fallen + 1) / rules.percentile_decay))
    falls_at = begins + following * DAY
    text = f"the shown percentile falls by {rules.percentile_decay:g} a day from {_day(falls_at)} on"
    return _Fall(
        falls_at,
        math.floor(following * rules.percentile_decay) - fallen,
        f"{text}, to {rules.percentile_floor} at the lowest",
    )


def _rating_fall(store: Store, head: Head, view: View, standing: Standing, last: int) -> _Fall | None:
    """The next fall of a rating, at the first midnight (UTC) after a week has ended."""
    rated_by = corrections.read_plan(store, head, head.planned).last_rules
    settings = Settings.read(head.settings)
    decay = next_decay(store, head, rated_by, settings, bound_of(view, settings), until=0)
    if decay is None or standing.rating is None or standing.rating <= decay.floor:
        return None
    begins = max(last, decay.began) + round(decay.grace_days * DAY)
    weeks = max((decay.after - begins) // WEEK, 0) + 1
    falls_at = -(-(begins + weeks * WEEK) // DAY) * DAY
    lowest = settings.rating_stop or f"{decay.floor:.2f}"
    return _Fall(
        falls_at, decay.rate, f"the rating falls by {decay.rate:g} a week from {_day(falls_at)} on, down to {lowest}"
    )


def _day(time: int) -> str:
    return iso_time(time)[:10]
