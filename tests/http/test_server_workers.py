"""What goes on beside the requests of a process."""

import threading

from evenmatch.http import server


def test_a_worker_that_has_nothing_to_do_ends():
    """As who listens for other processes on SQLite, where nobody tells anything."""
    calls = []
    server.guarded("hearing", calls.append, threading.Event())
    assert len(calls) == 1


def test_a_worker_that_a_bug_ends_is_begun_anew(monkeypatch):
    monkeypatch.setattr(server, "AGAIN", 0.0)
    calls = []

    def run(stop):
        calls.append(stop)
        if len(calls) < 3:
            raise ZeroDivisionError

    server.guarded("matchmaker", run, threading.Event())
    assert len(calls) == 3


def test_a_worker_is_not_begun_anew_once_the_process_stops(monkeypatch):
    monkeypatch.setattr(server, "AGAIN", 60.0)
    stop, calls = threading.Event(), []

    def run(told):
        calls.append(told)
        stop.set()
        raise ZeroDivisionError

    server.guarded("matchmaker", run, stop)
    assert len(calls) == 1
