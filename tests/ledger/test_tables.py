"""Matches that come as tables and go as tables: the same bits as `rate`, and nothing lost on the way."""

import numpy as np
import pyarrow as pa
import pytest

import evenmatch
from evenmatch import from_frame, from_matches, rate, rules, systems
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.errors import BadRowsError
from evenmatch.ladders import export
from evenmatch.ledger import event_rows, rating_rows
from evenmatch.recording import imports
from evenmatch.tables.files import write_arrow
from ledger.sample_matches import after, duel, dump, everybody, positions, ratings, team_match
from random_matches import random_table

CORE = ["match_id", "player", "before", "after", "expected"]


def record_bytes(service, ladder="default"):
    """Every player's record by name, as bytes."""
    with service.database.read() as store:
        head = store.head(ladder)
        roster = rating_rows.read_roster(store, head, event_rows.read_plan(store, head, head.planned).last_rules)
    names = {one.player: name for name, one in everybody(service, ladder).items()}
    return {names[player]: record.tobytes() for player, record in zip(roster.ids.tolist(), roster.records, strict=True)}


def exported(service, what, *arguments, ladder="default", **options):
    with service.database.read() as store:
        return pa.concat_tables(what(store, store.head(ladder), *arguments, **options))


def sorted_rows(table):
    return table.sort_by([("match_id", "ascending"), ("player", "ascending")])


def test_an_import_gives_the_bits_of_rate_in_ratings_and_journal(service, monkeypatch):
    monkeypatch.setattr(imports, "AT_ONCE", 37)  # several transactions
    for name in systems.names():
        table = random_table(name, 7, 90)
        service.create_ladder(name, name, rules(name))
        assert service.import_matches(name, table).added == 90
        wanted = rate(table, rules(name), journal=True)
        assert record_bytes(service, name) == {
            player: record.tobytes() for player, record in zip(wanted.matches.player_names, wanted.state, strict=True)
        }
        journal = exported(service, export.journal_tables, ladder=name)
        factors = [factor.name for factor in wanted.rules.system.factors]
        told = wanted.journal_table()
        for column in CORE + factors:
            assert same(sorted_rows(journal)[column], sorted_rows(told)[column]), (name, column)
        assert service.verify(name).is_equal


def same(a, b):
    if pa.types.is_floating(a.type):
        return np.array_equal(a.to_numpy(), b.to_numpy(), equal_nan=True)
    return a.to_pylist() == b.to_pylist()


def test_recording_one_by_one_gives_the_bits_of_an_import(service):
    table = random_table("prav", 3, 60)
    for name in ("one", "whole"):
        service.create_ladder(name, "prav", rules("prav"))
    service.import_matches("whole", table)
    told = from_frame(table.to_arrow())
    for at in range(len(told)):
        service.import_matches("one", told.take(np.arange(at, at + 1)))
    assert record_bytes(service, "one") == record_bytes(service, "whole")


def test_an_import_can_be_repeated_and_gone_on_with(service, ladder):
    table = random_table("elo", 5, 50)
    assert service.import_matches("default", table.take(np.arange(20)))[:2] == (20, 0)
    rows = dump(service)
    assert service.import_matches("default", table.take(np.arange(20)))[:2] == (0, 20)
    assert dump(service)["event"] == rows["event"]
    assert service.import_matches("default", table)[:2] == (30, 20)
    assert positions(service) == list(range(1, 52))
    assert service.verify("default").is_equal


def test_a_match_that_was_recorded_is_known_to_an_import_and_the_other_way_round(service, ladder):
    told = [duel(1, "a", "b"), team_match(2, (1, "a", "c*"), (1, "b"), (3, "d~")), team_match(3, (2, "a"), (1, "b"))]
    first = [service.record(one) for one in told]
    assert service.import_matches("default", from_matches(told))[:2] == (0, 3)
    more = duel(4, "a", "d", duration=90.0)
    service.import_matches("default", from_matches([more]))
    assert service.record(more).position == 5
    assert [service.record(one) for one in told] == first


def test_an_import_with_another_content_is_refused_whole_or_without_those(service, ladder):
    service.record(duel(1, "a", "b"))
    rows = dump(service)
    told = from_matches([duel(1, "b", "a"), duel(2, "a", "b")])
    with pytest.raises(BadRowsError, match=r"'m1'.*other content"):
        service.import_matches("default", told)
    assert dump(service) == rows
    assert service.import_matches("default", told, skip_bad=True)[:2] == (1, 0)
    assert positions(service) == [1, 2, 3]


def test_an_import_that_cannot_be_rated_adds_nothing(service):
    service.create_ladder("default", "wager", rules("wager"))
    told = from_matches([duel(1, "a", "b"), team_match(2, (1, "a"), (2, "b"), (3, "c"))])
    rows = dump(service)
    with pytest.raises(BadRowsError, match="'m2'"):
        service.import_matches("default", told)
    assert dump(service) == rows
    assert service.import_matches("default", told, skip_bad=True).added == 1
    assert service.import_matches("default", told, rated=False, skip_bad=True).added == 1  # m2; m1 is there, rated
    assert service.verify("default").is_equal


