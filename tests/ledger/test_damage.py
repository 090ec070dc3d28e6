"""What somebody changed in the database behind the ledger's back is found, named, and mended where that can be."""

from functools import partial

import pytest
import sqlalchemy as sa

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.corrections.ladder_heads import present_head
from evenmatch.errors import DamageError, StoreError
from evenmatch.ledger import event_rows
from ledger.sample_matches import duel, ratings, team_match


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
    "the first one lost": ("DELETE FROM event WHERE position = 1", "positions 1 to 1 have no event"),
    "another parameter in the first one": (
        "UPDATE event SET body = REPLACE(body, '\"k\"', '\"q\"') WHERE position = 1",
        "ladder-changed 'ladder:default' at position 1 was altered",
    ),
    "recorded at another time": ("UPDATE event SET recorded_at = 5 WHERE position = 9", "player-banned"),
    "other lines told": (
        "UPDATE event SET told = (SELECT told FROM event WHERE position = 5) WHERE position = 2",
        "match 'm1' at position 2",
    ),
    "other lines told of a match whose lines have changed since": (
        "UPDATE event SET told = (SELECT told FROM event WHERE position = 5) WHERE position = 4",
        "match 'm3' at position 4",
    ),
    "nothing told of a match whose lines have changed since": (
        "UPDATE event SET told = NULL WHERE position = 4",
        "match 'm3' at position 4",
    ),
    "told by another generation": ("UPDATE event SET generation = 2 WHERE position = 4", "match 'm3' at position 4"),
    "no body": ("UPDATE event SET body = NULL WHERE position = 8", "match-voided 'correction:"),
    "a body of a match": ("UPDATE event SET body = '{}' WHERE position = 4", "match 'm3' at position 4"),
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
    listed = how in ("the last one lost", "the first one lost")  # missing in the list of corrections, too
    assert len(found.damage) == (2 if listed else 1)
    assert told in found.damage[0]
    assert found.differences == ()


