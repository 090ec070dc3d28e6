"""evenmatch serve: a real process, real sockets."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from itertools import count

import httpx
import pytest

from evenmatch.jobs.jobs import Jobs
from evenmatch.operations.service import Service
from server_process import whole_lines

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-c", "from evenmatch.cli import main; main()"]
LADDER = {"name": "duel", "system": "elo"}


class Serving:
    """A process that serves on a free port."""

    def __init__(self, folder, *options, **environment):
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", "--port", "0", *options],
                cwd=folder,
                env=os.environ | environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.line = self.process.stdout.readline()
        self.address = self.line.rpartition(" ")[2].strip()

    def end(self, *signals):
        """Its exit code once it has ended by these signals, and what else it said."""
        for one in signals:
            self.process.send_signal(one)
        return self.process.wait(60), self.process.stdout.read()

    def told(self):
        """What stands on standard error."""
        return whole_lines(self.log)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def started_server(tmp_path):
    """Begin to serve in a folder of its own."""
    begun = []

    def begin(*options, **environment):
        begun.append(Serving(tmp_path, *options, **environment))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


@pytest.fixture
def admin_headers(spawn, tmp_path):
    """The headers of a new admin's key."""

    def create():
        made = spawn("key", "create", "operator", "--scope", "admin", "--db", tmp_path / "evenmatch.db")
        assert made.code == 0, made.err
        return {"Authorization": f"Bearer {made.out.strip()}"}

    return create


def match_json(number):
    teams = [{"place": place, "players": [{"player": name}]} for place, name in ((1, "ann"), (2, f"p{number % 7}"))]
    return {"id": f"m{number}", "played_at": "2026-11-21T18:30:00Z", "teams": teams}


def wait_until_ready(address):
    """The first answer of /readyz that does not say that the process is getting ready."""
    deadline = time.monotonic() + 120
    while True:
        told = httpx.get(f"{address}/readyz")
        if told.status_code != 503 or time.monotonic() > deadline:
            return told
        assert told.json()["type"] == "urn:evenmatch:problem:starting"
        assert told.headers["Retry-After"] == "1"
        time.sleep(0.1)


def test_a_new_user_is_told_the_address_and_how_to_make_a_key_that_then_works(started_server, admin_headers):
    service = started_server("--log-format", "text")
    assert re.fullmatch(r"serving at http://127\.0\.0\.1:\d+\n", service.line)
    assert wait_until_ready(service.address).status_code == 200
    assert "to create one: evenmatch key create operator --scope admin\n" in service.told()
    refused = httpx.post(f"{service.address}/v1/ladders", json=LADDER)
    assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")
    assert httpx.post(f"{service.address}/v1/ladders", json=LADDER, headers=admin_headers()).status_code == 201
    assert service.end(signal.SIGINT) == (0, "")
    assert "Traceback" not in service.told()


def test_no_report_that_was_answered_is_lost_by_sigterm(started_server, admin_headers, spawn, tmp_path):
    service, headers = started_server(EVENMATCH_LOG_LEVEL="warning"), admin_headers()
    httpx.post(f"{service.address}/v1/ladders", json=LADDER, headers=headers)
    numbers, answered, many = count(), [], threading.Event()

    def send():
        with httpx.Client(base_url=service.address, headers=headers, timeout=60) as client:
            while True:
                number = next(numbers)
                try:
                    told = client.post("/v1/ladders/duel/matches", json=match_json(number))
                except httpx.TransportError:
                    return
                assert told.status_code == 200, told.text
                answered.append(told.json()["position"])
                if len(answered) > 100:
                    many.set()

    senders = [threading.Thread(target=send) for _ in range(8)]
    for one in senders:
        one.start()
    assert many.wait(60)
    assert service.end(signal.SIGTERM) == (0, "")
    for one in senders:
        one.join(60)
    assert service.told().count("\n") == 1  # how to make a key; no warning, no error
    shown = spawn("verify", "--ladder", "duel", "--db", tmp_path / "evenmatch.db")
    assert shown.code == 0, shown.out
    kept = int(re.search(r"([\d,]+) matches", shown.out)[1].replace(",", ""))
    assert sorted(answered) == sorted(set(answered))
    assert set(answered) <= set(range(2, kept + 2))  # the ladder itself is at position 1


