"""The master secret from the command line: made, changed, lost; and what stops without it."""

import base64
import json
import re
import stat
import time

import pytest

from evenmatch.accounts.keys import Keys
from evenmatch.ledger.database import Database
from evenmatch.ledger.secrets import VARIABLE, new_secret
from postgres import postgres  # noqa: F401

OTHER = new_secret()


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Nothing is set, as on a new machine."""
    monkeypatch.delenv(VARIABLE)
    return monkeypatch


def caller_of(db, text):
    database = Database.open(str(db))
    try:
        return Keys(database, lambda: time.time_ns() // 1000).authenticate(text)
    finally:
        database.close()


def test_a_new_secret_is_32_random_bytes(run):
    made = {run("secret", "new").out for _ in range(3)}
    assert [len(base64.urlsafe_b64decode(text)) for text in made] == [32] * 3


def test_a_database_file_gets_one_with_its_first_key_and_keeps_it(run, league):
    file = league.with_name("league.db.secret")
    assert run("standings", "--ladder", "duel").code == 0
    assert not file.exists()
    assert run("key", "create", "game", "--scope", "report").code == 0
    first = file.read_text()
    assert run("key", "create", "game", "--scope", "report").code == 0
    assert file.read_text() == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_secret_is_rotated_by_a_new_key_above_the_old_one(run, league):
    key = run("key", "create", "game", "--scope", "report").out.strip()
    file = league.with_name("league.db.secret")
    old = file.read_text()
    file.write_text(f"{OTHER}\n{old}")
    told = run("secret", "rotate")
    assert (told.code, told.out) == (0, "league.db: everything is encrypted with the first key of the master secret\n")
    assert "remove the old key a day from now" in told.err
    file.write_text(old)
    refused = run("key", "create", "game", "--scope", "report")
    assert (refused.code, f"league.db has another master secret than {file}" in refused.err) == (3, True)
    file.write_text(OTHER)
    assert run("key", "create", "game", "--scope", "report").code == 0
    assert caller_of(league, key).key == key[:13]
    assert json.loads(run("secret", "rotate", "--json").out) == {"database": "league.db"}


def test_a_reset_asks_first_and_then_goes_on_without_what_is_lost(run, league):
    key = run("key", "create", "game", "--scope", "report").out.strip()
    league.with_name("league.db.secret").unlink()
    assert run("secret", "reset").code == 2  # nobody can confirm
    refused = run("key", "create", "game", "--scope", "report")
    assert refused.code == 3
    assert re.search(r"is missing; put it back as .*league\.db\.secret, .*evenmatch secret reset", refused.err)
    told = run("secret", "reset", "--yes")
    assert (told.code, told.out) == (0, "")
    assert "tokens and sessions have ended; replace the keys that sign" in told.err
    assert caller_of(league, key).key == key[:13]
    assert run("key", "create", "game", "--scope", "report").code == 0
    refused = run("secret", "reset", "--yes")
    assert (refused.code, refused.out) == (3, "")
    assert "the master secret still opens what is in the database; set a new one first" in refused.err
    league.with_name("league.db.secret").unlink()
    assert json.loads(run("secret", "reset", "--yes", "--json").out) == {"database": "league.db", "webhooks": []}


def test_a_backup_says_that_the_secret_is_not_in_it(run, league, tmp_path):
    assert "secret" not in run("backup", "first.db").err
    run("key", "create", "game", "--scope", "report")
    told = run("backup", "second.db")
    assert f"the copy is useless without the master secret ({league}.secret); keep the secret elsewhere, or" in told.err
    assert not (tmp_path / "second.db.secret").exists()
    secret = league.with_name("league.db.secret").read_bytes().strip()
    assert secret not in (tmp_path / "second.db").read_bytes()
    refused = run("key", "create", "game", "--scope", "report", "--db", "second.db")
    assert (refused.code, "second.db: the master secret is missing" in refused.err) == (3, True)


def create_key(run, *options):
    made = run("key", "create", "game", "--scope", "report", *options, "--json")
    assert made.code == 0, made.err
    return json.loads(made.out)["key"]


@pytest.mark.parametrize("where", ["beside the database", "in a variable"])
def test_a_backup_with_its_secret_serves_when_it_is_restored_where_nothing_else_is_left(
    run, league, tmp_path, environment, where
):
    if where == "in a variable":
        environment.setenv(VARIABLE, f" {OTHER}\n")
    create_key(run)
    told = run("backup", "copy.db", "--with-secret")
    assert told.code == 0
    assert told.out.splitlines()[1:] == ["copy.db.secret: its master secret, mode 0600"]
    assert "anyone with both files can sign and log in as anybody" in told.err
    secret = tmp_path / "copy.db.secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    environment.delenv(VARIABLE, raising=False)
    for file in tmp_path.glob("league.db*"):
        file.unlink()
    assert run("drill", "copy.db").out.splitlines()[1:] == [
        "  ladder duel: 12 events, 11 matches, 6 players, everything matches",
        "  its last event was recorded at " + run("head", "duel", "--db", "copy.db").out.split()[3],
    ]
    create_key(run, "--db", "copy.db")
    refused = run("backup", "third.db", "--db", "copy.db", "--with-secret")
    assert refused.code == 0


def test_a_backup_with_its_secret_replaces_both_files_or_none(run, league, tmp_path):
    create_key(run)
    (tmp_path / "copy.db.secret").write_text("something else")
    refused = run("backup", "copy.db", "--with-secret")
    assert (refused.code, "copy.db.secret exists already" in refused.err) == (2, True)
    assert not (tmp_path / "copy.db").exists()
    (tmp_path / "copy.db.secret").chmod(0o644)
    told = json.loads(run("backup", "copy.db", "--with-secret", "--replace", "--json").out)
    assert told["secret"] == "copy.db.secret"
    assert (tmp_path / "copy.db.secret").read_text() == league.with_name("league.db.secret").read_text()
    assert stat.S_IMODE((tmp_path / "copy.db.secret").stat().st_mode) == 0o600


def test_a_backup_does_not_copy_a_secret_that_is_not_that_of_the_database(run, league, tmp_path, environment):
    create_key(run)
    environment.setenv(VARIABLE, OTHER)
    refused = run("backup", "copy.db", "--with-secret")
    assert (refused.code, "has another master secret than EVENMATCH_SECRET" in refused.err) == (3, True)
    environment.delenv(VARIABLE)
    league.with_name("league.db.secret").unlink()
    refused = run("backup", "copy.db", "--with-secret")
    assert (refused.code, "the master secret is missing" in refused.err) == (3, True)
    assert list(tmp_path.glob("copy.db*")) == []


def test_where_nothing_is_sealed_there_is_no_secret_to_copy(run, league, tmp_path):
    told = json.loads(run("backup", "copy.db", "--with-secret", "--json").out)
    assert (told["secret"], [file.name for file in tmp_path.glob("copy.db*")]) == (None, ["copy.db"])


def test_a_drill_checks_the_secret_that_lies_beside_the_backup(run, league, tmp_path, environment):
    create_key(run)
    assert run("backup", "copy.db").code == 0
    live = run("drill", "copy.db", "--live", league)
    assert live.code == 0
    assert f"if {league}.secret is lost too, a restored database cannot be served" in live.out
    secret = tmp_path / "copy.db.secret"
    secret.write_text(OTHER)
    environment.setenv(VARIABLE, league.with_name("league.db.secret").read_text().strip())
    for arguments in ((), ("--live", league)):
        told = run("drill", "copy.db", *arguments)
        assert told.code == 1
        assert f"copy.db has another master secret than {secret}" in told.out
    secret.write_text("short")
    assert f"{secret}: this is not a master secret" in run("drill", "copy.db").out
    assert run("backup", "copy.db", "--replace", "--with-secret").code == 0
    told = run("drill", "copy.db", "--live", league)
    assert (told.code, "secret" in told.out) == (0, False)


def test_on_a_server_nothing_that_seals_starts_without_one(spawn, postgres):  # noqa: F811
    url = postgres.fresh_database()
    assert spawn("ladder", "create", "duel", "--system", "elo", "--db", url).code == 0
    for command in (("serve", "--port", "0"), ("key", "create", "game", "--scope", "report")):
        refused = spawn(*command, "--db", url, EVENMATCH_SECRET="")
        assert refused.code == 3
        assert refused.out == ""
        assert "the master secret is missing" in refused.err
        assert "`evenmatch secret new`" in refused.err
    assert spawn("key", "create", "game", "--scope", "report", "--db", url, EVENMATCH_SECRET=OTHER).code == 0
