"""Sealed values."""

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.errors import SecretError
from evenmatch.ledger.secrets import Sealer

MASTER = b"m" * 32
SEALER = Sealer(MASTER)


def hkdf(master, purpose):
    """HKDF-SHA256 as RFC 5869 defines it, without salt, for the 32 bytes that one round gives."""
    extracted = hmac.new(bytes(32), master, hashlib.sha256).digest()
    return hmac.new(extracted, purpose + b"\x01", hashlib.sha256).digest()


def test_a_sealed_value_is_what_the_format_says():
    sealed = SEALER.seal(b"secret", "api_key", "em_abcdefghij")
    key = hkdf(MASTER, b"evenmatch sealed value\0api_key\0em_abcdefghij")
    assert sealed[0] == 1
    assert AESGCM(key).decrypt(sealed[1:13], sealed[13:], b"\x01") == b"secret"
    assert SEALER.check == hkdf(MASTER, b"evenmatch master secret check")


@given(value=st.binary(max_size=300), row=st.text() | st.integers())
def test_a_value_opens_in_its_row_and_in_no_other(value, row):
    sealed = SEALER.seal(value, "secret", row)
    assert SEALER.open(sealed, "secret", row) == value
    for sealer, table, other in (
        (SEALER, "secret", f"{row}x"),
        (SEALER, "webhook", row),
        (Sealer(b"n"), "secret", row),
    ):
        with pytest.raises(SecretError, match="cannot be opened"):
            sealer.open(sealed, table, other)


def test_a_value_that_was_changed_or_cut_does_not_open():
    sealed = SEALER.seal(b"secret", "secret", "token")
    changed = [bytes([*sealed[:at], sealed[at] ^ 1, *sealed[at + 1 :]]) for at in range(len(sealed))]
    for damaged in (*changed, *(sealed[:end] for end in range(len(sealed))), b"secret", sealed + b"\0"):
        with pytest.raises(SecretError, match="row token of table secret"):
            SEALER.open(damaged, "secret", "token")


def test_the_same_value_is_sealed_differently_each_time():
    assert len({SEALER.seal(b"secret", "secret", "token") for _ in range(10)}) == 10


def test_only_the_same_master_secret_has_the_same_check():
    assert SEALER.is_checked_by(Sealer(MASTER).check)
    assert not SEALER.is_checked_by(Sealer(b"n" * 32).check)
    assert MASTER not in SEALER.check
