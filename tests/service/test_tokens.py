"""Players' tokens."""

import base64
import hashlib
import hmac
import json
import logging
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenmatch.accounts.access import OPERATOR, Caller
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import AccessError, ForbiddenError, InputError, UnknownNameError, UsageError
from evenmatch.times import iso_time

DAY = 86_400


@pytest.fixture
def keys(service, clock):
    return Keys(service.database, clock)


@pytest.fixture
def tokens(service, clock, keys):
    return Tokens(service.database, clock, keys)


@pytest.fixture
def other_tokens(other_service, clock):
    """The tokens as another process sees them."""
    return Tokens(other_service.database, clock, Keys(other_service.database, clock))


@pytest.fixture
def backend(keys):
    """Whoever asks with a key of the scope queue, for all ladders."""
    return keys.authenticate(keys.create("backend", ["queue"])[1])


@pytest.fixture
def now_in_seconds(clock):
    return clock.now // 1_000_000


class Unreachable:
    """A database that must not be asked."""

    rows = None

    def read(self):
        raise AssertionError("the database was asked")

    write = read


def secret_of(service):
    """The key that signs tokens."""
    return service.database.master.sealer().signing_keys("player token")[0]


def packed(document):
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def jwt_of(claims, secret, head=None, algorithm="sha256"):
    """A token as RFC 7519 and RFC 7515 define it, made by hand."""
    signed = f"{packed(head or {'alg': 'HS256', 'typ': 'JWT'})}.{packed(claims)}"
    return f"{signed}.{packed(hmac.new(bytes(secret), signed.encode(), algorithm).digest())}"


def claims_of(text):
    part = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


@pytest.fixture
def claims(backend, now_in_seconds):
    """Those of a good token."""
    return {"iss": "evenmatch", "sub": "ann", "iat": now_in_seconds, "exp": now_in_seconds + 60, "key": backend.key}


def test_a_token_is_a_players_who_may_queue_and_read_and_nothing_else(tokens, backend, clock):
    token = tokens.issue(backend, "ann é 🏆")
    ann = tokens.verify(token.text)
    scopes, bucket = frozenset({"queue", "read"}), f"{backend.key}/ann é 🏆"
    assert ann == Caller("player ann é 🏆", scopes, None, "ann é 🏆", bucket, token.expires_at)
    assert (token.player, token.ladders) == ("ann é 🏆", None)
    assert token.expires_at == clock.now // 1_000_000 * 1_000_000 + 3_600_000_000
    with pytest.raises(ForbiddenError):
        ann.check("report", "duel")
    with pytest.raises(ForbiddenError):
        ann.speaks_for("bob")


def test_a_token_says_what_the_design_says_and_a_token_made_by_hand_is_as_good(
    tokens, backend, claims, service, now_in_seconds, ladders
):
    token = tokens.issue(backend, "ann", ["duel", "arena"], 60)
    assert claims_of(token.text) == {**claims, "ladders": ["arena", "duel"]}
    by_hand = jwt_of({**claims, "ladders": ["duel"]}, secret_of(service))
    assert tokens.verify(by_hand).ladders == frozenset({"duel"})


def test_a_token_reaches_no_further_than_the_key_that_issued_it(tokens, keys, ladders):
    one = keys.authenticate(keys.create("backend", ["queue"], ["duel"])[1])
    assert tokens.verify(tokens.issue(one, "ann").text).ladders == frozenset({"duel"})
    with pytest.raises(ForbiddenError, match="the scope queue on ladder 'arena' is required"):
        tokens.issue(one, "ann", ["duel", "arena"])
    both = keys.authenticate(keys.create("both", ["admin"], ["duel", "arena"])[1])
    assert tokens.verify(tokens.issue(both, "ann", ["arena"]).text).ladders == frozenset({"arena"})


def test_a_token_is_issued_only_to_a_key_with_the_scope_queue(tokens, keys, backend):
    reporter = keys.authenticate(keys.create("server", ["report"])[1])
    ann = tokens.verify(tokens.issue(backend, "ann").text)
    with pytest.raises(ForbiddenError, match="the scope queue is required"):
        tokens.issue(reporter, "ann")
    for nobody in (ann, OPERATOR):
        with pytest.raises(ForbiddenError, match="cannot issue tokens; authenticate with an API key"):
            tokens.issue(nobody, "bob")