def test_a_long_poll_is_answered_when_the_process_is_asked_to_stop(started_server, admin_headers, tmp_path):
    service, headers = started_server("--log-format", "text"), admin_headers()
    httpx.post(f"{service.address}/v1/ladders", json=LADDER, headers=headers)
    with Service.open(str(tmp_path / "evenmatch.db")) as other:
        work, stop = threading.Event(), threading.Event()
        jobs = Jobs(other.database, other.clock)
        job, _ = jobs.begin("verify", "duel", lambda _: work.set() or (stop.wait(60) and {}))
        told = []

        def wait():
            address = f"{service.address}/v1/jobs/{job.job}"
            told.append(httpx.get(address, params={"wait": 50}, headers=headers, timeout=60))

        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(1)
        assert (waiting.is_alive(), work.is_set()) == (True, True)
        begun = time.monotonic()
        assert service.end(signal.SIGTERM) == (0, "")
        assert time.monotonic() - begun < 20
        waiting.join(60)
        assert (told[0].status_code, told[0].json()["state"]) == (200, "running")
        stop.set()
        jobs.stop(20)
    assert "Traceback" not in service.told()


def test_a_request_is_waited_for_and_a_second_interrupt_ends_at_once(started_server):
    service = started_server()
    host, port = service.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"POST /v1/ladders HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        time.sleep(0.5)
        service.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            service.process.wait(1)
        assert service.end(signal.SIGINT)[0] == 130


def test_a_port_in_use_and_a_wrong_setting_are_said_in_words(spawn, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = spawn("serve", "--db", tmp_path / "e.db", "--port", port)
    assert (ended.code, ended.out) == (2, "")
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use; choose" in ended.err
    assert not (tmp_path / "e.db").exists()
    ended = spawn("serve", "--db", tmp_path / "e.db", EVENMATCH_RATE="often")
    assert (ended.code, ended.out) == (2, "")
    assert "EVENMATCH_RATE is 'often'" in ended.err


def test_the_environment_says_how_to_serve_and_options_win(started_server):
    service = started_server(
        "--host", "127.0.0.1", EVENMATCH_HOST="127.0.0.9", EVENMATCH_OPEN_READS="true", EVENMATCH_DB="own.db"
    )
    assert service.address.startswith("http://127.0.0.1:")
    assert httpx.get(f"{service.address}/v1/ladders").json() == {"items": [], "next": None}
    assert "--db" not in service.told().splitlines()[0]  # EVENMATCH_DB is set for the command that it tells, too
    assert '"address":' in service.told()  # the log is JSON


def test_no_secret_is_in_the_log(started_server, admin_headers):
    service, headers = started_server(EVENMATCH_LOG_LEVEL="debug"), admin_headers()
    secret = headers["Authorization"].rpartition("_")[2]
    httpx.post(f"{service.address}/v1/ladders", json=LADDER, headers=headers)
    made = httpx.post(f"{service.address}/v1/keys", json={"name": "k", "scopes": ["queue"]}, headers=headers).json()
    own = {"Authorization": f"Bearer {made['text']}"}
    token = httpx.post(f"{service.address}/v1/tokens", json={"player": "ann"}, headers=own).json()["token"]
    httpx.get(f"{service.address}/v1/ladders/duel", headers={"Authorization": f"Bearer {token}x"})
    service.end(signal.SIGTERM)
    told = service.told()
    assert '"path":"/v1/tokens"' in told.replace('": "', '":"')
    assert not [one for one in (secret, made["text"][14:], token, token.split(".")[2]) if one in told]
