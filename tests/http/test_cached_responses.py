"""Answers that are given again without the endpoint: always what the endpoint would answer, to nobody else."""

import asyncio
import gc
import threading
import weakref
from functools import partial
from itertools import pairwise

import pytest

from evenmatch import rules
from evenmatch.errors import UnknownNameError
from evenmatch.http.cached_standings import SharedComputations
from evenmatch.http.options import Options
from evenmatch.ladders.settings import Settings
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import duel

STANDINGS = "/v1/ladders/duel/standings"


@pytest.fixture
def ladder(service):
    """Two players of whom one beat the other."""
    service.create_ladder("duel", "elo", rules("elo"), Settings(standings=StandingsRules(placement=1)))
    service.create_ladder("arena", "elo", rules("elo"))
    service.record(duel(1, "ann", "bob", "duel"))
    service.view("duel")
    return "duel"


@pytest.fixture
def still(service, monkeypatch):
    """Views stay young until a test forgets them, however slow this machine is at the moment."""
    monkeypatch.setattr(type(service._boards), "_is_young", staticmethod(lambda _: True))


@pytest.fixture
def routed(site, monkeypatch):
    """The addresses of the requests that got as far as the endpoint."""
    seen = []
    keep = site.answers.keep

    def kept(request, *rest, whole):
        seen.append(request.url.path)
        keep(request, *rest, whole=whole)

    monkeypatch.setattr(site.answers, "keep", kept)
    return seen


def same(one, other):
    """Whether two answers differ in nothing but what tells requests apart, and the allowance that shrinks."""
    names = ("etag", "cache-control", "content-type", "content-length", "ratelimit-limit")
    assert [one.headers.get(name) for name in names] == [other.headers.get(name) for name in names]
    return (one.status_code, one.content) == (other.status_code, other.content)


@pytest.mark.usefixtures("ladder", "still")
@pytest.mark.parametrize("address", [STANDINGS, f"{STANDINGS}?limit=1", "/v1/ladders/duel/distribution?bins=7"])
def test_what_is_asked_again_is_answered_alike_without_the_endpoint(reader, routed, address):
    first, again = reader.get(address), reader.get(address)
    assert first.status_code == 200
    assert same(first, again)
    assert len(routed) == 1
    assert first.headers["x-request-id"] != again.headers["x-request-id"]
    assert int(again.headers["ratelimit-remaining"]) <= int(first.headers["ratelimit-remaining"])
    known = reader.get(address, headers={"If-None-Match": first.headers["etag"]})
    assert (known.status_code, known.content, len(routed)) == (304, b"", 1)
    assert same(reader.get(address, headers={"If-None-Match": '"other"'}), first)


@pytest.mark.usefixtures("ladder", "still")
def test_the_figures_count_it_as_any_other_request(reader, site):
    for _ in range(3):
        reader.get(STANDINGS)
    told = site.metrics.text().decode()
    assert 'route="/v1/ladders/{ladder}/standings",status="200"} 3.0' in told


@pytest.mark.usefixtures("ladder")
def test_standings_that_changed_are_not_answered_from_what_was(service, reader):
    before = reader.get(STANDINGS).json()["items"]
    assert [row["player"] for row in before] == ["ann", "bob"]
    service.record(duel(2, "bob", "ann", "duel"))
    service.record(duel(3, "bob", "ann", "duel"))
    service.view("duel")
    assert [row["player"] for row in reader.get(STANDINGS).json()["items"]] == ["bob", "ann"]


@pytest.mark.usefixtures("ladder")
def test_responses_keep_no_view_of_the_past(service, reader):
    assert reader.get("/v1/ladders/duel/distribution?bins=7").status_code == 200
    before = weakref.ref(service.view("duel"))
    service.record(duel(2, "bob", "ann", "duel"))
    service.view("duel")
    assert reader.get("/v1/ladders/duel/distribution?bins=8").status_code == 200
    gc.collect()
    assert before() is None


@pytest.mark.usefixtures("ladder")
def test_a_response_is_out_of_date_when_there_is_no_view_at_all(service, reader, routed):
    for _ in range(2):
        assert reader.get(STANDINGS).status_code == 200
        service._boards.forget("duel")
        gc.collect()
    assert len(routed) == 2


