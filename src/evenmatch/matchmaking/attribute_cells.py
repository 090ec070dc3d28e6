"""Cells: one value of each attribute and a map. A match is searched among the tickets that accept a cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from evenmatch.attributes import MAP
from evenmatch.history import Flags
from evenmatch.matchmaking.attribute_fields import AttributeField, Fields
from evenmatch.matchmaking.map_choice import shuffled
from evenmatch.matchmaking.tickets import Masks
from evenmatch.policy import Policy


class _Holders(NamedTuple):
    """A partial cell, and the set of the masks that accept it, as bits of an integer."""

    cell: int
    masks: int


def cells_of(accepts: Masks, fields: Fields, policy: Policy, now: int) -> Masks:
    """The cells worth searching, as masks with one bit in every field.

    Every match of tickets with these masks that is allowed has a cell in which all its tickets are, except cells with
    fewer tickets than teams. Cells with agreement come first, then those of the maps in an order that changes with
    time, then those with the fewest tickets, who have no other choice.
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
    """The values of a field without those whose tickets all accept another value, too.

    Maps that different tickets accept all stay, or one without any veto would always be played.
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
    """The place of each map in the order of this moment, by its bit."""
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
