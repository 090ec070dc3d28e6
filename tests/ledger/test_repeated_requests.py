"""An id that the sender chose makes a correction safe to send again."""

import pytest

from evenmatch import rules
from evenmatch.errors import ConflictError
from evenmatch.service.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.service.ladders import ChangeRules
from ledger.sample_matches import duel, dump, everybody, positions, ratings


@pytest.fixture
def played(service, ladder):
    for number, pair in enumerate(("ab", "cb", "ac", "ba", "ac"), 1):
        service.record(duel(number, *pair))
    return service


def before_unvoid(service):
    service.correct("default", Void("m2"))


def before_reinstate(service):
    service.correct("default", Ban("a"))


WISHES = {
    "void": (None, Void("m2", "why"), Void("m3", "why")),
    "unvoid": (before_unvoid, Unvoid("m2"), Unvoid("m2", "why")),
    "ban": (None, Ban("a", "refund"), Ban("a", "void")),
    "reinstate": (before_reinstate, Reinstate("a"), Void("m2")),
    "rules": (None, ChangeRules("elo", rules("elo", k=16.0)), ChangeRules("elo", rules("elo", k=24.0))),
    "from now": (None, ChangeRules("elo", rules("elo", k=16.0), start=False), ChangeRules("elo", rules("elo", k=16.0))),
}


@pytest.mark.parametrize("what", WISHES)
def test_a_correction_that_is_sent_again_changes_nothing(played, what):
    prepare, wish, other = WISHES[what]
    if prepare:
        prepare(played)
    told = played.correct("default", wish, event_id="c1")
    assert told is not None
    rows = dump(played)
    assert played.correct("default", wish, event_id="c1") is None
    assert played.preview("default", wish, event_id="c1").done
    with pytest.raises(ConflictError, match="'c1' is on ladder 'default' already"):
        played.correct("default", other, event_id="c1")
    assert dump(played) == rows
    assert played.verify("default").is_equal


def test_a_season_that_is_opened_again_is_the_same_one(played):
    first = played.open_season("default", reset="soft", factor=0.5, event_id="winter")
    rows, now = dump(played), ratings(played)
    assert played.open_season("default", reset="soft", factor=0.5, event_id="winter") == first
    with pytest.raises(ConflictError):
        played.open_season("default", reset="full", event_id="winter")
    assert dump(played) == rows
    assert ratings(played) == now
    assert played.open_season("default", event_id="spring").number == 3
    assert played.open_season("default", reset="soft", factor=0.5, event_id="winter").number == 2


def test_starting_ratings_that_are_sent_again_are_given_once(played):
    assert played.start_ratings("default", {"zed": 1700.0}, event_id="old ladder") == 1
    played.record(duel(9, "zed", "a"))
    now, at = everybody(played), positions(played)
    assert played.start_ratings("default", {"zed": 1700.0}, event_id="old ladder") == 0
    with pytest.raises(ConflictError):
        played.start_ratings("default", {"zed": 1800.0}, event_id="old ladder")
    assert (everybody(played), positions(played)) == (now, at)


def test_settings_that_are_sent_again_are_changed_once(played):
    played.change_settings("default", {"title": "Duel"}, event_id="t1")
    played.change_settings("default", {"title": "Duel"}, event_id="t1")
    assert len(positions(played)) == 7
    with pytest.raises(ConflictError):
        played.change_settings("default", {"title": "Duels"}, event_id="t1")
    assert played.ladder("default").title == "Duel"
