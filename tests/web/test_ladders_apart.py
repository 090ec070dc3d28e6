"""The pages show operators and players of one ladder nothing of another."""

import re

import pytest

from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.web.app import pages
from evenmatch.web.pages import PAGES
from ledger.sample_matches import duel
from two_ladders import HIDDEN, make_two_ladders
from web_client import Browsing, words

STREAMS = ("/ladders/{ladder:text}/pulse",)
OWN = {
    "ladder": "alpha",
    "season": "1",
    "match": "m1",
    "webhook": "999",
    "key": "em_aaaaaaaaaa",
    "kind": "svg",
    "provider": "openid",
}

ON = "/ladders/{ladder:text}"
QUERIES = {  # names that are much like those of the other ladder
    f"{ON}/standings": ("?around=quilt-1",),
    "/search": ("?q=quilt",),
    f"{ON}/me": ("?player=quilt-1",),
    f"{ON}/matches": ("?player=quilt-1", "?player=nomad&opponent=quilt-1"),
    f"{ON}/operate/correct": ("?what=ban&player=quilt-1", "?what=void&match=z-match-1"),
    "/operate/audit": ("?ladder=alpha", "?ladder=zeta-hiden"),
}


@pytest.fixture
def options():
    fast = {"rate": 1e5, "burst": 100_000, "player_rate": 1e5, "player_burst": 100_000}
    return Options(matchmaker=False, open_reads=False, **fast)


@pytest.fixture
def hidden(service, site):
    text = site.keys.create("all", ["admin"], None, None)[1]
    operator = Browsing(application(site), headers={"Authorization": f"Bearer {text}"})
    yield make_two_ladders(service, operator)
    operator.close()


@pytest.fixture(params=["operator", "player"])
def visitor(request, site, hidden):
    """Logged in with an admin key of alpha, or as a player with a link for alpha."""
    browsing = Browsing(application(site, pages=pages))
    if request.param == "player":
        browsing.log_in_as(site, "nomad", ["alpha"])
    else:
        _, key = site.keys.create("alpha", ["queue", "admin"], ["alpha"], None)
        assert browsing.submit("/login", on="/login", key=key).status_code == 303
    yield browsing
    browsing.close()


def test_no_page_tells_a_visitor_of_one_ladder_about_another(visitor, hidden):
    seen = 0
    for page in PAGES:
        if "GET" not in page.methods or page.path in STREAMS:
            continue
        for player in ("quilt-1", "ann", "rover", "nomad") if "{player" in page.path else ("quilt-1",):
            values = {**OWN, "ticket": str(hidden["ticket"]), "player": player}
            path = re.sub(r"{(\w+)(:text)?}", lambda part, values=values: values[part[1]], page.path)
            for query in ("", *QUERIES.get(page.path, ())):
                answer = visitor.get(path + query)
                assert answer.status_code < 500, (path, query)
                assert not HIDDEN.search(f"{answer.text} {answer.headers}".replace("zeta-hiden", "")), (path, query)
                seen += answer.status_code == 200
    assert seen > 20


def test_webhooks_of_another_ladder_are_answered_like_unknown_ones(visitor, hidden):
    for action in ("", "/remove", "/redeliver"):
        known, unknown = (
            words(visitor.get(f"/operate/webhooks/{number}{action}").text).replace(f"'{number}'", "N")
            for number in (hidden["webhook"], 998)
        )
        assert known.replace(f"/{hidden['webhook']}/", "/N/") == unknown.replace("/998/", "/N/")


def test_jobs_of_another_ladder_are_answered_like_unknown_ones(visitor, hidden):
    job, unknown = hidden["job"], "job_0123456789abcdef"
    lab = [visitor.get(f"/ladders/alpha/lab/results?job={name}") for name in (job, unknown)]
    cancelled = [
        visitor.submit("/ladders/alpha/operate/jobs/cancel", on="/ladders/alpha", job=name) for name in (job, unknown)
    ]
    for answers in (lab, cancelled):
        assert answers[0].status_code == answers[1].status_code
        assert answers[0].status_code in (403, 404)
        assert words(answers[0].text).replace(job, "JOB") == words(answers[1].text).replace(unknown, "JOB")


def test_the_operators_page_tells_of_names_that_look_alike_on_the_ladder(service, visitor):
    service.record(duel(7, "ann", "Bоb", "alpha"))
    page = visitor.get("/ladders/alpha/operate")
    if page.status_code == 200:  # not for players
        assert "looks like bob" in words(page.text)
        assert "mixes scripts" in words(page.text)
