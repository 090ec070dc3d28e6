"""Players: find them on one ladder; rename, merge and erase them on all; set starting ratings."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenmatch.accounts import account_sql
from evenmatch.corrections.corrections import first_match, preview
from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.jobs import job_sql
from evenmatch.ladders.ladders import PlannedCorrection, correct
from evenmatch.ladders.standings import View
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import finish
from evenmatch.ledger.codec import without_minus_zero
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import AboutMatch, PlayerErased, PlayerMerged, PlayerRenamed, RatingsStarted, WithReason
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_text
from evenmatch.live.slots import seat_on
from evenmatch.players.name_rule import check_names
from evenmatch.queues import queue_sql
from evenmatch.standings.activity import NEVER

NAMED_TWICE = (
    "from now on, a match reported with two of the player's names is recorded but not rated, because "
    "a player cannot play twice in one match"
)


def rename(store: Store, name: str, to: str, now: int) -> bool:
    """Give a player another name; the old one stays an alias. Return False if it is already their name.

    Raises UnknownNameError, ConflictError if another player has the new name or this player was erased, InputError if
    one of the player's ladders refuses the name, or DamageError if the player's row is missing.
    """
    check_text("the new name", to, blank=False)
    player_rows.hold_names(store)
    player = player_rows.find(store, name)
    if player_rows.is_erased(store, player):
        raise ConflictError(f"{name!r} is an erased player, who cannot be renamed")
    if player_rows.names_to_write(store, [player])[player] == to:
        return False
    heads = _lock_all(store, player)
    for head in heads:
        check_names(store, head, [to], player=player)
    player_rows.rename(store, player, to)
    for head in heads:
        correct(store, head, PlayerRenamed(player), _id("rename"), now)
    return True


def foresee_merge(store: Store, name: str, into: str, now: int) -> None:
    """Raise what `merge` would raise, or InputError if a rating would leave the range of a ladder's system."""
    old, new = _two(store, name, into)
    heads = [store.head(ladder) for ladder in player_rows.ladders_of(store, old)]
    _refuse_merge(store, old, new, name, into, now)
    for head in heads:
        preview(store, head, PlannedCorrection(PlayerMerged(old, new), _first_trace(store, head, old), "merged"))


def merge(store: Store, name: str, into: str, now: int) -> list[str]:
    """Merge a player into another, as if `into` had played all matches of both. Return the names of their ladders.

    These ladders are then due for a rebuild. Raises ConflictError if the two played in one match, or one of them is
    banned or erased.
    """
    player_rows.hold_names(store)
    old, new = _two(store, name, into)
    heads = _lock_all(store, old)
    _refuse_merge(store, old, new, name, into, now)
    for head in heads:
        since = _first_trace(store, head, old)
        correct(store, head, PlayerMerged(old, new), _id("merge"), now, since=since)
    player_rows.merge(store, old, new)
    return [head.name for head in heads]


def _two(store: Store, name: str, into: str) -> tuple[int, int]:
    """The ids of two players to merge. Raises ConflictError if they are the same or one is erased."""
    old, new = player_rows.find(store, name), player_rows.find(store, into)
    if old == new:
        raise ConflictError(f"{name!r} and {into!r} are the same player; choose two different players")
    for player, called in ((old, name), (new, into)):
        if player_rows.is_erased(store, player):
            raise ConflictError(f"{called!r} is an erased player, who cannot be merged")
    return old, new


def _first_trace(store: Store, head: Head, player: int) -> int | None:
    """The first position with a match or starting rating of a player or a merged identity; None: no rating."""
    plan = event_rows.read_plan(store, head, head.corrected)
    ids = player_rows.identities(store, player)
    starts = [
        turn.position
        for turn in plan.turns
        if isinstance(turn.change, RatingsStarted) and np.isin(turn.change.ids, ids).any()
    ]
    played = first_match(store, head, player, None)
    return min([*starts, *([] if played is None else [played])], default=None)


