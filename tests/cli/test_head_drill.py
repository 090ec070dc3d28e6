"""evenmatch head, verify --head, backup as it is read back, and drill; faults are made by plain SQL or in the file."""

import json
import os
import re
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from evenmatch.corrections.ladder_heads import LadderHead, parse_heads
from evenmatch.ledger import sqlite_copy
from evenmatch.ledger.secrets import new_secret
from evenmatch.operations.master_secret import confirm
from evenmatch.operations.service import Service

LAST = 12  # position of the last event of the league


def run_sql(db, *statements):
    with closing(sqlite3.connect(db)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


CUT = (
    f"DELETE FROM event WHERE position = {LAST}",
    f"DELETE FROM appearance WHERE position = {LAST}",
    f"UPDATE ladder SET position = {LAST - 1}, seal = (SELECT seal FROM event WHERE position = {LAST - 1})",
)


def damage_page(db, table):
    """Overwrite the middle of the first leaf page of a table's tree."""
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
    with Path(db).open("r+b") as file:
        file.seek((root - 1) * size + 8)
        file.write(b"\xff" * 64)


def test_a_head_is_printed_as_a_line_and_as_json(run, league):
    ended = run("head", "duel")
    assert ended.code == 0
    name, position, seal, moment = ended.out.split()
    assert (name, position, len(seal), moment[-1]) == ("duel", str(LAST), 32, "Z")
    (told,) = json.loads(run("head", "--json").out)["heads"]
    assert told == {"ladder": "duel", "position": LAST, "seal": seal, "time": moment}
    assert run("head", "nowhere").code == 2


@pytest.mark.parametrize("how", ["line", "json", "file"])
def test_verify_compares_with_a_head_kept_elsewhere(run, league, how):
    head = run("head", *(["--json"] if how == "json" else [])).out
    if how == "file":
        Path("heads.txt").write_text(head, encoding="utf-8")
        head = "heads.txt"
    assert run("verify", "--head", head).code == 0
    assert run("void", "d03").code == 0
    assert run("verify", "--head", head).code == 0
    run_sql(league, "DELETE FROM correction WHERE position = 13")
    run_sql(league, *(line.replace("12", "13").replace("11", "12") for line in CUT))
    run_sql(league, "UPDATE ladder SET corrected = 1", "UPDATE generation SET planned = 1")
    later = run("head").out
    run_sql(league, *CUT, "DELETE FROM journal")
    run("rebuild", "--whole")
    assert run("verify").code == 0
    ended = run("verify", "--head", later)
    assert ended.code == 1
    assert f"the ledger ends at position {LAST - 1}, before the kept head at position {LAST}" in ended.out
    assert ended.out.endswith("a rebuild cannot repair that; restore a backup from before the damage\n")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["lines", "json"])
def test_heads_as_text_may_be_longer_than_the_name_of_a_file(run, league, options):
    for number in range(10):
        assert run("ladder", "create", f"ladder{number}", "--system", "elo").code == 0
    heads = run("head", *options).out
    assert len(heads) > 2 * 255
    ended = run("verify", "--head", heads)
    assert (ended.code, ended.err) == (0, "")
    assert "not compared" not in ended.out


def test_a_head_of_a_ladder_that_is_gone_is_a_finding(run, league):
    ended = run("verify", "--head", f"other 3 {'0' * 32} 2026-01-01T00:00:00Z")
    assert ended.code == 1
    assert "ladder other: missing from the database" in ended.out


def test_a_ladder_without_a_head_is_named_and_is_a_finding_if_it_was_asked_for(run, league):
    heads = run("head").out
    assert run("ladder", "create", "later", "--system", "elo").code == 0
    ended = run("verify", "--head", heads)
    assert ended.code == 0
    assert "ladder later: not compared with any head; expected one in --head" in ended.out
    told = json.loads(run("verify", "--head", heads, "--json").out)
    assert (told["equal"], told["without_head"]) == (True, ["later"])
    assert run("verify", "--head", heads, "--ladder", "duel").code == 0
    ended = run("verify", "--head", heads, "--ladder", "later")
    assert ended.code == 1
    assert "ladder later: not compared with any head" in ended.out
    assert json.loads(run("verify", "--head", heads, "--ladder", "later", "--json").out)["equal"] is False
    assert json.loads(run("verify", "--json").out)["without_head"] == []


