"""One queue: its tickets as columns that are updated in place, its regions, choices, arrivals and record of waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.records import MEMBER, NAMED, TICKET, Records, compiled, lean, lean_inner
from evenmatch.matchmaking.tickets import (
    ANYWHERE,
    MOST_REGIONS,
    MOST_ROLES,
    Masks,
    Ticket,
    TicketChoice,
    Tickets,
    Whole,
    rows_of,
    starts,
)

REMEMBERED_WAITS = 500  # of each kind
CALIBRATION_SET = 100  # remembered waits with similar estimates, from which an estimate is calibrated
TRUSTED_FROM = 30  # with fewer matched tickets among these, the assumed factors count too
REMEMBERED_PER_SECOND = 4  # estimates
QUANTILES = (0.5, 0.9)


class WaitKind(NamedTuple):
    """A kind of tickets with comparable waits. size: players; at_once: the opponent of a duel is already waiting."""

    size: int
    strict: bool
    newcomers: bool
    at_once: bool = False


class ExpectedWait(NamedTuple):
    """The further wait of a ticket before calibration.

    seconds  the mean time until the missing players have arrived
    median, upper  assumed quantiles of the wait, 50 % and 90 %, as multiples of `seconds`
    """

    kind: WaitKind
    seconds: float
    median: float
    upper: float


class WaitEstimate(NamedTuple):
    """Estimated further wait in seconds: the median (`estimate`) and the 90 % quantile (`upper`)."""

    estimate: float
    upper: float


@dataclass(slots=True)
class _Remembered:
    """A ticket with an estimate. waited: seconds until it was matched or left; None: it still waits."""

    since: int
    seconds: float
    waited: float | None = None
    is_matched: bool = False


class WaitRecord:
    """A queue's estimates and the waits that followed, by kind of ticket. Proposals never depend on it."""

    def __init__(self) -> None:
        self._kinds: dict[WaitKind, deque[_Remembered]] = {}
        self._open: dict[int, _Remembered] = {}  # by ticket
        self._second, self._room = -1, 0  # the second of the latest estimate, and how many more it may get

    def room(self, now: int) -> int:
        """How many more estimates may be added in this second."""
        return self._room if now // SECOND == self._second else REMEMBERED_PER_SECOND

    def add(self, ticket: int, expected: ExpectedWait, now: int) -> None:
        """Remember an expected wait as of this time."""
        self._room, self._second = self.room(now) - 1, now // SECOND
        entry = _Remembered(now, expected.seconds)
        self._kinds.setdefault(expected.kind, deque(maxlen=REMEMBERED_WAITS)).append(entry)
        self._open[ticket] = entry

    def end(self, tickets: Iterable[int], now: int, *, is_matched: bool) -> None:
        """Note that tickets were matched or left. Tickets without an estimate are ignored."""
        for ticket in tickets:
            if (entry := self._open.pop(ticket, None)) is not None:
                entry.waited, entry.is_matched = max(now - entry.since, 0) / SECOND, is_matched

    def calibrated(self, expected: ExpectedWait, now: int) -> WaitEstimate:
        """The quantiles of the wait, from the latest waits of this kind with a similar expected time.

        They are quantiles of the ratio of wait to expected time. Tickets that still wait or have left count as waits
        that are at least as long (Kaplan and Meier 1958), so a new queue does not take its first matches as typical.
        """
        factors = [expected.median, expected.upper]
        entries = self._kinds.get(expected.kind)
        if entries:
            ratios, matched = _ratios(list(entries), expected.seconds, now)
            share = min(int(matched.sum()) / TRUSTED_FROM, 1.0)
            longest = float(ratios.max())
            for place, known in enumerate(quantiles(ratios, matched, QUANTILES)):
                factors[place] = (
                    max(factors[place], longest) if known is None else share * known + (1 - share) * factors[place]
                )
        median, upper = factors
        return WaitEstimate(expected.seconds * median, expected.seconds * max(median, upper))


