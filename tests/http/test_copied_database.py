"""What somebody can do who has a whole copy of the database, and the code: nothing.

Every value of every table is tried as every secret there is, so that a table that is added is tried as well.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
from contextlib import suppress
from itertools import chain
from pathlib import Path

import jwt
import pytest
import sqlalchemy as sa

from evenmatch.accounts import signing
from evenmatch.accounts.signing import SignedRequest
from evenmatch.errors import AccessError
from evenmatch.webhooks import sending, webhook_sql

HOOK = {"url": "https://93.184.216.34/hook", "events": ["match.rated"], "ladder": "duel"}
BODY = '{"event":"match.rated","ladder":"duel"}'


@pytest.fixture
def database_url(either_database):
    return either_database


class Used:
    """A service that was used in every way that leaves something in its database, and the secrets that clients have.

    signing  the signing key of a key;  webhook  the secret of a webhook;  shown  the texts that answers contained
    """

    def __init__(self, site, asking, admin_text):
        self.site, admin = site, {"Authorization": f"Bearer {admin_text}"}
        self.admin = admin_text[:13]
        self.signing = hashlib.sha256(admin_text.encode()).digest()

        def post(path, body, **headers):
            answer = asking.post(path, json=body, headers={**admin, **headers})
            assert answer.status_code < 300, answer.text
            return answer.json()

        post("/v1/ladders", {"name": "duel", "system": "elo"})
        key = post("/v1/keys", {"name": "game", "scopes": ["queue"]}, **{"Idempotency-Key": "make a key"})["text"]
        hook = post("/v1/webhooks", HOOK, **{"Idempotency-Key": "make a webhook"})
        token = post("/v1/tokens", {"player": "ann"}, **{"Idempotency-Key": "make a token"})["token"]
        body = json.dumps({"name": "signed", "scopes": ["read"]}).encode()
        signed = asking.post("/v1/keys", content=body, headers=self.headers(self.signing, "POST", "/v1/keys", body))
        assert signed.status_code == 201, signed.text
        former = site.sessions.begin(admin_text)
        site.sessions.end(site.sessions.find(former))
        self.session = site.sessions.begin(admin_text)
        asking.delete(f"/v1/keys/{signed.json()['key']}", headers=admin)
        self.webhook, self.hook = hook["secret"].encode(), hook["webhook"]
        self.shown = [admin_text, key, hook["secret"], token, signed.json()["text"], former, self.session]
        with site.service.database.write() as store:
            webhook_sql.insert_deliveries(store, self.hook, [("match.rated", BODY)], site.service.clock())

    def headers(self, secret, method, path, body, key=None):
        now = self.site.service.clock() // 1_000_000
        signed = SignedRequest(key or self.admin, now, signing.sign(secret, now, method, path, body))
        return {"Authorization": signing.write(signed)}

    def opened_by(self, secret):
        """What a value opens, as the secret of a key, of tokens, of sessions or of the webhook."""
        now = self.site.service.clock() // 1_000_000
        opened, padded = set(), secret.ljust(32, b"\0")  # the same to HMAC, and long enough for the library
        claims = {"iat": now, "exp": now + 60, "jti": "made up"}
        for key in self.site.keys.list():
            signed = SignedRequest(key.key, now, signing.sign(secret, now, "GET", "/v1/keys", b""))
            token = jwt.encode({**claims, "iss": "evenmatch", "sub": "ann", "key": key.key}, padded, "HS256")
            session = jwt.encode({**claims, "iss": "evenmatch session", "sub": key.key}, padded, "HS256")
            for what, verify, arguments in (
                ("signed", self.site.keys.authenticate_signed, (signed, "GET", "/v1/keys", b"")),
                ("token", self.site.tokens.verify, (token,)),
                ("session", self.site.sessions.find, (session,)),
            ):
                with suppress(AccessError):
                    if verify(*arguments) is not None:
                        opened.add(what)
        if hmac.compare_digest(sending.sign(secret, now, BODY), sending.sign(self.webhook, now, BODY)):
            opened.add("webhook")
        return opened


@pytest.fixture
def used(site, asking):
    return Used(site, asking, site.keys.create("operator", ["admin"])[1])


def rows_of(service):
    """Every row of every table, as the database contains it."""
    with service.database.read() as store:
        for table in sa.inspect(store.connection).get_table_names():
            for row in store.connection.exec_driver_sql(f'SELECT * FROM "{table}"').mappings():
                yield table, dict(row)


def leaves(value):
    if isinstance(value, dict):
        return chain.from_iterable(map(leaves, value.values()))
    return chain.from_iterable(map(leaves, value)) if isinstance(value, list) else [value]


def readings(value):
    """What a value may stand for: itself, what JSON in it contains, and what it encodes."""
    if isinstance(value, str):
        try:
            inner = [leaf for leaf in leaves(json.loads(value)) if isinstance(leaf, str)]
        except ValueError:
            inner = []
        for text in {value, *inner}:
            yield text.encode()
            for decode in (bytes.fromhex, base64.urlsafe_b64decode):
                with suppress(ValueError, binascii.Error):
                    yield decode(text)
    elif isinstance(value, bytes | memoryview):
        yield bytes(value)
        with suppress(ValueError, binascii.Error):  # sealed: version, time, vector, ciphertext, signature
            token = base64.urlsafe_b64decode(bytes(value))
            yield from (token, token[1:], token[9:], token[9:25], token[25:], token[25:-32], token[-32:])


def candidates(service):
    values = {reading for _, row in rows_of(service) for value in row.values() for reading in readings(value)}
    values |= {hashlib.sha256(value).digest() for value in values}
    return sorted(value for value in values if value)


def test_the_secrets_of_clients_open_what_they_are_for(used):
    """Else the next test would find nothing for another reason."""
    sealer = used.site.service.database.master.sealer()
    assert used.opened_by(used.signing) == {"signed"}
    assert used.opened_by(sealer.signing_keys("player token")[0]) == {"token"}
    assert used.opened_by(sealer.signing_keys("session")[0]) == {"session"}
    assert used.opened_by(used.webhook) == {"webhook"}


def test_no_value_of_any_table_opens_anything(used, service):
    tables = {table for table, _ in rows_of(service)}
    assert tables > {"api_key", "secret_check", "webhook", "idempotent_request", "seen_signature", "audit"}
    tried = candidates(service)
    assert len(tried) > 100
    assert {value: opened for value in tried if (opened := used.opened_by(value))} == {}


def test_no_column_of_a_key_signs_a_request_that_makes_a_new_key(used, service, asking):
    body = json.dumps({"name": "mine", "scopes": ["admin"]}).encode()
    columns = [value for table, row in rows_of(service) if table == "api_key" for value in row.values()]
    tried = {reading for value in columns for reading in readings(value)}
    assert len(tried) > 30
    for value in tried:
        answer = asking.post("/v1/keys", content=body, headers=used.headers(value, "POST", "/v1/keys", body))
        assert answer.status_code == 401
    with_the_key = used.headers(used.signing, "POST", "/v1/keys", body)
    assert asking.post("/v1/keys", content=body, headers=with_the_key).status_code == 201


def test_no_value_of_any_table_is_a_key_a_token_or_a_session(used, service, asking):
    for value in {text for _, row in rows_of(service) for text in row.values() if isinstance(text, str)}:
        assert used.site.sessions.find(value) is None
        for verify in (used.site.keys.authenticate, used.site.tokens.verify):
            with pytest.raises(AccessError):
                verify(value)


def content_of(path):
    """What a file contains; nothing if the server has just removed it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_the_files_of_the_database_contain_no_secret(used, service, request):
    with service.database.read() as store:
        (hook,) = webhook_sql.read_all_webhooks(store)
    sealer = service.database.master.sealer()
    assert hook.secret(sealer) == used.webhook
    derived = [sealer.signing_keys(purpose)[0] for purpose in ("player token", "session")]
    master = os.environ["EVENMATCH_SECRET"]
    secrets = [
        used.signing,
        *derived,
        master.encode(),
        base64.b64decode(master),
        *(text.encode() for text in used.shown),
    ]
    if service.database.url.get_backend_name() == "sqlite":
        files = [path for path in Path(service.database.url.database).parent.iterdir() if path.is_file()]
    else:
        server = request.getfixturevalue("postgres")
        with service.database.write() as store:
            store.connection.exec_driver_sql("CHECKPOINT")
        files = [path for path in (server.folder / "data").rglob("*") if path.is_file()]
    contents = {path: content_of(path) for path in files}
    assert any(b"operator" in content for content in contents.values())
    assert [(path, secret) for path, content in contents.items() for secret in secrets if secret in content] == []
