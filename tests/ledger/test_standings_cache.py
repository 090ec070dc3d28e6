"""Views that are made anew beside those who ask: nobody waits, and nothing that was forgotten comes back."""

import threading
import time
from dataclasses import replace

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Void
from evenmatch.ladders import standings
from evenmatch.ladders.standings import View
from ledger.sample_matches import duel


@pytest.fixture
def set_view_age(monkeypatch):
    """Sets how old views are, in times of what they may cost; None: as they are."""
    held = [None]
    real = View.is_younger
    monkeypatch.setattr(
        View, "is_younger", lambda self, times: held[0] < times if held[0] is not None else real(self, times)
    )

    def set_age(times):
        held[0] = times

    return set_age


def wait(service):
    service._boards.close()


@pytest.mark.usefixtures("ladder")
def test_a_view_that_has_just_become_too_old_is_shown_once_more_while_it_is_made_anew(service, set_view_age):
    service.record(duel(1, "ann", "bob"))
    first = service.view("default")
    service.record(duel(2, "ann", "bob"))
    set_view_age(1.5)
    assert service.young_view("default") is first
    wait(service)
    set_view_age(0.5)
    second = service.young_view("default")
    assert second is not first
    assert second.head.position == first.head.position + 1


@pytest.mark.usefixtures("ladder")
def test_a_view_that_is_twice_as_old_is_shown_no_more(service, set_view_age):
    service.record(duel(1, "ann", "bob"))
    service.view("default")
    set_view_age(2.5)
    assert service.young_view("default") is None


@pytest.mark.usefixtures("ladder")
def test_a_view_that_was_being_made_when_the_ladder_was_corrected_is_not_kept(service, set_view_age, monkeypatch):
    service.record(duel(1, "ann", "bob"))
    service.view("default")
    begun, go = threading.Event(), threading.Event()
    take = standings.take

    def slowly(*arguments):
        made = take(*arguments)
        begun.set()
        go.wait(0.5)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(standings, "take", slowly)
        set_view_age(1.5)
        service.young_view("default")
        assert begun.wait(20)
    service.correct("default", Void("m1"))
    go.set()
    wait(service)
    set_view_age(0.5)
    kept = service.young_view("default")
    assert kept is None or kept.head.corrected > 1
    assert service.view("default", fresh=False).snapshot.board.matches.tolist() == []


@pytest.fixture
def two_ladders(service, ladder):
    service.create_ladder("arena", "elo", rules("elo"))
    for number in (1, 2):
        service.record(duel(number, "ann", "bob"))
        service.record(duel(number, "ann", "bob", "arena"))
    return service._boards


@pytest.fixture
def set_clock(monkeypatch):
    """Sets the seconds that have passed since the first call, on the clock by which views age."""
    begin, passed = time.monotonic() + 100, [0.0]
    monkeypatch.setattr(standings.time, "monotonic", lambda: begin + passed[0])

    def set_seconds(seconds):
        passed[0] = seconds

    return set_seconds


def costing(seconds, monkeypatch):
    """Views seem to take this much of a processor."""
    take = standings.take
    monkeypatch.setattr(standings, "take", lambda *arguments: replace(take(*arguments), cost=seconds))


def test_views_for_receipts_of_all_ladders_share_their_time(two_ladders, service, set_clock, monkeypatch):
    """Each costs 0.04 s and lasts 2 s alone; two ladders together get one in 2 s."""
    costing(0.04, monkeypatch)
    now = service.clock()
    first = {name: two_ladders.view(name, now) for name in ("default", "arena")}
    set_clock(3.9)  # each is older than 2 s, but both together may be computed again after 4 s
    assert {name: two_ladders.for_receipts(name, now) for name in first} == first
    set_clock(4.1)
    second = two_ladders.for_receipts("default", now)
    assert second is not first["default"]
    assert two_ladders.for_receipts("arena", now) is first["arena"]  # until the time of the other one has passed
    set_clock(6.2)
    assert two_ladders.for_receipts("arena", now) is not first["arena"]


def test_no_view_for_receipts_is_older_than_ten_seconds(two_ladders, service, set_clock, monkeypatch):
    costing(0.1, monkeypatch)  # lasts 5 s
    now = service.clock()
    first = two_ladders.view("arena", now)
    for seconds in (0.0, 3.0, 6.0, 9.0):
        set_clock(seconds)
        two_ladders.view("default", now)
        assert two_ladders.for_receipts("arena", now) is first
    set_clock(10.1)
    assert two_ladders.for_receipts("arena", now) is not first


def test_a_ladder_without_a_view_gets_one_for_its_first_receipt(two_ladders, service, set_clock, monkeypatch):
    costing(1.0, monkeypatch)
    set_clock(0.0)
    two_ladders.view("default", service.clock())
    two_ladders.forget("arena")
    assert two_ladders.for_receipts("arena", service.clock()).head.name == "arena"