def quantiles(waits: Floats, ended: Flags, shares: Iterable[float]) -> list[float | None]:
    """The quantiles of waits, some of which have not ended (Kaplan and Meier 1958). None: beyond the longest wait."""
    order = np.lexsort((~ended, waits))
    at_risk = len(waits) - np.arange(len(waits))
    over = 1 - np.cumprod(1 - ended[order] / at_risk)
    places = np.searchsorted(over, np.array(list(shares)) - 1e-12).tolist()
    return [float(waits[order[place]]) if place < len(waits) else None for place in places]


def _ratios(entries: list[_Remembered], seconds: float, now: int) -> tuple[Floats, Flags]:
    """The CALIBRATION_SET waits with the most similar expected time: ratios to that time, and whether matched."""
    expected = np.array([entry.seconds for entry in entries])
    waited = np.array(
        [max(now - entry.since, 0) / SECOND if entry.waited is None else entry.waited for entry in entries]
    )
    matched = np.array([entry.is_matched for entry in entries])
    near = np.argsort(np.abs(np.log(expected / seconds)), kind="stable")[:CALIBRATION_SET]
    return waited[near] / expected[near], matched[near]


class Joining(NamedTuple):
    """The columns of `Tickets`, with the queue's numbers for role and region bits."""

    id: Whole
    queued: Whole
    start: Whole
    player: Whole
    percentile: Floats
    rating: Floats
    within: Floats
    loose: Flags
    newcomer: Flags
    roles: Masks
    able: Masks
    named_start: Whole
    named: Whole
    met: Whole


@lean_inner
def bit_of(player: int) -> np.uint64:
    """Map a player to one of 64 bits with a multiplicative hash (Knuth)."""
    return np.uint64(1) << (np.uint64(player) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(58))


@compiled
def join(tickets: Any, members: Any, named: Any, j: Joining, slots: Whole, member: int, name: int) -> None:  # noqa: ANN401
    """Write tickets to `slots`, their members to the pool from row `member`, named players from row `name`."""
    for at in range(len(j.id)):
        t, start, stop = tickets[slots[at]], j.start[at], j.start[at + 1]
        t.alive, t.id, t.queued, t.size, t.first = True, j.id[at], j.queued[at], stop - start, member
        low, high, chosen_lo, chosen_hi = j.percentile[start], j.percentile[start], np.inf, -np.inf
        rating_low, rating_high, total, loose, newcomers = j.rating[start], j.rating[start], 0.0, True, 0
        players, names = np.uint64(0), np.uint64(0)
        for m in range(start, stop):
            own, p, w, r = members[member], j.percentile[m], j.within[m], j.rating[m]
            low, high = min(low, p), max(high, p)
            chosen_lo, chosen_hi = min(chosen_lo, p - w), max(chosen_hi, p + w)
            rating_low, rating_high, total = min(rating_low, r), max(rating_high, r), total + r
            loose = loose and j.loose[m]
            newcomers += j.newcomer[m]
            players |= bit_of(j.player[m])
            own.player, own.percentile, own.rating, own.within = j.player[m], p, r, w
            own.roles, own.loose, own.newcomer = j.roles[m], j.loose[m], j.newcomer[m]
            member += 1
        t.low, t.high, t.chosen_lo, t.chosen_hi, t.loose = low, high, chosen_lo, chosen_hi, loose
        t.rating_low, t.rating_high, t.rating_sum, t.newcomers = rating_low, rating_high, total, newcomers
        t.players, t.able = players, j.able[at]
        t.named_first, t.named_count = name, j.named_start[at + 1] - j.named_start[at]
        for n in range(j.named_start[at], j.named_start[at + 1]):
            named[name].player, named[name].met = j.named[n], j.met[n]
            names |= bit_of(j.named[n])
            name += 1
        t.names = names


