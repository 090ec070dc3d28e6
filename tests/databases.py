"""Databases with the schema and nothing in it, of each kind: made once, since making one takes half a second.

A conftest offers the fixture by the lines

    from databases import made_url  # noqa: F401
    from postgres import postgres  # noqa: F401
"""

import shutil
from pathlib import Path

import pytest

from evenmatch.ledger.database import Database
from postgres import Postgres

KINDS = ("sqlite", "postgresql")
FILE = pytest.StashKey[Path]()
URL = pytest.StashKey[str]()


@pytest.fixture(params=KINDS)
def made_url(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty database of each kind, with the schema as `Database.open` makes it."""
    if request.param == "sqlite":
        return copy_of_file(request.config.stash, tmp_path / "evenmatch.db", tmp_path_factory)
    server = request.getfixturevalue("postgres")
    assert isinstance(server, Postgres)
    return emptied_on_server(request.config.stash, server)


def copy_of_file(stash: pytest.Stash, path: Path, folders: pytest.TempPathFactory) -> str:
    if FILE not in stash:
        made = folders.mktemp("made") / "evenmatch.db"
        Database.open(str(made)).close()
        assert [file.name for file in made.parent.iterdir()] == [made.name]  # no log beside it that belongs to it
        stash[FILE] = made
    shutil.copyfile(stash[FILE], path)
    return str(path)


def emptied_on_server(stash: pytest.Stash, server: Postgres) -> str:
    """The same database again and again: whatever a test before has left there goes, and whoever."""
    server.start()  # where a test took it down
    if URL not in stash:
        stash[URL] = server.fresh_database()
    database = Database.open(stash[URL])
    with database.write() as store:
        store.connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        tables = store.connection.exec_driver_sql(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
        ).scalars()
        store.connection.exec_driver_sql(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY")
    database.close()
    return stash[URL]
