"""Tokens of a studio's own identity provider, whose keys are published by a server on loopback."""

import base64
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from evenmatch.accounts.issuer_tokens import IssuerTokens, TrustedIssuer
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.linked_accounts import LinkedAccounts
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import AccessError, IssuerError

GAME = "the-game"


def rsa_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


KEYS = {
    "one": ("RS256", rsa_key()),
    "two": ("ES256", ec.generate_private_key(ec.SECP256R1())),
    "three": ("EdDSA", ed25519.Ed25519PrivateKey.generate()),
    "stranger": ("RS256", rsa_key()),
}


class Studio:
    """A server with a discovery document and a key set; `published`: the ids of its keys; `fails`: it answers 500."""

    def __init__(self):
        self.published, self.fails, self.asked, self.named = ["one"], False, 0, None
        studio = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps(studio.document(self.path)).encode()
                self.send_response(500 if studio.fails else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self, path):
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.named or self.url, "jwks_uri": f"{self.url}/keys"}
        self.asked += 1
        return {"keys": [public(name) for name in self.published]}


def public(name):
    algorithm, key = KEYS[name]
    maker = jwt.algorithms.get_default_algorithms()[algorithm]
    return {**maker.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"}


@pytest.fixture
def studio():
    made = Studio()
    yield made
    made.server.shutdown()
    made.server.server_close()


class World:
    def __init__(self, studio, service, clock, claim=""):
        self.studio, self.clock = studio, clock
        self.accounts = LinkedAccounts(service.database, clock)
        elsewhere = IssuerTokens(TrustedIssuer(studio.url, GAME, claim), clock, self.accounts)
        self.tokens = Tokens(service.database, clock, Keys(service.database, clock), elsewhere)

    def token(self, key="one", head=None, **changed):
        now = self.clock.now // 1_000_000
        claims = {"iss": self.studio.url, "aud": GAME, "sub": "4711", "iat": now, "exp": now + 600, **changed}
        algorithm, secret = KEYS[key]
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, secret, algorithm, {"kid": key, **(head or {})})

    def refused(self, text):
        with pytest.raises(AccessError) as error:
            self.tokens.verify(text)
        return str(error.value)


@pytest.fixture
def world(studio, service, clock):
    made = World(studio, service, clock)
    made.accounts.link("ann", studio.url, "4711")
    return made


def test_a_token_of_the_studio_acts_as_the_linked_player(world):
    caller = world.tokens.verify(world.token())
    assert (caller.player, caller.scopes, caller.ladders) == ("ann", {"queue", "read"}, None)
    assert caller.expires_at == (world.clock.now // 1_000_000 + 600) * 1_000_000


def test_an_audience_may_be_one_of_several(world):
    assert world.tokens.verify(world.token(aud=["another", GAME])).player == "ann"


@pytest.mark.parametrize("key", ["one", "two", "three"])
def test_keys_of_each_kind_are_accepted(world, studio, key):
    studio.published = ["one", "two", "three"]
    assert world.tokens.verify(world.token(key)).player == "ann"


def test_an_account_that_is_not_linked_is_told_who_can_link_it(world):
    told = world.refused(world.token(sub="4712"))
    assert f"'4712' of {world.studio.url} is not linked" in told
    assert "evenmatch player link" in told


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"aud": "another-game"}, "EVENMATCH_PLAYER_AUDIENCE"),
        ({"aud": None}, "lacks one of the claims"),
        ({"exp": None}, "lacks one of the claims"),
        ({"sub": None}, "lacks one of the claims"),
        ({"exp": 1}, "it expired at 1970-01-01"),
        ({"exp": 1e300}, "expected seconds since 1970"),
        ({"nbf": 9e10}, "not valid yet"),
        ({"iat": 9e10}, "not valid yet"),
    ],
)
def test_a_token_with_other_claims_is_refused_with_the_reason(world, changed, reason):
    assert reason in world.refused(world.token(**changed))


def test_clocks_may_differ_by_a_minute(world):
    token = world.token()
    world.clock.move(seconds=600 + 59)
    assert world.tokens.verify(token).player == "ann"
    world.clock.move(seconds=1)
    assert "expired" in world.refused(token)


def test_a_token_that_the_published_key_signed_with_hmac_is_refused(world):
    """The classic confusion: the public key, which everybody has, used as the secret of HS256."""
    text = (
        KEYS["one"][1]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    _, claims, _ = world.token().split(".")
    forged = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "one"}).encode()).rstrip(b"=").decode()
    signature = hmac.new(text, f"{forged}.{claims}".encode(), "sha256").digest()
    signed = f"{forged}.{claims}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    assert "algorithm is 'HS256'" in world.refused(signed)
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    assert "algorithm is 'none'" in world.refused(f"{unsigned}.{claims}.")


def test_a_token_of_a_stranger_who_names_a_published_key_is_refused(world):
    assert "signature is wrong" in world.refused(world.token("stranger", head={"kid": "one"}))


def test_a_new_key_is_read_and_a_withdrawn_one_refused(world, studio):
    old = world.token()
    assert world.tokens.verify(old).player == "ann"
    studio.published = ["two"]
    world.clock.move(seconds=10)
    assert world.tokens.verify(world.token("two")).player == "ann"
    assert "not among the published keys" in world.refused(world.token())


def test_unknown_keys_let_the_key_set_be_read_at_most_every_ten_seconds(world, studio):
    for _ in range(5):
        assert "not among the published keys" in world.refused(world.token("stranger"))
    assert studio.asked == 1
    world.clock.move(seconds=10)
    world.refused(world.token("stranger"))
    assert studio.asked == 2


def test_known_keys_stay_valid_while_the_provider_fails(world, studio):
    assert world.tokens.verify(world.token()).player == "ann"
    studio.fails = True
    world.clock.move(seconds=3600)
    assert world.tokens.verify(world.token()).player == "ann"


@pytest.mark.parametrize("trouble", ["fails", "named"])
def test_a_provider_without_readable_keys_is_the_providers_fault(world, studio, trouble):
    setattr(studio, trouble, trouble == "fails" or "https://elsewhere.example")
    with pytest.raises(IssuerError):
        world.tokens.verify(world.token())


def test_a_claim_can_be_the_players_name(studio, service, clock):
    world = World(studio, service, clock, claim="nick")
    assert world.tokens.verify(world.token(nick="bob")).player == "bob"
    assert "its claim nick is None" in world.refused(world.token())
    assert "its claim nick is 5" in world.refused(world.token(nick=5))
    assert "not valid" in world.refused(world.token(nick=" "))


def test_a_token_of_another_issuer_is_judged_as_one_of_ours(world):
    assert "algorithm is not HS256" in world.refused(world.token(iss="https://elsewhere.example"))
