"""Addresses of clusters: what is no cluster is said within seconds, before Ray begins to retry."""

import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from evenmatch import rules, systems
from evenmatch.cluster.connection import ClusterAddress, check_answers, differences, node_facts, parse_address
from evenmatch.cluster.maintenance import DatabaseAddress
from evenmatch.cluster.tasks import packed, rules_of
from evenmatch.errors import ClusterError, UnknownNameError, UsageError
from run_command import run_command


def closed_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def listening(accept):
    """A server that does this with its first connection; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: accept(server.accept()[0]))
        thread.start()
        yield ClusterAddress("127.0.0.1", server.getsockname()[1])
        thread.join()


@pytest.mark.parametrize(
    ("text", "address"),
    [("10.0.0.5:6379", ("10.0.0.5", 6379)), ("head.example:1", ("head.example", 1)), ("[::1]:6379", ("::1", 6379))],
)
def test_an_address_is_a_host_and_a_port(text, address):
    assert parse_address(text) == address
    assert str(parse_address(text)) == text


def test_local_is_this_machine():
    assert parse_address("local") is None


@pytest.mark.parametrize(
    "text", ["", "head", "head:", ":6379", "head:port", "head:0", "head:65536", "head:²", "ray://head:10001"]
)
def test_other_text_is_no_address(text):
    with pytest.raises(UsageError, match="expected HOST:PORT of the head node of a Ray cluster"):
        parse_address(text)


def test_an_unreachable_cluster_is_reported_within_seconds(tmp_path):
    (tmp_path / "ladder=duel").mkdir()
    (tmp_path / "ladder=duel" / "1.parquet").write_bytes(b"")
    address, begin = f"127.0.0.1:{closed_port()}", time.monotonic()
    told = run_command("rate", tmp_path, "--system", "elo", "--cluster", address)
    assert time.monotonic() - begin < 10
    assert told.code == 4
    assert f"the cluster at {address} cannot be reached: Connection refused; expected HOST:PORT" in told.err


def test_another_server_is_no_cluster():
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    with pytest.raises(ClusterError, match="is not a Ray cluster"):
        check_answers(ClusterAddress("127.0.0.1", server.server_port))
    thread.join()
    server.server_close()


def test_a_server_that_hangs_up_is_no_cluster():
    with listening(socket.socket.close) as address, pytest.raises(ClusterError):
        check_answers(address)


def test_a_server_that_says_nothing_is_no_cluster(monkeypatch):
    monkeypatch.setattr("evenmatch.cluster.connection.SECONDS", 0.2)
    ended = threading.Event()
    with listening(lambda connection: (ended.wait(10), connection.close())) as address:
        with pytest.raises(ClusterError, match="cannot be reached: timed out"):
            check_answers(address)
        ended.set()


def test_a_server_of_http_2_may_be_one():
    with listening(lambda c: (c.recv(99), c.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])), c.close())) as address:
        check_answers(address)


def test_a_file_is_not_rated_on_a_cluster(tmp_path):
    told = run_command("rate", tmp_path / "season.csv", "--system", "elo", "--cluster", "local")
    assert told.code == 2
    assert "season.csv is one file, for one process; expected a folder or URL of partitions" in told.err


def test_workers_open_no_sqlite_file_and_no_password_is_shown():
    with pytest.raises(UsageError, match="an SQLite file is for one machine; expected a postgresql:// URL"):
        DatabaseAddress("ladders.db")
    assert repr(DatabaseAddress("postgresql://me:hidden@host/db")) == "DatabaseAddress('postgresql://me:***@host/db')"


def test_rules_travel_by_name_and_values():
    import pickle  # noqa: PLC0415

    by = rules("elo", k=12.5)
    sent = pickle.loads(packed((by, by.system), ["glicko", "elo"]))
    assert sent[1] is systems.find("elo")
    assert (sent[0].system, sent[0].values(), sent[0].preset) == (by.system, by.values(), None)
    of_preset = rules("scorefactor", "xonstat")
    assert rules_of("scorefactor", "xonstat", of_preset.values()).parameters == of_preset.parameters
    with pytest.raises(UnknownNameError):
        pickle.loads(packed(by, ["elo"]).replace(b"elo", b"ole"))


def test_differences_between_nodes_are_named():
    here = node_facts(["elo", "missing.py"])
    assert here.keys() > {"evenmatch", "numba", "processor", "kernels of elo"}
    assert differences(here, here) == []
    assert differences({**here, "numba": "0.1"}, here) == [f"numba 0.1, here {here['numba']}"]
    assert differences({"Python": "3.9.1", "evenmatch": "cannot be imported (…)"}, here) == [
        f"evenmatch cannot be imported (…), here {here['evenmatch']}"
    ]
    assert "missing.py: No such file" in here["kernels of missing.py"]
