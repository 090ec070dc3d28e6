"""A database that the version before wrote is upgraded when it is opened: nothing that counts is other than it was.

`written_at_0001.json` holds every row that the code of schema 0001 wrote of two ladders with a merge, a rename, a void
match, a ban, start ratings and a season, and what that code told of them; floats are in hexadecimal, bit for bit.
"""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from evenmatch.errors import ConflictError
from evenmatch.ledger.database import VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.migrations.versions import __file__ as scripts
from evenmatch.service.corrections import Unvoid
from evenmatch.service.service import Service
from ledger.sample_matches import duel, team_match

OLD = json.loads(Path(__file__).with_name("written_at_0001.json").read_text(encoding="utf-8"))
IDENTITIES = {"player": "player", "ladder": "ladder"}
OTHERWISE = {"event": {"seal"}, "player": {"folded"}}  # columns that an upgrade computes again
# Opens a database, and is gone by SIGKILL just before a statement that holds a text.
KILLED = """
import os, signal, sys
import sqlalchemy as sa
from evenmatch.ledger.database import Database

@sa.event.listens_for(sa.Engine, "before_cursor_execute")
def look(connection, cursor, statement, *_):
    if sys.argv[2] in statement:
        os.kill(os.getpid(), signal.SIGKILL)

@sa.event.listens_for(sa.Engine, "commit")
def end(connection):
    if sys.argv[2] == "COMMIT" and connection.in_transaction() and "ticket" in sa.inspect(connection).get_table_names():
        os.kill(os.getpid(), signal.SIGKILL)

Database.open(sys.argv[1])
"""


def migrate(url, version):
    """Run the scripts up to a version, as that version ran them."""
    config = Config()
    config.set_main_option("script_location", "evenmatch.ledger:migrations")
    engine = sa.create_engine(parse_url(url))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
    engine.dispose()


def json_value(value):
    return {"hex": bytes(value).hex()} if isinstance(value, bytes | memoryview) else value


def all_rows(url, tables):
    """Every row of these tables in the columns that the version before wrote, in some order that is always the same."""
    engine = sa.create_engine(parse_url(url))
    columns = {
        name: [f'"{column}"' for column in table["columns"] if column not in OTHERWISE.get(name, ())]
        for name, table in OLD["tables"].items()
    }
    with engine.connect() as connection:
        found = {
            table: sorted(
                (
                    [json_value(value) for value in row]
                    for row in connection.execute(sa.text(f'SELECT {", ".join(columns[table])} FROM "{table}"'))
                ),
                key=repr,
            )
            for table in tables
        }
    engine.dispose()
    return found


def schema_of(url):
    """The version of the schema, and the names of the tables."""
    engine = sa.create_engine(parse_url(url))
    with engine.connect() as connection:
        told = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        tables = set(sa.inspect(connection).get_table_names()) - {"alembic_version"}
    engine.dispose()
    return told, tables


def fill_tables(url):
    """The tables of 0001 with what the version before wrote."""
    engine = sa.create_engine(parse_url(url))
    with engine.begin() as connection:
        for name, table in OLD["tables"].items():
            marks = ", ".join(f":{column}" for column in table["columns"])
            listed = [
                {
                    column: bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
                    for column, value in zip(table["columns"], row, strict=True)
                }
                for row in table["rows"]
            ]
            if listed:
                connection.execute(sa.text(f'INSERT INTO "{name}" VALUES ({marks})'), listed)
        if connection.dialect.name == "postgresql":
            for table, column in IDENTITIES.items():
                sequence = f"pg_get_serial_sequence('{table}', '{column}')"
                connection.execute(sa.text(f"SELECT setval({sequence}, (SELECT MAX({column}) FROM {table}))"))
    engine.dispose()


@pytest.fixture
def old(store_url):
    """A database of each kind as the version before left it."""
    migrate(store_url, "0001")
    fill_tables(store_url)
    return store_url


def written_rows(name, table):
    kept = [index for index, column in enumerate(table["columns"]) if column not in OTHERWISE.get(name, ())]
    return sorted(([row[index] for index in kept] for row in table["rows"]), key=repr)


WRITTEN = {name: written_rows(name, table) for name, table in OLD["tables"].items()}


def exact_standings(service, ladder):
    view = service.view(ladder)
    return {
        name: [one.rating.hex(), one.rank, one.percentile, one.division, one.matches, one.completed]
        for name, one in service.named(view.snapshot.among(view.snapshot.board.player))
    }


