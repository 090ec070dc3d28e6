"""What players and designers read, over a small league whose numbers are worked by hand."""

import json
import re
from datetime import timedelta

import pytest

from asgi_client import Asking
from databases import KINDS, made_database
from evenmatch import rules
from evenmatch.accounts.access import SCOPES
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.http.app import application
from evenmatch.http.models import ladders, matches, players, standings
from evenmatch.http.models.from_records import page_of
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.ladders.settings import Settings
from evenmatch.ledger.ladder_rows import Season
from evenmatch.match import Match, Team
from evenmatch.operations.service import Service
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import START, ManualClock, after, duel

pytestmark = pytest.mark.both_databases

K = 32
SLASHED = "x/y <b>'; DROP TABLE player;--"
DIVISIONS = (Division("Low", 1), Division("High", 51))

# what became of the matches, by hand: Elo's expected score of the first player, and the winner's gain
#  1  ann beats bob  1500 1500  0.5       16
#  2  ann beats cat  1516 1500  0.523010  15.26368
#  3  bob beats cat  1484 ....  (cat has 1484.73632 then)
#  4  a draw between dan and SLASHED, both 1500: nothing moves
#  5  void; 6 not rated; 7 eve, who is banned, beats dan: void
RATED = [("ann", "bob"), ("ann", "cat"), ("bob", "cat")]


def by_hand():
    """Everybody's rating after the rated matches, and what each gave the winner."""
    rating, gains = {}, []
    for winner, loser in RATED:
        a, b = rating.get(winner, 1500.0), rating.get(loser, 1500.0)
        gain = K * (1 - 1 / (1 + 10 ** ((b - a) / 400)))
        rating[winner], rating[loser] = a + gain, b - gain
        gains.append(gain)
    return rating, gains


class League:
    """A database with the league, asked through HTTP."""

    def __init__(self, url):
        self.clock = ManualClock()
        self.service = service = Service.open(str(url), self.clock)
        settings = Settings(title="Duel 1v1", standings=StandingsRules(placement=2, divisions=DIVISIONS), team_size=1)
        service.create_ladder("duel", "elo", rules("elo"), settings)
        service.create_ladder("arena", "glicko2", rules("glicko2"))
        for number, (winner, loser) in enumerate(RATED, 1):
            service.record(duel(number, winner, loser, "duel"))
        service.record(Match("m4", after(4), (Team.of("dan", place=1), Team.of(SLASHED, place=1)), "duel"))
        service.record(duel(5, "cat", "ann", "duel"))
        service.record(duel(6, "cat", "ann", "duel"), rated=False)
        service.record(duel(7, "eve", "dan", "duel"))
        service.record(duel(8, "ann", "zoe", "arena"))
        service.correct("duel", Void("m5", "wrong score"))
        service.correct("duel", Ban("eve", reason="aimbot"))
        service.rename("bob", "Bobby")
        self.site = site_over(service, Options(matchmaker=False, open_rate=1000, open_burst=1000))
        made = {scope: self.site.keys.create(scope, [scope])[1] for scope in SCOPES}
        made["duel"] = self.site.keys.create("duel alone", ["read"], ["duel"])[1]
        made["ann"] = self.site.tokens.issue(self.site.keys.authenticate(made["queue"]), "ann").text
        self.headers = {name: {"Authorization": f"Bearer {text}"} for name, text in made.items()}
        self.asking = Asking(application(self.site))

    def get(self, address, who="read", status=200, **fields):
        """What a GET answers."""
        answer = self.asking.get(address, headers=self.headers.get(who, {}), **fields)
        assert answer.status_code == status, answer.text
        return answer.json()

    def close(self):
        self.asking.close()
        self.site.threads.shutdown()
        self.service.close()


@pytest.fixture(scope="module", params=KINDS)
def league(request, tmp_path_factory):
    made = League(made_database(request, request.param, tmp_path_factory.mktemp("league")))
    yield made
    made.close()


