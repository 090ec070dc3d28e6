"""A database of a version that did not seal its secrets: what they signed stays valid, and none can be read now."""

import hashlib
import secrets
import shutil
import threading
from contextlib import suppress
from itertools import chain
from pathlib import Path

import jwt
import pytest
import sqlalchemy as sa

from evenmatch.errors import SecretError, StoreError
from evenmatch.ledger.database import VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.master_secret import VARIABLE
from evenmatch.ledger.tables import webhooks
from evenmatch.service.callers import signing
from evenmatch.service.callers.keys import Keys
from evenmatch.service.callers.sessions import Sessions
from evenmatch.service.callers.signing import SignedRequest
from evenmatch.service.callers.tokens import Tokens
from evenmatch.service.service import Service
from ledger.test_upgrade import migrate, schema_of

KEY, SIGNED_OUT = "em_abcdefghij_" + "s" * 43, "em_klmnopqrst_" + "t" * 43
TOKEN, FORMER, SESSION = (hashlib.sha256(name.encode()).digest() for name in ("token", "former", "session"))
HOOK, REMOVED = b"whs_" + b"h" * 43, b"whs_" + b"r" * 43


def signing_key(text):
    return hashlib.sha256(text.encode()).digest()


PLAIN = [signing_key(KEY), signing_key(SIGNED_OUT), TOKEN, FORMER, SESSION, HOOK, REMOVED]


def key_row(text, revoked_at=None):
    row = {"key": text[:13], "name": "old", "digest": signing_key(text), "scopes": '["queue"]', "created_at": 5}
    return "api_key", row | {"revoked_at": revoked_at}


def hook_row(secret, removed_at=None):
    row = {"url": "https://game.example/", "secret": secret, "events": '["match.rated"]', "created_at": 5}
    return "webhook", row | {"removed_at": removed_at}


def secret_row(name, value, created_at=5):
    return "secret", {"name": name, "value": value, "created_at": created_at}


ROWS = [key_row(KEY), key_row(SIGNED_OUT, 7), hook_row(HOOK), hook_row(REMOVED, 7)]
ROWS += [secret_row("token", TOKEN), secret_row("token-former", FORMER), secret_row("session", SESSION)]


