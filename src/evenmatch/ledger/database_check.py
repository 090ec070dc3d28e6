"""Checks of a database: its pages, indexes against the rows of their tables, its schema, ladders and players."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from evenmatch.errors import StoreError
from evenmatch.ledger import live_schema  # noqa: F401 - its tables join the others
from evenmatch.ledger.database import VERSION, Database
from evenmatch.ledger.player_check import check_players
from evenmatch.ledger.schema import METADATA
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import events, ladders

MOST = 20  # findings that SQLite lists
NO_AMCHECK = (
    "PostgreSQL's pages and indexes were not checked: expected the extension amcheck, which a superuser adds by "
    "CREATE EXTENSION amcheck"
)


OF_A_MOVE = ("log_move", "refuse_moved")  # beginnings of the names of triggers, see move_log.py and move_marks.py
_TRIGGERS = {
    "sqlite": "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger' ORDER BY 1",
    "postgresql": "SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace ORDER BY 1, 2",
}


class DatabaseCheck(NamedTuple):
    """The result of a check. damage: a sentence for each finding; unchecked: what could not be checked, and why."""

    damage: tuple[str, ...]
    unchecked: tuple[str, ...] = ()


def check_database(database: Database, *, quick: bool = False) -> DatabaseCheck:
    """Check all pages of the database, its indexes against the rows, its schema, its list of ladders, and players.

    quick  without the comparisons of SQLite's indexes with rows and of players with names, which take most of the time
    Other processes may read and write meanwhile.
    """
    if database.url.get_backend_name() == "sqlite":
        check = DatabaseCheck(_check_sqlite(database, "quick_check" if quick else "integrity_check"))
    else:
        check = _check_postgres(database)
    if check.damage or database.version() != VERSION:  # an earlier one is upgraded when it is opened
        return check
    return DatabaseCheck(_check_schema(database) or _check_contents(database, quick=quick), check.unchecked)


def _check_schema(database: Database) -> tuple[str, ...]:
    """Compare tables, columns, indexes and triggers with those that evenmatch makes."""
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
            lines += [f"table {table.name} has a column {name} that evenmatch did not make" for name in more]
            indexes = {index["name"] for index in inspector.get_indexes(table.name)}
            lost = sorted({str(index.name) for index in table.indexes} - indexes)
            lines += [f"index {name} of table {table.name} is missing" for name in lost]
        for name, table_name in store.all(_TRIGGERS[database.url.get_backend_name()]):
            if not name.startswith(OF_A_MOVE):
                lines.append(f"trigger {name} of table {table_name} was not made by evenmatch")
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
    """A sentence for each ladder that is not listed any more, or under another name, or has no live generation."""
    lines = []
    names: dict[int, str] = dict(store.all("SELECT ladder, name FROM ladder"))
    for ladder, first in events.first_ids(store).items():
        made_as = first.removeprefix(ladders.MADE)
        if ladder not in names:
            lines.append(f"ladder {made_as} is not in the table of ladders, but its events are there")
        elif first.startswith(ladders.MADE) and made_as != names[ladder]:
            lines.append(f"ladder {names[ladder]} was made as {made_as}; the name of a ladder does not change")
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
            listed = [str(row[0]) for row in store.all(f"PRAGMA {pragma}({MOST})")]
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
