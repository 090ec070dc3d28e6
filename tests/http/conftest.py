"""The application over a real database of each kind, asked in this process; time passes when a test says so."""

import shutil

import pytest

from asgi_client import Asking
from databases import KINDS, made_database
from evenmatch.accounts.access import SCOPES
from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.ledger.database import Database
from evenmatch.operations.service import Service
from ledger.sample_matches import ManualClock
from loop_lag import BUSY, LoopLag
from postgres import postgres  # noqa: F401
from run_command import run_command
from server_process import Served


@pytest.fixture
def asking(site):
    """Asks the application, whose event loop no request may keep busy for long."""
    made = Asking(application(site))
    with LoopLag(made.loop) as lag:
        yield made
    made.close()
    assert lag.worst < BUSY, "a request kept the event loop busy"


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


@pytest.fixture
def options():
    """How the application serves; a test file overrides this where it wants something else."""
    return Options(matchmaker=False, rate=100_000, burst=100_000, open_rate=1000, open_burst=1000)


@pytest.fixture
def database_url(empty_file, tmp_path):
    """SQLite; a test that is about both databases overrides this by `either_database`."""
    return shutil.copy(empty_file, tmp_path / "evenmatch.db")


@pytest.fixture(scope="module", params=KINDS)
def shared_server(request, tmp_path_factory):
    """A client that may do everything, of one process for all tests of a file; they use ladders of their own names.

    A player has one place over all ladders: a test that lets players wait lets them leave, too.
    """
    folder = tmp_path_factory.mktemp("shared")
    url = made_database(request, request.param, folder)
    made = run_command("key", "create", "operator", "--scope", "admin", "--db", url)
    with Served(url, folder) as process, process.client(made.out.strip()) as admin:
        yield process, admin


@pytest.fixture(params=KINDS)
def either_database(request, tmp_path):
    """A database with the schema and nothing in it, of each kind."""
    return made_database(request, request.param, tmp_path)


@pytest.fixture
def service(database_url, clock):
    with Service.open(str(database_url), clock) as opened:
        yield opened


@pytest.fixture
def site(service, options):
    """What the handlers share."""
    made = site_over(service, options)
    made.kernels.matchmaker_loaded.set()
    yield made
    made.jobs.stop(10)
    made.close()


@pytest.fixture
def other(database_url, clock, options):
    """Asks the same application as another process runs it; its `site` is that process's."""
    with Service.open(str(database_url), clock) as service:
        site = site_over(service, options)
        asking = Asking(application(site))
        asking.site = site
        yield asking
        asking.close()
        site.threads.shutdown()


@pytest.fixture
def keys(site):
    """The headers of a key with each scope, for all ladders."""
    made = {scope: site.keys.create(f"for {scope}", [scope], None, None)[1] for scope in SCOPES}
    return {scope: {"Authorization": f"Bearer {text}"} for scope, text in made.items()}


@pytest.fixture
def operator(site):
    """The text of a key that may do everything."""
    return site.keys.create("operator", ["admin"])[1]


class As:
    """Asks with these headers."""

    def __init__(self, asking, headers):
        self._asking, self._headers = asking, headers

    def __getattr__(self, method):
        ask = getattr(self._asking, method)
        return lambda *arguments, headers=None, **fields: ask(
            *arguments, headers={**self._headers, **(headers or {})}, **fields
        )


@pytest.fixture
def client(asking):
    """Asks without a key."""
    return asking


@pytest.fixture
def reader(asking, keys):
    """Asks with a key that may read all ladders."""
    return As(asking, keys["read"])


@pytest.fixture
def admin(asking, keys):
    """Asks with a key that may do everything on all ladders."""
    return As(asking, keys["admin"])
