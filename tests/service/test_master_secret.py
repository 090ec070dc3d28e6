"""The master secret of a database: where it comes from, what works without it, how it is changed."""

import base64
import shutil
import stat
import threading
from pathlib import Path

import pytest

from evenmatch.accounts import account_sql, signing
from evenmatch.accounts.audit_trail import Audit
from evenmatch.accounts.idempotent_requests import Answer, IdempotentRequest, IdempotentRequests
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.sessions import Sessions
from evenmatch.accounts.signing import SignedRequest
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import AccessError, SecretError
from evenmatch.ledger.secrets import FILE_VARIABLE, VARIABLE
from evenmatch.operations import master_secret
from evenmatch.operations.service import Service
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.subscriptions import Webhooks

FIRST, SECOND = "the first master secret of all of them", "another master secret, as long as this"
ONE_DATABASE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
ON_SERVER = pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
HOOK = ("https://93.184.216.34/hook", ["match.rated"])
REQUEST = (b"content", "r-1")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Nothing is set, until a test sets something."""
    monkeypatch.delenv(VARIABLE)
    return monkeypatch


class Opened:
    """A database as a process has it open, with all that is sealed in it."""

    def __init__(self, url, clock):
        self.service = Service.open(url, clock)
        self.database, self.clock = self.service.database, clock
        self.keys = Keys(self.database, clock)
        self.tokens = Tokens(self.database, clock, self.keys)
        self.sessions = Sessions(self.database, clock, self.keys, self.tokens)
        self.webhooks = Webhooks(self.service)
        self.requests = IdempotentRequests(self.database, clock)

    def fill(self):
        """The secrets as clients have them, by what they are for."""
        _, key = self.keys.create("backend", ["queue", "admin"])
        caller = self.keys.authenticate(key)
        (attempt,) = self.requests.begin([IdempotentRequest(caller, "k", *REQUEST)])
        self.requests.end([(attempt, Answer(201, (("content-type", "text/plain"),), b"hello"))])
        token = self.tokens.issue(caller, "ann").text
        return {"key": key, "token": token, "session": self.sessions.begin(key), "hook": self.webhooks.add(*HOOK)[1]}

    def works(self, secrets):
        """What works with the secrets of clients."""
        attempts = {
            "key": lambda: self.keys.authenticate(secrets["key"]),
            "signed": lambda: self.keys.authenticate_signed(*self.sign(secrets["key"])),
            "token": lambda: self.tokens.verify(secrets["token"]),
            "session": lambda: self.sessions.find(secrets["session"]),
            "hook": lambda: self.webhook_secrets() == [secrets["hook"]],
            "answer": lambda: self.answer(secrets) == b"hello",
        }
        return {what for what, attempt in attempts.items() if succeeds(attempt)}

    def sign(self, key):
        now, secret = self.clock.now // 1_000_000, signing.signing_key(key)
        return SignedRequest(key[:13], now, signing.sign(secret, now, "GET", "/", b"")), "GET", "/", b""

    def webhook_secrets(self):
        with self.database.read() as store:
            return [hook.secret(store.master.sealer()).decode() for hook in webhook_sql.read_all_webhooks(store)]

    def answer(self, secrets):
        caller = self.keys.authenticate(secrets["key"])
        (outcome,) = self.requests.begin([IdempotentRequest(caller, "k", *REQUEST)])
        return outcome.body if isinstance(outcome, Answer) else None


def succeeds(attempt):
    try:
        return bool(attempt())
    except (AccessError, SecretError):
        return False


ALL = {"key", "signed", "token", "session", "hook", "answer"}


@pytest.fixture
def open_database(store_url, clock):
    """Open the database once more, as another process does, or a copy of it."""
    opened = []

    def another(url=store_url):
        opened.append(Opened(url, clock))
        return opened[-1]

    yield another
    for one in opened:
        one.service.close()


def test_all_processes_with_the_same_master_secret_open_what_one_has_sealed(open_database, environment, tmp_path):
    environment.setenv(VARIABLE, FIRST)
    secrets = open_database().fill()
    assert open_database().works(secrets) == ALL
    environment.delenv(VARIABLE)
    (tmp_path / "secret").write_text(f"{FIRST}\n")
    environment.setenv(FILE_VARIABLE, str(tmp_path / "secret"))
    assert open_database().works(secrets) == ALL


@ON_SERVER
def test_without_one_nothing_is_sealed_on_a_server_and_the_error_says_how_to_make_one(open_database):
    opened = open_database()
    said = (
        r"^postgresql://.* needs a master secret, .*: set EVENMATCH_SECRET to it, or EVENMATCH_SECRET_FILE to a file "
        "that contains it, the same for all processes; `evenmatch secret new` prints one$"
    )
    for attempt in (
        lambda: opened.keys.create("backend", ["queue"]),
        opened.tokens.rotate,
        lambda: opened.webhooks.add(*HOOK),
        lambda: master_secret.confirm(opened.database),
    ):
        with pytest.raises(SecretError, match=said):
            attempt()
    assert opened.keys.list() == opened.webhooks.list() == Audit(opened.database).page() == []


@ONE_DATABASE
def test_an_sqlite_database_gets_one_in_a_file_that_only_its_owner_reads(open_database, store_url):
    file = Path(f"{store_url}.secret")
    opened = open_database()
    assert not file.exists()
    secrets = opened.fill()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(base64.b64decode(file.read_text(), validate=False)) == 32
    assert sorted(path.name for path in file.parent.iterdir() if "-" not in path.name) == [
        Path(store_url).name,
        file.name,
    ]
    assert open_database().works(secrets) == ALL


@ONE_DATABASE
def test_processes_that_seal_first_at_the_same_moment_agree_on_one(open_database):
    opened, start, secrets = [open_database() for _ in range(4)], threading.Barrier(4), []

    def create(process):
        start.wait()
        secrets.append(process.keys.create("one", ["read"])[1])

    threads = [threading.Thread(target=create, args=(process,)) for process in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(secrets) == 4
    for key in secrets:
        assert opened[0].keys.authenticate_signed(*opened[0].sign(key)).key == key[:13]


@ON_SERVER
def test_of_processes_with_different_ones_the_first_decides(open_database, environment):
    environment.setenv(VARIABLE, FIRST)
    first = open_database()
    first.fill()
    environment.setenv(VARIABLE, SECOND)
    start, outcomes = threading.Barrier(4), []

    def create(process):
        start.wait()
        try:
            outcomes.append(process.keys.create("one", ["read"]))
        except SecretError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=create, args=(open_database(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = "is sealed with another master secret than that of EVENMATCH_SECRET: set EVENMATCH_SECRET to it, or"
    assert [said in outcome for outcome in outcomes] == [True] * 4
    assert len(first.keys.list()) == 1


def test_without_the_master_secret_or_with_another_one_bearer_keys_go_on_and_nothing_else(
    open_database, environment, store_url
):
    environment.setenv(VARIABLE, FIRST)
    secrets = open_database().fill()
    environment.delenv(VARIABLE)
    assert open_database().works(secrets) == {"key"}
    environment.setenv(VARIABLE, SECOND)
    opened = open_database()
    assert opened.works(secrets) == {"key"}
    with pytest.raises(SecretError, match="is sealed with another master secret than that of EVENMATCH_SECRET"):
        opened.keys.create("more", ["read"])
    assert not master_secret.is_current(opened.database)
    assert not Path(f"{store_url}.secret").exists()


@ONE_DATABASE
def test_a_copy_without_its_master_secret_says_what_to_do_and_does_not_get_another_one(open_database, tmp_path):
    original = open_database()
    secrets = original.fill()
    original.service.close()
    copy = tmp_path / "restored" / "evenmatch.db"
    copy.parent.mkdir()
    shutil.copy(tmp_path / "evenmatch.db", copy)
    restored = open_database(str(copy))
    said = (
        rf"restored/evenmatch\.db is sealed with a master secret, which is missing: put its file back as {copy}\."
        r"secret \(a backup has it only with --with-secret\), or set EVENMATCH_SECRET .* "
        "If it is lost: evenmatch secret reset"
    )
    with pytest.raises(SecretError, match=said):
        master_secret.confirm(restored.database)
    with pytest.raises(SecretError, match=said):
        restored.keys.create("more", ["read"])
    assert restored.works(secrets) == {"key"}
    assert not Path(f"{copy}.secret").exists()
    shutil.copy(tmp_path / "evenmatch.db.secret", f"{copy}.secret")
    assert restored.works(secrets) == ALL


# What is set, and what is said of it
BAD = [
    ({VARIABLE: "x" * 31}, "EVENMATCH_SECRET: the master secret has 31 characters; expected at least 32"),
    ({VARIABLE: f" {'x' * 31} \n"}, "has 31 characters"),
    ({VARIABLE: "x" * 32, FILE_VARIABLE: "/none"}, "EVENMATCH_SECRET and EVENMATCH_SECRET_FILE are both set"),
    ({FILE_VARIABLE: "/none"}, "/none: the master secret cannot be read: No such file or directory"),
    ({FILE_VARIABLE: "/"}, "/: the master secret cannot be read: Is a directory"),
    ({FILE_VARIABLE: __file__.replace(".py", ".none")}, "cannot be read"),
]


@ONE_DATABASE
@pytest.mark.parametrize(("variables", "said"), BAD, ids=[said for _, said in BAD])
def test_what_is_no_master_secret_is_said_without_telling_it(open_database, environment, variables, said):
    for name, value in variables.items():
        environment.setenv(name, value)
    with pytest.raises(SecretError, match=said) as told:
        open_database().keys.create("backend", ["queue"])
    assert "xxx" not in str(told.value)


def test_after_a_rotation_all_is_valid_with_the_new_one_and_nothing_with_the_old(
    open_database, environment, tmp_path, clock
):
    environment.setenv(VARIABLE, FIRST)
    old = open_database()
    secrets = old.fill()
    removed, _ = old.webhooks.add(*HOOK)
    old.webhooks.remove(removed.webhook)
    (tmp_path / "new").write_text(SECOND)
    assert master_secret.rotate(open_database().database, tmp_path / "new", clock) is None
    clock.move(seconds=2)  # for so long a process remembers
    old.sessions._secret = None
    assert old.works(secrets) == {"key"}
    assert not master_secret.is_current(old.database)
    with pytest.raises(SecretError, match="another master secret"):  # it must not write what others cannot read
        old.keys.create("more", ["read"])
    assert open_database().works(secrets) == {"key"}
    environment.setenv(VARIABLE, SECOND)
    new = open_database()
    assert new.works(secrets) == ALL
    assert master_secret.is_current(new.database)
    assert [entry.action for entry in Audit(new.database).page()][:1] == ["secret.rotated"]


@ONE_DATABASE
def test_a_rotation_replaces_the_file_beside_the_database(open_database, tmp_path, clock):
    opened = open_database()
    secrets = opened.fill()
    (tmp_path / "new").write_text(f"{SECOND}\n")
    file = tmp_path / "evenmatch.db.secret"
    assert master_secret.rotate(opened.database, tmp_path / "new", clock) == file
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == (f"{SECOND}\n", 0o600)
    assert open_database().works(secrets) == ALL


def test_a_rotation_that_fails_changes_nothing(open_database, environment, tmp_path, clock):
    environment.setenv(VARIABLE, FIRST)
    opened = open_database()
    secrets = opened.fill()
    (tmp_path / "short").write_text("x" * 31)
    with pytest.raises(SecretError, match="short: the master secret has 31 characters"):
        master_secret.rotate(opened.database, tmp_path / "short", clock)
    with opened.database.write() as store:
        store.run("UPDATE webhook SET secret = ?", b"damaged")
    (tmp_path / "new").write_text(SECOND)
    with pytest.raises(SecretError, match="row 1 of table webhook"):
        master_secret.rotate(opened.database, tmp_path / "new", clock)
    assert open_database().works(secrets) == ALL - {"hook"}


def test_what_is_sealed_while_the_master_secret_is_rotated_is_sealed_with_the_new_one_or_not_at_all(
    open_database, environment, tmp_path, clock
):
    environment.setenv(VARIABLE, FIRST)
    (tmp_path / "new").write_text(SECOND)
    opened, made, start = open_database(), [], threading.Barrier(2)
    opened.fill()

    def create():
        start.wait()
        try:
            while True:
                made.append(opened.keys.create("one", ["read"])[1])
        except SecretError:
            pass

    thread = threading.Thread(target=create)
    thread.start()
    start.wait()
    master_secret.rotate(open_database().database, tmp_path / "new", clock)
    thread.join()
    environment.setenv(VARIABLE, SECOND)
    new = open_database()
    for key in made:
        assert new.keys.authenticate_signed(*new.sign(key)).key == key[:13]


def test_where_it_is_lost_a_reset_leaves_bearer_keys_and_makes_the_rest_anew(open_database, environment, clock):
    environment.setenv(VARIABLE, FIRST)
    secrets = open_database().fill()
    environment.setenv(VARIABLE, SECOND)
    (replaced,) = master_secret.reset(open_database().database, clock)
    new = open_database()
    assert new.works(secrets) == {"key"}
    with pytest.raises(AccessError, match="is older than the master secret and cannot sign; create a new key"):
        new.keys.authenticate_signed(*new.sign(secrets["key"]))
    assert (replaced.webhook, replaced.url, [replaced.secret]) == (1, HOOK[0], new.webhook_secrets())
    assert new.works(new.fill() | {"hook": None}) == ALL - {"hook"}
    assert "secret.reset" in [entry.action for entry in Audit(new.database).page()]


@ONE_DATABASE
def test_a_reset_gives_an_sqlite_database_another_file(open_database, tmp_path, clock):
    secrets = open_database().fill()
    file = tmp_path / "evenmatch.db.secret"
    lost = file.read_text()
    file.unlink()
    master_secret.reset(open_database().database, clock)
    assert file.read_text() != lost
    new = open_database()
    assert new.works(secrets) == {"key"}
    assert new.works(new.fill()) >= {"key", "signed", "token", "session", "answer"}


def test_a_value_of_another_row_does_not_open(open_database, environment):
    """Somebody who can write to the database must not sign by a key of more rights with a key of their own."""
    environment.setenv(VARIABLE, FIRST)
    opened = open_database()
    mine, theirs = opened.keys.create("mine", ["read"])[1], opened.keys.create("theirs", ["admin"])[1]
    with opened.database.write() as store:
        (row,) = store.all("SELECT signing_key FROM api_key WHERE name = 'mine'")
        store.run("UPDATE api_key SET signing_key = ? WHERE name = 'theirs'", row[0])
        token = account_sql.SharedSecret(b"x" * 32, 0)
        account_sql.put_shared_secrets(store, {"session": token})
        (row,) = store.all("SELECT value FROM secret WHERE name = 'session'")
        store.run("INSERT INTO secret (name, value, created_at) VALUES ('token', ?, 0)", row[0])
    now, secret = opened.clock.now // 1_000_000, signing.signing_key(mine)
    forged = SignedRequest(theirs[:13], now, signing.sign(secret, now, "GET", "/", b""))
    with pytest.raises(SecretError, match="table api_key: its sealed value cannot be opened"):
        opened.keys.authenticate_signed(forged, "GET", "/", b"")
    with pytest.raises(SecretError, match="row token of table secret"):
        opened.tokens.issue(opened.keys.authenticate(theirs), "ann")
