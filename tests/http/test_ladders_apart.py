"""A key of one ladder learns nothing of another: no name, no id, no text, and not whether a name is known there."""

import json
import re

import pytest

from evenmatch.http.options import Options
from every_endpoint import operations
from two_ladders import HIDDEN, make_two_ladders

SCOPES = ("report", "queue", "read", "ratings", "admin")
OWN = {  # of the key's own ladder, or unknown but much like what is on the other
    "ladder": "alpha",
    "queue": "main",
    "player": "quilt-1",
    "other": "quil-2",
    "match_id": "z-match-1",
    "job": "job_0000000000000000",
    "key": "em_aaaaaaaaaa",
    "webhook": 999,
    "delivery": 999,
    "ticket": 2,
}
CHANGING = {"request_id", "position", "ticket", "change", "token", "expires_at", "started_at", "queued_at", "waited"}


@pytest.fixture
def options():
    fast = {"rate": 1e5, "burst": 100_000, "player_rate": 1e5, "player_burst": 100_000}
    return Options(matchmaker=False, **fast)


@pytest.fixture
def hidden(service, admin):
    return make_two_ladders(service, admin)


@pytest.fixture
def callers(site, hidden, asking):
    """The headers of a key with each scope for alpha alone, and of a player's token from such a key."""
    made = {scope: site.keys.create(f"for {scope}", [scope], ["alpha"], None)[1] for scope in SCOPES}
    headers = {scope: {"Authorization": f"Bearer {text}"} for scope, text in made.items()}
    token = asking.post("/v1/tokens", json={"player": "ann"}, headers=headers["queue"]).json()["token"]
    return headers | {"token of ann": {"Authorization": f"Bearer {token}"}}


def all_operations(asking):
    return operations(asking.get("/v1/openapi.json").json())


def text_of(answer):
    return f"{answer.text}\n" + "\n".join(f"{name}: {value}" for name, value in answer.headers.items())


def test_no_answer_to_a_key_of_one_ladder_tells_of_another(asking, callers, hidden):
    asked = 0
    for who, headers in callers.items():
        for operation in all_operations(asking):
            query = {"ladder": "alpha"} if "ladder" in operation.query else {}
            if "search" in operation.query:
                query["search"] = "i"  # as in quill
            if "player" in operation.query and "among" in operation.path:
                query["player"] = "quilt-1"
            values = {**OWN, "ticket": hidden["ticket"]}
            for player in ("quilt-1", "ann", "rover", "nomad"):
                of_players = {"player", "ticket"} & set(re.findall(r"{(\w+)", operation.path))
                if player != "quilt-1" and not (of_players and who in ("admin", "token of ann")):
                    continue
                if operation.id == "ticket_events" or (operation.id == "leave_queue" and player != "nomad"):
                    continue  # a stream; and the ticket is read first
                answer = operation.ask(asking, {**values, "player": player}, headers, **query)
                asked += 1
                assert answer.status_code < 500 or operation.id == "ready", (who, operation.id, answer.text)
                assert not HIDDEN.search(text_of(answer)), (who, operation.id, player, answer.text)
    assert asked > 400


def test_metrics_are_for_keys_of_all_ladders(asking, callers, keys, hidden):
    for headers in callers.values():
        refused = asking.get("/metrics", headers=headers)
        assert refused.status_code == 403
        assert re.search("/metrics,? (which )?concerns all", refused.text)
    token = asking.post("/v1/tokens", json={"player": "ann"}, headers=keys["queue"]).json()["token"]
    assert asking.get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 403
    assert "zeta-hidden" in asking.get("/metrics", headers=keys["read"]).text


def test_another_ladder_is_answered_like_one_that_does_not_exist(asking, callers, hidden):
    for who, headers in callers.items():
        for operation in all_operations(asking):
            if "{ladder}" not in operation.path:
                continue
            known, unknown = (
                operation.ask(asking, {**OWN, "ladder": ladder}, headers) for ladder in ("zeta-hidden", "yeta-hidden")
            )
            assert known.status_code == unknown.status_code == 403, (who, operation.id, known.text)
            assert plain(known, "zeta-hidden") == plain(unknown, "yeta-hidden"), (who, operation.id)


