"""A process that is frozen inside a transaction does not stop the others for longer than the server's time limits."""

import os
import signal
import time

import pytest

from crash.child_tasks import record_around_a_freeze
from crash.children import Child
from crash.numbered_matches import LADDER, numbered_match
from crash.plain_sql import check_events
from databases import emptied_on_server
from evenmatch import rules
from evenmatch.ledger.database import IDLE_LIMIT
from evenmatch.service.service import Service
from postgres import Postgres

RECOVERY = 5.0  # seconds within which the others go on


@pytest.fixture
def url(request: pytest.FixtureRequest, postgres: Postgres) -> str:
    """SQLite has no server that could end a frozen writer's transaction; its time limits are tested over HTTP."""
    return emptied_on_server(request.config.stash, postgres)


@pytest.mark.parametrize("writes", [False, True], ids=["locked", "written"])
def test_others_record_within_five_seconds_while_a_writer_is_frozen(url: str, writes: bool):
    with Service.open(url) as service:
        service.create_ladder(LADDER, "elo", rules("elo"))
        service.record(numbered_match(3))  # with kernels loaded and connections open
        with Child(record_around_a_freeze, url, writes) as child:
            assert child.next() == "locked"
            os.kill(child.process.pid, signal.SIGSTOP)
            try:
                begin = time.monotonic()
                service.record(numbered_match(2))
                took = time.monotonic() - begin
            finally:
                os.kill(child.process.pid, signal.SIGCONT)
            assert IDLE_LIMIT - 1.0 < took < RECOVERY  # it did wait for the frozen one, and was let through
            child.pipe.send("go on")
            assert "sent again" in str(child.next())  # the one that wakes up notices
            assert child.next() == "recorded"
        assert check_events(url, {"m0", "m1", "m2", "m3"}).count("match-recorded") == 4
        assert service.verify(LADDER).is_equal
