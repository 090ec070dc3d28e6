"""The table of standings: its columns, its order, what it shows and what it hides."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from evenmatch import Appearance, Match, Team, from_matches, rate, rules
from evenmatch.standings.division import Division

START = datetime(2026, 1, 1, tzinfo=UTC)


def duel(at, day, winner, loser, ladder="default", quits=()):
    teams = tuple(Team((Appearance(name, quit=name in quits),), place) for place, name in enumerate((winner, loser), 1))
    return Match(f"m{at}", START + timedelta(days=day), teams, ladder)


def duels_table(*duels):
    return from_matches(duel(at, *what) for at, what in enumerate(duels))


def standings_rows(matches, system="battlepoints", **options):
    return {
        (row["ladder"], row["player"]): row for row in rate(matches, rules(system)).standings(**options).to_pylist()
    }


# Who beats whom so that a > b > c > d > e without ties
ROUND = [
    (1, "a", "b"), (2, "a", "c"), (3, "a", "d"), (4, "a", "e"), (5, "b", "c"),
    (6, "b", "d"), (7, "b", "e"), (8, "c", "d"), (9, "c", "e"), (10, "d", "e"),
]  # fmt: skip


@pytest.mark.parametrize("system", ["wager", "scorefactor", "prav", "battlepoints"])
def test_columns_come_in_the_promised_order(system):
    table = rate(duels_table(*ROUND), rules(system)).standings()
    assert table.column_names[:8] == [
        *("ladder", "player", "rating", "matches", "last_played", "percentile", "placed", "division")
    ]
    assert table.schema.field("last_played").type == pa.timestamp("us", "UTC")
    own = {
        "wager": [],
        "scorefactor": ["games"],
        "prav": ["mean", "volatility", "games", "provisional"],
        "battlepoints": [],
    }
    assert table.column_names[8:] == own[system]


def test_five_players_without_ties_stand_at_1_26_51_76_100():
    table = rate(duels_table(*ROUND), rules("battlepoints")).standings(placement=4)
    assert table["player"].to_pylist() == ["a", "b", "c", "d", "e"]
    assert table["percentile"].to_pylist() == [100, 76, 51, 26, 1]
    assert table["division"].to_pylist() == ["Champion", "Platinum", "Gold", "Silver", "Bronze"]
    assert table["matches"].to_pylist() == [4] * 5


def test_rows_are_sorted_by_ladder_then_rating_downwards_then_player():
    matches = duels_table(
        (1, "zoe", "bob", "x"),
        (2, "cat", "ann", "x"),
        (3, "bob", "ann", "b"),
        (4, "ann", "bob", "b"),
        (5, "Éva", "dan", "b"),
    )
    table = rate(matches, rules("wager")).standings()
    keys = [(row["ladder"], -row["rating"], row["player"]) for row in table.to_pylist()]
    assert keys == sorted(keys)
    assert [(row["ladder"], row["player"]) for row in table.to_pylist()][-4:] == [
        ("x", "cat"), ("x", "zoe"), ("x", "ann"), ("x", "bob"),
    ]  # fmt: skip


def test_players_in_placement_are_hidden_but_counted():
    found = standings_rows(duels_table(*ROUND, (11, "f", "a")), placement=4)
    assert found["default", "f"]["placed"] is False
    assert found["default", "f"]["percentile"] is None
    assert found["default", "f"]["division"] is None
    assert found["default", "e"]["percentile"] == 1
    assert found["default", "d"]["percentile"] == 21  # 1 below and 4 above: f counts among them


def test_a_match_that_was_quit_counts_neither_for_placement_nor_for_activity():
    matches = duels_table(*ROUND, (50, "b", "a", "default", ("a",)), (50, "c", "b"))
    found = standings_rows(matches, placement=5, active_days=30)
    assert [found["default", name]["placed"] for name in "abc"] == [False, True, True]
    assert found["default", "a"]["matches"] == 5
    assert found["default", "a"]["last_played"] == START + timedelta(days=50)
    shown = standings_rows(matches, placement=4, active_days=30)
    assert [shown["default", name]["percentile"] for name in "abc"] == [None, 100, 1]
    assert shown["default", "a"]["placed"] is True


def test_each_ladder_is_judged_as_of_its_own_last_match():
    matches = duels_table((0, "a", "b", "old"), (0, "a", "b", "new"), (100, "c", "d", "new"))
    found = standings_rows(matches, placement=0)
    assert found["old", "a"]["percentile"] == 100
    assert found["new", "a"]["percentile"] is None
    assert found["new", "c"]["percentile"] == 100


def test_a_later_moment_leaves_fewer_active():
    matches = duels_table((0, "a", "b"), (20, "c", "d"))
    assert standings_rows(matches, placement=0)["default", "a"]["percentile"] == 100
    found = standings_rows(matches, placement=0, as_of=START + timedelta(days=31))
    assert found["default", "a"]["percentile"] is None
    assert found["default", "c"]["percentile"] == 100
    found = standings_rows(matches, placement=0, as_of=START + timedelta(days=99))
    assert {row["percentile"] for row in found.values()} == {None}


def test_custom_divisions_are_shown():
    table = rate(duels_table(*ROUND), rules("battlepoints")).standings(
        placement=0, divisions=(Division("low", 1), Division("mid", 26), Division("top", 100))
    )
    assert table["division"].to_pylist() == ["top", "mid", "mid", "mid", "low"]


def test_a_journal_has_a_row_per_player_and_match_that_leads_from_before_to_after():
    ratings = rate(duels_table(*ROUND, (11, "a", "b", "other")), rules("battlepoints"), journal=True)
    journal = ratings.journal_table()
    always = ["match_id", "played_at", "ladder", "player", "team", "before", "after", "expected"]
    assert journal.column_names[:8] == always
    assert journal["played_at"].to_pylist()[-2:] == [START + timedelta(days=11)] * 2
    assert journal.column_names[8:] == [factor.name for factor in ratings.rules.system.factors]
    assert journal.num_rows == 22
    latest = {}
    for row in journal.to_pylist():
        key = row["ladder"], row["player"]
        assert row["before"] == latest.get(key, 1000.0)  # where everybody begins
        latest[key] = row["after"]
    assert latest == {(row["ladder"], row["player"]): row["rating"] for row in ratings.standings().to_pylist()}
    assert journal["expected"].to_pylist()[:2] == [0.5, 0.5]
