"""The master secret of a database, and the encryption of single values with it."""

from __future__ import annotations

import base64
import hmac
import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy.engine import URL

from evenmatch.errors import SecretError, UsageError
from evenmatch.whole_file import whole_file

VARIABLE, FILE_VARIABLE = "EVENMATCH_SECRET", "EVENMATCH_SECRET_FILE"
SUFFIX = ".secret"
SET_IT = f"set {VARIABLE} to it, or {FILE_VARIABLE} to a file that contains it"


def new_secret() -> str:
    """Return a new master secret: a Fernet key, which is 32 random bytes in base64."""
    from cryptography.fernet import Fernet  # noqa: PLC0415 - few commands need it

    return Fernet.generate_key().decode()


class Sealer:
    """Encrypts values with Fernet. A value copied into another row, or changed, does not open.

    text    Fernet keys separated by white space: the first seals, all open
    origin  where the text came from, for the error

    Raises SecretError if the text contains anything but Fernet keys.
    """

    def __init__(self, text: str, origin: str) -> None:
        from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415

        self.origin = origin
        try:
            self._fernet = MultiFernet([Fernet(key) for key in text.split()])
            self._keys = [base64.urlsafe_b64decode(key) for key in text.split()]
        except ValueError:
            raise SecretError(
                f"{origin}: this is not a master secret; expected 32 random bytes in base64, as `evenmatch secret new` "
                "prints, or several such keys with the newest first"
            ) from None

    @classmethod
    def read(cls, path: Path) -> Sealer:
        """Read the master secret in a file. Raises SecretError."""
        return cls(read_text(path), str(path))

    def seal(self, value: bytes, table: str, *row: str | int) -> bytes:
        """Encrypt a value together with the table and the primary key of the row that stores it."""
        return self._fernet.encrypt(_row_mark(table, *row) + value)

    def open(self, sealed: bytes, table: str, *row: str | int) -> bytes:
        """Decrypt a value. Raises SecretError if it was sealed with another secret or for another row, or altered."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415

        with suppress(InvalidToken):
            value, mark = self._fernet.decrypt(sealed), _row_mark(table, *row)
            if value.startswith(mark):
                return value.removeprefix(mark)
        raise SecretError(
            f"row {' '.join(map(str, row))} of table {table}: the sealed value cannot be opened; it is damaged, or "
            f"{self.origin} is not the master secret of this database"
        )

    def signing_keys(self, purpose: str) -> list[bytes]:
        """Derive 32 bytes for signatures from each key of the secret: the first one signs, all are accepted."""
        return [hmac.digest(key, purpose.encode(), "sha256") for key in self._keys]


def _row_mark(table: str, *row: str | int) -> bytes:
    return " ".join(map(str, (table, *row))).encode() + b"\0"


def read_text(path: Path) -> str:
    """Read the text of a master secret. Raises SecretError if the file cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SecretError(f"{path}: the master secret cannot be read: {reason}") from None


def write_text(path: Path, text: str) -> None:
    """Write the text of a master secret to disk, in a file that only its owner can read. Raises SecretError."""
    try:
        with whole_file(path, private=True) as draft:
            draft.write_text(f"{text.strip()}\n", encoding="utf-8")
    except UsageError as error:
        raise SecretError(f"the master secret cannot be stored: {error}") from None


class MasterSecret:
    """The master secret of one database, read when it is first needed. Thread-safe.

    file  its path, unless the environment provides the secret; None for PostgreSQL, whose processes share no folder
    """

    def __init__(self, url: URL, shown: str) -> None:
        is_sqlite = url.get_backend_name() == "sqlite"
        self.file = Path(f"{Path(url.database or '').resolve()}{SUFFIX}") if is_sqlite else None
        self._shown = shown
        self._sealer: Sealer | None = None

    @property
    def place(self) -> str | None:
        """The variable or file that should contain the secret; None for PostgreSQL if neither variable is set."""
        if os.environ.get(VARIABLE):
            return VARIABLE
        return os.environ.get(FILE_VARIABLE) or (None if self.file is None else str(self.file))

    def text(self) -> str | None:
        """Return the secret; None if there is none. Raises SecretError if it is set twice or cannot be read."""
        text, place = os.environ.get(VARIABLE), self.place
        if text and os.environ.get(FILE_VARIABLE):
            raise SecretError(f"{VARIABLE} and {FILE_VARIABLE} are both set; expected one of them")
        if text or place is None or (place == str(self.file) and not Path(place).exists()):
            return text or None
        return read_text(Path(place))

    def sealer(self, *, create: bool = False) -> Sealer:
        """Return the sealer of the database. Raises SecretError if the secret is missing or invalid.

        create  write a new secret beside an SQLite database that has none; call it while no other process can write
        """
        if self._sealer is None:
            text = self.text()
            if text is None and create and self.file is not None:
                text = new_secret()
                write_text(self.file, text)  # on disk before anything that it seals
            if text is None:
                raise SecretError(f"{self._shown}: the master secret is missing; {self._advice()}")
            self._sealer = Sealer(text, str(self.place))
        return self._sealer

    def mismatch(self) -> SecretError:
        """Return the error for a secret that is not the one of the database."""
        return SecretError(f"{self._shown} has another master secret than {self.place}; {self._advice()}")

    def _advice(self) -> str:
        """Say how to provide the right secret."""
        if self.file is None:
            return f"{SET_IT}, the same for all processes. A new database takes one from `evenmatch secret new`"
        return f"put it back as {self.file}, or {SET_IT}. If it is lost, run `evenmatch secret reset`"
