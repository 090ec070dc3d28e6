"""Signed requests."""

import hashlib
import hmac

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenmatch.accounts import signing
from evenmatch.accounts.signing import SignedRequest
from evenmatch.errors import AccessError

TEXT = "em_abcdefghij_" + "s" * 43
KEY = hashlib.sha256(TEXT.encode()).digest()
BODY = b'{"id": "m1", "name": "\xc3\xa9"}'
AT = 1_795_300_000
PATH = "/v1/ladders/duel/matches?dry=1&x=%C3%A9"


def by_hand(key, message):
    """HMAC as RFC 2104 defines it: H(K ^ opad, H(K ^ ipad, text))."""
    padded = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(one ^ 0x36 for one in padded) + message).digest()
    return hashlib.sha256(bytes(one ^ 0x5C for one in padded) + inner).hexdigest()


MESSAGE = f"{AT}\nPOST\n{PATH}\n".encode() + BODY


def signed_request(at=AT, key=KEY, method="POST", path=PATH, body=BODY):
    return SignedRequest("em_abcdefghij", at, signing.sign(key, at, method, path, body))


def check_signature(one, *, method="POST", path=PATH, body=BODY, now=AT):
    signing.check(KEY, one, method, path, body, round(now * 1e6))


def test_the_signature_is_hmac_sha256_of_time_method_path_and_body_by_the_hash_of_the_key():
    assert signing.signing_key(TEXT) == KEY
    assert signed_request().signature == by_hand(KEY, MESSAGE)
    check_signature(signed_request()._replace(signature=by_hand(KEY, MESSAGE).upper()))


def test_hmac_by_hand_gives_the_published_example():
    # RFC 4231, test case 2
    told = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert by_hand(b"Jefe", b"what do ya want for nothing?") == told
    assert hmac.new(b"Jefe", b"what do ya want for nothing?", "sha256").hexdigest() == told


OTHERS = [
    {"method": "PUT"},
    {"method": "post"},
    {"path": PATH + "1"},
    {"path": PATH.replace("%C3%A9", "é")},
    {"body": BODY + b" "},
    {"body": b""},
]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_signature_fits_no_other_request(other):
    with pytest.raises(AccessError, match="does not match the request"):
        check_signature(signed_request(), **other)


def test_a_signature_by_another_key_or_of_another_second_does_not_fit():
    for one in (
        signed_request(key=KEY[::-1]),
        signed_request()._replace(timestamp=AT + 1),
        signed_request()._replace(signature="0" * 64),
    ):
        with pytest.raises(AccessError, match="does not match") as told:
            check_signature(one)
        assert KEY.hex() not in str(told.value)
        assert signed_request().signature not in str(told.value)  # or whoever reads the answer could send it again


# Seconds by which the receiver's clock is ahead of the timestamp, and whether that is accepted
SKEWS = [(300, True), (300.001, False), (-300, True), (-300.001, False), (0, True)]


@pytest.mark.parametrize(("ahead", "good"), SKEWS)
def test_the_timestamp_may_be_300_seconds_off_and_no_more(ahead, good):
    if good:
        check_signature(signed_request(), now=AT + ahead)
    else:
        with pytest.raises(
            AccessError, match=f"{AT} is 300 s {'ago' if ahead > 0 else 'in the future'}; at most 300 s"
        ):
            check_signature(signed_request(), now=AT + ahead)


def test_the_header_is_read_as_it_is_written_in_whatever_order():
    one = signed_request()
    assert signing.read(signing.write(one)) == one
    turned = f'  evenmatch-hmac-sha256  signature="{one.signature}" ,timestamp={AT},  key = em_abcdefghij '
    assert signing.read(turned) == one


HEX = "0f" * 32
WRONG = [
    ("", "not signed with"),
    ("Bearer em_abcdefghij_sss", "not signed with"),
    ("Evenmatch-HMAC-SHA256", "each once"),
    (f"Evenmatch-HMAC-SHA256 key=em_a, timestamp=1, signature={HEX}, key=em_b", "each once"),
    (f"Evenmatch-HMAC-SHA256 key=em_a, key=em_a, signature={HEX}", "each once"),
    (f"Evenmatch-HMAC-SHA256 key=em_a timestamp=1 signature={HEX}", "each once"),
    (f"Evenmatch-HMAC-SHA256 key=em_a, timestamp=1, signature={HEX},", "each once"),
    (f'Evenmatch-HMAC-SHA256 key="em_a, timestamp=1, signature={HEX}', "each once"),
    (f"Evenmatch-HMAC-SHA256 key=em_a, timestamp=01, signature={HEX}", "'01' is not a number of seconds"),
    (f"Evenmatch-HMAC-SHA256 key=em_a, timestamp=1e9, signature={HEX}", "'1e9' is not a number of seconds"),
    (f"Evenmatch-HMAC-SHA256 key=em_a, timestamp={'9' * 13}, signature={HEX}", "is not a number of seconds"),
    (f"Evenmatch-HMAC-SHA256 key=em_a, timestamp=٣, signature={HEX}", "each once"),
    ("Evenmatch-HMAC-SHA256 key=em_a, timestamp=1, signature=0f", "64 hexadecimal digits"),
    (f"Evenmatch-HMAC-SHA256 key=em_a, timestamp=1, signature={'g' * 64}", "64 hexadecimal digits"),
]


@pytest.mark.parametrize(("header", "said"), WRONG)
def test_a_header_that_is_no_signature_is_refused_and_told_what_is_accepted(header, said):
    with pytest.raises(AccessError, match=said) as told:
        signing.read(header)
    assert "expected Evenmatch-HMAC-SHA256 key=em_…, timestamp=" in str(told.value)
    assert "sss" not in str(told.value)


@given(st.text())
def test_whatever_stands_in_a_header_is_refused_in_words(text):
    for header in (
        text,
        f"{signing.SCHEME} {text}",
        f"{signing.SCHEME} key={text}, timestamp={text}, signature={text}",
    ):
        with pytest.raises(AccessError):
            signing.read(header)


@given(st.text(st.characters()), st.text(st.characters()), st.text(st.characters()))
@example("\ud800", "/", "0" * 64)
@example("GET", "/\ud800", "0" * 64)
@example("GET", "/", "\ud800")
def test_whatever_is_signed_wrongly_is_refused_in_words(method, path, signature):
    with pytest.raises(AccessError):
        check_signature(SignedRequest("em_a", AT, signature), method=method, path=path)
