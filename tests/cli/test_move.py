"""evenmatch move: what it refuses, how it goes on after an interruption, and how it is given up."""

import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import chain, count
from pathlib import Path

import pytest

from evenmatch import rules
from evenmatch.cli.shared.output import working
from evenmatch.errors import MoveError, StoreError
from evenmatch.ledger import table_copy
from evenmatch.ledger.database import VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.move_marks import read_mark
from evenmatch.ledger.schema import METADATA
from evenmatch.ledger.secrets import VARIABLE, new_secret
from evenmatch.operations import move
from evenmatch.operations.service import Service
from ledger.sample_matches import duel
from postgres import postgres  # noqa: F401

pytestmark = pytest.mark.slow

KINDS = ("sqlite", "postgresql")
MATCHES = 30
DEADLINE = 60  # seconds
TABLES = METADATA.sorted_tables
ROWS = "FROM event WHERE kind = 'match-recorded'"


@pytest.fixture(params=[KINDS, KINDS[::-1]], ids=["to-postgresql", "to-sqlite"])
def kinds(request):
    """The kinds of the source and the target; the tests of the service move between databases of one kind, too."""
    return request.param


@pytest.fixture
def source(request, kinds, tmp_path):
    """A ladder with some matches."""
    url = str(tmp_path / "old.db") if kinds[0] == "sqlite" else fresh(request)
    with Service.open(url) as service:
        service.create_ladder("default", "elo", rules("elo"))
        service.record_many("default", [duel(n, *names(n)) for n in range(MATCHES)])
    return url


@pytest.fixture
def target(request, kinds, tmp_path):
    """An address with nothing there yet."""
    return str(tmp_path / "new.db") if kinds[1] == "sqlite" else fresh(request)


def fresh(request):
    return request.getfixturevalue("postgres").fresh_database()


def names(number):
    return f"p{number % 7}", f"q{number % 5}"


def matches_in(url):
    with Service.open(url) as service, service.database.read() as store:
        return store.all(f"SELECT COUNT(*) {ROWS}")[0][0]


def record(url, number=1000):
    """Record another match; the error if it is refused."""
    with Service.open(url) as service:
        try:
            service.record(duel(number, "ann", "bob"))
        except StoreError as error:
            return error
    return None


class Interruption(BaseException):
    """The end of a process, at a transaction of the test's choice."""


class Interrupting:
    """Ends the process at the n-th write transaction, before it begins; none follows. left: until then"""

    def __init__(self, patch):
        self.left = 0
        write, test = Database.write, self

        @contextmanager
        def written(database, **options):
            test.left -= 1
            if test.left <= 0:
                raise Interruption
            with write(database, **options) as store:
                yield store

        patch.setattr(Database, "write", written)


def test_a_move_that_ends_at_any_transaction_goes_on(run, source, target):
    """Some transactions of the copying, then each of the end; twenty processes, which takes some seconds."""
    states = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_copy, "ROWS", 4)
        interrupting = Interrupting(patch)
        for attempts, left in enumerate(chain((1, 2, 3, 4, 5, 15), count(1)), 1):
            interrupting.left = left
            try:
                move.move(source, target, working)
            except Interruption:
                states.add(state_of(source))
                assert attempts < 50
            else:
                break
    assert attempts > 10
    assert states == {None, "copying", "closed", "moved"}
    assert run("verify", "--db", target).code == 0
    assert matches_in(target) == MATCHES
    assert record(target) is None
    assert "was moved" in str(record(source))


def state_of(url):
    """How far the source of a move is; None: it is not being moved."""
    database = Database(parse_url(url))
    try:
        with database.read() as store:
            mark = read_mark(store)
    finally:
        database.close()
    return None if mark is None else mark.state


def during(title, act):
    """A report of progress, to be given to a move, that does something when the first part with this title begins."""
    left = [act]

    @contextmanager
    def reporting(what, _):
        if what.startswith(title) and left:
            left.pop()()
        yield lambda _: None

    return reporting


