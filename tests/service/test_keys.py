"""API keys."""

import hashlib
import logging
import re
import threading

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evenmatch.accounts import signing
from evenmatch.accounts.access import Caller
from evenmatch.accounts.audit_trail import Audit
from evenmatch.accounts.keys import Keys
from evenmatch.errors import AccessError, ForbiddenError, InputError, StoreError, UnknownNameError, UsageError
from evenmatch.times import iso_time

SHAPE = re.compile(r"em_[a-z2-7]{10}_[A-Za-z0-9_-]{43}")
BODY = b'{"id": "m1"}'


@pytest.fixture
def keys(service, clock):
    return Keys(service.database, clock)


@pytest.fixture
def other_keys(other_service, clock):
    """The keys as another process sees them."""
    return Keys(other_service.database, clock)


class Unreachable:
    """A database that must not be asked."""

    rows = None

    def read(self):
        raise AssertionError("the database was asked")

    write = read


@pytest.fixture
def cut_off(monkeypatch):
    """Cut some keys off from their database."""
    return lambda keys: monkeypatch.setattr(keys, "_database", Unreachable())


def stored(service):
    """The rows of all keys as they stand in the database."""
    with service.database.read() as store:
        return [row._asdict() for row in store.connection.execute(sa.text("SELECT * FROM api_key")).all()]


def other_secret(text):
    """The same key with another letter at its end."""
    return text[:-1] + ("A" if text[-1] != "A" else "B")


def test_a_key_is_known_by_its_text_alone_and_carries_its_scopes_and_ladders(keys, clock, ladders):
    key, text = keys.create("game é", ["report", "queue"], ["duel", "arena", "duel"], clock.now + 5_000_000)
    assert SHAPE.fullmatch(text)
    assert text.startswith(f"{key.key}_")
    assert (key.name, key.scopes, key.ladders) == ("game é", ("report", "queue"), ("arena", "duel"))
    assert (key.created_at, key.expires_at, key.revoked_at) == (clock.now, clock.now + 5_000_000, None)
    scopes, limits = frozenset({"report", "queue"}), frozenset({"duel", "arena"})
    assert keys.authenticate(text) == Caller(f"key {key.key}", scopes, limits, None, key.key)
    assert keys.list() == [key]


def test_a_key_for_all_ladders_never_expires_unless_it_says_so(keys, clock):
    key, text = keys.create("ops", ["admin"])
    clock.move(days=36_500)
    assert keys.authenticate(text).ladders is None
    assert (key.ladders, key.expires_at) == (None, None)


def test_no_two_keys_are_alike_and_all_of_the_secret_counts(keys):
    texts = [keys.create("twin", ["read"])[1] for _ in range(5)]
    assert len({text[:13] for text in texts}) == len({text[14:] for text in texts}) == 5
    assert {keys.authenticate(text).key for text in texts} == {text[:13] for text in texts}
    first, second = texts[:2]
    for wrong in (first[:14] + second[14:], second[:14] + first[14:], other_secret(first)):
        with pytest.raises(AccessError, match=f"the key {wrong[:13]} is not known, or its secret is wrong"):
            keys.authenticate(wrong)


def test_only_a_hash_of_the_signing_key_is_kept_in_clear_and_nothing_tells_the_secret(keys, service, caplog):
    caplog.set_level(logging.DEBUG)
    key, text = keys.create("game", ["report"])
    keys.authenticate(text)
    (row,) = stored(service)
    signs = hashlib.sha256(text.encode()).digest()
    assert bytes(row["verifier"]) == hashlib.sha256(signs).digest()
    assert signs not in bytes(row["signing_key"])
    trail = Audit(service.database).page()
    told = [repr(row), repr(key), repr(keys), repr(keys.__dict__), repr(trail), repr(keys.list()), caplog.text]
    for asked in (keys.authenticate, keys.recall, keys.revoke, keys.caller):
        for wrong in (other_secret(text), f"{text} ", text[3:], text[14:]):
            try:
                asked(wrong)
            except (AccessError, UnknownNameError) as error:
                told.append(str(error))
    assert len(told) > 10
    digest = hashlib.sha256(text.encode())
    for one in told:
        assert not [at for at in range(14, 50) if text[at : at + 8] in one]
    for one in told[1:]:
        assert digest.hexdigest() not in one
        assert repr(digest.digest()) not in one


