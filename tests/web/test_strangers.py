"""Requests without a key: how many may wait, and what a refusal shows."""

from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest

from evenmatch.accounts.sessions import ISSUER
from evenmatch.http import waiting_requests
from evenmatch.http.options import Options


def test_an_address_has_a_limited_number_of_polls_without_a_key(anyone, site, league, monkeypatch):
    monkeypatch.setattr(waiting_requests, "EACH_ADDRESS", 2)
    site.running.announce("league", "m-1", [["ann"], ["bob"]])
    path = "/v1/ladders/league/live/m-1?after=99&wait="
    with ThreadPoolExecutor(3) as threads:
        answers = [asked.result(30).status_code for asked in [threads.submit(anyone.get, f"{path}2") for _ in range(3)]]
    assert sorted(answers) == [200, 200, 429]
    assert anyone.get(f"{path}0.1").status_code == 200  # they have ended


class TestBeyondTheLimit:
    """Strangers beyond their allowance."""

    @pytest.fixture
    def options(self):
        return Options(matchmaker=False, open_reads=True, open_rate=0.001, open_burst=2)

    @pytest.mark.parametrize("path", ["/ladders/league", "/nope", "/v1/ladders/league/standings"])
    def test_requests_under_a_foreign_name_count(self, anyone, league, path):
        answers = [anyone.get(path, headers={"host": "evil.example"}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [421, 421, 429, 429]
        assert not [answer for answer in answers if "The league" in answer.text]
        assert anyone.get("/ladders/league").status_code == 429

    def test_forged_session_cookies_take_no_thread(self, anyone, operator, site, league, monkeypatch):
        find, asked = site.sessions.find, []
        monkeypatch.setattr(site.sessions, "find", lambda text: (asked.append(text), find(text))[1])
        for forged in ("x.y.z", "x" * 60_000, jwt.encode({"iss": ISSUER}, "0" * 32, "HS256")):
            anyone.get("/ladders/league", headers={"cookie": f"evenmatch-session={forged}"})
        assert asked == []
        assert operator.get("/operate").status_code == 200
        assert len(asked) == 1

    def test_the_form_of_a_stranger_is_not_sent_back(self, anyone, operator, league):
        form = "&".join(f"region=r{number:04d}" for number in range(1990))
        headers = {"content-type": "application/x-www-form-urlencoded"}
        for _ in range(3):
            refused = anyone.post("/ladders/league/queue/join", content=form, headers=headers)
        assert refused.status_code == 429
        assert "r0001" not in refused.text
        assert len(refused.content) < 10_000
        assert operator.get("/ladders/league").status_code == 200
