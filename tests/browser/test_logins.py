"""People log in with a real browser at an OpenID Connect provider of another site, and come back with their cookies."""

import pytest

from browser.axe import violations
from browser.page_checks import overflow, settled
from evenmatch import rules
from evenmatch.accounts.linked_accounts import LinkedAccounts
from evenmatch.operations.service import Service
from ledger.sample_matches import duel
from oidc_provider import CLIENT, SECRET, Provider, install
from server_process import Served

pytestmark = pytest.mark.slow


@pytest.fixture
def provider(tmp_path_factory):
    return Provider(install(tmp_path_factory))


@pytest.fixture
def site(tmp_path, provider):
    """The address of a served ladder on which ann has played, and her account is linked; the provider runs for it."""
    path = str(tmp_path / "evenmatch.db")
    with Service.open(path) as service:
        service.create_ladder("league", "elo", rules("elo"))
        service.record(duel(1, "ann", "bob", "league"))
        LinkedAccounts(service.database, service.clock).link("ann", provider.url, "a-1")
    settings = {"OPERATOR_GROUPS": '{"ladder-admins": ["admin"]}', "LOG_FORMAT": "text", "STOP_WITHIN": "1"}
    for who in ("PLAYER", "OPERATOR"):
        settings |= {f"{who}_ISSUER": provider.url, f"{who}_CLIENT_ID": CLIENT, f"{who}_CLIENT_SECRET": SECRET}
    with Served(path, tmp_path, **{f"EVENMATCH_{name}": value for name, value in settings.items()}) as served:
        address = served.address.replace("127.0.0.1", "localhost")  # another site than the provider, for browsers
        provider.start(address)
        yield address
        provider.stop()


@pytest.fixture
def page(browser, site):
    context = browser.new_context(base_url=site)
    yield context.new_page()
    context.close()


def log_in(page, name, link):
    page.get_by_role("link", name=link).click()
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def check_page(page):
    """The page is accessible, and fits at every width."""
    settled(page)
    assert violations(page) == []
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert overflow(page) == []


def test_a_player_comes_back_to_the_page_that_asked_for_the_login(page, provider):
    page.goto("/account")
    check_page(page)
    log_in(page, "a-1", f"Log in with {provider.url.removeprefix('http://')}")
    page.get_by_text("You are logged in as ann").wait_for()
    check_page(page)
    page.get_by_label("Me: ann").click()
    page.get_by_role("button", name="Log out").click()
    page.get_by_text("You are logged out.").wait_for()


def test_an_account_that_is_not_linked_is_told_what_to_do(page, provider):
    page.goto("/login")
    log_in(page, "a-2", f"Log in with {provider.url.removeprefix('http://')}")
    page.get_by_role("heading", name="Your account is not linked to a player yet").wait_for()
    check_page(page)


def test_an_operator_comes_back_to_the_page_that_asked_for_the_login(page):
    page.goto("/operate/accounts?issuer=steam&subject=7656")
    log_in(page, "olga", "Log in with single sign-on")
    page.get_by_role("heading", name="Accounts of players").wait_for()
    page.get_by_label("Player", exact=True).first.fill("bob")
    page.get_by_role("button", name="Link", exact=True).click()
    page.get_by_text("7656 of steam now logs in as bob.").wait_for()
    check_page(page)
