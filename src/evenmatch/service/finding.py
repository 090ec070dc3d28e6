"""Find players of one ladder by a part of their name."""

from __future__ import annotations

from evenmatch.ledger import people
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.service.boards import View

LOOKED_AT = 10_000  # names that hold the text, on whatever ladder


def search_ladder(database: Database, view: View, text: str, limit: int) -> list[int]:
    """Ids of players with a rating on the ladder whose name holds this text; names that begin with it first."""
    with database.read() as connection:
        found = [player for _, player in people.search(Store(connection, database.rows), text, LOOKED_AT)]
    rows = view.snapshot.board.find(found).tolist()
    here = [player for player, row in zip(found, rows, strict=True) if row >= 0 and not view.snapshot.board.hidden[row]]
    return here[:limit]
