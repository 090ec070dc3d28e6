"""Players as one ladder knows them: a name that only other ladders know is unknown here."""

from __future__ import annotations

from evenmatch.errors import UnknownNameError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import appearances, corrections, penalties, player_identities, player_states, queue_filters
from evenmatch.service.player_seats import seat_on


def find(store: Store, head: Head, name: str) -> int:
    """The id of a player who has a match, a rating or a ban on a ladder.

    Raises UnknownNameError for others, which suggests names of this ladder alone.
    """
    player = player_identities.ids_of(store, [name]).get(name)
    if player is None or not _is_in_ledger(store, head, player):
        raise _unknown(store, head, name)
    return player


def find_in_use(store: Store, head: Head, name: str) -> int:
    """Like `find`, and also a player who waits, plays, has a penalty or keeps a filter on the ladder."""
    player = player_identities.ids_of(store, [name]).get(name)
    if player is None or not (_is_in_ledger(store, head, player) or _is_in_queues(store, head, player)):
        raise _unknown(store, head, name)
    return player


def _unknown(store: Store, head: Head, name: str) -> UnknownNameError:
    similar = player_identities.similar(store, name, head.ladder)
    return UnknownNameError(f"player of ladder {head.name!r}", name, similar)


def _is_in_ledger(store: Store, head: Head, player: int) -> bool:
    ids = player_identities.identities(store, player)
    if appearances.has_any(store, head.ladder, ids) or player_states.has_any(store, head.ladder, ids):
        return True
    return player in corrections.read_plan(store, head, head.corrected).bans


def _is_in_queues(store: Store, head: Head, player: int) -> bool:
    return (
        seat_on(store, head.ladder, player) is not None
        or bool(penalties.read(store, head.ladder, [player]))
        or bool(queue_filters.read(store, head.ladder, [player]))
    )
