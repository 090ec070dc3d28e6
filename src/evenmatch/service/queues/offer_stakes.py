"""Stakes of offered matches: what a win, a draw, a loss and quitting would change for each player."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenmatch.errors import InputError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import offers
from evenmatch.ledger.tables.offers import OfferRow
from evenmatch.service.queries.lineup_stakes import stakes_by_id
from evenmatch.service.queues.ticket_status import Status
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.stakes import PlayerStakes

KEPT = 4096  # offers whose stakes are kept in memory
ByTicket = Mapping[int, Mapping[str, PlayerStakes]]


class OfferStakes:
    """The stakes of offers, computed when a ticket with an offer is read first. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], ByTicket] = OrderedDict()
        self._guard = threading.Lock()

    def add(self, store: Store, head: Head, statuses: Mapping[int, Status], now: int) -> dict[int, Status]:
        """These tickets, by number, with the stakes of their players in offered matches. now: microseconds."""
        offered = {status.offer.offer for status in statuses.values() if status.offer is not None}
        if not offered:
            return dict(statuses)
        with self._guard:
            missing = [offer for offer in sorted(offered) if (head.ladder, offer) not in self._known]
        computed = {
            (head.ladder, number): _by_ticket(store, head, row, now)
            for number, row in offers.read(store, head.ladder, missing).items()
        }
        with self._guard:
            self._known.update(computed)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            known = {offer: self._known.get((head.ladder, offer), {}) for offer in offered}
        return {
            number: status
            if status.offer is None
            else replace(status, offer=replace(status.offer, stakes=known[status.offer.offer].get(number, {})))
            for number, status in statuses.items()
        }


def _by_ticket(store: Store, head: Head, offer: OfferRow, now: int) -> ByTicket:
    """The stakes by ticket and name; empty where the seats of a running match are offered, or too many players."""
    if offer.body["match"] is not None:
        return {}
    teams: Sequence[Sequence[int]] = [[slot["id"] for slot in team] for team in offer.body["teams"]]
    try:
        stakes = stakes_by_id(store, head, now, teams, StakeAssumptions())
    except InputError:  # too many players, or a line-up that the system cannot rate: the offer is made all the same
        return {}
    tickets: dict[int, dict[str, PlayerStakes]] = {}
    for slot in offer.chairs:
        tickets.setdefault(slot["ticket"], {})[slot["player"]] = stakes[slot["id"]]
    return tickets