def _refuse_merge(store: Store, old: int, new: int, name: str, into: str, now: int) -> None:
    known = {called: player_rows.ladders_of(store, player) for player, called in ((old, name), (new, into))}
    ids = [player_rows.identities(store, player) for player in (old, new)]
    for ladder in sorted({*known[name], *known[into]}):
        head = store.head(ladder)
        plan = event_rows.read_plan(store, head, head.corrected)
        bans = plan.banned(now).keys()
        banned = next((called for called, own in zip((name, into), ids, strict=True) if bans & own), None)
        if banned is not None:
            raise ConflictError(f"{banned!r} is banned from ladder {ladder!r}; reinstate, merge, then ban them again")
        seen = [event_rows.read_match_positions(store, head.ladder, own) for own in ids]
        met = sorted(seen[0] & seen[1])
        if met:
            match_id = event_rows.read_event_id(store, head.ladder, met[0])
            raise ConflictError(
                f"{name!r} and {into!r} both played in match {match_id!r} of ladder {ladder!r}, so they are two players"
            )


def start(store: Store, head: Head, ratings: dict[str, float], event_id: str, now: int) -> int:
    """Set starting ratings of players who have not played here. Return how many; 0 if this was already applied.

    The ladder must be locked, with no rebuild due. Raises InputError for a player who has played, a rating out of the
    system's range, or a name that the ladder's rule refuses.
    """
    if not ratings:
        raise InputError("no ratings were given; expected one or more")
    plan = event_rows.read_plan(store, head, head.corrected)
    check_names(store, head, list(ratings))
    known, _ = player_rows.admit(store, ratings)
    ids, first = np.unique([known[name] for name in ratings], return_index=True)
    if len(ids) < len(ratings):
        raise InputError("two of the names belong to the same player; expected one rating per player")
    values = without_minus_zero(np.array(list(ratings.values()), np.float64)[first])
    plan.last_rules.starting(values)  # raises InputError for a value out of range
    change = RatingsStarted(len(ids), plan.last_rules.system.name, ids, values)
    if event_id in event_rows.find_events(store, head, [event_id]):
        correct(store, head, change, event_id, now)
        return 0
    roster = rating_rows.read_roster(store, head, plan.last_rules, ids)
    played = roster.ids[roster.tally["last_played"] != NEVER]
    if len(played):
        name = player_rows.names_of(store, played[:1].tolist())[int(played[0])]
        subject = f"{name!r} and {len(played) - 1:,} others have" if len(played) > 1 else f"{name!r} has"
        raise InputError(
            f"{subject} played on ladder {head.name!r}; only players without matches can be given a rating"
        )
    position = correct(store, head, change, event_id, now)
    assert position is not None
    finish(roster, event_rows.read_plan(store, head, position), position)
    rating_rows.put_states(store, head.ladder, head.generation, roster)
    return len(ids)


def erase(store: Store, name: str, now: int) -> str:
    """Replace a player's names by a pseudonym everywhere, and return it. No rating or match changes."""
    player_rows.hold_names(store)
    player = player_rows.find(store, name)
    names = set(player_rows.aliases(store, player))
    pseudonym = f"erased-{secrets.token_hex(6)}"
    for head in _lock_all(store, player):
        _scrub(store, head, player, names, pseudonym)
        _scrub_jobs(store, head, names, pseudonym)
        correct(store, head, PlayerErased(player), _id("erase"), now)
    account_sql.delete_accounts_of(store, sorted(names))
    player_rows.erase(store, player, pseudonym, now)
    return pseudonym


def _scrub(store: Store, head: Head, player: int, names: set[str], pseudonym: str) -> None:
    """Replace the player's names in free text: labels of teams, reasons of corrections."""
    ids = player_rows.identities(store, player)
    appeared = event_rows.read_team_labels(store, head.ladder, ids)
    for position, labels in appeared.items():
        listed = [] if labels is None else json.loads(labels)
        if names & set(listed):
            relabeled = json.dumps([pseudonym if label in names else label for label in listed], ensure_ascii=False)
            event_rows.replace_labels(store, head.ladder, position, relabeled)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(names, key=len, reverse=True)))
    for correction in event_rows.read_corrections(store, head, head.corrected):
        change = correction.change
        if not isinstance(change, WithReason) or change.reason is None:
            continue
        theirs = change.match in appeared if isinstance(change, AboutMatch) else getattr(change, "player", None) in ids
        if theirs and pattern.search(change.reason):
            scrubbed = replace(change, reason=pattern.sub(pseudonym, change.reason))
            event_rows.replace_change(store, head.ladder, correction.position, scrubbed)


