"""The state of one queue, as columns updated in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.errors import InputError
from evenmatch.history import Floats
from evenmatch.matchmaking.choice_table import ChoiceTable
from evenmatch.matchmaking.queue_columns import Joining, count_arrivals, join, merge
from evenmatch.matchmaking.queue_regions import pings_of, region_weights, replaceable, too_many
from evenmatch.matchmaking.records import MEMBER, NAMED, TICKET, Records
from evenmatch.matchmaking.ticket import Ticket
from evenmatch.matchmaking.tickets import ANYWHERE, MOST_REGIONS, MOST_ROLES, Masks, Tickets, Whole, rows_of, starts
from evenmatch.matchmaking.wait_record import WaitRecord

SPAN = 30 * SECOND  # time span of one row of arrival counts
ROWS = 20  # number of these rows: ten minutes
BINS = 100  # percentile bins
FIRST = 64  # initial number of slots
JOINING = -1  # marks a ticket that has no slot in the columns yet


class Queue:
    """Tickets that wait for a match of one kind. It has no clock: times are arguments.

    Not thread-safe, even for reading: joined tickets are written and sorted on the next read. Tickets and players are
    identified by number. A player can be in one ticket only. Results do not depend on the order in which tickets
    joined; only the internal numbers of regions and roles do.
    """

    def __init__(self) -> None:
        self.region_names, self.role_names = list[str](), list[str]()
        self.tickets = np.zeros(FIRST, TICKET)  # by slot
        self.ping = np.zeros((FIRST, 0))  # milliseconds, the worst of the members, by slot and region
        self.choices = ChoiceTable(FIRST)
        self.members, self.named = np.zeros(FIRST, MEMBER), np.zeros(FIRST, NAMED)
        self.arrivals, self.arrival_stamps = np.zeros((ROWS, BINS), np.int64), np.full(ROWS, -1, np.int64)
        self._since = 2**62  # time of the first arrival
        self._slot: dict[int, int] = {}  # by ticket
        self._seat: dict[int, int] = {}  # ticket by player
        self._free = list(range(FIRST - 1, -1, -1))
        self._joining: dict[int, tuple[Ticket, bool]] = {}  # by id: (ticket, arriving), not in the columns yet
        self._left: list[int] = []  # slots of removed tickets that `_order` may still contain
        self._fresh: list[Whole] = []  # slots not yet in `_order`
        self._order = np.empty(0, np.int64)
        self.waits = WaitRecord()  # estimated waits: for explanations only
        self._members, self._named = 0, 0  # used rows of the pools, including those of removed tickets
        self._gone, self._forgotten = 0, 0  # rows of removed tickets among them

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
        """The ticket in which this player waits; None: not waiting."""
        return self._seat.get(player)

    def join(self, ticket: Ticket, *, arriving: bool = True) -> None:
        """Add a ticket. Raises InputError, without any change, if it or one of its players is already waiting.

        Joined tickets are written to the columns together on the next read.
        arriving  False: a ticket that returns, not counted as an arrival again
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
        """Write tickets that joined one by one to the columns."""
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
        """Write tickets to slots of the columns; their players are already registered."""
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
            count_arrivals(self.arrivals, self.arrival_stamps, bits, SPAN)

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
        """Remove tickets and return them as columns, ready to join this or another queue."""
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
            deviation=m["deviation"].copy(),
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
        """The slots of all tickets, ascending by lowest percentile, then by time, then by id."""
        self.settle()
        self._merge()
        return self._order

    def _merge(self) -> None:
        """Update the order from the columns and free the slots of removed tickets."""
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
        """Players per second who joined in each percentile bin over the last ten minutes; float64 (100,)."""
        self.settle()
        stamps = self.arrival_stamps
        recent = (stamps > max(now // SPAN - ROWS, -1)) & (stamps <= now // SPAN)
        return np.asarray(self.arrivals[recent].sum(axis=0) / self.known_for(now))

    def known_for(self, now: int) -> float:
        """Seconds over which arrivals are known, at most ten minutes."""
        return max(now - max(self._since // SPAN, now // SPAN - ROWS + 1) * SPAN, SPAN) / SECOND

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
        """The columns with role and region bits as numbered by this queue, and pings by its regions."""
        pings, able = pings_of(tickets, self.region_names)
        roles = tickets.roles
        bit = [self.role_names.index(name) for name in tickets.role_names]
        if bit != list(range(len(bit))):
            roles = _moved(roles, bit)
        joining = Joining(
            *(tickets.id, tickets.queued, tickets.start, tickets.player, tickets.percentile, tickets.rating),
            *(tickets.within, tickets.loose, tickets.deviation, tickets.newcomer, roles, able),
            *(tickets.named_start, tickets.named, tickets.met),
        )
        return joining, pings

    def _learn(self, regions: Mapping[str, float], roles: Sequence[str]) -> None:
        """Assign bits to new region and role names. Raises InputError, without any change, if there are too many.

        regions  the weight of each among the joining tickets, see `region_weights`; in a full queue it takes the place
                 of a region of less weight, which the waiting tickets then do not name any more
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
        """Give the places of `lacking` other regions to the first of the fresh ones. Raises InputError."""
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
        """Make room in a pool, dropping rows of removed tickets; returns (pool, used rows, removed rows among them)."""
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
    """The first number that is known or occurs twice."""
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
