"""The web site over a real database, asked in this process; time passes when a test says so."""

import pytest

from databases import made_database
from evenmatch import rules
from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.ladders.settings import Settings
from evenmatch.operations.service import Service
from evenmatch.web.app import pages
from ledger.sample_matches import ManualClock, duel
from oidc_provider import provider  # noqa: F401
from web_client import RESULTS, Browsing


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def options():
    """How the site is served; a test overrides this where it wants something else."""
    return Options(matchmaker=False, open_reads=True, open_rate=10_000, open_burst=10_000)


@pytest.fixture
def service(request, tmp_path, clock):
    with Service.open(made_database(request, "sqlite", tmp_path), clock) as opened:
        yield opened


@pytest.fixture
def site(service, options):
    made = site_over(service, options)
    made.kernels.matchmaker_loaded.set()
    yield made
    made.jobs.stop(10)
    made.close()


@pytest.fixture
def league(service):
    """A ladder of duels by Elo, six matches an hour apart."""
    settings = Settings().changed({"title": "The league", "placement": 1, "active_days": 1000.0})
    service.create_ladder("league", "elo", rules("elo"), settings)
    service.record_many("league", [duel(at, *who, ladder="league") for at, who in enumerate(RESULTS, 1)])
    service.view("league")  # pages may show standings that are a twentieth of a second old
    return "league"


@pytest.fixture
def anyone(site):
    browsing = Browsing(application(site, pages=pages))
    yield browsing
    browsing.close()


@pytest.fixture
def admin_key(site):
    return site.keys.create("operator", ["admin"])[1]


@pytest.fixture
def operator(site, admin_key):
    """Somebody logged in with a key that may do everything."""
    browsing = Browsing(application(site, pages=pages))
    assert browsing.post("/login", data={"key": admin_key, "to": "/operate"}).headers["location"] == "/operate"
    yield browsing
    browsing.close()
