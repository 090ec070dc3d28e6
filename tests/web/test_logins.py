"""Players and operators log in at a real OpenID Connect provider, which runs on loopback."""

import json
import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.web.app import pages
from oidc_provider import API, CLIENT, SECRET, SITE
from web_client import Browsing, words

GROUPS = {"ladder-admins": ["admin"], "casters": ["ratings"]}


@pytest.fixture
def options(provider):
    client = {"client_id": CLIENT, "client_secret": SECRET, "issuer": provider.url}
    return Options(
        matchmaker=False,
        operator_groups=GROUPS,
        player_audience=API,
        **{f"{who}_{name}": value for who in ("player", "operator") for name, value in client.items()},
        **{f"{who}{what}": 10**5 for who in ("", "open_", "player_") for what in ("rate", "burst")},
    )


def leave(browsing, name="openid", to=""):
    """The URL at the provider to which the visitor is sent."""
    answer = browsing.get(f"/login/{name}", params={"to": to} if to else {})
    assert answer.status_code == 303, words(answer.text)
    return answer.headers["location"]


def come_back(browsing, url):
    assert url.startswith(f"{SITE}/login/")
    return browsing.get(url.removeprefix(SITE))


def log_in(browsing, provider, who, name="openid", to=""):
    return come_back(browsing, provider.log_in(leave(browsing, name, to), who))


def test_a_linked_player_logs_in_and_finds_what_is_theirs(anyone, site, league, provider):
    site.accounts.link("ann", provider.url, "a-4711")
    assert f"Log in with {urlsplit(provider.url).netloc}" in words(anyone.page("/login"))
    answer = log_in(anyone, provider, "a-4711", to="/account")
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    told = words(anyone.page("/account"))
    assert "You are logged in as ann" in told
    assert "a-4711" in told
    anyone.page(f"/ladders/{league}/players/ann")
    anyone.page(f"/ladders/{league}/players/bob", status=403)


def test_an_account_that_is_not_linked_sees_what_to_do(anyone, site, league, provider):
    answer = log_in(anyone, provider, "a-1")
    assert answer.status_code == 403
    told = words(answer.text)
    assert "not linked to a player yet" in told
    assert "knows you as a-1#1" in told
    assert f"{provider.url} a-1" in told
    assert "evenmatch player link NAME" in told
    assert anyone.get("/account").headers["location"] == "/login?to=%2Faccount"
    site.accounts.link("ann", provider.url, "a-1")
    assert log_in(anyone, provider, "a-1").status_code == 303
    assert "logged in as ann" in words(anyone.page("/account"))


def test_a_session_ends_when_its_account_is_unlinked(anyone, site, league, provider):
    site.accounts.link("ann", provider.url, "a-1")
    log_in(anyone, provider, "a-1")
    anyone.page("/account")
    site.accounts.unlink("ann", provider.url, "a-1")
    assert anyone.get("/account").status_code == 303


def test_the_request_has_state_nonce_and_a_pkce_challenge_that_are_new_each_time(anyone):
    first, second = (parse_qs(urlsplit(leave(anyone)).query) for _ in range(2))
    assert first["response_type"] == ["code"]
    assert first["code_challenge_method"] == ["S256"]
    assert first["redirect_uri"] == [f"{SITE}/login/openid/back"]
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name][0]) >= 20
        assert first[name] != second[name]


def refused(answer, reason):
    assert answer.status_code == 403
    assert reason in words(answer.text)
    assert "set-cookie" not in answer.headers or "evenmatch-session" not in answer.headers["set-cookie"]


def test_a_login_that_another_browser_began_is_refused(anyone, site, league, provider):
    """Otherwise an attacker could log a victim in to the attacker's account."""
    site.accounts.link("ann", provider.url, "a-1")
    stranger = Browsing(application(site, pages=pages))
    back = provider.log_in(leave(stranger), "a-1")
    stranger.close()
    refused(come_back(anyone, back), "this login has expired or was begun in another browser")
    leave(anyone)
    refused(come_back(anyone, back), "this login was begun in another window")


def test_a_login_comes_back_once_and_within_ten_minutes(anyone, site, league, provider, clock):
    site.accounts.link("ann", provider.url, "a-1")
    back = provider.log_in(leave(anyone), "a-1")
    assert come_back(anyone, back).status_code == 303
    refused(come_back(anyone, back), "this login has expired")
    late = provider.log_in(leave(anyone), "a-1")
    clock.move(seconds=600)
    refused(come_back(anyone, late), "this login has expired")


def test_a_login_that_was_begun_for_operators_is_none_of_a_player(anyone, provider):
    back = provider.log_in(leave(anyone, "operators"), "olga")
    refused(come_back(anyone, back.replace("/operators/", "/openid/")), "begun in another browser")


def test_a_false_code_is_refused(anyone):
    state = parse_qs(urlsplit(leave(anyone)).query)["state"][0]
    refused(come_back(anyone, f"{SITE}/login/openid/back?code=guessed&state={state}"), "refused this login")


def test_a_cancelled_login_returns_to_the_form(anyone, provider):
    refused(come_back(anyone, provider.log_in(leave(anyone), "", cancel=True)), "the login was cancelled")


