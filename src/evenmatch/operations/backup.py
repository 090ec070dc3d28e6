"""Back up a database while it is in use, and restore a backup as a drill, which replays and compares its ladders."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from evenmatch.corrections.ladder_heads import LadderHead, cut_of, positions_of, present_head
from evenmatch.corrections.verification import Verification
from evenmatch.errors import EvenmatchError, SecretError, StoreError, UnknownNameError, UsageError
from evenmatch.ledger import event_rows, secret_rows, sqlite_copy
from evenmatch.ledger.database import VERSION, Database
from evenmatch.ledger.database_check import check_database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.secrets import FILE_VARIABLE, SUFFIX, MasterSecret, Sealer, write_text
from evenmatch.ledger.store import Store
from evenmatch.operations.master_secret import is_current, secret_place
from evenmatch.operations.service import Service
from evenmatch.times import iso_time
from evenmatch.whole_file import flush, whole_file


class Backup(NamedTuple):
    """A finished backup.

    size    in bytes
    damage  a sentence for each ladder that the database has lost
    secret  the file with a copy of the master secret; None: not requested, or nothing in the database is sealed
    """

    size: int
    damage: tuple[str, ...]
    secret: Path | None


def backup(database: Database, path: Path, *, replace: bool = False, with_secret: bool = False) -> Backup:
    """Copy an SQLite database as of now into a file, and read it back.

    replace      overwrite an existing file, unless the database has lost a ladder
    with_secret  also copy the master secret to the file beside `path` where a database at `path` looks for it
    The file gets its name only when the copy is complete, on disk and equal to the database; otherwise StoreError is
    raised. Raises UsageError for a path that cannot be written or that the database uses, and for PostgreSQL, which has
    its own tool (pg_dump). Raises SecretError, before anything is copied, if the secret is missing or wrong.
    """
    if database.url.get_backend_name() != "sqlite":
        raise UsageError(f"PostgreSQL has its own backup tool; type: {dump_line(database.shown, path)}")
    secret = Path(f"{path}{SUFFIX}") if with_secret and secret_place(database) is not None else None
    for file in (path,) if secret is None else (path, secret):
        _check(database, file, replace)
    if secret is not None and not is_current(database):
        raise database.master.mismatch()
    with whole_file(path) as draft:
        try:
            contents = sqlite_copy.copy_to(database, draft, path)
            sqlite_copy.check_copy(draft, path, contents)
            if contents.damage and path.exists():
                raise StoreError(
                    f"{path}: the existing backup was not replaced, because the database is damaged: "
                    f"{'; '.join(contents.damage)}; restore a backup, or copy into a new file"
                )
        except OSError as error:
            raise StoreError(f"{path}: the copy could not be written: {error.strerror}") from error
        finally:
            for suffix in ("-journal", "-wal", "-shm"):
                Path(f"{draft}{suffix}").unlink(missing_ok=True)
    flush(path.parent)
    if secret is not None:
        write_text(secret, database.master.text() or "")
    return Backup(path.stat().st_size, contents.damage, secret)


def _check(database: Database, path: Path, replace: bool) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; create it, or choose another one")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; expected the name of a file")
    if _is_same(path, Path(database.url.database or "")):
        raise UsageError(f"{path} is the database itself; choose another file")
    if any(_is_same(path, used) for used in _used_files(database)):
        raise UsageError(f"{path} is a file that the database uses; choose another one")
    if path.exists():
        if not path.is_file():
            raise UsageError(f"{path} is not a regular file; expected a new name, or a backup to replace")
        if not replace:
            raise UsageError(f"{path} exists already; choose a new name, or add --replace")


def _used_files(database: Database) -> list[Path]:
    """Return the files beside an SQLite database, and that of its master secret, whether they exist or not."""
    file, named = Path(database.url.database or "").resolve(), os.environ.get(FILE_VARIABLE)
    return [Path(f"{file}{suffix}") for suffix in COMPANIONS] + ([] if named is None else [Path(named)])


def _is_same(path: Path, used: Path) -> bool:
    """True if two paths lead to the same file, which need not exist."""
    return os.path.realpath(path) == os.path.realpath(used) or (path.exists() and used.exists() and path.samefile(used))


def dump_line(shown: str, path: Path) -> str:
    """The pg_dump command line for a PostgreSQL database, without the password, which pg_dump asks for."""
    plain = shown.replace("postgresql+psycopg://", "postgresql://").replace(":***@", "@")
    return f"pg_dump --format=custom --file={shlex.quote(str(path))} {shlex.quote(plain)}"


MAGIC = b"SQLite format 3\0"
COMPANIONS = ("-wal", "-shm", "-journal", SUFFIX)  # suffixes of the files that accompany a database
AHEAD = 60.0  # seconds that the clock of a file server may be ahead


@dataclass(frozen=True)
class Drill:
    """The result of restoring a backup as a drill.

    file      the backup;  seconds  duration of the drill
    age       seconds since the file was written or, if longer, since the first event of the live database that it lacks
    recorded  when its last event was recorded, ISO 8601; None: there is no reliable event
    ladders   the verification of each ladder;  heads  of intact ladders
    problems  sentences about damage, or disagreement with the live database
    notes     sentences about what was not checked, and why
    """

    file: Path
    age: float
    recorded: str | None
    seconds: float
    ladders: tuple[Verification, ...]
    heads: tuple[LadderHead, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """True if the backup can be restored, all of it is equal, and the live database continues it."""
        return not self.problems and all(ladder.is_equal or _is_only_old(ladder) for ladder in self.ladders)


def _is_only_old(result: Verification) -> bool:
    """True if the only finding is an outstanding rebuild, as after an update of evenmatch."""
    return not (result.damage or result.differences)


def latest_backup(place: Path) -> Path:
    """The backup at a path: the file, or the newest file in a folder, even if torn. Raises UsageError if there is none.

    Hidden files and files that accompany a database, its logs and its master secret, are left out.
    """
    if place.is_file():
        return place
    if not place.is_dir():
        raise UsageError(f"{place}: there is no such file or folder; expected a backup, or a folder of backups")
    visible = [file for file in place.iterdir() if not file.name.startswith(".") and file.is_file()]
    files = [file for file in visible if not file.name.endswith(COMPANIONS)]
    if not files:
        raise UsageError(f"{place}: there is no backup in the folder; expected files written by evenmatch backup")
    return max(files, key=lambda file: (file.stat().st_mtime, file.name))


def drill(place: Path, live: str | None = None, starting: Callable[[str, int], None] = lambda _, __: None) -> Drill:
    """Restore the latest backup at a path into a temporary folder and check all of it.

    live      the database that was backed up; its events must continue those of the backup
    starting  called with each ladder and its number of events
    Raises UsageError if there is no backup, StoreError if the live database cannot be read.
    """
    begin, file = time.perf_counter(), latest_backup(place)
    written = file.stat().st_mtime
    age = time.time() - written
    problems: list[str] = []
    notes: list[str] = []
    ladders: list[Verification] = []
    heads: list[LadderHead] = []
    if age < -AHEAD:
        problems.append(f"{file}: its time is {-age / 3600:,.1f} hours in the future; expected the time of the backup")
    with tempfile.TemporaryDirectory(prefix="evenmatch-drill-") as folder:
        restored = Path(folder, "restored.db")
        shutil.copyfile(file, restored)
        try:
            damage = _damage(file, restored)
            problems += damage
            if not damage:
                secret_problems, notes = _check_secret(file, _read_check(restored), live)
                problems += secret_problems
                with Service.open(str(restored)) as service:
                    for ladder, count in positions_of(service).items():
                        starting(ladder, count)
                        ladders.append(service.verify(ladder))
                        if not ladders[-1].damage:
                            heads.append(present_head(service, ladder))
        except EvenmatchError as error:
            problems.append(str(error).replace(str(restored), str(file)))
    if live is not None and not problems:
        damaged = {ladder.ladder for ladder in ladders if ladder.damage}
        problems, age = _compare(live, heads, damaged, written, age)
    recorded = max((head.time for head in heads), key=datetime.fromisoformat, default=None)
    seconds = time.perf_counter() - begin
    return Drill(file, age, recorded, seconds, tuple(ladders), tuple(heads), tuple(problems), tuple(notes))


def _damage(file: Path, restored: Path) -> list[str]:
    """Sentences about faults of the restored file, under the name of the backup."""
    with restored.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            return [f"{file}: is not an SQLite file, or its header is lost"]
    database = Database(parse_url(str(restored)))
    try:
        if database.version() is None:
            return [f"{file}: is empty"]
        return [line.replace(str(restored), str(file)) for line in check_database(database).damage]
    finally:
        database.close()


def _check_secret(file: Path, check: bytes | None, live: str | None) -> tuple[list[str], list[str]]:
    """Check that the available master secret opens the sealed values of the backup. Return problems and notes.

    The secret in the file beside the backup counts, because a restored copy would use it; without that file, the secret
    of the live database or the one in the environment.
    check  the check value in the backup; None: nothing is sealed
    """
    if check is None:
        return [], []
    beside = Path(f"{file.resolve()}{SUFFIX}")
    master = MasterSecret(parse_url(str(file) if live is None else live), str(file))
    try:
        if not beside.exists() and live is None and master.text() is None:
            return [], [f"its master secret was not checked; expected --live, a variable with it, or {beside}"]
        sealer = Sealer.read(beside) if beside.exists() else master.sealer()
    except SecretError as error:
        return [str(error)], []
    if not secret_rows.fits(sealer, check):
        return [f"{file} has another master secret than {sealer.origin}; expected the one of that time"], []
    note = (
        f"the backup has no copy of its master secret: if {sealer.origin} is lost too, a restored database cannot "
        "be served; evenmatch backup --with-secret copies it"
    )
    return [], [note] if sealer.origin == str(master.file) and not beside.exists() else []


def _read_check(restored: Path) -> bytes | None:
    """Return the value by which a restored database recognizes its master secret; None if nothing in it is sealed."""
    database = Database(parse_url(str(restored)))
    try:
        with database.read() as store:
            return secret_rows.read_check(store)
    finally:
        database.close()


def _compare(
    live: str, heads: list[LadderHead], damaged: Set[str], written: float, age: float
) -> tuple[list[str], float]:
    """Problems if the events of the live database do not continue those of the backup; and the age, see Drill.

    damaged  ladders of the backup without a head, which are not compared
    written  when the backup was written, seconds since the epoch
    """
    database = Database(parse_url(live))  # which is not upgraded for a trial
    try:
        version = database.version()
        if version != VERSION:
            raise StoreError(f"{database.shown}: its schema is {version}; expected {VERSION}, that of this evenmatch")
        now = database.time()
        with database.read() as store:
            problems = [*_cuts(store, heads), *_lost_ladders(store, damaged | {head.ladder for head in heads}, written)]
            lacking = [] if problems or damaged else list(_times_lacking(store, heads))
        return problems, max([age, *((now - recorded_at) / 1e6 for recorded_at in lacking)])
    finally:
        database.close()


def _cuts(store: Store, heads: list[LadderHead]) -> Iterator[str]:
    """Sentences about ladders whose events in the live database do not continue those of the backup."""
    for kept in heads:
        try:
            finding = cut_of(store, store.head(kept.ladder), kept)
        except UnknownNameError:
            finding = "is not in the live database"
        except StoreError as error:
            finding = str(error)
        if finding is not None:
            yield f"ladder {kept.ladder}: {finding}"


def _lost_ladders(store: Store, kept: Set[str], written: float) -> Iterator[str]:
    """Sentences about ladders of the live database that the backup lacks although it is newer than they are."""
    for head in store.heads():
        if head.name in kept:
            continue
        try:
            start = event_rows.read_seal(store, head.ladder, 1)[1]
        except StoreError as error:
            yield f"ladder {head.name}: {error}"
            continue
        if start < written * 1e6:
            yield (
                f"ladder {head.name}: has been in the live database since {iso_time(start)}, but is not in the backup "
                f"written at {iso_time(int(written * 1e6))}"
            )


def _times_lacking(store: Store, heads: list[LadderHead]) -> Iterator[int]:
    """When the first missing event of each ladder was recorded, in microseconds since the epoch."""
    ends = {kept.ladder: kept.position for kept in heads}
    for head in store.heads():
        end = ends.get(head.name, 0)
        if end < head.position:
            yield event_rows.read_seal(store, head.ladder, end + 1)[1]
