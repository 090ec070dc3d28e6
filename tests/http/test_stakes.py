"""The stakes of a line-up through a real socket: what the receipt then says, on every system."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from evenmatch import systems
from server_process import request_json

pytestmark = pytest.mark.slow

# A time still to come, which counts as now once a match is dated to it: no rule of time comes between two requests.
ENDED = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
FIRST = [["ann", "bob"], ["eve", "joe", "kim"]]
ASSUMED = {"seconds": 900, "win_score": 5, "loss_score": 1, "quit_after": 0.25, "performance": 0.5}


NUMBERS = itertools.count(1)  # of the ladders, since one process serves all tests of this file


@pytest.fixture
def client(shared_server):
    return shared_server[1]


def create(client, system, **fields):
    name = f"{system}-{next(NUMBERS)}"
    request_json(client, "POST", "/v1/ladders", {"name": name, "system": system, **fields}, status=201)
    return f"/v1/ladders/{name}"


def line_up(teams):
    return [{"players": players} for players in teams]


def match_json(match_id, teams, scores, quitter=None, seconds=900.0, share=0.25):
    """A match with these scores of teams and their players; who quit was there for a share of it, and scored that."""
    listed = []
    for names, score in zip(teams, scores, strict=True):
        parts = [(name, share if name == quitter else 1.0) for name in names]
        players = [
            {"player": name, "score": score * part, "seconds": seconds * part, "quit": part < 1, "performance": 0.5}
            for name, part in parts
        ]
        listed.append({"score": score, "players": players})
    return {"id": match_id, "played_at": ENDED.isoformat(), "duration": seconds, "teams": listed}


def stakes_of(answer):
    return {one["player"]: one["stakes"] for team in answer["teams"] for one in team["players"]}


def test_every_systems_stakes_are_what_the_receipt_then_says(client):
    for system in systems.names():
        on = create(client, system)
        rounds = [["ann", "zoe"], ["newcomer", "eve", "bob"]], [["joe"], ["ann"]]
        if systems.find(system).teams is None:
            rounds = *rounds, [["eve"], ["ann", "late"], ["joe"]]
        request_json(client, "POST", f"{on}/matches", match_json("first", FIRST, (5, 1)))
        for number, teams in enumerate(rounds):
            last = [1.0 + 4 * (len(teams) - 1 - place) / (len(teams) - 1) for place in range(len(teams))]
            for outcome in ("win", "draw", "loss", "quit"):
                asked = {"teams": line_up(teams), "stakes": ASSUMED}
                answer = request_json(client, "POST", f"{on}/odds", asked)
                expected = [team["expected"] for team in answer["teams"]]
                hero = teams[0][0]
                others = sorted(range(1, len(teams)), key=lambda team: -expected[team])
                order = [0, *others] if outcome == "win" else [*others, 0]
                scores = [5.0] * len(teams)
                if outcome != "draw":
                    scores = [last[order.index(team)] for team in range(len(teams))]
                match = match_json(f"{number} {outcome}", teams, scores, hero if outcome == "quit" else None)
                receipt = request_json(client, "POST", f"{on}/matches", match)
                line = next(line for line in receipt["teams"][0] if line["player"] == hero)
                stakes = stakes_of(answer)[hero]
                told = (stakes["before"], stakes["after"][outcome], stakes["change"][outcome])
                assert told == (line["before"], line["after"], line["change"]), (system, teams, outcome)


def test_stakes_are_told_only_where_they_are_asked_for(client):
    on = create(client, "elo")
    answer = request_json(client, "POST", f"{on}/odds", {"teams": line_up(FIRST)})
    assert answer["assumptions"] is None
    assert set(stakes_of(answer)) == {"ann", "bob", "eve", "joe", "kim"}
    assert set(map(str, stakes_of(answer).values())) == {"None"}
    alone = request_json(client, "POST", f"{on}/odds", {"teams": line_up(FIRST), "stakes": {"players": ["eve"]}})
    changes = {"win": 16.0, "draw": 0.0, "loss": -16.0, "quit": -16.0}  # newcomers: K 32, an even match
    assert stakes_of(alone)["eve"]["change"] == changes
    assert stakes_of(alone)["ann"] is None
    assumed = alone["assumptions"]
    assert (assumed["seconds"], assumed["win_score"], assumed["loss_score"], assumed["quit_after"]) == (600, 2, 1, 0.5)
    assert any("quitting counts as the team's result" in sentence for sentence in assumed["sentences"])
    untimed = {"teams": line_up(FIRST), "stakes": {"seconds": None}}
    assert request_json(client, "POST", f"{on}/odds", untimed)["assumptions"]["seconds"] is None


# what is asked, and a part of what is said
WRONG = [
    ({"players": ["zed"]}, "'zed' is not in the line-up, so there are no stakes; expected one of 'ann', 'bob', 'eve'"),
    ({"players": []}, "stakes.players"),
    ({"seconds": 0}, "stakes.seconds"),
    ({"quit_after": 2}, "stakes.quit_after"),
    ({"win_score": 1, "loss_score": 3}, "win_score=1 is below loss_score=3"),
    ({"second": 600}, "stakes.second"),
    (True, "stakes"),
]


def test_stakes_that_cannot_be_told_are_refused(client):
    on = create(client, "wager")
    for stakes, said in WRONG:
        asked = {"teams": line_up(FIRST), "stakes": stakes}
        assert said in str(request_json(client, "POST", f"{on}/odds", asked, status=422)["detail"])
    request_json(client, "POST", f"{on}/matches", match_json("first", FIRST, (5, 1)))
    request_json(client, "POST", f"{on}/bans", {"player": "joe"}, status=200)
    asked = {"teams": line_up(FIRST), "stakes": {}}
    said = "'joe' is banned from this ladder, so there are no stakes in a match with them"
    assert said in str(request_json(client, "POST", f"{on}/odds", asked, status=422)["detail"])
    del asked["stakes"]
    assert len(request_json(client, "POST", f"{on}/odds", asked)["teams"]) == 2  # odds there are
    crowd = [[f"{side}{number}" for number in range(128)] for side in "ab"]
    asked = {"teams": line_up(crowd), "stakes": {}}
    said = "stakes of 256 players in a line-up of 256 take too long; expected at most 128 players"
    assert said in str(request_json(client, "POST", f"{on}/odds", asked, status=422)["detail"])
    some = {"teams": line_up(crowd), "stakes": {"players": crowd[1]}}
    told = stakes_of(request_json(client, "POST", f"{on}/odds", some))
    assert sum(stakes is not None for stakes in told.values()) == 128
