"""What somebody changed in the database behind the ledger's back is found, named, and mended where that can be."""

from functools import partial

import pytest
import sqlalchemy as sa

from evenmatch.corrections.corrections import Ban, Void
from evenmatch.corrections.ladder_heads import present_head
from evenmatch.errors import DamageError, StoreError
from evenmatch.ledger import event_rows
from ledger.sample_matches import duel, ratings, run_sql


@pytest.fixture
def kept(service, ladder):
    """Matches at positions 2 to 7, a void one among them, and a ban."""
    for number, pair in enumerate(("ab", "cb", "ac", "ba", "ac", "bd"), 1):
        service.record(duel(number, *pair))
    service.correct("default", Void("m2", "the server crashed"))
    service.correct("default", Ban("d", reason="aimbot"))
    return service


LEDGER = {
    "a match moved": ("UPDATE event SET played_at = 5 WHERE position = 4", "match 'm3' at position 4"),
    "other players in a void match": (
        "UPDATE event SET players = (SELECT players FROM event WHERE position = 4) WHERE position = 3",
        "match 'm2' at position 3",
    ),
    "a torn match": ("UPDATE event SET teams = SUBSTR(teams, 1, 5) WHERE position = 4", "match 'm3' at position 4"),
    "another reason": (
        "UPDATE event SET body = REPLACE(body, 'crashed', 'burned') WHERE position = 8",
        "match-voided 'correction:",
    ),
    "a torn correction": ("UPDATE event SET body = '{' WHERE position = 1", "rules-changed 'ladder:default'"),
    "a lost match": ("DELETE FROM event WHERE position = 5", "positions 5 to 5 have no event"),
    "the last one lost": ("DELETE FROM event WHERE position = 9", "positions 9 to 9 have no event"),
    "a correction that is not listed": ("DELETE FROM correction WHERE position = 8", "the table of corrections"),
    "another parameter in the first one": (
        "UPDATE event SET body = REPLACE(body, '\"k\"', '\"q\"') WHERE position = 1",
        "rules-changed 'ladder:default' at position 1 was altered",
    ),
    "other lines told": (
        "UPDATE event SET told = (SELECT told FROM event WHERE position = 5) WHERE position = 2",
        "match 'm1' at position 2",
    ),
    "a correction at the position of a match": (
        "UPDATE correction SET position = 7 WHERE position = 8",
        "the table of corrections does not agree with the events",
    ),
    "a last position too low": ("UPDATE ladder SET position = 8", "there are events up to 9"),
}


@pytest.mark.parametrize("how", LEDGER)
def test_an_event_that_is_not_as_it_was_written_is_named(kept, how):
    statement, told = LEDGER[how]
    assert kept.verify("default").is_equal
    run_sql(kept, statement)
    found = kept.verify("default")
    assert not found.is_equal
    listed = how == "the last one lost"  # missing in the list of corrections, too
    assert len(found.damage) == (2 if listed else 1)
    assert told in found.damage[0]
    assert found.differences == ()


TORN = {
    "a match": ("UPDATE event SET teams = SUBSTR(teams, 1, 5) WHERE position = 4", "positions 2 to 7 is damaged"),
    "a correction": ("UPDATE event SET body = '{' WHERE position = 1", "at position 1 of ladder .* is damaged"),
    "settings": ("UPDATE ladder SET settings = 'x'", "settings of a ladder are damaged"),
    "a parameter": (
        "UPDATE event SET body = REPLACE(body, '\"k\"', '\"q\"') WHERE position = 1",
        "the event rules-changed at position 1 is damaged",
    ),
    "no first event": ("DELETE FROM event WHERE position = 1", "first event, which has its rules, is missing"),
}


@pytest.mark.parametrize("what", TORN)
def test_an_unreadable_value_is_a_store_error_that_says_where_it_is(kept, what):
    statement, told = TORN[what]
    run_sql(kept, statement)
    ask = kept.ladder if what == "settings" else partial(kept.rebuild, whole=True)
    with pytest.raises(StoreError, match=told):
        ask("default")


