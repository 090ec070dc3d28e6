"""evenmatch verify, rebuild and backup; and an import that is killed in the middle."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from evenmatch import write
from evenmatch.lab.sample import season as season_of_teams
from evenmatch.operations.backup import dump_line


def run_sql(db, sql):
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(sql)
        connection.commit()


def test_verify_says_that_all_is_equal(run, league):
    ended = run("verify")
    assert (ended.code, ended.out, ended.err) == (0, "ladder duel: everything matches (11 matches, 6 players)\n", "")
    told = json.loads(run("verify", "--json").out)
    assert told["equal"] is True
    assert told["ladders"][0]["differences"] == []


def test_verify_finds_a_changed_number_names_it_and_says_what_to_type(run, league):
    run_sql(league, "UPDATE state SET rating = rating + 1, record = zeroblob(length(record)) WHERE matches = 5")
    ended = run("verify")
    assert ended.code == 1
    assert ended.out.startswith("ladder duel: not equal (11 matches, 6 players)\n  player 'a' has a different state")
    assert "type: evenmatch rebuild --ladder duel --whole" in ended.out
    told = json.loads(run("verify", "--ladder", "duel", "--json").out)
    assert (told["equal"], len(told["ladders"][0]["differences"])) == (False, 1)
    assert run("rebuild", "--ladder", "duel", "--whole").code == 0
    assert run("verify").code == 0


def test_a_rebuild_that_is_due_is_said_and_done(run, league):
    before = run("standings", "--as-of", "last").out
    run_sql(league, "UPDATE ladder SET due = 1")
    ended = run("verify")
    assert ended.code == 1
    assert "a correction needs a rebuild from position 1 on; type: evenmatch rebuild --ladder duel" in ended.out
    assert "a rebuild is due" in run("ladder", "show", "duel").out
    assert "waits for a rebuild" in run("standings", "--as-of", "last").err
    ended = run("rebuild")
    assert ended.out.startswith("ladder duel: 11 matches rated again; 0 changed")
    assert run("rebuild").out == "ladder duel: no rebuild was due\n"
    assert json.loads(run("rebuild", "--json").out) == {"ladders": [{"ladder": "duel", "rebuilt": None}]}
    assert run("standings", "--as-of", "last").out == before


def test_a_ledger_that_is_damaged_is_mended_by_a_backup_and_not_by_a_rebuild(run, league):
    run_sql(league, "DELETE FROM event WHERE id = 'd05'")
    ended = run("verify")
    assert ended.code == 1
    assert ended.out.startswith("ladder duel: its ledger is damaged\n  ")
    assert ended.out.endswith("\n  a rebuild cannot repair that; restore a backup from before the damage\n")
    assert "evenmatch rebuild" not in ended.out
    ended = run("verify", "--json")
    assert ended.code == 1
    told = json.loads(ended.out)
    assert told["equal"] is False
    assert told["ladders"][0]["damage"]


def test_a_database_of_other_kernels_is_read_and_written_and_rated_again_once_with_the_same_numbers(run, league):
    before = run("standings", "--as-of", "last").out
    run_sql(league, "UPDATE generation SET engine = 'older'")
    ended = run("verify")
    assert ended.code == 1
    assert "another version of evenmatch" in ended.out
    assert run("standings", "--as-of", "last").out == before
    assert run("rebuild").out.startswith("ladder duel: 11 matches rated again; 0 changed")
    assert run("rebuild").out == "ladder duel: no rebuild was due\n"
    assert run("verify").code == 0
    assert run("standings", "--as-of", "last").out == before


def test_a_backup_is_a_database_of_the_moment(run, league, tmp_path):
    ended = run("backup", "copy.db")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("copy.db: a copy of league.db, ")
    assert run("void", "d03").code == 0
    here, there = (json.loads(run("ladder", "list", "--db", db, "--json").out) for db in ("league.db", "copy.db"))
    assert (here[0]["events"], there[0]["events"]) == (13, 12)
    assert run("verify", "--db", "copy.db").code == 0
    assert run("backup", "copy.db").code == 2
    assert run("backup", "copy.db", "--replace").code == 0
    assert json.loads(run("ladder", "list", "--db", "copy.db", "--json").out)[0]["events"] == 13
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_backup_while_another_connection_writes_is_whole(run, league):
    with closing(sqlite3.connect(league, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE player SET name = 'half'")
        assert run("backup", "copy.db").code == 0
        writer.execute("ROLLBACK")
    with closing(sqlite3.connect("copy.db")) as copy:
        assert sorted(row[0] for row in copy.execute("SELECT name FROM player")) == list("abcdef")
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)


OWN_FILES = {
    "its log": "league.db-wal",
    "its index of the log": "league.db-shm",
    "its journal": "league.db-journal",
    "its master secret": "league.db.secret",
    "by another path": "folder/../league.db.secret",
    "in a linked folder": "linked/league.db-wal",
    "by a link": "link-to-secret",
    "by a second name": "second-name",
    "beside what the database's name links to": "real.db-wal",
    "the master secret that a variable names": "elsewhere",
}


@pytest.mark.parametrize("which", OWN_FILES)
def test_a_backup_never_takes_the_place_of_a_file_of_the_database(run, league, tmp_path, monkeypatch, which):
    secret = tmp_path / ("elsewhere" if OWN_FILES[which] == "elsewhere" else "league.db.secret")
    secret.write_text(os.environ["EVENMATCH_SECRET"])
    content = secret.read_bytes()
    monkeypatch.delenv("EVENMATCH_SECRET")
    if secret.name == "elsewhere":
        monkeypatch.setenv("EVENMATCH_SECRET_FILE", "elsewhere")
    if OWN_FILES[which].startswith("real"):
        league.rename("real.db")
        league.symlink_to("real.db")
        secret = secret.rename(tmp_path / "real.db.secret")
    (tmp_path / "folder").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path)
    (tmp_path / "link-to-secret").symlink_to(secret)
    if which == "by a second name":
        (tmp_path / "second-name").hardlink_to(secret)
    before = sorted(tmp_path.iterdir())
    for options in ([], ["--replace"]):
        ended = run("backup", OWN_FILES[which], *options)
        assert (ended.code, ended.out) == (2, "")
        assert f"{OWN_FILES[which]} is a file that the database uses; choose another one" in ended.err
    assert sorted(tmp_path.iterdir()) == before
    assert secret.read_bytes() == content


def test_a_backup_is_not_taken_for_the_master_secret_that_a_database_will_get(run, league):
    ended = run("backup", "league.db.secret")
    assert ended.code == 2
    assert "league.db.secret is a file that the database uses; choose another one" in ended.err


@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_a_backup_replaces_only_files(run, league, tmp_path, kind):
    target = tmp_path / "copy.db"
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to("/dev/null")
    for options in ([], ["--replace"]):
        ended = run("backup", "copy.db", *options)
        assert (ended.code, ended.out) == (2, "")
        assert "copy.db is not a regular file; expected a new name, or a backup to replace" in ended.err
    assert target.is_fifo() if kind == "pipe" else target.is_symlink()


def test_a_backup_names_lost_ladders_and_then_replaces_no_former_backup(run, league):
    assert json.loads(run("backup", "copy.db", "--json").out)["damage"] == []
    run_sql(league, "DELETE FROM ladder")
    lost = "ladder duel has events but is not in the table of ladders"
    ended = run("backup", "late.db")
    assert ended.code == 1
    assert ended.out.endswith(f"restore a backup from before the damage\n  {lost}\n")
    ended = run("backup", "copy.db", "--replace")
    assert ended.code == 3
    assert f"copy.db: the existing backup was not replaced, because the database is damaged: {lost}" in ended.err
    assert run("verify", "--db", "copy.db").code == 0
    run_sql("copy.db", "UPDATE ladder SET generation = 99")
    ended = run("backup", "later.db", "--db", "copy.db", "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["damage"] == ["generation 99 of ladder duel, which is the live one, is missing"]


def test_for_postgresql_it_says_what_to_type(tmp_path):
    told = dump_line("postgresql+psycopg://league:***@db.example/league", tmp_path / "a b.dump")
    assert told == f"pg_dump --format=custom --file='{tmp_path}/a b.dump' postgresql://league@db.example/league"


SLOWLY = """
import sys, time
from evenmatch.cli import main
from evenmatch.recording import imports as importing
importing.AT_ONCE = 40
append = importing.append
def slowly(*arguments):
    time.sleep(0.02)
    done = append(*arguments)
    print("more", flush=True)
    return done
importing.append = slowly
main()
"""


def test_an_import_that_was_killed_goes_on_and_ends_with_the_ratings_of_rate(run, league, tmp_path):
    path = tmp_path / "large.csv"
    write(season_of_teams(3, players=60, matches=600).matches, path)
    assert run("ladder", "create", "teams", "--system", "wager").code == 0
    line = [sys.executable, "-c", SLOWLY, "import", str(path), "--ladder", "teams"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        for _ in range(4):
            assert child.stdout.readline() == b"more\n"
        time.sleep(0.03)
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    held = json.loads(run("ladder", "show", "teams", "--json").out)["matches"]
    assert 0 < held < 600
    told = json.loads(run("import", path, "--ladder", "teams", "--json").out)
    assert (told["added"], told["there_already"]) == (600 - held, held)
    assert run("export", "--ladder", "teams", "--ratings", "ratings.jsonl").code == 0
    with open("ratings.jsonl", encoding="utf-8") as file:
        ratings = {row["player"]: row["rating"] for row in map(json.loads, file)}
    rated = json.loads(run("rate", path, "--system", "wager", "--json").out)["standings"]
    assert ratings == {row["player"]: row["rating"] for row in rated}
    assert run("verify", "--ladder", "teams").code == 0
