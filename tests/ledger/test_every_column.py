"""Every column of every table of a ledger is altered: `verify` says so, or an operator can read that it does not."""

import re
import shutil
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenmatch.corrections.verification import verify
from evenmatch.errors import DamageError
from evenmatch.ledger import live_schema, schema
from evenmatch.ledger.database import Database
from evenmatch.operations.open_database import check_database
from evenmatch.operations.service import Service
from ledger.sample_matches import ManualClock
from ledger.varied_ledger import write_varied_ledger

GUIDE = Path(__file__).parents[2] / "docs" / "operate.md"
LIVE = "(SELECT generation FROM ladder l WHERE l.ladder = generation.ladder)"
# Rows to alter of each table, by a name; all are of ladder 1 but for what its system does not learn.
ROWS = {
    "player": {"any": "name = 'p00'", "merged": "merged_into IS NOT NULL", "erased": "erased_at IS NOT NULL"},
    "name": {"present": "name = 'p19-new'", "former": "name = 'p19'", "merged": "name = 'p17'"},
    "name_check": {"any": "name = 'p16'"},
    "ladder": {"any": "ladder = 1"},
    "generation": {
        "live": f"ladder = 1 AND generation = {LIVE}",
        "past": "ladder = 1 AND generation = 4",
        "of another system": "ladder = 1 AND generation = 7",
        "unused": "ladder = 1 AND generation = 5",
        "learning": "ladder = 2",
    },
    "event": {
        "match with other lines since": "ladder = 1 AND position = 67",
        "match without lines": "ladder = 1 AND position = 68",
        "match": "ladder = 1 AND position = 100",
        "last match": "ladder = 1 AND position = 123",
        **{kind: f"(ladder, position) = (SELECT ladder, MAX(position) FROM event WHERE ladder = 1 AND kind = '{kind}')"
           for kind in ("match-voided", "match-reinstated", "player-banned", "player-reinstated", "player-merged",
                        "player-renamed", "player-erased", "rules-changed", "settings-changed",
                        "season-opened", "ratings-started",
                        "ratings-decayed")},
    },
    "correction": {"last": "ladder = 1 AND position = 122", "first": "ladder = 2"},
    "appearance": {"any": "ladder = 1 AND player = 1 AND position = 3"},
    "state": {"any": "ladder = 1 AND player = 1", "learning": "ladder = 2 AND player = 4"},
    "context_value": {"any": "ladder = 2 AND value = 'dust'"},
    "player_offset": {"any": "ladder = 2 AND player = 3 AND value = 'dust'"},
    "journal": {"any": "ladder = 1 AND position = 67"},
    "checkpoint": {"any": "ladder = 1"},
    "division": {"any": "ladder = 1 AND player = 1"},
    "season": {"ended": "ladder = 1 AND season = 1", "open": "ladder = 1 AND season = 2"},
    "final": {"any": "ladder = 1 AND season = 1 AND player = 3"},
}  # fmt: skip
ROW = "the row"
ALL = tuple({row for rows in ROWS.values() for row in rows})
PAST = ("past", "of another system")
# What verify does not see, by table and column, for these rows, and how the guide for operators says so.
UNSEEN = {
    ("player", "erased_at"): (("erased",), "at what time they were erased"),
    **dict.fromkeys([("name_check", column) for column in ("skeleton", "oddities")], (ALL, "(table `name_check`)")),
    ("ladder", "created_at"): (ALL, "when ladders and generations were made"),
    ("ladder", "divided_at"): (ALL, "when divisions were last computed"),
    **{
        ("generation", column): (rows, phrase)
        for columns, rows, phrase in (
            (("made_at",), ALL, "when ladders and generations were made"),
            (("engine", "time", "sample"), (*PAST, "unused"), "what past generations held"),
            (("learned",), (*PAST, "unused", "live"), "what past generations held"),  # elo learns nothing
            ((ROW, "ladder", "generation", "ready", "planned"), ("unused",), "what past generations held"),
        )
        for column in columns
    },
    ("event", "labels"): (ALL, "labels of teams"),
    **dict.fromkeys(
        [(table, column) for table in ("checkpoint", "division") for column in (ROW, "ladder")]
        + [("checkpoint", "generation")],
        (ALL, "divisions or checkpoints that were deleted"),
    ),
}
CHANGES = {
    sa.BigInteger: ("{0} + 1", "0"),
    sa.Double: ("{0} + 1",),
    sa.Text: (  # the last one is no UTF-8
        "{0} || 'x'",
        "'[]'",
        "REPLACE({0}, '\"elo\"', '\"elp\"')",
        "CAST(x'ff' AS TEXT)",
    ),
    sa.LargeBinary: (
        "x'00'",
        "SUBSTR({0}, 1, LENGTH({0}) - 1)",
        "CAST(SUBSTR({0}, 1, LENGTH({0}) - 1) || x'7f' AS BLOB)",
    ),
}
FILLED = {sa.BigInteger: "1", sa.Double: "1.5", sa.Text: "'[\"x\"]'", sa.LargeBinary: "x''"}  # in the place of NULL


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file of a varied ledger."""
    path = tmp_path_factory.mktemp("varied") / "evenmatch.db"
    clock = ManualClock()
    with Service.open(str(path), clock) as service:
        write_varied_ledger(service, clock)
        assert all(service.verify(ladder).is_equal for ladder in service.names())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    return path


def columns(table):
    return [ROW, *schema.METADATA.tables[table].columns.keys()]


def changes(table, column):
    """Statements without their conditions, each of which alters a column, or the row."""
    if column == ROW:
        return [f"DELETE FROM {table}"]
    kind = schema.METADATA.tables[table].columns[column]
    values = [value.format(column) for value in CHANGES[type(kind.type)]]
    if kind.nullable:
        values = [f"CASE WHEN {column} IS NULL THEN {FILLED[type(kind.type)]} END", *values]
    return [f"UPDATE {table} SET {column} = {value}" for value in values]


def altered(path, statement):
    """Whether a statement can be run and changes something."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    table = re.search(r"(?:FROM|UPDATE) (\w+)", statement)[1]
    try:
        before = connection.execute(f"SELECT * FROM {table}").fetchall()
        connection.execute(statement)
        connection.commit()
        return connection.execute(f"SELECT * FROM {table}").fetchall() != before
    except sqlite3.IntegrityError:
        return False
    finally:
        connection.close()