def test_what_a_token_must_be_is_said_by_whoever_refuses_another(tokens, backend, ladder):
    for asked, error, said in (
        (("ann", ["team"]), UnknownNameError, "unknown ladder 'team'; known: duel"),
        (("ann", []), UsageError, "at least one ladder"),
        (("ann", None, 0), UsageError, "cannot last 0 s; expected 1 to 86400 s"),
        (("ann", None, DAY + 1), UsageError, "cannot last 86401 s"),
        (("a\0b",), InputError, "NUL"),
        (("",), InputError, "expected text"),
        (("\ud800",), InputError, "not valid Unicode"),
    ):
        with pytest.raises(error, match=said):
            tokens.issue(backend, *asked)
    tokens.verify(tokens.issue(backend, "🏆" * 256, None, DAY).text)  # the longest there is


def test_a_token_of_more_ladders_than_a_header_holds_is_not_issued(tokens, backend, monkeypatch):
    monkeypatch.setattr(Tokens, "_check_ladders", lambda *_: None)
    with pytest.raises(UsageError, match="at most 6,000 are allowed: name fewer ladders"):
        tokens.issue(backend, "ann", [f"{at:0200}" for at in range(30)])


def test_a_token_expires_by_the_services_clock(tokens, backend, clock):
    token = tokens.issue(backend, "ann", None, 60)
    clock.now = token.expires_at - 1
    tokens.verify(token.text)
    clock.now = token.expires_at
    with pytest.raises(AccessError, match=f"the token is not valid: it expired at {iso_time(token.expires_at)}; send"):
        tokens.verify(token.text)


def test_a_token_of_a_time_to_come_is_refused_but_for_what_clocks_differ(
    tokens, backend, claims, service, now_in_seconds
):
    tokens.issue(backend, "ann")
    secret = secret_of(service)
    later = {**claims, "exp": now_in_seconds + 500}
    tokens.verify(jwt_of({**later, "iat": now_in_seconds + 60}, secret))
    with pytest.raises(AccessError, match="its issue time is in the future"):
        tokens.verify(jwt_of({**later, "iat": now_in_seconds + 62}, secret))


def test_revoking_a_key_ends_its_tokens_and_so_does_its_end(tokens, other_tokens, keys, backend, clock):
    text = tokens.issue(backend, "ann").text
    other_tokens.verify(text)
    keys.revoke(backend.key)
    with pytest.raises(AccessError, match=f"the key {backend.key} was revoked at"):
        tokens.verify(text)
    clock.move(seconds=2)
    with pytest.raises(AccessError, match="was revoked at"):
        other_tokens.verify(text)
    short = keys.authenticate(keys.create("short", ["queue"], None, clock.now + 1_500_000)[1])
    text = tokens.issue(short, "ann").text
    clock.move(seconds=1.5)
    with pytest.raises(AccessError, match=f"the key {short.key} expired at"):
        tokens.verify(text)


def check_refused(tokens, text, said):
    with pytest.raises(AccessError) as told:
        tokens.verify(text)
    assert re.match(f"the token is not valid: ({said})", str(told.value))
    assert str(told.value).endswith("; send a token exactly as it was issued to the game's backend")
    return str(told.value)


def test_forged_tokens_are_refused(tokens, backend, claims, service):
    good = tokens.issue(backend, "ann").text
    secret = secret_of(service)
    head, body, signature = good.split(".")
    other = packed({**claims_of(good), "sub": "bob"})
    for forged in (
        f"{head}.{other}.{signature}",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}.",
        jwt_of(claims, b""),
        jwt_of(claims, secret[:-1]),
        jwt_of(claims, hashlib.sha256(secret).digest()),
    ):
        check_refused(tokens, forged, "its signature is wrong: it was forged or changed")


def test_other_algorithms_are_refused_even_with_our_secret(tokens, backend, claims, service):
    tokens.issue(backend, "ann")
    secret = secret_of(service)
    unsigned = f"{packed({'alg': 'none', 'typ': 'JWT'})}.{packed(claims)}."
    for forged in (
        unsigned,
        unsigned.replace(packed({"alg": "none", "typ": "JWT"}), packed({"alg": "None"})),
        jwt_of(claims, secret, {"alg": "HS512"}, "sha512"),
        jwt_of(claims, secret, {"alg": "RS256"}),
        jwt_of(claims, secret, {"alg": "hs256"}),
        jwt_of(claims, secret, {"typ": "JWT"}),
    ):
        check_refused(tokens, forged, "its signature algorithm is not HS256|it is not a token")


