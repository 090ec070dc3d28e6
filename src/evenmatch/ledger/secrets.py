"""The master secret, and the encryption of single values in the database with keys derived from it.

The secret is in the environment or, for SQLite, in a file beside the database.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from pathlib import Path

from sqlalchemy.engine import URL

from evenmatch.errors import SecretError, UsageError
from evenmatch.whole_file import whole_file

FIRST = b"\x01"  # first byte of every sealed value: the version of the format
NONCE = 12  # bytes
CHECK, ROW = b"evenmatch master secret check", b"evenmatch sealed value"


class Sealer:
    """Seals values for one row each: a value that was copied into another row, or changed, cannot be opened.

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
                f"row {row} of table {table}: its sealed value cannot be opened; it is damaged, or this process does "
                "not have the master secret of the database"
            ) from None

    def _key(self, table: str, row: str | int) -> bytes:
        return self._derived(b"\0".join((ROW, table.encode(), str(row).encode())))

    def _derived(self, purpose: bytes) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

        return HKDF(SHA256(), 32, None, purpose).derive(self._master)


VARIABLE, FILE_VARIABLE = "EVENMATCH_SECRET", "EVENMATCH_SECRET_FILE"
SHORTEST = 32  # characters
SUFFIX = ".secret"
ELSEWHERE = f"set {VARIABLE} to it, or {FILE_VARIABLE} to a file that contains it"


def new_secret() -> str:
    """A new master secret: 32 random bytes in base64."""
    return base64.b64encode(secrets.token_bytes(32)).decode()


def read_secret(path: Path) -> Sealer:
    """The master secret that a file contains. Raises SecretError if it cannot be read or is too short."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SecretError(f"{path}: the master secret cannot be read: {reason}") from None
    return _sealer(text, str(path))


class MasterSecret:
    """The master secret of one database, loaded when it is first needed. Thread-safe.

    file  where the secret is if the environment has none; None for PostgreSQL, whose processes need not share a folder
    """

    def __init__(self, url: URL, shown: str) -> None:
        is_sqlite = url.get_backend_name() == "sqlite"
        self.file = Path(f"{Path(url.database or '').resolve()}{SUFFIX}") if is_sqlite else None
        self._shown = shown
        self._sealer: Sealer | None = None

    @property
    def place(self) -> str | None:
        """Where the secret is expected: the name of a variable, or a path; None: nowhere, since no variable is set."""
        if os.environ.get(VARIABLE):
            return VARIABLE
        beside = None if self.file is None else str(self.file)
        return os.environ.get(FILE_VARIABLE) or beside

    @property
    def files(self) -> list[Path]:
        """The file beside an SQLite database and the one named in the environment, whether they exist or not."""
        named = os.environ.get(FILE_VARIABLE)
        return [file for file in (self.file, Path(named) if named else None) if file is not None]

    def sealer(self) -> Sealer:
        """The sealer of a database that contains sealed values. Raises SecretError without a valid master secret."""
        sealer = self._find()
        if sealer is None:
            raise SecretError(f"{self._shown} is sealed with a master secret, which is missing: {self._advice()}")
        return sealer

    def sealer_or_new(self) -> Sealer:
        """The sealer of a database in which nothing is sealed yet; for SQLite, creates the file if necessary.

        Call it while no other process can write to the database. Raises SecretError.
        """
        sealer = self._find()
        if sealer is not None:
            return sealer
        if self.file is None:
            raise SecretError(
                f"{self._shown} needs a master secret, from which the keys that seal its contents are derived: "
                f"{ELSEWHERE}, the same for all processes; `evenmatch secret new` prints one"
            )
        self.write(new_secret())
        return self.sealer()

    def write(self, text: str) -> None:
        """Write the file beside the database, which only its owner can read. Raises SecretError."""
        assert self.file is not None
        _write(self.file, text)  # what is sealed with it may be durable a moment later
        self._sealer = None

    def copy_to(self, path: Path) -> None:
        """Write the secret of a database with sealed values to a file that only its owner can read.

        Raises SecretError without a valid master secret, or if the file cannot be written.
        """
        self.sealer()
        text = os.environ.get(VARIABLE) or Path(str(self.place)).read_text(encoding="utf-8")
        _write(path, text.strip())

    def mismatch(self) -> SecretError:
        """The error for a master secret that does not belong to the database."""
        return SecretError(
            f"{self._shown} is sealed with another master secret than that of {self.place}: {self._advice()}"
        )

    def _find(self) -> Sealer | None:
        if self._sealer is None:
            self._sealer = self._load()
        return self._sealer

    def _load(self) -> Sealer | None:
        text, place = os.environ.get(VARIABLE), self.place
        if text and os.environ.get(FILE_VARIABLE):
            raise SecretError(f"{VARIABLE} and {FILE_VARIABLE} are both set; expected one of them")
        if text:
            return _sealer(text, VARIABLE)
        if place is None or (place == str(self.file) and not Path(place).exists()):
            return None
        return read_secret(Path(place))

    def _advice(self) -> str:
        """How to give this process the right secret."""
        beside = f"put its file back as {self.file} (a backup has it only with --with-secret), or "
        return f"{'' if self.file is None else beside}{ELSEWHERE}. If it is lost: evenmatch secret reset"


def _write(path: Path, text: str) -> None:
    """Write a secret to the disk, into a file that only its owner can read. Raises SecretError."""
    try:
        with whole_file(path, private=True) as draft, draft.open("w", encoding="utf-8") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
    except UsageError as error:
        raise SecretError(f"the master secret cannot be stored: {error}") from None
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sealer(text: str, origin: str) -> Sealer:
    secret = text.strip()
    if len(secret) < SHORTEST:
        raise SecretError(
            f"{origin}: the master secret has {len(secret)} characters; expected at least {SHORTEST}, as "
            "`evenmatch secret new` prints"
        )
    return Sealer(secret.encode("utf-8", "surrogateescape"))
