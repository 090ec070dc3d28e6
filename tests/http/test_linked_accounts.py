"""Accounts at identity providers are linked to players by the game's backend, or by an operator."""

import base64
import json

import pytest

from asgi_client import Asking
from evenmatch import rules
from evenmatch.errors import UsageError
from evenmatch.http.app import application
from evenmatch.http.options import Options, read_options
from evenmatch.http.server import site_over
from ledger.sample_matches import duel

ANN, STEAM = "/v1/players/ann/accounts", {"issuer": "steam", "subject": "7656"}


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def backend(asking, site):
    return Backend(asking, site.keys.create("backend", ["queue"])[1])


class Backend:
    def __init__(self, asking, key):
        self._asking, self._headers = asking, {"Authorization": f"Bearer {key}"}

    def ask(self, method, path, status=200, **fields):
        answer = self._asking.request(method, path, headers=self._headers, **fields)
        assert answer.status_code == status, answer.text
        return answer.json()


def linked(backend, player="ann"):
    return [(one["issuer"], one["subject"]) for one in backend.ask("GET", f"/v1/players/{player}/accounts")["items"]]


def test_an_account_is_linked_listed_and_unlinked(backend, site):
    assert backend.ask("PUT", ANN, json=STEAM)["player"] == "ann"
    assert backend.ask("PUT", ANN, json=STEAM)["player"] == "ann"
    backend.ask("PUT", ANN, json={"issuer": "discord", "subject": "80"})
    assert linked(backend) == [("discord", "80"), ("steam", "7656")]
    assert backend.ask("DELETE", ANN, params=STEAM)["subject"] == "7656"
    assert linked(backend) == [("discord", "80")]
    entries = [entry for entry in site.audit.page(None, None, 10) if entry.action.startswith("account.")]
    assert [(entry.action, entry.target, entry.body["subject"]) for entry in entries] == [
        ("account.unlinked", "ann", "7656"),
        ("account.linked", "ann", "80"),
        ("account.linked", "ann", "7656"),
    ]


def test_an_account_belongs_to_one_player(backend):
    backend.ask("PUT", ANN, json=STEAM)
    told = backend.ask("PUT", "/v1/players/bob/accounts", 409, json=STEAM)["detail"]
    assert "linked to 'ann'" in told
    backend.ask("DELETE", "/v1/players/bob/accounts", 404, params=STEAM)
    assert linked(backend) == [("steam", "7656")]


def test_links_follow_renamed_and_merged_players_and_go_with_erased_ones(backend, site):
    site.service.create_ladder("league", "elo", rules("elo"))
    site.service.record_many("league", [duel(1, "ann", "kim", "league"), duel(2, "bob", "kim", "league")])
    backend.ask("PUT", ANN, json=STEAM)
    site.service.rename("ann", "anna")
    assert site.accounts.player("steam", "7656") == "anna"
    assert backend.ask("PUT", "/v1/players/anna/accounts", json=STEAM)["player"] == "anna"
    site.service.merge("anna", "bob")
    assert site.accounts.player("steam", "7656") == "bob"
    assert linked(backend, "bob") == [("steam", "7656")]
    site.service.erase("bob")
    assert site.accounts.player("steam", "7656") is None


def test_a_key_for_some_ladders_and_a_player_link_nothing(asking, site):
    site.service.create_ladder("league", "elo", rules("elo"))
    _, limited = site.keys.create("backend", ["queue"], ["league"])
    player = site.tokens.issue(site.keys.authenticate(limited), "ann").text
    _, reader = site.keys.create("reader", ["read", "report"])
    for key in (limited, player, reader):
        for method, fields in (("PUT", {"json": STEAM}), ("GET", {}), ("DELETE", {"params": STEAM})):
            Backend(asking, key).ask(method, ANN, 403, **fields)
    assert site.accounts.of("ann") == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"player_issuer": "http://id.studio.example"}, "expected the URL of an OpenID Connect provider, https://"),
        ({"player_issuer": "id.studio.example"}, "expected the URL of an OpenID Connect provider, https://"),
        ({"player_audience": "x"}, "no effect without EVENMATCH_PLAYER_ISSUER"),
        ({"player_client_id": "x"}, "no effect without EVENMATCH_PLAYER_ISSUER"),
        ({"operator_client_id": "x"}, "no effect without EVENMATCH_OPERATOR_ISSUER"),
        ({"operator_groups": {"admins": ["everything"]}}, "operator-groups"),
    ],
)
def test_settings_that_let_nobody_in_are_refused(given, told):
    with pytest.raises(UsageError, match=told):
        read_options(given)


def test_the_groups_of_operators_are_read_from_json(monkeypatch):
    monkeypatch.setenv("EVENMATCH_OPERATOR_GROUPS", '{"admins": ["admin"], "casters": ["ratings", "read"]}')
    monkeypatch.setenv("EVENMATCH_PLAYER_ISSUER", "http://localhost:9400")
    assert read_options({}).operator_groups == {"admins": ("admin",), "casters": ("ratings", "read")}


def test_requests_count_while_the_identity_provider_is_down(service):
    issuer = "http://127.0.0.1:9"  # the discard port, where nothing listens
    given = {"player_issuer": issuer, "player_audience": "x", "open_rate": 0.001, "open_burst": 2}
    site = site_over(service, Options(matchmaker=False, **given))
    asking = Asking(application(site))
    parts = ({"alg": "RS256", "kid": "one"}, {"iss": issuer, "sub": "4711"})
    head, claims = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    headers = {"Authorization": f"Bearer {head}.{claims}.c2ln"}
    answers = [asking.get("/v1/ladders", headers=headers) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 429]
    assert answers[0].json()["type"] == "urn:evenmatch:problem:issuer-unavailable"
    assert answers[0].headers["retry-after"] == "10"
    asking.close()
    site.jobs.stop(10)
    site.close()
