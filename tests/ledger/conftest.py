"""A service over each database that ledgers are kept in, with a clock that stands still until a test moves it."""

import pytest

from databases import KINDS, made_url  # noqa: F401
from evenmatch import rules
from evenmatch.ladders.settings import Settings
from evenmatch.operations.service import Service
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import ManualClock
from postgres import postgres  # noqa: F401


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture(params=KINDS)
def store_url(request, tmp_path):
    """A database that nobody has opened yet."""
    if request.param == "sqlite":
        return str(tmp_path / "evenmatch.db")
    return request.getfixturevalue("postgres").fresh_database()


@pytest.fixture
def service(made_url, clock):  # noqa: F811
    with Service.open(made_url, clock) as opened:
        yield opened


@pytest.fixture
def ladder(service):
    """The ladder `default`, rated by Elo; who has played twice is placed."""
    settings = Settings(standings=StandingsRules(placement=2))
    return service.create_ladder("default", "elo", rules("elo"), settings).name
