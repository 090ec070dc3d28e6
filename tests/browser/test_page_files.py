"""The pages of a ladder as files, opened from a disk."""

import subprocess
import sys
from pathlib import Path

import pytest

SEASON = Path(__file__).parents[2] / "docs" / "examples" / "season.csv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("files") / "pages"
    command = [sys.executable, "-m", "evenmatch", "standings", SEASON, "--system", "elo", "--html", made]
    subprocess.run(command, check=True, capture_output=True)  # beside the browser no event loop may run here
    return made


def test_a_browser_opens_standings_player_and_match_from_a_disk_without_a_complaint(browser, folder):
    context = browser.new_context()
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(request.url))
    page.goto((folder / "index.html").as_uri())
    assert page.locator("h1").inner_text() == "Standings"
    assert page.evaluate("getComputedStyle(document.querySelector('.hidden')).position") == "absolute"
    assert page.locator(".brand use").bounding_box()["width"] > 5  # the symbol is drawn
    page.get_by_role("link", name="ann").click()
    assert page.locator("h1").inner_text() == "ann"
    page.locator("details.m summary").first.click()
    page.get_by_role("link", name="See the match").first.click()
    assert "beat" in page.locator("h1").inner_text() or "won" in page.locator("h1").inner_text()
    page.locator(".brand").click()
    assert page.locator("h1").inner_text() == "Standings"
    context.close()
    assert said == []
