"""Find players of one ladder by a part of their name."""

from __future__ import annotations

from evenmatch.ledger import people
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.service.boards import View

FEW = 20_000  # players of a ladder, all of whom are looked at
MANY = 200_000  # beyond so many, only how names begin is looked for: all of a million would take half a second


def search_ladder(database: Database, view: View, text: str, limit: int) -> list[int]:
    """Ids of players with a rating on the ladder whose name holds this text; names that begin with it first.

    On a ladder of MANY players, of those alone whose name begins with it.
    """
    board = view.snapshot.board
    with database.read() as connection:
        asked = limit + int(board.hidden.sum())  # the hidden may be the first to be found
        store, few, inside = Store(connection, database.rows), len(board) <= FEW, len(board) <= MANY
        named = people.search(store, text, asked, view.head.ladder, few=few, inside=inside)
        found = [one for _, one in named]
    rows = board.find(found).tolist()
    here = [player for player, row in zip(found, rows, strict=True) if row >= 0 and not board.hidden[row]]
    return here[:limit]
