"""What webhooks receive is what the OpenAPI document says: every event, as it is really written."""

import json

import pytest

from evenmatch import rules
from evenmatch.http.app import endpoints
from evenmatch.http.models.webhook_events import EVENT_MODELS
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.settings import Settings
from evenmatch.queues import queue_sql
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.webhooks.delivery import Deliverer
from evenmatch.webhooks.payloads import server_wanted
from evenmatch.webhooks.subscriptions import EVENTS, SERVER_WANTED
from ledger.sample_matches import duel
from service.sample_queues import DUEL, accept_all, join_queue, select_rows, solos

FALLS = {"placement": 1, "inactivity": "rating", "grace_days": 3, "rating_decay": 10.0}
pytestmark = pytest.mark.both_databases


@pytest.fixture
def written(service, webhooks, clock):
    """The body of each event, as it is written when it happens on a ladder."""
    service.create_ladder("duel", "elo", rules("elo"), Settings().changed(FALLS))
    webhooks.add("http://hooks.example/", EVENTS)
    for at in (1, 2, 3):
        service.record(duel(at, "ann", "bob", "duel"))
    service.open_season("duel", title="Second", reset="none")
    queue_service = QueueService(service)
    queue_service.set_queue("duel", "ranked", DUEL, QueueRules(heartbeat=None))
    tickets = join_queue(queue_service, "duel", *solos("ann", "bob"))
    Matchmaker(queue_service).step("duel")
    with service.database.read() as store:
        head = store.head("duel")
        (offer,) = queue_sql.read_latest_offers(store, head.ladder, 1)
    accept_all(queue_service, "duel", tickets)
    clock.move(days=11)
    DailyDecay(service).apply("duel")
    Deliverer(webhooks).make()
    bodies = dict(select_rows(service, "SELECT event, body FROM delivery"))
    return {**bodies, SERVER_WANTED: server_wanted("duel", offer)}


def unknown_fields(schema, value, place="$"):
    """The places of fields that a schema does not name."""
    if isinstance(value, list):
        return [one for inner in value for one in unknown_fields(schema.get("items", {}), inner, f"{place}[]")]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    new = [f"{place}.{name}" for name in value.keys() - schema["properties"].keys()]
    known = value.keys() & schema["properties"].keys()
    return new + [
        one for name in known for one in unknown_fields(schema["properties"][name], value[name], f"{place}.{name}")
    ]


def resolved(part, schemas):
    """A schema with the schemas that it refers to in their places."""
    if isinstance(part, dict):
        if "$ref" in part:
            return resolved(schemas[part["$ref"].rpartition("/")[2]], schemas)
        return {name: resolved(inner, schemas) for name, inner in part.items()}
    return [resolved(inner, schemas) for inner in part] if isinstance(part, list) else part


def test_every_event_is_as_the_document_describes_it(written, service):
    assert written.keys() == set(EVENTS) == EVENT_MODELS.keys()
    site = site_over(service, Options(matchmaker=False))
    made = endpoints(site).openapi()
    site.close()
    for event, body in written.items():
        schema = made["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]["schema"]
        whole, sent = resolved(schema, made["components"]["schemas"]), json.loads(body)
        EVENT_MODELS[event].model_validate(sent)
        assert unknown_fields(whole, sent) == [], event
