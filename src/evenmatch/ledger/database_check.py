"""Checks of a database: pages, indexes, schema, ladders, players and names, and whether its disk has room.

A small write does not detect a full disk: SQLite reuses pages of its log and PostgreSQL pages of its tables, so one
row may still fit where a match does not.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from evenmatch.errors import StoreError
from evenmatch.ledger import event_rows, ladder_rows
from evenmatch.ledger.database import VERSION, Database
from evenmatch.ledger.player_rows import PSEUDONYM
from evenmatch.ledger.schema import METADATA
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import fold

MOST_FINDINGS = 20  # findings of each statement
ROWS = 10_000  # rows in memory at once

_PLAYERS = (
    "SELECT p.player, p.name, p.folded, p.merged_into, p.erased_at, n.player, t.player, t.merged_into "
    "FROM player p LEFT JOIN name n ON n.name = p.name LEFT JOIN player t ON t.player = p.merged_into"
)
_NAMES = (
    "SELECT n.name, n.player, p.name, p.merged_into FROM name n LEFT JOIN player p ON p.player = n.player "
    "WHERE p.player IS NULL OR p.merged_into IS NOT NULL OR (p.erased_at IS NOT NULL AND n.name <> p.name) "
    f"ORDER BY n.name LIMIT {MOST_FINDINGS}"
)
_NOT_CHECKED = (  # pseudonyms of erased players are not checked
    "SELECT n.name FROM name n LEFT JOIN name_check c ON c.name = n.name WHERE c.name IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM player p WHERE p.player = n.player AND p.erased_at IS NOT NULL) "
    f"ORDER BY n.name LIMIT {MOST_FINDINGS}"
)
_NAMES_OF_NOBODY = (
    "SELECT c.name FROM name_check c LEFT JOIN name n ON n.name = c.name WHERE n.name IS NULL "
    f"ORDER BY c.name LIMIT {MOST_FINDINGS}"
)


class _Player(NamedTuple):
    """A row of table `player`; owner: player of its name; target, merged_on: from the player it is merged into."""

    player: int
    name: str
    folded: str
    merged_into: int | None
    erased_at: int | None
    owner: int | None
    target: int | None
    merged_on: int | None


def check_players(store: Store) -> list[str]:
    """A sentence for each inconsistent player or name; at most MOST_FINDINGS of each kind.

    Reads all players and names once.
    """
    lines: list[str] = []
    for row in store.stream(_PLAYERS, at_once=ROWS):
        if len(lines) < MOST_FINDINGS:  # otherwise read on: on PostgreSQL a stream that is cut off ends the transaction
            lines += _player_findings(_Player(*row))
    lines += [_name_finding(*row) for row in store.all(_NAMES)]
    lines += [f"table name_check has no row of the name {name!r}" for (name,) in store.all(_NOT_CHECKED)]
    lines += [f"table name_check has a row of {name!r}, a name of no player" for (name,) in store.all(_NAMES_OF_NOBODY)]
    return lines


def _player_findings(row: _Player) -> Iterator[str]:
    subject = f"player {row.name!r}"
    if row.merged_into is not None and row.target is None:
        yield f"{subject} is merged into player #{row.merged_into}, who is not in the table of players"
    elif row.merged_on is not None:  # a merge moves all players that were merged before
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


# findings that SQLite lists
NO_AMCHECK = (
    "PostgreSQL's pages and indexes were not checked: that needs the extension amcheck, which a superuser adds with "
    "CREATE EXTENSION amcheck"
)


_TRIGGERS = {
    "sqlite": "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger' ORDER BY 1",
    "postgresql": "SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace ORDER BY 1, 2",
}


class DatabaseCheck(NamedTuple):
    """The result of a check. damage: a sentence for each finding; unchecked: why some checks were skipped."""

    damage: tuple[str, ...]
    unchecked: tuple[str, ...] = ()


def check_database(database: Database, *, quick: bool = False) -> DatabaseCheck:
    """Check the database's pages, its indexes against the rows, its schema, its list of ladders, and its players.

    quick  skip comparing SQLite's indexes with rows and players with names, which takes most of the time
    Other processes may read and write meanwhile.
    """
    if database.url.get_backend_name() == "sqlite":
        check = DatabaseCheck(_check_sqlite(database, "quick_check" if quick else "integrity_check"))
    else:
        check = _check_postgres(database)
    if check.damage or database.version() != VERSION:  # opening the database upgrades an earlier version
        return check
    return DatabaseCheck(_check_schema(database) or _check_contents(database, quick=quick), check.unchecked)


def _check_schema(database: Database) -> tuple[str, ...]:
    """Compare tables, columns, indexes and triggers with those that evenmatch creates."""
    with database.read() as store:
        inspector = sa.inspect(store.connection)
        present = set(inspector.get_table_names())
        lines = []
        for table in METADATA.sorted_tables:
            if table.name not in present:
                lines.append(f"table {table.name} is missing")
                continue
            columns = {column["name"] for column in inspector.get_columns(table.name)}
            known = set(table.columns.keys())
            lines += [f"column {name} of table {table.name} is missing" for name in sorted(known - columns)]
            more = sorted(columns - known)
            lines += [f"table {table.name} has a column {name} that evenmatch did not create" for name in more]
            indexes = {index["name"] for index in inspector.get_indexes(table.name)}
            lost = sorted({str(index.name) for index in table.indexes} - indexes)
            lines += [f"index {name} of table {table.name} is missing" for name in lost]
        for name, table_name in store.all(_TRIGGERS[database.url.get_backend_name()]):
            lines.append(f"trigger {name} of table {table_name} was not created by evenmatch")
    return tuple(f"{database.shown}: {line}" for line in lines)


def _check_contents(database: Database, *, quick: bool) -> tuple[str, ...]:
    with database.read() as store:
        lines = check_ladders(store)
    if not quick:
        try:
            with database.read() as store:
                lines += check_players(store)
        except StoreError as error:
            if database.url.get_backend_name() != "sqlite":
                raise
            lines.append(  # SQLite keeps text that is not UTF-8, too
                f"players and names cannot be read: {str(error).removeprefix(f'{database.shown}: ')}"
            )
    return tuple(f"{database.shown}: {line}" for line in lines)


def check_ladders(store: Store) -> list[str]:
    """A sentence for each ladder that is no longer listed, has another name, or has no live generation."""
    lines = []
    names: dict[int, str] = dict(store.all("SELECT ladder, name FROM ladder"))
    for ladder, first in event_rows.first_ids(store).items():
        made_as = first.removeprefix(ladder_rows.MADE)
        if ladder not in names:
            lines.append(f"ladder {made_as} has events but is not in the table of ladders")
        elif first.startswith(ladder_rows.MADE) and made_as != names[ladder]:
            lines.append(f"ladder {names[ladder]} was created as {made_as}; the name of a ladder cannot change")
    lost = store.all(
        "SELECT l.name, l.generation FROM ladder l LEFT JOIN generation g "
        "ON g.ladder = l.ladder AND g.generation = l.generation WHERE g.ladder IS NULL ORDER BY l.name"
    )
    lines += [
        f"generation {generation} of ladder {name}, which is the live one, is missing" for name, generation in lost
    ]
    return lines


def _check_sqlite(database: Database, pragma: str) -> tuple[str, ...]:
    try:
        with database.read() as store:
            listed = [str(row[0]) for row in store.all(f"PRAGMA {pragma}({MOST_FINDINGS})")]
    except StoreError as error:  # too damaged to be read
        return (str(error),)
    lines = [line for text in listed for line in text.splitlines() if not line.startswith("*** in database")]
    return () if lines == ["ok"] else tuple(f"{database.shown}: {line}" for line in lines)


def _check_postgres(database: Database) -> DatabaseCheck:
    with database.read() as store:
        if not store.all("SELECT 1 FROM pg_extension WHERE extname = 'amcheck'"):
            return DatabaseCheck((), (NO_AMCHECK,))
        listed = store.all(
            "SELECT t.relname, i.relname, i.oid::bigint FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid "
            "JOIN pg_class t ON t.oid = x.indrelid JOIN pg_am a ON a.oid = i.relam "
            "LEFT JOIN pg_inherits h ON h.inhrelid = t.oid LEFT JOIN pg_class p ON p.oid = h.inhparent "
            "WHERE COALESCE(p.relname, t.relname) = ANY(?) AND i.relkind = 'i' AND a.amname = 'btree' "
            "AND t.relnamespace = current_schema()::regnamespace "
            "ORDER BY t.relname, i.relname",
            list(METADATA.tables),
        )
    damage: list[str] = []
    checks = [(f"index {index} of table {name}", _INDEX, oid) for name, index, oid in listed]
    checks += [(f"table {name}", _TABLE, name) for name in dict.fromkeys(row[0] for row in listed)]
    for subject, sql, target in checks:
        try:
            with database.read() as store:  # a finding ends the transaction
                damage += [f"{subject}: {row[0]}" for row in store.all(sql, target) if row[0]]
        except StoreError as error:
            if "permission denied" in str(error):
                return DatabaseCheck(tuple(damage), (f"PostgreSQL's indexes were not all checked: {error}",))
            damage.append(f"{subject}: {str(error).removeprefix(f'{database.shown}: ')}")
    return DatabaseCheck(tuple(damage))


_INDEX = "SELECT bt_index_check(?::oid, true)::text"
_TABLE = "SELECT msg FROM verify_heapam(?::text::regclass)"


LEAST_FREE = 1_000_000  # bytes
# Rows of about LEAST_FREE bytes that exceed their memory limit, so that the server writes them to a file.
_ROWS = "SELECT COUNT(*) FROM generate_series(1, 75000)"


def check_room(database: Database, store: Store) -> None:
    """Raise StoreError if the disk (for PostgreSQL, the one with temporary files) has less than a megabyte left."""
    if database.url.get_backend_name() == "sqlite":
        free = shutil.disk_usage(Path(database.url.database or "").resolve().parent).free
        if free < LEAST_FREE:
            raise StoreError(f"{database.shown}: the disk is full ({free:,} bytes are left); free some space")
    else:
        store.run("SET LOCAL work_mem = '64kB'")
        store.all(_ROWS)