def test_changes_that_become_visible_after_younger_ones_arrive(postgres, tmp_path):  # noqa: F811
    """On PostgreSQL a transaction can be committed after others that changed their rows later."""
    source, target = postgres.fresh_database(), str(tmp_path / "new.db")
    with Service.open(source) as service, ExitStack() as early:
        service.create_ladder("default", "elo", rules("elo"))

        def begin():
            store = early.enter_context(service.database.write(patient=True))
            store.run("INSERT INTO counter (name, value) VALUES ('first', 1)")
            with service.database.write() as store:
                store.run("INSERT INTO counter (name, value) VALUES ('second', 2)")

        begun = during("copying what", begin)
        copied = during("verifying", early.close)
        found = []

        @contextmanager
        def reporting(what, total):
            if what.startswith("verifying"):
                found.append(counters_in(target))
            with begun(what, total) as progress, copied(what, total):
                yield progress

        move.move(source, target, reporting)
    assert found == [[("second", 2)]]
    assert counters_in(target) == [("first", 1), ("second", 2)]


def counters_in(url):
    database = Database(parse_url(url))
    try:
        with database.read() as store:
            return store.all("SELECT name, value FROM counter WHERE name IN ('first', 'second') ORDER BY name")
    finally:
        database.close()


def test_a_second_run_takes_over_and_the_first_one_ends(run, source, target):
    taken_over = during("verifying", lambda: moved.append(run("move", "--from", source, "--to", target)))
    moved = []
    with pytest.raises(MoveError, match="another evenmatch move has taken over, or has ended this one"):
        move.move(source, target, taken_over)
    assert moved[0].code == 0, moved[0].err
    assert matches_in(target) == MATCHES
    assert "was moved" in str(record(source))
    assert run("verify", "--db", target).code == 0


def test_a_move_that_was_cancelled_meanwhile_ends(run, source, target):
    cancelled = during("verifying", lambda: run("move", "--from", source, "--to", target, "--cancel"))
    with pytest.raises(StoreError):
        move.move(source, target, cancelled)
    assert state_of(source) is None
    assert record(source) is None


def test_a_source_that_was_upgraded_meanwhile_takes_writes_again(source, target):
    def set_version(text):
        database = Database(parse_url(source))
        with database.write() as store:
            store.run("UPDATE alembic_version SET version_num = ?", text)
        database.close()

    with pytest.raises(MoveError, match=r"its schema is later.*goes on taking writes"):
        move.move(source, target, during("verifying", lambda: set_version("later")))
    set_version(VERSION)
    assert record(source) is None
    move.move(source, target, working)
    assert matches_in(target) == MATCHES + 1


def test_a_source_goes_on_when_the_connection_to_the_target_is_lost(run, postgres, tmp_path):  # noqa: F811
    source, target = str(tmp_path / "old.db"), postgres.fresh_database()
    with Service.open(source) as service:
        service.create_ladder("default", "elo", rules("elo"))
        service.record_many("default", [duel(n, *names(n)) for n in range(MATCHES)])
    with pytest.raises(MoveError, match=r"the connection was lost or refused.*goes on taking writes"):
        move.move(source, target, during("verifying", postgres.crash))
    assert record(source) is None
    postgres.start()
    assert run("move", "--from", source, "--to", target).code == 0
    assert matches_in(target) == MATCHES + 1


SLOW_MOVE = """
import time
from evenmatch.cli import main
from evenmatch.ledger import table_copy
insert, table_copy.ROWS = table_copy.copy_rows, 3
def slowly(reading, target, mark, table, counted):
    insert(reading, target, mark, table, lambda rows: (counted(rows), time.sleep(0.02)))
from evenmatch.service import move_steps
move_steps.copy_rows = slowly
main()
"""


def test_a_killed_move_goes_on(run, source, target):
    """The processes of the other test end in good order; these get SIGKILL. Each takes a second to start."""
    command = [sys.executable, "-c", SLOW_MOVE, "move", "--from", source, "--to", target]
    for rows in (20, 120):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + DEADLINE
            while rows_in(target) < rows:
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert record(source, 3000 + rows) is None
    ended = run("move", "--from", source, "--to", target)
    assert ended.code == 0, ended.err
    assert run("verify", "--db", target).code == 0
    assert matches_in(target) == MATCHES + 2


def rows_in(url):
    """The number of rows in all tables of a database into which a move copies."""
    if "://" not in url and not Path(url).exists():
        return 0
    database = Database(parse_url(url))
    try:
        with database.read() as store:
            return 0 if database.version() is None else sum(table_copy.count_rows(store, table) for table in TABLES)
    finally:
        database.close()


