"""The first ladder of a site: made on one page with its queue and key, and the lines shown there work as they are."""

import re
import subprocess
import sys
from html import unescape

import httpx

from evenmatch.accounts.keys import Keys
from evenmatch.operations.service import Service
from server_process import Served
from web_client import words


def test_the_lines_that_the_first_page_shows_report_matches_and_join_the_queue(tmp_path):
    db = str(tmp_path / "site.db")
    with Service.open(db) as service:
        key = Keys(service.database, service.clock).create("operator", ["admin"])[1]
    with Served(db, tmp_path) as served, httpx.Client(base_url=served.address, follow_redirects=True) as browser:
        first = browser.post("/login", data={"key": key, "to": "/operate"}).text
        assert "This site has no ladder yet." in words(first)
        assert len(re.findall(r'name="(?:queue|key)" value="1" checked', first)) == 2
        proof = re.search(r'name="proof" value="([^"]+)"', first)[1]
        form = {"proof": proof, "name": "cup", "title": "", "system": "elo", "team_size": "2", "queue": "1", "key": "1"}
        page = browser.post("/operate/ladders", data=form).text
        shell, python = (unescape(lines) for lines in re.findall(r"(?s)<pre><code>(.*?)</code></pre>", page))
        subprocess.run(["bash", "-c", shell], check=True, capture_output=True, timeout=60)
        done = subprocess.run([sys.executable, "-c", python], check=True, capture_output=True, text=True, timeout=60)
        assert "'ticket'" in done.stdout
        admin = {"Authorization": f"Bearer {key}"}
        matches = browser.get("/v1/ladders/cup/matches", headers=admin).json()["items"]
        assert {one["match_id"] for one in matches} == {"test-curl", "test-python"}
        assert {len(team["players"]) for one in matches for team in one["teams"]} == {2}
        again = browser.get("/ladders/cup/operate/start").text
        assert "YOUR-KEY" in again
        assert "shown only once" not in again
