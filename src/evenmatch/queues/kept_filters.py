"""Filters that players store on a ladder. They apply when a player joins and can be changed while the player waits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenmatch.attributes import MAP
from evenmatch.errors import ConflictError, UnknownNameError
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.ledger.store import Head, Store
from evenmatch.live.slots import seat_on
from evenmatch.matchmaking import Policy
from evenmatch.matchmaking.attributes import check_declared, declared_values
from evenmatch.players import players as players_rows
from evenmatch.queues import queue_sql, stored_queues
from evenmatch.queues.parties import QueueFilter, check_party
from evenmatch.queues.queue_sql import Party
from evenmatch.queues.requests import Join


def read(store: Store, ladder: int, players: Sequence[int]) -> dict[int, QueueFilter]:
    """The stored filters of these players by id. Players without one are omitted."""
    stored = queue_sql.read_filters(store, ladder, players)
    return {player: QueueFilter.from_data(json.loads(body)) for player, body in stored.items()}


def completed(
    join: Join, ids: Mapping[str, int], kept: Mapping[int, QueueFilter], policies: Mapping[str, Policy]
) -> Join:
    """The join with missing values taken from the players' stored filters, or else from the defaults.

    Attributes and vetoes that none of the joined queues declares are dropped. policies: by queue
    """
    members = []
    for member in join.members:
        own = kept[ids[member.name]] if ids.get(member.name) in kept else QueueFilter()
        members.append(
            replace(
                member,
                within=own.within if member.within is None else member.within,
                loose=own.loose if member.loose is None else member.loose,
                regions=own.regions if member.regions is None else member.regions,
                max_ping=own.max_ping if member.max_ping is None else member.max_ping,
                attributes=_declared((own if member.attributes is None else member).attributes or {}, policies),
                vetoes=_known_maps((own if member.vetoes is None else member).vetoes or (), policies),
            )
        )
    return replace(join, members=tuple(members))


def _declared(attributes: Mapping[str, Sequence[str]], policies: Mapping[str, Policy]) -> dict[str, tuple[str, ...]]:
    """The declared values of attributes. An attribute with only unknown values is returned whole, to be refused."""
    known = {name: declared_values(policies, name) for name in attributes}
    return {
        name: tuple(value for value in values if value in known[name]) or tuple(values)
        for name, values in attributes.items()
        if known[name]
    }


def _known_maps(vetoes: Sequence[str], policies: Mapping[str, Policy]) -> tuple[str, ...]:
    maps = declared_values(policies, MAP)
    return tuple(veto for veto in vetoes if veto in maps)


def change(store: Store, head: Head, name: str, chosen: QueueFilter | None) -> list[int]:
    """Store a player's filter, or delete it if it is None, and apply it to the ticket in which the player waits.

    Returns the changed tickets, which keep their place in the queue. Raises ConflictError for a player who neither has
    played on the ladder nor waits there. Raises InputError, changing nothing, if the party could play nowhere with this
    filter, or if no queue of the ladder declares a value that it names.
    """
    ladder = head.ladder
    try:
        player = players_rows.find_in_use(store, head, name)
    except UnknownNameError:
        if chosen is None:
            return []
        raise ConflictError(
            f"player {name!r} has not played on ladder {head.name!r} and waits in none of its queues, so no filter can "
            "be stored yet; send it with the request to join a queue"
        ) from None
    policies = {queue: setup.policy for queue, setup in stored_queues.read(store, ladder).items()}
    if chosen is None:
        queue_sql.delete_filter(store, ladder, player)
    else:
        check_declared(f"player {name!r}", chosen, policies)
        queue_sql.put_filter(store, ladder, player, json.dumps(chosen.to_data(), sort_keys=True))
    seat = seat_on(store, ladder, player)
    if seat is None or seat.ticket is None:
        return []
    number = reserve_changes(store, ladder, 1)
    row = queue_sql.read_tickets(store, ladder, [seat.ticket])[seat.ticket]
    own = {queue: policy for queue, policy in policies.items() if queue in row.party.queues}
    party = _with_filter(row.party, player, QueueFilter() if chosen is None else chosen, own)
    check_party(party, own)
    queue_sql.set_party(store, ladder, row.ticket, party, number)
    return [row.ticket]


def _with_filter(party: Party, player: int, chosen: QueueFilter, policies: Mapping[str, Policy]) -> Party:
    members = []
    for member in party.members:
        changed = member.copy()
        if member["id"] == player:
            changed["within"], changed["loose"] = chosen.within, chosen.loose
            changed["regions"], changed["max_ping"] = list(chosen.regions), chosen.max_ping
            changed["attributes"] = {
                name: list(values) for name, values in _declared(chosen.attributes, policies).items()
            }
            changed["vetoes"] = list(_known_maps(chosen.vetoes, policies))
        members.append(changed)
    return replace(party, members=tuple(members))
