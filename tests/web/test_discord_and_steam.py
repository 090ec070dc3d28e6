"""Players log in with Discord and Steam, whose stand-ins run on loopback. The real services were not reached."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest

from evenmatch.http.options import Options
from evenmatch.web import identity_providers
from web_client import words

STEAM_ID, DISCORD_ID = "76561197960287930", "80351110224678912"
SITE = "http://localhost"


class StandIn:
    """Answers as Discord's documentation and OpenID 2.0 say. challenge: of the code that it gave out."""

    def __init__(self):
        self.challenge, self.confirmed, self.refuses = None, set(), False
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                self.answer(*(stand_in.token(form) if self.path == "/api/oauth2/token" else stand_in.confirm(form)))

            def do_GET(self):
                known = self.path == "/api/users/@me" and self.headers["Authorization"] == "Bearer of-ann"
                user = {"id": DISCORD_ID, "username": "ann", "global_name": "Ann the Great"}
                self.answer(*((200, json.dumps(user)) if known else (401, "{}")))

            def answer(self, status, text):
                self.send_response(status)
                self.send_header("Content-Type", "application/json" if text.startswith("{") else "text/plain")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def token(self, form):
        """RFC 6749, section 4.1.4, with the check of RFC 7636, section 4.6."""
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        is_good = (
            form.get("grant_type") == "authorization_code"
            and form.get("code") == "the-code"
            and base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == self.challenge
            and form.get("redirect_uri") == f"{SITE}/login/discord/back"
        )
        if not is_good:
            return 400, json.dumps({"error": "invalid_grant"})
        return 200, json.dumps(
            {"access_token": "of-ann", "token_type": "Bearer", "expires_in": 604_800, "scope": "identify"}
        )

    def confirm(self, form):
        """OpenID 2.0, section 11.4.2: an assertion is confirmed once, and only with what was signed."""
        sent = {name: value for name, value in form.items() if name != "openid.mode"}
        key = json.dumps(sent, sort_keys=True)
        is_valid = form.get("openid.mode") == "check_authentication" and key in self.confirmed and not self.refuses
        self.confirmed.discard(key)
        return 200, f"ns:http://specs.openid.net/auth/2.0\nis_valid:{'true' if is_valid else 'false'}\n"

    def assertion(self, asked, **changed):
        """What Steam adds to the URL to which it sends people back."""
        claimed = f"{self.url}/id/{STEAM_ID}"
        sent = {
            "openid.ns": "http://specs.openid.net/auth/2.0",
            "openid.mode": "id_res",
            "openid.op_endpoint": f"{self.url}/login",
            "openid.claimed_id": claimed,
            "openid.identity": claimed,
            "openid.return_to": asked["openid.return_to"],
            "openid.response_nonce": "2026-11-27T12:00:00Zabc",
            "openid.assoc_handle": "1234567890",
            "openid.signed": "signed,op_endpoint,claimed_id,identity,return_to,response_nonce,assoc_handle",
            "openid.sig": "W0u5DRbtHE1GG0ZKXjerUZDUGmc=",
        }
        self.confirmed.add(json.dumps({k: v for k, v in sent.items() if k != "openid.mode"}, sort_keys=True))
        return {**sent, **{f"openid.{name}": value for name, value in changed.items()}}


@pytest.fixture
def stand_in(monkeypatch):
    made = StandIn()
    monkeypatch.setattr(identity_providers, "DISCORD_AT", made.url)
    monkeypatch.setattr(identity_providers, "STEAM_AT", made.url)
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def options(stand_in):
    return Options(matchmaker=False, discord_client_id="ranks", discord_client_secret="s", steam_login=True)


def asked(browsing, name):
    answer = browsing.get(f"/login/{name}", params={"to": "/account"})
    assert answer.status_code == 303
    url = urlsplit(answer.headers["location"])
    return url, {key: values[0] for key, values in parse_qs(url.query).items()}


def by_discord(browsing, stand_in, **changed):
    url, query = asked(browsing, "discord")
    assert (url.path, query["scope"], query["client_id"]) == ("/oauth2/authorize", "identify", "ranks")
    stand_in.challenge = query["code_challenge"]
    return browsing.get("/login/discord/back", params={"code": "the-code", "state": query["state"], **changed})