@lean
def merge(order: Whole, fresh: Whole, t: Any, out: Whole) -> int:  # noqa: ANN401
    """Merge two slot lists sorted by percentile, time and id into `out`, leaving out removed tickets.

    Returns the number of slots written. `out` has room for all.
    """
    count, at = 0, 0
    for slot in order:
        if not t[slot].alive:
            continue
        while at < len(fresh):
            other = fresh[at]
            if t[other].alive:
                if t[other].low > t[slot].low:
                    break
                if t[other].low == t[slot].low:
                    if t[other].queued > t[slot].queued:
                        break
                    if t[other].queued == t[slot].queued and t[other].id > t[slot].id:
                        break
                out[count] = other
                count += 1
            at += 1
        out[count] = slot
        count += 1
    for rest in range(at, len(fresh)):
        if t[fresh[rest]].alive:
            out[count] = fresh[rest]
            count += 1
    return count


@compiled
def count_arrivals(counts: Whole, stamps: Whole, j: Joining, span: int) -> None:
    """Count joining players by percentile and time, in a ring of buckets of `span` microseconds."""
    for at in range(len(j.id)):
        stamp = j.queued[at] // span
        row = stamp % len(stamps)
        late = stamps[row] > stamp  # the bucket was already reused, unless a clock was far ahead
        if late and stamps[row] - stamp < 2 * len(stamps):
            continue
        if stamps[row] != stamp:
            counts[row] = 0
            stamps[row] = stamp
        for m in range(j.start[at], j.start[at + 1]):
            counts[row, min(int(j.percentile[m]), counts.shape[1] - 1)] += 1


@lean
def fill_waiting(
    tickets: Any,  # noqa: ANN401 - TICKET
    order: Whole,
    now: int,
    longest: float,
    largest: int,
    steps: Floats,
    even_spread: float,
    t: Any,  # noqa: ANN401 - WAITING
    expired: Whole,
) -> tuple[int, int]:
    """Write tickets with their present windows to `t` and expired ones to `expired`. Returns both counts.

    longest  wait in seconds after which a ticket expires;  largest  larger parties are left out
    steps    float64 (N, 2)  seconds, and the width of a loose filter from then on
    """
    kept, given_up, last = 0, 0, steps[len(steps) - 1, 1]
    for slot in order:
        s = tickets[slot]
        waited = max((now - s.queued) * 1e-6, 0.0)
        if waited >= longest:
            expired[given_up] = s.id
            given_up += 1
            continue
        if s.size > largest:
            continue
        w = t[kept]
        kept += 1
        w.slot, w.waited, w.id, w.low, w.high = slot, waited, s.id, s.low, s.high
        w.chosen_lo, w.chosen_hi, w.rating_low, w.rating_high = s.chosen_lo, s.chosen_hi, s.rating_low, s.rating_high
        w.rating_sum, w.able, w.players, w.names, w.first = s.rating_sum, s.able, s.players, s.names, s.first
        w.named_first, w.named_count, w.size = s.named_first, s.named_count, s.size
        w.newcomers, w.loose = s.newcomers, s.loose
        w.lo, w.hi, w.last_lo, w.last_hi = s.chosen_lo, s.chosen_hi, s.chosen_lo, s.chosen_hi
        width = 0.0
        for step in range(len(steps)):
            if steps[step, 0] <= waited:
                width = steps[step, 1]
        w.spread = even_spread + s.high - s.low
        if s.loose:
            w.lo, w.hi = min(w.lo, s.low - width), max(w.hi, s.high + width)
            w.last_lo, w.last_hi = min(w.last_lo, s.low - last), max(w.last_hi, s.high + last)
    return kept, given_up


