"""A full disk, files that cannot be written, a lock that stays, a damaged file: said clearly, nothing half kept."""

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy

from crash.child_tasks import SYSTEM, hold_lock, read_only
from crash.children import Child, here_on_path
from crash.numbered_matches import LADDER, numbered_match, numbered_matches
from crash.plain_sql import select_rows
from evenmatch import rules
from evenmatch.errors import StoreError
from evenmatch.ledger import database
from evenmatch.operations.service import Service
from postgres import find_place

# How to mount a filesystem that nobody else sees: in a user namespace, as anybody; where those are forbidden, as root.
MOUNTERS = (("unshare", "--user", "--map-root-user", "--mount"), ("unshare", "--mount"))
MOUNT = 'mount -t tmpfs -o mode=755,size=$0 tmpfs "$1" && shift && exec "$@"'
FULL = "the disk is full; nothing was saved. Free some space and try again"
CLOSED = "the file or its folder is not writable; allow writing and try again"


def may_mount(alone: tuple[str, ...]) -> bool:
    """Whether a filesystem can be mounted under this command."""
    tried = [*alone, "sh", "-c", 'mount -t tmpfs tmpfs "$0"', tempfile.gettempdir()]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def play_scene(scene: str, size: str, folder: Path) -> dict[str, object]:
    """What happened in a scene of small_disk.py on a filesystem of that size."""
    alone = next(filter(may_mount, MOUNTERS), None)
    if alone is None:
        pytest.skip("no filesystem can be mounted here: neither in a user namespace nor, as root, outside of a chroot")
    script = Path(__file__).with_name("small_disk.py")
    with here_on_path():
        run = subprocess.run(
            [*alone, "sh", "-c", MOUNT, size, str(folder), sys.executable, str(script), scene, str(folder)],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])  # after lines of the log
    assert isinstance(told, dict)
    return told


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "size"), [("full_disk", "6m"), ("full_server", "130m")])
def test_a_full_disk_is_named_and_writing_goes_on_when_there_is_room(scene: str, size: str):
    """A real filesystem of that size, mounted where nobody else sees it, for SQLite and for PostgreSQL."""
    with TemporaryDirectory(dir=find_place()) as folder:  # which the server's account can enter, too
        Path(folder).chmod(0o755)
        told = play_scene(scene, size, Path(folder))
    for act in ("record", "import", "rebuild"):
        assert FULL in str(told[act])
    assert told["ready before"] == [200, None]
    assert told["ready"] == [503, "the database accepts no writes: the disk is full"]
    assert told["ready after"] == [200, None]
    assert told["kept"] == told["acknowledged"]
    assert int(str(told["acknowledged"])) >= 100
    assert told["standings"] == 40
    assert told["differences"] == []
    assert told["equal"] is True
    assert told["kept after"] == int(str(told["acknowledged"])) + 50


@pytest.fixture
def path() -> Iterator[Path]:
    """A ledger of 50 matches in an SQLite file, in a folder that every account can enter."""
    with TemporaryDirectory(dir=find_place()) as folder:
        file = Path(folder) / "ladders.db"
        with Service.open(str(file)) as service:
            service.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
            service.record_many(LADDER, numbered_matches(0, 50))
        Path(folder).chmod(0o755)
        yield file
        Path(folder).chmod(0o755)


def test_a_disk_with_no_page_left_is_named_and_writing_goes_on_when_there_is_one(path: Path):
    """The same without a filesystem of its own: SQLite is allowed no more pages than it has, and then more."""
    pages = [int(str(select_rows(str(path), "PRAGMA page_count")[0][0]))]

    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages[-1]}")

    sqlalchemy.event.listen(sqlalchemy.Pool, "checkout", limit)
    try:
        with Service.open(str(path)) as service:
            with pytest.raises(StoreError, match=FULL):
                service.record_many(LADDER, numbered_matches(50, 450))
            assert service.ladder(LADDER).matches == 50
            assert service.verify(LADDER).is_equal
            pages.append(100_000)
            service.record_many(LADDER, numbered_matches(40, 450))
            assert service.ladder(LADDER).matches == 450
            assert service.verify(LADDER).is_equal
    finally:
        sqlalchemy.event.remove(sqlalchemy.Pool, "checkout", limit)


def check_read_only(path: Path) -> dict[str, object]:
    """What an account without root's privileges can do with the file: read, and no more."""
    with Child(read_only, str(path)) as child:
        told = child.next()
    assert isinstance(told, dict)
    assert told["matches"] == 50
    assert told["standings"] > 30
    assert told["equal"] is True
    for act in ("record", "import", "correct"):
        assert CLOSED in str(told[act])
    return told


def test_a_read_only_file_can_be_read(path: Path):
    path.chmod(0o444)
    path.parent.chmod(0o777)
    assert check_read_only(path)["new"] is None


def test_a_read_only_folder_can_be_read(path: Path):
    """As one that was put there from a backup, with nothing beside it."""
    path.chmod(0o444)
    path.parent.chmod(0o555)
    unopened = "the file cannot be opened; expected a file in a writable folder"
    assert unopened in str(check_read_only(path)["new"])


def test_a_read_only_folder_can_be_read_while_somebody_writes(path: Path):
    """Who writes keeps a log beside the file, by which others read."""
    with Service.open(str(path)) as service:
        service.ladders()
        path.chmod(0o444)
        path.parent.chmod(0o555)
        check_read_only(path)
        path.parent.chmod(0o755)
        path.chmod(0o644)
        assert service.record(numbered_match(50)).position == 52


def test_a_lock_that_stays_is_named_and_writing_goes_on_after_it(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "PATIENCE", 0.2)
    with Service.open(str(path)) as service, Child(hold_lock, str(path)) as other:
        assert other.next() == "ready"
        with pytest.raises(StoreError, match=r"another process has been writing for .* nothing was saved"):
            service.record(numbered_match(50))
        assert len(service.view(LADDER).snapshot.board) > 30
        other.pipe.send("let go")
        assert other.next() == "done"
        assert service.record(numbered_match(50)).position == 52
        assert service.verify(LADDER).is_equal


def first_page(path: Path, table: str) -> int:
    return int(str(select_rows(str(path), "SELECT rootpage FROM sqlite_schema WHERE name = :table", table=table)[0][0]))


@pytest.mark.parametrize("table", ["event", "state"])
def test_a_damaged_page_is_named(path: Path, table: str):
    """Overwritten in the middle of the file, where SQLite keeps that table."""
    page = first_page(path, table)
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(range(256)) * 16)
    with Service.open(str(path)) as service:
        (finding,) = service.verify(LADDER).damage
    assert "the file is not an evenmatch database, or it is damaged" in finding
