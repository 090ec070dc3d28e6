"""A full disk, files that cannot be written, a lock that stays, a damaged file: said clearly, nothing half kept."""

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy

from crash.child_tasks import SYSTEM, correct_match, correct_player, hold_lock, in_small_steps, read_only
from crash.children import Child, here_on_path
from crash.numbered_matches import LADDER, numbered_match, numbered_matches
from crash.plain_sql import connect, select_rows
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


@pytest.mark.parametrize("table", ["event", "state", "ladder", "generation"])
def test_a_damaged_page_is_named(path: Path, table: str):
    """Overwritten in the middle of the file, where SQLite keeps that table."""
    page = first_page(path, table)
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(range(256)) * 16)
    with Service.open(str(path)) as service:
        (finding,) = service.verify(LADDER).damage
    assert "the file is not an evenmatch database, or it is damaged" in finding


def test_a_file_that_is_no_database_is_named(tmp_path: Path):
    file = tmp_path / "ladders.db"
    file.write_bytes(b"match_id,played_at\n" * 1000)
    with pytest.raises(StoreError, match="not an evenmatch database"):
        Service.open(str(file))


MATCH_9 = "kind = 'match-recorded' AND id = 'm9'"
LIVE = "generation = (SELECT generation FROM ladder)"
BUSIEST = f"{LIVE} AND player = (SELECT MIN(player) FROM state WHERE {LIVE} AND matches > 0)"
SEEN = "(player, position) IN (SELECT player, position FROM appearance ORDER BY player DESC, position DESC LIMIT 1)"
# table, column, which row, what is told
CHANGES = [
    ("event", "told", MATCH_9, "match 'm9'"),
    ("event", "players", MATCH_9, "match 'm9' at position 11 is not as it was recorded"),
    ("event", "played_at", "kind = 'match-recorded' AND id = 'm40'", "match 'm40' at position 42 is not as it was"),
    ("event", "rated", MATCH_9, "match 'm9'"),
    ("event", "position", "position = 55", "positions 55 to 55 have no event"),
    (
        "journal",
        "lines",
        f"{LIVE} AND position = (SELECT MAX(position) FROM journal)",
        "has another line than a replay",
    ),
    ("state", "record", BUSIEST, "has another state than a replay"),
    ("state", "rating", BUSIEST, "has another state than a replay"),
    *[("state", column, BUSIEST, "has another state than a replay") for column in ("matches", "completed")],
    *[("state", column, BUSIEST, "has another state than a replay") for column in ("last_played", "last_completed")],
    ("checkpoint", "states", LIVE, "the checkpoint at position 54 is not what a replay gives"),
    ("appearance", "position", SEEN, "the table of appearances"),
    ("generation", "time", LIVE, "the last effective time is"),
]


@pytest.mark.parametrize(("table", "column", "which", "told"), CHANGES)
def test_verify_tells_of_a_changed_byte(url: str, table: str, column: str, which: str, told: str):
    with in_small_steps(), Service.open(url) as service:
        service.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
        service.record_many(LADDER, numbered_matches(0, 50))
        correct_match(service, "m10")
        correct_player(service, "player 7", Random(1))
        service.open_season(LADDER)
        service.record(numbered_match(50))
        assert service.verify(LADDER).is_equal
        change_value(url, table, column, which)
        found = service.verify(LADDER)
    assert not found.is_equal
    said = (*found.damage, *found.differences)
    assert any(told in one for one in said), said


def change_value(url: str, table: str, column: str, which: str) -> None:
    """The least change to one value: a bit, a billionth, one, yes for no."""
    ((value,),) = select_rows(url, f"SELECT {column} FROM {table} WHERE {which}")
    if isinstance(value, bytes | memoryview):
        other: object = bytes([value[0] ^ 1]) + bytes(value[1:])
    elif column == "rated":
        other = 1 - int(str(value))
    else:
        assert isinstance(value, int | float)
        other = value + (1e-9 if isinstance(value, float) else 1)
    with connect(url) as connection:
        done = connection.execute(
            sqlalchemy.text(f"UPDATE {table} SET {column} = :other WHERE {which}"), {"other": other}
        )
        assert done.rowcount == 1