def pings_of(tickets: Tickets, names: Sequence[str]) -> tuple[Floats, Masks]:
    """Pings to the regions of these names, and each ticket's bits of the regions where it can play."""
    count, known = len(tickets), len(names)
    if not known:
        return np.empty((count, 0)), np.full(count, ANYWHERE, np.uint64)
    pings, able = np.full((count, known), np.inf), np.zeros(count, np.uint64)
    for index, name in enumerate(tickets.region_names):
        if name not in names:  # none of these tickets can play there
            continue
        column = names.index(name)
        pings[:, column] = tickets.ping[:, index]
        able |= (tickets.ping[:, index] < np.inf).astype(np.uint64) << np.uint64(column)
    anywhere = np.isnan(tickets.ping).all(axis=1)
    pings[anywhere] = 0.0
    able[anywhere] = ANYWHERE
    return pings, able


def region_weights(named: Flags) -> Floats:
    """The weight of each region, float64 (R,). A ticket of weight 1 divides it among the regions that it names.

    named: bool (T, R)
    """
    return np.asarray((named / np.maximum(named.sum(axis=1, keepdims=True), 1)).sum(axis=0))


def replaceable(
    fresh: Sequence[str], lacking: int, known: Sequence[str], waiting: Masks, joining: Mapping[str, float]
) -> Whole:
    """The places of the `lacking` known regions with the least weight, to be replaced by fresh ones.

    A player who makes up many regions gives each little weight, and so cannot keep regions of others out.

    waiting  the region bits of each waiting ticket;  joining  the weight of each region among the joining tickets
    Raises InputError if one of them does not weigh less than every fresh region.
    """
    bits = np.arange(len(known), dtype=np.uint64)
    limited = waiting[waiting != ANYWHERE]
    weights = region_weights(limited[:, None] >> bits & np.uint64(1) == 1)
    weights += [joining.get(name, 0.0) for name in known]
    least = np.argsort(weights, kind="stable")[:lacking]
    if lacking > len(least) or weights[least[-1]] >= min(joining[name] for name in fresh):
        raise too_many("regions", fresh, MOST_REGIONS)
    return least


def too_many(what: str, names: Sequence[str], most: int) -> InputError:
    """The error for regions or roles beyond the limit of a queue."""
    return InputError(f"{what} {', '.join(names)} would exceed the limit; expected at most {most} in a queue")


CHOICES_KEPT = 64  # until there are more, choices of tickets that have left are not dropped


class ChoiceTable:
    """The choices of a queue's tickets.

    known  the different choices; the first is to accept everything
    row    int64  by slot of the queue: the row of its choice in `known`
    """

    def __init__(self, slots: int) -> None:
        self.known = [TicketChoice()]
        self.row: Whole = np.zeros(slots, np.int64)
        self._number = {TicketChoice(): 0}

    def grow(self, slots: int) -> None:
        """Make room for this number of slots."""
        self.row = np.concatenate((self.row, np.zeros(slots - len(self.row), np.int64)))

    def add(self, slots: Whole, tickets: Tickets, waiting: Collection[int]) -> None:
        """Store the choices of tickets that join in these slots. waiting: slots of the other tickets, or JOINING."""
        if not len(tickets.choice):
            self.row[slots] = 0
            return
        used, place = np.unique(tickets.choice, return_inverse=True)
        chosen = [tickets.choices[number] for number in used.tolist()]
        if len(self.known) > max(2 * len(waiting), CHOICES_KEPT):
            self._forget(np.fromiter((slot for slot in waiting if slot >= 0), np.int64))
        for choice in chosen:
            if choice not in self._number:
                self._number[choice] = len(self.known)
                self.known.append(choice)
        self.row[slots] = np.array([self._number[choice] for choice in chosen], np.int64)[place]

    def _forget(self, waiting: Whole) -> None:
        """Drop the choices that no waiting ticket makes."""
        used, number = np.unique(np.concatenate((np.zeros(1, np.int64), self.row[waiting])), return_inverse=True)
        self.known = [self.known[row] for row in used.tolist()]
        self._number = {choice: row for row, choice in enumerate(self.known)}
        self.row[waiting] = number[1:]


