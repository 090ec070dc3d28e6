"""Changes to a ladder's tickets and offers in one transaction: read first, decide in memory, write last."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from evenmatch.durations import SECOND
from evenmatch.errors import ConflictError
from evenmatch.ledger.ladder_rows import reserve_changes_of_each
from evenmatch.ledger.store import Store
from evenmatch.live.live_sql import LiveMatchBody, MatchSlot, StoredConnection
from evenmatch.live.slots import begin, fill_teams
from evenmatch.queues import endings, queue_sql, stored_queues
from evenmatch.queues.playlists import PlaylistMoves
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_sql import FormedMatch, MatchForecast, OfferBody, OfferRow, OfferSlot, TicketMove, TicketRow
from evenmatch.queues.stored_queues import QueueSetup, strike
from evenmatch.times import iso_time


class QueueChanges:
    """Changes collected while the transaction holds the ladder's change lock; `write` writes them.

    first    the first reserved change number; new tickets and offers are numbered from it
    touched  tickets whose followers must be notified, by the id of their ladder
    """

    def __init__(
        self,
        store: Store,
        ladder: int,
        now: int,
        counts: Mapping[int, int],
        setups: Mapping[str, QueueSetup] | None = None,
    ) -> None:
        """Take the change locks.

        counts  number of change numbers to reserve, by ladder id; at least 1 on this ladder
        setups  the ladder's queues; None: they are read
        """
        self.store, self.ladder, self.now = store, ladder, now
        self.locks = reserve_changes_of_each(store, counts)
        self.first = self.locks[ladder]
        self.last = self.first + counts[ladder] - 1
        self.tickets: dict[int, TicketRow] = {}
        self.offers: dict[int, OfferRow] = {}
        self.touched: defaultdict[int, set[int]] = defaultdict(set)
        self.setups = stored_queues.read(store, ladder) if setups is None else setups
        self._moves: dict[int, TicketMove] = {}
        self._changed: dict[int, OfferRow] = {}
        self._new: list[OfferRow] = []
        self._free: set[int] = set()  # players who lose their seats
        self._left: set[int] = set()  # tickets whose party leaves all queues, including those of other ladders
        self._seated: dict[int, str] = {}  # matches by player
        self._strikes: defaultdict[str, set[int]] = defaultdict(set)  # players by queue

    def read(self, numbers: Sequence[int]) -> None:
        """Read these tickets and their offers."""
        self.tickets |= queue_sql.read_tickets(self.store, self.ladder, sorted(set(numbers)))
        self.read_offers([row.offer for row in self.tickets.values() if row.offer is not None])

    def read_offers(self, numbers: Iterable[int]) -> None:
        """Read these offers."""
        self.offers |= queue_sql.read_offers(self.store, self.ladder, sorted(set(numbers) - self.offers.keys()))

    # answers

    def accept(self, row: TicketRow, players: set[int]) -> None:
        """Let players of a ticket accept its offer. The last acceptance begins the match, or the wait for a server."""
        offer = self._offer_of(row)
        if offer.state == queue_sql.ALLOCATING:  # all have accepted
            return
        if self.now > offer.deadline:
            raise ConflictError(
                f"offer {offer.offer} can no longer be accepted; it was open until {iso_time(offer.deadline)} "
                "(accept_within)"
            )
        if players <= offer.said:
            return
        offer.said |= players
        self._change(offer)
        if len(offer.said) < len(offer.chairs):
            return
        rules = self._rules(offer.queue)
        if rules.allocate_within is None or offer.body["match"] is not None:
            self.complete(offer)
        else:
            offer.state, offer.deadline = queue_sql.ALLOCATING, self.now + round(rules.allocate_within * SECOND)

    def leave(self, row: TicketRow, players: set[int], reason: str) -> None:
        """Remove a ticket that waits or declines its offer. Declining gives these players a strike.

        The party leaves all queues of its playlist.
        reason  why the ticket ended, in words
        """
        self._left.add(row.ticket)
        if row.state == queue_sql.OFFERED:
            offer = self._offer_of(row)
            self._strikes[offer.queue] |= players
            self.cancel(offer, {row.ticket: reason})
        else:
            self.drop(row.ticket, row.party.players, reason)

    def drop(self, ticket: int, players: Iterable[int], reason: str) -> None:
        """Remove a waiting ticket without a strike. Its party keeps waiting on other ladders."""
        self._free.update(players)
        self._move(ticket, TicketMove(queue_sql.GONE, ended=reason))

    # for the matchmaker

    def cancel(self, offer: OfferRow, ended: Mapping[int, str]) -> None:
        """Cancel an offer without strikes. Tickets in `ended` end for the given reason; the others keep waiting."""
        offer.state = queue_sql.OFF
        self._change(offer)
        for ticket in offer.tickets:
            if ticket in ended:
                self._free.update(slot["id"] for slot in offer.chairs if slot["ticket"] == ticket)
                self._move(ticket, TicketMove(queue_sql.GONE, ended=ended[ticket]))
            else:
                self._move(ticket, TicketMove(queue_sql.WAITING))

    def lapse(self, offer: OfferRow) -> None:
        """End an expired offer. Players who did not answer get a strike, and their tickets end.

        If a game server was not found in time, the match begins without one, or the players wait again.
        """
        if offer.state == queue_sql.ALLOCATING and self._rules(offer.queue).allocate_fallback == "play":
            self.complete(offer)
            return
        silent = [slot for slot in offer.chairs if slot["id"] not in offer.said]
        names: defaultdict[int, list[str]] = defaultdict(list)
        for slot in silent:
            names[slot["ticket"]].append(slot["player"])
        self._strikes[offer.queue].update(slot["id"] for slot in silent)
        ended = {ticket: endings.SILENT.format(players=", ".join(players)) for ticket, players in names.items()}
        self._left.update(ended)
        self.cancel(offer, ended)

    def put(self, offer: OfferRow) -> None:
        """Add a new offer for waiting tickets."""
        self._new.append(offer)
        for ticket in offer.tickets:
            self._move(ticket, TicketMove(queue_sql.OFFERED, offer.offer))

    # writing

    def write(self) -> None:
        """Write all collected changes in a few statements. Raises MissingLocksError, see playlists.with_locks."""
        playlists = PlaylistMoves(self.store, self.ladder, self._moves, self._left)
        playlists.follow(self.locks)
        for ladder, numbers in playlists.touched.items():
            self.touched[ladder].update(numbers)
        for offer in self._changed.values():
            offer.change = self.last
        with self.store.together(len(self._new)):
            queue_sql.move_tickets(self.store, self.ladder, self._moves, self.last)
            queue_sql.delete_seats(self.store, self.ladder, self._free - playlists.kept)
            queue_sql.set_seat_matches(self.store, self.ladder, self._seated)
            queue_sql.insert_offers(self.store, self.ladder, self._new)
            queue_sql.update_offers(self.store, self.ladder, self._changed.values())
        for queue, struck in self._strikes.items():
            strike(self.store, self.ladder, sorted(struck), self.now, self._rules(queue))

    def _rules(self, queue: str) -> QueueRules:
        return self.setups[queue].rules if queue in self.setups else QueueRules()

    def _offer_of(self, row: TicketRow) -> OfferRow:
        assert row.offer is not None
        return self.offers[row.offer]

    def _change(self, offer: OfferRow) -> None:
        self._changed[offer.offer] = offer
        self.touched[self.ladder].update(offer.tickets)

    def _move(self, ticket: int, move: TicketMove) -> None:
        self._moves[ticket] = move
        self.touched[self.ladder].add(ticket)
        if ticket in self.tickets:
            row = self.tickets[ticket]
            row.state, row.offer, row.match_id, row.ended = move
            row.change = self.last

    def complete(self, offer: OfferRow, connection: StoredConnection | None = None) -> None:
        """Begin the match of an offer that all accepted, or add the players to the live match that they fill.

        connection  where the players connect; None: not known yet
        """
        if offer.body["match"] is None:
            offer.match_id = f"{offer.queue}-{offer.offer}-{secrets.token_hex(4)}"
            self._begin(offer, offer.match_id, connection)
        elif self._fill(offer, offer.body["match"]):
            offer.match_id = offer.body["match"]
        else:  # the live match has ended in the meantime
            self.cancel(offer, {})
            return
        offer.state = queue_sql.MADE
        self._change(offer)
        self._seated.update((slot["id"], offer.match_id) for slot in offer.chairs)
        for ticket in offer.tickets:
            self._move(ticket, TicketMove(queue_sql.MATCHED, match_id=offer.match_id))

    def _begin(self, offer: OfferRow, match_id: str, connection: StoredConnection | None) -> None:
        body = offer.body
        expires_at = self.now + round(self._rules(offer.queue).longest_match * SECOND)
        match_body: LiveMatchBody = {
            "teams": [_slots(team) for team in body["teams"]],
            "region": body["region"],
            "odds": body["odds"],
            "spread": body["spread"],
            "attributes": body["attributes"],
        }
        if body["map"] is not None:
            match_body["map"] = body["map"]
        if connection is not None:
            match_body["connection"] = connection
        begin(self.store, self.ladder, match_id, self.last, offer.queue, self.now, expires_at, match_body)
        formed = FormedMatch(match_id, offer.queue, self.now, body["policy"], _forecast(body))
        queue_sql.insert_formed_match(self.store, self.ladder, formed)

    def _fill(self, offer: OfferRow, match_id: str) -> bool:
        """Add the players to a live match. False if it no longer has room for them."""
        teams = [_slots(team) for team in offer.body["teams"]]
        return fill_teams(self.store, self.ladder, match_id, self.last, teams, self.now)


def _forecast(body: OfferBody) -> MatchForecast:
    parties = [Counter(slot["ticket"] for slot in team) for team in body["teams"]]
    return {
        "teams": [[slot["id"] for slot in team] for team in body["teams"]],
        "parties": [list(sizes.values()) for sizes in parties],
        "odds": body["odds"],
        "spread": body["spread"],
        "percentile": body["percentile"],
        "waits": body["waits"],
        "estimates": body["estimates"],
        "attributes": body["attributes"],
        "map": body["map"],
        "trial": body["trial"],
    }


def _slots(team: Sequence[OfferSlot]) -> list[MatchSlot]:
    return [
        {"player": slot["player"], "id": slot["id"], "ticket": slot["ticket"], "role": slot["role"]} for slot in team
    ]
