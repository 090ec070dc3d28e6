"""Find players of one ladder by part of their name."""

from __future__ import annotations

from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import player_identities
from evenmatch.service.queries.standings import View

FEW = 20_000  # on a ladder of up to this many players, the name of each is compared
MANY = 200_000  # with more players, only prefixes of names are searched: a full scan of a million takes 0.5 s


def search_ladder(database: Database, view: View, text: str, limit: int) -> list[int]:
    """Ids of players with a rating on the ladder whose name contains this text; names that start with it first.

    On a ladder of more than MANY players, only those whose name starts with it.
    """
    board = view.snapshot.board
    with database.read() as store:
        most = limit + int(board.hidden.sum())  # hidden players may come first, and are removed below
        few, inside = len(board) <= FEW, len(board) <= MANY
        named = player_identities.search(store, text, most, view.head.ladder, few=few, inside=inside)
        players = [player for _, player in named]
    rows = board.find(players).tolist()
    shown = [player for player, row in zip(players, rows, strict=True) if row >= 0 and not board.hidden[row]]
    return shown[:limit]
