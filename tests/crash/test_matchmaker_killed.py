"""Two processes share the matchmakers of many ladders; when one is killed, the other has all of them within 5 s."""

import time
from collections import Counter
from collections.abc import Callable

from crash.children import Child
from crash.matchmaker_child import run_matchmaker
from evenmatch import rules
from evenmatch.operations.service import Service
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from postgres import Postgres

LADDERS = 20
DEADLINE = 60.0  # seconds, for processes that start on a busy machine


def holders(service: Service) -> Counter[str]:
    """How many ladders each process holds."""
    with service.database.read() as store:
        return Counter(lease.owner for lease in queue_sql.read_leases_named(store, "matchmaker of ladder ").values())


def wait_for(holds: Callable[[], bool]) -> float:
    """Seconds until it holds."""
    begin = time.monotonic()
    while not holds():
        assert time.monotonic() - begin < DEADLINE
        time.sleep(0.05)
    return time.monotonic() - begin


def test_two_processes_have_the_half_each_and_the_one_that_is_left_has_all(postgres: Postgres) -> None:
    postgres.start()
    url = postgres.fresh_database()
    with Service.open(url) as service:
        for number in range(LADDERS):
            service.create_ladder(f"ladder {number}", "elo", rules("elo"))
            QueueService(service).set_queue(f"ladder {number}", "ranked", {"team_size": 1}, QueueRules())
        with Child(run_matchmaker, url) as first:
            one = first.next()
            wait_for(lambda: holders(service) == {one: LADDERS})
            with Child(run_matchmaker, url) as second:
                two = second.next()
                wait_for(lambda: holders(service) == {one: LADDERS // 2, two: LADDERS // 2})
                first.kill()
                took = wait_for(lambda: holders(service) == {two: LADDERS})
    print(f"{LADDERS // 2} ladders were taken over in {took:.1f} s")
    assert took < 5.0
