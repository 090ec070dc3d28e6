"""The master secret of a database: where it comes from, what works without it, how it is changed."""

import base64
import shutil
import stat
import threading
from pathlib import Path

import pytest

from evenmatch.accounts import signing
from evenmatch.accounts.audit_trail import Audit
from evenmatch.accounts.idempotent_requests import Answer, IdempotentRequests
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.sessions import Sessions
from evenmatch.accounts.signing import SignedRequest
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import AccessError, SecretError
from evenmatch.ledger.secrets import FILE_VARIABLE, VARIABLE, new_secret
from evenmatch.operations import master_secret
from evenmatch.operations.service import Service
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.subscriptions import Webhooks

FIRST, SECOND = new_secret(), new_secret()
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
        attempt = self.requests.begin(caller, "k", *REQUEST)
        self.requests.end(attempt, Answer(201, (("content-type", "text/plain"),), b"hello"))
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
        outcome = self.requests.begin(caller, "k", *REQUEST)
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
        r"^postgresql://.*: the master secret is missing; set EVENMATCH_SECRET to it, or EVENMATCH_SECRET_FILE to a "
        "file that contains it, the same for all processes. A new database takes one from `evenmatch secret new`$"
    )
    for attempt in (
        lambda: opened.keys.create("backend", ["queue"]),
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
    assert len(base64.urlsafe_b64decode(file.read_text())) == 32
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
    said = "has another master secret than EVENMATCH_SECRET; set EVENMATCH_SECRET to it, or"
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
    with pytest.raises(SecretError, match="has another master secret than EVENMATCH_SECRET"):
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
        rf"restored/evenmatch\.db: the master secret is missing; put it back as {copy}\.secret, or set "
        "EVENMATCH_SECRET .* If it is lost, run `evenmatch secret reset`"
    )
    with pytest.raises(SecretError, match=said):
        master_secret.confirm(restored.database)
    with pytest.raises(SecretError, match=said):
        restored.keys.create("more", ["read"])
    assert restored.works(secrets) == {"key"}
    assert not Path(f"{copy}.secret").exists()
    shutil.copy(tmp_path / "evenmatch.db.secret", f"{copy}.secret")
    assert restored.works(secrets) == ALL


# What is set, and what the error says
BAD = [
    ({VARIABLE: "xxx" * 11}, "EVENMATCH_SECRET: this is not a master secret; expected 32 random bytes in base64"),
    ({VARIABLE: f"{FIRST} {FIRST[:-4]}xxx"}, "EVENMATCH_SECRET: this is not a master secret"),
    ({VARIABLE: "xxxé" * 11}, "EVENMATCH_SECRET: this is not a master secret"),
    ({VARIABLE: FIRST, FILE_VARIABLE: "/none"}, "EVENMATCH_SECRET and EVENMATCH_SECRET_FILE are both set"),
    ({FILE_VARIABLE: "/none"}, "/none: the master secret cannot be read: No such file or directory"),
    ({FILE_VARIABLE: "/dev/null"}, "/dev/null: this is not a master secret"),
]


@ONE_DATABASE
@pytest.mark.parametrize(("variables", "said"), BAD, ids=[said for _, said in BAD])
def test_what_is_no_master_secret_is_said_without_telling_it(open_database, environment, variables, said):
    for name, value in variables.items():
        environment.setenv(name, value)
    with pytest.raises(SecretError, match=said) as told:
        open_database().keys.create("backend", ["queue"])
    assert "xxx" not in str(told.value)


def test_a_rotation_ends_nothing_while_both_keys_are_in_the_secret(open_database, environment, clock):
    environment.setenv(VARIABLE, FIRST)
    old = open_database()
    secrets = old.fill()
    removed, _ = old.webhooks.add(*HOOK)
    old.webhooks.remove(removed.webhook)
    environment.setenv(VARIABLE, f"{SECOND} {FIRST}")
    both = open_database()
    assert both.works(secrets) == ALL
    master_secret.rotate(both.database, clock)
    assert both.works(secrets) == ALL
    made = both.fill()
    environment.setenv(VARIABLE, SECOND)
    new = open_database()
    assert new.works(secrets | {"hook": None}) == {"key", "signed", "answer"}  # what the old key signed has ended
    assert new.works(made | {"hook": None}) == ALL - {"hook"}
    assert new.webhook_secrets() == [secrets["hook"], made["hook"]]
    assert master_secret.is_current(new.database)
    assert "secret.rotated" in [entry.action for entry in Audit(new.database).page()]
    clock.move(seconds=2)  # for so long a process remembers a key
    assert not master_secret.is_current(old.database)
    with pytest.raises(SecretError, match="has another master secret"):  # it must not write what others cannot open
        old.keys.create("more", ["read"])


def test_a_rotation_that_fails_changes_nothing(open_database, environment, clock):
    environment.setenv(VARIABLE, FIRST)
    opened = open_database()
    secrets = opened.fill()
    with opened.database.write() as store:
        store.run("UPDATE webhook SET secret = ?", b"damaged")
    environment.setenv(VARIABLE, f"{SECOND} {FIRST}")
    with pytest.raises(SecretError, match="row 1 of table webhook"):
        master_secret.rotate(open_database().database, clock)
    environment.setenv(VARIABLE, FIRST)
    assert open_database().works(secrets) == ALL - {"hook"}


def test_nothing_is_sealed_with_the_old_key_after_a_rotation(open_database, environment, clock):
    environment.setenv(VARIABLE, FIRST)
    opened, made, start = open_database(), [], threading.Barrier(2)
    opened.fill()

    def create():
        start.wait()
        try:
            while True:
                made.append(opened.keys.create("one", ["read"])[1])
        except SecretError:
            pass

    environment.setenv(VARIABLE, f"{SECOND} {FIRST}")
    rotating = open_database()
    thread = threading.Thread(target=create)
    thread.start()
    start.wait()
    master_secret.rotate(rotating.database, clock)
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
    with pytest.raises(AccessError, match="is older than the master secret and cannot sign requests; create a new key"):
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
    """Whoever can write to the database must not sign for a key with more rights by means of their own key."""
    environment.setenv(VARIABLE, FIRST)
    opened = open_database()
    mine, theirs = opened.keys.create("mine", ["read"])[1], opened.keys.create("theirs", ["admin"])[1]
    with opened.database.write() as store:
        (row,) = store.all("SELECT signing_key FROM api_key WHERE name = 'mine'")
        store.run("UPDATE api_key SET signing_key = ? WHERE name = 'theirs'", row[0])
    now, secret = opened.clock.now // 1_000_000, signing.signing_key(mine)
    forged = SignedRequest(theirs[:13], now, signing.sign(secret, now, "GET", "/", b""))
    with pytest.raises(SecretError, match="table api_key: the sealed value cannot be opened"):
        opened.keys.authenticate_signed(forged, "GET", "/", b"")