def test_standings_list_who_is_placed_best_first(league):
    page = standings.StandingsPage.model_validate(league.get("/v1/ladders/duel/standings"))
    rating, _ = by_hand()
    ranked = [("ann", rating["ann"]), ("Bobby", rating["bob"]), ("cat", rating["cat"])]
    assert [(row.rank, row.player) for row in page.items] == [(1, "ann"), (2, "Bobby"), (3, "cat")]
    assert [row.rating for row in page.items] == pytest.approx([one for _, one in ranked], abs=1e-9)
    # of 5 active, two of whom have 1500: 1 + 100 * below // 4, at most 100
    assert [row.percentile for row in page.items] == [100, 76, 1]
    assert [row.division for row in page.items] == ["High", "High", "Low"]
    assert [(row.matches, row.completed) for row in page.items] == [(2, 2)] * 3
    assert (page.listed, page.active, page.players, page.placement, page.next) == (3, 5, 5, 2, None)


def test_a_cursor_that_nobody_gave_is_refused(league):
    for cursor in ("x", "WzFd", "W10", "bm8", "é", "A" * 2000):
        told = league.get("/v1/ladders/duel/standings", status=422, params={"cursor": cursor})
        assert "the `next` of a previous page" in told["detail"]


def test_standings_that_are_known_are_not_sent_again(league):
    first = league.asking.get("/v1/ladders/duel/standings", headers=league.headers["read"])
    league.clock.move(seconds=3)
    league.service.view("duel")  # another view of the same standings
    known = {**league.headers["read"], "If-None-Match": first.headers["etag"]}
    again = league.asking.get("/v1/ladders/duel/standings", headers=known)
    assert (again.status_code, again.content) == (304, b"")


def test_somebody_stands_between_those_above_and_below(league):
    found = standings.NeighboursOut.model_validate(league.get("/v1/ladders/duel/standings/around/bob?each_side=1"))
    assert (found.player, found.standing.rank) == ("Bobby", 2)
    assert [row.player for row in found.items] == ["ann", "Bobby", "cat"]
    alone = league.get("/v1/ladders/duel/standings/around/Bobby?each_side=0")
    assert [row["player"] for row in alone["items"]] == ["Bobby"]


def test_who_is_not_placed_is_shown_among_those_around_their_rating(league):
    found = league.get("/v1/ladders/duel/standings/around/dan?each_side=1")
    assert found["standing"] == {
        **{"player": "dan", "rating": 1500.0, "rank": None, "percentile": None, "division": None},
        **{"matches": 1, "completed": 1, "placed": False, "active": True, "expected_move": None},
        "record": {"won": 0, "drew": 1, "lost": 0, "last_completed": "2026-01-01T04:00:00Z", "rating_change": None},
    }
    assert [row["player"] for row in found["items"]] == ["Bobby", "cat"]  # of 1500.03 and 1468.70


def test_a_banned_player_is_around_nobody(league):
    assert league.get("/v1/ladders/duel/standings/around/eve", status=404)["detail"].startswith("unknown player")


def test_friends_stand_by_their_ranks_and_strangers_are_named_as_missing(league):
    names = ["cat", "nobody", "dan", "ann", "eve", "bob", "ann", "zoe"]
    found = standings.SelectedStandings.model_validate(
        league.get("/v1/ladders/duel/standings/among", params=[("player", name) for name in names])
    )
    assert [(row.player, row.rank) for row in found.items] == [("ann", 1), ("Bobby", 2), ("cat", 3), ("dan", None)]
    assert found.missing == ["nobody", "eve", "zoe"]
    league.get("/v1/ladders/duel/standings/among", status=422)