@pytest.mark.parametrize("text", ["duel 12", "duel x 00 now", "{", "[1]", "", f"duel 0 {'0' * 32} now"])
def test_a_text_that_is_no_head_is_refused_with_what_is_expected(run, league, text):
    ended = run("verify", "--head", text)
    assert ended.code == 1
    assert "expected the output of `evenmatch head`" in ended.err


def test_an_altered_first_event_is_a_finding_and_not_an_unknown_parameter(run, league):
    run_sql(league, "UPDATE event SET body = REPLACE(body, '\"k\"', '\"q\"') WHERE position = 1")
    ended = run("verify")
    assert ended.code == 1
    assert "rules-changed 'ladder:duel' at position 1 was altered" in ended.out
    assert "restore a backup" in ended.out
    for command in (("ladder", "show", "duel"), ("standings",), ("rebuild", "--whole")):
        ended = run(*command)
        assert ended.code == 3, command
        assert "at position 1 is damaged" in ended.err


def test_damaged_settings_are_repaired_by_a_rebuild(run, league):
    run_sql(league, "UPDATE ladder SET settings = 'x'")
    ended = run("verify")
    assert "the settings in the ladder's row are not those of the event at position 1" in ended.out
    assert "evenmatch rebuild --ladder duel --whole" in ended.out
    assert run("rebuild", "--whole").code == 0
    assert run("verify").code == 0


