"""The search of the documentation site, as `evenmatch serve` serves it. Skipped where MkDocs is not installed."""

import pytest

from browser.page_checks import Watched
from built_docs import build_docs
from evenmatch.ledger.database import Database
from server_process import Served

pytestmark = pytest.mark.slow


@pytest.fixture
def docs(tmp_path):
    """The process that serves the site."""
    finished = build_docs(tmp_path / "site")
    assert finished.returncode == 0, finished.stderr
    Database.open(str(tmp_path / "evenmatch.db")).close()
    with Served(str(tmp_path / "evenmatch.db"), tmp_path, EVENMATCH_DOCS=str(tmp_path / "site")) as process:
        yield process


def test_the_search_finds_a_page_and_the_policy_blocks_nothing(browser, docs):
    visitor = Watched(browser, docs.address)
    page = visitor.page()
    page.goto("/docs/how-to/live/")
    page.get_by_role("textbox", name="Search").fill("master secret")
    page.locator(".md-search-result__link[href*='/docs/operate/']").first.click()
    page.wait_for_url("**/docs/operate/**")
    assert page.locator("h1").inner_text() == "Run it"
    visitor.close()
    assert visitor.troubles == []
    assert all(address.startswith(docs.address) for address in visitor.asked)