def test_ratings_are_spread_over_round_ranges(league):
    found = standings.DistributionOut.model_validate(league.get("/v1/ladders/duel/distribution?bins=10"))
    rating, _ = by_hand()
    everybody = [*rating.values(), 1500.0, 1500.0]
    assert found.active == sum(one.players for one in found.bins) == 5
    for one in found.bins[:-1]:
        assert one.players == sum(one.low <= value < one.high for value in everybody)
    assert [(one.name, one.lowest) for one in found.divisions] == [("Low", 1), ("High", 51)]
    assert found.divisions[0].rating == pytest.approx(min(everybody), abs=1e-9)
    league.get("/v1/ladders/duel/distribution?bins=1", status=422)


def test_a_player_is_told_where_they_stand(league):
    found = players.PlayerProfile.model_validate(league.get("/v1/ladders/duel/players/bob"))
    assert (found.player, found.names, found.banned, found.state) == ("Bobby", None, False, {})
    assert found.standing is not None
    assert (found.standing.rank, found.standing.matches) == (2, 2)
    assert found.last_played == START + timedelta(hours=3)


def test_only_an_admin_reads_former_names(league):
    assert league.get("/v1/ladders/duel/players/Bobby", "admin")["names"] == ["Bobby", "bob"]
    assert league.get("/v1/players/Bobby", "admin")["names"] == ["Bobby", "bob"]
    for who in ("read", "report", "queue"):
        assert league.get("/v1/ladders/duel/players/Bobby", who)["names"] is None
        assert league.get("/v1/players/Bobby", who)["names"] is None


def test_what_the_system_keeps_of_a_player_is_as_of_now(league):
    soon = league.get("/v1/ladders/arena/players/zoe")["state"]
    assert set(soon) == {"deviation", "volatility"}
    assert 0 < soon["deviation"] < 350
    league.clock.move(days=200)
    later = league.get("/v1/ladders/arena/players/zoe")["state"]
    league.clock.move(days=-200)
    assert later["deviation"] > soon["deviation"]


def test_a_banned_player_has_a_page_that_says_so(league):
    found = league.get("/v1/ladders/duel/players/eve")
    assert (found["banned"], found["standing"], found["last_played"]) == (True, None, None)


def test_a_player_of_another_ladder_is_not_known_here(league):
    for end in ("", "/matches", "/path", "/career"):
        told = league.get(f"/v1/ladders/duel/players/zoe{end}", status=404)
        assert told["detail"] == "unknown player 'zoe' of ladder 'duel'"


def test_the_matches_of_a_player_say_what_each_did_to_them(league):
    found = players.PlayerMatches.model_validate(league.get("/v1/ladders/duel/players/ann/matches"))
    _, gains = by_hand()
    assert [one.match_id for one in found.items] == ["m6", "m5", "m2", "m1"]
    assert [one.state for one in found.items] == ["unrated", "void", "rated", "rated"]
    assert [one.reason for one in found.items] == [
        *("it was sent as an unrated match", "the match was voided: wrong score"),
        *(None, None),
    ]
    assert [one.change for one in found.items[2:]] == [round(gains[1], 2), round(gains[0], 2)]
    assert found.items[2].expected == float(f"{1 / (1 + 10 ** (-16 / 400)):.6g}")
    assert [(one.team, one.teams, one.place, one.quit) for one in found.items] == [
        *((1, 2, 2, False), (1, 2, 2, False)),
        *((0, 2, 1, False), (0, 2, 1, False)),
    ]
    assert found.items[0].before is found.items[1].before is found.items[1].factors is None
    assert set(found.items[2].factors) == {one.name for one in rules("elo").system.factors}
    assert found.items[2].headline == "You beat an evenly matched opponent, so your rating rose by 15.26."
    assert found.items[2].otherwise == "A loss would have cost you 16.74."  # 32 − 15.26
    assert found.items[0].headline is found.items[0].otherwise is None


