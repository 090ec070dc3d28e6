"""Players across ladders: rename, merge, start from elsewhere, tell all that is known of one, forget one."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence

import numpy as np

from evenmatch.errors import ConflictError, InputError
from evenmatch.history import Floats
from evenmatch.ledger import people
from evenmatch.ledger.events import Kind, write_body
from evenmatch.ledger.plan import Start
from evenmatch.ledger.replay import finish
from evenmatch.ledger.store import Head, Store
from evenmatch.service.corrections import first_match, preview
from evenmatch.service.ladders import Wish, correct


def rename(store: Store, name: str, to: str, now: int) -> None:
    """Give a player another name; what was reported under the old one stays theirs.

    Raises UnknownNameError, or ConflictError where the new name is another player's.
    """
    player = people.find(store, name)
    if not to.strip() or "\0" in to:
        raise InputError(f"the new name is {to!r}; accepted is text with at least one letter")
    people.rename(store, player, to)
    for head in _lock_all(store, player):
        correct(store, head, Kind.RENAMED, {"player": player}, _id("rename"), now, since=None)


def merge(store: Store, name: str, into: str, now: int) -> list[str]:
    """Make one player of two: on every ladder, as though `into` had played all matches of both. Names of those ladders.

    Raises ConflictError where they met in a match, or one of them is banned, InputError where a rating would leave what
    the ladder's system can hold.
    """
    old, new = people.find(store, name), people.find(store, into)
    if old == new:
        raise ConflictError(f"{name!r} and {into!r} are the same player; accepted are two")
    heads = _lock_all(store, old)
    for head in heads:
        _refuse_merge(store, head, old, new, name, into)
    body = {"player": old, "into": new}
    since = {head.name: _first_trace(store, head, old) for head in heads}
    for head in heads:  # raises where a rating would leave what the system can hold
        preview(store, head, Wish(Kind.MERGED, body, since[head.name], "merged"))
    for head in heads:
        correct(store, head, Kind.MERGED, body, _id("merge"), now, since=since[head.name])
    people.merge(store, old, new)
    return [head.name for head in heads]


def _first_trace(store: Store, head: Head, player: int) -> int | None:
    """The position from which on a player has a rating; None where they have none."""
    plan = store.plan(head, head.corrected)
    starts = [turn.position for turn in plan.turns if isinstance(turn, Start) and player in turn.ids]
    played = first_match(store, head, player, None)
    return min([*starts, *([] if played is None else [played])], default=None)


def _refuse_merge(store: Store, head: Head, old: int, new: int, name: str, into: str) -> None:
    plan = store.plan(head, head.corrected)
    banned = next((called for one, called in ((old, name), (new, into)) if one in plan.bans), None)
    if banned is not None:
        raise ConflictError(f"{banned!r} is banned from ladder {head.name!r}; reinstate them first, merge, ban again")
    merged = plan.merged
    both = [[one, *(other for other, kept in merged.items() if kept == one)] for one in (old, new)]
    seen = []
    for ids in both:
        sql = "SELECT position FROM appearance WHERE ladder = ? AND player IN ({})"
        seen.append({row[0] for row in store.rows.among(store.connection, sql, (head.ladder,), ids)})
    met = sorted(seen[0] & seen[1])
    if met:
        match_id = store.all("SELECT id FROM event WHERE ladder = ? AND position = ?", head.ladder, met[0])[0][0]
        raise ConflictError(
            f"{name!r} and {into!r} met in match {match_id!r} of ladder {head.name!r}; accepted are two who never met"
        )


def start(store: Store, head: Head, ratings: dict[str, float], event_id: str, now: int) -> int:
    """Ratings from elsewhere for players who have not played here; how many. The ladder is locked, no rebuild is due.

    Raises InputError for a player who has played, or a rating that the system cannot hold.
    """
    if not ratings:
        raise InputError("no ratings were given; accepted are one or more")
    plan = store.plan(head, head.corrected)
    id_of = people.admit(store, ratings)
    ids, first = np.unique([id_of[name] for name in ratings], return_index=True)
    if len(ids) < len(ratings):
        raise InputError("two of the names are the same player's; accepted is one rating per player")
    values: Floats = np.array(list(ratings.values()), np.float64)[first]
    plan.last_rules.starting(values)  # raises for one that cannot be
    roster = store.roster(head, plan.last_rules, ids)
    played = roster.ids[roster.tally["matches"] > 0]
    if len(played):
        name = people.names_of(store, played[:1].tolist())[int(played[0])]
        said = f"{name!r} and {len(played) - 1:,} others have" if len(played) > 1 else f"{name!r} has"
        raise InputError(f"{said} played on ladder {head.name!r}; accepted are players who have not")
    position = correct(
        store, head, Kind.STARTED, {"count": len(ids)}, event_id, now, since=None, ids=ids, ratings=values
    )
    if position is None:
        return 0
    finish(roster, store.plan(head, position), position)
    store.keep_states(head.ladder, head.generation, roster)
    return len(ids)


def erase(store: Store, name: str, now: int) -> str:
    """Replace a player by a pseudonym everywhere; ratings and matches of others stay as they are. The pseudonym."""
    player = people.find(store, name)
    names = set(people.aliases(store, player))
    pseudonym = f"erased-{secrets.token_hex(6)}"
    for head in _lock_all(store, player):
        _scrub(store, head, player, names, pseudonym)
        correct(store, head, Kind.ERASED, {"player": player}, _id("erase"), now, since=None)
    people.erase(store, player, pseudonym, now)
    return pseudonym


def _scrub(store: Store, head: Head, player: int, names: set[str], pseudonym: str) -> None:
    """Where senders put the player's name beside the players: labels of teams, reasons of corrections."""
    ids = [player, *(row[0] for row in store.all("SELECT player FROM player WHERE merged_into = ?", player))]
    sql = (
        "SELECT e.position, e.labels FROM appearance a JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "WHERE a.ladder = ? AND e.labels IS NOT NULL AND a.player IN ({})"
    )
    for position, labels in store.rows.among(store.connection, sql, (head.ladder,), ids):
        listed = json.loads(labels)
        if names & set(listed):
            kept = json.dumps([pseudonym if one in names else one for one in listed], ensure_ascii=False)
            store.run("UPDATE event SET labels = ? WHERE ladder = ? AND position = ?", kept, head.ladder, position)
    told = re.compile("|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in sorted(names, key=len, reverse=True)))
    for correction in store.corrections(head, head.corrected):
        texts = {key: told.sub(pseudonym, value) for key, value in correction.body.items() if isinstance(value, str)}
        if any(correction.body[key] != text for key, text in texts.items()):
            body = write_body({**correction.body, **texts})
            at = correction.position
            store.run("UPDATE event SET body = ? WHERE ladder = ? AND position = ?", body, head.ladder, at)


def _lock_all(store: Store, player: int) -> Sequence[Head]:
    """Every ladder that knows a player, locked in the order of their ids, which all who lock several keep to."""
    heads = sorted((store.head(name) for name in people.ladders_of(store, player)), key=lambda head: head.ladder)
    return [store.lock(head.name) for head in heads]


def _id(what: str) -> str:
    return f"{what}:{secrets.token_hex(8)}"