def test_what_a_key_must_be_is_said_by_whoever_refuses_another(keys, clock, ladder):
    for asked, error, said in (
        (("game", ["reports"]), UnknownNameError, "unknown scope 'reports' .*; known: report, .*, admin"),
        (("game", []), UsageError, "at least one scope: report, queue, read, ratings, admin"),
        (("game", ["read"], ["duel", "team"]), UnknownNameError, "unknown ladder 'team'; known: duel"),
        (("game", ["read"], []), UsageError, "at least one ladder"),
        (("game", ["read"], None, clock.now), UsageError, "must be in the future"),
        (("game", ["read"], None, 2**63), UsageError, "before the year 2100"),
        ((" ", ["read"]), InputError, "expected text with at least one letter"),
        (("a\0b", ["read"]), InputError, "NUL"),
    ):
        with pytest.raises(error, match=said):
            keys.create(*asked)
    assert keys.list() == []


def test_a_revoked_key_is_refused_at_once_here_and_within_two_seconds_elsewhere(keys, other_keys, clock):
    key, text = keys.create("game", ["report"])
    other_keys.authenticate(text)
    clock.move(seconds=1.5)
    keys.authenticate(text)
    keys.revoke(key.key)
    revoked_at = clock.now
    with pytest.raises(AccessError, match=rf"the key {key.key} was revoked at {iso_time(revoked_at)}"):
        keys.authenticate(text)
    clock.move(seconds=0.499999)
    assert other_keys.authenticate(text).key == key.key
    clock.move(seconds=0.000001)
    with pytest.raises(AccessError, match="was revoked at"):
        other_keys.authenticate(text)


def test_an_expired_key_is_refused_from_that_very_moment_though_it_is_remembered(keys, clock, cut_off):
    key, text = keys.create("game", ["report"], None, clock.now + 1_000_000)
    keys.authenticate(text)
    cut_off(keys)
    clock.move(seconds=0.999999)
    assert keys.authenticate(text).key == key.key
    clock.move(seconds=0.000001)
    with pytest.raises(AccessError, match=f"expired at {iso_time(key.expires_at)}; use another key"):
        keys.authenticate(text)
    assert key.state(clock.now) == "expired"


def test_a_wrong_secret_is_not_told_whether_the_key_was_revoked(keys):
    key, text = keys.create("game", ["report"])
    keys.revoke(key.key)
    with pytest.raises(AccessError, match="is not known, or its secret is wrong") as told:
        keys.authenticate(other_secret(text))
    assert "revoked" not in str(told.value)


def test_a_key_that_is_remembered_is_judged_without_the_database(keys, clock, cut_off):
    key, text = keys.create("game", ["report"])
    assert keys.recall(text) is None
    assert not keys.is_remembered(key.key)
    known = keys.authenticate(text)
    cut_off(keys)
    clock.move(seconds=1.999999)
    assert keys.authenticate(text) == keys.recall(text) == known
    assert keys.is_remembered(key.key)
    for asked in (keys.authenticate, keys.recall):
        with pytest.raises(AccessError, match="its secret is wrong"):
            asked(other_secret(text))
    clock.move(seconds=0.000001)
    assert keys.recall(text) is None
    with pytest.raises(AssertionError, match="was asked"):
        keys.authenticate(text)


def test_a_clock_that_was_put_back_makes_nobody_believe_what_is_old(keys, other_keys, clock):
    key, text = keys.create("game", ["report"])
    other_keys.authenticate(text)
    keys.revoke(key.key)
    clock.move(seconds=-3600)
    with pytest.raises(AccessError, match="was revoked"):
        other_keys.authenticate(text)


def test_a_key_made_by_another_process_is_known_at_once_though_it_was_asked_for_before(keys, other_keys, monkeypatch):
    ids = iter("abcdefghij")
    monkeypatch.setattr("secrets.choice", lambda _: next(ids))
    with pytest.raises(AccessError):
        keys.authenticate("em_abcdefghij_" + "x" * 43)
    _, text = other_keys.create("game", ["report"])
    assert keys.authenticate(text).key == "em_abcdefghij"


def test_a_database_that_fails_is_no_wrong_key(keys, monkeypatch, service):
    _, text = keys.create("game", ["report"])

    def fail():
        raise StoreError("gone")

    monkeypatch.setattr(service.database, "read", fail)
    with pytest.raises(StoreError):
        keys.authenticate(text)


def test_revoking_twice_keeps_the_first_time_and_is_noted_once(keys, clock, service):
    key, text = keys.create("game", ["report"])
    first = keys.revoke(key.key)
    clock.move(seconds=60)
    assert keys.revoke(text) == first == keys.list()[0]  # by the whole text, too
    assert first.revoked_at == clock.now - 60_000_000
    assert [one.action for one in Audit(service.database).page()] == ["key.revoked", "key.created"]