FOLLOWS = {
    "a rating": "UPDATE state SET rating = rating + 1 WHERE player = 1",
    "a torn state": "UPDATE state SET record = SUBSTR(record, 1, 3) WHERE player = 1",
    "a lost state": "DELETE FROM state WHERE player = 1",
    "lines of another": "UPDATE journal SET lines = (SELECT told FROM event WHERE position = 4) WHERE position = 6",
    "lines of no match": "INSERT INTO journal (ladder, generation, position, lines) "
    "SELECT ladder, generation, 8, lines FROM journal WHERE position = 6",
    "no correction included": "UPDATE generation SET planned = 0 WHERE generation = 3",
    "who appeared": "DELETE FROM appearance WHERE player = 1",
    "who did not appear": "INSERT INTO appearance (ladder, player, played_at, position) VALUES (1, 4, 0, 2)",
    "exchanged matches": "UPDATE appearance SET position = 11 - position "
    "WHERE (player, position) IN (VALUES (2, 5), (3, 6))",
    "unreadable settings": "UPDATE ladder SET settings = 'x'",
    "a season's title": "UPDATE season SET title = 'won by a'",
    "a lost season": "DELETE FROM season",
    "a season that nobody opened": "INSERT INTO season (ladder, season, title, position, opened_at) "
    "VALUES (1, 2, 'x', 9, 5)",
    "a division": "UPDATE division SET division = division + 1 WHERE player = 1",
}


CUT = "UPDATE ladder SET position = 8"
UNLISTED = "DELETE FROM correction WHERE position = 9"
UNKNOWN = ("UPDATE ladder SET corrected = 8", "UPDATE generation SET planned = 8")
SEALED = "UPDATE ladder SET seal = (SELECT seal FROM event WHERE position = 8)"
# The last event removed, and with it more and more of what tells of it
TAILS = {
    "the position": ((CUT,), "is not the one that the ladder's row names as its last"),
    "the position and the seal": ((CUT, SEALED), "events after position 8 were removed: the table of corrections"),
    "all but what the ratings include": (
        (CUT, SEALED, UNLISTED, UNKNOWN[0]),
        "removed: the corrections that the ratings include referred to an event at position 9",
    ),
}


@pytest.mark.parametrize("what", TAILS)
def test_a_last_event_that_was_removed_is_damage_and_nothing_to_rebuild(kept, what):
    statements, told = TAILS[what]
    run_sql(kept, "DELETE FROM event WHERE position = 9", *statements)
    found = kept.verify("default")
    assert any(told in line for line in found.damage)
    assert not found.differences


def test_a_last_match_that_was_removed_with_its_traces_is_seen_by_the_ratings(service, ladder):
    service.record(duel(1, "a", "b"))
    service.record(duel(2, "a", "b"))
    seal = "UPDATE ladder SET position = 2, seal = (SELECT seal FROM event WHERE position = 2)"
    run_sql(service, "DELETE FROM event WHERE position = 3", "DELETE FROM appearance WHERE position = 3", seal)
    assert "its last events may have been removed" in service.verify("default").damage[0]


def test_a_tail_that_was_cut_with_all_its_traces_is_seen_by_a_head_that_was_kept(kept):
    head = present_head(kept, "default")
    assert kept.verify("default", kept=head).is_equal
    run_sql(kept, "DELETE FROM event WHERE position = 9", CUT, SEALED, UNLISTED, *UNKNOWN)
    kept.rebuild("default", whole=True)
    assert kept.verify("default").is_equal
    assert "before the kept head at position 9" in kept.verify("default", kept=head).damage[0]
    kept.correct("default", Ban("c"))
    assert "at position 9 differs from the kept head" in kept.verify("default", kept=head).damage[0]


def test_a_head_stays_a_part_of_the_chain_while_the_ladder_goes_on(kept):
    head = present_head(kept, "default")
    assert (head.ladder, head.position, len(head.seal)) == ("default", 9, 32)
    kept.record(duel(8, "a", "d"))
    kept.erase("b")
    kept.rename("a", "aa")
    assert kept.verify("default", kept=head).is_equal
    assert present_head(kept, "default").seal != head.seal


def test_events_that_changed_places_are_named(kept):
    places = ((99, 3), (3, 4), (4, 99))
    run_sql(kept, *(f"UPDATE event SET position = {place} WHERE position = {old}" for place, old in places))
    found = kept.verify("default").damage
    for position, line in zip((3, 4, 5), found, strict=True):
        assert f"at position {position} was altered" in line