def test_a_path_leads_from_the_first_rated_match_to_the_last(league):
    found = players.PlayerPath.model_validate(league.get("/v1/ladders/duel/players/ann/path"))
    _, gains = by_hand()
    assert [one.match_id for one in found.points] == ["m1", "m2"]
    assert [one.rating for one in found.points] == pytest.approx([1516, 1516 + gains[1]], abs=1e-9)
    assert [one.played_at for one in found.points] == [START + timedelta(hours=1), START + timedelta(hours=2)]


def test_a_career_counts_rated_matches_only(league):
    found = players.PlayerCareer.model_validate(league.get("/v1/ladders/duel/players/ann/career"))
    _, gains = by_hand()
    rating = 1516 + gains[1]
    assert (found.whole.won, found.whole.drew, found.whole.lost) == (2, 0, 0)
    assert found.peak.rating == pytest.approx(rating)
    assert found.seconds is None


def test_players_are_found_by_a_part_of_their_name(league):
    assert league.get("/v1/players?search=AN")["items"] == ["ann", "dan"]
    assert league.get("/v1/players?search=%25")["items"] == []
    for who in ("read", "duel"):
        assert league.get("/v1/players", who, params={"search": "bóB"})["items"] == ["Bobby"]
    assert league.get("/v1/players?search=a&limit=1")["items"] == ["ann"]
    assert league.get("/v1/players", params={"search": "DROP"})["items"] == [SLASHED]
    for wrong in ("", "?search=", f"?search={'a' * 300}", "?search=a&limit=0", "?search=%00"):
        league.get(f"/v1/players{wrong}", status=422)


def test_a_name_with_a_slash_and_what_looks_like_commands_is_a_name(league):
    quoted = "x%2Fy%20%3Cb%3E'%3B%20DROP%20TABLE%20player%3B--"
    assert league.get(f"/v1/players/{quoted}") == {"player": SLASHED, "names": None, "ladders": ["duel"]}
    assert league.get(f"/v1/ladders/duel/players/{quoted}")["player"] == SLASHED
    assert [one["match_id"] for one in league.get(f"/v1/ladders/duel/players/{quoted}/matches")["items"]] == ["m4"]


def test_a_player_is_known_to_ladders(league):
    assert players.PlayerOut.model_validate(league.get("/v1/players/ann")).ladders == ["arena", "duel"]
    assert league.get("/v1/players/eve")["ladders"] == ["duel"]
    league.get("/v1/players/nobody", status=404)


def test_a_match_is_told_with_its_odds_changes_and_reasons(league):
    found = matches.MatchOut.model_validate(league.get("/v1/ladders/duel/matches/m2"))
    _, gains = by_hand()
    expected = 1 / (1 + 10 ** (-16 / 400))
    assert (found.state, found.reason, found.system, found.position) == ("rated", None, "elo", 3)
    assert [team.expected for team in found.teams] == pytest.approx([expected, 1 - expected], abs=5e-7)
    ((ann,), (cat,)) = (team.players for team in found.teams)
    assert (ann.player, ann.before, cat.player, cat.before) == ("ann", 1516.0, "cat", 1500.0)
    assert [ann.change, cat.change] == [round(gains[1], 2), -round(gains[1], 2)]
    assert found.sentences == [
        "Team 0 won: an even match.",
        "Team 0: place 1, expected 52.3% before the match.",
        "Team 1: place 2, expected 47.7% before the match.",
    ]
    assert ann.headline == "You beat an evenly matched opponent, so your rating rose by 15.26."
    assert cat.headline == "You lost to an evenly matched opponent, so your rating fell by 15.26."
    assert (ann.otherwise, cat.otherwise) == ("A loss would have cost you 16.74.", "A win would have earned you 16.74.")
    assert (found.teams[0].factors, set(ann.factors)) == ({}, {one.name for one in rules("elo").system.factors})