def by_steam(browsing, stand_in, **changed):
    url, query = asked(browsing, "steam")
    assert (url.path, query["openid.mode"], query["openid.realm"]) == ("/login", "checkid_setup", f"{SITE}/")
    back = query["openid.return_to"].removeprefix(SITE)
    return browsing.get(f"{back}&{urlencode(stand_in.assertion(query, **changed))}")


LOGINS = {"discord": (by_discord, DISCORD_ID), "steam": (by_steam, STEAM_ID)}


@pytest.mark.parametrize("name", LOGINS)
def test_a_linked_player_logs_in(anyone, site, league, stand_in, name):
    log_in, subject = LOGINS[name]
    unlinked = log_in(anyone, stand_in)
    assert unlinked.status_code == 403
    assert f"{name} {subject}" in words(unlinked.text)
    site.accounts.link("ann", name, subject)
    answer = log_in(anyone, stand_in)
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert "You are logged in as ann" in words(anyone.page("/account"))


def test_discord_tells_the_name_that_people_know(anyone, league, stand_in):
    assert "Discord knows you as Ann the Great" in words(by_discord(anyone, stand_in).text)


def test_a_player_of_the_discord_bot_logs_in_without_a_link(anyone, site, league, stand_in):
    """The bot names players after their ids, see docs/how-to/discord.md."""
    site.service.rename("bob", f"discord:{DISCORD_ID}")
    site.service.rename(f"discord:{DISCORD_ID}", "bobby")
    assert by_discord(anyone, stand_in).status_code == 303
    assert "You are logged in as bobby" in words(anyone.page("/account"))
    assert by_steam(anyone, stand_in).status_code == 403


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"state": "forged"}, "begun in another window"),
        ({"code": "another"}, "Discord refused this login"),
        ({"error": "access_denied"}, "the login was cancelled"),
    ],
)
def test_a_false_return_from_discord_is_refused(anyone, site, league, stand_in, changed, reason):
    site.accounts.link("ann", "discord", DISCORD_ID)
    answer = by_discord(anyone, stand_in, **changed)
    assert answer.status_code == 403
    assert reason in words(answer.text)
    assert anyone.get("/account").status_code == 303


ANOTHER = "76561197960287931"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"mode": "cancel"}, "the login was cancelled"),
        ({"return_to": "http://localhost/login/steam/back?state=forged"}, "begun in another window"),
        ({"return_to": "https://evil.example/"}, "begun in another window"),
        ({"op_endpoint": "https://evil.example/login"}, "begun in another window"),
        ({"claimed_id": f"https://evil.example/id/{STEAM_ID}"}, "begun in another window"),
        ({"identity": "another"}, "begun in another window"),
        ({"signed": "op_endpoint,return_to,response_nonce,assoc_handle"}, "begun in another window"),
        ({"sig": "forged"}, "Steam did not confirm this login"),
    ],
)
def test_a_false_assertion_of_steam_is_refused(anyone, site, league, stand_in, changed, reason):
    site.accounts.link("ann", "steam", STEAM_ID)
    answer = by_steam(anyone, stand_in, **changed)
    assert answer.status_code == 403
    assert reason in words(answer.text)
    assert anyone.get("/account").status_code == 303


def test_an_assertion_of_steam_about_somebody_else_is_not_confirmed(anyone, site, league, stand_in):
    site.accounts.link("ann", "steam", ANOTHER)
    claimed = f"{stand_in.url}/id/{ANOTHER}"
    answer = by_steam(anyone, stand_in, claimed_id=claimed, identity=claimed)
    assert "Steam did not confirm this login" in words(answer.text)


def test_an_assertion_of_steam_works_once_also_in_the_browser_that_asked(anyone, site, league, stand_in):
    site.accounts.link("ann", "steam", STEAM_ID)
    _, query = asked(anyone, "steam")
    path = f"{query['openid.return_to'].removeprefix(SITE)}&{urlencode(stand_in.assertion(query))}"
    kept = {name: value for name, value in anyone.cookies().items() if name == "evenmatch-login"}
    assert anyone.get(path).status_code == 303
    anyone.cookies(kept)
    answer = anyone.get(path)
    assert "Steam did not confirm this login" in words(answer.text)
