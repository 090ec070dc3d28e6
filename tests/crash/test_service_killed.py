"""One of two processes that serve is killed, again and again: nothing acknowledged is lost, nobody plays twice."""

import json
import os
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from crash.clients import ON, Clients
from crash.plain_sql import check_events, select_rows
from evenmatch.accounts.keys import Keys
from evenmatch.operations.service import Service
from postgres import Postgres
from server_process import Served, request_json

SOAK = os.environ.get("EVENMATCH_SOAK") == "1"
KILLS = 20 if SOAK else 2
SEED = int(os.environ.get("EVENMATCH_SEED", "1"))
TAKEN_OVER = 5.0 if SOAK else 20.0  # seconds; in the suite other tests have the processors, too
QUIET = (3.0, 5.0) if SOAK else (0.2, 1.5)  # seconds from the start of one to the end of the other: it needs one or two
ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
QUEUE = {
    "policy": {**ANYBODY, "team_size": 1},
    "rules": {"accept_within": 60, "heartbeat": 120, "tick": 0.1, "penalty": 0},
}
# All in one statement, so that it is all as of one moment.
WHERE = """
SELECT 'match', body FROM live WHERE state = 'open'
UNION ALL SELECT 'ticket', body FROM ticket WHERE state IN ('waiting', 'offered')
UNION ALL SELECT 'offer', body FROM offer WHERE state = 'open'
"""


def check_nobody_twice(url: str) -> None:
    """A player is in one open match, or waits in one ticket, and is asked in one offer; the seats say the same."""
    busy: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    for what, body in select_rows(url, WHERE):
        said = json.loads(str(body))
        if what == "ticket":
            busy.update(member["id"] for member in said["members"])
        elif what == "match":
            busy.update(slot["id"] for team in said["teams"] for slot in team if slot["spells"][-1][1] is None)
        else:
            asked.update(chair["id"] for team in said["teams"] for chair in team)
    assert max(busy.values(), default=1) == 1, busy
    assert max(asked.values(), default=1) == 1, asked
    assert asked.keys() <= busy.keys()


def seconds_until_an_offer(url: str, clients: Clients, took: list[float]) -> float:
    """Seconds from now until the next offer was made, by whoever makes them; `took`: those of the kills before."""
    begin, killed_at = time.monotonic(), time.time_ns() // 1000
    while not select_rows(url, "SELECT 1 FROM offer WHERE made_at > :at LIMIT 1", at=killed_at):
        clients.check()
        assert time.monotonic() < begin + TAKEN_OVER, f"nobody makes offers any more; before: {took}"
        time.sleep(0.05)
    return time.monotonic() - begin


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_and_nobody_plays_twice_when_a_process_is_killed(
    postgres: Postgres, tmp_path: Path
):
    url, chance = postgres.fresh_database(), Random(SEED)
    with Service.open(url) as service:
        key = Keys(service.database, service.clock).create("all", ["admin"], None, None)[1]
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        served = [stack.enter_context(Served(url, folder, EVENMATCH_LOG_LEVEL="warning")) for folder in folders]
        with served[0].client(key) as admin:
            request_json(admin, "POST", "/v1/ladders", {"name": "arena", "system": "elo"}, status=201)
            request_json(admin, "PUT", f"{ON}/queues/main", QUEUE)
        clients = Clients(served, key, SEED)
        stack.callback(clients.end)
        clients.begin(servers=2, players=8)
        took = [seconds_until_an_offer(url, clients, [])]
        for kill in range(KILLS):
            time.sleep(chance.uniform(*QUIET))
            served[kill % 2].kill()  # from the second time on the one that makes the offers
            took.append(seconds_until_an_offer(url, clients, took))
            check_nobody_twice(url)
            served[kill % 2].launch()
            served[kill % 2].wait_for_address()
            check_nobody_twice(url)
        clients.end()
        check_nobody_twice(url)
        check_kept(url, clients, served[0], key)
    assert clients.cut >= KILLS
    print(f"{len(clients.reports)} reports, {len(clients.tickets)} tickets, seconds until an offer: {took}")
    for one in served:
        assert "Traceback" not in one.told()


def check_kept(url: str, clients: Clients, served: Served, key: str) -> None:
    """What was acknowledged is there, once, and told again as before."""
    assert len(clients.reports) > 10 * KILLS
    check_events(url, set(clients.reports), "arena")
    there = {int(str(ticket)) for (ticket,) in select_rows(url, "SELECT ticket FROM ticket")}
    assert clients.tickets <= there
    with served.client(key) as admin:
        plain = sorted(one for one in clients.reports if one.startswith("s"))[::20]
        for match_id in plain:
            found = request_json(admin, "GET", f"{ON}/matches/{match_id}")
            assert found["position"] == clients.reports[match_id]["position"]
    with Service.open(url) as service:
        assert service.verify("arena").is_equal