def write_rows(connection, rows):
    for table, row in rows:
        names = ", ".join(f":{name}" for name in row)
        connection.execute(sa.text(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({names})"), row)


@pytest.fixture
def old(store_url, tmp_path_factory):
    """A database of each kind as 0009 left it, and all secrets that it contains; some were deleted.

    The SQLite database is that of a process that was killed: with a write-ahead log, which contains some of the rows.
    """
    is_file = "://" not in store_url
    built = str(tmp_path_factory.mktemp("built") / "evenmatch.db") if is_file else store_url
    migrate(built, "0009")
    lost = [secret_row(f"lost-{at}", secrets.token_bytes(500), 4) for at in range(40)]
    engine = sa.create_engine(parse_url(built))
    with engine.connect() as connection:
        if is_file:
            for pragma in ("secure_delete=OFF", "journal_mode=WAL", "wal_autocheckpoint=0"):
                connection.exec_driver_sql(f"PRAGMA {pragma}")
        write_rows(connection, [*lost, *ROWS[:3]])
        connection.commit()
        connection.execute(sa.text("DELETE FROM secret WHERE created_at = 4"))
        connection.commit()
        if is_file:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        write_rows(connection, ROWS[3:])
        connection.commit()
        if is_file:
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{built}{suffix}", f"{store_url}{suffix}")
    engine.dispose()
    return store_url, [*PLAIN, *(row["value"][:32] for _, row in lost)]


def found_in(files, wanted):
    contents = []
    for path in files:
        with suppress(FileNotFoundError, IsADirectoryError):  # the server may have just removed a file
            contents.append(path.read_bytes())
    return [value for value in wanted if any(value in content for content in contents)]


def files_of(url, request):
    """The files of a database, without the write-ahead log of a server, which backups keep anyway."""
    if "://" not in url:
        return [*Path(url).parent.iterdir()]
    engine = sa.create_engine(parse_url(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CHECKPOINT")
        number = connection.exec_driver_sql("SELECT oid FROM pg_database WHERE datname = current_database()").scalar()
    engine.dispose()
    return [*(request.getfixturevalue("postgres").folder / "data" / "base" / str(number)).rglob("*")]


def test_keys_tokens_sessions_and_webhooks_stay_valid(old, clock):
    url, _ = old
    with Service.open(url, clock) as service:
        keys = Keys(service.database, clock)
        tokens = Tokens(service.database, clock, keys)
        sessions = Sessions(service.database, clock, keys, tokens)
        assert keys.authenticate(KEY).key == KEY[:13]
        now = clock.now // 1_000_000
        signed = SignedRequest(KEY[:13], now, signing.sign(signing_key(KEY), now, "GET", "/", b""))
        assert keys.authenticate_signed(signed, "GET", "/", b"").key == KEY[:13]
        claims = {"iss": "evenmatch", "sub": "ann", "iat": now, "exp": now + 60, "key": KEY[:13]}
        assert tokens.verify(jwt.encode(claims, TOKEN, "HS256")).player == "ann"
        session = {"iss": "evenmatch session", "sub": KEY[:13], "jti": "one", "exp": now + 60}
        assert sessions.find(jwt.encode(session, SESSION, "HS256")).caller.key == KEY[:13]
        with service.database.read() as store:
            assert [hook.secret(store.master.sealer()) for hook in webhooks.read_all(store)] == [HOOK]


def test_no_secret_is_left_in_a_file_not_even_one_that_was_deleted_before(old, request):
    url, secrets_before = old
    assert set(PLAIN) <= set(found_in(files_of(url, request), secrets_before))
    if "://" not in url:
        assert len(found_in(files_of(url, request), secrets_before)) > len(PLAIN)
    Database.open(url).close()
    assert schema_of(url)[0] == VERSION
    assert found_in(files_of(url, request), secrets_before) == []


def test_an_upgrade_that_is_interrupted_before_the_secrets_are_erased_goes_on_with_that(old, request, monkeypatch):
    url, secrets_before = old

    def fail(_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "_erase_deleted", fail)
        with pytest.raises(StoreError):
            Database.open(url)
    assert schema_of(url)[0] == "0010"
    Database.open(url).close()
    assert schema_of(url)[0] == VERSION
    assert found_in(files_of(url, request), secrets_before) == []


def test_processes_that_upgrade_at_the_same_moment_all_open_the_database(old):
    url, _ = old
    start, failed = threading.Barrier(8), []

    def open_database():
        start.wait()
        try:
            Database.open(url).close()
        except StoreError as error:
            failed.append(error)

    threads = [threading.Thread(target=open_database) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, schema_of(url)[0]) == ([], VERSION)
    database = Database.open(url)
    assert Keys(database, lambda: 10).authenticate(KEY).key == KEY[:13]
    database.close()


def test_without_a_master_secret_a_server_database_stays_as_it_was(old, monkeypatch):
    url, _ = old
    monkeypatch.delenv(VARIABLE)
    if "://" not in url:
        Database.open(url).close()
        assert Path(f"{url}.secret").exists()  # an SQLite database gets one by itself
        return
    with pytest.raises(SecretError, match=r"needs a master secret, .* `evenmatch secret new` prints one"):
        Database.open(url)
    version, tables = schema_of(url)
    assert (version, "secret_check" in tables) == ("0009", False)
    engine = sa.create_engine(parse_url(url))
    with engine.connect() as connection:
        stored = connection.exec_driver_sql("SELECT digest FROM api_key UNION ALL SELECT value FROM secret").scalars()
        assert set(map(bytes, stored)) == {value for value in PLAIN if value not in (HOOK, REMOVED)}
    engine.dispose()


def test_a_database_without_secrets_needs_no_master_secret(store_url, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    migrate(store_url, "0009")
    Database.open(store_url).close()
    assert schema_of(store_url)[0] == VERSION
    assert not Path(f"{store_url}.secret").exists()


def test_every_value_is_sealed_or_empty(old):
    url, _ = old
    Database.open(url).close()
    engine = sa.create_engine(parse_url(url))
    with engine.connect() as connection:
        queries = (
            "SELECT signing_key FROM api_key",
            "SELECT value FROM secret",
            "SELECT secret FROM webhook ORDER BY webhook",
        )
        stored = [bytes(value) for query in queries for value in connection.exec_driver_sql(query).scalars()]
        verifiers = connection.exec_driver_sql("SELECT verifier FROM api_key ORDER BY key").scalars().all()
    engine.dispose()
    assert [len(value) for value in stored] == [1 + 12 + 32 + 16] * 5 + [1 + 12 + len(HOOK) + 16, 0]
    assert list(map(bytes, verifiers)) == [hashlib.sha256(signing_key(text)).digest() for text in (KEY, SIGNED_OUT)]
    assert not [value for value in chain(PLAIN) if value in stored]