def test_many_who_revoke_at_once_note_it_once(keys, other_keys, service):
    key, _ = keys.create("game", ["report"])
    start = threading.Barrier(6)

    def revoke(by):
        start.wait()
        by.revoke(key.key)

    threads = [threading.Thread(target=revoke, args=((keys, other_keys)[at % 2],)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.action for one in Audit(service.database).page()] == ["key.revoked", "key.created"]


def test_what_is_no_keys_id_cannot_be_revoked_and_those_that_are_good_are_named(keys):
    key, _ = keys.create("game", ["report"])
    gone, _ = keys.create("gone", ["report"])
    keys.revoke(gone.key)
    for wrong in ("em_aaaaaaaaaa", "game", "", "a\0b", "\ud800", "em_aaaaaaaaaa' OR '1'='1"):
        with pytest.raises(UnknownNameError, match=f"unknown key .*; known: {key.key}$"):
            keys.revoke(wrong)


def test_the_trail_says_who_made_and_revoked_a_key(keys, service, ladder, clock):
    admin = Caller("key em_bbbbbbbbbb", frozenset({"admin"}))
    key, _ = keys.create("game", ["report"], ["duel"], clock.now + 9, by=admin, request="r-1")
    keys.revoke(key.key)
    gone, made = Audit(service.database).page()
    assert (made.actor, made.action, made.target, made.request) == ("key em_bbbbbbbbbb", "key.created", key.key, "r-1")
    assert made.body == {"name": "game", "scopes": ["report"], "ladders": ["duel"], "expires_at": clock.now + 9}
    assert (gone.actor, gone.action, gone.target) == ("operator", "key.revoked", key.key)


def test_only_an_admin_of_all_ladders_makes_and_revokes_keys(keys):
    key, _ = keys.create("game", ["report"])
    for scopes, ladders in (({"report", "queue"}, None), ({"admin"}, frozenset({"duel"}))):
        by = Caller("key em_bbbbbbbbbb", frozenset(scopes), ladders)
        with pytest.raises(ForbiddenError):
            keys.create("more", ["admin"], by=by)
        with pytest.raises(ForbiddenError):
            keys.revoke(key.key, by=by)
    assert keys.list() == [key]


# signed requests


def signed_request(text, at, method="POST", path="/v1/x?a=1", body=BODY):
    key = hashlib.sha256(text.encode()).digest()
    return signing.SignedRequest(text[:13], at, signing.sign(key, at, method, path, body)), method, path, body


def test_a_signed_request_is_its_keys_whose_text_does_not_travel(keys, clock):
    key, text = keys.create("game", ["report"])
    now = clock.now // 1_000_000
    assert keys.authenticate_signed(*signed_request(text, now)) == keys.authenticate(text)
    header = signing.read(signing.write(signed_request(text, now)[0]))
    assert keys.authenticate_signed(header, "POST", "/v1/x?a=1", BODY).key == key.key
    with pytest.raises(AccessError, match="does not match"):
        keys.authenticate_signed(header, "POST", "/v1/x?a=2", BODY)
    with pytest.raises(AccessError, match="301 s ago; at most 300 s are allowed"):
        keys.authenticate_signed(*signed_request(text, now - 301))
    with pytest.raises(AccessError, match="does not match"):
        keys.authenticate_signed(*signed_request(other_secret(text), now))


def test_a_signature_by_a_key_that_is_unknown_revoked_or_expired_is_refused(keys, clock):
    key, text = keys.create("game", ["report"], None, clock.now + 5_000_000)
    now = clock.now // 1_000_000
    keys.revoke(key.key)
    with pytest.raises(AccessError, match="was revoked"):
        keys.authenticate_signed(*signed_request(text, now))
    with pytest.raises(AccessError, match="does not match"):  # and nothing is told of the key
        keys.authenticate_signed(*signed_request(other_secret(text), now))
    signed, *request = signed_request(text, now)
    with pytest.raises(AccessError, match="'em_aaaaaaaaaa' is not known"):
        keys.authenticate_signed(signed._replace(key="em_aaaaaaaaaa"), *request)
    _, text = keys.create("late", ["report"], None, clock.now + 5_000_000)
    clock.move(seconds=5)
    with pytest.raises(AccessError, match="expired at"):
        keys.authenticate_signed(*signed_request(text, now + 5))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters()) | st.from_regex(SHAPE) | st.from_regex(SHAPE, fullmatch=True))
@example(text="em_aaaaaaaaaa_" + "a" * 43 + "\n")
@example(text="em_' OR 1=1 --_" + "a" * 43)
def test_whatever_is_sent_as_a_key_is_refused_in_words(text, keys):
    with pytest.raises(AccessError):
        keys.authenticate(text)
    with pytest.raises(AccessError):
        keys.authenticate_signed(signing.SignedRequest(text, 1, text), text, text, b"")
