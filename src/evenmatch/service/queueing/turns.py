"""Changes of a ladder's tickets and offers in one transaction: read first, decided in memory, written last."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from evenmatch.errors import ConflictError
from evenmatch.ledger.store import Store
from evenmatch.service.playing import live
from evenmatch.service.queueing import offers, penalties, tickets
from evenmatch.service.queueing.lines import advance
from evenmatch.service.queueing.offers import Chair, OfferRow
from evenmatch.service.queueing.queue_rules import QueueRules, QueueSetup
from evenmatch.service.queueing.tickets import TicketRow
from evenmatch.service.times import iso_time

SECOND = 1_000_000
AT_ONCE = 50  # rows that one statement names


_MOVE = "UPDATE ticket SET state = ?, offer = ?, match_id = ?, ended = ?, change = ? WHERE ladder = ? AND ticket"


class Move(NamedTuple):
    """What a ticket becomes."""

    state: str
    offer: int | None = None
    match_id: str | None = None
    ended: str | None = None


class Turn:
    """A writer's turn at a ladder's line, which is locked until the transaction ends. `keep` writes what was decided.

    first    the first of `count` numbers for changes; new tickets and offers take theirs from these
    touched  the tickets that somebody may want to hear of
    """

    def __init__(
        self, store: Store, ladder: int, setups: Mapping[str, QueueSetup], now: int, first: int, count: int
    ) -> None:
        self.store, self.ladder, self.now = store, ladder, now
        self.first, self.last = first, first + count - 1
        self.tickets: dict[int, TicketRow] = {}
        self.offers: dict[int, OfferRow] = {}
        self.touched: set[int] = set()
        self.setups = setups
        self._moves: dict[int, Move] = {}
        self._changed: dict[int, OfferRow] = {}
        self._new: list[OfferRow] = []
        self._free: set[int] = set()  # players who lose their seats
        self._seated: dict[str, list[int]] = {}  # players by match
        self._strikes: defaultdict[str, set[int]] = defaultdict(set)  # players by queue

    @classmethod
    def take(cls, store: Store, ladder: int, setups: Mapping[str, QueueSetup], now: int, count: int) -> Turn:
        """Wait for the line; `count`: numbers that will be needed, 1 at the least."""
        return cls(store, ladder, setups, now, advance(store, ladder, count), count)

    def read(self, numbers: Sequence[int]) -> None:
        """Read these tickets, and the offers that they are asked about."""
        self.tickets |= tickets.read(self.store, self.ladder, sorted(set(numbers)))
        self.read_offers([one.offer for one in self.tickets.values() if one.offer is not None])

    def read_offers(self, numbers: Iterable[int]) -> None:
        """Read these offers."""
        self.offers |= offers.read(self.store, self.ladder, sorted(set(numbers) - self.offers.keys()))

    # answers

    def accept(self, row: TicketRow, who: set[int]) -> None:
        """Note that players of a ticket accept its offer; the last one makes the match."""
        offer = self._offer_of(row)
        if self.now > offer.deadline:
            raise ConflictError(
                f"offer {offer.offer} was open until {iso_time(offer.deadline)}; accepted are answers until then"
            )
        if who <= offer.said:
            return
        offer.said |= who
        self._change(offer)
        if len(offer.said) == len(offer.chairs):
            self._complete(offer)

    def leave(self, row: TicketRow, who: set[int], said: str) -> None:
        """Let a ticket go: it waits, or declines the offer it is asked about, which gives `who` a strike.

        said  in words why it is gone
        """
        if row.state == tickets.OFFERED:
            offer = self._offer_of(row)
            self._strikes[offer.queue] |= who
            self._break(offer, {row.ticket: said})
        else:
            self.drop(row.ticket, row.party.players, said)

    def drop(self, ticket: int, players: Iterable[int], said: str) -> None:
        """Let a ticket that waits go, without a strike."""
        self._free.update(players)
        self._move(ticket, Move(tickets.GONE, ended=said))

    # the matchmaker's

    def lapse(self, offer: OfferRow) -> None:
        """Take an offer back whose time is over: who said nothing has a strike, and their ticket is gone."""
        silent = [chair for chair in offer.chairs if chair["id"] not in offer.said]
        names: defaultdict[int, list[str]] = defaultdict(list)
        for chair in silent:
            names[chair["ticket"]].append(chair["player"])
        self._strikes[offer.queue].update(chair["id"] for chair in silent)
        said = {ticket: f"{', '.join(who)} did not answer an offered match in time" for ticket, who in names.items()}
        self._break(offer, said)

    def call_off(self, offer: OfferRow, gone: Mapping[int, str]) -> None:
        """Take an offer back without a strike; tickets in `gone` end with these words, the others wait again."""
        self._break(offer, gone)

    def put(self, offer: OfferRow) -> None:
        """Make a new offer to tickets that wait."""
        self._new.append(offer)
        for ticket in offer.tickets:
            self._move(ticket, Move(tickets.OFFERED, offer.offer))

    # in the end

    def keep(self) -> None:
        """Write all that was decided, in a few statements."""
        groups: defaultdict[Move, list[int]] = defaultdict(list)
        for ticket, move in self._moves.items():
            groups[move].append(ticket)
        with self.store.rows.together(self.store.connection, len(self._new)):
            for move, listed in groups.items():
                self._run(_MOVE, (*move, self.last, self.ladder), listed)
            self._run("DELETE FROM seat WHERE ladder = ? AND player", (self.ladder,), self._free)
            for match_id, players in self._seated.items():
                self._run("UPDATE seat SET match_id = ? WHERE ladder = ? AND player", (match_id, self.ladder), players)
            offers.insert(self.store, self.ladder, self._new)
            for offer in self._changed.values():
                offer.change = self.last
                offers.update(self.store, self.ladder, offer)
        for queue, players_ in self._strikes.items():
            penalties.strike(self.store, self.ladder, sorted(players_), self.now, self._rules(queue))

    def _run(self, sql: str, first: Sequence[object], numbers: Iterable[int]) -> None:
        """A statement for rows with these numbers, some at a time; nobody waits for it."""
        listed = sorted(numbers)
        for at in range(0, len(listed), AT_ONCE):
            some = listed[at : at + AT_ONCE]
            self.store.run(f"{sql} IN ({', '.join('?' * len(some))})", *first, *some)

    def _rules(self, queue: str) -> QueueRules:
        return self.setups[queue].rules if queue in self.setups else QueueRules()

    def _offer_of(self, row: TicketRow) -> OfferRow:
        assert row.offer is not None
        return self.offers[row.offer]

    def _change(self, offer: OfferRow) -> None:
        self._changed[offer.offer] = offer
        self.touched.update(offer.tickets)

    def _move(self, ticket: int, move: Move) -> None:
        self._moves[ticket] = move
        self.touched.add(ticket)
        if ticket in self.tickets:
            row = self.tickets[ticket]
            row.state, row.offer, row.match_id, row.ended = move
            row.change = self.last

    def _break(self, offer: OfferRow, gone: Mapping[int, str]) -> None:
        """Take an offer back: tickets in `gone` end so, the others wait again with their age."""
        offer.state = offers.OFF
        self._change(offer)
        for ticket in offer.tickets:
            if ticket in gone:
                self._free.update(chair["id"] for chair in offer.chairs if chair["ticket"] == ticket)
                self._move(ticket, Move(tickets.GONE, ended=gone[ticket]))
            else:
                self._move(ticket, Move(tickets.WAITING))

    def _complete(self, offer: OfferRow) -> None:
        """Everybody has accepted: the match begins, or they come into the one that runs."""
        if offer.body["match"] is None:
            offer.match_id = f"{offer.queue}-{offer.offer}-{secrets.token_hex(4)}"
            self._begin(offer, offer.match_id)
        elif self._fill(offer, offer.body["match"]):
            offer.match_id = offer.body["match"]
        else:  # it ended meanwhile
            self._break(offer, {})
            return
        offer.state = offers.MADE
        self._change(offer)
        self._seated.setdefault(offer.match_id, []).extend(chair["id"] for chair in offer.chairs)
        for ticket in offer.tickets:
            self._move(ticket, Move(tickets.MATCHED, match_id=offer.match_id))

    def _begin(self, offer: OfferRow, match_id: str) -> None:
        body = offer.body
        expires_at = self.now + round(self._rules(offer.queue).longest_match * SECOND)
        made: live.Body = {
            "teams": [_slots(team) for team in body["teams"]],
            "region": body["region"],
            "odds": body["odds"],
            "spread": body["spread"],
        }
        live.begin(self.store, self.ladder, match_id, self.last, offer.queue, self.now, expires_at, made)

    def _fill(self, offer: OfferRow, match_id: str) -> bool:
        """Give all of them seats in a running match; whether it still had them."""
        teams = [_slots(team) for team in offer.body["teams"]]
        return live.fill_teams(self.store, self.ladder, match_id, self.last, teams, self.now)


def _slots(team: Sequence[Chair]) -> list[live.Slot]:
    return [{"player": one["player"], "id": one["id"], "ticket": one["ticket"], "role": one["role"]} for one in team]