@pytest.mark.usefixtures("ladder", "still")
def test_cached_responses_are_bounded_in_bytes(reader, site, routed):
    size = len(reader.get(STANDINGS).content)
    site.answers._most_bytes = 3 * size
    for number in range(5):
        assert reader.get(f"{STANDINGS}?number={number}").status_code == 200
    again = [len(routed)]
    for number in (4, 3, 2, 0):
        reader.get(f"{STANDINGS}?number={number}")
        again.append(len(routed))
    assert [later - earlier for earlier, later in pairwise(again)] == [0, 0, 0, 1]


@pytest.mark.usefixtures("ladder", "still")
def test_nobody_is_given_what_the_endpoint_would_refuse(asking, site, keys, routed):
    assert asking.get(STANDINGS, headers=keys["read"]).status_code == 200
    elsewhere = site.keys.create("elsewhere", ["read"], ["arena"])[1]
    for _ in range(2):  # the second time it is known who asks
        assert asking.get(STANDINGS).status_code == 401
        assert asking.get(STANDINGS, headers={"Authorization": "Bearer em_aaaaaaaaaa_x"}).status_code == 401
        assert asking.get(STANDINGS, headers={"Authorization": f"Bearer {elsewhere}"}).status_code == 403
        assert asking.get(STANDINGS, headers={"Authorization": "Basic eDp5"}).status_code == 401
    assert asking.post(STANDINGS, headers=keys["read"]).status_code == 405
    assert len(routed) == 1


@pytest.mark.usefixtures("ladder", "still")
def test_a_revoked_key_reads_no_more(asking, site, routed):
    key, text = site.keys.create("for a day", ["read"])
    headers = {"Authorization": f"Bearer {text}"}
    assert [asking.get(STANDINGS, headers=headers).status_code for _ in range(2)] == [200, 200]
    site.keys.revoke(key.key)
    assert asking.get(STANDINGS, headers=headers).status_code == 401
    assert len(routed) == 1


@pytest.mark.usefixtures("ladder", "still")
class TestLimits:
    @pytest.fixture
    def options(self):
        return Options(matchmaker=False, rate=0.001, burst=3, open_reads=True, open_rate=0.001, open_burst=2)

    def test_who_asks_too_often_is_told_so(self, asking, keys, routed):
        answers = [asking.get(STANDINGS, headers=keys["read"]) for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 200, 429]
        assert [one.headers.get("ratelimit-remaining") for one in answers[:3]] == ["2", "1", "0"]
        assert len(routed) == 1

    def test_where_reads_are_open_nobody_needs_a_key(self, asking, routed):
        assert [asking.get(STANDINGS).status_code for _ in range(3)] == [200, 200, 429]
        assert len(routed) == 1


def test_what_several_ask_at_the_same_moment_is_made_once(site):
    made, gate = [], threading.Event()

    def make():
        gate.wait(10)
        made.append(1)
        return len(made)

    async def ask():
        once = SharedComputations()
        asked = [asyncio.ensure_future(once.get("a", partial(site.work, make))) for _ in range(5)]
        await asyncio.sleep(0)
        asked[0].cancel()  # who goes away takes nothing from the others
        gate.set()
        told = await asyncio.gather(*asked, return_exceptions=True)
        return told, await once.get("a", partial(site.work, make))

    told, later = asyncio.run(ask())
    assert isinstance(told[0], asyncio.CancelledError)
    assert (told[1:], later) == ([1] * 4, 2)


def test_what_cannot_be_made_is_told_to_all_and_tried_again(site):
    def fail():
        raise UnknownNameError("ladder", "x", ())

    async def ask():
        once = SharedComputations()
        told = await asyncio.gather(
            *(once.get("a", partial(site.work, fail)) for _ in range(3)), return_exceptions=True
        )
        return told, await once.get("a", partial(site.work, lambda: "made"))

    told, later = asyncio.run(ask())
    assert ([type(one) for one in told], later) == ([UnknownNameError] * 3, "made")