def test_an_event_that_was_altered_and_sealed_again_does_not_fit_to_the_next(kept):
    with kept.database.read() as store:
        (batch,) = event_rows.read_events(store, store.head("default"))
    forged = batch[3]._replace(played_at=5)
    seal = literal(kept, forged.seal_after(batch[2].seal))
    run_sql(kept, f"UPDATE event SET played_at = 5, seal = {seal} WHERE position = 4")
    (chain,) = kept.verify("default").damage
    assert chain == "match 'm4' at position 5 was altered, or the event before it was replaced"


def literal(service, value):
    return f"x'{value.hex()}'" if service.database.url.get_backend_name() == "sqlite" else f"'\\x{value.hex()}'::bytea"


NAMES = {
    "a link to another player": (
        ("UPDATE name SET player = 2 WHERE name = 'a'",),
        "'a', which is none of their names: e",
    ),
    "exchanged links": (
        (
            "UPDATE name SET player = 7 - player WHERE name IN ('c', 'd')",
            "UPDATE player SET name = CASE name WHEN 'c' THEN 'd' ELSE 'c' END WHERE name IN ('c', 'd')",
            "UPDATE player SET folded = name",
        ),
        "name 'c' of player #",
    ),
    "a name lost": (("DELETE FROM name WHERE name = 'b'",), "no name leads to player 'b'"),
    "a shown name": (("UPDATE player SET name = 'z' WHERE name = 'a'",), "is shown as 'z', which is none of their"),
    "a searched name": (("UPDATE player SET folded = 'z' WHERE name = 'a'",), "player 'a' is searched as 'z'"),
    "a merge that was not made": (
        ("UPDATE player SET merged_into = 2 WHERE name = 'a'",),
        "player 'a' is merged into player #2; the ledger says no player",
    ),
    "a merge undone": (
        ("UPDATE player SET merged_into = NULL WHERE name = 'e'",),
        "player 'e' is merged into no player; the ledger says player #",
    ),
    "a player lost": (("DELETE FROM player WHERE name = 'a'",), "but not in the table of players"),
}


@pytest.mark.parametrize("what", NAMES)
def test_names_that_are_not_those_of_the_ledger_are_damage_that_a_rebuild_leaves(kept, what):
    statements, told = NAMES[what]
    kept.record(duel(7, "e", "b"))
    kept.merge("e", "a")
    kept.record(duel(8, "e", "b"))
    kept.rename("b", "bb")
    kept.record(duel(9, "c", "bb"))
    kept.record(duel(10, "b", "c"))
    assert kept.verify("default").is_equal
    if what == "a name lost":
        statements = ("DELETE FROM name WHERE name IN ('b', 'bb')",)
        told = "no name leads to player 'bb'"
    run_sql(kept, *statements)
    assert any(told in line for line in kept.verify("default").damage)
    kept.rebuild("default", whole=True)
    assert kept.verify("default").damage


@pytest.mark.parametrize("what", FOLLOWS)
def test_a_full_rebuild_repairs_everything_derived_from_events(kept, what):
    before = ratings(kept)
    run_sql(kept, FOLLOWS[what])
    found = kept.verify("default")
    assert found.differences
    assert not found.damage
    kept.rebuild("default", whole=True)
    assert kept.verify("default").is_equal
    assert ratings(kept) == before


DERIVED = ("state", "journal", "checkpoint", "generation")


def test_ratings_put_back_to_before_a_ban_differ_from_the_ledger_that_has_it(kept):
    copies = [f"CREATE TABLE before_{table} AS SELECT * FROM {table}" for table in DERIVED]
    live = "(SELECT MAX(generation) FROM generation)"
    run_sql(kept, *copies)
    kept.correct("default", Ban("c"))
    banned = ratings(kept)
    run_sql(
        kept,
        *(f"DELETE FROM {table}" for table in DERIVED),
        *(f"INSERT INTO {table} SELECT * FROM before_{table}" for table in DERIVED),
        *(f"DROP TABLE before_{table}" for table in DERIVED),
        f"UPDATE ladder SET generation = {live}",
    )
    found = kept.verify("default")
    assert found.differences == ("the ratings include corrections up to position 9; the last one is at position 10",)
    assert not found.damage
    kept.rebuild("default", whole=True)
    assert kept.verify("default").is_equal
    assert ratings(kept) == banned


