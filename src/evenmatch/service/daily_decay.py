"""The decay of inactive players' ratings: previewed, applied, and applied by itself when a day begins."""

from __future__ import annotations

import logging
import threading

from evenmatch.durations import DAY
from evenmatch.errors import EvenmatchError, StoreError
from evenmatch.ledger.store import Head, Store
from evenmatch.service import rating_decay
from evenmatch.service.queries.standings import View
from evenmatch.service.rating_decay import DecayResult, DueDecay
from evenmatch.service.replay.effect import Effect
from evenmatch.service.service import Service
from evenmatch.service.settings import Settings
from evenmatch.standings.rules import RATING

EVERY = 30.0  # seconds

log = logging.getLogger(__name__)


class DailyDecay:
    """Lowers the ratings of inactive players by each ladder's rule. Safe to run in many processes.

    Weeks that ended before the present day (UTC) count, each once, however often they are applied.

    every  seconds between two looks of a worker at the date
    """

    def __init__(self, service: Service, every: float = EVERY) -> None:
        self._service, self._every = service, every
        self._done: dict[str, int] = {}  # the day that was last applied, by ladder

    def apply(self, ladder: str) -> DecayResult | None:
        """Lower the ratings that fall now; return None if there are none.

        Raises ConflictError if the ladder has another rule of inactivity, or is archived.
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
            result = rating_decay.add(store, head, due, Settings.read(head.settings), now)
            service.note(store)
        return result

    def preview(self, ladder: str, days: float = 0.0) -> Effect:
        """Compute what `apply` would do after some days without a match, and change nothing."""
        view, now = self._service.view(ladder), self._service.clock() + round(days * DAY)
        with self._service.reading(ladder) as (store, head):
            return rating_decay.effect_of(store, head, _find(store, head, view, now))

    def step(self) -> list[DecayResult]:
        """Apply what is due on the ladders that were not looked at since the day began."""
        today, applied = self._service.clock() // DAY, []
        for ladder in self._ladders():
            if self._done.get(ladder) == today:
                continue
            try:
                result = self.apply(ladder)
            except EvenmatchError as error:
                log.warning("no rating of ladder %s fell by inactivity, which will be tried again: %s", ladder, error)
                continue
            self._done[ladder] = today
            applied += [] if result is None else [result]
        return applied

    def run(self, stop: threading.Event) -> None:
        """Look at the date from time to time until `stop` is set."""
        while not stop.wait(self._every):
            try:
                self.step()
            except StoreError as error:
                log.warning("the decay of inactive players' ratings failed and will be tried again: %s", error)

    def _ladders(self) -> list[str]:
        with self._service.database.read() as store:
            settings = {head.name: Settings.read(head.settings) for head in store.heads()}
        return [name for name, own in settings.items() if own.standings.inactivity == RATING and not own.archived]


def _find(store: Store, head: Head, view: View, now: int) -> DueDecay | None:
    settings = Settings.read(head.settings)
    rating_decay.check(settings, head.name)
    return rating_decay.find_due(store, head, settings, rating_decay.bound_of(view, settings), now)
