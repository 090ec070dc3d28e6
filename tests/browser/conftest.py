"""A real Chromium before a real process that serves ladders full of names that try to do harm."""

import pytest

from browser import sample_ladders
from browser.page_checks import Watched
from chromium import chromium, lacking
from server_process import Served


def pytest_collection_modifyitems(items):
    reason = lacking()
    if reason is not None:
        for item in items:
            if "browser" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=f"needs a browser: {reason}"))


@pytest.fixture(scope="package")
def browser():
    """Chromium. It ends with the last test of this folder: while it is there, no other may run an event loop."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def known(tmp_path_factory):
    """What is in the database, which is made once: a World."""
    return sample_ladders.make(tmp_path_factory.mktemp("ladders") / "evenmatch.db")


@pytest.fixture(scope="package")
def served(known, tmp_path_factory):
    """A process over that database, which anybody may read, and in whose queues anybody may wait."""
    settings = {"OPEN_READS": "true", "GUESTS": "true", "OPEN_RATE": "1000", "OPEN_BURST": "10000"}
    settings |= {"LOG_FORMAT": "text", "PRIVATE_WEBHOOKS": "true", "STOP_WITHIN": "1"}
    folder = tmp_path_factory.mktemp("served")
    with Served(str(known.path), folder, **{f"EVENMATCH_{name}": value for name, value in settings.items()}) as process:
        yield process


@pytest.fixture(scope="package")
def session(browser, served, known):
    """The cookies of somebody who is logged in by a key that may do everything."""
    watched = Watched(browser, served.address)
    log_in(watched.page(), known.keys["admin"])
    cookies = watched.context.cookies()
    watched.close()
    return cookies


@pytest.fixture
def visitor(browser, served):
    """Makes visitors: `visitor(width=360, scheme="dark")`, see Watched. No trouble may come to any of them."""
    made = []

    def come(**settings):
        made.append(Watched(browser, served.address, **settings))
        return made[-1]

    yield come
    troubles = [trouble for one in made for trouble in one.troubles]
    for one in made:
        one.close()
    assert troubles == []


@pytest.fixture
def page(visitor):
    """A tab of a visitor with a wide window in daylight."""
    return visitor().page()


@pytest.fixture
def operator(visitor, session):
    """A tab of a visitor who is logged in by a key that may do everything."""
    return visitor(cookies=session).page()


def log_in(page, key):
    """Log in as people do."""
    page.goto("/login")
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Log in with a key").click()
    page.wait_for_url(lambda url: "/login" not in url)
