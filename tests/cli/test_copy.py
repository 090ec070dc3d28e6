"""evenmatch copy: everything arrives, what is refused, and how a copy goes on after an interruption."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from databases import KINDS
from evenmatch import rules
from evenmatch.cli.shared.output import working
from evenmatch.corrections.corrections import Ban
from evenmatch.errors import SecretError, StoreError, UsageError
from evenmatch.ledger import table_copy
from evenmatch.ledger.database import Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.secrets import VARIABLE, new_secret
from evenmatch.operations.copy import copy_database
from evenmatch.operations.service import Service
from ledger.sample_matches import duel
from postgres import postgres  # noqa: F401

MATCHES = 30
KEY = "SELECT position, id, seal FROM event ORDER BY 1"


@pytest.fixture(params=[(first, second) for first in KINDS for second in KINDS], ids="-to-".join)
def urls(request, tmp_path):
    """A database with a corrected ladder, and an address with nothing there."""
    source, target = (
        str(tmp_path / f"{name}.db") if kind == "sqlite" else request.getfixturevalue("postgres").fresh_database()
        for name, kind in zip(("old", "new"), request.param, strict=True)
    )
    with Service.open(source) as service:
        service.create_ladder("default", "elo", rules("elo"))
        service.record_many("default", [duel(number, f"p{number % 7}", f"q{number % 5}") for number in range(MATCHES)])
        service.correct("default", Ban("p3", "refund"))
    return source, target


def events_in(url):
    with Service.open(url) as service, service.database.read() as store:
        return [(position, event, bytes(seal)) for position, event, seal in store.all(KEY)]


def test_everything_is_copied_and_new_players_get_new_numbers(urls, run):
    source, target = urls
    ended = run("copy", "--from", source, "--to", target)
    assert ended.code == 0
    assert f"ladder default: everything matches ({MATCHES} matches, 12 players)" in ended.out
    assert events_in(target) == events_in(source)
    with Service.open(target) as service:
        assert service.verify("default").is_equal
        service.record(duel(100, "newcomer", "p1"))
        assert len(service.view("default").snapshot.board) == 13
    assert run("copy", "--from", source, "--to", target).code == 2


def test_a_copy_that_was_interrupted_goes_on_and_nobody_opens_it_meanwhile(urls, monkeypatch):
    source, target = urls
    monkeypatch.setattr(table_copy, "ROWS", 4)
    left, write = [20], Database.write

    def interrupted(database, **options):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return write(database, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            copy_database(source, target, working)
    with pytest.raises(StoreError, match="the copy into this database is not complete; run `evenmatch copy` again"):
        Service.open(target)
    copy_database(source, target, working)
    assert events_in(target) == events_in(source)


def test_a_source_that_was_written_to_is_copied_again(urls, monkeypatch):
    source, target = urls
    count_rows, seen = table_copy.count_rows, []

    def written(store, table):
        if table.name == "event" and len(seen) == 2:  # after both were counted and copied
            with Service.open(source) as service:
                service.record(duel(200, "late", "p1"))
        if table.name == "event":
            seen.append(table)
        return count_rows(store, table)

    with monkeypatch.context() as patch:
        patch.setattr("evenmatch.operations.copy.count_rows", written)
        with pytest.raises(StoreError, match=r"was written to .* copy again with --restart"):
            copy_database(source, target, working)
    with pytest.raises(StoreError, match="differs"):
        copy_database(source, target, working)
    copy_database(source, target, working, restart=True)
    assert events_in(target) == events_in(source)


SLOWLY = """
import sys, time
from evenmatch.cli import main
from evenmatch.ledger import table_copy
from evenmatch.ledger.database import Database
from evenmatch.ledger.database_url import parse_url
table_copy.ROWS = 4
write = Database.write
def slowly(database, **options):
    time.sleep(0.05)
    return write(database, **options)
Database.write = slowly
main()
"""


def copied_events(url):
    """How many events are in a database that no process may open yet; 0 while it has no tables."""
    database = Database(parse_url(url))
    try:
        with database.read() as store:
            return store.all("SELECT COUNT(*) FROM event")[0][0]
    except StoreError:
        return 0
    finally:
        database.close()


def test_a_copy_that_was_killed_in_the_middle_goes_on(urls):
    source, target = urls
    whole = len(events_in(source))
    command = [sys.executable, "-c", SLOWLY, "copy", "--from", source, "--to", target]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        until = time.monotonic() + 60
        while copied_events(target) < 8 and time.monotonic() < until:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert 8 <= copied_events(target) < whole
    with pytest.raises(StoreError, match="the copy into this database is not complete"):
        Service.open(target)
    copy_database(source, target, working)
    assert events_in(target) == events_in(source)


def test_what_cannot_be_copied_is_refused_and_nothing_is_changed(tmp_path):
    old, new, other = (str(tmp_path / f"{name}.db") for name in ("old", "new", "other"))
    with pytest.raises(UsageError, match="there is no such database"):
        copy_database(old, new, working)
    for path in (old, other):
        with Service.open(path) as service:
            service.create_ladder("default", "elo", rules("elo"))
    with pytest.raises(UsageError, match="is not empty; expected an empty database as --to"):
        copy_database(old, other, working)
    with pytest.raises(UsageError, match="is not empty; expected an empty database as --to"):
        copy_database(old, other, working, restart=True)
    assert not Path(new).exists()


@pytest.mark.parametrize("beside", [True, False])
def test_the_master_secret_goes_along(tmp_path, monkeypatch, run, beside):
    monkeypatch.setenv("EVENMATCH_DB", str(tmp_path / "old.db"))
    run("ladder", "create", "default", "--system", "elo")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert run("key", "create", "game", "--scope", "report").code == 0
    old, new = str(tmp_path / "old.db"), str(tmp_path / "new.db")
    if beside:
        copy_database(old, new, working)
        assert Path(f"{new}.secret").read_text() == Path(f"{old}.secret").read_text()
    else:
        monkeypatch.setenv(VARIABLE, new_secret())
        with pytest.raises(SecretError):
            copy_database(old, new, working)