TORN = {
    "a match": ("UPDATE event SET teams = SUBSTR(teams, 1, 5) WHERE position = 4", "positions 2 to 7 is damaged"),
    "a correction": ("UPDATE event SET body = '{' WHERE position = 1", "at position 1 is damaged"),
    "settings": ("UPDATE ladder SET settings = 'x'", "settings of a ladder are damaged"),
    "a parameter": (
        "UPDATE event SET body = REPLACE(body, '\"k\"', '\"q\"') WHERE position = 1",
        "the event ladder-changed at position 1 is damaged",
    ),
    "no first event": ("DELETE FROM event WHERE position = 1", "first event, which has its rules, is missing"),
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
    "lines of another": "UPDATE journal SET lines = (SELECT told FROM event WHERE position = 4) WHERE position = 6",
    "lines lost": "DELETE FROM journal WHERE position = 6",
    "lines of no match": "INSERT INTO journal (ladder, generation, position, lines) "
    "SELECT ladder, generation, 8, lines FROM journal WHERE position = 6",
    "a torn sample": "UPDATE generation SET sample = SUBSTR(sample, 1, 3) WHERE generation = 3",
    "a later time": "UPDATE generation SET time = time + 1 WHERE generation = 3",
    "no correction included": "UPDATE generation SET planned = 0 WHERE generation = 3",
    "matches included, for a correction": "UPDATE generation SET planned = 7 WHERE generation = 3",
    "who appeared": "DELETE FROM appearance WHERE player = 1",
    "who did not appear": "INSERT INTO appearance (ladder, player, played_at, position) VALUES (1, 4, 0, 2)",
    "when they appeared": "UPDATE appearance SET played_at = played_at + 1 WHERE player = 1",
    "exchanged matches": "UPDATE appearance SET position = 11 - position "
    "WHERE (player, position) IN (VALUES (2, 5), (3, 6))",
    "unreadable settings": "UPDATE ladder SET settings = 'x'",
    "another title": 'UPDATE ladder SET settings = REPLACE(settings, \'"title": ""\', \'"title": "x"\')',
    "a season's title": "UPDATE season SET title = 'won by a'",
    "a season's beginning": "UPDATE season SET opened_at = opened_at + 1",
    "a season's place": "UPDATE season SET position = 2",
    "a lost season": "DELETE FROM season",
    "a season that nobody opened": "INSERT INTO season (ladder, season, title, position, opened_at) "
    "VALUES (1, 2, 'x', 9, 5)",
    "a division": "UPDATE division SET division = division + 1 WHERE player = 1",
    "whose division": "UPDATE division SET player = 9 WHERE player = 1",
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
    chain, digest = kept.verify("default").damage
    assert chain == "match 'm4' at position 5 was altered, or the event before it was replaced"
    assert digest == "match 'm3' at position 4 was reported with different names"


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
        "was reported with different names",
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
    "a player lost": (("DELETE FROM player WHERE name = 'a'",), "is not in the table of players"),
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


def exchange(service, *players):
    """Exchange all names of two players, each of whom has been renamed once."""
    names = [(name, f"{name}-new") for name in players]
    ids = [f"(SELECT player FROM name WHERE name = '{old}')" for old, _ in names]
    shown = "UPDATE player SET name = '{0}', folded = '{0}' WHERE player = (SELECT player FROM name WHERE name = '{0}')"
    run_sql(
        service,
        f"UPDATE name SET player = {ids[0]} + {ids[1]} - player WHERE player IN ({', '.join(ids)})",
        *(shown.format(new) for _, new in names),
    )


@pytest.fixture(params=[6, 10])
def renamed(request, service, ladder):
    """Two teams who met, were renamed, and met again; a fifth of them were reported with their old names then."""
    names = [f"p{number:02}" for number in range(2 * request.param)]
    service.record(team_match(1, (1, *names[::2]), (2, *names[1::2])))
    for name in names:
        service.rename(name, f"{name}-new")
    mixed = [name if number % 5 == 3 else f"{name}-new" for number, name in enumerate(names)]
    service.record(team_match(2, (1, *mixed[::2]), (2, *mixed[1::2])))
    return service


def test_names_that_were_exchanged_are_damage_however_many_names_lead_to_the_players(renamed):
    assert renamed.verify("default").is_equal
    exchange(renamed, "p00", "p01")
    found = renamed.verify("default").damage
    assert any("'m1' at position 2" in line and "was reported with" in line for line in found)


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


SEASONS = {
    "another end": "UPDATE season SET closed_at = closed_at + 1 WHERE season = 1",
    "an end taken back": "UPDATE season SET closed_at = NULL WHERE season = 1",
    "the last one lost": "DELETE FROM season WHERE season = 2",
    "another title": "UPDATE season SET title = 'x' WHERE season = 2",
}


@pytest.mark.parametrize("what", SEASONS)
def test_seasons_that_are_not_as_they_were_opened_are_mended_by_a_whole_rebuild(kept, clock, what):
    clock.move(days=1)
    kept.open_season("default", title="Winter")
    before = kept.seasons("default")
    assert kept.verify("default").is_equal
    run_sql(kept, SEASONS[what])
    assert kept.verify("default").differences == ("the seasons are not those of the events that opened them",)
    kept.rebuild("default", whole=True)
    assert kept.verify("default").is_equal
    assert kept.seasons("default") == before


FINALS = {
    "another rank": "UPDATE final SET rank = 3 - rank WHERE rank IN (1, 2)",
    "another rating": "UPDATE final SET rating = rating + 0.5 WHERE player = 1",
    "another division": "UPDATE final SET division = 'gold' WHERE player = 1",
    "matches that were not": "UPDATE final SET matches = matches + 1 WHERE player = 1",
    "a lost one": "DELETE FROM final WHERE player = 1",
    "one more": "INSERT INTO final (ladder, season, player, rating, matches, completed) VALUES (1, 1, 9, 9.5, 1, 1)",
    "all of them lost": "DELETE FROM final",
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
    "all of them": "UPDATE event SET told = NULL WHERE position = 4",
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
