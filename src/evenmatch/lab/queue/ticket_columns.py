"""Selection and concatenation of ticket columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from evenmatch.history import Floats
from evenmatch.matchmaking.tickets import Masks, TicketChoice, Tickets, Whole, rows_of, starts

MEMBERS = ("player", "percentile", "rating", "within", "loose", "deviation", "newcomer", "roles")


def pick(tickets: Tickets, rows: Whole) -> Tickets:
    """Select these rows, in this order; rows may repeat."""
    sizes, names = np.diff(tickets.start)[rows], np.diff(tickets.named_start)[rows]
    member, name = rows_of(tickets.start[rows], sizes), rows_of(tickets.named_start[rows], names)
    return replace(
        tickets,
        id=tickets.id[rows],
        queued=tickets.queued[rows],
        start=starts(sizes),
        ping=tickets.ping[rows],
        named_start=starts(names),
        named=tickets.named[name],
        met=tickets.met[name],
        choice=tickets.choice[rows] if len(tickets.choice) else tickets.choice,
        **{column: getattr(tickets, column)[member] for column in MEMBERS},
    )


def append(parts: Sequence[Tickets]) -> Tickets:
    """Concatenate tickets; the result has the regions and roles of all parts."""
    regions = tuple(dict.fromkeys(name for part in parts for name in part.region_names))
    roles = tuple(dict.fromkeys(name for part in parts for name in part.role_names))
    none = np.empty(0, np.int64)
    choices = {
        choice: row for row, choice in enumerate(dict.fromkeys(choice for part in parts for choice in _choices(part)))
    }
    return Tickets(
        **{
            column: np.concatenate([getattr(part, column) for part in parts]) if parts else none.astype(kind)
            for column, kind in _KINDS.items()
        },
        start=starts(np.concatenate([none, *(np.diff(part.start) for part in parts)])),
        named_start=starts(np.concatenate([none, *(np.diff(part.named_start) for part in parts)])),
        ping=np.concatenate([np.empty((0, len(regions))), *(_pings(part, regions) for part in parts)]),
        roles=np.concatenate([np.empty(0, np.uint64), *(_roles(part, roles) for part in parts)]),
        region_names=regions,
        role_names=roles,
        choice=np.concatenate([none, *(_choice(part, choices) for part in parts)]),
        choices=tuple(choices),
    )


def _choices(tickets: Tickets) -> tuple[TicketChoice, ...]:
    return tickets.choices if len(tickets.choice) else (TicketChoice(),)


def _choice(tickets: Tickets, rows: Mapping[TicketChoice, int]) -> Whole:
    """The rows of these choices for each ticket."""
    if not len(tickets.choice):
        return np.full(len(tickets), rows[TicketChoice()])
    return np.array([rows[choice] for choice in tickets.choices], np.int64)[tickets.choice]


_KINDS = {
    **dict.fromkeys(("id", "queued", "player", "named", "met"), np.int64),
    **dict.fromkeys(("percentile", "rating", "within", "deviation"), np.float64),
    **dict.fromkeys(("loose", "newcomer"), np.bool_),
}


def _pings(tickets: Tickets, names: tuple[str, ...]) -> Floats:
    """Pings to regions of these names: inf for regions a ticket lacks, NaN for tickets that play anywhere."""
    if tickets.region_names == names:
        return tickets.ping
    pings = np.full((len(tickets), len(names)), np.inf)
    for index, name in enumerate(tickets.region_names):
        pings[:, names.index(name)] = tickets.ping[:, index]
    pings[np.isnan(tickets.ping).all(axis=1)] = np.nan
    return pings


def _roles(tickets: Tickets, names: tuple[str, ...]) -> Masks:
    if tickets.role_names == names[: len(tickets.role_names)]:
        return tickets.roles
    masks = np.zeros(len(tickets.roles), np.uint64)
    for index, name in enumerate(tickets.role_names):
        bit = tickets.roles >> np.uint64(index) & np.uint64(1)
        masks |= bit << np.uint64(names.index(name))
    return masks