def test_a_token_that_lacks_a_claim_is_refused(tokens, backend, claims, service):
    tokens.issue(backend, "ann")
    for lacking in claims:
        less = {name: value for name, value in claims.items() if name != lacking}
        told = check_refused(tokens, jwt_of(less, secret_of(service)), "")
        assert ("it lacks one of the claims exp, iat, sub and iss" in told) == (lacking != "key")


# A claim, and what is no good as one
WRONG = [
    ("iss", "evenmatch2", "its issuer is not evenmatch"),
    ("iss", ["evenmatch"], "its issuer is not evenmatch"),
    ("sub", 7, "it does not have the claims of a player token"),
    ("exp", "soon", "it does not have the claims"),
    ("exp", 1e300, "it does not have the claims"),
    ("iat", None, "it lacks one of the claims"),
    ("iat", "now", "it does not have the claims"),
    ("key", 7, "it does not have the claims"),
    ("aud", "somebody else", "it does not have the claims"),
    ("ladders", "duel", "it does not have the claims"),
]


def test_a_token_with_another_claim_than_ours_is_refused(tokens, backend, claims, service):
    tokens.issue(backend, "ann")
    for name, value, said in WRONG:
        check_refused(tokens, jwt_of({**claims, name: value}, secret_of(service)), said)


def test_a_token_of_a_key_that_there_is_not_is_refused(tokens, backend, claims, service):
    tokens.issue(backend, "ann")
    forged = jwt_of({**claims, "key": "em_aaaaaaaaaa"}, secret_of(service))
    with pytest.raises(AccessError, match="'em_aaaaaaaaaa' is not known"):
        tokens.verify(forged)


DEEP = packed(b"[" * 3000) + ".e30.AAAA"
NO_TOKENS = ["", "a", "a.b", "a.b.c", "....", "é.é.é", "\ud800", "a" * 7000, DEEP, f"{packed([1])}.e30.AAAA"]
NO_TOKENS += [f"{packed({'alg': 'HS256', 'kid': 7})}.e30.AAAA", f"{packed({'alg': 'HS256', 'b64': False})}.e30.AAAA"]


def test_what_is_no_token_is_refused_in_words(tokens):
    for text in NO_TOKENS:
        check_refused(tokens, text, "it is not a token|its signature is wrong|it does not have the claims")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=st.binary(max_size=60), body=st.binary(max_size=60), text=st.text(st.characters(), max_size=20))
def test_whatever_is_sent_as_a_token_is_refused_in_words(head, body, text, tokens):
    for sent in (text, f"{packed(head)}.{packed(body)}.{text}", f"{packed({'alg': 'HS256'})}.{packed(body)}.AAAA"):
        check_refused(tokens, sent, "")


def test_a_token_is_verified_without_the_database_while_its_key_is_remembered(tokens, backend, clock, monkeypatch):
    text = tokens.issue(backend, "ann").text
    fresh = Tokens(tokens._database, clock, Keys(tokens._database, clock))
    assert fresh.recall(text) is None
    known = fresh.verify(text)
    monkeypatch.setattr(fresh._keys, "_database", Unreachable())
    clock.move(seconds=1.999999)
    assert fresh.verify(text) == fresh.recall(text) == known
    with pytest.raises(AccessError, match="its signature is wrong"):
        fresh.recall(text[:-4] + "AAAA")
    with pytest.raises(AccessError, match="not a token"):
        fresh.recall("x")
    clock.move(seconds=0.000001)
    assert fresh.recall(text) is None


def test_neither_secret_nor_token_is_told(tokens, backend, service, caplog):
    caplog.set_level(logging.DEBUG)
    token = tokens.issue(backend, "ann")
    tokens.verify(token.text)
    told = [repr(token), repr(tokens.__dict__), repr(service.database.master.__dict__), caplog.text]
    told.append(check_refused(tokens, token.text[:-4] + "AAAA", "its signature is wrong"))
    for one in told:
        assert token.text.split(".")[2][:20] not in one
        assert token.text.split(".")[1] not in one
        assert secret_of(service).hex() not in one
        assert repr(secret_of(service)) not in one
