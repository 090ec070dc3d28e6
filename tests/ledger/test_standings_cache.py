"""Views that are made anew beside those who ask: nobody waits, and nothing that was forgotten comes back."""

import threading

import pytest

from evenmatch.service.corrections import Void
from evenmatch.service.queries import standings
from evenmatch.service.queries.standings import View
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
