"""An id that the sender chose makes a correction safe to send again."""

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.errors import ConflictError
from evenmatch.ladders.ladders import ChangeRules
from ledger.sample_matches import duel, dump, everybody, positions, ratings


@pytest.fixture
def played_service(service, ladder):
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
def test_a_correction_that_is_sent_again_changes_nothing(played_service, what):
    prepare, wish, other = WISHES[what]
    if prepare:
        prepare(played_service)
    assert not played_service.correct("default", wish, event_id="c1").done
    rows = dump(played_service)
    assert played_service.correct("default", wish, event_id="c1").done
    assert played_service.preview("default", wish, event_id="c1").done
    with pytest.raises(ConflictError, match="'c1' is already on ladder 'default'"):
        played_service.correct("default", other, event_id="c1")
    assert dump(played_service) == rows
    assert played_service.verify("default").is_equal


def test_a_season_that_is_opened_again_is_the_same_one(played_service):
    first = played_service.open_season("default", reset="soft", factor=0.5, event_id="winter")
    rows, now = dump(played_service), ratings(played_service)
    assert played_service.open_season("default", reset="soft", factor=0.5, event_id="winter") == first
    with pytest.raises(ConflictError):
        played_service.open_season("default", reset="full", event_id="winter")
    assert dump(played_service) == rows
    assert ratings(played_service) == now
    assert played_service.open_season("default", event_id="spring").number == 3
    assert played_service.open_season("default", reset="soft", factor=0.5, event_id="winter").number == 2


def test_a_season_is_opened_again_whatever_was_set_on_the_ladder_since(played_service):
    first = played_service.open_season("default", title="Winter", event_id="winter")
    played_service.change_settings("default", {"reset": "soft", "factor": 0.25, "archived": True})
    assert played_service.open_season("default", title="Winter", event_id="winter") == first
    assert played_service.open_season("default", event_id="winter") == first
    with pytest.raises(ConflictError, match="'winter' is already on ladder 'default'"):
        played_service.open_season("default", title="Spring", event_id="winter")
    with pytest.raises(ConflictError, match="'m1' is already on ladder 'default'"):
        played_service.open_season("default", event_id="m1")


@pytest.mark.parametrize("since", ["erased", "merged"])
def test_a_correction_of_a_player_who_was_erased_or_merged_since_is_refused_and_changes_nothing(played_service, since):
    played_service.record(duel(6, "d", "a"))
    ban = Ban("d", reason="d told us")
    played_service.correct("default", ban, event_id="c1")
    played_service.correct("default", Reinstate("d"), event_id="c2")
    pseudonym = played_service.erase("d") if since == "erased" else None
    if pseudonym is None:
        played_service.merge("d", "b")
    rows = dump(played_service)
    with pytest.raises(ConflictError, match="'c1' is already on ladder 'default'"):
        played_service.correct("default", Ban(pseudonym or "d", reason="d told us"), event_id="c1")
    assert dump(played_service) == rows


def test_starting_ratings_that_are_sent_again_are_given_once(played_service):
    assert played_service.start_ratings("default", {"zed": 1700.0}, event_id="old ladder") == 1
    played_service.record(duel(9, "zed", "a"))
    now, at = everybody(played_service), positions(played_service)
    assert played_service.start_ratings("default", {"zed": 1700.0}, event_id="old ladder") == 0
    with pytest.raises(ConflictError):
        played_service.start_ratings("default", {"zed": 1800.0}, event_id="old ladder")
    assert (everybody(played_service), positions(played_service)) == (now, at)


def test_settings_that_are_sent_again_are_changed_once(played_service):
    played_service.change_settings("default", {"title": "Duel"}, event_id="t1")
    played_service.change_settings("default", {"title": "Duel"}, event_id="t1")
    assert len(positions(played_service)) == 7
    with pytest.raises(ConflictError):
        played_service.change_settings("default", {"title": "Duels"}, event_id="t1")
    assert played_service.ladder("default").title == "Duel"
