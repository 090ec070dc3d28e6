"""Databases of both kinds, and processes to kill."""

from pathlib import Path

import pytest

from crash import children
from postgres import Postgres, postgres  # noqa: F401


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "ladders.db")
    server = request.getfixturevalue("postgres")
    assert isinstance(server, Postgres)
    return server.fresh_database()


@pytest.fixture(scope="session", autouse=True)
def _forks() -> None:
    children.prepare()
