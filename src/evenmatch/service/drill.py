"""Restore a backup into a temporary folder, check it, replay its ladders, and compare it with the live database."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evenmatch.errors import EvenmatchError, StoreError, UnknownNameError, UsageError
from evenmatch.ledger.database import VERSION, Database
from evenmatch.ledger.database_check import check_database
from evenmatch.ledger.database_url import parse_url
from evenmatch.service.ladder_heads import LadderHead, cut_of, positions_of, present_head
from evenmatch.service.replay.verification import Verification
from evenmatch.service.service import Service

MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True)
class Drill:
    """The result of restoring a backup for a trial.

    file      the backup;  age, seconds  of the file, and for all of this
    ladders   the verification of each;  heads  of those that are whole
    problems  sentences: what is wrong with the file, or does not agree with the live database
    """

    file: Path
    age: float
    seconds: float
    ladders: tuple[Verification, ...]
    heads: tuple[LadderHead, ...]
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether the backup can be restored, all in it is equal, and the live database goes on from it."""
        return not self.problems and all(ladder.is_equal or _is_only_old(ladder) for ladder in self.ladders)


def _is_only_old(result: Verification) -> bool:
    """Whether nothing is wrong but that a rebuild is due, as after an update of evenmatch."""
    return not (result.damage or result.differences)


def latest_backup(place: Path) -> Path:
    """The backup at a path: the file, or the newest SQLite file in a folder. Raises UsageError if there is none."""
    if place.is_file():
        return place
    if not place.is_dir():
        raise UsageError(f"{place}: there is no such file or folder; expected a backup, or a folder of backups")
    files = [file for file in place.iterdir() if not file.name.startswith(".") and file.is_file() and _is_sqlite(file)]
    if not files:
        raise UsageError(f"{place}: there is no backup in the folder; expected files written by evenmatch backup")
    return max(files, key=lambda file: (file.stat().st_mtime, file.name))


def _is_sqlite(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


def drill(place: Path, live: str | None = None, starting: Callable[[str, int], None] = lambda _, __: None) -> Drill:
    """Restore the latest backup at a path into a temporary folder and check all of it.

    live      the database that the backup is of; its events must go on from those of the backup
    starting  called with each ladder and its number of events
    Raises UsageError if there is no backup, StoreError if the live database cannot be read.
    """
    begin, file = time.perf_counter(), latest_backup(place)
    age = time.time() - file.stat().st_mtime
    problems: list[str] = []
    ladders: list[Verification] = []
    heads: list[LadderHead] = []
    with tempfile.TemporaryDirectory(prefix="evenmatch-drill-") as folder:
        restored = Path(folder, "restored.db")
        shutil.copyfile(file, restored)
        try:
            problems += _damage(file, restored)
            if not problems:
                with Service.open(str(restored)) as service:
                    for ladder, events in positions_of(service).items():
                        starting(ladder, events)
                        ladders.append(service.verify(ladder))
                        if not ladders[-1].damage:
                            heads.append(present_head(service, ladder))
        except EvenmatchError as error:
            problems.append(str(error).replace(str(restored), str(file)))
    if live is not None and not problems:
        problems += _compare(live, heads)
    return Drill(file, age, time.perf_counter() - begin, tuple(ladders), tuple(heads), tuple(problems))


def _damage(file: Path, restored: Path) -> list[str]:
    """Sentences: faults of the restored file itself, under the name of the backup."""
    if not _is_sqlite(restored):
        return [f"{file}: is not an SQLite file, or its beginning is lost"]
    database = Database(parse_url(str(restored)))
    try:
        if database.version() is None:
            return [f"{file}: is empty"]
        return [line.replace(str(restored), str(file)) for line in check_database(database).damage]
    finally:
        database.close()


def _compare(live: str, heads: list[LadderHead]) -> Iterator[str]:
    """Sentences about ladders whose events in the live database do not go on from those of the backup."""
    database = Database(parse_url(live))  # which is not upgraded for a trial
    try:
        version = database.version()
        if version != VERSION:
            raise StoreError(f"{database.shown}: its schema is {version}; expected {VERSION}, that of this evenmatch")
        with database.read() as store:
            for kept in heads:
                try:
                    finding = cut_of(store, store.head(kept.ladder), kept)
                except UnknownNameError:
                    finding = "is not in the live database"
                except StoreError as error:
                    finding = str(error)
                if finding is not None:
                    yield f"ladder {kept.ladder}: {finding}"
    finally:
        database.close()
