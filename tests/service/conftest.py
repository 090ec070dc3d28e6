"""A service over each of the two databases, with a clock that stands still until a test moves it."""

import pytest

from databases import KINDS, made_database
from evenmatch import rules
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.settings import Settings
from evenmatch.operations.service import Service
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.standings.rules import StandingsRules
from evenmatch.webhooks.subscriptions import Webhooks
from ledger.sample_matches import ManualClock
from postgres import postgres  # noqa: F401


@pytest.fixture
def clock():
    """`clock.now` is microseconds since the epoch; `clock.move(seconds=…)` lets time pass."""
    return ManualClock()


@pytest.fixture(params=KINDS)
def store_url(request, tmp_path):
    """A database with nothing in it."""
    return made_database(request, request.param, tmp_path)


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
def elo_reading(service):
    """Elo with newcomers at 1500, so that the first match of all is expected to be a half."""
    service.create_ladder("default", "elo", rules("elo"))
    return LadderQueries(service)


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
def maker(queue_service):
    """The matchmaker of a test file's own `queue_service`."""
    return Matchmaker(queue_service)


@pytest.fixture
def webhooks(service):
    """Webhooks that may lead to this machine, where every name leads; a test file overrides this."""
    return Webhooks(service, allow_private=True, find=lambda host, port: ["127.0.0.1"])
