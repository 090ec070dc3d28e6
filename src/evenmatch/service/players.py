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
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import Start
from evenmatch.ledger.replay import finish
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_text
from evenmatch.service.corrections import first_match, preview
from evenmatch.service.ladders import Wish, correct
from evenmatch.standings.activity import NEVER


def rename(store: Store, name: str, to: str, now: int) -> bool:
    """Give a player another name; what was reported under the old one stays theirs. False: it is their name already.

    Raises UnknownNameError, or ConflictError where the new name is another player's.
    """
    check_text("the new name", to, blank=False)
    store.hold_names()
    player = people.find(store, name)
    if people.names_of(store, [player])[player] == to:
        return False
    people.rename(store, player, to)
    for head in _lock_all(store, player):
        correct(store, head, Kind.RENAMED, {"player": player}, _id("rename"), now, since=None)
    return True


def foresee_merge(store: Store, name: str, into: str) -> None:
    """Raise what `merge` would raise, and InputError where a rating would leave what a ladder's system can hold."""
    old, new = _two(store, name, into)
    heads = [store.head(ladder) for ladder in people.ladders_of(store, old)]
    _refuse_merge(store, old, new, name, into)
    for head in heads:
        preview(store, head, Wish(Kind.MERGED, {"player": old, "into": new}, _first_trace(store, head, old), "merged"))


def merge(store: Store, name: str, into: str, now: int) -> list[str]:
    """Make one player of two: on every ladder, as though `into` had played all matches of both. Names of those ladders.

    They are due for a rebuild then. Raises ConflictError where the two met in a match, one of them is banned or erased.
    """
    store.hold_names()
    old, new = _two(store, name, into)
    heads = _lock_all(store, old)
    _refuse_merge(store, old, new, name, into)
    for head in heads:
        since = _first_trace(store, head, old)
        correct(store, head, Kind.MERGED, {"player": old, "into": new}, _id("merge"), now, since=since)
    people.merge(store, old, new)
    return [head.name for head in heads]


def _two(store: Store, name: str, into: str) -> tuple[int, int]:
    """The ids behind two names, which are to become one player."""
    old, new = people.find(store, name), people.find(store, into)
    if old == new:
        raise ConflictError(f"{name!r} and {into!r} are the same player; accepted are two")
    for player, called in ((old, name), (new, into)):
        if people.is_erased(store, player):
            raise ConflictError(f"{called!r} is what is left of an erased player; accepted are two who are there")
    return old, new


def _first_trace(store: Store, head: Head, player: int) -> int | None:
    """The position from which on a player, or anybody merged into them, has a rating; None where they have none."""
    plan = store.plan(head, head.corrected)
    ids = people.identities(store, player)
    starts = [turn.position for turn in plan.turns if isinstance(turn, Start) and np.isin(turn.ids, ids).any()]
    played = first_match(store, head, player, None)
    return min([*starts, *([] if played is None else [played])], default=None)


def _refuse_merge(store: Store, old: int, new: int, name: str, into: str) -> None:
    known = {called: people.ladders_of(store, one) for one, called in ((old, name), (new, into))}
    ids = [people.identities(store, one) for one in (old, new)]
    for ladder in sorted({*known[name], *known[into]}):
        head = store.head(ladder)
        plan = store.plan(head, head.corrected)
        banned = next((called for called, own in zip((name, into), ids, strict=True) if plan.bans.keys() & own), None)
        if banned is not None:
            raise ConflictError(f"{banned!r} is banned from ladder {ladder!r}; reinstate them first, merge, ban again")
        sql = "SELECT position FROM appearance WHERE ladder = ? AND player IN ({})"
        seen = [{row[0] for row in store.rows.among(store.connection, sql, (head.ladder,), own)} for own in ids]
        met = sorted(seen[0] & seen[1])
        if met:
            match_id = store.all("SELECT id FROM event WHERE ladder = ? AND position = ?", head.ladder, met[0])[0][0]
            raise ConflictError(
                f"{name!r} and {into!r} met in match {match_id!r} of ladder {ladder!r}; accepted are two who never met"
            )


