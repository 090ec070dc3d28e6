"""Refused requests leave nothing in the database, and no player comes into being by them."""

import pytest
import sqlalchemy as sa

from every_endpoint import operations

STRANGERS = [f"stranger-{number}" for number in range(100)]
DUEL = {"policy": {"team_size": 1, "max_odds": "none"}}
OWN = {"player": "me", "avoid": STRANGERS}


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def token(asking, admin, keys):
    """The headers of a player who never played, on a ladder with a queue, a match and a ticket of others."""
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
    admin.put("/v1/ladders/duel/queues/main", json=DUEL)
    teams = [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}]
    report = {"id": "m1", "played_at": "2026-01-09T12:00:00Z", "teams": teams}
    assert admin.post("/v1/ladders/duel/matches", json=report).status_code == 200
    joined = admin.post("/v1/ladders/duel/tickets", json={"members": [{"player": "ann"}], "queues": ["main"]})
    assert joined.status_code == 201
    admin.put("/v1/ladders/duel/live/running", json={"teams": [{"players": ["cat"]}, {"players": ["dan"]}]})
    issued = asking.post("/v1/tokens", json={"player": "me"}, headers=keys["queue"]).json()
    return {"Authorization": f"Bearer {issued['token']}"}, joined.json()["ticket"]


def count_rows(service):
    with service.database.read() as store:
        tables = sa.inspect(store.connection).get_table_names()
        return {
            table: store.connection.execute(sa.text(f'SELECT COUNT(*) FROM "{table}"')).scalar() for table in tables
        }


def test_a_players_token_leaves_no_row_by_any_refused_write(asking, service, token):
    headers, ticket = token
    document = asking.get("/v1/openapi.json").json()
    before = count_rows(service)
    values = {"ladder": "duel", "queue": "main", "match_id": "running", "ticket": ticket, "key": "em_aaaaaaaaaa"}
    values |= {"webhook": 1, "delivery": 1, "player": "stranger", "other": "another stranger"}
    asked = [operation for operation in operations(document) if operation.writes]
    assert len(asked) > 35
    for operation in asked:
        answer = operation.ask(asking, values, headers)
        assert 400 <= answer.status_code < 500, (operation.id, answer.status_code, answer.text)
        assert count_rows(service) == before, operation.id


REFUSED_JOINS = [
    ({"members": [OWN], "queues": ["none"]}, 404),
    ({"members": [OWN], "queues": []}, 422),
    ({"members": [OWN, {"player": "friend"}], "queues": ["main"]}, 403),
    ({"members": [{**OWN, "roles": ["tank"]}], "queues": ["main"]}, 422),
    ({"members": [{**OWN, "attributes": {"mode": ["ctf"]}}], "queues": ["main"]}, 422),
    ({"members": [{**OWN, "within": -1}], "queues": ["main"]}, 422),
    ({"members": [OWN], "queues": ["main"], "playlist": {"none": ["main"]}}, 404),
]


@pytest.mark.parametrize(("join", "status"), REFUSED_JOINS)
def test_names_in_a_refused_join_leave_no_row(asking, service, token, join, status):
    before = count_rows(service)
    answer = asking.post("/v1/ladders/duel/tickets", json=join, headers=token[0])
    assert answer.status_code == status, answer.text
    assert count_rows(service) == before


def test_a_join_makes_its_own_player_and_nobody_else(asking, service, token):
    names = count_rows(service)["name"]
    joined = asking.post("/v1/ladders/duel/tickets", json={"members": [OWN], "queues": ["main"]}, headers=token[0])
    assert joined.status_code == 201
    assert count_rows(service)["name"] == names + 1
    kept = asking.put("/v1/ladders/duel/players/me/filter", json={"within": 5}, headers=token[0])
    assert kept.status_code == 200  # who waits is known
    before = count_rows(service)
    again = {"members": [{"player": "me", "avoid": ["one more", "and another"]}], "queues": ["main"]}
    assert asking.post("/v1/ladders/duel/tickets", json=again, headers=token[0]).status_code == 409
    assert count_rows(service) == before