def receipt_values(receipt):
    return [
        receipt.position,
        [
            [
                [
                    line.change.player,
                    line.change.before.hex(),
                    line.change.after.hex(),
                    {
                        name: value.hex() if isinstance(value, float) else value
                        for name, value in line.change.factors.items()
                    },
                    line.percentile,
                    line.division,
                ]
                for line in team
            ]
            for team in receipt.teams
        ],
    ]


def reported():
    """The matches that were reported to the version before, as they are sent again."""
    chance, names = Random(6), ["ann", "bob", "eve", "joe", "kim", "zoë"]
    for number in range(1, 15):
        yield duel(number, *chance.sample(names, 2), duration=60.0 * number)
    yield team_match(15, (1, "ann", "bob"), (2, "eve*", "joe~"))
    yield team_match(16, (1, "ann"), (1, "kim"), (3, "zoë"))
    yield team_match(17, (1, "Ann 2"), (2, "joe"))


def test_new_tables_come_and_no_row_is_other_than_it_was(old):
    assert schema_of(old) == ("0001", set(WRITTEN))
    Database.open(old).close()
    version, tables = schema_of(old)
    last = max(path.name for path in Path(scripts).parent.glob("0*.py"))
    assert (version, last[:4]) == (VERSION, VERSION)
    assert tables > {*WRITTEN, "seat", "ticket", "live", "api_key", "webhook"}
    assert all_rows(old, WRITTEN) == WRITTEN


def check_told(service, ladder):
    """Ratings, ranks, divisions and receipts are those of before."""
    assert exact_standings(service, ladder) == OLD["standings"][ladder]
    found = service.verify(ladder)
    assert (found.damage, found.differences, found.due) == ((), (), None)
    known = OLD["receipts"][ladder]
    sent = [replace(one, ladder=ladder) for one in reported() if one.id in known]
    assert {one.match_id: receipt_values(one) for one in service.record_many(ladder, sent)} == known
    assert exact_standings(service, ladder) == OLD["standings"][ladder]


def test_all_is_told_as_before_and_goes_on(old, clock):
    """Then the same id with other content is a conflict still; a new match, a new player and a correction go in."""
    clock.now = OLD["now"]
    with Service.open(old, clock) as service:
        check_told(service, "default")
        check_told(service, "arena")
        finals = [[one.rank, one.player, one.rating.hex()] for one in service.finals("default", 1)]
        assert finals == OLD["finals"]
        assert [(one.number, one.title) for one in service.seasons("default")] == [(1, "Season 1"), (2, "second")]
        assert service.player("bob") == service.player("bobby")
        assert service.player("Ann 2") == service.player("ann")
        assert service.search("zoe") == ["zoë"]
        with pytest.raises(ConflictError, match="m1"):
            service.record(replace(next(reported()), duration=1.0))
        receipt = service.record(team_match(310, (1, "ann", "nobody before"), (2, "eve", "kim")))
        assert receipt.position == 1 + max(row[1] for row in WRITTEN["event"] if row[0] == 1)
        service.correct("default", Unvoid("m3"))
        found = service.verify("default")
        assert (found.damage, found.differences, found.due) == ((), (), None)


def test_an_event_that_was_damaged_before_the_upgrade_is_named_after_it(old):
    """And no other: the chain goes on from the seal that it has."""
    engine = sa.create_engine(parse_url(old))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE event SET played_at = 5 WHERE ladder = 1 AND position = 4")
        connection.exec_driver_sql("UPDATE event SET body = '{' WHERE ladder = 1 AND kind = 'match-voided'")
    engine.dispose()
    with Service.open(old) as service:
        found = service.verify("default").damage
        assert len(found) == 2
        assert "at position 4 is not as it was recorded" in found[0]
        assert "match-voided" in found[1]


@pytest.mark.parametrize("moment", ["CREATE TABLE live", "COMMIT"])
def test_an_upgrade_that_is_killed_leaves_the_old_database_whole(old, moment):
    run = subprocess.run(
        [sys.executable, "-c", KILLED, old, moment], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert schema_of(old) == ("0001", set(WRITTEN))
    assert all_rows(old, WRITTEN) == WRITTEN
    Database.open(old).close()
    assert schema_of(old)[0] == VERSION
    assert all_rows(old, WRITTEN) == WRITTEN
