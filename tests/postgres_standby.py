"""A hot standby of a test's PostgreSQL server: a second real server that follows it by streaming replication."""

import os
import time

import pytest

from postgres import PORT, START_SECONDS, Postgres, PostgresError


class Standby(Postgres):
    """A copy of a primary, made by pg_basebackup, which takes no writes and follows the primary until it is closed."""

    def __init__(self, primary: Postgres) -> None:
        super().__init__(binaries=primary.binaries)
        if not (primary.binaries / "pg_basebackup").is_file():
            pytest.skip(f"{primary.binaries} has no pg_basebackup, which makes a standby: install postgresql")
        self._primary = primary

    def _prepare(self) -> None:
        """Copy the data folder of the primary, with the settings of a standby."""
        self._account = self._primary._account
        if self._account.owner is not None:
            os.chown(self.folder, *self._account.owner)
        source = f"host={self._primary.folder} port={PORT} user=postgres"
        data = self.folder / "data"
        self._launch("pg_basebackup", "-D", str(data), "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self._has_ended(START_SECONDS)
        if self._dismiss("QUIT") != 0:
            raise PostgresError(f"pg_basebackup failed:\n{self._read_log()}")

    def url_of(self, primary_url: str) -> str:
        """The URL at the standby of a database of the primary."""
        return primary_url.replace(str(self._primary.folder), str(self.folder))

    def catch_up(self) -> None:
        """Wait until the standby shows all that the primary has committed."""
        position = "SELECT pg_current_wal_flush_lsn()"
        with self._primary._connect() as primary, self._connect() as standby:
            (wanted,) = primary.execute(position).fetchone() or ("",)
            deadline = time.monotonic() + START_SECONDS
            while standby.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (wanted,)).fetchone() != (True,):
                assert time.monotonic() < deadline, "the standby does not follow"
                time.sleep(0.02)
