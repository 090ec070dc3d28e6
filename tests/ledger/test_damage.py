"""What somebody changed in the database behind the ledger's back is found, named, and mended where that can be."""

from functools import partial

import pytest
import sqlalchemy as sa

from evenmatch import rules
from evenmatch.errors import StoreError
from evenmatch.service.corrections import Ban, Void
from ledger.sample_matches import duel, ratings


@pytest.fixture
def kept(service, ladder):
    """Matches at positions 2 to 7, a void one among them, and a ban."""
    for number, pair in enumerate(("ab", "cb", "ac", "ba", "ac", "bd"), 1):
        service.record(duel(number, *pair))
    service.correct("default", Void("m2", "the server crashed"))
    service.correct("default", Ban("d", reason="aimbot"))
    return service


def run_sql(service, *statements):
    with service.database.write() as store:
        for statement in statements:
            store.connection.execute(sa.text(statement))


LEDGER = {
    "a match moved": ("UPDATE event SET played_at = 5 WHERE position = 4", "match 'm3' at position 4"),
    "another id": ("UPDATE event SET id = 'mX' WHERE position = 4", "match 'mX' at position 4"),
    "other players in a void match": (
        "UPDATE event SET players = (SELECT players FROM event WHERE position = 4) WHERE position = 3",
        "match 'm2' at position 3",
    ),
    "another digest": ("UPDATE event SET digest = told WHERE position = 5", "match 'm4' at position 5"),
    "a torn match": ("UPDATE event SET teams = SUBSTR(teams, 1, 5) WHERE position = 4", "match 'm3' at position 4"),
    "not rated": ("UPDATE event SET rated = 0 WHERE position = 2", "match 'm1' at position 2"),
    "another reason": (
        "UPDATE event SET body = REPLACE(body, 'crashed', 'burned') WHERE position = 8",
        "match-voided 'correction:",
    ),
    "a torn correction": ("UPDATE event SET body = '{' WHERE position = 1", "ladder-changed 'ladder:default'"),
    "a lost match": ("DELETE FROM event WHERE position = 5", "positions 5 to 5 have no event"),
    "the last one lost": ("DELETE FROM event WHERE position = 9", "positions 9 to 9 have no event"),
    "a correction that is not listed": ("DELETE FROM correction WHERE position = 8", "the table of corrections"),
    "settings": ("UPDATE ladder SET settings = 'x'", "the settings of a ladder are damaged"),
}


@pytest.mark.parametrize("how", LEDGER)
def test_an_event_that_is_not_as_it_was_written_is_named(kept, how):
    statement, told = LEDGER[how]
    assert kept.verify("default").is_equal
    run_sql(kept, statement)
    found = kept.verify("default")
    assert not found.is_equal
    assert len(found.damage) == (2 if how == "the last one lost" else 1)  # it is missing in the list of corrections
    assert told in found.damage[0]
    assert found.differences == ()


TORN = {
    "a match": ("UPDATE event SET teams = SUBSTR(teams, 1, 5) WHERE position = 4", "positions 2 to 7 is damaged"),
    "a correction": ("UPDATE event SET body = '{' WHERE position = 1", "at position 1 is damaged"),
    "settings": ("UPDATE ladder SET settings = 'x'", "settings of a ladder are damaged"),
}


@pytest.mark.parametrize("what", TORN)
def test_what_cannot_be_read_is_a_store_error_that_says_where(kept, what):
    statement, told = TORN[what]
    run_sql(kept, statement)
    ask = kept.ladder if what == "settings" else partial(kept.rebuild, whole=True)
    with pytest.raises(StoreError, match=told):
        ask("default")


FOLLOWS = {
    "a rating": "UPDATE state SET rating = rating + 1 WHERE player = 1",
    "a torn state": "UPDATE state SET record = SUBSTR(record, 1, 3) WHERE player = 1",
    "a lost state": "DELETE FROM state WHERE player = 1",
    "lines": "UPDATE event SET told = (SELECT told FROM event WHERE position = 4) WHERE position = 2",
    "who appeared": "DELETE FROM appearance WHERE player = 1",
    "who did not appear": "INSERT INTO appearance (ladder, player, position) VALUES (1, 4, 2)",
}


@pytest.mark.parametrize("what", FOLLOWS)
def test_what_follows_from_the_events_is_mended_by_a_whole_rebuild(kept, what):
    before = ratings(kept)
    run_sql(kept, FOLLOWS[what])
    found = kept.verify("default")
    assert found.differences
    assert not found.damage
    kept.rebuild("default", whole=True)
    assert kept.verify("default").is_equal
    assert ratings(kept) == before


def test_a_torn_state_is_told_to_who_records(kept):
    run_sql(kept, FOLLOWS["a torn state"])
    with pytest.raises(StoreError, match="rebuild --whole"):
        kept.record(duel(9, "a", "b"))
    kept.rebuild("default", whole=True)
    assert kept.record(duel(9, "a", "b")).position == 10


def test_other_ladders_are_not_concerned(kept):
    kept.create_ladder("other", "elo", rules("elo"))
    kept.record(duel(1, "a", "b", ladder="other"))
    run_sql(kept, "UPDATE event SET played_at = 5 WHERE ladder = 1 AND position = 4")
    assert kept.verify("other").is_equal
