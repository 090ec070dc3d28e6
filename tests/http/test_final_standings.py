"""The standings with which a season ended, read in pages."""

from evenmatch import rules
from evenmatch.ladders.settings import Settings
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import duel

STANDINGS = "/v1/ladders/duel/standings"


def test_a_season_that_ended_is_read_in_pages_and_stays_as_it_was(service, reader):
    service.create_ladder("duel", "elo", rules("elo"), Settings(standings=StandingsRules(placement=2)))
    for number, (winner, loser) in enumerate([("ann", "bob"), ("ann", "cat"), ("bob", "cat"), ("ann", "dan")], 1):
        service.record(duel(number, winner, loser, "duel"))
    service.view("duel")
    before = reader.get(STANDINGS).json()["items"]
    service.open_season("duel", title="Winter", reset="full")
    assert reader.get(STANDINGS).json()["items"] == []
    found, cursor = [], None
    while cursor is not None or not found:
        more = {} if cursor is None else {"cursor": cursor}
        page = reader.get(STANDINGS, params={"season": 1, "limit": 3, **more}).json()
        found += page["items"]
        cursor = page["next"]
    assert found[:3] == [{**row, "record": None} for row in before]  # kept with the current season
    assert [(row["rank"], row["player"]) for row in found] == [(1, "ann"), (2, "bob"), (3, "cat"), (None, "dan")]
    assert (page["season"], page["listed"]) == (1, None)
    assert reader.get(STANDINGS, params={"season": 2}).json() == reader.get(STANDINGS).json()
    seasons = reader.get("/v1/ladders/duel/seasons").json()["items"]
    assert [(one["title"], one["closed_at"] is None) for one in seasons] == [("Season 1", False), ("Winter", True)]
    for wrong in ("0", "x", "1.5"):
        assert reader.get(STANDINGS, params={"season": wrong}).status_code == 422
