"""What is told of one player, and who is found by a part of a name."""

from evenmatch import rules
from evenmatch.corrections.corrections import Ban
from evenmatch.ledger import player_rows
from evenmatch.players import players, profile
from ledger.sample_matches import duel, team_match

OTHERS = 10_001  # names on another ladder


def profile_on_ladder(service, name, ladder="default"):
    """All that is told of a player on one ladder."""
    told = profile.everything(service.database, name, service.clock())
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
