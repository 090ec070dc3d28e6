"""Sealed values."""

import base64

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.errors import SecretError
from evenmatch.ledger.secrets import Sealer, new_secret

OLD, NEW = new_secret(), new_secret()
SEALER = Sealer(OLD, "a test")


def test_a_sealed_value_is_a_fernet_token_with_the_row_before_the_value():
    assert Fernet(OLD).decrypt(SEALER.seal(b"secret", "api_key", "em_abc")) == b"api_key em_abc\0secret"


@given(value=st.binary(max_size=300), row=st.text("abc_1", min_size=1) | st.integers())
def test_a_value_opens_in_its_row_and_in_no_other(value, row):
    sealed = SEALER.seal(value, "api_key", row)
    assert SEALER.open(sealed, "api_key", row) == value
    for sealer, place in (
        (SEALER, ("api_key", f"{row}x")),
        (SEALER, ("api_key", str(row)[:-1])),
        (SEALER, ("webhook", row)),
        (SEALER, ("api_key", row, "x")),
        (Sealer(NEW, "a test"), ("api_key", row)),
    ):
        with pytest.raises(SecretError, match="cannot be opened"):
            sealer.open(sealed, *place)


def test_a_value_that_was_changed_or_cut_does_not_open():
    sealed = SEALER.seal(b"secret", "webhook", 7)
    token = base64.urlsafe_b64decode(sealed)
    changed = [bytes([*token[:at], token[at] ^ 1, *token[at + 1 :]]) for at in range(len(token))]
    cut = [token[:end] for end in range(len(token))]
    for damaged in [b"", b"secret", sealed[1:], *map(base64.urlsafe_b64encode, (*changed, *cut))]:
        with pytest.raises(SecretError, match="row 7 of table webhook: the sealed value cannot be opened"):
            SEALER.open(damaged, "webhook", 7)


def test_the_first_key_seals_and_signs_and_all_keys_open():
    both = Sealer(f"{NEW}\n{OLD}\n", "a test")
    assert both.open(SEALER.seal(b"x", "webhook", 1), "webhook", 1) == b"x"
    assert Sealer(NEW, "a test").open(both.seal(b"x", "webhook", 1), "webhook", 1) == b"x"
    assert both.signing_keys("session") == [
        *Sealer(NEW, "a test").signing_keys("session"),
        *SEALER.signing_keys("session"),
    ]
    assert both.signing_keys("session")[0] not in both.signing_keys("player token")