def _scrub_jobs(store: Store, head: Head, names: set[str], pseudonym: str) -> None:
    """Replace the player's names in the stored results of the ladder's jobs."""

    def scrubbed(value: object) -> object:
        if isinstance(value, dict):
            return {key: scrubbed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [scrubbed(item) for item in value]
        if not isinstance(value, str):
            return value
        for name in names:  # sentences quote names
            value = pseudonym if value == name else value.replace(repr(name), repr(pseudonym))
        return value

    for job, stored in job_sql.read_contents(store, head.name):
        content = json.loads(stored)
        clean = scrubbed(content)
        if clean != content:
            job_sql.set_content(store, job, json.dumps(clean, ensure_ascii=False, sort_keys=True))


def _lock_all(store: Store, player: int) -> Sequence[Head]:
    """Lock every ladder of a player, in order of id. The caller must hold the names lock."""
    heads = sorted((store.head(name) for name in player_rows.ladders_of(store, player)), key=lambda head: head.ladder)
    return [store.lock(head.name) for head in heads]


def _id(what: str) -> str:
    return f"{what}:{secrets.token_hex(8)}"


def find(store: Store, head: Head, name: str) -> int:
    """The id of a player who has a match, a rating or a ban on a ladder.

    Raises UnknownNameError for others; its message suggests only names of this ladder.
    """
    player = player_rows.ids_of(store, [name]).get(name)
    if player is None or not _is_in_ledger(store, head, player):
        raise _unknown(store, head, name)
    return player


def find_in_use(store: Store, head: Head, name: str) -> int:
    """Like `find`, but also finds players who wait, play, have a penalty or keep a filter on the ladder."""
    player = player_rows.ids_of(store, [name]).get(name)
    if player is None or not (_is_in_ledger(store, head, player) or _is_in_queues(store, head, player)):
        raise _unknown(store, head, name)
    return player


def _unknown(store: Store, head: Head, name: str) -> UnknownNameError:
    similar = player_rows.similar(store, name, head.ladder)
    return UnknownNameError(f"player of ladder {head.name!r}", name, similar)


def _is_in_ledger(store: Store, head: Head, player: int) -> bool:
    ids = player_rows.identities(store, player)
    if event_rows.has_appeared(store, head.ladder, ids) or rating_rows.have_states(store, head.ladder, ids):
        return True
    return player in event_rows.read_plan(store, head, head.corrected).bans


def _is_in_queues(store: Store, head: Head, player: int) -> bool:
    return (
        seat_on(store, head.ladder, player) is not None
        or bool(queue_sql.read_penalties(store, head.ladder, [player]))
        or bool(queue_sql.read_filters(store, head.ladder, [player]))
    )


FULL_SEARCH_AT_MOST = 20_000  # players of a ladder: the search compares each name
# Players of a ladder: beyond it the search finds only prefixes, because a full scan of a million takes 0.5 s.
SUBSTRING_SEARCH_AT_MOST = 200_000


def search_ladder(database: Database, view: View, text: str, limit: int) -> list[int]:
    """Ids of rated players on the ladder whose name contains this text, names that start with it first.

    On a ladder with more than SUBSTRING_SEARCH_AT_MOST players, only names that start with the text are found.
    """
    board = view.snapshot.board
    with database.read() as store:
        most = limit + int(board.hidden.sum())  # hidden players may come first, and are removed below
        few, inside = len(board) <= FULL_SEARCH_AT_MOST, len(board) <= SUBSTRING_SEARCH_AT_MOST
        named = player_rows.search(store, text, most, view.head.ladder, few=few, inside=inside)
        players = [player for _, player in named]
    rows = board.find(players).tolist()
    shown = [player for player, row in zip(players, rows, strict=True) if row >= 0 and not board.hidden[row]]
    return shown[:limit]