@pytest.mark.parametrize("to", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_a_login_leads_only_to_pages_of_this_site(anyone, site, league, provider, to):
    site.accounts.link("ann", provider.url, "a-1")
    assert log_in(anyone, provider, "a-1", to=to).headers["location"] == "/"


def test_operators_have_the_scopes_of_their_groups(anyone, site, league, provider):
    assert "Log in with single sign-on" in words(anyone.page("/login"))
    assert log_in(anyone, provider, "olga", "operators").headers["location"] == "/operate"
    anyone.page("/operate/keys")
    assert anyone.submit("/operate/keys", name="made by olga", scope="read").status_code == 303
    entry = site.audit.page(None, None, 1)[0]
    assert (entry.action, entry.actor) == ("key.created", "operator olga")
    anyone.submit("/logout", on="/operate")
    assert log_in(anyone, provider, "carl", "operators").headers["location"] == "/"
    anyone.page(f"/ladders/{league}/players/bob")
    anyone.page("/operate/keys", status=403)


def test_an_operator_without_a_group_is_refused(anyone, league, provider):
    refused(log_in(anyone, provider, "nina", "operators"), "in none of the groups that EVENMATCH_OPERATOR_GROUPS lists")


def test_an_operators_session_ends_when_the_setting_no_longer_has_their_group(
    anyone,
    service,
    league,
    provider,
    options,
):
    log_in(anyone, provider, "olga", "operators")
    site = site_over(service, options.model_copy(update={"operator_groups": {"casters": ("ratings",)}}))
    later = Browsing(application(site, pages=pages))
    later.cookies(anyone.cookies())
    assert later.get("/operate").headers["location"].startswith("/login")
    later.close()
    site.jobs.stop(10)
    site.close()


def test_the_provider_may_change_its_keys(anyone, site, league, provider):
    site.accounts.link("ann", provider.url, "a-1")
    assert log_in(anyone, provider, "a-1").status_code == 303
    provider.restart()
    assert log_in(anyone, provider, "a-1").status_code == 303


def test_a_provider_that_does_not_answer_is_named(service, league):
    issuer = "http://127.0.0.1:9"  # the discard port, where nothing listens
    site = site_over(service, Options(matchmaker=False, player_issuer=issuer, player_client_id="x"))
    browsing = Browsing(application(site, pages=pages))
    answer = browsing.get("/login/openid")
    assert answer.status_code == 503
    assert "127.0.0.1:9 does not answer" in words(answer.text)
    browsing.close()
    site.jobs.stop(10)
    site.close()


def test_the_api_accepts_the_providers_tokens_also_with_new_keys(anyone, site, league, provider, clock):
    clock.now = int(time.time() * 1e6)
    for _ in range(2):
        headers = {"Authorization": f"Bearer {provider.token('a-1')}"}
        told = anyone.get(f"/v1/ladders/{league}/players/ann", headers=headers)
        assert (told.status_code, "is not linked to a player" in told.text) == (401, True)
        site.accounts.link("ann", provider.url, "a-1")
        assert anyone.get(f"/v1/ladders/{league}/players/ann", headers=headers).json()["player"] == "ann"
        assert anyone.get(f"/v1/ladders/{league}/players/bob", headers=headers).status_code == 403
        site.accounts.unlink("ann", provider.url, "a-1")
        provider.restart()
        clock.move(seconds=10)


@pytest.fixture
def ann(anyone, site, league, provider):
    site.accounts.link("ann", provider.url, "a-1")
    log_in(anyone, provider, "a-1")
    return anyone


def test_a_player_downloads_their_data(ann, league):
    answer = ann.get("/account/data")
    assert "attachment" in answer.headers["content-disposition"]
    document = answer.json()
    assert (document["player"], [one["ladder"] for one in document["ladders"]]) == ("ann", [league])
    assert len(document["ladders"][0]["matches"]) == 4
    assert [one["subject"] for one in document["accounts"]] == ["a-1"]


def test_a_player_erases_themself(ann, site, league):
    assert ann.submit("/account/erase", on="/account", confirm="bob").status_code == 422
    answer = ann.submit("/account/erase", on="/account", confirm="ann")
    assert answer.status_code == 303
    assert ann.get("/account").status_code == 303
    assert site.accounts.of("ann") == []
    page = ann.page("/login")
    assert "ann" not in re.findall(r"\w+", words(page))
    entry = site.audit.page(None, None, 1)[0]
    assert (entry.action, entry.actor) == ("player.erased", "the player")
    assert "'ann'" not in json.dumps(entry.body)


def test_a_player_sees_tickets_and_filters(ann, site, league):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    assert "you are not waiting; no filter stored" in words(ann.page("/account"))
    ann.submit(f"/ladders/{league}/queue/filter", on=f"/ladders/{league}/queue", player="ann", within="7")
    joined = ann.submit(
        f"/ladders/{league}/queue/join", on=f"/ladders/{league}/queue", player="ann", queue="main", within="7"
    )
    assert joined.status_code == 303, words(joined.text)
    page = ann.page("/account")
    assert joined.headers["location"] in page
    assert "filter: within 7" in words(page)