ARRIVAL_SPAN = 30 * SECOND  # microseconds that one row of arrival counts covers
ARRIVAL_ROWS = 20  # ten minutes
PERCENTILE_BINS = 100
INITIAL_SLOTS = 64
JOINING = -1  # the slot of a ticket that is not in the columns yet


class Queue:
    """Tickets that wait for a match of one kind. It has no clock; times are arguments.

    Not thread-safe, even for reading, because joined tickets are written and sorted on the next read. Tickets and
    players are identified by number. A player can be in only one ticket. Results do not depend on the order in which
    tickets joined.
    """

    def __init__(self) -> None:
        self.region_names, self.role_names = list[str](), list[str]()
        self.tickets = np.zeros(INITIAL_SLOTS, TICKET)  # by slot
        self.ping = np.zeros((INITIAL_SLOTS, 0))  # milliseconds, the worst of the members, by slot and region
        self.choices = ChoiceTable(INITIAL_SLOTS)
        self.members, self.named = np.zeros(INITIAL_SLOTS, MEMBER), np.zeros(INITIAL_SLOTS, NAMED)
        self.arrivals = np.zeros((ARRIVAL_ROWS, PERCENTILE_BINS), np.int64)
        self.arrival_stamps = np.full(ARRIVAL_ROWS, -1, np.int64)
        self._since = 2**62  # time of the first arrival
        self._slot: dict[int, int] = {}  # by ticket
        self._seat: dict[int, int] = {}  # ticket by player
        self._free = list(range(INITIAL_SLOTS - 1, -1, -1))
        self._joining: dict[int, tuple[Ticket, bool]] = {}  # by id: (ticket, arriving), not in the columns yet
        self._left: list[int] = []  # slots of removed tickets that may still be in `_order`
        self._fresh: list[Whole] = []  # slots not yet in `_order`
        self._order = np.empty(0, np.int64)
        self.waits = WaitRecord()
        self._members, self._named = 0, 0  # used rows of the pools, including those of removed tickets
        self._gone, self._forgotten = 0, 0  # those of removed tickets

    def __len__(self) -> int:
        """Number of waiting tickets."""
        return len(self._slot)

    def __contains__(self, ticket: object) -> bool:
        return ticket in self._slot

    @property
    def players(self) -> int:
        """Number of waiting players."""
        return len(self._seat)

    @property
    def ids(self) -> list[int]:
        """The ids of the waiting tickets, ascending."""
        return sorted(self._slot)

    def ticket_of(self, player: int) -> int | None:
        """The ticket in which this player waits; None: none."""
        return self._seat.get(player)

    def join(self, ticket: Ticket, *, arriving: bool = True) -> None:
        """Add a ticket. Raises InputError, changing nothing, if the ticket or one of its players is already waiting.

        arriving  False: the ticket returns and does not count as an arrival
        """
        players = [member.player for member in ticket.members]
        self._refuse_doubles([ticket.id], players)
        regions = {region for member in ticket.members for region in member.ping}
        roles = {role for member in ticket.members for role in member.roles}
        if regions or roles:
            self._learn(dict.fromkeys(sorted(regions), 1 / max(len(regions), 1)), sorted(roles))
        self._slot[ticket.id] = JOINING
        self._seat.update(dict.fromkeys(players, ticket.id))
        self._joining[ticket.id] = ticket, arriving

    def settle(self) -> None:
        """Write the tickets that have joined to the columns."""
        joining = self._joining.values()
        if joining:
            self._joining = {}
            for is_arrival in (True, False):
                tickets = [ticket for ticket, arriving in joining if arriving is is_arrival]
                if tickets:
                    self._write(Tickets.of(tickets), arriving=is_arrival)

    def join_all(self, tickets: Tickets, *, arriving: bool = True) -> None:
        """Add all tickets or none, like `join`. Also raises InputError for invalid columns."""
        tickets.check()
        self.settle()
        ids, players = tickets.id.tolist(), tickets.player.tolist()
        self._refuse_doubles(ids, players)
        weights = zip(tickets.region_names, region_weights(tickets.ping < np.inf).tolist(), strict=True)
        self._learn({name: weight for name, weight in weights if weight}, tickets.role_names)
        sizes = np.diff(tickets.start)
        owners = np.repeat(tickets.id, sizes).tolist() if len(players) > len(ids) else ids
        self._seat.update(zip(players, owners, strict=True))
        self._write(tickets, arriving=arriving)

    def _write(self, tickets: Tickets, *, arriving: bool) -> None:
        """Write tickets, whose players are already registered, to the columns."""
        bits, pings = self._bits(tickets)
        count = len(tickets)
        self._make_room(count, len(tickets.player), len(tickets.named))
        slots = self._free[len(self._free) - count :]
        del self._free[len(self._free) - count :]
        taken = np.array(slots, np.int64)
        join(self.tickets, self.members, self.named, bits, taken, self._members, self._named)
        if self.region_names:
            self.ping[taken] = pings
        self.choices.add(taken, tickets, self._slot.values())
        self._members += len(tickets.player)
        self._named += len(tickets.named)
        self._slot.update(zip(tickets.id.tolist(), slots, strict=True))
        self._fresh.append(taken)
        if arriving and count:
            self._since = min(self._since, int(tickets.queued.min()))
            count_arrivals(self.arrivals, self.arrival_stamps, bits, ARRIVAL_SPAN)

    def leave(self, ticket: int) -> None:
        """Remove a ticket. Raises InputError if it is not waiting."""
        if ticket not in self._slot:
            raise InputError(f"ticket {ticket} is not waiting here; expected a waiting ticket")
        slot = self._slot.pop(ticket)
        if slot == JOINING:
            for member in self._joining.pop(ticket)[0].members:
                del self._seat[member.player]
            return
        left = self.tickets[slot]
        first, size = int(left["first"]), int(left["size"])
        for player in self.members["player"][first : first + size].tolist():
            del self._seat[player]
        self._gone += size
        self._forgotten += int(left["named_count"])
        left["alive"] = False
        self._left.append(slot)

    def leave_all(self, tickets: Sequence[int] | Whole) -> None:
        """Remove all tickets or none. Raises InputError if one is not waiting or is given twice."""
        ids = tickets.tolist() if isinstance(tickets, np.ndarray) else list(tickets)
        slots = self._slots(ids)
        left = self.tickets[slots]
        for ticket in ids:
            del self._slot[ticket]
        for player in self.members["player"][rows_of(left["first"], left["size"])].tolist():
            del self._seat[player]
        self._gone += int(left["size"].sum())
        self._forgotten += int(left["named_count"].sum())
        self.tickets["alive"][slots] = False
        self._left += slots

    def take(self, tickets: Sequence[int] | Whole) -> Tickets:
        """Remove tickets and return them as columns that can join this or another queue."""
        columns = self.tickets_of(tickets)
        self.leave_all(tickets)
        return columns

    def tickets_of(self, tickets: Sequence[int] | Whole) -> Tickets:
        """Return tickets as columns, in this order. Raises InputError if one is not waiting."""
        ids = tickets.tolist() if isinstance(tickets, np.ndarray) else list(tickets)
        slots = np.array(self._slots(ids), np.int64)
        t = self.tickets[slots]
        m = self.members[rows_of(t["first"], t["size"])]
        n = self.named[rows_of(t["named_first"], t["named_count"])]
        regions = len(self.region_names)
        ping = self.ping[slots, :regions]
        able = t["able"][:, None] >> np.arange(regions, dtype=np.uint64) & np.uint64(1) == 1
        ping[~able] = np.inf
        ping[t["able"] == ANYWHERE] = np.nan
        return Tickets(
            id=t["id"].copy(),
            queued=t["queued"].copy(),
            start=starts(t["size"]),
            player=m["player"].copy(),
            percentile=m["percentile"].copy(),
            rating=m["rating"].copy(),
            within=m["within"].copy(),
            loose=m["loose"].copy(),
            newcomer=m["newcomer"].copy(),
            roles=m["roles"].copy(),
            ping=ping,
            named_start=starts(t["named_count"]),
            named=n["player"].copy(),
            met=n["met"].copy(),
            region_names=tuple(self.region_names),
            role_names=tuple(self.role_names),
            choice=self.choices.row[slots],
            choices=tuple(self.choices.known),
        )

    def order(self) -> Whole:
        """The slots of all tickets, sorted by lowest percentile, time and id."""
        self.settle()
        self._merge()
        return self._order

    def _merge(self) -> None:
        """Update the order and free the slots of removed tickets."""
        if self._fresh or self._left:
            t = self.tickets
            fresh = np.concatenate((np.empty(0, np.int64), *self._fresh))
            lows = t["low"][fresh]
            by_low = np.argsort(lows)
            lows = lows[by_low]
            if (lows[1:] == lows[:-1]).any():
                by_low = np.lexsort((t["id"][fresh], t["queued"][fresh], t["low"][fresh]))
            out = np.empty(len(self._order) + len(fresh), np.int64)
            count = merge(self._order, fresh[by_low], t, out)
            self._order = out[:count].copy() if count < len(out) // 2 else out[:count]
            self._free += self._left
            self._fresh, self._left = [], []

    def arrivals_a_second(self, now: int) -> Floats:
        """Players per second who joined in the last ten minutes, by percentile bin; float64 (100,)."""
        self.settle()
        stamps = self.arrival_stamps
        recent = (stamps > max(now // ARRIVAL_SPAN - ARRIVAL_ROWS, -1)) & (stamps <= now // ARRIVAL_SPAN)
        first = max(self._since // ARRIVAL_SPAN, now // ARRIVAL_SPAN - ARRIVAL_ROWS + 1)
        seconds = max(now - first * ARRIVAL_SPAN, ARRIVAL_SPAN) / SECOND
        return np.asarray(self.arrivals[recent].sum(axis=0) / seconds)

    def _slots(self, ids: list[int]) -> list[int]:
        self.settle()
        try:
            slots = [self._slot[ticket] for ticket in ids]
        except (KeyError, TypeError) as error:
            raise InputError(f"ticket {error.args[0]} is not waiting here; expected a waiting ticket") from None
        if len(set(slots)) < len(slots):
            raise InputError("a ticket is given twice; expected each one once")
        return slots

    def _refuse_doubles(self, ids: list[int], players: list[int]) -> None:
        if not self._slot.keys().isdisjoint(ids) or len(set(ids)) < len(ids):
            double = _first_double(ids, self._slot)
            raise InputError(f"ticket {double} is already waiting; expected an unused ticket number")
        if not self._seat.keys().isdisjoint(players) or len(set(players)) < len(players):
            double = _first_double(players, self._seat)
            where = f", in ticket {self._seat[double]}" if double in self._seat else ""
            raise InputError(f"player {double} is already waiting{where}; expected others")

    def _bits(self, tickets: Tickets) -> tuple[Joining, Floats]:
        """The columns with this queue's role and region bits, and the pings to its regions."""
        pings, able = pings_of(tickets, self.region_names)
        roles = tickets.roles
        bit = [self.role_names.index(name) for name in tickets.role_names]
        if bit != list(range(len(bit))):
            roles = _moved(roles, bit)
        joining = Joining(
            *(tickets.id, tickets.queued, tickets.start, tickets.player, tickets.percentile, tickets.rating),
            *(tickets.within, tickets.loose, tickets.newcomer, roles, able),
            *(tickets.named_start, tickets.named, tickets.met),
        )
        return joining, pings

    def _learn(self, regions: Mapping[str, float], roles: Sequence[str]) -> None:
        """Assign bits to new region and role names. Raises InputError, changing nothing, if there are too many.

        regions  the weight of each among the joining tickets, see `region_weights`; in a full queue, a region takes the
                 place of one with less weight, which is then removed from the waiting tickets
        """
        fresh = [name for name in regions if name not in self.region_names]
        others = [name for name in roles if name not in self.role_names]
        if others and len(self.role_names) + len(others) > MOST_ROLES:
            raise too_many("roles", others, MOST_ROLES)
        lacking = len(self.region_names) + len(fresh) - MOST_REGIONS
        if fresh and lacking > 0:
            self._replace_regions(fresh, lacking, regions)
        self.role_names += others
        if fresh := [name for name in fresh if name not in self.region_names]:
            self.region_names += fresh
            wider = np.full((len(self.ping), len(self.region_names)), np.inf)
            wider[:, : self.ping.shape[1]] = self.ping
            self.ping = wider

    def _replace_regions(self, fresh: Sequence[str], lacking: int, joining: Mapping[str, float]) -> None:
        """Give the places of `lacking` known regions to the first of the fresh ones. Raises InputError."""
        self.settle()
        able = self.tickets["able"]
        waiting = able[np.fromiter(self._slot.values(), np.int64)]
        places = replaceable(fresh, lacking, self.region_names, waiting, joining)
        for place, name in zip(places.tolist(), fresh, strict=False):
            self.region_names[place] = name
        self.ping[:, places] = np.inf
        able[able != ANYWHERE] &= ~np.bitwise_or.reduce(np.uint64(1) << places.astype(np.uint64))

    def _make_room(self, tickets: int, members: int, named: int) -> None:
        if len(self._free) < tickets:
            self._merge()
        if len(self._free) < tickets:
            old_size = len(self.tickets)
            size = max(2 * old_size, old_size + tickets)
            self.tickets, self.ping = _grown(self.tickets, size), _grown(self.ping, size)
            self.choices.grow(size)
            self._free = [*range(size - 1, old_size - 1, -1), *self._free]
        if self._members + members > len(self.members):
            self.members, self._members, self._gone = self._pool(
                self.members, "first", "size", self._members, self._gone, members
            )
        if self._named + named > len(self.named):
            self.named, self._named, self._forgotten = self._pool(
                self.named, "named_first", "named_count", self._named, self._forgotten, named
            )

    def _pool(
        self, pool: Records, first: str, count: str, used: int, gone: int, wanted: int
    ) -> tuple[Records, int, int]:
        """Make room in a pool and drop rows of removed tickets. Returns (pool, used rows, removed rows among them)."""
        if gone > used // 2:
            slots = np.fromiter((slot for slot in self._slot.values() if slot != JOINING), np.int64)
            t = self.tickets[slots]
            rows = rows_of(t[first], t[count])
            pool[: len(rows)] = pool[rows]
            self.tickets[first][slots] = starts(t[count])[:-1]
            used, gone = len(rows), 0
        if used + wanted > len(pool):
            pool = _grown(pool, max(2 * len(pool), used + wanted))
        return pool, used, gone


def _first_double(numbers: list[int], known: Mapping[int, int]) -> int:
    """The first number that is already known or occurs twice."""
    seen: set[int] = set()
    for number in numbers:
        if number in known or number in seen:
            return number
        seen.add(number)
    raise AssertionError("no duplicate")


def _grown(column: np.ndarray, size: int) -> np.ndarray:
    grown = np.zeros((size, *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown


def _moved(masks: Masks, bit: list[int]) -> Masks:
    """Move bit i of each mask to position bit[i]."""
    moved = np.zeros(len(masks), np.uint64)
    for source, target in enumerate(bit):
        moved |= (masks >> np.uint64(source) & np.uint64(1)) << np.uint64(target)
    return moved
