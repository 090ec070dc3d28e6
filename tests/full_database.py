"""A database in which every table has rows, made by what the service does for its callers."""

import hashlib
import json

from evenmatch.accounts import signing
from evenmatch.accounts.signing import SignedRequest
from evenmatch.ledger.schema import METADATA
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.requests import Accept, Decline
from evenmatch.recording import recorder
from evenmatch.webhooks import delivery, webhook_sql
from evenmatch.webhooks.delivery import Deliverer
from ledger.sample_matches import duel
from service.sample_queues import DUEL, join_queue, solos
from two_ladders import make_two_ladders

RULES = {"heartbeat": None, "accept_within": 60}
LIVE = {"teams": [{"players": ["liv"]}, {"players": ["max"]}]}


def fill(site, asking, patch):
    """Use the service in every way that leaves a row; return the text of a key that may do everything.

    patch  a monkeypatch: checkpoints are made every ten events instead of many thousands
    """
    key = site.keys.create("operator", ["admin"])[1]
    admin = Admin(asking, key)
    patch.setattr(recorder, "CHECKPOINT", 10)
    webhook = make_two_ladders(site.service, admin)["webhook"]
    for number in range(40, 90):
        site.service.record(duel(number, *("ann", "bob")[:: 1 if number % 3 else -1], "alpha"))
    use_queues(site, admin)
    use_credentials(site, asking, admin, key)
    admin.post("/v1/ladders/alpha/voids", json={"match_id": "m2"})
    site.service.divide("alpha")
    site.service.record(duel(99, "quill-3", "quill-4", "zeta-hidden"))
    Deliverer(site.webhooks).make()
    with site.service.database.write() as store:
        first = webhook_sql.read_pending(store, webhook, 1)[0]
        delivery.record(store, first, delivery.Outcome("the receiver answered 500"), site.service.clock())
    return key


class Admin:
    """Asks with the key of an operator; every answer must be a success."""

    def __init__(self, asking, key):
        self._asking, self._key = asking, key

    def _ask(self, method, path, headers=None, **fields):
        named = {"Authorization": f"Bearer {self._key}", **(headers or {})}
        answer = self._asking.request(method, path, headers=named, **fields)
        assert answer.status_code < 300, answer.text
        return answer

    def get(self, path, **fields):
        return self._ask("GET", path, **fields)

    def post(self, path, **fields):
        return self._ask("POST", path, **fields)

    def put(self, path, **fields):
        return self._ask("PUT", path, **fields)


def use_queues(site, admin):
    """An offer that was accepted, one that was declined, a filter, an experiment, and a match of one ladder's key."""
    queues = site.queue_service
    admin.put("/v1/ladders/alpha/queues/ranked", json={"policy": DUEL, "rules": RULES})
    maker = Matchmaker(queues)
    for pair, answers in ((("eve", "kim"), (Accept, Accept)), (("pat", "sam"), (Accept, Decline))):
        tickets = join_queue(queues, "alpha", *solos(*pair))
        maker.step("alpha")
        queues.apply("alpha", [answer(ticket) for answer, ticket in zip(answers, tickets, strict=True)])
    queues.set_filter("alpha", "ann", QueueFilter(within=5.0))
    queues.start_experiment("alpha", "ranked", {**DUEL, "even_spread": 50.0}, {})
    own = admin.post("/v1/keys", json={"name": "alpha", "scopes": ["report"], "ladders": ["alpha"]}).json()["text"]
    admin.put("/v1/ladders/alpha/live/l1", json=LIVE, headers={"Authorization": f"Bearer {own}"})


def use_credentials(site, asking, admin, key):
    """A token, a linked account, an ended session, a signed request, and one with an Idempotency-Key."""
    admin.put("/v1/players/ann/accounts", json={"issuer": "steam", "subject": "7656"})
    admin.post("/v1/tokens", json={"player": "ann"}, headers={"Idempotency-Key": "make a token"})
    site.sessions.end(site.sessions.find(site.sessions.begin(key)))
    body = json.dumps({"name": "signed", "scopes": ["read"]}).encode()
    now = site.service.clock() // 1_000_000
    signature = signing.sign(hashlib.sha256(key.encode()).digest(), now, "POST", "/v1/keys", body)
    headers = {"Authorization": signing.write(SignedRequest(key[:13], now, signature))}
    assert asking.post("/v1/keys", content=body, headers=headers).status_code == 201


def empty_tables(database):
    """The tables without a row."""
    with database.read() as store:
        return {table for table in METADATA.tables if not store.all(f"SELECT 1 FROM {table} LIMIT 1")}
