"""Changes to a player on all ladders: rename, merge, erase; and starting ratings on one ladder."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence

import numpy as np

from evenmatch.errors import ConflictError, InputError
from evenmatch.ledger.block_rating import finish
from evenmatch.ledger.codec import without_minus_zero
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import PlannedStart
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import appearances, corrections, events, jobs, player_identities, player_states
from evenmatch.ledger.text import check_text
from evenmatch.service.corrections import first_match, preview
from evenmatch.service.ladders import PlannedCorrection, correct
from evenmatch.service.name_rule import check_names
from evenmatch.standings.activity import NEVER

NAMED_TWICE = (
    "a match that is reported with two of the player's names from now on is recorded, but not rated: "
    "a player cannot play twice in a match"
)


def rename(store: Store, name: str, to: str, now: int) -> bool:
    """Give a player another name; the old one stays an alias. Return False if it is already their name.

    Raises UnknownNameError, ConflictError if another player has the new name or this one was erased, InputError if the
    rule of one of the player's ladders refuses it, or DamageError if the player is lost.
    """
    check_text("the new name", to, blank=False)
    player_identities.hold_names(store)
    player = player_identities.find(store, name)
    if player_identities.is_erased(store, player):
        raise ConflictError(f"{name!r} is an erased player, who cannot be renamed")
    if player_identities.names_to_write(store, [player])[player] == to:
        return False
    heads = _lock_all(store, player)
    for head in heads:
        check_names(store, head, [to], player=player)
    player_identities.rename(store, player, to)
    for head in heads:
        correct(store, head, Kind.RENAMED, {"player": player}, _id("rename"), now, since=None)
    return True


def foresee_merge(store: Store, name: str, into: str) -> None:
    """Raise what `merge` would raise, and InputError if a rating would leave the range of a ladder's system."""
    old, new = _two(store, name, into)
    heads = [store.head(ladder) for ladder in player_identities.ladders_of(store, old)]
    _refuse_merge(store, old, new, name, into)
    for head in heads:
        preview(
            store,
            head,
            PlannedCorrection(Kind.MERGED, {"player": old, "into": new}, _first_trace(store, head, old), "merged"),
        )


def merge(store: Store, name: str, into: str, now: int) -> list[str]:
    """Merge a player into another, as if `into` had played all matches of both. Return the names of their ladders.

    These ladders are then due for a rebuild. Raises ConflictError if the two met in a match, or one of them is banned
    or erased.
    """
    player_identities.hold_names(store)
    old, new = _two(store, name, into)
    heads = _lock_all(store, old)
    _refuse_merge(store, old, new, name, into)
    for head in heads:
        since = _first_trace(store, head, old)
        correct(store, head, Kind.MERGED, {"player": old, "into": new}, _id("merge"), now, since=since)
    player_identities.merge(store, old, new)
    return [head.name for head in heads]


def _two(store: Store, name: str, into: str) -> tuple[int, int]:
    """The ids of two players to merge. Raises ConflictError if they are the same or one is erased."""
    old, new = player_identities.find(store, name), player_identities.find(store, into)
    if old == new:
        raise ConflictError(f"{name!r} and {into!r} are the same player; choose two different players")
    for player, called in ((old, name), (new, into)):
        if player_identities.is_erased(store, player):
            raise ConflictError(f"{called!r} is an erased player, who cannot be merged")
    return old, new


def _first_trace(store: Store, head: Head, player: int) -> int | None:
    """The first position with a match or starting rating of a player (merged identities included); None: no rating."""
    plan = corrections.read_plan(store, head, head.corrected)
    ids = player_identities.identities(store, player)
    starts = [turn.position for turn in plan.turns if isinstance(turn, PlannedStart) and np.isin(turn.ids, ids).any()]
    played = first_match(store, head, player, None)
    return min([*starts, *([] if played is None else [played])], default=None)


def _refuse_merge(store: Store, old: int, new: int, name: str, into: str) -> None:
    known = {called: player_identities.ladders_of(store, player) for player, called in ((old, name), (new, into))}
    ids = [player_identities.identities(store, player) for player in (old, new)]
    for ladder in sorted({*known[name], *known[into]}):
        head = store.head(ladder)
        plan = corrections.read_plan(store, head, head.corrected)
        banned = next((called for called, own in zip((name, into), ids, strict=True) if plan.bans.keys() & own), None)
        if banned is not None:
            raise ConflictError(f"{banned!r} is banned from ladder {ladder!r}; reinstate them first, merge, ban again")
        seen = [appearances.read_positions(store, head.ladder, own) for own in ids]
        met = sorted(seen[0] & seen[1])
        if met:
            match_id = events.read_id(store, head.ladder, met[0])
            raise ConflictError(
                f"{name!r} and {into!r} met in match {match_id!r} of ladder {ladder!r}, so they are different players"
            )