def test_reports_that_were_acknowledged_while_a_move_began_are_in_the_target_once(run, source, target):
    acknowledged, refused = [], []

    def report():
        with Service.open(source) as service:
            for number in range(2000, 2400):
                try:
                    service.record(duel(number, *names(number)))
                    acknowledged.append(f"m{number}")
                except MoveError:
                    refused.append(number)
                    return

    with ThreadPoolExecutor(1) as pool:
        reporting = pool.submit(report)
        wait_until(lambda: len(acknowledged) > 5)
        ended = run("move", "--from", source, "--to", target)
        reporting.result()
    assert ended.code == 0, ended.err
    assert refused, "the move ended after the last report"
    with Service.open(target) as service:
        service.record(duel(refused[0], *names(refused[0])))  # sent again, to the new processes
        with service.database.read() as store:
            ids = [row[0] for row in store.all(f"SELECT id {ROWS} ORDER BY position")]
    assert ids == [*(f"m{n}" for n in range(MATCHES)), *acknowledged, f"m{refused[0]}"]


def wait_until(is_so):
    deadline = time.monotonic() + DEADLINE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def interrupted(source, target):
    """A move that ended in the middle."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_copy, "ROWS", 4)
        interrupting = Interrupting(patch)
        interrupting.left = 12
        with pytest.raises(Interruption):
            move.move(source, target, working)
    return source, target


def test_no_command_opens_the_target_of_an_unfinished_move(run, interrupted):
    source, target = interrupted
    for command in (("standings",), ("verify",), ("serve", "--port", "0"), ("ladder", "list")):
        ended = run(*command, "--db", target)
        assert ended.code == 3, ended
        assert "a move into this database is not finished" in ended.err
    assert record(source) is None
    assert run("standings", "--db", source).code == 0
    assert run("move", "--from", target, "--to", source).code == 3


def test_a_cancelled_move_leaves_the_source_as_it_was(run, interrupted):
    source, target = interrupted
    assert run("move", "--from", source, "--to", target, "--cancel").code == 0
    assert record(source) is None
    assert run("verify", "--db", source).code == 0
    database = Database.open(target)
    database.close()
    again = run("move", "--from", source, "--to", target)
    assert again.code == 0, again.err
    assert matches_in(target) == MATCHES + 1


def test_a_restarted_move_begins_with_the_first_row(run, interrupted):
    source, target = interrupted
    restarted = run("move", "--from", source, "--to", target, "--restart")
    assert restarted.code == 0, restarted.err
    assert matches_in(target) == MATCHES


def test_a_part_of_another_move_is_not_mixed_with_this_one(run, interrupted, tmp_path):
    source, target = interrupted
    other = str(tmp_path / "other.db")
    with Service.open(other) as service:
        service.create_ladder("default", "elo", rules("elo"))
    refused = run("move", "--from", other, "--to", target)
    assert refused.code == 3
    assert "contains a part of another move" in refused.err
    assert record(other) is None
    elsewhere = run("move", "--from", source, "--to", str(tmp_path / "third.db"))
    assert elsewhere.code == 2
    assert "is being moved to" in elsewhere.err
    assert run("move", "--from", source, "--to", target).code == 0


def test_rows_that_differ_end_the_move(run, interrupted):
    """As by a hand that reaches into the target; the move is finished by none but a new copy."""
    source, target = interrupted
    database = Database(parse_url(target))
    with database.write() as store:
        store.run("UPDATE audit SET at = at + 1")
        store.run("UPDATE counter SET value = value + 1")
        store.run("UPDATE event SET recorded_at = recorded_at + 1")
        store.run("UPDATE appearance SET position = position + 1000 WHERE position = 3")
    database.close()
    refused = run("move", "--from", source, "--to", target)
    assert refused.code == 3
    assert re.search("table \\w+ of .* is not equal to that of", refused.err)
    assert "a move into this database is not finished" in run("verify", "--db", target).err
    assert run("move", "--from", source, "--to", target, "--restart").code == 0


def test_a_target_with_rows_is_refused_and_nothing_is_touched(run, source, target):
    with Service.open(target) as service:
        service.create_ladder("mine", "elo", rules("elo"))
    for options in ((), ("--restart",)):
        refused = run("move", "--from", source, "--to", target, *options)
        assert refused.code == 2
        assert "is not empty; expected an empty database" in refused.err
    assert record(source) is None
    assert run("ladder", "list", "--db", target).code == 0
    itself = run("move", "--from", source, "--to", source)
    assert itself.code == 2
    assert record(source, 1001) is None


def test_what_cannot_be_moved_is_refused(run, tmp_path, source):
    there = str(tmp_path / "new.db")
    for given, code, said in (
        (("--from", str(tmp_path / "none.db"), "--to", there), 2, "there is no such database"),
        (("--from", source, "--to", "postgresql://nobody@127.0.0.1:1/none"), 3, "connection"),
        (("--from", source, "--to", str(tmp_path / "none" / "new.db")), 2, "does not exist"),
        (("--from", "mysql://a/b", "--to", there), 2, "is not a supported database"),
        (("--from", source, "--to", there, "--cancel"), 2, "is not being moved"),
    ):
        refused = run("move", *given)
        assert refused.code == code, refused
        assert said in refused.err
    assert not Path(tmp_path / "none.db").exists()
    assert record(source) is None


def test_a_role_that_may_not_create_tables_is_refused_and_nothing_is_touched(run, postgres, tmp_path):  # noqa: F811
    source = str(tmp_path / "old.db")
    with Service.open(source) as service:
        service.create_ladder("default", "elo", rules("elo"))
    url = postgres.fresh_database()
    database = Database(parse_url(url))
    with database.write() as store:
        store.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        store.run("DROP ROLE IF EXISTS guest")
        store.run("CREATE ROLE guest LOGIN")
    database.close()
    refused = run("move", "--from", source, "--to", url.replace("postgres@", "guest@"))
    assert refused.code == 3
    assert "permission denied" in refused.err
    assert record(source) is None


def test_a_move_that_finds_the_disk_full_goes_on_when_there_is_room(run, tmp_path):
    source, target = str(tmp_path / "old.db"), str(tmp_path / "new.db")
    with Service.open(source) as service:
        service.create_ladder("default", "elo", rules("elo"))
        service.record_many("default", [duel(n, *names(n)) for n in range(MATCHES)])
    write = Database.write

    @contextmanager
    def written(database, **options):
        with write(database, **options) as store:
            if options.get("durable") is False:  # rows are copied
                store.run("PRAGMA max_page_count = 1")  # SQLite takes the present size instead
            yield store

    Database.open(target).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "write", written)
        refused = run("move", "--from", source, "--to", target)
    assert refused.code == 3
    assert "the disk is full" in refused.err
    assert "goes on taking writes: type the same command again to go on" in refused.err
    assert run("move", "--from", source, "--to", target).code == 0
    assert matches_in(target) == MATCHES


def test_a_database_of_another_version_is_upgraded_first(run, tmp_path):
    old = str(tmp_path / "old.db")
    database = Database.open(old)
    with database.write() as store:
        store.run("UPDATE alembic_version SET version_num = '0014'")
    database.close()
    refused = run("move", "--from", old, "--to", str(tmp_path / "new.db"))
    assert refused.code == 3
    assert f"its schema is 0014; expected {VERSION}, that of this evenmatch. Upgrade it first" in refused.err


def test_a_finished_move_is_not_done_again_and_is_undone_only_on_purpose(run, source, target):
    assert run("move", "--from", source, "--to", target).code == 0
    again = run("move", "--from", source, "--to", target)
    assert again.code == 3
    assert "was moved to" in again.err
    assert record(target) is None
    assert run("move", "--from", source, "--to", target, "--cancel").code == 2  # there is no terminal to ask
    assert isinstance(record(source), MoveError)
    assert run("move", "--from", source, "--to", target, "--cancel", "--yes").code == 0
    assert record(source) is None
    assert matches_in(target) == MATCHES + 1


def test_a_source_goes_on_without_a_target_that_is_lost(run, source, tmp_path):
    lost = tmp_path / "lost" / "new.db"
    lost.parent.mkdir()
    assert run("move", "--from", source, "--to", lost).code == 0
    lost.write_bytes(b"not a database any more" * 1000)
    ended = run("move", "--from", source, "--to", lost, "--cancel", "--yes")
    assert ended.code == 3
    assert "takes writes again, but the target could not be emptied" in ended.err
    assert record(source) is None


def test_a_master_secret_beside_the_database_goes_with_it(run, tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    old, new = str(tmp_path / "old.db"), str(tmp_path / "new.db")
    Database.open(old).close()
    assert run("key", "create", "operator", "--scope", "admin", "--db", old).code == 0
    other = Path(f"{new}.secret")
    other.write_text(new_secret())
    refused = run("move", "--from", old, "--to", new)
    assert refused.code == 3
    assert "sealed with another master secret" in refused.err
    other.unlink()
    moved = run("move", "--from", old, "--to", new)
    assert moved.code == 0, moved.err
    assert other.read_text() == Path(f"{old}.secret").read_text()
    assert run("key", "create", "another", "--scope", "admin", "--db", new).code == 0
