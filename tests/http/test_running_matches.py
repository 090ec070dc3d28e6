"""Running matches in large numbers: bounded, and nothing long in the event loop."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenmatch import rules
from evenmatch.accounts.keys import Keys
from evenmatch.http.options import Options
from evenmatch.ledger import player_rows
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.live import attendance, slots
from evenmatch.operations.service import Service
from loop_lag import BUSY, ServedLag
from server_process import Served

ON = "/v1/ladders/duel/live"
SECOND = 1_000_000
MOST = 3


@pytest.fixture
def options():
    return Options(matchmaker=False, rate=100_000, burst=100_000, running_limit=MOST)


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def ladder(service, clock):
    clock.move(days=365)
    service.create_ladder("duel", "elo", rules("elo"))
    return "duel"


def store_matches(service, first, count, size, spans=1):
    """Running matches of two teams of this size, as queues make them; all have the same players."""
    with service.database.write() as store:
        number, now = store.head("duel").ladder, service.clock()
        names = [[f"p{team}-{at}" for at in range(size)] for team in range(2)]
        ids, _ = player_rows.admit(store, [name for team in names for name in team])
        spells = [[now + at, now + at] for at in range(spans - 1)] + [[now + spans, None]]
        for at in range(first, first + count):
            teams = [[{"player": name, "id": ids[name], "spells": spells} for name in team] for team in names]
            times = now, now + 7200 * SECOND
            slots.begin(store, number, f"m-{at}", reserve_changes(store, number, 1), None, *times, {"teams": teams})


@pytest.mark.slow
def test_lists_and_matches_that_are_very_large_keep_nobody_waiting(either_database, tmp_path):
    with Service.open(str(either_database)) as service:
        service.create_ladder("duel", "elo", rules("elo"))
        store_matches(service, 0, 2_000, 6)
        store_matches(service, 2_000, 1, 2_000, attendance.SPANS_LIMIT // 10)
        key = Keys(service.database, service.clock).create("page", ["read"])[1]
    with Served(str(either_database), tmp_path) as process, process.client(key) as reader:
        assert reader.get("/v1/ladders").status_code == 200
        with ServedLag(process.address) as lag:
            listed, large = reader.get(ON), reader.get(f"{ON}/m-2000")
        assert (listed.status_code, len(listed.json()["items"])) == (200, 2_001)
        assert listed.json()["items"][-1] == large.json()
        assert listed.json()["items"][0] == reader.get(f"{ON}/m-0").json()
        assert reader.get(ON, headers={"If-None-Match": listed.headers["etag"]}).status_code == 304
    assert lag.worst < BUSY / 2


@pytest.fixture
def reading(site, monkeypatch):
    """Counts how often the running matches are read, which takes a while."""
    calls, on, guard = [], site.running.on, threading.Lock()

    def slow(ladder):
        with guard:
            calls.append(threading.current_thread().name)
        time.sleep(0.3)
        return on(ladder)

    monkeypatch.setattr(site.running, "on", slow)
    return calls


def test_running_matches_are_read_once_for_all_queues_and_apart_from_other_requests(admin, reader, ladder, reading):
    queues = [f"q{at}" for at in range(6)]
    for queue in queues:
        assert admin.put(f"/v1/ladders/duel/queues/{queue}", json={}).status_code < 300
    assert admin.put(f"{ON}/m-0", json={**duel(0), "queue": "q1"}).status_code == 200

    with ThreadPoolExecutor(len(queues) + 1) as pool:
        answers = list(pool.map(reader.get, [ON, *(f"{ON}?queue={queue}" for queue in queues)]))
    assert [len(answer.json()["items"]) for answer in answers] == [1, 0, 1, 0, 0, 0, 0]
    assert len(reading) == 1
    assert "running matches" in reading[0]


def test_no_running_match_is_read_for_a_queue_that_the_ladder_does_not_have(reader, ladder, reading):
    refused = reader.get(f"{ON}?queue=none")
    assert (refused.status_code, "'none'" in refused.text) == (404, True)
    assert reading == []


def duel(at):
    return {"teams": [{"players": [f"a{at}"]}, {"players": [f"b{at}"]}]}


def test_a_ladder_has_a_limit_of_running_matches(admin, ladder):
    for at in range(MOST):
        assert admin.put(f"{ON}/m-{at}", json=duel(at)).status_code == 200
    refused = admin.put(f"{ON}/m-9", json=duel(9))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
    assert "'duel' has 3 running matches" in refused.text
    assert "EVENMATCH_RUNNING_LIMIT" in refused.text
    assert admin.put(f"{ON}/m-0", json=duel(0)).status_code == 200  # repeated
    assert admin.post(f"{ON}/m-0/cancel", json={}).status_code == 200
    assert admin.put(f"{ON}/m-9", json=duel(9)).status_code == 200


def test_a_key_of_one_ladder_has_no_long_match_filled_by_a_queue(admin, site, ladder, asking):
    key = site.keys.create("game server", ["report"], ["duel"])[1]
    limited, body = {"Authorization": f"Bearer {key}"}, {"queue": "short", "seats": [0, 1]}
    short = {"policy": {"team_size": 2}, "rules": {"longest_match": 60}}
    assert admin.put("/v1/ladders/duel/queues/short", json=short).status_code < 300
    long = {**duel(0), "expires_in": 7 * 86_400}
    assert asking.put(f"{ON}/m-0", json=long, headers=limited).status_code == 200
    refused = asking.put(f"{ON}/m-0/backfill", json=body, headers=limited)
    assert (refused.status_code, "longest_match of queue 'short'" in refused.text) == (422, True), refused.text
    assert asking.put(f"{ON}/m-0/backfill", json={"seats": None}, headers=limited).status_code == 200
    assert admin.put(f"{ON}/m-0/backfill", json=body).json()["openings"] == [0, 1]


def test_a_player_who_comes_and_goes_all_the_time_is_refused_in_the_end(admin, ladder, clock):
    assert admin.put(f"{ON}/m-0", json=duel(0)).status_code == 200
    flaps = [{"player": "a0", "back": at % 2 == 1} for at in range(2 * attendance.SPANS_LIMIT - 2)]
    assert admin.post(f"{ON}/m-0/presence", json={"players": flaps}).status_code == 200
    leaves, comes = {"player": "a0"}, {"player": "a0", "back": True}
    assert admin.post(f"{ON}/m-0/presence", json={"players": [leaves]}).status_code == 200
    refused = admin.post(f"{ON}/m-0/presence", json={"players": [comes]})
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:evenmatch:problem:conflict")
    assert "'a0' has joined match 'm-0' 100 times, which is the limit" in refused.text


def test_a_player_who_changes_sides_all_the_time_is_refused_in_the_end(admin, ladder):
    assert admin.put(f"{ON}/m-0", json=duel(0)).status_code == 200
    changes = [{"player": "a0", "back": True, "team": (at + 1) % 2} for at in range(attendance.SPANS_LIMIT - 1)]
    assert admin.post(f"{ON}/m-0/presence", json={"players": changes}).status_code == 200
    refused = admin.post(f"{ON}/m-0/presence", json={"players": [{"player": "a0", "back": True, "team": 0}]})
    assert refused.status_code == 409
    assert "'a0' has been put on a team in match 'm-0' 100 times" in refused.text


def test_players_who_join_late_do_not_make_a_match_too_large_to_report(admin, ladder):
    assert admin.patch("/v1/ladders/duel", json={"player_limit": 3}).status_code == 200
    assert admin.put(f"{ON}/m-0", json=duel(0)).status_code == 200
    late = [{"player": f"late-{at}", "back": True, "team": 0} for at in range(2)]
    assert admin.post(f"{ON}/m-0/presence", json={"players": late[:1]}).status_code == 200
    refused = admin.post(f"{ON}/m-0/presence", json={"players": late[1:]})
    assert (refused.status_code, "at most" in refused.text) == (422, True), refused.text