def start(store: Store, head: Head, ratings: dict[str, float], event_id: str, now: int) -> int:
    """Ratings from elsewhere for players who have not played here; how many. The ladder is locked, no rebuild is due.

    Raises InputError for a player who has played, or a rating that the system cannot hold.
    """
    if not ratings:
        raise InputError("no ratings were given; accepted are one or more")
    plan = store.plan(head, head.corrected)
    known, _ = people.admit(store, ratings)
    ids, first = np.unique([known[name] for name in ratings], return_index=True)
    if len(ids) < len(ratings):
        raise InputError("two of the names are the same player's; accepted is one rating per player")
    values: Floats = np.array(list(ratings.values()), np.float64)[first]
    plan.last_rules.starting(values)  # raises for one that cannot be
    body = {"count": len(ids), "system": plan.last_rules.system.name}
    if event_id in store.known(head, [event_id]):
        correct(store, head, Kind.STARTED, body, event_id, now, since=None, ids=ids, ratings=values)
        return 0
    roster = store.roster(head, plan.last_rules, ids)
    played = roster.ids[roster.tally["last_played"] != NEVER]
    if len(played):
        name = people.names_of(store, played[:1].tolist())[int(played[0])]
        said = f"{name!r} and {len(played) - 1:,} others have" if len(played) > 1 else f"{name!r} has"
        raise InputError(f"{said} played on ladder {head.name!r}; accepted are players who have not")
    position = correct(store, head, Kind.STARTED, body, event_id, now, since=None, ids=ids, ratings=values)
    assert position is not None
    finish(roster, store.plan(head, position), position)
    store.keep_states(head.ladder, head.generation, roster)
    return len(ids)


def erase(store: Store, name: str, now: int) -> str:
    """Replace a player by a pseudonym everywhere; ratings and matches of others stay as they are. The pseudonym."""
    store.hold_names()
    player = people.find(store, name)
    names = set(people.aliases(store, player))
    pseudonym = f"erased-{secrets.token_hex(6)}"
    for head in _lock_all(store, player):
        _scrub(store, head, player, names, pseudonym)
        _scrub_jobs(store, head, names, pseudonym)
        correct(store, head, Kind.ERASED, {"player": player}, _id("erase"), now, since=None)
    people.erase(store, player, pseudonym, now)
    return pseudonym


def _scrub(store: Store, head: Head, player: int, names: set[str], pseudonym: str) -> None:
    """Where people put the player's name beside the players: labels of teams, reasons given for corrections."""
    ids = people.identities(store, player)
    sql = (
        "SELECT e.position, e.labels FROM appearance a JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "WHERE a.ladder = ? AND a.player IN ({})"
    )
    appeared: dict[int, str | None] = dict(store.rows.among(store.connection, sql, (head.ladder,), ids))
    for position, labels in appeared.items():
        listed = [] if labels is None else json.loads(labels)
        if names & set(listed):
            kept = json.dumps([pseudonym if one in names else one for one in listed], ensure_ascii=False)
            store.run("UPDATE event SET labels = ? WHERE ladder = ? AND position = ?", kept, head.ladder, position)
    told = re.compile("|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in sorted(names, key=len, reverse=True)))
    for one in store.corrections(head, head.corrected):
        reason = one.body.get("reason")
        theirs = not {one.body.get("player"), one.body.get("into")}.isdisjoint(ids) or one.body.get("match") in appeared
        if theirs and isinstance(reason, str) and told.search(reason):
            store.rewrite_body(head, one, {**one.body, "reason": told.sub(pseudonym, reason)})


def _scrub_jobs(store: Store, head: Head, names: set[str], pseudonym: str) -> None:
    """What jobs of the ladder found and keep, as who would stand where by other rules."""

    def scrubbed(value: object) -> object:
        if isinstance(value, dict):
            return {key: scrubbed(one) for key, one in value.items()}
        if isinstance(value, list):
            return [scrubbed(one) for one in value]
        return pseudonym if isinstance(value, str) and value in names else value

    for job, told in store.all("SELECT job, told FROM job WHERE ladder_name = ?", head.name):
        said = json.loads(told)
        clean = scrubbed(said)
        if clean != said:
            text = json.dumps(clean, ensure_ascii=False, sort_keys=True)
            store.run("UPDATE job SET told = ? WHERE job = ?", text, job)


def _lock_all(store: Store, player: int) -> Sequence[Head]:
    """Every ladder that knows a player, locked in the order of their ids; names are held alone."""
    heads = sorted((store.head(name) for name in people.ladders_of(store, player)), key=lambda head: head.ladder)
    return [store.lock(head.name) for head in heads]


def _id(what: str) -> str:
    return f"{what}:{secrets.token_hex(8)}"
