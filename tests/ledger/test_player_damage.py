"""Players and names that somebody changed in the database behind the ledger's back are named by `verify`."""

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Reinstate
from evenmatch.errors import ConflictError
from evenmatch.ledger import player_rows
from evenmatch.ledger.database_check import check_database
from ledger.sample_matches import duel, run_sql


def damage(service, ladder="default"):
    """Findings of the check of the database, and of the verification of a ladder."""
    return [*check_database(service.database).damage, *service.verify(ladder).damage]


def of(name):
    return f"(SELECT player FROM name WHERE name = '{name}')"


@pytest.fixture
def kept(service, ladder):
    """Erased: x, with y merged into them. Only corrections name ann, bea, cat, dan and eve; nothing names queued."""
    service.create_ladder("other", "elo", rules("elo"))
    for number, pair in enumerate(("ab", "yb", "xc", "ab", "yc"), 1):
        service.record(duel(number, *pair))
    service.merge("y", "x")
    service.erase("x")
    with service.database.write() as store:
        player_rows.admit(store, ["dan", "eve", "queued", "Änne"])
    service.start_ratings("default", dict.fromkeys(("ann", "bea", "cat"), 1600.0))
    service.merge("bea", "ann")
    service.rename("cat", "cathy")
    service.correct("default", Ban("dan"))
    service.correct("default", Ban("eve"))
    service.correct("default", Reinstate("eve"))
    return service


def pseudonym_of(service):
    with service.database.read() as store:
        return store.all("SELECT name FROM player WHERE erased_at IS NOT NULL")[0][0]


def test_players_as_they_were_left_are_no_damage(kept):
    assert damage(kept) == damage(kept, "other") == []
    assert kept.verify("default").is_equal


ERASED = "(SELECT player FROM player WHERE erased_at IS NOT NULL AND merged_into IS NULL)"
MERGED = "(SELECT player FROM player WHERE erased_at IS NOT NULL AND merged_into IS NOT NULL)"
MARKS = {
    "a player who was not erased": (
        ("UPDATE player SET erased_at = 5 WHERE name = 'a'",),
        "player 'a' is marked as erased; no event of the ladder says so",
    ),
    "and has a pseudonym": (
        (
            "UPDATE player SET erased_at = 5, name = 'erased-0123456789ab', folded = 'erased-0123456789ab' "
            "WHERE name = 'a'",
            "UPDATE name SET name = 'erased-0123456789ab' WHERE name = 'a'",
            "DELETE FROM name_check WHERE name = 'a'",
        ),
        "name 'erased-0123456789ab' of player #",
    ),
    "a player without matches": (
        ("UPDATE player SET erased_at = 5 WHERE name = 'dan'",),
        "player 'dan' is marked as erased; no event of the ladder says so",
    ),
    "a player without events": (
        ("UPDATE player SET erased_at = 5 WHERE name = 'queued'",),
        "player 'queued' is marked as erased, but has no pseudonym; expected erased- and",
    ),
    "an erased player who is no longer": (
        (f"UPDATE player SET erased_at = NULL WHERE player = {ERASED}",),
        "' is not marked as erased; the ledger says that they were erased",
    ),
    "one who was merged into them": (
        (f"UPDATE player SET erased_at = NULL WHERE player = {MERGED}",),
        "' is not marked as erased; the ledger says that they were erased",
    ),
    "an erased player with a name": (
        (
            f"INSERT INTO name (name, player) SELECT 'x', player FROM player WHERE player = {ERASED}",
            f"UPDATE player SET name = 'x', folded = 'x' WHERE player = {ERASED}",
        ),
        "was erased; expected a pseudonym as the only name, got erased-",
    ),
}


@pytest.mark.parametrize("what", MARKS)
def test_a_player_is_erased_exactly_if_the_ledger_says_so(kept, what):
    statements, told = MARKS[what]
    run_sql(kept, *statements)
    assert any(told in line for line in damage(kept))


def test_an_erased_player_who_is_reported_on_another_ladder_is_no_damage_there(kept):
    kept.record(duel(1, pseudonym_of(kept), "b", ladder="other"))
    assert damage(kept, "other") == []


@pytest.mark.parametrize(
    "use",
    [
        lambda one, name: one.record(duel(9, name, "b")),
        lambda one, name: one.start_ratings("default", {name: 1300.0}),
        lambda one, name: one.correct("default", Ban(name)),
    ],
    ids=["report", "start", "ban"],
)
def test_a_pseudonym_may_be_used_when_it_was_given_without_an_event(kept, use):
    use(kept, kept.erase("queued"))
    assert damage(kept) == []


def test_an_erased_player_is_not_renamed(kept):
    with pytest.raises(ConflictError, match="is an erased player, who cannot be renamed"):
        kept.rename(pseudonym_of(kept), "x")


LINKS = {
    "a name that leads nowhere": (
        ("INSERT INTO name (name, player) VALUES ('z', 99)",),
        "name 'z' leads to player #99, who is not in the table of players",
    ),
    "a name that leads to a merged player": (
        ("UPDATE name SET player = (SELECT player FROM player WHERE name = 'bea') WHERE name = 'bea'",),
        "name 'bea' leads to player #",
    ),
    "a name of an erased player": (
        (f"INSERT INTO name (name, player) SELECT 'z', player FROM player WHERE player = {ERASED}",),
        "name 'z' leads to player 'erased-",
    ),
    "a player without a name": (("DELETE FROM name WHERE name = 'queued'",), "no name leads to player 'queued'"),
    "a name of another player": (
        (f"UPDATE name SET player = {of('a')} WHERE name = 'queued'",),
        "the name of player 'queued' (#",
    ),
    "another name for searches": (
        ("UPDATE player SET folded = 'änny' WHERE name = 'Änne'",),
        "player 'Änne' is searched as 'änny'",
    ),
    "a merge into nothing": (
        ("UPDATE player SET merged_into = 99 WHERE name = 'queued'",),
        "player 'queued' is merged into player #99, who is not in the table of players",
    ),
    "a merge into itself": (
        ("UPDATE player SET merged_into = player WHERE name = 'queued'",),
        "player 'queued' is merged into player #",
    ),
    "a merge into a merged player": (
        ("UPDATE player SET merged_into = (SELECT player FROM player WHERE name = 'bea') WHERE name = 'queued'",),
        "who is merged into player #",
    ),
    "a look that is lost": (
        ("DELETE FROM name_check WHERE name = 'queued'",),
        "table name_check has no row of the name 'queued'",
    ),
    "the look of no name": (
        ("INSERT INTO name_check (name, skeleton) VALUES ('z', 'z')",),
        "table name_check has a row of 'z', a name of no player",
    ),
}


@pytest.mark.parametrize("what", LINKS)
def test_names_and_players_that_do_not_belong_together_are_named(kept, what):
    statements, told = LINKS[what]
    run_sql(kept, *statements)
    assert any(told in line for line in check_database(kept.database).damage)
    assert check_database(kept.database, quick=True).damage == ()


def test_a_name_that_cannot_be_decoded_is_damage(kept):
    if kept.database.url.get_backend_name() != "sqlite":
        pytest.skip("PostgreSQL refuses it")
    run_sql(kept, "UPDATE name SET name = CAST(x'ff61' AS TEXT) WHERE name = 'queued'")
    (line,) = check_database(kept.database).damage
    assert line.startswith(f"{kept.database.shown}: players and names cannot be read: ")
    assert "Could not decode to UTF-8 column 'name'" in line