@pytest.mark.parametrize(
    ("match_id", "state", "reason"),
    [
        ("m5", "void", "the match was voided: wrong score"),
        ("m6", "unrated", "it was sent as an unrated match"),
        ("m7", "void", "eve is banned: aimbot"),
    ],
)
def test_a_match_that_changed_nothing_says_why(league, match_id, state, reason):
    found = matches.MatchOut.model_validate(league.get(f"/v1/ladders/duel/matches/{match_id}"))
    assert (found.state, found.reason) == (state, reason)
    assert found.sentences[-1] == f"It changed no rating: {reason}."
    assert all(one.change is None and one.headline is None for team in found.teams for one in team.players)


def test_a_correction_is_no_match(league):
    with league.service.database.read() as store:
        ids = store.connection.exec_driver_sql("SELECT id FROM event WHERE kind <> 'match-recorded'").scalars().all()
    assert len(ids) > 3
    for one in [*ids, "m99"]:
        league.get(f"/v1/ladders/duel/matches/{one}", status=404)


# since, until, the matches between
TIMES = [
    ("2026-01-01T06:00:00Z", None, ["m7", "m6"]),
    (None, "2026-01-01T03:00:00Z", ["m2", "m1"]),
    ("2026-01-01T03:00:00Z", "2026-01-01T05:00:00Z", ["m4", "m3"]),
    ("2027-01-01T00:00:00Z", None, []),
]


@pytest.mark.parametrize(("since", "until", "expected"), TIMES)
def test_matches_are_listed_between_two_times(league, since, until, expected):
    asked = {name: value for name, value in (("since", since), ("until", until)) if value is not None}
    page = matches.MatchesPage.model_validate(league.get("/v1/ladders/duel/matches", params=asked))
    assert ([one.match_id for one in page.items], page.next) == (expected, None)
    theirs = league.get("/v1/ladders/duel/matches", params=asked | {"player": "dan"})["items"]
    assert [one["match_id"] for one in theirs] == [one for one in expected if one in ("m4", "m7")]


def test_a_time_that_is_none_is_refused(league):
    for wrong in ("yesterday", "1700000000", ""):
        assert "ISO 8601" in league.get("/v1/ladders/duel/matches", status=422, params={"since": wrong})["detail"]


def test_odds_are_those_of_the_ladders_system(league):
    teams = [{"players": ["ann"]}, {"players": ["newcomer"]}]
    answer = league.asking.post("/v1/ladders/duel/odds", json={"teams": teams}, headers=league.headers["read"])
    found = matches.OddsOut.model_validate(answer.json())
    rating, _ = by_hand()
    expected = 1 / (1 + 10 ** ((1500 - rating["ann"]) / 400))
    assert [team.expected for team in found.teams] == pytest.approx([expected, 1 - expected], abs=5e-7)
    assert [one.newcomer for team in found.teams for one in team.players] == [False, True]
    assert [one.rating for team in found.teams for one in team.players] == pytest.approx([rating["ann"], 1500])


# line-ups that are none, and a part of what is said
WRONG = [
    ([["ann"], ["ann"]], "'ann' is in the line-up more than once"),
    ([["bob"], ["Bobby"]], "belong to the same player"),
    ([["ann"], ["a\0b"]], "NUL"),
    ([["ann"]], "teams"),
    ([["ann"], []], "teams.1.players"),
]


@pytest.mark.parametrize(("teams", "said"), WRONG)
def test_a_line_up_that_is_none_is_refused(league, teams, said):
    asked = {"teams": [{"players": names} for names in teams]}
    answer = league.asking.post("/v1/ladders/duel/odds", json=asked, headers=league.headers["read"])
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


def test_ladders_come_in_pages_by_name(league):
    page = page_of(ladders.LadderOut).model_validate(league.get("/v1/ladders?limit=1"))
    assert [one.name for one in page.items] == ["arena"]
    assert [one["name"] for one in league.get(f"/v1/ladders?cursor={page.next}")["items"]] == ["duel"]
    assert page.items[0].matches == 1


