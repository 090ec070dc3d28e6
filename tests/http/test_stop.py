"""A process that is asked to stop is gone in time, whatever clients, receivers of webhooks, jobs and threads do."""

import asyncio
import logging
import shutil
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
from structlog.testing import capture_logs

from evenmatch import rules
from evenmatch.accounts.keys import Keys
from evenmatch.http.middleware import RequestLifecycle
from evenmatch.jobs.jobs import STOPPED, Jobs
from evenmatch.operations.service import Service
from evenmatch.webhooks.subscriptions import Webhooks
from ledger.sample_matches import duel
from protocol_server import ProtocolServer, wait_for
from server_process import Served

WITHIN = 4  # seconds
LADDER = {"name": "duel", "system": "elo"}


@pytest.fixture
def dripping():
    """A receiver that answers with a byte now and then: its port, and an event that tells of a request."""
    listening, asked, stop = socket.create_server(("127.0.0.1", 0)), threading.Event(), threading.Event()

    def serve():
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            asked.set()
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
                while not stop.wait(0.1):
                    connection.sendall(b".")
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1], asked
    stop.set()
    thread.join(10)
    listening.close()


def test_a_process_ends_in_time_whatever_clients_and_receivers_do(empty_file, tmp_path, dripping):
    port, asked = dripping
    path = str(shutil.copy(empty_file, tmp_path / "evenmatch.db"))
    with Service.open(path) as service:
        key = Keys(service.database, service.clock).create("admin", ["admin"])[1]
        Webhooks(service, allow_private=True).add(f"http://127.0.0.1:{port}/", ["match.rated"])
    settings = {"EVENMATCH_STOP_WITHIN": str(WITHIN), "EVENMATCH_PRIVATE_WEBHOOKS": "true"}
    with Served(path, tmp_path, **settings) as served:
        authorization = {"Authorization": f"Bearer {key}"}
        assert httpx.post(f"{served.address}/v1/ladders", json=LADDER, headers=authorization).status_code == 201
        assert httpx.put(f"{served.address}/v1/ladders/duel/queues/ranked", json={}, headers=authorization).is_success
        report = {
            "id": "m-1",
            "played_at": "2026-01-01T12:00:00Z",
            "teams": [{"place": at, "players": [{"player": name}]} for at, name in enumerate(("ann", "bob"), 1)],
        }
        reported = httpx.post(f"{served.address}/v1/ladders/duel/matches", json=report, headers=authorization)
        assert reported.is_success
        assert asked.wait(20)
        host, number = served.address.removeprefix("http://").split(":")
        head = f"POST /v1/ladders HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        with (
            socket.create_connection((host, int(number))) as half,
            socket.create_connection((host, int(number))) as deaf,
        ):
            half.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            document = f"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
            deaf.sendall(document.encode() * 20)  # and reads nothing
            time.sleep(0.3)  # until both have arrived
            begun = time.monotonic()
            assert served.stop() == 0
            assert time.monotonic() - begun < WITHIN
        assert "Exception in ASGI" not in served.told()
    with Service.open(path) as service:
        (sent,) = Webhooks(service).deliveries(1)
        assert (sent.state, sent.attempts) == ("pending", 0)
        assert service.view("duel").head.position == 2  # the ladder and its match


def test_a_request_that_a_stop_cuts_off_leaves_a_line_and_no_traceback(site, caplog):
    begun = threading.Event()

    async def endless(*_):
        begun.set()
        await asyncio.Event().wait()

    with capture_logs() as logged, ProtocolServer(RequestLifecycle(endless, site)) as serving:
        serving.connect().sendall(b"GET /v1/ladders HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert begun.wait(20)
    assert [(line["event"], line["path"]) for line in logged if line["log_level"] == "warning"] == [
        ("request cut off", "/v1/ladders")
    ]
    assert [record for record in caplog.records if record.levelno > logging.ERROR or record.exc_info] == []


def test_a_thread_that_never_ends_is_cut_off_in_time():
    program = (
        "import threading\n"
        "from evenmatch.http.server import StopDeadline\n"
        "deadline = StopDeadline(1, lambda: print('begun', flush=True), lambda: print('cut', flush=True))\n"
        "deadline.start()\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "deadline.ask()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert (ended.returncode, sorted(ended.stdout.split())) == (0, ["begun", "cut"])


def test_a_job_that_cannot_stop_in_time_is_stored_as_failed(tmp_path):
    with Service.open(str(tmp_path / "evenmatch.db")) as service:
        service.create_ladder("default", "elo", rules("elo"))
        service.record(duel(1, "ann", "bob", "default"))
        jobs, release, works = Jobs(service.database, service.clock), threading.Event(), threading.Event()

        def work(_):
            works.set()
            release.wait(20)
            return {}

        job, _ = jobs.begin("verify", "default", work)
        assert works.wait(10)
        begun = time.monotonic()
        jobs.stop(0.2)
        assert time.monotonic() - begun < 2
        stopped = Jobs(service.database, service.clock).find(job.job)
        assert (stopped.state, stopped.told) == ("failed", STOPPED)
        release.set()
        wait_for(lambda: jobs.find(job.job).state == "done")  # where it did end after all, that is what counts
