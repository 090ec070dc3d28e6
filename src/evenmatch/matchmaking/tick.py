"""The state of one tick: free tickets, the matches created so far, the cells of attributes, and the choice of a map.

A cell is a combination of one value of each attribute and one map. All tickets of a match accept one cell.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from evenmatch.attributes import MAP
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.attributes import AttributeField, Fields, agree, fields_of
from evenmatch.matchmaking.balance import companions, divide
from evenmatch.matchmaking.match_details import line_ups
from evenmatch.matchmaking.odds import DIGITS, LineUps, exceeds, predicted_odds
from evenmatch.matchmaking.passes import EVERYWHERE, MatchRegions, TicketWindows, make_matches
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.records import KernelRules, QueueView, Records
from evenmatch.matchmaking.tickets import ANYWHERE, Masks, Whole, starts
from evenmatch.matchmaking.view import role_room, rules_of
from evenmatch.policy import Policy

REMEMBERED = 100  # latest matches of a queue on which the choice of a map depends
ROUNDS = 4  # latest matches for each accepted map, in which none is played too often
NEAR = 0.01  # by how much the favourite's chance may exceed that on the most even map

_WORD = (1 << 64) - 1


def choose_map(
    maps: Sequence[str], played: Sequence[str], seed: int, number: int, favourite: Sequence[float] | None = None
) -> str:
    """Choose one of the maps that all players of a match accept.

    played     the maps of the queue's latest matches, the latest last;  number  of the match, different for each
    favourite  the highest predicted score of a team on each map, 0..1; None: the odds do not matter
    A map's chance is proportional to the number of matches since it was last played. So maps alternate in an
    unpredictable order, and without vetoes all have equal shares over time. With `favourite` only the most even maps
    take part, those within a percentage point of the lowest score; but first maps are left out that were played too
    often: n + 1 matches may not be more than twice the m + 1 of another map, where n and m are numbers of matches among
    the latest 4 * len(maps).
    """
    latest = played[-REMEMBERED:]
    if favourite is not None:
        maps = _most_even(maps, latest[-ROUNDS * len(maps) :], favourite)
    last = {name: place for place, name in enumerate(latest)}
    waiting = [len(latest) - last.get(name, -1) for name in maps]
    drawn = _hash(seed, number) % sum(waiting)
    for name, weight in zip(maps, waiting, strict=True):
        if drawn < weight:
            return name
        drawn -= weight
    raise AssertionError("the draw exceeds the sum of the weights")


def _most_even(maps: Sequence[str], latest: Sequence[str], favourite: Sequence[float]) -> Sequence[str]:
    """The most even of the maps that have not been played too often."""
    count = Counter(latest)
    most = 2 * min(count[name] + 1 for name in maps)
    scores = {name: score for name, score in zip(maps, favourite, strict=True) if count[name] + 1 <= most}
    return [name for name, score in scores.items() if score <= min(scores.values()) + NEAR]


def shuffled(count: int, seed: int, number: int) -> list[int]:
    """The numbers from 0 to `count` - 1 in an order that depends only on seed and number."""
    return sorted(range(count), key=lambda place: (_hash(seed, number, place + 1), place))


def _hash(*numbers: int) -> int:
    """A 64-bit hash of numbers (splitmix64; Steele, Lea and Flood 2014)."""
    state = 0
    for number in numbers:
        state = (state ^ number & _WORD) + 0x9E3779B97F4A7C15 & _WORD
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _WORD
        state ^= state >> 31
    return state


class _Holders(NamedTuple):
    """A cell of some of the fields, and the set of masks that accept it, as bits of an integer."""

    cell: int
    masks: int


def cells_of(accepts: Masks, fields: Fields, policy: Policy, now: int) -> Masks:
    """The cells worth searching, as masks with one bit in every field.

    The tickets of any allowed match all accept one of these cells. Cells with fewer tickets than a match has teams are
    left out. Cells without waived attributes come first, then maps in an order that changes with time, then cells with
    few tickets, which have no other choice.
    """
    if not fields:
        return np.zeros(1, np.uint64)
    masks, count = np.unique(accepts, return_counts=True)
    everyone = (1 << len(masks)) - 1
    partial = [_Holders(0, everyone)]
    for field in fields:
        bits = [field.first + place for place in range(field.bits.bit_count())]
        holding = {1 << bit: _as_bits(masks >> np.uint64(bit) & np.uint64(1) == 1) for bit in bits}
        partial = [
            _Holders(holders.cell | bit, own)
            for holders in partial
            for bit, own in _distinct(field, {bit: own & holders.masks for bit, own in holding.items()})
        ]
    waived = sum(field.waived for field in fields)
    rank = _map_ranks(fields, policy, now)
    cells = []
    for holders in partial:
        tickets = int(count[_as_flags(holders.masks, len(masks))].sum())
        if tickets >= policy.teams:
            map_rank = min((rank[bit] for bit in rank if holders.cell & bit), default=0)
            cells.append(((holders.cell & waived).bit_count(), map_rank, tickets, holders.cell))
    return np.array([cell for *_, cell in sorted(cells)], np.uint64)


def _distinct(field: AttributeField, holding: dict[int, int]) -> Iterator[tuple[int, int]]:
    """The values of a field, without those whose tickets all accept another value.

    All maps that different tickets accept stay. Otherwise a map without vetoes would always be played.
    """
    seen = set[int]()
    for bit, own in holding.items():
        if not own or own in seen:
            continue
        seen.add(own)
        if field.name != MAP and any(
            own != other and own & other == own and value != field.waived for value, other in holding.items()
        ):
            continue
        yield bit, own


def _map_ranks(fields: Fields, policy: Policy, now: int) -> dict[int, int]:
    """The place of each map in the present order, by its bit."""
    field = fields[-1]
    if field.name != MAP:
        return {}
    order = shuffled(len(field.values), policy.map_seed, now)
    return {1 << (field.first + place): rank for rank, place in enumerate(order)}


def _as_bits(flags: Flags) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _as_flags(bits: int, count: int) -> Flags:
    packed = np.frombuffer(bits.to_bytes((count + 7) // 8, "little"), np.uint8)
    return np.unpackbits(packed, bitorder="little")[:count].astype(np.bool_)


TRIES = 8  # searches in one tick, at most, while matches are refused for their odds
NEAREST = 256  # distance in the order within which tickets are searched first, or again


class TickState:
    """The state of one tick: the tickets that are still free and the matches created so far."""

    def __init__(self, queue: Queue, view: QueueView, now: int, policy: Policy) -> None:
        self.view, self.now, self.policy = view, now, policy
        fields = fields_of(policy)
        self.free = (view.t["able"] > 0) & agree(view.accepts, fields)
        self.cells = cells_of(view.accepts[self.free], fields, policy, now)
        self.made: list[tuple[Whole, Whole, Whole, Floats]] = []  # start, ticket, team, odds
        # cost in seconds per point between the teams' means, from the slope of Elo's curve at 0.5; rounded like odds
        self.gap_cost = round(25 * math.log(10) * policy.odds_cost / policy.odds_scale, DIGITS)
        self.places = _places(queue, view.t)
        self.windows = TicketWindows(*(np.ascontiguousarray(view.t[name]) for name in TicketWindows._fields))

    def matches(self) -> tuple[Whole, Whole, Whole, Floats]:
        """All created matches: first ticket of each, places in the view, teams, odds."""
        none = np.empty(0, np.int64)
        sizes = np.concatenate((none, *(np.diff(start) for start, *_ in self.made)))
        ticket = np.concatenate((none, *(ticket for _, ticket, _, _ in self.made)))
        team = np.concatenate((none, *(team for _, _, team, _ in self.made)))
        odds = np.concatenate((np.empty(0), *(odds for *_, odds in self.made)))
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))), ticket, team, odds

    def serve(self, size: int) -> None:
        """Create matches with teams of `size`.

        If the odds of a match are refused, its two tickets with the largest difference in rating are kept apart for the
        rest of the tick, and the search is repeated near them, at most TRIES times.
        """
        t, policy = self.view.t, self.policy
        able = t["size"] <= size
        if size < policy.team_size:
            able &= t["waited"] >= policy.smaller_after
        rules, room = rules_of(policy, self.now, size), role_room(policy, size)
        near = np.ones(len(t), np.bool_)
        for _ in range(TRIES):
            taken = ~(self.free & able & near)
            start, ticket = make_matches(self.view, self.windows, self.places, self.cells, taken, rules, room)
            good = self.make(start, ticket, rules)
            if good.all():
                return
            refused = [ticket[start[match] : start[match + 1]] for match in np.flatnonzero(~good)]
            self.view = _kept_apart(self.view, np.array([_farthest(t, match) for match in refused]))
            near = _around(np.concatenate(refused), len(t))

    def make(self, start: Whole, ticket: Whole, rules: KernelRules) -> Flags:
        """Divide matches into teams, keep those within the odds cap, and return the mask of the kept ones."""
        team, odds, good = self.divided(start, ticket, rules)
        in_good = np.repeat(good, np.diff(start))
        sizes = np.diff(start)[good]
        self.made.append(
            (np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))), ticket[in_good], team[in_good], odds[good])
        )
        self.free[ticket[in_good]] = False
        return good

    def divided(self, start: Whole, ticket: Whole, rules: KernelRules) -> tuple[Whole, Floats, Flags]:
        """The team of each ticket, the odds of each match, and the mask of the allowed matches."""
        table = companions(rules.size) if rules.teams == 2 else companions(1)
        team = np.zeros(len(ticket), np.int64)
        good = divide(self.view, rules, role_room(self.policy, rules.size), start, ticket, table, self.gap_cost, team)
        odds, divided = np.full(len(good), np.nan), good > 0
        odds[divided] = predicted_odds(
            self.policy, LineUps(rules.teams, *line_ups(self.view, rules.teams, start, ticket, team, good))
        )
        return team, odds, divided & ~exceeds(odds, self.policy)


def _farthest(t: Records, match: Whole) -> tuple[int, int]:
    """The two tickets of a match whose mean ratings are farthest apart."""
    rating = t["rating_sum"][match] / t["size"][match]
    return int(match[rating.argmin()]), int(match[len(match) - 1 - rating[::-1].argmax()])


def _kept_apart(view: QueueView, pairs: Whole) -> QueueView:
    """A copy of the view in which these pairs of tickets, int64 (K, 2), must not meet as well."""
    count = len(view.t)
    owner = np.concatenate((np.repeat(np.arange(count), np.diff(view.apart_start)), pairs[:, 0], pairs[:, 1]))
    other = np.concatenate((view.apart, pairs[:, 1], pairs[:, 0]))
    order = np.argsort(owner, kind="stable")
    return view._replace(apart_start=starts(np.bincount(owner, minlength=count)), apart=other[order])


def _around(places: Whole, count: int) -> Flags:
    """Mask of the places within NEAREST of any of these."""
    change = np.zeros(count + 1, np.int64)
    np.add.at(change, np.maximum(places - NEAREST, 0), 1)
    np.add.at(change, np.minimum(places + NEAREST + 1, count), -1)
    near: Flags = np.cumsum(change[:-1]) > 0
    return near


def _places(queue: Queue, t: Records) -> MatchRegions:
    """The regions where at least one ticket can play, and the home region of each ticket."""
    able = t["able"][t["able"] != ANYWHERE]
    names = sorted(enumerate(queue.region_names), key=lambda region: region[1])
    region = np.array([bit for bit, _ in names if (able >> np.uint64(bit) & np.uint64(1)).any()], np.int64)
    home = np.full(len(t), EVERYWHERE, np.int64)
    if len(region):
        can = t["able"][:, None] >> region.astype(np.uint64) & np.uint64(1) == 1
        best = np.where(can, queue.ping[t["slot"]][:, region], np.inf).argmin(axis=1)
        home = np.where(t["able"] == ANYWHERE, EVERYWHERE, region[best])
    return MatchRegions(region, home)