def test_a_ladder_is_told_with_its_rules_in_the_systems_words(league):
    found = ladders.LadderDetails.model_validate(league.get("/v1/ladders/duel"))
    assert (found.title, found.matches, found.players, found.present_season.number) == ("Duel 1v1", 7, 5, 1)
    assert found.rules.parameters["k"].value == 32
    assert found.rules.parameters["k"].meaning
    told = ladders.LadderRules.model_validate(league.get("/v1/ladders/duel/rules"))
    assert [(one.name, one.lowest) for one in told.settings.divisions] == [("Low", 1), ("High", 51)]
    assert told.settings.placement == 2
    assert set(told.rules.factors) == {one.name for one in rules("elo").system.factors}


def test_systems_and_policies_are_told_as_the_command_line_tells_them(league):

    found = page_of(ladders.InstalledSystem).model_validate(league.get("/v1/systems"))
    assert "wager" in [one.name for one in found.items]
    policies = ladders.PoliciesPage.model_validate(league.get("/v1/policies"))
    assert [one.name for one in policies.items] == ["balanced", "quick", "fair"]
    assert set(policies.items[0].options) == set(policies.options)
    assert policies.items[0].options["team_size"] == 6


def test_seasons_are_listed(league):
    (season,) = page_of(Season).model_validate(league.get("/v1/ladders/duel/seasons")).items
    assert (season.number, season.title, season.closed_at) == (1, "Season 1", None)
    assert league.get("/v1/ladders/duel/standings?season=1") == league.get("/v1/ladders/duel/standings")
    assert league.get("/v1/ladders/duel/standings?season=2", status=404)["detail"].startswith("unknown ended season")


def test_nobody_reads_without_a_key(league):
    for address in ("/v1/ladders", "/v1/ladders/duel/standings", "/v1/systems", "/v1/players/ann"):
        league.get(address, "nobody", status=401)


def test_a_key_for_one_ladder_reads_nothing_of_others(league):
    assert [one["name"] for one in league.get("/v1/ladders", "duel")["items"]] == ["duel"]
    league.get("/v1/ladders/arena/standings", "duel", status=403)
    assert league.get("/v1/players/ann", "duel")["ladders"] == ["duel"]
    league.get("/v1/players/zoe", "duel", status=404)
    assert league.get("/v1/players?search=zo", "duel")["items"] == []
    assert league.get("/v1/players?search=bo", "duel")["items"] == ["Bobby"]


def test_a_players_token_reads_standings_matches_and_that_player_alone(league):
    for address in ("standings", "standings/around/bob", "matches", "matches/m3", "players/ann", "players/ann/path"):
        league.get(f"/v1/ladders/duel/{address}", "ann")
    for address in ("players/cat", "players/cat/matches", "players/cat/path", "players/cat/career"):
        assert "only valid for 'ann'" in league.get(f"/v1/ladders/duel/{address}", "ann", status=403)["detail"]
    league.get("/v1/players/cat", "ann", status=403)


def test_what_is_answered_is_what_the_document_says(league):
    """Every address of ours is in the document, with an example that its own model accepts."""
    document = league.asking.get("/v1/openapi.json").json()
    for path in ("/v1/ladders/{ladder}/standings", "/v1/ladders/{ladder}/players/{player}", "/v1/systems"):
        assert path in document["paths"]
    for module in (ladders, matches, players, standings):
        for model in vars(module).values():
            extra = getattr(model, "model_config", {}).get("json_schema_extra") or {}
            for example in extra.get("examples", []):
                model.model_validate_json(json.dumps(example))


def test_the_page_of_the_endpoints_names_each_of_them_and_loads_nothing(asking):
    page = asking.get("/v1/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for path, methods in asking.get("/v1/openapi.json").json()["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page.text
    assert re.findall(r'(?:src|href|action)="([^"]*)"', page.text) == ["/v1/openapi.json"]
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
