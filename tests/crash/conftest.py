"""Databases of both kinds, and processes to kill."""

import pytest

from crash import children
from databases import made_url  # noqa: F401
from postgres import postgres  # noqa: F401


@pytest.fixture
def url(made_url: str) -> str:  # noqa: F811
    """An empty database of each kind."""
    return made_url


@pytest.fixture(scope="session", autouse=True)
def _forks() -> None:
    children.prepare()
