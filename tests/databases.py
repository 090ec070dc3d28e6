"""Databases with the schema and nothing in it, of each kind: copies of one, since making it takes a third of a second.

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
def made_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind, with the schema as `Database.open` makes it."""
    return made_database(request, request.param, tmp_path)


def made_database(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    """Such a database for the fixture that asks: a file in this folder, or one on the server, which goes with it."""
    if kind == "sqlite":
        return copy_of_file(request, folder / "evenmatch.db")
    server = request.getfixturevalue("postgres")
    assert isinstance(server, Postgres)
    url = copy_on_server(request.config.stash, server)
    request.addfinalizer(lambda: server.drop(url))
    return url


def copy_of_file(request: pytest.FixtureRequest, path: Path) -> str:
    stash = request.config.stash
    if FILE not in stash:
        folders = request.getfixturevalue("tmp_path_factory")
        assert isinstance(folders, pytest.TempPathFactory)
        made = folders.mktemp("made") / "evenmatch.db"
        Database.open(str(made)).close()
        assert [file.name for file in made.parent.iterdir()] == [made.name]  # no log beside it that belongs to it
        stash[FILE] = made
    shutil.copyfile(stash[FILE], path)
    return str(path)


def copy_on_server(stash: pytest.Stash, server: Postgres) -> str:
    if URL not in stash:
        made = server.fresh_database()
        Database.open(made).close()
        stash[URL] = made
    return server.fresh_database(like=stash[URL])
