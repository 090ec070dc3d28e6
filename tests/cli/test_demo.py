"""evenmatch demo: a real process, from its first line to what is left when it was ended."""

import os
import re
import select
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from protocol_server import wait_for

COMMAND = [sys.executable, "-m", "evenmatch", "demo", "--port", "0"]
SLOWEST = 200.0  # seconds: the first start compiles


@pytest.fixture
def started_demo(tmp_path):
    """Begin a demo whose temporary folder is in a folder of the test."""
    begun = []
    kept = tmp_path / "temporary"
    kept.mkdir()

    def begin(*options):
        with (tmp_path / "err").open("wb") as err:
            process = subprocess.Popen(
                [*COMMAND, *map(str, options)],
                env=os.environ | {"TMPDIR": str(kept)},
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )
        begun.append(process)
        return process

    begin.kept, begin.err = kept, tmp_path / "err"
    yield begin
    for one in begun:
        if one.poll() is None:
            one.kill()
        one.wait()
        one.stdout.close()


def printed_address(process):
    assert select.select([process.stdout], [], [], SLOWEST)[0]
    line = process.stdout.readline()
    assert line.startswith("serving at "), line
    return line.split()[2]


def printed_key(started_demo):
    """The operators' key, which is printed after the address."""

    def found():
        return re.search(r"log in at \S+/login with (em_\S+)\n", started_demo.err.read_text())

    wait_for(found)
    return found()[1]


@pytest.mark.slow
def test_it_serves_four_ladders_and_ends_without_a_trace(started_demo):
    process = started_demo("--no-players")
    address = printed_address(process)
    page = httpx.get(f"{address}/v1/ladders").json()
    assert [one["name"] for one in page["items"]] == ["arena", "brawl", "duel", "squads"]
    assert httpx.get(address).status_code == 200
    assert list(started_demo.kept.iterdir())
    key = printed_key(started_demo)
    assert httpx.get(f"{address}/v1/keys", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert list(started_demo.kept.iterdir()) == []
    assert "Traceback" not in started_demo.err.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_file_is_used_again_and_the_key_of_a_run_ends_with_it(started_demo, tmp_path, end):
    path = tmp_path / "demo.db"
    first = started_demo("--db", path)
    address = printed_address(first)
    before = httpx.get(f"{address}/v1/ladders/duel").json()["matches"]
    key = printed_key(started_demo)
    first.send_signal(end)
    assert first.wait(30) == 0
    assert "ended before it was ready" not in started_demo.err.read_text()
    address = printed_address(started_demo("--db", path, "--no-players"))
    assert before <= httpx.get(f"{address}/v1/ladders/duel").json()["matches"] <= before + 20
    assert httpx.get(f"{address}/v1/keys", headers={"Authorization": f"Bearer {key}"}).status_code == 401


def test_ctrl_c_while_it_prepares_ends_it_well_and_removes_its_folder(started_demo):
    process = started_demo()
    while not list(started_demo.kept.iterdir()):
        assert process.poll() is None
        select.select([], [], [], 0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert list(started_demo.kept.iterdir()) == []
    assert started_demo.err.read_text() == "ended before it was ready\n"


def test_a_port_that_is_taken_is_refused_where_it_was_asked_for(spawn):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = spawn("demo", "--port", taken.getsockname()[1])
    assert told.code == 2
    assert "cannot listen on" in told.err
