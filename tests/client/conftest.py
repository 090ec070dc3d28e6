"""A real service in a process of its own, and clients of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from evenmatch_client import Client

from evenmatch.accounts.keys import Keys
from evenmatch.operations.service import Service

SCOPES = ("report", "queue", "read", "admin")


class Serving(NamedTuple):
    """Where a service listens, its database, and the text of a key for each scope."""

    url: str
    database: str
    keys: dict[str, str]


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    """`evenmatch serve` over a new SQLite database."""
    path = str(tmp_path_factory.mktemp("serving") / "evenmatch.db")
    with Service.open(path) as service:
        keys = {scope: Keys(service.database, service.clock).create(scope, [scope], None, None)[1] for scope in SCOPES}
    command = [sys.executable, "-m", "evenmatch", "serve", "--db", path, "--port", "0"]
    environment = {**os.environ, "EVENMATCH_LOG_LEVEL": "error", "EVENMATCH_STOP_WITHIN": "5"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
        line = run.stdout.readline()
        try:
            assert line.startswith("serving at "), line
            yield Serving(line.split()[2], path, keys)
        finally:
            run.send_signal(signal.SIGTERM)
            try:
                run.wait(30)
            except subprocess.TimeoutExpired:
                run.kill()


@pytest.fixture(scope="module")
def admin(serving):
    """A client that may do everything."""
    with Client(serving.url, serving.keys["admin"]) as client:
        yield client


@pytest.fixture(scope="session")
def run_python():
    """What a program prints in a Python that finds the client, as it is in this repository."""
    source = Path(__file__).parents[2] / "clients" / "python" / "src"

    def run(program):
        env = {**os.environ, "PYTHONPATH": str(source)}
        told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
        return told.stdout.strip()

    return run
