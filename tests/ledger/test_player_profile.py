"""What is told of one player, and who is found by a part of a name."""

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban
from evenmatch.errors import UnknownNameError
from evenmatch.ladders import standings
from evenmatch.ladders.standings import StandingsCache
from evenmatch.ledger import player_rows, rating_rows
from evenmatch.ledger.postgres_store import PostgresStore
from evenmatch.ledger.sqlite_store import SqliteStore
from evenmatch.players import players, profile
from ledger.sample_matches import duel, team_match

OTHERS = 10_001  # names on another ladder


def profile_on_ladder(service, name, ladder="default", kept=None):
    """All that is told of a player on one ladder."""
    told = profile.everything(service.database, name, service.clock(), boards=kept)
    return next(one for one in told["ladders"] if one["ladder"] == ladder)


def test_the_seasons_of_accounts_that_were_merged_are_told_too(service, ladder):
    for number in range(1, 5):
        service.record(duel(number, "smurf", "b"))
    service.record(duel(5, "ann", "b"))
    service.open_season("default")
    service.record(team_match(6, (1, "old", "b"), (2, "c", "d")))
    service.record(team_match(7, (1, "old", "c"), (1, "e")))
    service.open_season("default")
    ended = {(season, one.player): one for season in (1, 2) for one in service.finals("default", season)}
    assert [ended[key].matches for key in ((1, "smurf"), (1, "ann"), (2, "old"))] == [4, 1, 2]
    service.merge("old", "smurf")
    service.merge("smurf", "ann")
    told = profile_on_ladder(service, "old")["seasons"]
    assert [row["season"] for row in told] == sorted(row["season"] for row in told)
    assert {(row["season"], row["player"]) for row in told} == {
        key for key in ended if key[1] in ("ann", "smurf", "old")
    }
    for row in told:
        season = row.pop("season")
        assert row == ended[season, row["player"]]._asdict()
    assert {row["player"] for row in profile_on_ladder(service, "b")["seasons"]} == {"b"}


@pytest.fixture
def read_whole(monkeypatch):
    """How often every player of a ladder was read."""
    asked = []

    def spied(read, store, sql, *values):
        if sql == f"{rating_rows._STANDINGS} ORDER BY player":
            asked.append(values)
        return read(store, sql, *values)

    for kind in (SqliteStore, PostgresStore):
        monkeypatch.setattr(kind, "all", lambda *asked, read=kind.all: spied(read, *asked))
    return asked


def comparable_profile(told):
    """Ladders, standings and matches, without numbers that are not equal to themselves."""
    return [
        (on.ladder.name, on.standing, on.banned, [profile.plain_match(row) for row in on.matches])
        for on in told.ladders
    ]


def test_who_keeps_views_is_told_the_same_without_reading_everybody(service, ladder, read_whole):
    service.create_ladder("other", "glicko", rules("glicko"))
    for number, pair in enumerate(("ab", "cb", "ac", "ba", "ac"), 1):
        service.record(duel(number, *pair))
    service.record(duel(9, "a", "d", ladder="other"))
    service.correct("default", Ban("b", "refund"))
    kept, now = StandingsCache(service.database), service.clock()
    wanted = {name: comparable_profile(profile.dossier(service.database, name, now)) for name in "abcd"}
    documents = {name: profile.everything(service.database, name, now) for name in "abcd"}
    assert [len(wanted[name]) for name in "abcd"] == [2, 1, 1, 1]
    read_whole.clear()
    for name in "abcd":
        assert comparable_profile(profile.dossier(service.database, name, now, boards=kept)) == wanted[name]
        assert profile.everything(service.database, name, now, boards=kept) == documents[name]
    one = profile.dossier(service.database, "a", now, ladder="other", matches=0, boards=kept)
    assert [(on.ladder.name, on.matches) for on in one.ladders] == [("other", [])]
    assert len(read_whole) == 2  # once each ladder


@pytest.mark.parametrize("least", [0.0, 1000.0])
def test_a_kept_view_never_tells_a_standing_of_before_the_last_match(service, ladder, read_whole, monkeypatch, least):
    monkeypatch.setattr(standings, "SHORTEST_USE", least)  # seconds that a view is kept for whoever takes an old one
    for number, pair in enumerate(("ab", "ac", "cb"), 1):
        service.record(duel(number, *pair))
    kept = StandingsCache(service.database)
    assert profile_on_ladder(service, "a", kept=kept)["standing"]["matches"] == 2
    service.record(duel(4, "b", "a"))
    service.record(duel(5, "new", "a"))
    read_whole.clear()
    for name, matches in (("a", 4), ("new", 1), ("c", 2)):
        told = profile_on_ladder(service, name, kept=kept)
        assert told["standing"]["matches"] == matches == len(told["matches"])
        assert told["standing"]["rating"] == told["matches"][0]["after"]
    assert not read_whole
    service.merge("new", "b")
    assert profile_on_ladder(service, "b", kept=kept)["standing"]["matches"] == 4
    with pytest.raises(UnknownNameError, match="nobody"):
        profile_on_ladder(service, "nobody", kept=kept)


def found(service, text, limit=20, ladder="default"):
    """The names that a search on a ladder finds, in its order."""
    ids = players.search_ladder(service.database, service.view(ladder), text, limit)
    with service.database.read() as store:
        names = player_rows.names_of(store, ids)
    return [names[one] for one in ids]


def test_a_player_is_found_however_many_of_other_ladders_have_such_names(service, ladder):
    service.create_ladder("other", "elo", rules("elo"))
    service.start_ratings("other", {f"ann{number}": 1500.0 for number in range(OTHERS)})
    service.record(duel(1, "annabella the longest", "joanna"))
    assert found(service, "ANN") == ["annabella the longest", "joanna"]
    assert found(service, "ann", limit=1) == ["annabella the longest"]
    assert len(found(service, "ann", OTHERS + 5, ladder="other")) == OTHERS


def test_those_who_are_shown_are_found_in_the_order_of_search(service, ladder):
    names = ("annabel", "ann", "Anna_1", "anna%1", "hannah", "anne", "anni")
    for number, name in enumerate(names, 1):
        service.record(duel(number, name, "zed"))
    service.record(duel(20, "unrated ann", "zed"), rated=False)
    service.correct("default", Ban("ann", "refund"))
    service.erase("anne")
    service.rename("annabel", "annabella")
    service.record(duel(21, "zoe", "zed"))
    service.merge("anni", "zoe")
    assert found(service, "ann") == ["Anna_1", "anna%1", "annabella", "hannah"]
    assert found(service, "ann", limit=1) == ["Anna_1"]
    assert found(service, "a_1") == ["Anna_1"]
    assert found(service, "%") == ["anna%1"]
    assert found(service, "nobody") == []
