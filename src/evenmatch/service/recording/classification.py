"""Which matches of a batch are new, which were sent again, and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from evenmatch.errors import BadRowsError, ConflictError, DamageError, EvenmatchError, InputError, RowProblem
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import events, player_identities
from evenmatch.service.name_rule import NameRule
from evenmatch.service.recording.ledger_append import Batch, in_future
from evenmatch.service.recording.other_sizes import other_sizes
from evenmatch.service.settings import Settings

Value = TypeVar("Value")


def classify(
    store: Store, head: Head, plan: Plan, batch: Batch, known: Mapping[str, tuple[int, bytes]], now: int
) -> tuple[list[int], list[int], dict[int, EvenmatchError]]:
    """Indices of new matches, indices of repeated ones with the same content, and errors of rejected ones by index."""
    incomparable = each_apart(partial(_incomparable, store, head), list(known))
    refused: dict[int, str] = {}
    for number, reason in plan.last_rules.system.refusals(batch.history.columns, plan.last_rules.parameters):
        refused.setdefault(number, reason)
    outcomes: dict[int, EvenmatchError] = {}
    first: dict[str, int] = {}
    again = []
    for index, (match_id, digest) in enumerate(zip(batch.ids, batch.digests, strict=True)):
        if match_id in incomparable:
            outcomes[index] = incomparable[match_id]
        elif match_id in known or match_id in first:
            recorded = known[match_id][1] if match_id in known else batch.digests[first[match_id]]
            if recorded == digest:
                again.append(index)
            else:
                outcomes[index] = _conflict(match_id, head.name)
        elif late := in_future(int(batch.played_at[index]), now):
            outcomes[index] = InputError(f"match {match_id!r}: {late}")
        elif index in refused and batch.rated[index]:
            outcomes[index] = _refused(match_id, refused[index])
        else:
            first[match_id] = index
    return list(first.values()), again, outcomes


def size_refusals(settings: Settings, batch: Batch, new: Sequence[int]) -> dict[int, BadRowsError]:
    """The errors of those of these matches that the ladder's rule about sizes of teams refuses, by index."""
    if settings.other_sizes != "refuse":
        return {}
    odd = other_sizes(settings, batch.history.columns, batch.rated)
    return {index: _refused(batch.ids[index], odd[index].refusal) for index in new if index in odd}


def name_refusals(
    store: Store, head: Head, settings: Settings, batch: Batch, new: Sequence[int]
) -> dict[int, BadRowsError]:
    """The errors of those of these matches that the ladder's rule about names refuses, by index."""
    if settings.names != "refuse" or not new:
        return {}
    slots, players = batch.history.match_slots, batch.history.columns.player.tolist()
    names = {index: [batch.names[player] for player in players[slots[index] : slots[index + 1]]] for index in new}
    rule = NameRule(store, head, settings, [name for listed in names.values() for name in listed])
    judged = {index: rule.objection(listed) for index, listed in names.items()}
    return {index: _refused(batch.ids[index], objection) for index, objection in judged.items() if objection}


def _refused(match_id: str, reason: str) -> BadRowsError:
    return BadRowsError("the match", [RowProblem(None, match_id, reason)])


def _conflict(match_id: str, ladder: str) -> ConflictError:
    taken = f"match {match_id!r} is on ladder {ladder!r} already, with other content"
    return ConflictError(f"{taken}; send the same content, or choose another id")


def each_apart(
    read: Callable[[Sequence[str]], Mapping[str, Value]], ids: Sequence[str]
) -> dict[str, Value | DamageError]:
    """The values of these matches by id; if one of them is damaged, its error, and the others are read one by one."""
    if not ids:
        return {}
    try:
        return {**read(ids)}
    except DamageError as error:
        if len(ids) == 1:
            return {ids[0]: error}
    values: dict[str, Value | DamageError] = {}
    for match_id in ids:
        values |= each_apart(read, [match_id])
    return values


def _incomparable(store: Store, head: Head, ids: Sequence[str]) -> dict[str, ConflictError]:
    """The errors of those of these recorded matches in which an erased player took part.

    The same answer to any content: a receipt, or a conflict, would tell whether an erased player had a name.
    """
    players = {row[0]: block.ids.tolist() for block, row in events.read_matches(store, head.ladder, ids)}
    erased = player_identities.erased_among(
        store, sorted({player for of_match in players.values() for player in of_match})
    )
    return {
        match_id: ConflictError(
            f"match {match_id!r} is on ladder {head.name!r} already, with a player who was erased since, so it is not "
            "compared with reports any more; if you send it again, nothing is missing; for another match choose "
            "another id"
        )
        for match_id, of_match in players.items()
        if not erased.isdisjoint(of_match)
    }