@pytest.fixture
def corrected(service, ladder, clock):
    """A season with a late report, guests, unrated and void matches, a refund, and a rename."""
    clock.move(days=90)
    for one in (duel(5, "a", "b"), duel(2, "b", "c"), team_match(6, (1, "d"), (2, "a", "b~"), (3, "c*"))):
        service.record(one)
    service.record(duel(7, "a", "d"), rated=False)
    service.import_matches("default", random_table("elo", 9, 40))
    service.record(team_match(2000, (1, "p1"), (1, "a")))
    service.correct("default", Void("7"))
    service.correct("default", Ban("p3", "refund"))
    service.correct("default", Ban("p4"))
    service.rename("a", "zoe")
    return service


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rating_the_exported_matches_gives_the_same_ratings(corrected, tmp_path, suffix):
    file = tmp_path / f"counted{suffix}"
    write_arrow(exported(corrected, export.match_tables, counted=True), file)
    made = rate(evenmatch.read(file), rules("elo"))
    wanted = {name: one.rating for name, one in everybody(corrected).items() if one.matches}
    got = dict(zip(made.matches.player_names, made.state["rating"].tolist(), strict=True))
    assert {name: got[name] for name in wanted} == wanted


# Days on which matches are said to have ended, in the order of the ledger; which are void and which unrated; days on
# which the others count as ended.
LATE = [
    ([0, 9, 2], [1], [], [0, 2]),
    ([0, 2, 9, 3, 1, 4], [], [2], [0, 2, 3, 3, 4]),
    ([5, 9, 3, 9, 6, 2, 12], [1], [3], [5, 5, 6, 6, 12]),
    ([3, 1, 1, 2, 0, 0, 8], [0], [], [1, 1, 2, 2, 2, 8]),
]


@pytest.mark.parametrize("at_once", [2, 1000])
@pytest.mark.parametrize(("days", "void", "unrated", "wanted"), LATE)
def test_a_match_that_counts_is_as_late_as_those_before_it_that_count(
    service, clock, monkeypatch, at_once, days, void, unrated, wanted
):
    clock.move(days=90)
    monkeypatch.setattr(event_rows, "BATCH", at_once)
    service.create_ladder("default", "glicko", rules("glicko", c=60.0))
    for number, day in enumerate(days):
        told = team_match(number, (1, "abc"[number % 3]), (2, "abc"[(number + 1 + number % 2) % 3]), at=24 * day)
        service.record(told, rated=number not in unrated)
    for number in void:
        service.correct("default", Void(f"m{number}"))
    table = exported(service, export.match_tables, counted=True)
    rated = [number for number in range(len(days)) if number not in void + unrated]
    assert table["match_id"].to_pylist()[::2] == [f"m{number}" for number in rated]
    assert [at.timestamp() for at in table["played_at"].to_pylist()[::2]] == [
        after(24 * day).timestamp() for day in wanted
    ]
    made = rate(from_frame(table), rules("glicko", c=60.0))
    told = dict(zip(made.matches.player_names, made.state["rating"].tolist(), strict=True))
    assert told == ratings(service)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_ladder_exported_and_imported_has_the_same_matches_and_ratings(service, ladder, clock, tmp_path, suffix):
    clock.move(days=90)
    service.import_matches("default", random_table("elo", 4, 60))
    service.record(team_match(2000, (1, "p1", "new~"), (2, "p2*")))
    file = tmp_path / f"matches{suffix}"
    write_arrow(exported(service, export.match_tables), file)
    service.create_ladder("copy", "elo", rules("elo"))
    assert service.import_matches("copy", evenmatch.read(file)).added == 61
    assert ratings(service, "copy") == ratings(service)
    write_arrow(exported(service, export.match_tables, ladder="copy"), tmp_path / f"again{suffix}")
    again, first = (
        evenmatch.read(tmp_path / f"{name}{suffix}").to_arrow().drop(["ladder"]) for name in ("again", "matches")
    )
    assert again.equals(first)


def test_an_export_tells_when_late_matches_were_played_and_all_that_was_sent(service, ladder):
    told = [duel(5, "a", "b", duration=61.5), team_match(2, (3, "a", "c*"), (7, "b~"))]
    for one in told:
        service.record(one)
    table = exported(service, export.match_tables)
    assert table["match_id"].to_pylist() == ["m5", "m5", "m2", "m2", "m2"]
    assert [at.timestamp() for at in table["played_at"].to_pylist()] == [after(h).timestamp() for h in (5, 5, 2, 2, 2)]
    assert table["place"].to_pylist() == [1, 2, 3, 3, 7]
    assert table["player"].to_pylist() == ["a", "b", "a", "c", "b"]
    assert table["quit"].to_pylist() == [False, False, False, True, False]


def test_the_journal_and_a_players_matches_tell_how_they_are_rated_now(corrected):
    journal = exported(corrected, export.journal_tables)
    last = {row["player"]: row["after"] for row in journal.to_pylist()}
    now = everybody(corrected)
    assert {name: last[name] for name in now if name in last} == {
        name: one.rating for name, one in now.items() if name in last
    }
    assert "7" not in set(journal["match_id"].to_pylist())
    with corrected.database.read() as store:
        rows = export.matches_of_player(store, store.head("default"), corrected.player("zoe"))
    assert [row["match_id"] for row in rows] == ["m2000", "m7", "m6", "m5"]
    assert [row["rated"] for row in rows] == [True, False, True, True]
    assert rows[0]["after"] == now["zoe"].rating
