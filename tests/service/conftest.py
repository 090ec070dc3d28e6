"""A service over each of the two databases, with a clock that stands still until a test moves it."""

import shutil

import pytest

from evenmatch import rules
from evenmatch.ledger.database import Database
from evenmatch.service.service import Service
from evenmatch.service.settings import Settings
from evenmatch.service.webhooks.subscriptions import Webhooks
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import ManualClock
from postgres import postgres  # noqa: F401

DATABASES = ("sqlite", "postgresql")


@pytest.fixture
def clock():
    """`clock.now` is microseconds since the epoch; `clock.move(seconds=…)` lets time pass."""
    return ManualClock()


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory):
    """An SQLite database with the schema and nothing in it."""
    path = tmp_path_factory.mktemp("empty") / "evenmatch.db"
    Database.open(str(path)).close()
    return path


@pytest.fixture(scope="session")
def shared_url(postgres):  # noqa: F811
    """A PostgreSQL database with the schema, for one test after another: making one takes most of a second."""
    url = postgres.fresh_database()
    Database.open(url).close()
    return url


@pytest.fixture(params=DATABASES)
def store_url(request, tmp_path):
    """A database with nothing in it."""
    if request.param == "sqlite":
        path = tmp_path / "evenmatch.db"
        shutil.copyfile(request.getfixturevalue("empty_file"), path)
        return str(path)
    request.getfixturevalue("postgres").start()  # where a test took it down
    url = request.getfixturevalue("shared_url")
    _empty(url)
    return url


def _empty(url):
    """Take everything out, and whoever a test before has left there."""
    database = Database.open(url)
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


@pytest.fixture
def service(store_url, clock):
    with Service.open(store_url, clock) as opened:
        yield opened


@pytest.fixture
def other_service(service, store_url, clock):
    """The same database as another process has it open."""
    with Service.open(store_url, clock) as opened:
        yield opened


@pytest.fixture
def ladder(service):
    """The ladder `duel`, rated by Elo; who has played twice is placed."""
    settings = Settings(standings=StandingsRules(placement=2))
    return service.create_ladder("duel", "elo", rules("elo"), settings).name


@pytest.fixture
def ladders(service, ladder):
    """The ladders `duel` and `arena`."""
    return [ladder, service.create_ladder("arena", "elo", rules("elo")).name]


@pytest.fixture
def webhooks(service):
    """Webhooks that may lead to this machine, where every name leads; a test file overrides this."""
    return Webhooks(service, allow_private=True, find=lambda host, port: ["127.0.0.1"])
