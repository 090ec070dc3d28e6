"""Compare the tables of players, names and looks of names with each other; no ladder's events are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from evenmatch.ledger.store import Store
from evenmatch.ledger.tables.player_identities import PSEUDONYM
from evenmatch.ledger.text import fold

MOST = 20  # findings of each statement
ROWS = 10_000  # in memory at once

_PLAYERS = (
    "SELECT p.player, p.name, p.folded, p.merged_into, p.erased_at, n.player, t.player, t.merged_into "
    "FROM player p LEFT JOIN name n ON n.name = p.name LEFT JOIN player t ON t.player = p.merged_into"
)
_NAMES = (
    "SELECT n.name, n.player, p.name, p.merged_into FROM name n LEFT JOIN player p ON p.player = n.player "
    "WHERE p.player IS NULL OR p.merged_into IS NOT NULL OR (p.erased_at IS NOT NULL AND n.name <> p.name) "
    f"ORDER BY n.name LIMIT {MOST}"
)
_NOT_JUDGED = (  # pseudonyms are not
    "SELECT n.name FROM name n LEFT JOIN name_check c ON c.name = n.name WHERE c.name IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM player p WHERE p.player = n.player AND p.erased_at IS NOT NULL) "
    f"ORDER BY n.name LIMIT {MOST}"
)
_NO_NAMES = (
    "SELECT c.name FROM name_check c LEFT JOIN name n ON n.name = c.name WHERE n.name IS NULL "
    f"ORDER BY c.name LIMIT {MOST}"
)


class _Player(NamedTuple):
    """A row of table `player`; owner: of the row of its name; target, merged_on: of the player it is merged into."""

    player: int
    name: str
    folded: str
    merged_into: int | None
    erased_at: int | None
    owner: int | None
    target: int | None
    merged_on: int | None


def check_players(store: Store) -> list[str]:
    """A sentence for each player or name that does not agree with the others; at most MOST of each kind.

    All players and names are read once.
    """
    lines: list[str] = []
    for row in store.rows.stream(store.connection, _PLAYERS, at_once=ROWS):
        if len(lines) < MOST:  # otherwise read on: on PostgreSQL a stream that is cut off ends the transaction
            lines += _player_findings(_Player(*row))
    lines += [_name_finding(*row) for row in store.all(_NAMES)]
    lines += [f"table name_check has no row of the name {name!r}" for (name,) in store.all(_NOT_JUDGED)]
    lines += [f"table name_check has a row of {name!r}, a name that no player has" for (name,) in store.all(_NO_NAMES)]
    return lines


def _player_findings(row: _Player) -> Iterator[str]:
    subject = f"player {row.name!r}"
    if row.merged_into is not None and row.target is None:
        yield f"{subject} is merged into player #{row.merged_into}, who is not in the table of players"
    elif row.merged_on is not None:  # all that were merged into a player are merged on with them
        yield f"{subject} is merged into player #{row.merged_into}, who is merged into player #{row.merged_on}"
    if row.owner is None:
        yield f"no name leads to {subject}"
    elif row.owner != (row.player if row.merged_into is None else row.merged_into):
        yield f"the name of {subject} (#{row.player}) leads to player #{row.owner}"
    if row.folded != fold(row.name):
        yield f"{subject} is searched as {row.folded!r}"
    if row.erased_at is not None and not PSEUDONYM.fullmatch(row.name):
        yield f"{subject} is marked as erased, but has no pseudonym; expected erased- and 12 hexadecimal digits"


def _name_finding(name: str, player: int, present: str | None, merged_into: int | None) -> str:
    if present is None:
        return f"name {name!r} leads to player #{player}, who is not in the table of players"
    if merged_into is not None:
        return f"name {name!r} leads to player #{player}, who is merged into player #{merged_into}"
    return f"name {name!r} leads to player {present!r}, who was erased"