def test_jobs_and_webhooks_of_another_ladder_are_answered_like_unknown_ones(asking, callers, hidden):
    for path, method, there, nowhere in (
        ("/v1/jobs/{}", "GET", hidden["job"], "job_0123456789abcdef"),
        ("/v1/jobs/{}", "DELETE", hidden["job"], "job_0123456789abcdef"),
        ("/v1/webhooks/{}", "DELETE", hidden["webhook"], 77),
        ("/v1/webhooks/{}/deliveries", "GET", hidden["webhook"], 77),
    ):
        known, unknown = (
            asking.request(method, path.format(name), headers=callers["admin"]) for name in (there, nowhere)
        )
        assert known.status_code == unknown.status_code == 404
        assert plain(known, str(there)) == plain(unknown, str(nowhere))


PLAYERS = {  # endpoints that take the name of a player, by whom they are asked
    "admin": {
        "get_player", "player_matches", "player_path", "player_career", "find_player", "standings_around",
        "standings_among", "list_matches", "penalty", "forgive", "get_filter", "set_filter", "forget_filter",
        "ticket_of_player", "ban_player", "reinstate_player", "get_odds", "rename_player", "merge_player",
        "erase_player",
    },
    "report": {"get_odds", "report_match", "report_matches", "announce_match", "tell_presence"},
    "queue": {"join_queue", "ticket_of_player", "penalty", "get_filter", "set_filter", "forget_filter", "issue_token"},
}  # fmt: skip


def test_a_name_of_another_ladder_is_answered_like_an_unknown_one(asking, callers, hidden):
    by_id = {operation.id: operation for operation in all_operations(asking)}
    number = 0
    for who, names in PLAYERS.items():
        for operation in (by_id[name] for name in sorted(names)):
            number = (number + 1) % 8  # those of the announced match and the ban are left out
            answers = []
            for player in (f"quill-{number}", f"xuill-{number}"):
                query = {"player": player} if "player" in operation.query else {}
                values = {**OWN, "player": player, "other": f"{player} too", "match_id": f"of {player}"}
                answer = operation.ask(asking, values, callers[who], **query)
                answers.append((answer.status_code, plain(answer, player)))
                if operation.id in ("announce_match", "join_queue"):
                    release(asking, callers, answer)
            assert answers[0] == answers[1], (who, operation.id)


def release(asking, callers, answer):
    """End the match or the ticket, so that its players are free again."""
    data = answer.json()
    if "match_id" in data and data["match_id"] is not None:
        asking.post(f"/v1/ladders/alpha/live/{data['match_id']}/cancel", json={}, headers=callers["report"])
    elif "ticket" in data:
        asking.delete(f"/v1/ladders/alpha/tickets/{data['ticket']}", headers=callers["queue"])


def plain(answer, name):
    """The answer without the name and without what differs from request to request."""

    def without(value):
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if key not in CHANGING}
        return [without(item) for item in value] if isinstance(value, list) else value

    text = json.dumps(without(answer.json())) if answer.text else ""
    return text.replace(name, "NAME")


def test_odds_do_not_tell_that_two_names_of_another_ladder_are_one_player(asking, callers, admin):
    match = {
        "id": "odds-1",
        "played_at": "2026-01-09T12:00:00Z",
        "teams": [{"place": place, "players": [{"player": name}]} for place, name in enumerate(("olive", "pat"), 1)],
    }
    assert admin.post("/v1/ladders/zeta-hidden/matches", json=match).status_code == 200
    assert admin.post("/v1/players/olive/rename", json={"to": "olga"}).status_code == 200
    line_up = {"teams": [{"players": ["olive"]}, {"players": ["olga"]}], "stakes": {"players": ["olive"]}}
    told = asking.post("/v1/ladders/alpha/odds", json=line_up, headers=callers["read"])
    assert told.status_code == 200, told.text
    assert [player["newcomer"] for team in told.json()["teams"] for player in team["players"]] == [True, True]
    assert "belong to the same player" in admin.post("/v1/ladders/zeta-hidden/odds", json=line_up).text
