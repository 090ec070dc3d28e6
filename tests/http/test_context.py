"""What a match was played on, over HTTP: reported, read back, learned from, and asked for in odds."""

import pytest

from ledger.sample_matches import START

AT = START.isoformat()
MADE = {"name": "arena", "system": "even", "settings": {"context": ["map", "mode"]}}
ON = "/v1/ladders/arena"


def match(number, winner, loser, **fields):
    sides = [{"players": [{"player": winner}], "place": 1}, {"players": [{"player": loser}], "place": 2}]
    return {"id": f"m{number}", "played_at": AT, "teams": sides, **fields}


def played(admin):
    """Ann wins on dust and loses on mill."""
    batch = [
        match(n, *(("ann", "bob") if n % 2 else ("bob", "ann")), context={"map": "dust" if n % 2 else "mill"})
        for n in range(20)
    ]
    told = admin.post(f"{ON}/matches/batch", json={"matches": batch}).json()
    assert (told["recorded"], told["refused"]) == (20, 0)


def odds(reader, **fields):
    return reader.post(f"{ON}/odds", json={"teams": [{"players": ["ann"]}, {"players": ["bob"]}], **fields})


def expected(reader, **fields):
    return odds(reader, **fields).json()["teams"][0]["expected"]


def test_odds_are_those_of_the_map_and_a_ladder_that_declares_none_has_the_same_everywhere(admin, reader):
    assert admin.post("/v1/ladders", json=MADE).json()["settings"]["context"] == ["map", "mode"]
    played(admin)
    dust, mill = (expected(reader, context={"map": name}) for name in ("dust", "mill"))
    assert dust > 0.6 > 0.4 > mill
    assert mill < expected(reader, context={"map": "new"}) < dust
    stakes = odds(reader, context={"map": "mill"}, stakes={}).json()["teams"][0]["players"][0]["stakes"]
    assert stakes["change"]["win"] > -stakes["change"]["loss"] > 0  # ann is not expected to win on mill
    told = admin.patch(ON, json={"context": []}).json()
    assert (told["settings"]["context"], told["rebuild_due_from"]) == ([], None)
    assert 0.4 < expected(reader) < 0.6
    admin.patch(ON, json={"context": ["map", "mode"]})
    assert expected(reader, context={"map": "dust"}) == dust


def test_what_is_known_about_newcomers_is_reported_read_back_and_asked_for_in_odds(admin, reader):
    admin.post("/v1/ladders", json={"name": "arena", "system": "even"})
    for number in range(20):  # the better seed wins
        one = match(number, f"p{number}", f"q{number}")
        for side, seed in zip(one["teams"], (number % 5 + 0.1, number % 5 + 10), strict=True):
            side["players"][0]["entry"] = seed
        assert admin.post(f"{ON}/matches", json=one).status_code == 200
    players = reader.get(f"{ON}/matches/m7").json()["teams"]
    assert [team["players"][0]["entry"] for team in players] == [2.1, 12]
    assert expected(reader, entry={"ann": 1, "bob": 14}) > 0.6 > expected(reader, entry={"ann": 14, "bob": 1}) + 0.2
    assert expected(reader, entry={"ann": 14}) < expected(reader) < expected(reader, entry={"ann": 1})
    refused = odds(reader, entry={"cat": 1})
    assert refused.status_code == 404
    assert "unknown player 'cat'; known: ann, bob" in refused.json()["detail"]
    assert odds(reader, entry={"ann": 2e9}).status_code == 422


def test_a_column_that_is_not_declared_is_stored_and_cannot_be_asked_for(admin, reader):
    admin.post("/v1/ladders", json=MADE)
    context = {"map": "dust", "patch": "1.2", "mode": ""}
    assert admin.post(f"{ON}/matches", json=match(1, "ann", "bob", context=context)).status_code == 200
    assert reader.get(f"{ON}/matches/m1").json()["context"] == {"map": "dust", "patch": "1.2"}
    assert reader.get(f"{ON}/matches").json()["items"][0]["context"] == {"map": "dust", "patch": "1.2"}
    refused = odds(reader, context={"patch": "1.2"})
    assert refused.status_code == 422
    assert "unknown context column 'patch'; known: map, mode" in refused.json()["detail"]


def test_the_same_id_with_another_map_is_a_conflict(admin):
    admin.post("/v1/ladders", json=MADE)
    first = match(1, "ann", "bob", context={"map": "dust"})
    told = admin.post(f"{ON}/matches", json=first).json()
    assert admin.post(f"{ON}/matches", json=first).json() == told
    assert admin.post(f"{ON}/matches", json={**first, "context": {"map": "mill"}}).status_code == 409
    assert admin.post(f"{ON}/matches", json=match(1, "ann", "bob")).status_code == 409


@pytest.mark.parametrize(
    "context",
    [{"player": "x"}, {"a b": "x"}, {"map": "x" * 65}, {"map": "a\nb"}, {"map": "\0"}, {"map": 1}, ["map"],
     dict.fromkeys("abcde", "x")],
)  # fmt: skip
def test_a_context_that_cannot_be_stored_is_refused(admin, context):
    admin.post("/v1/ladders", json=MADE)
    assert admin.post(f"{ON}/matches", json=match(1, "ann", "bob", context=context)).status_code == 422


@pytest.mark.parametrize("context", [["player"], ["a b"], ["map", "map"], list("abcde"), "map", None])
def test_columns_that_a_ladder_cannot_declare_are_refused(admin, context):
    assert admin.post("/v1/ladders", json={**MADE, "settings": {"context": context}}).status_code == 422