def start(store: Store, head: Head, ratings: dict[str, float], event_id: str, now: int) -> int:
    """Set starting ratings of players who have not played here. Return how many; 0 if this was already applied.

    The ladder must be locked, with no rebuild due. Raises InputError for a player who has played, a rating out of the
    system's range, or a name that the ladder's rule refuses.
    """
    if not ratings:
        raise InputError("no ratings were given; expected one or more")
    plan = corrections.read_plan(store, head, head.corrected)
    check_names(store, head, list(ratings))
    known, _ = player_identities.admit(store, ratings)
    ids, first = np.unique([known[name] for name in ratings], return_index=True)
    if len(ids) < len(ratings):
        raise InputError("two of the names belong to the same player; expected one rating per player")
    values = without_minus_zero(np.array(list(ratings.values()), np.float64)[first])
    plan.last_rules.starting(values)  # raises InputError for a value out of range
    body = {"count": len(ids), "system": plan.last_rules.system.name}
    if event_id in events.find(store, head, [event_id]):
        correct(store, head, Kind.STARTED, body, event_id, now, since=None, ids=ids, ratings=values)
        return 0
    roster = player_states.read_roster(store, head, plan.last_rules, ids)
    played = roster.ids[roster.tally["last_played"] != NEVER]
    if len(played):
        name = player_identities.names_of(store, played[:1].tolist())[int(played[0])]
        subject = f"{name!r} and {len(played) - 1:,} others have" if len(played) > 1 else f"{name!r} has"
        raise InputError(
            f"{subject} played on ladder {head.name!r}; only players without matches can be given a rating"
        )
    position = correct(store, head, Kind.STARTED, body, event_id, now, since=None, ids=ids, ratings=values)
    assert position is not None
    finish(roster, corrections.read_plan(store, head, position), position)
    player_states.put(store, head.ladder, head.generation, roster)
    return len(ids)


def erase(store: Store, name: str, now: int) -> str:
    """Replace a player's names by a pseudonym everywhere, and return it. No rating or match of anyone changes."""
    player_identities.hold_names(store)
    player = player_identities.find(store, name)
    names = set(player_identities.aliases(store, player))
    pseudonym = f"erased-{secrets.token_hex(6)}"
    for head in _lock_all(store, player):
        _scrub(store, head, player, names, pseudonym)
        _scrub_jobs(store, head, names, pseudonym)
        correct(store, head, Kind.ERASED, {"player": player}, _id("erase"), now, since=None)
    player_identities.erase(store, player, pseudonym, now)
    return pseudonym


def _scrub(store: Store, head: Head, player: int, names: set[str], pseudonym: str) -> None:
    """Replace the player's names in free text: labels of teams, reasons of corrections."""
    ids = player_identities.identities(store, player)
    appeared = appearances.read_labels(store, head.ladder, ids)
    for position, labels in appeared.items():
        listed = [] if labels is None else json.loads(labels)
        if names & set(listed):
            scrubbed = json.dumps([pseudonym if label in names else label for label in listed], ensure_ascii=False)
            events.replace_labels(store, head.ladder, position, scrubbed)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(names, key=len, reverse=True)))
    for correction in corrections.read(store, head, head.corrected):
        body = correction.body
        reason = body.get("reason")
        theirs = not {body.get("player"), body.get("into")}.isdisjoint(ids) or body.get("match") in appeared
        if theirs and isinstance(reason, str) and pattern.search(reason):
            events.replace_body(store, head.ladder, correction, {**body, "reason": pattern.sub(pseudonym, reason)})


def _scrub_jobs(store: Store, head: Head, names: set[str], pseudonym: str) -> None:
    """Replace the player's names in the stored results of the ladder's jobs."""

    def scrubbed(value: object) -> object:
        if isinstance(value, dict):
            return {key: scrubbed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [scrubbed(item) for item in value]
        if not isinstance(value, str):
            return value
        for name in names:  # in sentences, names stand in quotation marks
            value = pseudonym if value == name else value.replace(repr(name), repr(pseudonym))
        return value

    for job, stored in jobs.read_contents(store, head.name):
        content = json.loads(stored)
        clean = scrubbed(content)
        if clean != content:
            jobs.set_content(store, job, json.dumps(clean, ensure_ascii=False, sort_keys=True))


def _lock_all(store: Store, player: int) -> Sequence[Head]:
    """Lock every ladder of a player, in the order of the ladders' ids; the caller already holds the names lock."""
    heads = sorted(
        (store.head(name) for name in player_identities.ladders_of(store, player)), key=lambda head: head.ladder
    )
    return [store.lock(head.name) for head in heads]


def _id(what: str) -> str:
    return f"{what}:{secrets.token_hex(8)}"