def test_earlier_settings_put_back_differ_though_the_last_correction_is_denied_too(kept):
    earlier = kept.ladder("default").settings
    kept.change_settings("default", {"title": "Late"})
    run_sql(kept, "UPDATE ladder SET corrected = 9")
    assert kept.verify("default").differences == (
        "the ladder's row says that the last correction is at position 9; it is at position 10",
    )
    with kept.database.write() as store:
        row = sa.text("UPDATE ladder SET settings = :settings")
        store.connection.execute(row, {"settings": earlier.write()})
    found = kept.verify("default")
    assert "the settings in the ladder's row are not those of the event at position 10" in found.differences
    assert not found.damage
    kept.rebuild("default", whole=True)
    assert kept.verify("default").is_equal
    assert kept.ladder("default").settings.title == "Late"


FINALS = {
    "another rank": "UPDATE final SET rank = 3 - rank WHERE rank IN (1, 2)",
    "a lost one": "DELETE FROM final WHERE player = 1",
    "one more": "INSERT INTO final (ladder, season, player, rating, matches, completed) VALUES (1, 1, 9, 9.5, 1, 1)",
}


@pytest.mark.parametrize("what", FINALS)
def test_final_standings_that_are_not_those_of_the_seasons_end_are_damage(kept, what):
    kept.record(duel(7, "e", "a"))
    kept.open_season("default", title="Winter", event_id="winter")
    kept.record(duel(8, "a", "c"))
    kept.open_season("default", title="Spring")
    kept.merge("e", "b")
    assert kept.verify("default").is_equal
    assert kept.open_season("default", title="Winter", event_id="winter").number == 2
    run_sql(kept, FINALS[what])
    found = kept.verify("default")
    assert found.damage[0] == "the final standings of season 1 have changed since the season ended"
    assert found.differences == ()


LOST = {
    "a generation": "DELETE FROM generation WHERE generation = 1",
    "its lines": "UPDATE event SET told = SUBSTR(told, 1, 9) WHERE position = 4",
}


@pytest.mark.parametrize("what", LOST)
def test_a_report_that_is_sent_again_is_told_that_its_receipt_is_lost(kept, what):
    run_sql(kept, LOST[what])
    with pytest.raises(DamageError, match="restore a backup"):
        kept.record(duel(3, "a", "c"))
    assert kept.verify("default").damage


@pytest.mark.parametrize("column", ["generation", "told"])
def test_a_rebuild_names_a_match_without_receipt(kept, column):
    run_sql(kept, f"UPDATE event SET {column} = NULL WHERE position = 4")
    with pytest.raises(DamageError, match=f"match 'm3' .* {column}"):
        kept.rebuild("default", whole=True)


def test_a_false_receipt_is_not_hidden_by_a_rebuild(kept):
    last = kept.record(duel(7, "a", "b")).position
    run_sql(kept, f"UPDATE event SET told = (SELECT told FROM event WHERE position = 4) WHERE position = {last}")
    found = kept.verify("default")
    assert (len(found.damage), found.differences) == (1, ())
    kept.rebuild("default", whole=True)
    assert kept.verify("default").damage == found.damage


def test_a_recorder_is_told_about_a_torn_state(kept):
    run_sql(kept, FOLLOWS["a torn state"])
    with pytest.raises(StoreError, match="rebuild --whole"):
        kept.record(duel(9, "a", "b"))
    kept.rebuild("default", whole=True)
    assert kept.record(duel(9, "a", "b")).position == 10


@pytest.mark.parametrize("torn", ["told = x'00'", "told = NULL", "teams = x'00'", "players = NULL"])
def test_a_match_that_is_damaged_and_sent_again_is_refused_alone(kept, torn):
    if kept.database.url.get_backend_name() != "sqlite":
        torn = torn.replace("x'00'", "decode('00', 'hex')")
    run_sql(kept, f"UPDATE event SET {torn} WHERE id = 'm1'")
    outcomes = kept.record_many("default", [duel(9, "a", "b"), duel(1, "a", "b"), duel(3, "a", "c")])
    assert [type(outcome).__name__ for outcome in outcomes] == ["MatchReceipt", "DamageError", "MatchReceipt"]


def test_a_rebuild_that_is_due_after_the_last_event_is_a_difference_and_ends(kept):
    run_sql(kept, "UPDATE ladder SET due = 9223372036854775807")
    (difference,) = kept.verify("default").differences
    assert difference.startswith("the ladder's row says that a rebuild is due from position 9223372036854775807")
    assert kept.rebuild("default") is not None
    assert kept.verify("default").is_equal