@pytest.mark.parametrize("table", ["name", "uq_event_id", "pk_appearance"])
def test_a_damaged_page_of_the_file_is_found(run, league, table):
    with closing(sqlite3.connect(league)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE rootpage > 0")]
    target = table if table in names else next(name for name in names if "autoindex_event" in name)
    damage_page(league, target)
    ended = run("verify", "--json")
    if ended.code == 1:
        assert json.loads(ended.out)["database"]["damage"]
    else:
        assert ended.code == 3
        assert "damaged" in ended.err


def test_rows_that_an_index_does_not_have_are_found(run, league):
    with closing(sqlite3.connect(league)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'ix_name_player'").fetchone()[0]
        connection.execute(
            "UPDATE sqlite_schema SET sql = ? WHERE name = 'ix_name_player'", (f"{sql} WHERE player > 2",)
        )
        connection.commit()
    with closing(sqlite3.connect(league)) as connection:
        connection.execute("REINDEX ix_name_player")
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'ix_name_player'", (sql,))
        connection.commit()
    ended = run("verify")
    assert ended.code == 1
    assert ended.out.startswith("the database is damaged\n")
    assert "ix_name_player" in ended.out


SPOILED = {
    "a page": lambda file: damage_page(file, "event"),
    "a row": lambda file: run_sql(file, "DELETE FROM player WHERE name = 'a'"),
    "a head": lambda file: run_sql(file, "UPDATE ladder SET position = 3"),
    "its end": lambda file: os.truncate(file, file.stat().st_size // 2),
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_backup_that_does_not_read_back_is_refused_and_leaves_the_former_one(
    run, league, monkeypatch, tmp_path, what
):
    assert run("backup", "copy.db").code == 0
    former = Path("copy.db").read_bytes()
    copy = sqlite_copy.copy_to

    def spoil(database, file, shown):
        contents = copy(database, file, shown)
        SPOILED[what](file)
        return contents

    monkeypatch.setattr(sqlite_copy, "copy_to", spoil)
    ended = run("backup", "copy.db", "--replace")
    assert (ended.code, ended.out) == (3, "")
    assert re.match(r"error: copy\.db: the (last events of the )?copy ", ended.err)
    assert Path("copy.db").read_bytes() == former
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.fixture
def backups(run, league):
    """A folder with an old and a newer backup of the league."""
    Path("backups").mkdir()
    assert run("backup", "backups/old.db").code == 0
    assert run("void", "d03").code == 0
    assert run("backup", "backups/new.db").code == 0
    hour_ago = time.time() - 3600
    os.utime("backups/old.db", (hour_ago, hour_ago))
    return Path("backups")


def test_a_drill_restores_the_newest_backup_and_compares_it_with_the_live_database(run, backups, league):
    assert run("void", "d04").code == 0
    ended = run("drill", "backups", "--live", league, "--max-age", "0.5")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("backups/new.db: can be restored, checked in ")
    assert "ladder duel: 13 events, 11 matches, 6 players, everything matches" in ended.out
    assert ended.out.endswith("the live database continues from it\n")
    told = json.loads(run("drill", "backups", "--json").out)
    assert (told["sound"], told["heads"][0]["position"]) == (True, 13)
    assert run("drill", "backups/old.db", "--max-age", "0.5").code == 1
    assert run("drill", "nowhere").code == 2


def test_a_drill_sees_a_live_database_whose_end_was_cut(run, backups, league):
    cut = [line.replace("12", "13").replace("11", "12") for line in CUT]
    run_sql(league, *cut, "DELETE FROM correction WHERE position = 13")
    ended = run("drill", "backups", "--live", league)
    assert ended.code == 1
    assert "ladder duel: the ledger ends at position 12, before the kept head at position 13" in ended.out


BROKEN = {
    "truncated": lambda file: os.truncate(file, file.stat().st_size // 2),
    "emptied": lambda file: os.truncate(file, 0),
    "not a database": lambda file: file.write_bytes(b"x" * 5000),
    "a damaged page": lambda file: damage_page(file, "event"),
    "a removed event": lambda file: run_sql(file, "DELETE FROM event WHERE position = 5"),
    "another rating": lambda file: run_sql(file, "UPDATE state SET rating = rating + 1"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_drill_fails_for_a_backup_that_is_not_what_was_written(run, backups, what):
    BROKEN[what](backups / "new.db")
    ended = run("drill", "backups/new.db")
    assert ended.code == 1
    assert ended.out.startswith("backups/new.db: cannot be relied on")
    assert len(ended.out.splitlines()) > 1
    assert json.loads(run("drill", "backups/new.db", "--json").out)["sound"] is False


def test_a_drill_leaves_the_backup_and_the_live_database_as_they_are(run, backups, league):
    shutil.copy(league, "before.db")
    before = (backups / "new.db").read_bytes()
    assert run("drill", "backups", "--live", league).code == 0
    assert (backups / "new.db").read_bytes() == before
    assert [file.name for file in backups.iterdir() if file.name not in ("old.db", "new.db")] == []


@pytest.mark.parametrize("content", [b"", b"x" * 5000, b"SQLite format 3\0" + b"x" * 5000])
def test_a_drill_of_a_folder_takes_the_newest_file_also_if_it_is_torn(run, backups, content):
    (backups / "torn.db").write_bytes(content)
    later = time.time() + 5
    for name in ("new.db-wal", "new.db-shm", "new.db.secret", ".torn.db"):
        (backups / name).write_bytes(b"x")
        os.utime(backups / name, (later, later))
    ended = run("drill", "backups")
    assert ended.code == 1
    assert ended.out.startswith("backups/torn.db: cannot be relied on")


def test_a_drill_fails_for_a_backup_whose_time_is_in_the_future(run, backups):
    tomorrow = time.time() + 86400
    os.utime("backups/new.db", (tomorrow, tomorrow))
    ended = run("drill", "backups", "--max-age", "26")
    assert ended.code == 1
    assert "backups/new.db: its time is 24.0 hours in the future" in ended.out


def test_a_drill_sees_the_age_of_an_old_backup_that_was_copied_again(run, backups, league):
    shutil.copyfile("backups/old.db", "backups/again.db")
    assert run("drill", "backups", "--live", league, "--max-age", "1").code == 0
    run_sql(league, "UPDATE event SET recorded_at = recorded_at - 7200000000")
    ended = run("drill", "backups", "--live", league, "--max-age", "1")
    assert ended.code == 1
    assert "it is 2.0 hours old; expected at most 1" in ended.out
    assert "  its last event was recorded at 20" in ended.out
    assert run("drill", "backups", "--max-age", "1").code == 0


def test_a_drill_compares_the_master_secret_with_the_one_that_the_backup_is_sealed_with(run, league, monkeypatch):
    monkeypatch.delenv("EVENMATCH_SECRET", raising=False)
    with Service.open(str(league)) as service:
        confirm(service.database)
    assert run("backup", "copy.db").code == 0
    assert "its master secret was not checked" in run("drill", "copy.db").out
    ended = run("drill", "copy.db", "--live", league)
    assert ended.code == 0
    assert "another master secret" not in ended.out
    secret = Path(f"{league}.secret")
    monkeypatch.setenv("EVENMATCH_SECRET", secret.read_text(encoding="utf-8").strip())
    assert "secret" not in run("drill", "copy.db").out
    monkeypatch.setenv("EVENMATCH_SECRET", new_secret())
    for arguments in ((), ("--live", league)):
        ended = run("drill", "copy.db", *arguments)
        assert ended.code == 1
        assert "copy.db has another master secret than EVENMATCH_SECRET" in ended.out
    monkeypatch.delenv("EVENMATCH_SECRET")
    secret.unlink()
    ended = run("drill", "copy.db", "--live", league)
    assert ended.code == 1
    assert "copy.db: the master secret is missing" in ended.out


NO_LADDER = ("ladder", "event", "generation", "correction", "state", "journal", "checkpoint", "appearance", "season")


def test_a_drill_misses_a_ladder_that_is_in_the_live_database_but_not_in_the_backup(run, backups, league):
    run_sql(backups / "new.db", *(f"DELETE FROM {table}" for table in NO_LADDER))
    ended = run("drill", "backups", "--live", league)
    assert ended.code == 1
    assert "ladder duel: has been in the live database since 20" in ended.out


def test_a_drill_knows_that_a_ladder_may_be_newer_than_the_backup(run, backups, league):
    assert run("ladder", "create", "later", "--system", "elo").code == 0
    assert run("drill", "backups", "--live", league).code == 0


def test_a_drill_says_that_there_is_no_ladder_in_a_backup_of_an_empty_database(run, tmp_path):
    live = str(tmp_path / "live.db")
    Service.open(live).close()
    assert run("backup", tmp_path / "empty.db", "--db", live).code == 0
    ended = run("drill", tmp_path / "empty.db", "--live", live)
    assert ended.code == 0
    assert "  it contains no ladders\n" in ended.out


@pytest.mark.parametrize("name", ["du\u200bel", "{x", "[1]", '"q"', " two  words ", "line\u2028end", "a\nb"])
def test_a_head_of_a_ladder_with_any_name_can_be_read_back(name):
    head = LadderHead(name, 3, "0" * 32, "2026-01-01T00:00:00Z")
    assert head.line().isprintable()
    assert parse_heads(head.line()) == [head]
    assert parse_heads(f"{head.line()}\n{head.line()}\n") == [head, head]


@pytest.mark.parametrize("name", ["du\u200bel", "{x", " two  words "])
def test_verify_reads_what_head_printed_of_a_ladder_with_an_odd_name(run, league, name):
    assert run("ladder", "create", name, "--system", "elo").code == 0
    ended = run("verify", "--head", run("head").out)
    assert (ended.code, "not compared" in ended.out) == (0, False)


def test_a_head_that_an_earlier_version_printed_of_a_name_like_json_is_read():
    (head,) = parse_heads(f"{{x 3 {'0' * 32} 2026-01-01T00:00:00Z")
    assert head.ladder == "{x"


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb", "a\u2028b"])
def test_a_new_ladder_cannot_have_a_name_with_control_characters(run, league, name):
    ended = run("ladder", "create", name, "--system", "elo")
    assert ended.code != 0
    assert "contains a control character; expected" in ended.err