def findings(path):
    """What is said of the first ladder that is not equal to its events, or else of the database."""
    database = Database.open(str(path))
    try:
        with database.read() as store:
            names = [row[0] for row in store.all("SELECT name FROM ladder")]
        results = (verify(database, name) for name in names)
        return next((result for result in results if not result.is_equal), None) or check_database(database).damage
    except DamageError as error:  # the names of ladders cannot be read
        return str(error)
    finally:
        database.close()


def unseen(written, table, column, rows):
    """Those statements that alter a column of these rows and of which nothing is said."""
    path = written.with_name("altered.db")
    missed, tried = [], 0
    for row in rows:
        for change in changes(table, column):
            statement = f"{change} WHERE {ROWS[table][row]}"
            for file in written.parent.glob("altered.db*"):
                file.unlink()
            shutil.copyfile(written, path)
            if altered(path, statement):
                tried += 1
                if not findings(path):
                    missed.append(statement)
    assert tried or not rows
    return missed


CASES = [(table, column) for table in ROWS for column in columns(table)]
OF_COLUMNS = pytest.mark.parametrize(("table", "column"), CASES, ids=[f"{table}-{column}" for table, column in CASES])
FAST = 2  # rows of each table that the fast test alters


@OF_COLUMNS
def test_an_altered_column_is_seen_or_listed_as_unseen(written, table, column):
    check_column(written, table, column, list(ROWS[table])[:FAST])


@pytest.mark.slow
@OF_COLUMNS
def test_an_altered_column_of_other_rows_is_seen_or_listed_as_unseen(written, table, column):
    check_column(written, table, column, list(ROWS[table])[FAST:])


def check_column(written, table, column, rows):
    hidden = [row for row in rows if row in UNSEEN.get((table, column), ((), ""))[0]]
    assert unseen(written, table, column, [row for row in rows if row not in hidden]) == []
    if hidden:
        assert unseen(written, table, column, hidden) != []


def test_every_table_is_altered_here_or_is_one_that_no_rating_comes_from():
    tables = {name for name, table in schema.METADATA.tables.items() if table not in vars(live_schema).values()}
    assert tables == ROWS.keys()


def test_what_verify_does_not_see_is_told_to_operators():
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    told = text[text.index("No seal covers what") : text.index("`verify` includes the database's own check")]
    assert [phrase for _, phrase in UNSEEN.values() if phrase not in told] == []
    assert "tables that do not affect ratings" in told
