"""Authenticated encryption of single values in the database, with keys derived from the master secret."""

from __future__ import annotations

import hmac
import os

from evenmatch.errors import SecretError

FIRST = b"\x01"  # begins every sealed value: the format, should another one follow
NONCE = 12  # bytes
CHECK, ROW = b"evenmatch master secret check", b"evenmatch sealed value"


class Sealer:
    """Seals values for one row each: a value that is copied into another row, or changed, does not open.

    The key of a row is derived from the master secret by HKDF-SHA256 (RFC 5869), from the names of table and row. A
    sealed value is the format, a random nonce, and the AES-256-GCM ciphertext with its tag.
    """

    def __init__(self, master: bytes) -> None:
        self._master = master

    @property
    def check(self) -> bytes:
        """A keyed hash by which a database recognizes the master secret; nothing can be sealed or opened with it."""
        return self._derived(CHECK)

    def is_checked_by(self, stored: bytes) -> bool:
        """Whether `stored` is the check value of this master secret."""
        return hmac.compare_digest(self.check, stored)

    def seal(self, value: bytes, table: str, row: str | int) -> bytes:
        """Encrypt a value for this row of this table."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - few commands need it

        nonce = os.urandom(NONCE)
        return FIRST + nonce + AESGCM(self._key(table, row)).encrypt(nonce, value, FIRST)

    def open(self, sealed: bytes, table: str, row: str | int) -> bytes:
        """Decrypt a value that was sealed for this row.

        Raises SecretError if it was sealed with another master secret or for another row, or is damaged.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        nonce, encrypted = sealed[1 : 1 + NONCE], sealed[1 + NONCE :]
        try:
            return AESGCM(self._key(table, row)).decrypt(nonce, encrypted, sealed[:1])
        except (InvalidTag, ValueError):  # ValueError: it is too short to contain a nonce
            raise SecretError(
                f"row {row} of table {table}: its sealed value cannot be opened; it is damaged, or this process has "
                "another master secret than the database"
            ) from None

    def _key(self, table: str, row: str | int) -> bytes:
        return self._derived(b"\0".join((ROW, table.encode(), str(row).encode())))

    def _derived(self, purpose: bytes) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

        return HKDF(SHA256(), 32, None, purpose).derive(self._master)
