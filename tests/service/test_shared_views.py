"""Standings that the processes of a machine share: computed once, mapped read-only, never older than a change."""

import fcntl
import os
import threading
import time
from itertools import pairwise

import numpy as np
import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Void
from evenmatch.ladders import standings
from evenmatch.ladders.standings import SharedViews
from evenmatch.operations.service import Service
from ledger.sample_matches import duel

PLAYERS = ("ann", "bob", "eve", "joe", "sue")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "views"
    made.mkdir()
    return made


@pytest.fixture
def processes(tmp_path, folder):
    """Two services over one database, as two processes have them, and one that shares nothing."""
    path = str(tmp_path / "evenmatch.db")
    with Service.open(path) as alone, Service.open(path) as first, Service.open(path) as second:
        for service in (first, second):
            service._boards._shared = SharedViews(folder, fewest=1)
        alone.create_ladder("default", "elo", rules("elo"))
        for number, (winner, loser) in enumerate(pairwise(PLAYERS), 1):
            alone.record(duel(number, winner, loser))
        yield alone, first, second


@pytest.fixture
def taken(monkeypatch):
    """How many views were computed."""
    calls, take = [], standings.take

    def count(*arguments):
        calls.append(arguments)
        return take(*arguments)

    monkeypatch.setattr(standings, "take", count)
    return calls


@pytest.fixture(autouse=True)
def _young(monkeypatch):
    monkeypatch.setattr(standings.View, "is_younger", lambda *_: True)


def listed(service, view):
    return [(name, standing) for name, standing in service.named(view.snapshot.page(1, 50))]


def test_the_second_process_maps_what_the_first_has_computed(processes, taken):
    alone, first, second = processes
    expected = listed(alone, alone.view("default", fresh=False))
    taken.clear()
    views = [service.view("default", fresh=False) for service in (first, second)]
    assert len(taken) == 1
    assert [listed(alone, view) for view in views] == [expected, expected]
    assert views[0].identity == views[1].identity
    for view in views:  # the computing process lets go of its own arrays, too
        for column in (view.snapshot.board.rating, view.snapshot.order, view.snapshot.against.rating):
            assert not column.flags.writeable
            assert not column.flags.owndata


def test_a_changed_ladder_is_computed_again_from_the_shared_view(processes, taken):
    alone, first, second = processes
    first.view("default", fresh=False)
    alone.record(duel(9, "joe", "ann"))
    taken.clear()
    fresh = second.view("default")
    assert len(taken) == 1
    assert taken[0][3] is not None  # only what changed since was read
    assert np.array_equal(fresh.snapshot.board.rating, alone.view("default").snapshot.board.rating)


def test_a_process_never_takes_a_view_from_before_its_own_correction(processes):
    _, first, second = processes
    old = second.view("default", fresh=False)
    first.view("default", fresh=False)
    first.correct("default", Void(duel(1, "ann", "bob").id))
    second._boards._shared.publish(old)  # a process that was frozen wakes up
    assert first.view("default", fresh=False).head.corrected > old.head.corrected


def test_a_process_that_is_frozen_while_it_computes_stops_the_others_for_a_moment_only(
    processes, folder, taken, monkeypatch
):
    _, first, second = processes
    first.view("default", fresh=False)
    (lock,) = folder.glob("*.lock")
    handle = os.open(lock, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    first._boards.forget("default")
    monkeypatch.setattr(standings, "FIRST_PATIENCE", 0.05)
    taken.clear()
    second.view("default", fresh=False)
    os.close(handle)
    assert len(taken) == 1


def test_a_process_waits_for_another_one_that_computes_however_long_it_takes(processes, monkeypatch, taken):
    _, first, second = processes
    monkeypatch.setattr(standings, "SIGN", 0.02)
    monkeypatch.setattr(standings, "FIRST_PATIENCE", 0.3)
    take, begun = standings.take, threading.Event()

    def slow(*arguments):
        begun.set()
        time.sleep(0.8)
        return take(*arguments)

    monkeypatch.setattr(standings, "take", slow)
    computing = threading.Thread(target=first.view, args=("default",), kwargs={"fresh": False})
    computing.start()
    assert begun.wait(10)
    second.view("default", fresh=False)
    computing.join()
    assert len(taken) == 1


def test_a_file_of_another_version_and_a_folder_without_room_are_done_without(processes, folder, taken):
    _, first, second = processes
    first.view("default", fresh=False)
    (path,) = folder.glob("*.view")
    path.write_bytes(b"\0" * 16 + path.read_bytes()[16:])
    taken.clear()
    assert len(second.view("default", fresh=False).snapshot) == len(first.view("default", fresh=False).snapshot)
    assert len(taken) == 1
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    first._boards.forget("default")
    assert len(first.view("default", fresh=False).snapshot.board) == len(PLAYERS)
