"""The trail of who did what."""

import pytest

from evenmatch.accounts.access import OPERATOR, Caller
from evenmatch.accounts.audit_trail import Audit, AuditEntry
from evenmatch.errors import EvenmatchError, InputError

ANN = Caller("player ann", frozenset({"queue"}), player="ann")


@pytest.fixture
def add_entry(service, clock):
    """Note something in a transaction of its own."""

    def noting(action, caller=OPERATOR, **told):
        with service.database.write() as store:
            AuditEntry(caller, action, **told).note(store, clock())
        clock.move(seconds=1)

    return noting


def test_an_entry_says_who_did_what_to_whom_when_and_at_which_request(service, clock, add_entry):
    began = clock()
    add_entry(
        "match.voided",
        ladder="duel",
        target="m1 <b>é\u202e",
        body={"reason": "wrong 🏆", "n": [1, None]},
        request="r-1",
    )
    add_entry("ladder.created", ANN)
    new, old = Audit(service.database).page()
    assert old[1:] == (
        *(began, "operator", "match.voided", "duel", "m1 <b>é\u202e", {"reason": "wrong 🏆", "n": [1, None]}, "r-1"),
    )
    assert new[1:] == (began + 1_000_000, "player ann", "ladder.created", None, None, {}, None)
    assert new.entry > old.entry


def test_pages_follow_one_another_whatever_is_added_meanwhile(service, add_entry):
    for at in range(7):
        add_entry(f"a{at}", ladder="duel" if at % 2 else "arena")
    trail = Audit(service.database)
    first = trail.page(limit=3)
    add_entry("later", ladder="duel")
    second = trail.page(before=first[-1].entry, limit=3)
    last = trail.page(before=second[-1].entry, limit=3)
    assert [[one.action for one in page] for page in (first, second, last)] == [
        ["a6", "a5", "a4"],
        ["a3", "a2", "a1"],
        ["a0"],
    ]
    assert trail.page(before=last[-1].entry) == []


def test_a_ladders_trail_holds_nothing_of_others(service, add_entry):
    for at in range(6):
        add_entry(f"a{at}", ladder=[None, "duel", "arena"][at % 3])
    trail = Audit(service.database)
    assert [one.action for one in trail.page("duel")] == ["a4", "a1"]
    assert [one.action for one in trail.page("duel", before=trail.page("duel")[0].entry)] == ["a1"]
    assert trail.page("team") == []


def test_what_is_taken_back_is_not_in_the_trail(service, clock):
    with pytest.raises(EvenmatchError), service.database.write() as store:  # noqa: PT012
        AuditEntry(OPERATOR, "player.banned").note(store, clock())
        raise EvenmatchError
    assert Audit(service.database).page() == []


@pytest.mark.parametrize("told", [{"target": "a\0b"}, {"request": "x" * 257}, {"target": "\ud800"}])
def test_what_no_database_can_keep_is_refused(told, add_entry):
    with pytest.raises(InputError, match="expected"):
        add_entry("match.voided", **told)
